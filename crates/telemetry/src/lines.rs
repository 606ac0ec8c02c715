//! Lines on their way to a file or a stream: a bounded queue, and one thread that writes.
//!
//! Whoever has a line never waits for a reader: it is appended to what waits, under a lock that is never held while
//! something is written. What finds no room is dropped and counted, and told once there is room again. A thread that a
//! reader keeps waiting holds up neither an answer nor the end of the process ([`Lines::finish`] has a deadline).

use std::{
    fs::File,
    io::{self, ErrorKind, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ogive_files::append;

/// Most bytes that wait to be written; as many again may be on their way.
pub const WAITING_BYTES_MAX: usize = 1 << 20;
/// Room that a writer keeps while it rests.
const KEPT_BYTES: usize = 64 << 10;
/// How often the writer looks whether its file was replaced.
const ROTATION_INTERVAL: Duration = Duration::from_secs(1);
/// How long the same kind of trouble is not told again.
const TOLD_INTERVAL: Duration = Duration::from_secs(60);
/// How long a stream that takes nothing for now is left alone.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);
/// Who may read a file that is made: its owner and group.
const FILE_MODE: u32 = 0o640;

/// Where lines go.
#[derive(Debug)]
pub enum Target {
    /// Something that is open.
    Stream(File),
    /// A file that lines are appended to.
    Path(PathBuf),
}

/// What somebody has to be told.
#[derive(Debug)]
pub enum Trouble<'a> {
    /// So many lines were dropped, because what waited before them was not taken.
    Dropped(u64),
    /// Lines could not be written. Told once, until one could be.
    Failed(&'a io::Error),
    /// Lines are written again; so many are missing.
    Mended(u64),
}

/// What became of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineCounts {
    /// Lines that nobody will read: there was no room, or they could not be written.
    pub dropped: u64,
    /// Attempts to write that failed.
    pub errors: u64,
}

/// A queue and its thread, which ends when this is dropped.
#[derive(Debug)]
pub struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The writer has something to do.
    work: Condvar,
    /// The writer has written all it had taken.
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines.
    waiting: Vec<u8>,
    n_waiting: u64,
    /// Lines that were taken in and those that are written or lost, ever.
    taken_in: u64,
    finished: u64,
    counts: LineCounts,
    /// Dropped lines that nobody was told of.
    untold: u64,
    asleep: bool,
    reopen: bool,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of it is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// Opens the target and starts the thread. `tell` hears of trouble; it may push lines itself.
    pub fn start(
        thread: &str,
        target: Target,
        tell: impl FnMut(Trouble<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let out = Out::open(target)?;
        let shared = Arc::<Shared>::default();
        let mine = Arc::clone(&shared);
        let writer = Writer {
            out,
            tell: Box::new(tell),
            told: Vec::new(),
            lost: 0,
            torn: false,
        };
        std::thread::Builder::new()
            .name(thread.to_owned())
            .spawn(move || writer.run(&mine))?;
        Ok(Lines(shared))
    }
    /// Takes a line in, its end included. Says whether there was room.
    pub fn push(&self, line: &[u8]) -> bool {
        let mut state = self.0.lock();
        let fits = state.waiting.len() + line.len() <= WAITING_BYTES_MAX;
        if fits {
            state.waiting.extend_from_slice(line);
            state.n_waiting += 1;
            state.taken_in += 1;
        } else {
            state.counts.dropped += 1;
            state.untold += 1;
        }
        if state.asleep {
            state.asleep = false;
            self.0.work.notify_one();
        }
        fits
    }
    /// Opens the file anew before anything else is written.
    pub fn reopen(&self) {
        let mut state = self.0.lock();
        state.reopen = true;
        state.asleep = false;
        self.0.work.notify_one();
    }
    /// Waits until what was taken in so far is written, but not longer than `patience`. Says whether it is.
    pub fn finish(&self, patience: Duration) -> bool {
        let state = self.0.lock();
        let goal = state.taken_in;
        let waited = self
            .0
            .done
            .wait_timeout_while(state, patience, |state| state.finished < goal);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
    /// What became of lines so far.
    pub fn counts(&self) -> LineCounts {
        self.0.lock().counts
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_one();
    }
}

struct Writer {
    out: Out,
    tell: Box<dyn FnMut(Trouble<'_>) + Send>,
    /// Kinds of errors that were told, and when.
    told: Vec<(ErrorKind, Instant)>,
    /// Lines lost to errors since one could be written.
    lost: u64,
    /// Whether the last line that was written has no end.
    torn: bool,
}

impl Writer {
    fn run(mut self, shared: &Shared) {
        let mut bytes = Vec::new();
        while let Some(taken) = take(shared, &mut bytes) {
            if taken.untold > 0 {
                // What is told stands behind the lines that had no room before it.
                (self.tell)(Trouble::Dropped(taken.untold));
            }
            if let Err(error) = self.out.refresh(taken.reopen) {
                self.failed(shared, &error, 0);
            }
            if !bytes.is_empty() {
                match self.write(&bytes) {
                    Ok(()) if self.lost > 0 => {
                        (self.tell)(Trouble::Mended(std::mem::take(&mut self.lost)));
                    }
                    Ok(()) => {}
                    Err(error) => self.failed(shared, &error, taken.lines),
                }
            }
            bytes.clear();
            bytes.shrink_to(KEPT_BYTES);
            shared.lock().finished += taken.lines;
            shared.done.notify_all();
        }
    }
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.torn) {
            // A line that was cut off must not spoil the next one.
            self.out.file.write_all(b"\n")?;
        }
        while !bytes.is_empty() {
            match self.out.file.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.torn = bytes[n - 1] != b'\n';
                    bytes = &bytes[n..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(BUSY_INTERVAL);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
    fn failed(&mut self, shared: &Shared, error: &io::Error, lines: u64) {
        let mut state = shared.lock();
        state.counts.errors += 1;
        state.counts.dropped += lines;
        drop(state);
        self.lost += lines;
        self.told.retain(|(_, when)| when.elapsed() < TOLD_INTERVAL);
        if !self.told.iter().any(|(kind, _)| *kind == error.kind()) {
            self.told.push((error.kind(), Instant::now()));
            (self.tell)(Trouble::Failed(error));
        }
    }
}

/// What a writer took at a time.
struct Taken {
    lines: u64,
    untold: u64,
    reopen: bool,
}

/// Waits for something to do, and takes it. `None`: there is nothing left, and nothing will come.
fn take(shared: &Shared, bytes: &mut Vec<u8>) -> Option<Taken> {
    let mut state = shared.lock();
    while state.waiting.is_empty() && state.untold == 0 && !state.reopen {
        if state.closed {
            return None;
        }
        state.asleep = true;
        state = shared
            .work
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
    state.asleep = false;
    std::mem::swap(bytes, &mut state.waiting);
    Some(Taken {
        lines: std::mem::take(&mut state.n_waiting),
        untold: std::mem::take(&mut state.untold),
        reopen: std::mem::take(&mut state.reopen),
    })
}

/// What is written to.
struct Out {
    file: File,
    path: Option<PathBuf>,
    looked: Instant,
}

impl Out {
    fn open(target: Target) -> io::Result<Self> {
        let (file, path) = match target {
            Target::Stream(file) => (file, None),
            Target::Path(path) => (append(&path, FILE_MODE)?, Some(path)),
        };
        Ok(Out {
            file,
            path,
            looked: Instant::now(),
        })
    }
    /// Opens the file anew if that is asked for, or if another one has its name now.
    fn refresh(&mut self, reopen: bool) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        if reopen || self.looked.elapsed() >= ROTATION_INTERVAL {
            self.looked = Instant::now();
            if reopen || !is_at(&self.file, path) {
                self.file = append(path, FILE_MODE)?;
            }
        }
        Ok(())
    }
}

/// Whether a file is the one of that name. If that cannot be told, it is not.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), std::fs::metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::fs::PermissionsExt, sync::mpsc::channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("ogive-lines-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_reader_that_is_stuck_costs_lines_and_nothing_else() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (tell, told) = channel();
        let target = Target::Stream(File::from(std::os::fd::OwnedFd::from(writer)));
        let lines = Lines::start("lines", target, move |trouble| {
            if let Trouble::Dropped(n) = trouble {
                tell.send(n).unwrap();
            }
        })
        .unwrap();
        let line = [b"x".repeat(1_023), b"\n".to_vec()].concat();
        // Twice what may wait, and what the pipe and the writer hold.
        let n = 4 * WAITING_BYTES_MAX / line.len();
        let fitted = (0..n).filter(|_| lines.push(&line)).count();
        assert!(fitted < n, "all {n} fitted");
        assert!(!lines.finish(Duration::from_millis(1)));
        let dropped = lines.counts().dropped;
        assert_eq!(dropped as usize, n - fitted);
        let mut all = vec![0; fitted * line.len()];
        reader.read_exact(&mut all).unwrap();
        assert!(lines.finish(PATIENCE));
        // The last of them is told of when it flows again.
        let mut sum = 0;
        while sum < dropped {
            sum += told.recv_timeout(PATIENCE).unwrap();
        }
        assert_eq!(sum, dropped);
        assert!(all.chunks(line.len()).all(|found| found == line));
    }

    #[test]
    fn a_file_is_opened_anew_when_asked_and_only_its_group_may_read_it() {
        let folder = folder("reopened");
        let path = folder.join("log");
        let lines = Lines::start("lines", Target::Path(path.clone()), |_| {}).unwrap();
        assert!(lines.push(b"one\n") && lines.finish(PATIENCE));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o137, 0, "{mode:o}");
        std::fs::rename(&path, folder.join("log.1")).unwrap();
        lines.reopen();
        assert!(lines.push(b"two\n") && lines.finish(PATIENCE));
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            (read("log.1"), read("log")),
            ("one\n".into(), "two\n".into())
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_was_replaced_is_noticed() {
        let folder = folder("replaced");
        let path = folder.join("log");
        let mut out = Out::open(Target::Path(path.clone())).unwrap();
        out.file.write_all(b"one\n").unwrap();
        std::fs::rename(&path, folder.join("log.1")).unwrap();
        out.looked -= ROTATION_INTERVAL;
        out.refresh(false).unwrap();
        out.file.write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_failure_to_write_is_told_once_and_counted() {
        let (tell, told) = channel();
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let lines = Lines::start("lines", Target::Stream(full), move |trouble| {
            if let Trouble::Failed(error) = trouble {
                tell.send(error.kind()).unwrap();
            }
        })
        .unwrap();
        for _ in 0..3 {
            assert!(lines.push(b"lost\n") && lines.finish(PATIENCE));
        }
        let expected = LineCounts {
            dropped: 3,
            errors: 3,
        };
        assert_eq!(lines.counts(), expected);
        drop(lines);
        let kinds: Vec<ErrorKind> = told.iter().collect();
        assert_eq!(kinds, [ErrorKind::StorageFull]);
    }
}
