//! Answers that are streams, over HTTP: server-sent events and multipart.
//!
//! A stream that ends because clients should come back ends without a last word, on which clients of server-sent events come
//! back by themselves; clients of multipart read a code.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use ogive_edge::media::StreamMedia;
use ogive_server::events::{Events, PartFraming};
use ogive_stream::{multipart, sse};
use tokio::time::{Instant, Sleep, sleep};

use crate::subscribe::{
    queue::{StreamEnd, StreamStep, framed},
    sources::Subscriber,
};

/// The body of an answer that is a stream.
pub(crate) struct EventBody {
    subscriber: Subscriber,
    media: StreamMedia,
    heartbeat: Option<(Duration, Pin<Box<Sleep>>)>,
    /// Whether something was sent since the last heartbeat.
    is_alive: bool,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Middle,
    End,
}

impl EventBody {
    pub(crate) fn new(
        subscriber: Subscriber,
        media: StreamMedia,
        heartbeat: Option<Duration>,
    ) -> Self {
        EventBody {
            subscriber,
            media,
            heartbeat: heartbeat.map(|every| (every, Box::pin(sleep(every)))),
            is_alive: false,
            place: Place::Start,
        }
    }
    fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((every, due)) = &mut self.heartbeat else {
            return Poll::Pending;
        };
        while due.as_mut().poll(cx).is_ready() {
            due.as_mut().reset(Instant::now() + *every);
            if !std::mem::take(&mut self.is_alive) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl Events for EventBody {
    fn poll_part(&mut self, cx: &mut Context<'_>, framing: PartFraming) -> Poll<Option<Bytes>> {
        match self.place {
            Place::End => return Poll::Ready(None),
            Place::Start => {
                // So that the client has the head at once.
                self.place = Place::Middle;
                return Poll::Ready(Some(framed(start(self.media), framing)));
            }
            Place::Middle => {}
        }
        match self.subscriber.poll_step(cx) {
            Poll::Ready(StreamStep::Event(event)) => {
                self.is_alive = true;
                return Poll::Ready(Some(event.part(self.media, framing).clone()));
            }
            Poll::Ready(StreamStep::End(stream_end)) => {
                self.place = Place::End;
                let told = self.subscriber.told(&stream_end);
                let bytes = end(self.media, &stream_end, told);
                return Poll::Ready((!bytes.is_empty()).then(|| framed(bytes, framing)));
            }
            Poll::Pending => {}
        }
        self.poll_heartbeat(cx)
            .map(|()| Some(framed(heartbeat(self.media), framing)))
    }
}

fn start(media: StreamMedia) -> Vec<u8> {
    match media {
        StreamMedia::EventStream => sse::HEARTBEAT.to_vec(),
        StreamMedia::Multipart => {
            let mut out = Vec::new();
            multipart::write_start(&mut out, multipart::BOUNDARY);
            out
        }
    }
}

fn heartbeat(media: StreamMedia) -> Vec<u8> {
    match media {
        StreamMedia::EventStream => sse::HEARTBEAT.to_vec(),
        StreamMedia::Multipart => {
            let mut out = Vec::new();
            multipart::write_part(&mut out, multipart::BOUNDARY, multipart::HEARTBEAT);
            out
        }
    }
}

/// What is left to say: that it ends, behind the errors that are told of it.
fn end(media: StreamMedia, end: &StreamEnd, told: Option<Bytes>) -> Vec<u8> {
    let mut out = Vec::new();
    match media {
        StreamMedia::EventStream if matches!(end, StreamEnd::Reload | StreamEnd::Drain) => {}
        StreamMedia::EventStream => {
            if let Some(response) = told {
                sse::write_next(&mut out, &response);
            }
            out.extend_from_slice(sse::COMPLETE);
        }
        StreamMedia::Multipart => {
            if let Some(response) = told {
                multipart::write_fatal(&mut out, errors_of(&response));
            }
            multipart::write_end(&mut out);
        }
    }
    out
}

/// A whole answer as a stream.
pub(crate) fn whole(media: StreamMedia, response: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(response.len() + 128);
    match media {
        StreamMedia::EventStream => {
            sse::write_next(&mut out, response);
            out.extend_from_slice(sse::COMPLETE);
        }
        StreamMedia::Multipart => {
            multipart::write_start(&mut out, multipart::BOUNDARY);
            multipart::write_payload(&mut out, response);
            multipart::write_end(&mut out);
        }
    }
    out.into()
}

/// The list of errors in a response.
pub(crate) fn errors_of(response: &[u8]) -> &[u8] {
    #[derive(serde::Deserialize)]
    struct Errors<'r> {
        #[serde(borrow)]
        errors: Option<&'r serde_json::value::RawValue>,
    }
    let read = serde_json::from_slice::<Errors<'_>>(response).ok();
    let errors = read.and_then(|read| read.errors);
    errors.map_or(b"[]", |errors| errors.get().as_bytes())
}
