//! What happens on one connection: requests, answers on their way, requests that are given up.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::{sync::Notify, time::Instant};

use crate::{
    body::ResponseBody,
    events::{EventParts, PartFraming},
    places::Place,
    upgrade::Upgrade,
};

/// What happens on one connection.
pub(crate) struct Activity {
    pub(crate) place: Arc<Place>,
    running: Cell<u32>,
    /// Answers that are not handed over yet.
    answering: Cell<u32>,
    begun: Cell<u32>,
    given_up: Cell<u32>,
    given_up_max: u32,
    /// Whether anybody wants to know when something happened last.
    pub(crate) timed: bool,
    last: Cell<Instant>,
    /// Answers on their way over HTTP/2: number, and when something was taken of them last.
    answers: RefCell<Vec<(u64, Instant)>>,
    next: Cell<u64>,
    /// What goes on after HTTP.
    pub(crate) upgrade: Cell<Option<Upgrade>>,
    /// What is written behind the head of the last answer.
    pub(crate) events: RefCell<Option<(EventParts, PartFraming)>>,
    /// Told when the client gives up most of what it asks.
    pub(crate) too_many: Notify,
    /// Told when nothing of a stream is taken that has become a WebSocket.
    pub(crate) stalled: Notify,
}

/// A request that is being answered. Dropped without an answer, the client has given it up.
pub(crate) struct Running<'a> {
    activity: &'a Activity,
    pub(crate) answered: bool,
}

impl Activity {
    /// `began`: when the connection did.
    pub(crate) fn new(place: Arc<Place>, began: Instant, given_up_max: u32, timed: bool) -> Self {
        Activity {
            place,
            timed,
            running: Cell::new(0),
            answering: Cell::new(0),
            begun: Cell::new(0),
            given_up: Cell::new(0),
            given_up_max,
            last: Cell::new(began),
            answers: RefCell::default(),
            next: Cell::new(0),
            upgrade: Cell::new(None),
            events: RefCell::new(None),
            too_many: Notify::new(),
            stalled: Notify::new(),
        }
    }
    pub(crate) fn begin(&self) -> Running<'_> {
        if self.running.replace(self.running.get() + 1) == 0 {
            self.place.set_busy();
        }
        self.begun.set(self.begun.get().saturating_add(1));
        Running {
            activity: self,
            answered: false,
        }
    }
    /// Whether a request is being answered.
    pub(crate) fn is_running(&self) -> bool {
        self.running.get() > 0
    }
    /// Whether nothing is asked, and everything that was answered is handed over.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.get() == 0 && self.answering.get() == 0
    }
    /// How many requests there have been.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.get()
    }
    /// How long nothing has been asked.
    pub(crate) fn waited(&self) -> Duration {
        self.last.get().elapsed()
    }
    /// Whether nothing of an answer was taken for so long.
    pub(crate) fn is_stalled_for(&self, time: Duration) -> bool {
        let answers = self.answers.borrow();
        answers.iter().any(|(_, last)| last.elapsed() >= time)
    }
    /// Whether nothing was asked or taken for so long.
    pub(crate) fn is_idle_for(&self, time: Duration) -> bool {
        self.is_idle() && self.last.get().elapsed() >= time
    }
    /// When to look at it again: what is idle is so for too long after `patience`, and an answer that begins meanwhile may
    /// be stalled after `write`.
    pub(crate) fn next_look(&self, patience: Duration, write: Duration) -> Instant {
        let soon = Instant::now() + patience.min(write);
        if self.is_idle() {
            soon.min(self.last.get() + patience)
        } else {
            soon
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let activity = self.activity;
        activity.running.set(activity.running.get() - 1);
        if activity.running.get() == 0 {
            activity.place.set_idle();
        }
        if activity.timed {
            activity.last.set(Instant::now());
        }
        if !self.answered {
            let given_up = activity.given_up.get() + 1;
            activity.given_up.set(given_up);
            if given_up > activity.given_up_max && given_up > activity.begun.get() / 2 {
                activity.too_many.notify_one();
            }
        }
    }
}

/// An answer on its way. Taking it counts as activity, so that a slow HTTP/2 client is not idle; HTTP/1.1 has time-outs
/// of its own for that.
pub(crate) struct Taken {
    body: ResponseBody,
    activity: Rc<Activity>,
    /// Of the answer, over HTTP/2.
    number: Option<u64>,
}

impl Taken {
    /// `timed`: whether it counts as activity.
    pub(crate) fn new(body: ResponseBody, activity: Rc<Activity>, timed: bool) -> Self {
        activity.answering.set(activity.answering.get() + 1);
        let number = timed.then(|| {
            let number = activity.next.get();
            activity.next.set(number + 1);
            let now = Instant::now();
            activity.answers.borrow_mut().push((number, now));
            number
        });
        Taken {
            body,
            activity,
            number,
        }
    }
}

impl Taken {
    /// Notes that the client has taken all there is: nothing is asked of an answer whose client does not take it.
    #[cold]
    fn waits_for_us(&self, number: u64, now: Instant) {
        let mut answers = self.activity.answers.borrow_mut();
        if let Some((_, last)) = answers.iter_mut().find(|(other, _)| *other == number) {
            *last = now + NOT_STALLED;
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let activity = &self.activity;
        activity.answering.set(activity.answering.get() - 1);
        if let Some(number) = self.number {
            let mut answers = activity.answers.borrow_mut();
            answers.retain(|(other, _)| *other != number);
        }
    }
}

/// How far away the last time is that something was taken of an answer whose client waits for the next part.
const NOT_STALLED: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Bytes of an answer that an HTTP/2 client takes at a time; if it does not in time, the connection is closed.
const TAKEN_BYTES: usize = 64 << 10;

impl Body for Taken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Some(number) = self.number else {
            return Pin::new(&mut self.body).poll_frame(cx);
        };
        let activity = &self.activity;
        let now = Instant::now();
        activity.last.set(now);
        let mut answers = activity.answers.borrow_mut();
        if let Some((_, last)) = answers.iter_mut().find(|(other, _)| *other == number) {
            *last = now;
        }
        drop(answers);
        let polled = self.body.poll_piece(cx, TAKEN_BYTES);
        if polled.is_pending() {
            self.waits_for_us(number, now);
        }
        polled
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
