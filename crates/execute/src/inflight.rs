//! A set of futures that are awaited together, whichever is done first. Each has a waker of its own, so only those
//! that were woken are polled again. Works under any executor.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Futures under way, each with a tag.
pub(crate) struct InflightFutures<'f, K, T> {
    entries: Vec<Entry<'f, K, T>>,
    /// How many of them were polled: new ones come first, so that they are on their way before anything that has
    /// arrived is dealt with.
    polled: usize,
    parent: Arc<Mutex<Option<Waker>>>,
}

/// Requests at the same time that there is room for at first.
const ENTRIES: usize = 4;

struct Entry<'f, K, T> {
    tag: K,
    future: Pin<Box<dyn Future<Output = T> + 'f>>,
    flag: Arc<Flag>,
    waker: Waker,
}

/// Remembers that one future was woken, and passes it on to whoever polls the set.
struct Flag {
    woken: AtomicBool,
    parent: Arc<Mutex<Option<Waker>>>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        // Woken outside the lock: an executor may poll at once.
        let parent = self
            .parent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

impl<'f, K: Copy, T> InflightFutures<'f, K, T> {
    pub(crate) fn new() -> Self {
        InflightFutures {
            entries: Vec::with_capacity(ENTRIES),
            polled: 0,
            parent: Arc::default(),
        }
    }

    pub(crate) fn push(&mut self, tag: K, future: Pin<Box<dyn Future<Output = T> + 'f>>) {
        let flag = Arc::new(Flag {
            woken: AtomicBool::new(true),
            parent: Arc::clone(&self.parent),
        });
        self.entries.push(Entry {
            tag,
            future,
            waker: Waker::from(Arc::clone(&flag)),
            flag,
        });
    }

    /// The next future that is done; `None` if none is under way.
    pub(crate) async fn next(&mut self) -> Option<(K, T)> {
        if self.entries.is_empty() {
            return None;
        }
        poll_fn(|context| {
            let mut parent = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
            if !parent
                .as_ref()
                .is_some_and(|p| p.will_wake(context.waker()))
            {
                *parent = Some(context.waker().clone());
            }
            drop(parent);
            let n_polled = self.polled;
            for at in (n_polled..self.entries.len()).chain(0..n_polled) {
                let entry = &mut self.entries[at];
                if !entry.flag.woken.swap(false, Ordering::AcqRel) {
                    continue;
                }
                let polled = entry
                    .future
                    .as_mut()
                    .poll(&mut Context::from_waker(&entry.waker));
                if let Poll::Ready(output) = polled {
                    let done = self.entries.remove(at);
                    // Of the new ones those behind it were not polled yet; before an old one all were.
                    self.polled = if at >= n_polled {
                        at
                    } else {
                        self.entries.len()
                    };
                    return Poll::Ready(Some((done.tag, output)));
                }
            }
            self.polled = self.entries.len();
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, pin::pin};

    use super::*;

    /// Says that it is polled; is done the time after `waits`.
    fn waiting(
        polled: &RefCell<String>,
        name: char,
        mut waits: u32,
    ) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(poll_fn(move |context| {
            polled.borrow_mut().push(name);
            if waits == 0 {
                return Poll::Ready(());
            }
            waits -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }
    fn next(set: &mut InflightFutures<'_, char, ()>) -> Poll<Option<char>> {
        let mut context = Context::from_waker(Waker::noop());
        let done = pin!(set.next()).as_mut().poll(&mut context);
        done.map(|done| done.map(|(name, ())| name))
    }

    #[test]
    fn new_ones_are_polled_before_those_that_have_arrived() {
        let polled = RefCell::default();
        let mut set = InflightFutures::new();
        set.push('a', waiting(&polled, 'a', 1));
        set.push('b', waiting(&polled, 'b', 1));
        assert_eq!(next(&mut set), Poll::Pending);
        assert_eq!(next(&mut set), Poll::Ready(Some('a')));
        // `b` has arrived, too.
        set.push('c', waiting(&polled, 'c', 0));
        set.push('d', waiting(&polled, 'd', 1));
        assert_eq!(next(&mut set), Poll::Ready(Some('c')));
        assert_eq!(next(&mut set), Poll::Ready(Some('b')));
        assert_eq!(next(&mut set), Poll::Ready(Some('d')));
        assert_eq!(next(&mut set), Poll::Ready(None));
        assert_eq!(*polled.borrow(), "abacdbd");
    }
}
