//! The stages at what comes behind the head of a response: later parts of an answer, and the events of a subscription.
//!
//! A part has a body and nothing else. What is said of headers and status counts no more, as they have left; whatever ends or
//! fails there ends the stream that it is a part of, with an error that has a code.

use std::sync::Arc;

use bytes::Bytes;
use ogive_edge::error::RequestError;
use ogive_hooks::{CoprocessorError, Exchange, Members, Stage};

use super::{
    answers::{message_body, response_body},
    body::{has_errors, is_empty_object, of_ended_part, with_has_next},
    run::{OperationHooks, PART_STAGES},
};

/// What becomes of a part.
pub(crate) enum PartOutcome {
    /// It is sent like this.
    Sent(Bytes),
    /// Nothing is sent any more but the errors of this response.
    Ended(Bytes),
}

impl OperationHooks<'_> {
    /// Lets the hooks at responses see an event; `None` if one of them drops the event, by an empty object as its body.
    pub(crate) async fn pass_event(
        &self,
        json: Bytes,
        has_next: bool,
    ) -> Result<Option<PartOutcome>, RequestError> {
        Ok(match self.part(json, (has_next, false)).await? {
            PartOutcome::Sent(json) if is_empty_object(&json) => None,
            outcome => Some(outcome),
        })
    }

    /// Lets whoever looks at answers look at a part that comes after the first, or at an event. The memory that calls count is
    /// given back at the end of each stage: a stream may have any number of parts. `says_next`: whether the part has a member
    /// `hasNext`; events have none.
    pub(crate) async fn part(
        &self,
        mut json: Bytes,
        (has_next, says_next): (bool, bool),
    ) -> Result<PartOutcome, RequestError> {
        let run = self.run;
        for stage in PART_STAGES {
            if !run.is_on_parts(stage) {
                continue;
            }
            run.has_errors
                .set(run.looks_at_errors() && has_errors(&json));
            let held = run.memory.used();
            let told = self.part_at(stage, &json, (has_next, says_next)).await;
            // What a reply leaves in the context stays, and has a bound of its own.
            run.memory.shrink(run.memory.used().saturating_sub(held));
            match told? {
                // No later stage sees an event that is dropped.
                Some(PartOutcome::Sent(changed)) if !says_next && is_empty_object(&changed) => {
                    return Ok(PartOutcome::Sent(changed));
                }
                Some(PartOutcome::Sent(changed)) => json = changed,
                Some(ended) => return Ok(ended),
                None => {}
            }
        }
        Ok(PartOutcome::Sent(json))
    }

    /// The same at one stage; `None` if it stays as it is.
    async fn part_at(
        &self,
        stage: Stage,
        json: &Bytes,
        (has_next, says_next): (bool, bool),
    ) -> Result<Option<PartOutcome>, RequestError> {
        let run = self.run;
        let sent = run.sent.get();
        let is_told = run.looks_at_body(stage);
        let mut exchange = Exchange {
            headers: sent.map_or_else(Arc::default, |sent| Arc::clone(&sent.headers)),
            status: sent.map(|sent| sent.status.as_u16()),
            body: is_told.then(|| message_body(stage, json.clone())),
            has_next: Some(has_next),
            is_first: false,
            ..run.exchange(stage)
        };
        let check = |exchange: &Exchange| {
            let Some(body) = exchange.body.as_ref().filter(|_| exchange.changes.body) else {
                return Ok(None);
            };
            let body = response_body(body, stage.body_is_text())?;
            if !says_next {
                return Ok(Some(body));
            }
            keep_form(json, &body)?;
            with_has_next(body, has_next).map(Some)
        };
        let body = run.ask(Some(self), &mut exchange, check).await?.flatten();
        Ok(match exchange.changes.ending.take() {
            Some(ending) => Some(PartOutcome::Ended(of_ended_part(*ending))),
            None => body.map(PartOutcome::Sent),
        })
    }
}

/// Refuses what is no later part of an answer: one with members of a whole response that it did not have. What it brings is in
/// its `incremental`, and clients would take the rest for something else or for nothing.
fn keep_form(before: &[u8], now: &[u8]) -> Result<(), CoprocessorError> {
    let malformed = || CoprocessorError::Malformed("body", "a part of an answer");
    let now = Members::read(now).ok_or_else(malformed)?;
    let before = Members::read(before).unwrap_or_default();
    let is_new = |name: &str| now.text(name).is_some() && before.text(name).is_none();
    if ["data", "errors", "label", "path"].into_iter().any(is_new) {
        return Err(malformed());
    }
    Ok(())
}
