//! Waiting until a moment, exact to some tens of microseconds.
//!
//! The timers of the runtime count whole milliseconds and round up, so that an answer held back for 10 ms would come
//! after 11 to 12. Here each worker thread has a queue of deadlines and one alarm of the system, set to the earliest of
//! them: no other thread, no lock, no spinning, and one call to the system per different deadline. Other than Linux
//! has the runtime's timers for the alarm.
//!
//! Invariant: while somebody waits, the alarm is set to the earliest deadline or sooner. Nobody is woken early.
//! Who waits is bounded by the open connections, since each of them waits for one thing at a time.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::Future,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Instant,
};

/// Wakes the tasks of one worker thread when their time has come, as long as [`Timer::run`] runs on it.
#[derive(Debug)]
pub(crate) struct Timer {
    waiting: RefCell<Queue<Waker>>,
    /// What the alarm is set to.
    set_to: Cell<Option<Instant>>,
    alarm: Alarm,
}

impl Timer {
    /// A timer of the calling thread, which has to run a runtime. Errors: the system gives no alarm.
    pub(crate) fn new() -> io::Result<Rc<Timer>> {
        Ok(Rc::new(Timer {
            waiting: RefCell::default(),
            set_to: Cell::new(None),
            alarm: Alarm::new()?,
        }))
    }

    /// Waits until a moment, not a microsecond less. Ready at once if that has passed.
    pub(crate) fn until(self: &Rc<Timer>, due: Instant) -> Until {
        Until {
            timer: self.clone(),
            due,
            ticket: None,
        }
    }

    /// Wakes who is due, for ever.
    pub(crate) async fn run(self: Rc<Timer>) {
        loop {
            self.alarm.rung().await;
            self.set_to.set(None);
            let now = Instant::now();
            // Not in the head of a `while let`, where the queue would stay borrowed: waking may drop what waits.
            loop {
                let due = self.waiting.borrow_mut().take_due(now);
                match due {
                    Some(waker) => waker.wake(),
                    None => break,
                }
            }
            self.set_alarm();
        }
    }

    fn set_alarm(&self) {
        let earliest = self.waiting.borrow().earliest();
        if let Some(earliest) = earliest
            && self.set_to.get().is_none_or(|at| earliest < at)
        {
            self.set_to.set(Some(earliest));
            self.alarm.set(earliest);
        }
    }
}

/// A wait that [`Timer::until`] began; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Until {
    timer: Rc<Timer>,
    due: Instant,
    ticket: Option<Ticket>,
}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.due {
            return Poll::Ready(());
        }
        let this = &mut *self;
        let mut waiting = this.timer.waiting.borrow_mut();
        let waker = context.waker();
        match this.ticket.and_then(|ticket| waiting.get_mut(ticket)) {
            Some(known) => known.clone_from(waker),
            None => this.ticket = Some(waiting.add(this.due, waker.clone())),
        }
        drop(waiting);
        this.timer.set_alarm();
        Poll::Pending
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // The alarm may ring for nobody then, which only costs the ring.
            self.timer.waiting.borrow_mut().remove(ticket);
        }
    }
}

/// A place in a [`Queue`].
type Ticket = (Instant, u64);

/// Who waits for when; who came first is first among those of the same moment. Everything is O(log n).
#[derive(Debug)]
struct Queue<W> {
    waiting: BTreeMap<Ticket, W>,
    next: u64,
}

