//! The machine that neighbours are measured on: which core does what, who goes first, and what else was computed.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{self, Command},
    time::Duration,
};

use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// Where things run.
pub(super) struct Cores {
    pub(super) gateway: CpuSet,
    pub(super) others: CpuSet,
}

impl Cores {
    /// The first core for the gateway, the second for all others; `None` if there is only one.
    pub(super) fn divided() -> Option<Cores> {
        let all = sched_getaffinity(None).ok()?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
        let mut one = || {
            let mut set = CpuSet::new();
            set.set(cores.next()?);
            Some(set)
        };
        Some(Cores {
            gateway: one()?,
            others: one()?,
        })
    }
}

/// Does this on a thread that has only what is left of a core; threads that it starts have the same.
///
/// A low priority is not enough: whoever has just begun to run has a core for a while (since Linux 6.6 a slice, which
/// ends at a tick of the clock, up to 4 ms later), however important the one is that waits. Only who has the policy for
/// idle time is interrupted at once. There is no safe call for it, so `chrt` of util-linux sets it.
pub(super) fn behind<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let idle = scope.spawn(|| {
            step_behind();
            work()
        });
        idle.join().unwrap()
    })
}

pub(super) fn step_behind() {
    let thread = gettid().as_raw_nonzero().to_string();
    let mut chrt = Command::new("chrt");
    let status = chrt.args(["--idle", "--pid", "0", &thread]).status();
    assert!(status.is_ok_and(|status| status.success()), "`chrt` fails");
}

/// Keeps the cores from going to sleep: on a virtual machine waking one takes up to a millisecond, and a request wakes
/// one five times. Beside an attack they are awake anyway.
pub(super) fn stay_awake(cores: &Cores) {
    for core in [cores.gateway, cores.others] {
        std::thread::spawn(move || {
            sched_setaffinity(None, &core).unwrap();
            step_behind();
            loop {
                // Attackers go first.
                std::thread::yield_now();
            }
        });
    }
}

/// CPU time in nanoseconds of all threads of some process by their folders in `/proc`.
pub(super) type Elsewhere = BTreeMap<PathBuf, u64>;

/// What has computed so far beside the gateway, which is the process of this number, and this process. Whoever is on one core cannot step aside for them.
pub(super) fn elsewhere(gateway: u32) -> Elsewhere {
    let ours = [process::id(), gateway];
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let others = processes.filter(|process| {
        let id: Option<u32> = process.file_name().to_str().and_then(|id| id.parse().ok());
        id.is_some_and(|id| !ours.contains(&id))
    });
    let threads = others.filter_map(|process| fs::read_dir(process.path().join("task")).ok());
    let times = threads.flatten().flatten().filter_map(|thread| {
        let schedstat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let time: u64 = schedstat.split(' ').next()?.parse().ok()?;
        Some((thread.path(), time))
    });
    times.collect()
}

/// How much was computed in between, but for the kernel's threads that work for whoever asks.
pub(super) fn disturbance(before: &Elsewhere, after: &Elsewhere) -> Duration {
    let more = after.iter().filter_map(|(thread, time)| {
        let more = time.saturating_sub(before.get(thread).copied().unwrap_or_default());
        if more == 0 {
            return None;
        }
        let name = fs::read_to_string(thread.join("comm")).ok()?;
        let serves = ["ksoftirqd", "kworker", "rcu"];
        (!serves.iter().any(|servant| name.starts_with(servant))).then_some(more)
    });
    Duration::from_nanos(more.sum())
}
