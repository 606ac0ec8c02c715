//! The clock by which HTTP/1.1's parser times the heads of requests.
//!
//! The parser wants a timer for every head and drops it when the head is there, which is almost always at once. Timers
//! that are begun and ended with every request cost more than all that is looked at of the head. So a connection has one
//! timer, which is left running: when it ends, whoever still waits then sets it anew for the rest of its time.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use tokio::{task::coop::unconstrained, time::sleep_until};

/// The clock of one connection, whose heads are all waited for by the same task, one after another.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Mutex<Running>>);

impl Clock {
    /// A clock by which whatever is waited for first ends then, at the latest: the first head has its time from the
    /// beginning of the connection.
    pub(crate) fn beginning(first: Instant) -> Self {
        let first = Some(first);
        Clock(Arc::new(Mutex::new(Running {
            first,
            ..Running::default()
        })))
    }
    /// Every change is complete when the lock is given back.
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one timer.
#[derive(Default)]
struct Running {
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    /// Whether it was asked since it was set, so that it wakes the task.
    asked: bool,
    /// When the first that is waited for ends.
    first: Option<Instant>,
}

/// The end of somebody's time.
struct Alarm {
    clock: Clock,
    end: Instant,
}

impl Timer for Clock {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }
    fn sleep_until(&self, end: Instant) -> Pin<Box<dyn Sleep>> {
        let first = self.lock().first.take();
        let end = first.map_or(end, |first| first.min(end));
        let clock = self.clone();
        Box::pin(Alarm { clock, end })
    }
}

impl Sleep for Alarm {}

impl Future for Alarm {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let end = self.end.into();
        let mut running = self.clock.lock();
        let Running { timer, asked, .. } = &mut *running;
        let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if *asked && !timer.is_elapsed() && timer.deadline() <= end {
            return Poll::Pending;
        }
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        *asked = true;
        // Not part of the task's share of time: it is to be set whatever else the task has done.
        pin!(unconstrained(timer.as_mut())).poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const TICK: Duration = Duration::from_millis(200);
    /// Longer than anything that comes in between.
    const LONG: Duration = Duration::from_secs(60);

    /// Begins to wait, as the parser does for a head that is not there yet.
    async fn asks(alarm: &mut Pin<Box<dyn Sleep>>) -> bool {
        poll_fn(|cx| Poll::Ready(alarm.as_mut().poll(cx).is_ready())).await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_alarm_rings_at_its_own_end_though_the_timer_was_another_s() {
        let clock = Clock::default();
        let mut first = clock.sleep(TICK);
        asks(&mut first).await;
        drop(first);
        let began = Instant::now();
        let mut second = clock.sleep(3 * TICK);
        assert!(!asks(&mut second).await || began.elapsed() >= 3 * TICK);
        second.await;
        assert!(began.elapsed() >= 3 * TICK);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_first_alarm_rings_at_the_end_that_was_set_before() {
        let began = Instant::now();
        let clock = Clock::beginning(began + TICK);
        clock.sleep(LONG).await;
        assert!((TICK..LONG).contains(&began.elapsed()));
        let began = Instant::now();
        clock.sleep(2 * TICK).await;
        assert!(began.elapsed() >= 2 * TICK);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_alarm_rings_before_a_later_one_and_after_its_end() {
        let clock = Clock::default();
        let mut late = clock.sleep(Duration::from_secs(3_600));
        assert!(!asks(&mut late).await);
        clock.sleep(TICK).await;
        assert!(!asks(&mut late).await);
        clock.sleep_until(Instant::now()).await;
        assert!(!asks(&mut late).await);
    }
}
