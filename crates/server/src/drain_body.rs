//! Reading what nobody needs, so that a refusal is read.
//!
//! A client that is still sending its body when the connection is closed sees a reset instead of the answer. So what is
//! left of a refused body is read and thrown away, within limits: a client that goes on for ever is cut off.

use std::{
    cell::Cell,
    future::poll_fn,
    pin::{Pin, pin},
    time::{Duration, Instant},
};

use http::{HeaderMap, header};
use hyper::body::{Body, Buf};

/// Most bytes read for nothing.
pub const BYTES_MAX: usize = 32 << 20;
/// Bytes read in one go; then other requests have their turn.
const TURN: usize = 256 << 10;
/// Bodies of one thread that are read for nothing at a time. While one is, its connection has buffers, which are not counted;
/// whoever is refused beyond that number finds the connection closed.
pub const DRAINS_MAX: usize = 256;
/// Longest time altogether.
pub const TIME_MAX: Duration = Duration::from_secs(2);
/// Longest pause of a client that may be waiting for the answer already. Over HTTP/2 a client that is far away pauses
/// for a round trip whenever it has sent what it may.
pub const PAUSE_MAX: Duration = Duration::from_millis(300);

thread_local! {
    /// How many are read now.
    static DRAINS: Cell<usize> = const { Cell::new(0) };
}

/// One body that is read for nothing; counted until it is dropped, on the thread where it began.
#[derive(Debug)]
pub struct Drain(());

impl Drain {
    /// Begins with one; `None` if there are as many as there may be.
    pub fn begin() -> Option<Drain> {
        let drains = DRAINS.get();
        (drains < DRAINS_MAX).then(|| {
            DRAINS.set(drains + 1);
            Drain(())
        })
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        DRAINS.set(DRAINS.get().saturating_sub(1));
    }
}

/// Reads the body of a request that its head alone has refused. Over HTTP/2 the stream would be reset otherwise, behind
/// the answer, and some clients that are still sending then drop the answer. In a box: what is refused need not make
/// room for itself in what is served.
pub fn read_refused<B: Body>(
    headers: &HeaderMap,
    body: B,
) -> Pin<Box<impl Future<Output = ()> + use<B>>> {
    // Whoever asks before sending (`expect: 100-continue`) is told not to.
    let sends = !body.is_end_stream() && !headers.contains_key(header::EXPECT);
    Box::pin(async move {
        if sends {
            linger(pin!(body)).await;
        }
    })
}

/// Reads on until the end, a pause or a limit.
pub async fn linger<B: Body>(mut body: Pin<&mut B>) {
    let Some(_drain) = Drain::begin() else {
        return;
    };
    let began = Instant::now();
    let (mut read, mut turn) = (0, TURN);
    while read < BYTES_MAX && began.elapsed() < TIME_MAX {
        let next = poll_fn(|cx| body.as_mut().poll_frame(cx));
        match tokio::time::timeout(PAUSE_MAX, next).await {
            Ok(Some(Ok(frame))) => read += frame.data_ref().map_or(0, Buf::remaining),
            _ => return,
        }
        if read >= turn {
            turn = read + TURN;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        task::{Context, Poll},
    };

    use bytes::Bytes;
    use hyper::body::Frame;

    use super::*;

    /// A body of which nothing more comes.
    struct Stuck;

    impl Body for Stuck {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_bodies_that_nobody_reads_a_few_are_drained_at_a_time() {
        let read = || read_refused(&HeaderMap::new(), Stuck);
        let mut draining: Vec<_> = (0..DRAINS_MAX).map(|_| read()).collect();
        for read in &mut draining {
            assert!(
                poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx)))
                    .await
                    .is_pending()
            );
        }
        let mut one_more = read();
        let polled = poll_fn(|cx| Poll::Ready(one_more.as_mut().poll(cx))).await;
        assert!(polled.is_ready(), "it is not waited for");
        draining.pop();
        let mut next = read();
        let polled = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        assert!(polled.is_pending(), "there is room for it again");
        // Each ends by itself.
        for read in draining {
            read.await;
        }
        next.await;
        assert_eq!(DRAINS.get(), 0);
    }
}
