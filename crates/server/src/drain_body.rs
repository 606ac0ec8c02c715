//! Reading what nobody needs, so that a refusal is read.
//!
//! A client that is still sending its body when the connection is closed sees a reset instead of the answer. So what is
//! left of a refused body is read and thrown away, within limits: a client that goes on for ever is cut off.

use std::{
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
/// Longest time altogether.
pub const TIME_MAX: Duration = Duration::from_secs(2);
/// Longest pause of a client that may be waiting for the answer already. Over HTTP/2 a client that is far away pauses
/// for a round trip whenever it has sent what it may.
pub const PAUSE_MAX: Duration = Duration::from_millis(300);

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
