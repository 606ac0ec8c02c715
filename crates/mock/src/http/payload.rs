//! Bodies of answers: whole, slow, or ending early.

use std::{
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::{Closed, due};
use crate::{
    service::Transfer,
    timer::{Timer, Until},
};

/// Pieces of a slow body.
const SLOW_PIECES: u32 = 10;

/// A response body: whole, slow, or ending early.
pub(super) struct Payload {
    left: Bytes,
    piece: usize,
    pause: Duration,
    sleep: Option<Until>,
    timer: Rc<Timer>,
    truncate: bool,
    flushed: bool,
}

impl Payload {
    pub(super) fn new(body: Bytes, transfer: Transfer, timer: &Rc<Timer>) -> Payload {
        let mut payload = Payload {
            piece: body.len().max(1),
            left: body,
            pause: Duration::ZERO,
            sleep: None,
            timer: timer.clone(),
            truncate: false,
            flushed: false,
        };
        match transfer {
            Transfer::Slow(time) => {
                payload.piece = payload.left.len().div_ceil(SLOW_PIECES as usize).max(1);
                payload.pause = time / SLOW_PIECES;
            }
            Transfer::Truncate => {
                payload.truncate = true;
                payload.left.truncate(payload.left.len() / 2);
            }
            Transfer::Whole | Transfer::Drop => {}
        }
        payload
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Closed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Closed>>> {
        if self.left.is_empty() {
            if !self.truncate {
                return Poll::Ready(None);
            }
            if !self.flushed {
                // A pending body lets hyper send what it holds; an error at once would drop it unsent.
                self.flushed = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(Some(Err(Closed)));
        }
        if !self.pause.is_zero() {
            let this = &mut *self;
            let sleep = this
                .sleep
                .get_or_insert_with(|| this.timer.until(due(Instant::now(), this.pause)));
            if Pin::new(sleep).poll(context).is_pending() {
                return Poll::Pending;
            }
            this.sleep = None;
        }
        let length = self.piece.min(self.left.len());
        let piece = self.left.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && !self.truncate
    }

    fn size_hint(&self) -> SizeHint {
        if self.truncate {
            SizeHint::default()
        } else {
            SizeHint::with_exact(self.left.len() as u64)
        }
    }
}
