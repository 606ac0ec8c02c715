//! Knowing which of two things has woken a task: the one that wakes it all the time, or the rest.
//!
//! A task that waits for several things looks at all of them whenever it is woken, and each look costs about as much as
//! taking what has come. Where one of them wakes a task a thousand times for once that another does, the others are
//! polled by a waker of their own ([`Rest`]), and looked at only when that was used.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

/// What wakes the task of whoever waits, and notes that it did.
#[derive(Debug, Default)]
struct Noted {
    is_due: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Noted {
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        // Before the task is woken, which may run at once on another thread.
        self.is_due.store(true, Ordering::Release);
        if let Some(task) = &*self.task() {
            task.wake_by_ref();
        }
    }
}

/// Whatever a task waits for besides what wakes it all the time.
#[derive(Debug)]
pub struct Rest {
    noted: Arc<Noted>,
    waker: Waker,
    task: Option<Waker>,
}

impl Default for Rest {
    fn default() -> Self {
        let noted = Arc::<Noted>::default();
        Rest {
            waker: Arc::clone(&noted).into(),
            noted,
            task: None,
        }
    }
}

impl Rest {
    /// Whether anything of it may be ready: at first, when it has woken the task, and after [`again`](Self::again). It is to
    /// be polled with its [own waker](Self::waker) then, until it is pending or `again` was called.
    pub fn is_due(&mut self, cx: &Context<'_>) -> bool {
        let is_known = |task: &Waker| task.will_wake(cx.waker());
        if !self.task.as_ref().is_some_and(is_known) {
            self.task = Some(cx.waker().clone());
            self.noted.task().clone_from(&self.task);
            self.noted.is_due.store(false, Ordering::Release);
            return true;
        }
        let is_due = &self.noted.is_due;
        is_due.load(Ordering::Acquire) && is_due.swap(false, Ordering::AcqRel)
    }
    /// What it is to be polled with.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }
    /// It may be ready still.
    pub fn again(&self) {
        self.noted.is_due.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_rest_is_looked_at_when_it_has_woken_the_task_and_at_no_other_time() {
        let woken = Arc::<Woken>::default();
        let task: Waker = Arc::clone(&woken).into();
        let cx = Context::from_waker(&task);
        let mut rest = Rest::default();
        assert!(rest.is_due(&cx), "nobody has looked yet");
        assert!(!rest.is_due(&cx));
        rest.waker().wake_by_ref();
        assert!(woken.0.swap(false, Ordering::Relaxed));
        assert!(rest.is_due(&cx));
        assert!(!rest.is_due(&cx));
        rest.again();
        assert!(rest.is_due(&cx));
        assert!(!woken.0.load(Ordering::Relaxed));
        let other = Context::from_waker(Waker::noop());
        assert!(rest.is_due(&other), "by another task");
    }
}
