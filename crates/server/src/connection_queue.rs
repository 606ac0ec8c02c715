//! The queue of new connections: those that have asked nothing yet wait for one another, so that nobody else waits for
//! them.
//!
//! Opening a connection, reading the first request of it and closing it cost a worker many times what it costs whoever
//! opens it. A thousand of them at once, or a thousand that leave at once, would be dealt with in the order in which
//! they came, and everybody else would wait for all of them. So whatever happens on a connection before its first
//! request is begun waits in a queue, of which a few are let through between two looks at the network. So everybody else
//! is served between two groups of new connections.
//!
//! A request that was begun waits in no queue: others may wait for it, since equal requests may be answered once for
//! all of them, by whoever came first.
//!
//! The longer the others took, the more are let through next, so that a worker that is never at rest has time for new
//! connections, too. Without a burst the queue is empty, and whoever joins it is let through at once.

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

/// How many are let through at a time, at least. Each may cost as much as a small request.
const CALLED_MIN: usize = 2;
/// And at most.
const CALLED_MAX: usize = 16;
/// One for every so many microseconds that all others took since the last time.
const MICROSECONDS_EACH: u128 = 500;

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// Something is to be done first.
    Outside,
    Waiting,
    /// It is let through, once.
    Called,
    /// Its first request was begun.
    Known,
}

/// The new connections of a worker. Bounded by the number of connections, of which each is in it once at most.
#[derive(Default)]
pub(crate) struct ConnectionQueue {
    waiting: RefCell<VecDeque<(Rc<Cell<Standing>>, Waker)>>,
    somebody: Notify,
    /// How long those took that were let through last.
    taken: Cell<Duration>,
}

/// A connection on which nothing was asked yet, as far as its queue knows.
#[derive(Clone)]
pub(crate) struct NewConnection(Rc<Cell<Standing>>);

impl NewConnection {
    pub(crate) fn new() -> Self {
        NewConnection(Rc::new(Cell::new(Standing::Outside)))
    }
    /// It has asked something, and waits in this queue no more.
    pub(crate) fn request_began(&self) {
        self.0.set(Standing::Known);
    }
}

impl ConnectionQueue {
    /// Does the work of a connection, whenever it is let through. To be the whole of a task: where it waits is told once.
    pub(crate) async fn wait<F: Future>(
        &self,
        connection: &NewConnection,
        mut work: Pin<&mut F>,
    ) -> F::Output {
        poll_fn(|cx| {
            let called = connection.0.get() == Standing::Called;
            if !self.lets_in(&connection.0, cx) {
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
    pub(crate) async fn advance(self: Rc<Self>) -> Infallible {
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
    async fn new_connections_wait_and_those_that_have_asked_do_not() {
        let local = LocalSet::new();
        let queue = Rc::new(ConnectionQueue::default());
        let done = Rc::new(Cell::new(0));
        let join = |connection: NewConnection| {
            let (queue, done) = (Rc::clone(&queue), Rc::clone(&done));
            local.spawn_local(async move {
                let work = pin!(async { done.set(done.get() + 1) });
                queue.wait(&connection, work).await;
            })
        };
        local.spawn_local(Rc::clone(&queue).advance());
        let burst: Vec<_> = (0..BURST).map(|_| join(NewConnection::new())).collect();
        let known = NewConnection::new();
        known.request_began();
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
                    assert!(turns <= 4 * BURST, "the queue does not move");
                }
                for task in burst {
                    task.await.unwrap();
                }
            })
            .await;
        assert_eq!(done.get(), BURST + 1);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_that_waits_for_something_else_lets_the_next_one_through() {
        let local = LocalSet::new();
        let queue = Rc::new(ConnectionQueue::default());
        local.spawn_local(Rc::clone(&queue).advance());
        let (tell, told) = tokio::sync::oneshot::channel();
        let (first, second) = (Rc::clone(&queue), Rc::clone(&queue));
        let slow =
            local.spawn_local(async move { first.wait(&NewConnection::new(), pin!(told)).await });
        let quick = local.spawn_local(async move {
            second.wait(&NewConnection::new(), pin!(async { 3 })).await
        });
        local
            .run_until(async {
                assert_eq!(quick.await.unwrap(), 3);
                tell.send(5).unwrap();
                assert_eq!(slow.await.unwrap(), Ok(5));
            })
            .await;
    }

    #[test]
    fn a_connection_whose_request_began_while_it_waits_never_waits_again() {
        let (queue, connection) = (ConnectionQueue::default(), NewConnection::new());
        let cx = Context::from_waker(Waker::noop());
        assert!(!queue.lets_in(&connection.0, &cx));
        connection.request_began();
        assert!(queue.call(CALLED_MIN));
        assert!(queue.lets_in(&connection.0, &cx));
        assert!(
            queue.lets_in(&connection.0, &cx),
            "called once, known for good"
        );
    }
}
