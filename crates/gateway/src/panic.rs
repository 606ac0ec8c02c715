//! The panic boundary of one request.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
};

/// Runs a future; a panic inside ends only that future and gives `None`.
///
/// What the future was working on is dropped with it. State it shares with other requests (caches, the connection
/// pool, counters) is only ever replaced whole or guarded by its own cell, so there is nothing half-changed to see.
pub(crate) async fn contained<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_) => std::task::Poll::Ready(None),
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_panic_ends_only_its_own_future() {
        async fn fails() -> u32 {
            tokio::task::yield_now().await;
            panic!("on purpose")
        }
        assert_eq!(contained(fails()).await, None);
        assert_eq!(contained(async { 3 }).await, Some(3));
    }
}
