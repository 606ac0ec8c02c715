//! Clients that have asked nothing yet: they wait for one another, so that nobody else waits for them.
//!
//! Opening a connection, reading the first request of it and closing it cost a worker many times what it costs whoever
//! opens it. A thousand of them at once, or a thousand that leave at once, would be dealt with in the order in which
//! they came, and everybody else would wait for all of them. So whatever happens on a connection before its first
//! request is begun happens in a line of its own, of which a few are called in every turn of the worker. A turn ends
//! with a look at what the network has brought, so everybody else has had theirs then.
//!
//! A request that was begun waits in no line: others may wait for it, since equal requests to subgraphs are sent once
//! ([`ogive_transport::Flights`]) and whoever came first sends them.
//!
//! The longer a turn was for others, the more are called in the next, so that a worker that is never at rest has time for
//! newcomers, too. Without a burst the line is empty, and whoever joins it is called in the same turn.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// How many of the line are called in a turn, at least. Each may cost as much as a small request.
const CALLED_MIN: usize = 2;
/// And at most.
const CALLED_MAX: usize = 16;
/// One is called for every so many microseconds that the turn before took without them.
const MICROSECONDS_EACH: u128 = 500;

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// Something is to be done first.
    Outside,
    Waiting,
    /// It is its turn, once.
    Called,
    /// Its first request was begun.
    Known,
}

/// The line of a worker. Bounded by the number of connections, of which each is in it once at most.
#[derive(Default)]
pub(super) struct Line {
    waiting: RefCell<VecDeque<(Rc<Cell<Standing>>, Waker)>>,
    somebody: Notify,
    /// How long those who were called in this turn took.
    taken: Cell<Duration>,
}

/// A client of whom nothing is known.
#[derive(Clone)]
pub(super) struct Stranger(Rc<Cell<Standing>>);

impl Stranger {
    pub(super) fn new() -> Self {
        Stranger(Rc::new(Cell::new(Standing::Outside)))
    }
    /// Has asked something, and waits in no line any more.
    pub(super) fn is_known(&self) {
        self.0.set(Standing::Known);
    }
}

impl Line {
    /// Does a stranger's work, whenever it is called. To be the whole of a task: where it waits is told once.
    pub(super) async fn wait<F: Future>(
        &self,
        stranger: &Stranger,
        mut work: Pin<&mut F>,
    ) -> F::Output {
        poll_fn(|cx| {
            let called = stranger.0.get() == Standing::Called;
            if !self.lets_in(&stranger.0, cx) {
                return Poll::Pending;
            }
            if !called {
                return work.as_mut().poll(cx);
            }
            let began = Instant::now();
            let polled = work.as_mut().poll(cx);
            self.taken.set(self.taken.get() + began.elapsed());
            polled
        })
        .await
    }
    fn lets_in(&self, standing: &Rc<Cell<Standing>>, cx: &Context<'_>) -> bool {
        match standing.get() {
            Standing::Known => true,
            Standing::Called => {
                standing.set(Standing::Outside);
                true
            }
            Standing::Waiting => false,
            Standing::Outside => {
                standing.set(Standing::Waiting);
                let waiter = (Rc::clone(standing), cx.waker().clone());
                self.waiting.borrow_mut().push_back(waiter);
                self.somebody.notify_one();
                false
            }
        }
    }
    /// Calls the next ones; false if there are none.
    fn call(&self, most: usize) -> bool {
        for nth in 0..most {
            let Some((standing, waker)) = self.waiting.borrow_mut().pop_front() else {
                return nth > 0;
            };
            // It is known by now if a stream of its own has begun a request meanwhile.
            if standing.get() == Standing::Waiting {
                standing.set(Standing::Called);
            }
            waker.wake();
        }
        true
    }
    /// Calls for as long as the worker runs.
    pub(super) async fn advance(self: Rc<Self>) -> Infallible {
        loop {
            self.somebody.notified().await;
            let mut most = CALLED_MIN;
            loop {
                let began = Instant::now();
                self.taken.set(Duration::ZERO);
                if !self.call(most) {
                    break;
                }
                // Goes on after the next look at the network.
                tokio::task::yield_now().await;
                let others = began.elapsed().saturating_sub(self.taken.get());
                let earned = usize::try_from(others.as_micros() / MICROSECONDS_EACH);
                most = earned.unwrap_or(CALLED_MAX).clamp(CALLED_MIN, CALLED_MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::task::{LocalSet, yield_now};

    use super::*;

    const BURST: usize = 100;

    #[tokio::test(flavor = "current_thread")]
    async fn strangers_wait_and_whoever_is_known_does_not() {
        let local = LocalSet::new();
        let line = Rc::new(Line::default());
        let done = Rc::new(Cell::new(0));
        let join = |stranger: Stranger| {
            let (line, done) = (Rc::clone(&line), Rc::clone(&done));
            local.spawn_local(async move {
                let work = pin!(async { done.set(done.get() + 1) });
                line.wait(&stranger, work).await;
            })
        };
        local.spawn_local(Rc::clone(&line).advance());
        let burst: Vec<_> = (0..BURST).map(|_| join(Stranger::new())).collect();
        let known = Stranger::new();
        known.is_known();
        let known = join(known);
        local
            .run_until(async {
                known.await.unwrap();
                let before = done.get();
                assert!(before < BURST / 2, "{before} came first");
                let mut turns = 0;
                while done.get() <= BURST {
                    let before = done.get();
                    yield_now().await;
                    assert!(done.get() <= before + 2 * CALLED_MAX, "all at once");
                    turns += 1;
                    assert!(turns <= 4 * BURST, "the line does not move");
                }
                for task in burst {
                    task.await.unwrap();
                }
            })
            .await;
        assert_eq!(done.get(), BURST + 1);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whoever_waits_for_something_else_leaves_its_place_to_the_next() {
        let local = LocalSet::new();
        let line = Rc::new(Line::default());
        local.spawn_local(Rc::clone(&line).advance());
        let (tell, told) = tokio::sync::oneshot::channel();
        let (first, second) = (Rc::clone(&line), Rc::clone(&line));
        let slow = local.spawn_local(async move { first.wait(&Stranger::new(), pin!(told)).await });
        let quick = local
            .spawn_local(async move { second.wait(&Stranger::new(), pin!(async { 3 })).await });
        local
            .run_until(async {
                assert_eq!(quick.await.unwrap(), 3);
                tell.send(5).unwrap();
                assert_eq!(slow.await.unwrap(), Ok(5));
            })
            .await;
    }

    #[test]
    fn whoever_is_known_while_it_waits_stays_known() {
        let (line, stranger) = (Line::default(), Stranger::new());
        let cx = Context::from_waker(Waker::noop());
        assert!(!line.lets_in(&stranger.0, &cx));
        stranger.is_known();
        assert!(line.call(CALLED_MIN));
        assert!(line.lets_in(&stranger.0, &cx));
        assert!(
            line.lets_in(&stranger.0, &cx),
            "called once, known for good"
        );
    }
}
