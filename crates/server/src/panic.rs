//! The panic boundary of one request.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
};

/// Runs a future; a panic inside ends only that future and gives `None`.
///
/// What the future was working on is dropped with it. State it shares with other requests (caches, the connection
/// pool, counters) is only ever replaced whole or guarded by its own cell, so there is nothing half-changed to see.
///
/// Pinned by the caller: an `async fn` has room for its arguments and again for what they become.
pub async fn contained<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
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
    use std::pin::pin;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_panic_ends_only_its_own_future() {
        async fn fails() -> u32 {
            tokio::task::yield_now().await;
            panic!("on purpose")
        }
        assert_eq!(contained(pin!(fails())).await, None);
        assert_eq!(contained(pin!(async { 3 })).await, Some(3));
    }
}
