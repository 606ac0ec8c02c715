//! HTTP/1.1 on one connection.
//!
//! Draining: there is no word for it before the next answer, so connections that are idle may bring one more request for
//! `drain_idle_timeout`, whose answer says `connection: close`. Then whoever has no request under way is gone, half a head
//! or not, and whoever has one goes with its answer.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::Service};
use tokio::{
    io::AsyncWrite,
    task::coop::unconstrained,
    time::{Instant, Sleep, sleep},
};

use crate::{
    activity::Taken,
    clock::Clock,
    draining::drained,
    driven::{Driven, Error},
    events::{self, EventParts, PartFraming},
    io::ParserBytes,
    upgrade::{Upgrade, Upgraded},
};

/// Headers of a request that the parser admits unless it is told otherwise.
const PARSER_HEADERS_MAX: usize = 100;

/// How long the parser may read nothing of a request under way before somebody else looks whether its client has left.
/// It reads nothing for a moment with many a request.
const WATCHED_AFTER: Duration = Duration::from_millis(20);

/// Whether the client leaves while its request is answered, where the parser does not notice: it does only while it reads.
#[derive(Default)]
struct Leaving {
    /// With the number of the request for which it was set. Left running when that is over: setting one for every request
    /// would cost more than looking once too often.
    timer: Option<(u32, Pin<Box<Sleep>>)>,
    left: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Leaving {
    fn poll(&mut self, driven: &Driven, cx: &mut Context<'_>) -> Poll<()> {
        if !driven.activity.is_running() {
            self.left = None;
            return Poll::Pending;
        }
        if driven.bytes.is_reading() {
            return Poll::Pending;
        }
        if let Some(left) = &mut self.left {
            return left.as_mut().poll(cx);
        }
        let request = driven.activity.begun();
        let (set_for, timer) = self
            .timer
            .get_or_insert_with(|| (request, Box::pin(sleep(WATCHED_AFTER))));
        if *set_for != request && timer.is_elapsed() {
            timer.as_mut().reset(Instant::now() + WATCHED_AFTER);
        }
        *set_for = request;
        ready!(pin!(unconstrained(timer.as_mut())).poll(cx));
        let Ok(left) = driven.bytes.left() else {
            return Poll::Pending;
        };
        self.left.insert(left).as_mut().poll(cx)
    }
}

/// Why a connection is not simply served on.
enum Turn {
    Ended(hyper::Result<()>),
    /// The head of an answer is written, and the events behind it are no business of the parser.
    Events(EventParts, PartFraming),
    /// Nobody waits for what it might still bring: while draining, because its place is wanted, or because its client
    /// has left.
    Over,
}

/// What goes on with a connection behind HTTP.
pub(crate) enum StreamProtocol {
    Upgrade(Upgrade, bytes::Bytes),
    Events(EventParts, PartFraming),
}

impl StreamProtocol {
    /// Goes on with it until it ends.
    pub(crate) async fn go_on(self, driven: &Driven) -> Result<(), Error> {
        // Busy until it ends, so that its place is not given up.
        let mut running = driven.activity.begin();
        running.answered = true;
        driven.bytes.is_no_http_any_more();
        let bytes = driven.bytes.clone();
        match self {
            StreamProtocol::Upgrade(upgrade, read) => {
                upgrade.go_on(Upgraded::new(read, bytes)).await
            }
            StreamProtocol::Events(events, framing) => {
                events::write(bytes, events, framing).await?
            }
        }
        Ok(())
    }
}

/// Serves until the connection ends, or HTTP on it.
pub(crate) async fn drive<S>(driven: &Driven, service: S) -> Result<Option<StreamProtocol>, Error>
where
    S: Service<Request<Incoming>, Response = Response<Taken>, Error = Infallible> + Unpin,
    S::Future: Unpin,
{
    let options = &driven.options;
    let mut builder = http1::Builder::new();
    builder
        .timer(Clock::beginning(driven.began.into_std() + driven.patience))
        .header_read_timeout(driven.patience)
        .max_header_size(options.header_bytes().ceiling);
    // Where it is told, the parser clears so much room for every request.
    let headers_max = options.headers().ceiling;
    if headers_max != PARSER_HEADERS_MAX {
        builder.max_headers(headers_max);
    }
    // The socket is closed below, because it may be needed after HTTP.
    let mut serving = builder.serve_connection(ParserBytes(driven.bytes.clone()), service);
    let mut draining = driven.draining.receiver();
    // Not part of the task's share of time: it is to wait as soon as it was asked.
    let drained = unconstrained(drained(&mut draining, options.drain_idle_timeout));
    let mut drained = pin!(drained);
    let place = &driven.place.place;
    let mut leave = pin!(unconstrained(place.told_to_leave()));
    let mut leaving = Leaving::default();
    let (mut waits, mut drains) = (false, false);
    let served = poll_fn(|cx| {
        if let Poll::Ready(result) = serving.poll_without_shutdown(cx) {
            return Poll::Ready(Turn::Ended(result));
        }
        if driven.bytes.is_flushed()
            && let Some((events, framing)) = driven.activity.events.take()
        {
            return Poll::Ready(Turn::Events(events, framing));
        }
        // Asked once, so that it wakes this task, and then only when there is something to hear: asking takes locks.
        let first = !std::mem::replace(&mut waits, true);
        if !drains && (first || driven.draining.has_begun()) && drained.as_mut().poll(cx).is_ready()
        {
            drains = true;
            Pin::new(&mut serving).graceful_shutdown();
            if let Poll::Ready(result) = serving.poll_without_shutdown(cx) {
                return Poll::Ready(Turn::Ended(result));
            }
        }
        // With half a head, which the parser would wait for.
        if drains && driven.is_idle() {
            return Poll::Ready(Turn::Over);
        }
        if (first || place.is_told_to_leave()) && leave.as_mut().poll(cx).is_ready() {
            if driven.is_idle() {
                Pin::new(&mut serving).graceful_shutdown();
                let ended = serving.poll_without_shutdown(cx);
                return Poll::Ready(match ended {
                    Poll::Ready(result) => Turn::Ended(result),
                    Poll::Pending => Turn::Over,
                });
            }
            if !place.may_stay() {
                return Poll::Ready(Turn::Over);
            }
            driven.place.stays();
            leave.set(unconstrained(place.told_to_leave()));
            let _ = leave.as_mut().poll(cx);
        }
        leaving.poll(driven, cx).map(|()| Turn::Over)
    });
    match served.await {
        Turn::Ended(result) => result?,
        Turn::Over => return Ok(None),
        Turn::Events(events, framing) => return Ok(Some(StreamProtocol::Events(events, framing))),
    }
    if let Some(upgrade) = driven.activity.upgrade.take() {
        // Mostly nothing, which would keep the parser's buffer.
        let read = bytes::Bytes::copy_from_slice(&serving.into_parts().read_buf);
        return Ok(Some(StreamProtocol::Upgrade(upgrade, read)));
    }
    let mut bytes = driven.bytes.clone();
    poll_fn(|cx| Pin::new(&mut bytes).poll_shutdown(cx)).await?;
    Ok(None)
}
