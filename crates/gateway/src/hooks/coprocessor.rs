//! Asking a coprocessor, and taking over what it says.
//!
//! A reply is taken over as a whole or not at all: what a stage makes of it is made first, then the context is changed, and
//! only then anything of the request.

use std::{collections::BTreeMap, time::Instant};

use ogive_edge::error::{RequestError, no_memory};
use ogive_hooks::{
    ContextSelection, Control, CoprocessorError, Exchange, Message, MessageContext, Reply, Stage,
    entries::{OF_OPERATION, remove_left_out},
};
use ogive_telemetry::{FailureLine, Hook, HookOutcome, Urgency, codes};

use super::{
    call::{checked, hook_failed},
    run::{HookRun, OperationHooks},
    settings::StageSettings,
};

impl HookRun<'_> {
    /// Asks the coprocessor, if its condition is met, and applies what it says. If it failed and the request goes on all the same,
    /// the exchange is as it was.
    pub(super) async fn ask_coprocessor<T>(
        &self,
        settings: &StageSettings,
        operation: Option<&OperationHooks<'_>>,
        exchange: &mut Exchange,
        check: &impl Fn(&Exchange) -> Result<T, CoprocessorError>,
    ) -> Result<(), RequestError> {
        let stage = exchange.stage;
        if !self.is_met(&settings.when, operation, exchange) {
            return Ok(());
        }
        let since = Instant::now();
        let called = |outcome| self.called(Hook::Coprocessor, stage, outcome, since);
        let (mut reply, entries) = match self.told(operation, settings, exchange).await {
            Ok(answered) => answered,
            Err(error) => {
                called(HookOutcome::Failed);
                return match error {
                    CoprocessorError::Memory => Err(no_memory()),
                    error => self.failed(stage, &error, error.is_ending()),
                };
            }
        };
        if let Some(said) = &mut reply.entries {
            remove_left_out(&settings.when.names, &entries, said);
        }
        let ends = reply.control != Control::Continue;
        let (bytes, entries) = (reply.bytes, self.entry_bytes(operation));
        let taken = self.take_over(operation, settings, reply, exchange, check);
        if stage.is_of_subgraph() {
            // What of it is sent or answered is counted there; entries of the context stay.
            self.memory.shrink(bytes);
            let more = self.entry_bytes(operation).saturating_sub(entries);
            self.memory.count(more);
        }
        called(match &taken {
            Ok(()) if ends => HookOutcome::Break,
            Ok(()) => HookOutcome::Continue,
            Err(_) => HookOutcome::Failed,
        });
        // Whatever else is wrong with a reply, what is to end does not go on.
        taken.or_else(|error| self.failed(stage, &error, ends))
    }

    /// Asks the coprocessor. Gives back its reply, and the names of the entries of the context that it was told.
    async fn told(
        &self,
        operation: Option<&OperationHooks<'_>>,
        settings: &StageSettings,
        exchange: &Exchange,
    ) -> Result<(Reply, Vec<Box<str>>), CoprocessorError> {
        let message = settings.message(exchange, self.sdl.map(|sdl| &**sdl));
        let (json, entries) = {
            let entries = self.entries.borrow();
            let own = operation.map(|operation| operation.own.borrow());
            let is_told = settings.when.names != ContextSelection::Nothing;
            let context = is_told.then_some(MessageContext {
                entries: &entries,
                own: own.as_deref(),
                selection: &settings.when.names,
            });
            let names = context.iter().flat_map(MessageContext::names);
            let names: Vec<Box<str>> = names.map(Box::from).collect();
            let message = Message {
                context,
                ..message.clone()
            };
            (message.to_json(), names)
        };
        let bytes = json.len() + entries.iter().map(|name| name.len()).sum::<usize>();
        let Ok(()) = self.memory.grow(bytes) else {
            return Err(CoprocessorError::Memory);
        };
        let reply = match operation.filter(|_| settings.selection.batch) {
            Some(operation) => Box::pin(operation.told_in_batch(settings, &message, json)).await,
            None => {
                let coprocessor = &self.stages.coprocessor;
                let asked = (json, &self.memory);
                coprocessor
                    .ask(self.client, settings.url, &message, asked)
                    .await
            }
        };
        self.memory.shrink(bytes);
        let reply = reply?;
        self.memory.count(reply.bytes);
        Ok((reply, entries))
    }

    /// Applies all of a reply, or nothing.
    fn take_over<T>(
        &self,
        operation: Option<&OperationHooks<'_>>,
        settings: &StageSettings,
        mut reply: Reply,
        exchange: &mut Exchange,
        check: &impl Fn(&Exchange) -> Result<T, CoprocessorError>,
    ) -> Result<(), CoprocessorError> {
        let ends = reply.control != Control::Continue;
        if !ends && !settings.selection.body {
            // What it was not told it does not replace.
            reply.body = None;
        }
        let mut said = reply.entries.take().unwrap_or_default();
        let selection = &settings.when.names;
        let mut own = BTreeMap::new();
        if operation.is_some() {
            let is_own = |name: &String| OF_OPERATION.contains(&selection.known(name));
            let names: Vec<String> = said.keys().filter(|name| is_own(name)).cloned().collect();
            for name in names {
                own.extend(said.remove_entry(&name));
            }
        }
        let fits = || {
            self.entries.borrow().check(selection, &said)?;
            operation.map_or(Ok(()), |of| of.own.borrow().check(selection, &own))
        };
        let fits = fits();
        let before = exchange.clone();
        let applied = reply.apply(exchange);
        let applied = applied.and_then(|()| checked(exchange, check).map(|_| ()));
        // What is to end ends, whatever it says of the context.
        let applied = applied.and_then(|()| if ends { Ok(()) } else { fits.clone() });
        if let Err(error) = applied {
            *exchange = before;
            return Err(error);
        }
        if fits.is_ok() {
            self.entries.borrow_mut().merge(selection, said)?;
            if let Some(operation) = operation {
                operation.own.borrow_mut().merge(selection, own)?;
            }
        }
        Ok(())
    }

    /// Bytes of the context.
    fn entry_bytes(&self, operation: Option<&OperationHooks<'_>>) -> usize {
        let own = operation.map_or(0, |operation| operation.own.borrow().bytes());
        self.entries.borrow().bytes() + own
    }

    /// Ends the request if it has to end, and otherwise tells the operator that it goes on. `ends`: the coprocessor wanted to end
    /// the request; that it cannot be told how does not let the request go on.
    fn failed(
        &self,
        stage: Stage,
        error: &CoprocessorError,
        ends: bool,
    ) -> Result<(), RequestError> {
        let (cause, code) = (self.cause(stage, error), codes::COPROCESSOR_FAILED);
        if ends || !self.stages.goes_on() {
            return Err(hook_failed(code, cause));
        }
        self.telemetry.failed(&FailureLine {
            cause: &cause,
            record: self.record,
            ..FailureLine::new(
                "the coprocessor failed, and the request goes on",
                Urgency::Warn,
                code.as_str(),
            )
        });
        Ok(())
    }
}