impl<W> Default for Queue<W> {
    fn default() -> Queue<W> {
        Queue {
            waiting: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<W> Queue<W> {
    fn add(&mut self, due: Instant, who: W) -> Ticket {
        let ticket = (due, self.next);
        self.next += 1;
        self.waiting.insert(ticket, who);
        ticket
    }

    fn get_mut(&mut self, ticket: Ticket) -> Option<&mut W> {
        self.waiting.get_mut(&ticket)
    }

    fn remove(&mut self, ticket: Ticket) -> Option<W> {
        self.waiting.remove(&ticket)
    }

    fn earliest(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes out the first one that is due.
    fn take_due(&mut self, now: Instant) -> Option<W> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// One alarm of the system.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Alarm(tokio::io::unix::AsyncFd<rustix::fd::OwnedFd>);

#[cfg(target_os = "linux")]
impl Alarm {
    fn new() -> io::Result<Alarm> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let file = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[allow(
            unsafe_code,
            reason = "the runtime has no timer of its own that is exact"
        )]
        // SAFETY: the file is open, `OwnedFd` always names the same one, and owns it until the `AsyncFd` drops it.
        let file = unsafe {
            tokio::io::unix::AsyncFd::register_with_interest(file, tokio::io::Interest::READABLE)
        };
        Ok(Alarm(file?))
    }

    /// Lets it ring at a moment, and not at the one it was set to before.
    fn set(&self, at: Instant) {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        // No time at all would turn it off.
        let left = at
            .saturating_duration_since(Instant::now())
            .max(std::time::Duration::from_nanos(1));
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let new = Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        // Fails for wrong arguments only, which these are not.
        let set = timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &new);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    /// Waits until it rings.
    async fn rung(&self) {
        match self.0.readable().await {
            // Each ring is an event of its own, and setting the alarm takes back what could be read.
            Ok(mut ready) => ready.clear_ready(),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct Alarm {
    at: Cell<Option<Instant>>,
    changed: tokio::sync::Notify,
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    fn new() -> io::Result<Alarm> {
        Ok(Alarm {
            at: Cell::new(None),
            changed: tokio::sync::Notify::new(),
        })
    }

    fn set(&self, at: Instant) {
        self.at.set(Some(at));
        self.changed.notify_one();
    }

    async fn rung(&self) {
        loop {
            let Some(at) = self.at.get() else {
                self.changed.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(at.into()) => {
                    self.at.set(None);
                    return;
                }
                () = self.changed.notified() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, time::Duration};

    use super::*;

    #[test]
    fn the_queue_gives_back_who_is_due_in_order_and_nobody_else() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut queue = Queue::default();
        for (ms, who) in [(30, "d"), (10, "b"), (20, "c"), (10, "B"), (5, "a")] {
            queue.add(at(ms), who);
        }
        let gone = queue.add(at(1), "gone");
        assert_eq!(queue.earliest(), Some(at(1)));
        assert_eq!(queue.remove(gone), Some("gone"));
        assert_eq!((queue.remove(gone), queue.get_mut(gone)), (None, None));
        assert_eq!(queue.earliest(), Some(at(5)));
        let mut due = |ms| std::iter::from_fn(|| queue.take_due(at(ms))).collect::<Vec<_>>();
        assert_eq!(due(4), Vec::<&str>::new());
        assert_eq!(due(10), ["a", "b", "B"]);
        assert_eq!(due(19), Vec::<&str>::new());
        assert_eq!(due(99), ["c", "d"]);
        assert_eq!(queue.earliest(), None);
    }

    /// Runs something on a thread as a worker of the server has it.
    fn on_a_worker(work: impl AsyncFnOnce(Rc<Timer>)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let timer = Timer::new().unwrap();
            tokio::task::spawn_local(timer.clone().run());
            work(timer).await;
        });
    }

    #[test]
    fn waits_end_in_order_and_never_early() {
        on_a_worker(async |timer| {
            let start = Instant::now();
            let order = Rc::new(RefCell::new(Vec::new()));
            let mut tasks = tokio::task::JoinSet::new();
            // The latest first, so that the alarm has to be set anew each time.
            for ms in [8u64, 6, 4, 2, 0] {
                let (timer, order) = (timer.clone(), order.clone());
                tasks.spawn_local(async move {
                    let due = start + Duration::from_millis(ms);
                    let mut waiting = pin!(timer.until(due));
                    let mut has_waited = false;
                    poll_fn(|cx| {
                        let polled = waiting.as_mut().poll(cx);
                        has_waited |= polled.is_pending();
                        polled
                    })
                    .await;
                    assert!(Instant::now() >= due);
                    // Whoever begins too late waits for nothing, and is not behind those who do.
                    if has_waited {
                        order.borrow_mut().push(ms);
                    }
                });
            }
            tasks.join_all().await;
            assert!(order.borrow().is_sorted(), "{order:?}");
        });
    }

    #[test]
    fn a_wait_given_up_leaves_nothing_and_holds_up_nobody() {
        on_a_worker(async |timer| {
            let start = Instant::now();
            let far = timer.until(start + Duration::from_secs(3600));
            let near = timer.until(start + Duration::from_millis(2));
            let next = start + Duration::from_millis(3);
            tokio::select! {
                biased;
                () = far => unreachable!("an hour has not passed"),
                // On a slow machine it has ended already.
                () = near => {}
                () = std::future::ready(()) => {}
            }
            assert_eq!(timer.waiting.borrow().earliest(), None);
            timer.until(next).await;
            assert!(Instant::now() >= next && timer.waiting.borrow().waiting.is_empty());
        });
    }
}
