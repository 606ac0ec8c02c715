//! CPU time and memory of a process tree, from `/proc`.
//!
//! CPU is user and system time of every process of the tree, ended children included, in clock ticks of 10 ms. Memory
//! is the resident set (cheap, often) and the proportional set (shared pages divided among those who share them, exact,
//! rarely, because the kernel walks all pages for it). A child that is started and ends between two looks is counted
//! by its parent once it is waited for.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

/// Ticks per second of the times in `/proc/PID/stat`; fixed at 100 for user space on all Linux machines of today.
const TICKS: f64 = 100.0;
/// How often CPU and resident set are looked at.
const EVERY: Duration = Duration::from_millis(200);
/// Every how many looks the proportional set is read.
const PSS_EVERY: u32 = 5;
/// Over how many looks the largest CPU share is taken: one second.
const WINDOW: usize = 5;
/// Most processes of one tree.
const PROCESSES_MAX: usize = 4096;

/// What a tree uses at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU-seconds since its start.
    pub cpu_seconds: f64,
    /// Resident bytes.
    pub rss: u64,
    /// Threads.
    pub threads: u32,
}

/// One look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since measuring began.
    pub t: f64,
    /// CPU-seconds since measuring began.
    pub cpu: f64,
    /// Resident bytes.
    pub rss: u64,
    /// Proportional bytes, where read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss: Option<u64>,
}

/// What a tree used over a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Seconds.
    pub wall_seconds: f64,
    /// CPU-seconds.
    pub cpu_seconds: f64,
    /// Largest share of CPUs over one second: 1.5 is one and a half CPUs.
    pub cpu_max: f64,
    /// Mean resident bytes.
    pub rss_mean: u64,
    /// Largest resident bytes; of a single process as the kernel has seen it, else the largest sample.
    pub rss_peak: u64,
    /// Mean proportional bytes.
    pub pss_mean: u64,
    /// Largest proportional bytes.
    pub pss_peak: u64,
    /// Every look, thinned to at most 600.
    pub samples: Vec<Sample>,
}

/// Looks at a tree from a thread until told to stop.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Vec<Sample>, u64)>>,
}

