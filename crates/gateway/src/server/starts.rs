//! When requests are begun: a few in each turn of a worker, so that what was begun comes to its end first.
//!
//! A worker that is asked more than it can answer has two kinds of work waiting: requests that have come, and answers of
//! subgraphs to requests that were begun. Were it dealt with in the order in which it came, each of a thousand clients
//! would have a request half done, with all that belongs to it in memory, and by the time the subgraph's answer is looked
//! at, nothing of it would be in the processor's caches any more. So while many are under way, a turn, which ends with a
//! look at what the network has brought, begins only so many more. Those that wait cost no more than their connection,
//! and wait as long as they would have waited half done.
//!
//! A worker that keeps up begins every request at once, and one whose subgraphs are slow begins as many as come.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    convert::Infallible,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use tokio::sync::Notify;

/// Requests under way at a time that are begun without waiting for a turn.
const FREE: usize = 64;
/// Most requests that are begun in a turn while there are more.
const BEGUN_MAX: usize = 32;

/// Who is begun when, on one worker. Bounded by the number of connections, and of streams on each.
#[derive(Default)]
pub(super) struct Starts {
    under_way: Cell<usize>,
    waiting: RefCell<VecDeque<Waiting>>,
    somebody: Notify,
}

struct Waiting {
    place: Rc<Cell<Place>>,
    waker: Waker,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Waits,
    Called,
    /// Its client has left.
    Left,
}

/// A request that was begun, until it is dropped.
pub(super) struct Begun<'a>(&'a Cell<usize>);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Leaves the line if it is dropped in it.
struct Held(Rc<Cell<Place>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.set(Place::Left);
    }
}

impl Starts {
    /// Waits until a request may be begun.
    pub(super) async fn begin(&self) -> Begun<'_> {
        if self.under_way.get() >= FREE || !self.waiting.borrow().is_empty() {
            self.wait().await;
        }
        self.under_way.set(self.under_way.get() + 1);
        Begun(&self.under_way)
    }
    async fn wait(&self) {
        let mut held = None;
        poll_fn(|cx| match &held {
            Some(Held(place)) if place.get() == Place::Called => Poll::Ready(()),
            // A request stays with its task, so the waker is known already.
            Some(_) => Poll::Pending,
            None => {
                let place = Rc::new(Cell::new(Place::Waits));
                held = Some(Held(Rc::clone(&place)));
                let waker = cx.waker().clone();
                self.waiting
                    .borrow_mut()
                    .push_back(Waiting { place, waker });
                self.somebody.notify_one();
                Poll::Pending
            }
        })
        .await;
    }

    /// Calls whoever waits, for as long as the worker runs.
    pub(super) async fn advance(self: Rc<Self>) -> Infallible {
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
            let Some(Waiting { place, waker }) = self.waiting.borrow_mut().pop_front() else {
                break;
            };
            if place.get() == Place::Waits {
                place.set(Place::Called);
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
    async fn a_burst_is_begun_in_turns_in_its_order() {
        const BURST: usize = 10 * BEGUN_MAX;
        let local = LocalSet::new();
        let starts = Rc::new(Starts::default());
        let begun = Rc::new(RefCell::new(Vec::new()));
        local.spawn_local(Rc::clone(&starts).advance());
        let burst: Vec<_> = (0..BURST)
            .map(|nth| {
                let (starts, begun) = (Rc::clone(&starts), Rc::clone(&begun));
                local.spawn_local(async move {
                    let held = starts.begin().await;
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
                    assert!(turns <= 4 * BURST, "the line does not move");
                }
                assert!(turns > 1);
                assert_eq!(starts.under_way.get(), BURST);
                for task in &burst {
                    task.abort();
                }
                for task in burst {
                    assert!(task.await.unwrap_err().is_cancelled());
                }
            })
            .await;
        assert!(begun.borrow().is_sorted());
        assert_eq!(starts.under_way.get(), 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whoever_leaves_takes_nobodys_turn() {
        let local = LocalSet::new();
        let starts = Rc::new(Starts::default());
        local
            .run_until(async {
                let mut held = Vec::new();
                for _ in 0..FREE {
                    held.push(starts.begin().await);
                }
                // Nobody calls yet.
                let wait = || {
                    let starts = Rc::clone(&starts);
                    tokio::task::spawn_local(async move { drop(starts.begin().await) })
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
                assert!(starts.call());
                stay.await.unwrap();
                assert!(!starts.call());
                assert_eq!(starts.under_way.get(), FREE);
            })
            .await;
    }
}
