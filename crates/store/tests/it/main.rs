//! Rates and documents shared by several processes, with real Redis servers.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set up its case should stop there"
)]

mod cluster;
mod encrypted;
mod faults;
mod server;
mod shared;

use std::time::{Duration, Instant};

use ogive_store::{SharedRates, SharedTaken, Store, StoreOptions, StoreTls, Topology, gcra::Quota};

const MISSING: &str = "redis-server is not installed";

/// One server, without users.
fn options(urls: Vec<String>) -> StoreOptions {
    StoreOptions {
        urls,
        topology: Topology::Single,
        username: None,
        password: None,
        tls: StoreTls::default(),
        namespace: "test".to_owned(),
        // Where a server is there, nobody does without it only because the machine is busy.
        timeout: Duration::from_secs(20),
    }
}

/// What one process has.
struct Process {
    store: Store,
    rates: SharedRates,
}

impl Process {
    fn new(options: StoreOptions) -> Self {
        let store = Store::new(options).unwrap();
        Process {
            rates: SharedRates::new(store.clone(), 1_000),
            store,
        }
    }

    /// At one server.
    fn at(url: String) -> Self {
        Process::new(options(vec![url]))
    }

    async fn take(&self, key: u64, quota: &Quota, units: u64) -> Option<SharedTaken> {
        let name = || format!("rate:{key}").into();
        let (left, taken) = self.rates.take(key, name, quota, units).await;
        left.is_ok().then_some(taken)
    }

    /// Waits until Redis is found and answers: whoever has not found it counts alone.
    fn connected(self) -> Self {
        self.until_connected();
        self
    }

    fn until_connected(&self) {
        let started = Instant::now();
        while wait(self.store.get("nothing")).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
    }

    /// Waits until it counts together with the others again.
    fn until_sharing(&self) {
        let started = Instant::now();
        while self.store.is_away() || self.store.is_regrouping() {
            assert!(started.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
    }

    /// Waits until it is known whether Redis answers.
    fn until(&self, is_away: bool) {
        let started = Instant::now();
        while self.store.is_away() != is_away {
            assert!(started.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
    }
}

fn quota(capacity: u64, seconds: u64) -> Quota {
    Quota {
        capacity,
        interval: Duration::from_secs(seconds),
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

/// How many of so many requests the processes let pass, each of them on a thread.
fn passed(processes: &[Process], requests: u64, quota: Quota) -> u64 {
    let each = requests / processes.len() as u64;
    passed_each(processes, quota, |sent, _| sent < each)
}

/// How many requests the processes let pass until each of them has rejected one. None ends with units that it leased and that
/// the others lack.
fn passed_until_rejected(processes: &[Process], quota: Quota) -> u64 {
    passed_each(processes, quota, |sent, passed| sent == passed)
}

/// How many requests the processes let pass, each of them on a thread, while `goes_on` says so of the numbers of requests that
/// one process was sent and let pass.
fn passed_each(
    processes: &[Process],
    quota: Quota,
    goes_on: impl Fn(u64, u64) -> bool + Copy + Send,
) -> u64 {
    std::thread::scope(|scope| {
        let threads = processes.iter().map(|process| {
            scope.spawn(move || {
                wait(async {
                    let (mut sent, mut passed) = (0, 0);
                    while goes_on(sent, passed) {
                        sent += 1;
                        passed += u64::from(process.take(7, &quota, 1).await.is_some());
                    }
                    passed
                })
            })
        });
        let threads: Vec<_> = threads.collect();
        let passed = threads.into_iter().map(|thread| thread.join().unwrap());
        passed.sum()
    })
}
