//! Components that decide something where the configuration names them: who asks, which policies hold, what an operation is
//! counted by.
//!
//! A call runs in the worker, within its limits. Where one has taken long, later ones of the same hook run beside the worker
//! ([`Offload`]), so that its neighbours wait for it rarely. Calls of one that sends requests to other hosts run on threads of
//! its own, as at stages ([`components`](super::components)): a request that finds none free is told so at once, and what is
//! judged again behind its request waits for one of a few.

use std::{sync::Arc, time::Instant};

use ogive_component::{CallError, Decision, Plugin};
use ogive_failure::ErrorCode;
use ogive_telemetry::HookOutcome;

use super::plugins::LoadedPlugin;
use crate::shared::{offload::Offload, telling::Telling};

/// What is asked of a component, and what of it ends a request.
pub(crate) struct Question<T, C> {
    pub(crate) decision: Decision,
    pub(crate) call: C,
    /// Whether a request ends because of what it says.
    pub(crate) ends: fn(&T) -> bool,
    /// What is counted if it fails and the request goes on.
    pub(crate) code: ErrorCode,
}

impl LoadedPlugin {
    /// Asks it. `None` if it failed and has said nothing, as the configuration wants it; the error is for the operator, and
    /// whoever refuses the request tells it.
    pub(crate) async fn ask<T, C>(
        &self,
        question: Question<T, C>,
        (offload, telling): (&Offload, Telling<'_>),
    ) -> Result<Option<T>, Box<str>>
    where
        T: Send + 'static,
        C: FnOnce(&Plugin) -> Result<T, CallError> + Send + 'static,
    {
        let since = Instant::now();
        let (decision, call) = (question.decision, question.call);
        let plugin = Arc::clone(&self.plugin);
        let called = match &self.threads {
            Some(_) if self.is_busy() && telling.is_of_request() => {
                Err(CallError::Busy(plugin.options().limits.instances))
            }
            Some(threads) => {
                // It is never closed.
                let _place = if telling.is_of_request() {
                    None
                } else {
                    self.judged.acquire().await.ok()
                };
                threads.run(move || call(&plugin)).await
            }
            None if plugin.decides_long(decision) => offload.run(move || call(&plugin)).await,
            None => call(&plugin),
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
        if !self.plugin.options().goes_on {
            return Err(cause.into());
        }
        // Why it is left alone was told.
        if error != CallError::Ejected {
            let message = "a plug-in failed, and the request goes on";
            telling.failed(&cause, message, question.code);
        }
        Ok(None)
    }
}
