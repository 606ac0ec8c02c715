//! Whether the server drains.

use std::time::Duration;

use tokio::sync::watch;

/// Whether draining began. Never waited with: whoever waits has a [`receiver`](Self::receiver) of its own.
#[derive(Clone)]
pub(crate) struct Draining(watch::Receiver<bool>);

impl Draining {
    /// Learns it from here.
    pub(crate) fn new(receiver: watch::Receiver<bool>) -> Self {
        Draining(receiver)
    }
    /// Whether it began. Takes no lock, because it is asked with every request.
    pub(crate) fn has_begun(&self) -> bool {
        // There is one change only, and nobody looks at it here; the sender goes after it.
        self.0.has_changed().unwrap_or(true)
    }
    /// To wait with.
    pub(crate) fn receiver(&self) -> watch::Receiver<bool> {
        self.0.clone()
    }
}

/// Waits until draining began, and then as long as idle connections are kept.
pub(crate) async fn drained(draining: &mut watch::Receiver<bool>, idle: Duration) {
    // The sender goes only after it has told.
    let _ = draining.wait_for(|draining| *draining).await;
    tokio::time::sleep(idle).await;
}
