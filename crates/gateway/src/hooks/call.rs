//! Calling the hooks of a stage: components, then scripts, then the coprocessor on the way in, and the other way round on the way
//! out. Each sees the exchange as those before it have left it.
//!
//! A call of a script or component has a [turn](ogive_hooks::worker_time) in the worker. A call that is not done then is made again
//! on a thread beside the workers ([`HookThreads`]), so neighbours wait for it as long as a turn at most. Calls of a component that
//! sends requests to other hosts always run on its threads.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use http::StatusCode;
use ogive_edge::error::RequestError;
use ogive_hooks::{
    CallError, CallMode, Changes, ContextEntries, CoprocessorError, Exchange, HookEngine, Stage,
    components::Component, scripts::Scripts,
};
use ogive_telemetry::{FailureLine, Hook, HookOutcome, Urgency, codes};

use super::{
    components::LoadedComponent,
    condition::StageCondition,
    run::{HookRun, OperationHooks},
    settings::StageSettings,
    values::StageValues,
};
use crate::shared::hook_threads::HookThreads;

/// A hook of a stage.
enum StageHook<'a> {
    Component(&'a LoadedComponent),
    Scripts(&'a Arc<Scripts>),
    Coprocessor(&'a StageSettings),
}

impl HookRun<'_> {
    /// Calls the hooks of a stage. The exchange then has what they changed, or what one of them ends the request with. `check`
    /// says whether the stage can take over what a hook has changed, and gives what the stage needs of it; `None` if no hook has
    /// changed anything, or if one ends the request.
    pub(crate) async fn ask<T>(
        &self,
        operation: Option<&OperationHooks<'_>>,
        exchange: &mut Exchange,
        check: impl Fn(&Exchange) -> Result<T, CoprocessorError>,
    ) -> Result<Option<T>, RequestError> {
        let stage = exchange.stage;
        // Of a head that has left nothing is to be told but the body.
        let is_body_only = !exchange.is_first && stage == Stage::RouterResponse;
        let components = self.components_at(stage);
        let components = components.filter(|of| !is_body_only || of.component.looks_at_body(stage));
        let scripts = self.scripts_at(stage).filter(|_| !is_body_only);
        let coprocessor = self.at(stage);
        let coprocessor = coprocessor.filter(|at| !is_body_only || at.selection.body);
        let mut hooks = components
            .map(StageHook::Component)
            .chain(scripts.map(StageHook::Scripts))
            .chain(coprocessor.map(StageHook::Coprocessor));
        let mut changes = Changes::default();
        while let Some(hook) = if stage.is_response() {
            hooks.next_back()
        } else {
            hooks.next()
        } {
            match hook {
                // Nothing is lent to it then.
                StageHook::Component(of) if !self.is_met(of.when(stage), operation, exchange) => {}
                StageHook::Component(of) => {
                    Box::pin(self.call_component(of, operation, exchange, &check)).await?;
                }
                StageHook::Scripts(scripts) => {
                    Box::pin(self.call_scripts(scripts, operation, exchange)).await?;
                }
                StageHook::Coprocessor(settings) => {
                    Box::pin(self.ask_coprocessor(settings, operation, exchange, &check)).await?;
                }
            }
            changes.add(std::mem::take(&mut exchange.changes));
            if changes.ending.is_some() {
                break;
            }
        }
        exchange.changes = changes;
        let taken = checked(exchange, &check);
        taken.map_err(|error| self.script_failed(stage, &error))
    }

    /// Whether a hook is called for an exchange.
    pub(super) fn is_met(
        &self,
        when: &StageCondition,
        operation: Option<&OperationHooks<'_>>,
        exchange: &Exchange,
    ) -> bool {
        when.condition.is_none()
            || when.is_met(&StageValues {
                run: self,
                operation,
                exchange,
                names: &when.names,
            })
    }

    /// Calls the hook of a component. A body that the stage cannot take over is the component's failure.
    async fn call_component<T>(
        &self,
        of: &LoadedComponent,
        operation: Option<&OperationHooks<'_>>,
        exchange: &mut Exchange,
        check: &impl Fn(&Exchange) -> Result<T, CoprocessorError>,
    ) -> Result<(), RequestError> {
        let (stage, component) = (exchange.stage, &of.component);
        if of.is_busy() {
            self.called(of.hook, stage, HookOutcome::Failed, Instant::now());
            let busy = CallError::Busy(component.options().limits.instances);
            return self.component_failed(component, stage, &busy);
        }
        let before = exchange.clone();
        let called = self.call(component, (of.hook, &of.threads), operation, exchange);
        let called = called.await.and_then(|()| {
            let checked = checked(exchange, check).map(|_| ());
            checked.map_err(|error| CallError::Malformed(error.to_string()))
        });
        if let Err(error) = called {
            *exchange = before;
            return self.component_failed(component, stage, &error);
        }
        self.count_body(exchange);
        Ok(())
    }

    /// Calls what the scripts have registered for a stage.
    async fn call_scripts(
        &self,
        scripts: &Arc<Scripts>,
        operation: Option<&OperationHooks<'_>>,
        exchange: &mut Exchange,
    ) -> Result<(), RequestError> {
        let threads = &self.stages.script_threads;
        let called = self.call(scripts, (Hook::Script, threads), operation, exchange);
        if let Err(error) = called.await {
            return Err(self.script_failed(exchange.stage, &error));
        }
        self.count_body(exchange);
        Ok(())
    }

    /// Calls a hook in this worker for its turn, and beside the workers if it needs longer.
    async fn call<E: HookEngine + 'static>(
        &self,
        engine: &Arc<E>,
        (hook, threads): (Hook, &HookThreads),
        operation: Option<&OperationHooks<'_>>,
        exchange: &mut Exchange,
    ) -> Result<(), CallError> {
        let since = Instant::now();
        let Some(mode) = engine.mode(exchange) else {
            return Ok(());
        };
        let in_turn = match mode {
            CallMode::Turn => self.call_in_turn(&**engine, operation, exchange),
            CallMode::Whole => Err(CallError::Unfinished),
        };
        let called = match in_turn {
            Err(CallError::Unfinished) => {
                self.call_beside(engine, threads, operation, exchange).await
            }
            done => done,
        };
        let outcome = match &called {
            Ok(()) if exchange.changes.ending.is_some() => HookOutcome::Break,
            Ok(()) => HookOutcome::Continue,
            Err(_) => HookOutcome::Failed,
        };
        self.called(hook, exchange.stage, outcome, since);
        called
    }

    /// Calls a hook in this worker, and lends it the context.
    fn call_in_turn(
        &self,
        engine: &impl HookEngine,
        operation: Option<&OperationHooks<'_>>,
        exchange: &mut Exchange,
    ) -> Result<(), CallError> {
        exchange.context = self.entries.take();
        exchange.own = operation.map(|of| of.own.take());
        let called = exchange.pass(engine, CallMode::Turn);
        *self.entries.borrow_mut() = std::mem::take(&mut exchange.context);
        if let (Some(of), Some(own)) = (operation, exchange.own.take()) {
            *of.own.borrow_mut() = own;
        }
        called
    }

    /// Calls a hook on a thread beside the workers, and lends it a copy of the context: others of the request may change the
    /// context meanwhile.
    async fn call_beside<E: HookEngine + 'static>(
        &self,
        engine: &Arc<E>,
        threads: &HookThreads,
        operation: Option<&OperationHooks<'_>>,
        exchange: &mut Exchange,
    ) -> Result<(), CallError> {
        let mut lent = exchange.clone();
        lent.context = self.entries.borrow().clone();
        lent.own = operation.map(|of| of.own.borrow().clone());
        let (context, own) = (lent.context.clone(), lent.own.clone());
        let engine = Arc::clone(engine);
        let call = move || {
            let called = lent.pass(&*engine, CallMode::Whole);
            (lent, called)
        };
        let (mut after, called) = threads.run_for(self.address, call).await;
        let lent = std::mem::take(&mut after.context);
        merge(&context, &lent, &mut self.entries.borrow_mut());
        if let (Some(of), Some(before), Some(lent)) = (operation, own, after.own.take()) {
            merge(&before, &lent, &mut of.own.borrow_mut());
        }
        *exchange = after;
        called
    }

    /// Counts a body that a hook has written, which is kept until the response has left; a body of a subgraph is counted where it
    /// is sent or answered.
    fn count_body(&self, exchange: &Exchange) {
        let is_counted = exchange.changes.body && !exchange.stage.is_of_subgraph();
        if let Some(body) = exchange.body.as_ref().filter(|_| is_counted) {
            self.memory.count(body.bytes().len());
        }
    }

    /// Ends the request if a component has to end it, and otherwise tells the operator that the request goes on; but not of
    /// calls that are not made because of what was told before.
    fn component_failed(
        &self,
        component: &Component,
        stage: Stage,
        error: &CallError,
    ) -> Result<(), RequestError> {
        let options = component.options();
        let cause = self.cause(stage, &format_args!("`{}`: {error}", options.name));
        if error.is_ending() || !options.goes_on {
            return Err(hook_failed(codes::PLUGIN_FAILED, cause));
        }
        if *error != CallError::Ejected {
            self.telemetry.failed(&FailureLine {
                cause: &cause,
                record: self.record,
                ..FailureLine::new(
                    "a component failed, and the request goes on",
                    Urgency::Warn,
                    codes::PLUGIN_FAILED.as_str(),
                )
            });
        }
        Ok(())
    }

    /// The error that ends a request whose script failed.
    pub(crate) fn script_failed(
        &self,
        stage: Stage,
        error: &dyn std::fmt::Display,
    ) -> RequestError {
        hook_failed(codes::SCRIPT_FAILED, self.cause(stage, error))
    }

    /// What the operator is told of something that went wrong at a stage.
    pub(super) fn cause(&self, stage: Stage, error: &dyn std::fmt::Display) -> Box<str> {
        format!("at {} of {}: {error}", stage.name(), self.id).into()
    }
}

