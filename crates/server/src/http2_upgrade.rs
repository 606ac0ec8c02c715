//! WebSockets over HTTP/2 (RFC 8441): one stream of a connection becomes one.
//!
//! A client asks by `CONNECT` with the protocol `websocket`. Services see what HTTP/1.1 has for it, a `GET` with `upgrade`,
//! which no other request over HTTP/2 can have because the protocol forbids the header; they answer with status 101, which
//! becomes 200. What goes on is as with HTTP/1.1 ([`crate::upgrade`]); flow control is of the one stream; a client that
//! takes nothing of it for the write time-out loses its connection, as with any answer that it does not take.

use std::{
    future::Future,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use hyper::{ext::Protocol, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use crate::{activity::Activity, body::ResponseBody, upgrade::Upgraded};

/// Turns a request for a WebSocket over HTTP/2 into what HTTP/1.1 has for it. What becomes of its stream.
pub(crate) fn translate(parts: &mut Parts) -> Option<OnUpgrade> {
    let protocol = parts.extensions.get::<Protocol>()?;
    if parts.method != Method::CONNECT || protocol.as_str() != "websocket" {
        return None;
    }
    let upgrade = parts.extensions.remove::<OnUpgrade>()?;
    parts.method = Method::GET;
    let websocket = HeaderValue::from_static("websocket");
    parts.headers.insert(header::UPGRADE, websocket);
    if !parts.headers.contains_key(header::HOST)
        && let Some(authority) = parts.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(header::HOST, host);
    }
    Some(upgrade)
}

/// Goes on with a stream whose request was answered so; otherwise it is answered like any other.
pub(crate) fn go_on(
    upgraded: OnUpgrade,
    response: &mut Response<ResponseBody>,
    activity: &Rc<Activity>,
    write_timeout: Duration,
) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    *response.status_mut() = StatusCode::OK;
    let Some(upgrade) = response.body_mut().take_upgrade() else {
        return;
    };
    let activity = Rc::clone(activity);
    tokio::task::spawn_local(async move {
        // Busy until it ends, so that its connection is not given up.
        let mut running = activity.begin();
        running.answered = true;
        if let Ok(upgraded) = upgraded.await {
            let stream = TimedStream {
                stream: TokioIo::new(upgraded),
                write_timeout,
                stalled: None,
                activity: Rc::clone(&activity),
            };
            upgrade.go_on(Upgraded::new(Bytes::new(), stream)).await;
        }
    });
}

/// A stream of which something has to be taken from time to time.
struct TimedStream<S> {
    stream: S,
    write_timeout: Duration,
    /// Since something waits to be taken.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Of its connection, which ends with it: what waits would be kept as long as that.
    activity: Rc<Activity>,
}

impl<S> TimedStream<S> {
    fn timed<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let within = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(within)));
        if stalled.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        stalled.as_mut().reset(Instant::now() + within);
        self.activity.stalled.notify_one();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(cx, written)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, flushed)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.timed(cx, shut)
    }
}
