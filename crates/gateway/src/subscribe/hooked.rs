//! The events of a queue that somebody looks at before their client gets them, as the client takes them; who looks is
//! [`event_hooks`](super::event_hooks).

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use ogive_edge::error::internal;
use tokio::sync::{mpsc, oneshot};

use crate::subscribe::queue::{EventQueue, StreamEnd, StreamStep};

/// The events of a queue behind whoever looks at them. Dropping it gives up what is under way.
pub(crate) struct HookedEvents {
    /// Says that the client takes events: the head of the response is there, then.
    begin: Option<oneshot::Sender<()>>,
    steps: mpsc::Receiver<StreamStep>,
}

impl fmt::Debug for HookedEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookedEvents")
    }
}

/// What whoever looks at events takes them from and passes them on to.
pub(crate) struct EventHook {
    pub(crate) queue: Arc<EventQueue>,
    /// Says that the client takes events.
    pub(crate) begun: oneshot::Receiver<()>,
    /// One event at most is ahead of the client.
    pub(crate) steps: mpsc::Sender<StreamStep>,
}

impl HookedEvents {
    pub(crate) fn new(queue: &Arc<EventQueue>) -> (Self, EventHook) {
        let (begin, begun) = oneshot::channel();
        let (sender, steps) = mpsc::channel(1);
        queue.hook();
        let begin = Some(begin);
        let hook = EventHook {
            queue: Arc::clone(queue),
            begun,
            steps: sender,
        };
        (HookedEvents { begin, steps }, hook)
    }
    /// What comes next.
    pub(crate) fn poll(&mut self, queue: &EventQueue, cx: &mut Context<'_>) -> Poll<StreamStep> {
        if let Some(begin) = self.begin.take() {
            let _ = begin.send(());
        }
        let step = self.steps.poll_recv(cx);
        // Nothing that was taken before comes behind a credential that ended meanwhile.
        if let Some(end) = queue.cut_end() {
            return Poll::Ready(StreamStep::End(end));
        }
        // It ends with an end, unless there was a panic.
        step.map(|step| {
            let ended = || StreamStep::End(StreamEnd::Refused(internal().into()));
            step.unwrap_or_else(ended)
        })
    }
}