/// The error that ends a request at which a hook failed.
pub(super) fn hook_failed(code: ogive_failure::ErrorCode, cause: Box<str>) -> RequestError {
    RequestError {
        status: StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
        cause: Some(cause),
        ..RequestError::http(code, "the request could not be processed")
    }
}

/// What a stage needs of what hooks have changed; `None` if they have changed nothing, or end the request.
pub(super) fn checked<T>(
    exchange: &Exchange,
    check: &impl Fn(&Exchange) -> Result<T, CoprocessorError>,
) -> Result<Option<T>, CoprocessorError> {
    let changes = &exchange.changes;
    if changes.ending.is_some() || !changes.is_some() {
        return Ok(None);
    }
    check(exchange).map(Some)
}

/// Takes what was changed between two states over into a third.
fn merge(before: &ContextEntries, after: &ContextEntries, into: &mut ContextEntries) {
    let names: BTreeSet<&str> = before
        .iter()
        .chain(after.iter())
        .map(|(name, _)| name)
        .collect();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        if old.map(|value| value.get()) == new.map(|value| value.get()) {
            continue;
        }
        match new {
            // What is too much was refused when the hook set it; what others have left since comes first.
            Some(value) => drop(into.set(name, value.to_owned())),
            None => into.remove(name),
        }
    }
}
