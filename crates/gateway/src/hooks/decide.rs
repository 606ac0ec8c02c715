//! Components that decide something where the configuration names them: who asks, which policies hold, what an operation is
//! counted by.
//!
//! Calls run as those at stages do ([`call`](super::call)): in the worker for a turn, or on threads of the component.
//! Of a component that sends requests to other hosts, a request that finds no thread free is told so at once, and what is judged
//! again behind its request waits for one of a few.

use std::{sync::Arc, time::Instant};

use ogive_failure::ErrorCode;
use ogive_hooks::{
    CallError, CallMode,
    components::{Component, Decision},
};
use ogive_telemetry::HookOutcome;

use super::components::LoadedComponent;
use crate::shared::telling::Telling;

/// What is asked of a component, and what of it ends a request.
pub(crate) struct Question<T, C> {
    pub(crate) decision: Decision,
    pub(crate) call: C,
    /// Whether a request ends because of what it says.
    pub(crate) ends: fn(&T) -> bool,
    /// What is counted if it fails and the request goes on.
    pub(crate) code: ErrorCode,
}

impl LoadedComponent {
    /// Asks it. `None` if it failed and has said nothing, as the configuration wants it; the error is for the operator, and
    /// whoever refuses the request tells it.
    pub(crate) async fn ask<T, C>(
        &self,
        question: Question<T, C>,
        telling: Telling<'_>,
    ) -> Result<Option<T>, Box<str>>
    where
        T: Send + 'static,
        C: FnMut(&Component, CallMode) -> Result<T, CallError> + Send + 'static,
    {
        let since = Instant::now();
        let (decision, mut call) = (question.decision, question.call);
        let component = Arc::clone(&self.component);
        let in_turn = match component.decision_mode(decision) {
            CallMode::Turn => call(&component, CallMode::Turn),
            CallMode::Whole => Err(CallError::Unfinished),
        };
        let called = match in_turn {
            Err(CallError::Unfinished) if self.is_busy() && telling.is_of_request() => {
                Err(CallError::Busy(component.options().limits.instances))
            }
            Err(CallError::Unfinished) => {
                let is_judged_again = component.sends_requests() && !telling.is_of_request();
                let _place = if is_judged_again {
                    // It is never closed.
                    self.judged.acquire().await.ok()
                } else {
                    None
                };
                let call = move || call(&component, CallMode::Whole);
                self.threads.run(call).await
            }
            done => done,
        };
        let outcome = match &called {
            Ok(said) if (question.ends)(said) => HookOutcome::Break,
            Ok(_) => HookOutcome::Continue,
            Err(_) => HookOutcome::Failed,
        };
        let hook = decision.hook_name();
        telling.called((self.hook, hook), outcome, since);
        let error = match called {
            Ok(said) => return Ok(Some(said)),
            Err(error) => error,
        };
        let cause = format!("at {hook}: `{}`: {error}", self.name());
        if !self.component.options().goes_on {
            return Err(cause.into());
        }
        // Why it is left alone was told.
        if error != CallError::Ejected {
            let message = "a component failed, and the request goes on";
            telling.failed(&cause, message, question.code);
        }
        Ok(None)
    }
}