impl Sampler {
    /// Starts looking; the thread stays on these CPUs.
    pub fn start(pid: u32, cpus: Vec<usize>) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let (tell, looks) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            crate::process::pin(&cpus);
            look(pid, &told, &tell)
        });
        // What is used from here on is seen. A thread that has panicked is found when it is joined.
        let _ = looks.recv();
        Sampler {
            stop,
            thread: Some(thread),
        }
    }

    /// Stops looking.
    pub fn finish(mut self) -> Measured {
        self.stop.store(true, Ordering::Relaxed);
        let samples = self.thread.take().and_then(|thread| thread.join().ok());
        let (samples, highest) = samples.unwrap_or_default();
        let mut measured = summarise(samples);
        measured.rss_peak = measured.rss_peak.max(highest);
        measured
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Samples, and the largest resident set as the kernel has seen it.
fn look(pid: u32, stop: &AtomicBool, begun: &mpsc::Sender<()>) -> (Vec<Sample>, u64) {
    let start = Instant::now();
    let first = tree(pid).cpu_seconds;
    forget_peaks(pid);
    // Whoever started it waits.
    let _ = begun.send(());
    let mut samples = Vec::new();
    let mut n = 0u32;
    loop {
        // The last look comes after the stop, so that the whole time is counted.
        let last = stop.load(Ordering::Relaxed);
        let now = tree(pid);
        samples.push(Sample {
            t: start.elapsed().as_secs_f64(),
            cpu: (now.cpu_seconds - first).max(0.0),
            rss: now.rss,
            pss: (n.is_multiple_of(PSS_EVERY) || last).then(|| pss(pid)),
        });
        if last {
            return (samples, highest(pid));
        }
        n += 1;
        let next = start + EVERY * n;
        let until = next.saturating_duration_since(Instant::now());
        std::thread::sleep(until);
    }
}

fn summarise(samples: Vec<Sample>) -> Measured {
    let Some(last) = samples.last() else {
        return Measured::default();
    };
    let mean = |values: &[u64]| match values.len() {
        0 => 0,
        n => (values.iter().map(|v| u128::from(*v)).sum::<u128>() / n as u128) as u64,
    };
    let rss: Vec<u64> = samples.iter().map(|s| s.rss).filter(|v| *v > 0).collect();
    let pss: Vec<u64> = samples
        .iter()
        .filter_map(|s| s.pss)
        .filter(|v| *v > 0)
        .collect();
    // Of whole seconds: a look that comes late is followed by others at once.
    let second = EVERY.as_secs_f64() * WINDOW as f64;
    let shares = samples.iter().enumerate().filter_map(|(at, first)| {
        let mut later = samples[at..].iter();
        let last = later.find(|s| s.t - first.t >= second)?;
        Some((last.cpu - first.cpu) / (last.t - first.t))
    });
    let whole = last.cpu / last.t.max(f64::MIN_POSITIVE);
    let cpu_max = shares.fold(whole, f64::max);
    let thin = samples.len().div_ceil(600).max(1);
    Measured {
        wall_seconds: last.t,
        cpu_seconds: last.cpu,
        cpu_max,
        rss_mean: mean(&rss),
        rss_peak: rss.iter().copied().max().unwrap_or(0),
        pss_mean: mean(&pss),
        pss_peak: pss.iter().copied().max().unwrap_or(0),
        samples: samples.into_iter().step_by(thin).collect(),
    }
}

/// What a tree uses now.
pub fn tree(pid: u32) -> Usage {
    let page = rustix::param::page_size() as u64;
    let mut total = Usage::default();
    for id in members(pid) {
        let Some(stat) = Stat::read(id) else { continue };
        total.cpu_seconds += stat.ticks as f64 / TICKS;
        total.rss += stat.pages * page;
        total.threads += stat.threads;
    }
    total
}

/// Proportional bytes of a tree; where the kernel does not tell, resident bytes.
pub fn pss(pid: u32) -> u64 {
    members(pid)
        .into_iter()
        .map(|id| {
            let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
            let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
            kib.map_or_else(
                || Stat::read(id).map_or(0, |stat| stat.pages * rustix::param::page_size() as u64),
                |kib| kib << 10,
            )
        })
        .sum()
}

/// Has the kernel forget how large the processes of a tree were before.
fn forget_peaks(pid: u32) {
    for id in members(pid) {
        // proc(5), clear_refs: 5 sets the high-water mark to what is resident now. Without it, it counts from the start.
        let _ = fs::write(format!("/proc/{id}/clear_refs"), "5");
    }
}

/// The high-water mark of a process, which no look between two samples can miss; of a tree with several processes only
/// samples say how large it was at one moment: 0.
fn highest(pid: u32) -> u64 {
    if members(pid).len() != 1 {
        return 0;
    }
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// A process and everything that descends from it.
fn members(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in processes {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some(stat) = Stat::read(id) {
            children.entry(stat.parent).or_default().push(id);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() && found.len() < PROCESSES_MAX {
        found.extend(children.get(&found[at]).into_iter().flatten());
        at += 1;
    }
    found
}

#[derive(Debug, PartialEq)]
struct Stat {
    parent: u32,
    ticks: u64,
    pages: u64,
    threads: u32,
}

impl Stat {
    fn read(pid: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }
    /// The name in parentheses may hold anything, so fields are counted behind the last parenthesis.
    fn parse(text: &str) -> Option<Stat> {
        let fields: Vec<&str> = text[text.rfind(')')? + 1..]
            .split_ascii_whitespace()
            .collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        // proc(5): field 3 (state) is the first here; 4 ppid, 14..17 utime stime cutime cstime, 20 threads, 24 rss.
        Some(Stat {
            parent: number(1)? as u32,
            ticks: number(11)? + number(12)? + number(13)? + number(14)?,
            threads: number(17)? as u32,
            pages: number(21)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_stat_line_whose_name_is_unkind() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 4194560 100 0 0 0 11 22 3 4 20 0 5 0 100 1000000 250 18446744073709551615";
        let stat = Stat {
            parent: 7,
            ticks: 40,
            pages: 250,
            threads: 5,
        };
        assert_eq!(Stat::parse(line), Some(stat));
    }

    #[test]
    fn sums_up_samples() {
        let sample = |i: u64| Sample {
            t: i as f64 * 0.1,
            cpu: if i <= 10 { 0.0 } else { (i - 10) as f64 * 0.1 },
            rss: 100 + i,
            pss: i.is_multiple_of(5).then_some(50 + i),
        };
        let measured = summarise((0..=20).map(sample).collect());
        assert!((measured.cpu_seconds - 1.0).abs() < 1e-9);
        assert!(
            (measured.cpu_max - 1.0).abs() < 1e-6,
            "{}",
            measured.cpu_max
        );
        assert_eq!((measured.rss_peak, measured.rss_mean), (120, 110));
        assert_eq!((measured.pss_peak, measured.pss_mean), (70, 60));
    }
}
