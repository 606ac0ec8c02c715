//! Events that somebody looks at before their client gets them: each passes the stages at answers, one after the other.
//!
//! What looks at them goes on on the worker of the request that subscribed; the client may be on another one. One event at most
//! is ahead of the client. While one is looked at, the next ones wait in the queue of the subscription, with its limits: who
//! looks slowly is felt by this subscription alone, and its source and all others go on.

use std::{future::poll_fn, sync::Arc};

use ogive_edge::error::RequestError;
use tokio::sync::mpsc;

use crate::{
    hooks::{kept::KeptRun, parts::PartOutcome},
    shared::failures,
    subscribe::{
        hooked::EventHook,
        queue::{EventQueue, StreamEnd, StreamStep},
    },
};

/// Lets the events of a subscription be looked at from now on.
pub(crate) fn look_at_events(hook: EventHook, kept: KeptRun) {
    tokio::task::spawn_local(async move {
        if hook.begun.await.is_ok() {
            pass_on(&hook.queue, kept, &hook.steps).await;
        }
    });
}

/// Takes what waits, lets it be looked at, and passes it on, until it ends or the client leaves.
async fn pass_on(queue: &EventQueue, mut kept: KeptRun, steps: &mpsc::Sender<StreamStep>) {
    let mut ending = kept.gateway().sources.ending();
    kept.refresh();
    loop {
        let Ok(room) = steps.reserve().await else {
            return;
        };
        let step = loop {
            tokio::select! {
                biased;
                () = steps.closed() => return,
                changed = ending.changed() => match changed {
                    Ok(()) => kept.refresh(),
                    Err(_) => break StreamStep::End(StreamEnd::Drain),
                },
                step = poll_fn(|cx| queue.poll(cx)) => break step,
            }
        };
        let step = tokio::select! {
            biased;
            () = steps.closed() => return,
            end = poll_fn(|cx| queue.poll_cut(cx)) => StreamStep::End(end),
            step = looked_at(&kept, step) => match step {
                Some(step) => step,
                // A hook has dropped the event.
                None => continue,
            },
        };
        let is_last = matches!(step, StreamStep::End(_));
        room.send(step);
        if is_last {
            return;
        }
    }
}

/// What becomes of a step; `None` if a hook drops it. Of ends only those are told that are answers of a subgraph; the others are the gateway's own words.
async fn looked_at(kept: &KeptRun, step: StreamStep) -> Option<StreamStep> {
    let (json, has_next) = match &step {
        StreamStep::Event(event) => (event.json().clone(), true),
        StreamStep::End(StreamEnd::Failed(json)) => (json.clone(), false),
        StreamStep::End(_) => return Some(step),
    };
    let run = kept.run();
    let told = kept.operation(&run);
    let said = Box::pin(told.pass_event(json.clone(), has_next)).await;
    Some(match (said, step) {
        (Ok(None), StreamStep::Event(_)) => return None,
        (Ok(None), StreamStep::End(_)) => StreamStep::End(StreamEnd::Complete),
        (Ok(Some(PartOutcome::Sent(said))), step) if said == json => step,
        (Ok(Some(PartOutcome::Sent(said))), StreamStep::Event(event)) => {
            StreamStep::Event(Arc::new(event.with(said)))
        }
        (Ok(Some(PartOutcome::Sent(said) | PartOutcome::Ended(said))), _) => {
            StreamStep::End(StreamEnd::Failed(said))
        }
        (Err(error), _) => StreamStep::End(failed(kept, error)),
    })
}

fn failed(kept: &KeptRun, error: RequestError) -> StreamEnd {
    failures::refused(&kept.gateway().telemetry, None, &error);
    StreamEnd::Refused(error.into())
}
