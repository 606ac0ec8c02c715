//! Work that would keep a worker from its other requests: reading a large body, validating and planning a large
//! operation.
//!
//! A worker is one thread: while it computes for one request, all others on it wait. So whatever may take long goes to
//! threads of its own, which the operating system schedules beside the workers, and the request waits like for a
//! subgraph. What is heavy is told by size before the work is begun; small work stays, because handing it over costs
//! more than doing it.
//!
//! At most one piece of work per core runs at a time. Others wait in the order in which they came, and give up their
//! place when their client leaves; their number is that of the requests under way.
//!
//! Operations that nobody has asked for before need a permit to be validated and planned ([`Offload::plan_permit`]): fewer at a time than
//! there are cores, and so many waiting, so that whoever asks for what is known neither waits behind them nor shares every
//! core with them. A permit is kept from the document to the plan: what has a syntax tree does not wait a second time.
//! A worker does small ones by itself, but only for a small share of its time ([`Share`]).
//!
//! On Linux these threads have a lower priority than the workers ([`NICE`]): where there are not enough cores for all, a
//! worker has ten times as much of them. When such a thread gives way is another question, which `ogive` answers by what
//! it calls when one starts ([`Offload::starting`]). The priority is not so low that the work never ends: beside a worker
//! that is never at rest, a thread still has about a tenth of their core.

use std::{
    cell::Cell,
    num::NonZeroUsize,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::{OwnedSemaphorePermit, Semaphore},
};

/// Largest body that a worker reads by itself, in bytes.
pub const LIGHT_BODY: usize = 16 << 10;
/// Longest document that a worker validates by itself, in bytes.
pub const LIGHT_DOCUMENT: usize = 1 << 10;
/// Most fields of an operation that a worker plans by itself; a field counts once for every type it may be asked of.
pub const LIGHT_OPERATION: usize = 32;

/// How long a thread without work stays. Short, because what it freed goes back to the operating system when it ends.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// By how much the priority of the threads is below that of the process, as of `nice`.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Threads for heavy work, started when there is some.
#[derive(Debug)]
pub struct Offload {
    permits: Arc<Semaphore>,
    /// Lends its blocking threads; nothing else runs on it. `None` once it is dropped, or if there are no threads to be
    /// had.
    threads: Option<Runtime>,
    done: AtomicU64,
    /// For operations that are not known.
    plans: Arc<Semaphore>,
    /// How many wait for one.
    waiting: AtomicUsize,
    waiting_max: AtomicUsize,
}

/// Most operations that wait for a permit, unless [`Offload::set_waiting_max`] says another number.
const WAITING_MAX: usize = 500;

/// An operation that is not known may be validated and planned until this is dropped.
#[derive(Debug)]
pub struct PlanPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

/// Too many others wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueFull;

/// One that waits counts until it has its permit or leaves.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Offload {
    fn default() -> Self {
        Offload::new(Offload::threads())
    }
}

impl Offload {
    /// One per core.
    pub fn threads() -> NonZeroUsize {
        std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }

    /// At most `threads` at a time; default one per core.
    pub fn new(threads: NonZeroUsize) -> Self {
        Offload::starting(threads, || {})
    }

    /// The same; every thread calls `start` first.
    pub fn starting(threads: NonZeroUsize, start: fn()) -> Self {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads.get())
            .thread_name("ogive-heavy")
            .thread_keep_alive(KEEP_ALIVE)
            .on_thread_start(move || {
                step_back();
                start();
            })
            .build();
        Offload {
            permits: Arc::new(Semaphore::new(threads.get())),
            threads: runtime.ok(),
            done: AtomicU64::new(0),
            plans: Arc::new(Semaphore::new((threads.get() / 2).max(1))),
            waiting: AtomicUsize::new(0),
            waiting_max: AtomicUsize::new(WAITING_MAX),
        }
    }

    /// How many operations that are not known may wait for a permit; default 500.
    pub fn set_waiting_max(&self, most: usize) {
        self.waiting_max.store(most, Ordering::Relaxed);
    }

    /// How many wait for a permit.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for the permit of an operation that is not known, in the order in which they came. There are half as many
    /// at a time as there are threads, at least one.
    pub async fn plan_permit(&self) -> Result<PlanPermit, QueueFull> {
        let plans = Arc::clone(&self.plans);
        if let Ok(permit) = Arc::clone(&plans).try_acquire_owned() {
            let _permit = Some(permit);
            return Ok(PlanPermit { _permit });
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.waiting_max.load(Ordering::Relaxed) {
            return Err(QueueFull);
        }
        // The semaphore is never closed.
        let _permit = plans.acquire_owned().await.ok();
        Ok(PlanPermit { _permit })
    }

    /// Does work on another thread. A panic in it goes on in the caller. Work that was begun is finished even if the
    /// future is dropped.
    pub async fn run<T, F>(&self, work: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (Some(threads), Ok(permit)) = (
            &self.threads,
            Arc::clone(&self.permits).acquire_owned().await,
        ) else {
            return work();
        };
        self.done.fetch_add(1, Ordering::Relaxed);
        let working = threads.spawn_blocking(move || {
            let _held = permit;
            work()
        });
        match working.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Only a runtime that is being dropped cancels, and it is dropped with the last request.
                Err(_) => std::future::pending().await,
            },
        }
    }
    /// Whether all threads have work.
    pub fn is_full(&self) -> bool {
        self.permits.available_permits() == 0
    }
    /// How often work was done elsewhere.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// What a worker may spend on operations that are not known, of its time.
