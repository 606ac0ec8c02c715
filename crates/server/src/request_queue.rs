//! The queue of requests of a busy worker: a few are begun at a time, so that what was begun comes to its end first.
//!
//! A worker that is asked more than it can answer has two kinds of work waiting: requests that have come, and what
//! requests that were begun have waited for (answers of subgraphs). Were it dealt with in the order in which it came, each of a thousand clients
//! would have a request half done, with all that belongs to it in memory, and by the time it goes on, nothing of it would
//! be in the processor's caches any more. So while many are under way, only so many more are begun between two looks at the
//! network. Those that wait cost no more than their connection,
//! and wait as long as they would have waited half done.
//!
//! A worker that keeps up begins every request at once, and one that waits for slow subgraphs begins as many as come.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    convert::Infallible,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use tokio::sync::Notify;

/// Requests under way at a time that are begun without waiting.
const FREE: usize = 64;
/// Most requests that are begun at a time while there are more.
const BEGUN_MAX: usize = 32;

/// The requests of one worker that are not begun yet. Bounded by the number of connections, and of streams on each.
#[derive(Default)]
pub(crate) struct RequestQueue {
    under_way: Cell<usize>,
    waiting: RefCell<VecDeque<Waiting>>,
    somebody: Notify,
}

struct Waiting {
    state: Rc<Cell<State>>,
    waker: Waker,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    Called,
    /// Its client has left.
    Left,
}

/// A request that was begun, until it is dropped.
pub(crate) struct Begun<'a>(&'a Cell<usize>);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Leaves the queue if it is dropped in it.
struct Waiter(Rc<Cell<State>>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.set(State::Left);
    }
}

impl RequestQueue {
    /// Waits until a request may be begun.
    pub(crate) async fn begin(&self) -> Begun<'_> {
        if self.under_way.get() >= FREE || !self.waiting.borrow().is_empty() {
            self.wait().await;
        }
        self.under_way.set(self.under_way.get() + 1);
        Begun(&self.under_way)
    }
    async fn wait(&self) {
        let mut waiter = None;
        poll_fn(|cx| match &waiter {
            Some(Waiter(state)) if state.get() == State::Called => Poll::Ready(()),
            // A request stays with its task, so the waker is known already.
            Some(_) => Poll::Pending,
            None => {
                let state = Rc::new(Cell::new(State::Waits));
                waiter = Some(Waiter(Rc::clone(&state)));
                let waker = cx.waker().clone();
                self.waiting
                    .borrow_mut()
                    .push_back(Waiting { state, waker });
                self.somebody.notify_one();
                Poll::Pending
            }
        })
        .await;
    }

    /// Calls whoever waits, for as long as the worker runs.
    pub(crate) async fn advance(self: Rc<Self>) -> Infallible {
        loop {
            self.somebody.notified().await;
            while self.call() {
                // Goes on after the next look at the network.
                tokio::task::yield_now().await;
            }
        }
    }
    /// Calls the next ones; false if there are none.
    fn call(&self) -> bool {
        let mut called = 0;
        while called < BEGUN_MAX {
            let Some(Waiting { state, waker }) = self.waiting.borrow_mut().pop_front() else {
                break;
            };
            if state.get() == State::Waits {
                state.set(State::Called);
                called += 1;
                waker.wake();
            }
        }
        called > 0
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{LocalSet, yield_now};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_burst_is_begun_in_slices_in_its_order() {
        const BURST: usize = 10 * BEGUN_MAX;
        let local = LocalSet::new();
        let queue = Rc::new(RequestQueue::default());
        let begun = Rc::new(RefCell::new(Vec::new()));
        local.spawn_local(Rc::clone(&queue).advance());
        let burst: Vec<_> = (0..BURST)
            .map(|nth| {
                let (queue, begun) = (Rc::clone(&queue), Rc::clone(&begun));
                local.spawn_local(async move {
                    let held = queue.begin().await;
                    begun.borrow_mut().push(nth);
                    // Waits for a subgraph that never answers.
                    std::future::pending::<()>().await;
                    drop(held);
                })
            })
            .collect();
        local
            .run_until(async {
                let mut turns = 0;
                while begun.borrow().len() < BURST {
                    let before = begun.borrow().len();
                    yield_now().await;
                    let now = begun.borrow().len();
                    assert!(now <= before + FREE + 2 * BEGUN_MAX, "all at once");
                    turns += 1;
                    assert!(turns <= 4 * BURST, "the queue does not move");
                }
                assert!(turns > 1);
                assert_eq!(queue.under_way.get(), BURST);
                for task in &burst {
                    task.abort();
                }
                for task in burst {
                    assert!(task.await.unwrap_err().is_cancelled());
                }
            })
            .await;
        assert!(begun.borrow().is_sorted());
        assert_eq!(queue.under_way.get(), 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_request_whose_client_leaves_takes_nobodys_place() {
        let local = LocalSet::new();
        let queue = Rc::new(RequestQueue::default());
        local
            .run_until(async {
                let mut held = Vec::new();
                for _ in 0..FREE {
                    held.push(queue.begin().await);
                }
                // Nobody calls yet.
                let wait = || {
                    let queue = Rc::clone(&queue);
                    tokio::task::spawn_local(async move { drop(queue.begin().await) })
                };
                let leave: Vec<_> = (0..BEGUN_MAX).map(|_| wait()).collect();
                let stay = wait();
                yield_now().await;
                for task in &leave {
                    task.abort();
                }
                for task in leave {
                    assert!(task.await.unwrap_err().is_cancelled());
                }
                assert!(!stay.is_finished());
                assert!(queue.call());
                stay.await.unwrap();
                assert!(!queue.call());
                assert_eq!(queue.under_way.get(), FREE);
            })
            .await;
    }
}
