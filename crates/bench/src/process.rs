//! Processes the lab starts: pinned to CPUs, limited in memory, in a group of their own, with their output in a file,
//! and gone when the lab is done with them.
//!
//! Pinning costs no helper program: a child inherits the affinity of the thread that starts it, so a short-lived
//! thread takes the affinity and starts it. Memory is limited by a control group of version 2 or 1 where the lab may
//! make one, else by `RLIMIT_DATA` (which, unlike `RLIMIT_AS`, does not count address space that is only reserved, as
//! JavaScript engines do).

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::{Error, Result};

/// How long a process gets between SIGTERM and SIGKILL. Nobody waits for an answer any more, so that draining
/// connections would be time lost between two runs.
const GRACE: Duration = Duration::from_millis(250);
/// How often a process that is ending is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Groups that run now, to be ended when the user wants out at once.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<u32>> {
    // Every change is one call on the vector: it is whole even if a holder panicked.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills everything the lab has started; for the way out.
pub fn kill_all() {
    for id in running().drain(..) {
        if let Some(pid) = Pid::from_raw(id as i32) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment beside the inherited one.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Where its output goes.
    pub log: PathBuf,
    /// CPUs it may use; empty means all.
    pub cpus: Vec<usize>,
    /// Most memory.
    pub memory: Option<u64>,
}

/// A started process and everything it starts.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
    group: Option<PathBuf>,
    /// How its memory is limited.
    pub memory_limit: Option<&'static str>,
}

impl Process {
    /// Starts a program.
    pub fn start(program: &Program) -> Result<Process> {
        let name = program.command.first().cloned().unwrap_or_default();
        let shown = Path::new(&name).file_name().unwrap_or_default();
        let shown = shown.to_string_lossy().into_owned();
        let output = File::create(&program.log).map_err(Error::file(&program.log))?;
        let errors = output.try_clone().map_err(Error::file(&program.log))?;
        let mut command = Command::new(&name);
        command
            .args(program.command.iter().skip(1))
            .envs(&program.env)
            .current_dir(&program.folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        let child = on_cpus(&program.cpus, move || command.spawn())?
            .map_err(|error| Error::program(&shown, format!("cannot be started: {error}")))?;
        running().push(child.id());
        let mut process = Process {
            child,
            name: shown,
            log: program.log.clone(),
            group: None,
            memory_limit: None,
        };
        if let Some(bytes) = program.memory {
            process.limit_memory(bytes);
        }
        Ok(process)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its end, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for its end.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if start.elapsed() > patience {
                self.stop();
                return Err(Error::program(
                    &self.name,
                    format!("did not end within {patience:?}"),
                ));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Sends a signal to its group.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            // A group that is already gone is what we want.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Ends it and everything it started.
    pub fn stop(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::TERM);
            let start = Instant::now();
            while self.ended().is_none() && start.elapsed() < GRACE {
                std::thread::sleep(POLL);
            }
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        running().retain(|id| *id != self.child.id());
        if let Some(group) = self.group.take() {
            let _ = fs::remove_dir(group);
        }
    }

    /// The last lines it wrote.
    pub fn last_words(&self) -> String {
        last_lines(&self.log, 12)
    }

    /// The first lines it wrote that speak of an error, in one line; `None`: there is no such line.
    pub fn complaint(&self) -> Option<String> {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| line.contains("Error: ") || line.starts_with("error"))
            .take(3)
            .collect();
        (!lines.is_empty()).then(|| lines.join(" "))
    }

    fn limit_memory(&mut self, bytes: u64) {
        if let Some((group, how)) = memory_group(self.id(), bytes) {
            self.group = Some(group);
            self.memory_limit = Some(how);
            return;
        }
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        let pid = Pid::from_raw(self.id() as i32);
        self.memory_limit = match prlimit(pid, Resource::Data, limit) {
            Ok(_) => Some("RLIMIT_DATA"),
            Err(_) => None,
        };
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A control group with a memory limit and this process in it.
fn memory_group(pid: u32, bytes: u64) -> Option<(PathBuf, &'static str)> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let name = format!("ogive-bench-{pid}");
    let place = |root: &str, path: &str| Path::new(root).join(path.trim_start_matches('/'));
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (parent, file, how) = if controllers.is_empty() {
            (
                place("/sys/fs/cgroup", path),
                "memory.max",
                "control group v2",
            )
        } else if controllers.split(',').any(|c| c == "memory") {
            let parent = place("/sys/fs/cgroup/memory", path);
            // Inside a container the path may name what only the host sees.
            let parent = if parent.is_dir() {
                parent
            } else {
                PathBuf::from("/sys/fs/cgroup/memory")
            };
            (parent, "memory.limit_in_bytes", "control group v1")
        } else {
            continue;
        };
        let group = parent.join(&name);
        if fs::create_dir(&group).is_err() {
            continue;
        }
        let limited = fs::write(group.join(file), bytes.to_string())
            .and_then(|()| fs::write(group.join("cgroup.procs"), pid.to_string()));
        if limited.is_ok() {
            return Some((group, how));
        }
        let _ = fs::remove_dir(&group);
    }
    None
}

/// Runs something on a thread that may use these CPUs only; what it starts may use no others either.
pub fn on_cpus<T: Send + 'static>(
    cpus: &[usize],
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let cpus = cpus.to_vec();
    let thread = std::thread::spawn(move || {
        pin(&cpus);
        work()
    });
    thread
        .join()
        .map_err(|_| Error::program("ogive bench", "a thread of the lab panicked"))
}

/// Restricts the calling thread; where that is not allowed, nothing happens and the record says which CPUs were meant.
pub fn pin(cpus: &[usize]) {
    if cpus.is_empty() {
        return;
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    let _ = sched_setaffinity(None, &set);
}

/// CPUs this process may use.
pub fn cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// Runs a program to its end and gives back what it printed.
pub fn output(command: &[String], folder: &Path, env: &BTreeMap<String, String>) -> Result<String> {
    let (name, arguments) = command
        .split_first()
        .ok_or_else(|| Error::program("(nothing)", "an empty command"))?;
    let done = Command::new(name)
        .args(arguments)
        .envs(env)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::program(name, format!("cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    let all = format!("{text}{errors}");
    let lines: Vec<&str> = all.lines().collect();
    let last = lines[lines.len().saturating_sub(12)..].join("\n");
    Err(Error::program(
        name,
        format!("ended with {}:\n{last}", done.status),
    ))
}

/// The end of a file.
pub(crate) fn last_lines(path: &Path, n: usize) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}
