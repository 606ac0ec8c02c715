//! HTTP/2 on one connection.
//!
//! A client may open and give up requests faster than they can be answered ("rapid reset"). Those not yet started are
//! bounded by the protocol's implementation, those started by [`crate::activity`]: a connection that gives up most of what
//! it asks is closed.
//!
//! Draining: the client is told not to send more. It should say that it has heard it, and then close; whether it does or
//! not, the connection ends when nothing is under way any more, `drain_idle_timeout` later at the soonest. The same holds
//! for a connection that is idle for too long, or whose place is wanted.

use std::{convert::Infallible, future::Future, pin::pin, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::Service};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::{Instant, sleep_until};

use crate::{
    activity::Taken,
    driven::{Driven, Error},
};

/// Streams that a client has given up before anybody looked at them; more close the connection.
const PENDING_RESETS_MAX: usize = 20;
/// How often it is looked whether a connection that is to end is idle.
const LOOK: Duration = Duration::from_millis(50);
/// How long a client may take to hear that its connection ends because it is idle.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Serves until the connection ends.
pub(crate) async fn drive<S>(
    driven: Driven,
    service: S,
    opens_websockets: bool,
) -> Result<(), Error>
where
    S: Service<Request<Incoming>, Response = Response<Taken>, Error = Infallible>,
    S::Future: 'static,
{
    let (options, activity) = (&driven.options, &driven.activity);
    let mut builder = http2::Builder::new(LocalExecutor);
    if opens_websockets {
        builder.enable_connect_protocol();
    }
    let serving = builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.http2_streams_max)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(options.http2_resets_max as usize)
        .max_header_list_size(options.header_bytes().ceiling.min(u32::MAX as usize) as u32)
        .keep_alive_interval(driven.patience)
        .keep_alive_timeout(driven.patience)
        .serve_connection(TokioIo::new(driven.bytes.clone()), service);
    let mut serving = pin!(serving);
    let mut draining = driven.draining.receiver();
    let mut drains = false;
    // When it ends, as soon as it is idle then.
    let mut end: Option<Instant> = None;
    loop {
        let look = match end {
            Some(end) => end.max(Instant::now() + LOOK),
            None => activity.next_look(driven.patience, options.write_timeout),
        };
        tokio::select! {
            result = serving.as_mut() => return Ok(result?),
            () = activity.too_many.notified() => {
                return Err("most requests are given up".into());
            }
            () = activity.stalled.notified() => {
                return Err("nothing of a WebSocket is taken".into());
            }
            _ = draining.wait_for(|draining| *draining), if !drains => {
                drains = true;
                serving.as_mut().graceful_shutdown();
                end = Some(Instant::now() + options.drain_idle_timeout);
            }
            () = driven.place.place.told_to_leave(), if end.is_none() => {
                if driven.is_idle() {
                    serving.as_mut().graceful_shutdown();
                    end = Some(Instant::now() + LAST_WORD);
                } else if driven.place.place.may_stay() {
                    driven.place.stays();
                } else {
                    return Ok(());
                }
            }
            () = sleep_until(look) => {
                if activity.is_stalled_for(options.write_timeout) {
                    return Err("nothing of an answer is taken".into());
                }
                match end {
                    Some(end) if end <= Instant::now() && driven.is_idle() => return Ok(()),
                    None if activity.is_idle_for(driven.patience) => {
                        serving.as_mut().graceful_shutdown();
                        end = Some(Instant::now() + LAST_WORD);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Runs the requests of an HTTP/2 connection on the worker's thread.
#[derive(Clone, Copy)]
struct LocalExecutor;

impl<F> Executor<F> for LocalExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