#[derive(Debug, Default)]
pub struct Share {
    /// When what was spent is a tenth of the time since.
    even: Cell<Option<Instant>>,
}

/// A worker spends one part in so many of its time...
const SHARE: u32 = 10;
/// ... and so much at once, if it has spent nothing for a while.
const AT_ONCE: Duration = Duration::from_millis(4);

impl Share {
    /// Does small work now, if there is time left for it.
    pub fn spend<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let now = Instant::now();
        let even = self.even.get().filter(|even| *even > now).unwrap_or(now);
        if even.duration_since(now) > AT_ONCE * SHARE {
            return None;
        }
        let done = work();
        self.even.set(Some(even + now.elapsed() * SHARE));
        Some(done)
    }
}

/// Lets the workers go first. Elsewhere than on Linux priority is that of the whole process, so nothing is changed.
fn step_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "threads for heavy work have the priority of the workers");
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        // Waiting for threads is not allowed where this may happen.
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::mpsc, thread};

    use super::*;
    use crate::panic::contained;

    const ONE: NonZeroUsize = NonZeroUsize::MIN;

    #[tokio::test(flavor = "current_thread")]
    async fn a_worker_goes_on_while_work_is_done_elsewhere() {
        let offload = Offload::new(ONE);
        let (go, gone) = mpsc::channel::<()>();
        let here = thread::current().id();
        let work = offload.run(move || {
            gone.recv().unwrap();
            thread::current().id()
        });
        // Only this thread can let the work end, after it was begun.
        let other = async {
            tokio::task::yield_now().await;
            go.send(()).unwrap();
        };
        let (there, ()) = tokio::join!(work, other);
        assert_ne!(there, here);
        assert_eq!(offload.done(), 1);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "current_thread")]
    async fn workers_go_first() {
        use rustix::process::getpriority_process;
        let here = getpriority_process(None).unwrap();
        let offload = Offload::new(ONE);
        let there = offload.run(|| getpriority_process(None).unwrap()).await;
        // 19 is the lowest.
        assert_eq!(there, (here + NICE).min(19));
        assert_eq!(getpriority_process(None).unwrap(), here);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn permits_come_in_order_and_whoever_finds_the_queue_full_is_refused() {
        let offload = Offload::new(ONE);
        offload.set_waiting_max(1);
        let first = offload.plan_permit().await.unwrap();
        let mut second = pin!(offload.plan_permit());
        let waits = futures_now(second.as_mut());
        assert!(waits.is_none());
        assert_eq!(offload.waiting(), 1);
        assert_eq!(offload.plan_permit().await.unwrap_err(), QueueFull);
        assert_eq!(offload.waiting(), 1, "who was refused does not wait");
        // Known work needs no permit.
        assert_eq!(offload.run(|| 3).await, 3);
        drop(first);
        let second = futures_now(second.as_mut()).unwrap().unwrap();
        assert_eq!(offload.waiting(), 0);
        {
            let leaves = pin!(offload.plan_permit());
            assert!(futures_now(leaves).is_none());
        }
        assert_eq!(offload.waiting(), 0, "who leaves gives up its place");
        drop(second);
        assert!(offload.plan_permit().await.is_ok());
    }

    fn futures_now<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn a_worker_spends_a_small_share_of_its_time() {
        let share = Share::default();
        let millisecond = || {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(1) {}
        };
        let before = Instant::now();
        assert!(share.spend(millisecond).is_some());
        // Ten times what was spent, at least.
        assert!(share.even.get().unwrap() >= before + Duration::from_millis(10));
        share
            .even
            .set(Some(Instant::now() + Duration::from_secs(3600)));
        assert!(share.spend(|| ()).is_none());
        share.even.set(Some(Instant::now()));
        assert!(share.spend(|| ()).is_some());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whoever_leaves_gives_up_the_place_and_a_panic_ends_nothing_else() {
        let offload = Offload::new(ONE);
        let (go, gone) = mpsc::channel::<()>();
        let first = offload.run(move || gone.recv().unwrap());
        let leaves = async {
            // Never begun: the only thread is busy.
            let waiting = offload.run(|| unreachable!("its client has left"));
            tokio::select! {
                () = waiting => {}
                () = tokio::task::yield_now() => {}
            }
            go.send(()).unwrap();
        };
        tokio::join!(first, leaves);
        assert_eq!(
            contained(pin!(offload.run(|| panic!("on purpose")))).await,
            None::<()>
        );
        assert_eq!(offload.run(|| 3).await, 3);
    }
}
