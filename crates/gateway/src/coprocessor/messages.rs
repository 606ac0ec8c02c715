//! Asking a coprocessor, and taking over what it says.
//!
//! A reply is taken over as a whole or not at all: what a stage makes of it is made first, then the context is changed, and
//! only then anything of the request.

use std::{collections::BTreeMap, fmt::Display, sync::Arc, time::Instant};

use http::{HeaderMap, StatusCode};
use ogive_component::CallError;
use ogive_coprocessor::{
    ContextSelection, Control, CoprocessorError, Message, MessageContext, Reply, Stage,
    entries::{OF_OPERATION, remove_left_out},
};
use ogive_edge::error::{RequestError, no_memory};
use ogive_script::Scripts;
use ogive_telemetry::{FailureLine, Hook, HookOutcome, Urgency, codes};

use super::{
    change::Change,
    condition::StageCondition,
    plugins::LoadedPlugin,
    run::{CoprocessorRun, OperationCoprocessor},
    settings::StageSettings,
    values::StageValues,
};

/// Who is asked at a stage.
enum Asked<'a> {
    Component(&'a LoadedPlugin),
    Scripts(&'a Arc<Scripts>),
    Coprocessor,
}

impl CoprocessorRun<'_> {
    /// Asks whoever is asked at a stage, components, then scripts, then the coprocessor on the way in, and the other way round on
    /// the way out, and takes over
    /// what they say: `take` makes of it what the stage needs and changes nothing. `None` if nobody is asked, or if the
    /// coprocessor failed and the request goes on all the same. `message` has the headers that are there, told or not.
    pub(crate) async fn ask<T>(
        &self,
        operation: Option<&OperationCoprocessor<'_>>,
        message: Message<'_>,
        take: impl Fn(Change) -> Result<T, CoprocessorError>,
    ) -> Result<Option<T>, RequestError> {
        let stage = message.stage;
        // Of a head that has left nothing is to be told but the body.
        let is_body_only = message.is_later_part && stage == Stage::RouterResponse;
        let scripts = self.scripts_at(stage).filter(|_| !is_body_only);
        if scripts.is_none() && self.plugins_at(stage).next().is_none() {
            return self.ask_coprocessor(operation, message, take).await;
        }
        let plugins = self.plugins_at(stage);
        let plugins = plugins.filter(|of| !is_body_only || of.plugin.looks_at_body(stage));
        let mut all: Vec<Asked<'_>> = plugins.map(Asked::Component).collect();
        all.extend(scripts.map(Asked::Scripts));
        all.push(Asked::Coprocessor);
        if stage.is_response() {
            all.reverse();
        }
        let mut said: Option<Change> = None;
        for asked in all {
            let next = {
                let told = match &said {
                    Some(said) => said.shown(message.clone()),
                    None => message.clone(),
                };
                match asked {
                    // Nothing is lent to it then.
                    Asked::Component(of) if !self.is_met(of.when(stage), operation, &told) => None,
                    Asked::Component(of) => {
                        let called = Box::pin(self.call_component(of, operation, &told)).await?;
                        let next = self.usable(of, stage, said.as_ref(), called, &take)?;
                        self.count_kept(stage, next.as_ref());
                        next
                    }
                    Asked::Scripts(scripts) => {
                        let said = Box::pin(self.call_script(scripts, operation, &told)).await?;
                        self.count_kept(stage, said.as_ref());
                        said
                    }
                    Asked::Coprocessor => {
                        // Whether it can be taken over with what was said before.
                        let merged = |change: Change| {
                            let change = Change::after(said.clone(), change);
                            take(change.clone()).map(|_| change)
                        };
                        let asked = self.ask_coprocessor(operation, told, merged);
                        let change = Box::pin(asked).await?;
                        if change.is_some() {
                            said = None;
                        }
                        change
                    }
                }
            };
            if let Some(next) = next {
                said = Some(Change::after(said.take(), next));
            }
            if said
                .as_ref()
                .is_some_and(|said| said.control != Control::Continue)
            {
                break;
            }
        }
        let taken = said.map(take).transpose();
        taken.map_err(|error| self.script_failed(stage, &error))
    }

    /// Whether somebody is told at a stage.
    fn is_met(
        &self,
        when: &StageCondition,
        operation: Option<&OperationCoprocessor<'_>>,
        message: &Message<'_>,
    ) -> bool {
        when.condition.is_none()
            || when.is_met(&StageValues {
                run: self,
                operation,
                message,
                names: &when.names,
            })
    }

    /// What a component has said, if a stage can take it over: a body of another kind is its failure.
    fn usable<T>(
        &self,
        of: &LoadedPlugin,
        stage: Stage,
        before: Option<&Change>,
        said: Option<Change>,
        take: &impl Fn(Change) -> Result<T, CoprocessorError>,
    ) -> Result<Option<Change>, RequestError> {
        let Some(said) = said else {
            return Ok(None);
        };
        if said.body.is_none() {
            return Ok(Some(said));
        }
        let Err(error) = take(Change::after(before.cloned(), said.clone())) else {
            return Ok(Some(said));
        };
        let error = CallError::Malformed(error.to_string());
        self.component_failed(&of.plugin, stage, &error, false)
            .map(|()| None)
    }

    /// The same of the coprocessor alone.
    async fn ask_coprocessor<T>(
        &self,
        operation: Option<&OperationCoprocessor<'_>>,
        mut message: Message<'_>,
        take: impl FnOnce(Change) -> Result<T, CoprocessorError>,
    ) -> Result<Option<T>, RequestError> {
        let stage = message.stage;
        let is_told = |settings: &&StageSettings| {
            let is_body_only = message.is_later_part && stage == Stage::RouterResponse;
            !is_body_only || settings.selection.body
        };
        let Some(settings) = self.at(stage).filter(is_told) else {
            return Ok(None);
        };
        if !self.is_met(&settings.when, operation, &message) {
            return Ok(None);
        }
        let none = HeaderMap::new();
        let before = message.headers.unwrap_or(&none);
        settings.select(&mut message, self.sdl.map(|sdl| &**sdl));
        let since = Instant::now();
        let called = |outcome| self.called(Hook::Coprocessor, stage, outcome, since);
        let (mut reply, entries) = match self.told(operation, settings, &message).await {
            Ok(answered) => answered,
            Err(error) => {
                called(HookOutcome::Failed);
                return match error {
                    CoprocessorError::Memory => Err(no_memory()),
                    error if error.is_ending() => Err(self.failed_to_end(stage, &error)),
                    error => self.failed(stage, &error).map(|()| None),
                };
            }
        };
        if let Some(said) = &mut reply.entries {
            remove_left_out(&settings.when.names, &entries, said);
        }
        let ends = reply.control != Control::Continue;
        let (bytes, entries) = (reply.bytes, self.entry_bytes(operation));
        let taken = self.take_over((stage, operation), settings, reply, before, take);
        if stage.is_of_subgraph() {
            // What of it is sent or answered is counted there; entries of the context stay.
            self.memory.shrink(bytes);
            let more = self.entry_bytes(operation).saturating_sub(entries);
            self.memory.count(more);
        }
        called(match &taken {
            Ok(_) if ends => HookOutcome::Break,
            Ok(_) => HookOutcome::Continue,
            Err(_) => HookOutcome::Failed,
        });
        match taken {
            Ok(taken) => Ok(Some(taken)),
            // Whatever else is wrong with it, what is to end does not go on.
            Err(error) if ends => Err(self.failed_to_end(stage, &error)),
            Err(error) => self.failed(stage, &error).map(|()| None),
        }
    }

    /// Asks the coprocessor. Gives back its reply, and the names of the entries of the context that it was told.
    async fn told(
        &self,
        operation: Option<&OperationCoprocessor<'_>>,
        settings: &StageSettings,
        message: &Message<'_>,
    ) -> Result<(Reply, Vec<Box<str>>), CoprocessorError> {
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
            Some(operation) => Box::pin(operation.told_in_batch(settings, message, json)).await,
            None => {
                let coprocessor = &self.stages.coprocessor;
                let asked = (json, &self.memory);
                coprocessor
                    .ask(self.client, settings.url, message, asked)
                    .await
            }
        };
        self.memory.shrink(bytes);
        let reply = reply?;
        self.memory.count(reply.bytes);
        Ok((reply, entries))
    }

    /// All of a reply, or nothing.
    fn take_over<T>(
        &self,
        (stage, operation): (Stage, Option<&OperationCoprocessor<'_>>),
        settings: &StageSettings,
        mut reply: Reply,
        before: &HeaderMap,
        take: impl FnOnce(Change) -> Result<T, CoprocessorError>,
    ) -> Result<T, CoprocessorError> {
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
        let taken = take(Change::of(reply, before, stage)?)?;
        match fits {
            Ok(()) => {
                self.entries.borrow_mut().merge(selection, said)?;
                if let Some(operation) = operation {
                    operation.own.borrow_mut().merge(selection, own)?;
                }
            }
            // What is to end ends, whatever it says of the context.
            Err(_) if ends => {}
            Err(error) => return Err(error),
        }
        Ok(taken)
    }

    /// Bytes of the context.
    fn entry_bytes(&self, operation: Option<&OperationCoprocessor<'_>>) -> usize {
        let own = operation.map_or(0, |operation| operation.own.borrow().bytes());
        self.entries.borrow().bytes() + own
    }

    /// Counts the body that a script has written, which is kept until the response has left; what is of a subgraph is
    /// counted where it is sent or answered.
    fn count_kept(&self, stage: Stage, said: Option<&Change>) {
        let body = said.and_then(|said| said.body.as_ref());
        if !stage.is_of_subgraph()
            && let Some(body) = body
        {
            self.memory.count(body.len());
        }
    }

    /// The error ends the request, and whoever refuses that tells the operator why; if it goes on, that is told here.
    fn failed(&self, stage: Stage, error: &CoprocessorError) -> Result<(), RequestError> {
        let cause = self.cause(stage, error);
        if !self.stages.goes_on() {
            return Err(failed(cause));
        }
        self.telemetry.failed(&FailureLine {
            cause: &cause,
            record: self.record,
            ..FailureLine::new(
                "the coprocessor failed, and the request goes on",
                Urgency::Warn,
                codes::COPROCESSOR_FAILED.as_str(),
            )
        });
        Ok(())
    }

    /// What the operator is told of something that went wrong at a stage.
    pub(super) fn cause(&self, stage: Stage, error: &dyn Display) -> Box<str> {
        format!("at {} of {}: {error}", stage.name(), self.id).into()
    }

    /// The same of one that wanted to end the request: that it cannot be told how does not let it go on.
    fn failed_to_end(&self, stage: Stage, error: &CoprocessorError) -> RequestError {
        failed(self.cause(stage, error))
    }
}

/// What a client is told whose request a coprocessor failed at.
pub(crate) fn failed(cause: Box<str>) -> RequestError {
    RequestError {
        status: StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
        cause: Some(cause),
        ..RequestError::http(
            codes::COPROCESSOR_FAILED,
            "the request could not be processed",
        )
    }
}
