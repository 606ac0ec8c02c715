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
//! On Linux these threads have a lower priority than the workers ([`NICE`]): where there are not enough cores for all, a
//! worker has ten times as much of them. When such a thread gives way is another question, which `ogive` answers by what
//! it calls when one starts ([`Heavy::starting`]). The priority is not so low that the work never ends: beside a worker
//! that is never at rest, a thread still has about a tenth of their core.

use std::{
    num::NonZeroUsize,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::Semaphore,
};

/// Largest body that a worker reads by itself, in bytes.
pub(crate) const LIGHT_BODY: usize = 16 << 10;
/// Longest document that a worker validates by itself, in bytes.
pub(crate) const LIGHT_DOCUMENT: usize = 1 << 10;
/// Most fields of an operation that a worker plans by itself; a field counts once for every type it may be asked of.
pub(crate) const LIGHT_OPERATION: usize = 32;

/// How long a thread without work stays. Short, because what it freed goes back to the operating system when it ends.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// By how much the priority of the threads is below that of the process, as of `nice`.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Threads for heavy work, started when there is some.
#[derive(Debug)]
pub struct Heavy {
    permits: Arc<Semaphore>,
    /// Lends its blocking threads; nothing else runs on it. `None` once it is dropped, or if there are no threads to be
    /// had.
    threads: Option<Runtime>,
    done: AtomicU64,
}

impl Default for Heavy {
    fn default() -> Self {
        Heavy::new(Heavy::threads())
    }
}

impl Heavy {
    /// One per core.
    pub fn threads() -> NonZeroUsize {
        std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }

    /// At most `threads` at a time; default one per core.
    pub fn new(threads: NonZeroUsize) -> Self {
        Heavy::starting(threads, || {})
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
        Heavy {
            permits: Arc::new(Semaphore::new(threads.get())),
            threads: runtime.ok(),
            done: AtomicU64::new(0),
        }
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
    /// How often work was done elsewhere.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// Lets the workers go first. Elsewhere than on Linux priority is that of the whole process, so nothing is changed.
fn step_back() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "threads for heavy work have the priority of the workers");
    }
}

impl Drop for Heavy {
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
        let heavy = Heavy::new(ONE);
        let (go, gone) = mpsc::channel::<()>();
        let here = thread::current().id();
        let work = heavy.run(move || {
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
        assert_eq!(heavy.done(), 1);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "current_thread")]
    async fn workers_go_first() {
        use rustix::process::getpriority_process;
        let here = getpriority_process(None).unwrap();
        let heavy = Heavy::new(ONE);
        let there = heavy.run(|| getpriority_process(None).unwrap()).await;
        // 19 is the lowest.
        assert_eq!(there, (here + NICE).min(19));
        assert_eq!(getpriority_process(None).unwrap(), here);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whoever_leaves_gives_up_the_place_and_a_panic_ends_nothing_else() {
        let heavy = Heavy::new(ONE);
        let (go, gone) = mpsc::channel::<()>();
        let first = heavy.run(move || gone.recv().unwrap());
        let leaves = async {
            // Never begun: the only thread is busy.
            let waiting = heavy.run(|| unreachable!("its client has left"));
            tokio::select! {
                () = waiting => {}
                () = tokio::task::yield_now() => {}
            }
            go.send(()).unwrap();
        };
        tokio::join!(first, leaves);
        assert_eq!(
            contained(pin!(heavy.run(|| panic!("on purpose")))).await,
            None::<()>
        );
        assert_eq!(heavy.run(|| 3).await, 3);
    }
}
