//! Threads beside the workers for calls of scripts and components that take longer than a worker waits.
//!
//! A client has half of the threads of one hook at most, so its slow calls wait for one another, and others find a thread.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
};

use ogive_base::Client;
use ogive_server::offload::Offload;
use tokio::sync::Semaphore;

/// Threads for one component, or for the scripts of one configuration. They are started when they are needed.
#[derive(Debug)]
pub(crate) struct HookThreads {
    threads: Offload,
    per_client: usize,
    /// The places of clients that have a call here.
    clients: Mutex<HashMap<Client, Arc<Semaphore>>>,
}

impl Default for HookThreads {
    /// Twice as many as there are cores: calls share the processors with one another, and end by their own time.
    fn default() -> Self {
        let threads = Offload::threads().saturating_mul(TWO);
        HookThreads {
            per_client: (threads.get() / 2).max(1),
            ..HookThreads::unshared(threads)
        }
    }
}

const TWO: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

impl HookThreads {
    /// At most so many, which one client may have all.
    pub(crate) fn unshared(threads: NonZeroUsize) -> Self {
        HookThreads {
            threads: Offload::new(threads),
            per_client: threads.get(),
            clients: Mutex::default(),
        }
    }

    /// Does work for a client on one of them, when the client has a place and a thread is free.
    pub(crate) async fn run_for<T, F>(&self, client: Client, work: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let places = Places::of(self, client);
        // The semaphore is never closed. Work that was begun keeps its place, also if nobody waits for it any more.
        let place = Arc::clone(&places.semaphore).acquire_owned().await;
        self.threads
            .run(move || {
                let _held = place;
                work()
            })
            .await
    }

    /// Does work on one of them that is not of one client.
    pub(crate) async fn run<T, F>(&self, work: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.threads.run(work).await
    }

    /// Whether all of them have work.
    pub(crate) fn is_full(&self) -> bool {
        self.threads.is_full()
    }
}

/// The places of a client, known as long as one of its calls is here.
struct Places<'a> {
    of: &'a HookThreads,
    client: Client,
    semaphore: Arc<Semaphore>,
}

impl<'a> Places<'a> {
    fn of(of: &'a HookThreads, client: Client) -> Self {
        let mut clients = of.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Semaphore::new(of.per_client));
        let semaphore = Arc::clone(clients.entry(client).or_insert_with(new));
        Places {
            of,
            client,
            semaphore,
        }
    }
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        let mut clients = self
            .of
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The table's and this one: neither another call nor work that goes on has it.
        if Arc::strong_count(&self.semaphore) == 2 {
            clients.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::mpsc};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_whose_calls_are_slow_leaves_threads_to_others() {
        let threads = HookThreads {
            per_client: 1,
            ..HookThreads::unshared(TWO)
        };
        let client = |last: u8| Client::At(Ipv4Addr::new(10, 0, 0, last).into());
        let (go, gone) = mpsc::channel::<()>();
        let slow = threads.run_for(client(1), move || gone.recv().unwrap());
        // Begins only when the slow one is done, though a thread is free.
        let waiting = threads.run_for(client(1), || 1);
        let other = async {
            tokio::task::yield_now().await;
            assert_eq!(threads.run_for(client(2), || 2).await, 2);
            assert!(!threads.is_full());
            go.send(()).unwrap();
        };
        let ((), found, ()) = tokio::join!(slow, waiting, other);
        assert_eq!(found, 1);
        let left = threads.clients.lock().unwrap();
        assert!(left.len() <= 1, "{left:?}");
    }
}
