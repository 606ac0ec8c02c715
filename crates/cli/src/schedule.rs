//! How the operating system shares a core between threads of this process.
//!
//! Where there are fewer cores than threads that compute, priority decides who has how much of one, but not when: a
//! thread that has begun its slice is not interrupted for one of more importance, and on a worker's core that is
//! milliseconds in which nobody is answered. What decides is the length of the slices: since Linux 6.12 a thread that
//! wakes interrupts one with longer slices than its own (EEVDF, `sched_runtime` of `sched_setattr(2)`). So workers ask for
//! the shortest, and threads for heavy work for long ones. It costs nothing where cores are free, and no right is needed
//! for it. Older kernels and other systems leave everything as it is.
//!
//! The kernel compares slices only when some thread wakes, and at the ticks of its clock, milliseconds apart. A worker that
//! has just had more than its share when it wakes is not due yet, and would wait for the next tick, although it is due a
//! moment later. So where there is only one core, something wakes every [`LOOK`] while there is heavy work, and has the
//! kernel look again.

use std::{
    cell::RefCell,
    num::NonZeroUsize,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

/// Of workers; the shortest there is.
const WORKER: Duration = Duration::from_micros(100);
/// Of threads for heavy work.
const HEAVY: Duration = Duration::from_millis(20);
/// How often the kernel looks who is due on a single core. Costs about half a percent of it.
const LOOK: Duration = Duration::from_micros(250);

/// For a thread that answers clients, called on it.
pub(crate) fn of_worker() {
    ask_for(WORKER);
}

/// For a thread that does what takes long, called on it.
pub(crate) fn of_heavy_work() {
    ask_for(HEAVY);
    if cfg!(target_os = "linux")
        && thread::available_parallelism().is_ok_and(|cores| cores == NonZeroUsize::MIN)
    {
        LOOKED_AT.with_borrow_mut(|looked_at| *looked_at = look_while_this_runs());
    }
}

thread_local! {
    /// What goes with the thread.
    static LOOKED_AT: RefCell<Option<Sender<()>>> = const { RefCell::new(None) };
}

/// Wakes a thread again and again, until what this gives is dropped.
fn look_while_this_runs() -> Option<Sender<()>> {
    let (sender, receiver) = mpsc::channel();
    let look = move || {
        of_worker();
        while receiver.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {}
    };
    let started = thread::Builder::new().name("ogive-look".into()).spawn(look);
    started.ok().map(|_| sender)
}

#[cfg(target_os = "linux")]
fn ask_for(slice: Duration) {
    if let Err(error) = linux::ask_for(slice) {
        tracing::debug!(%error, "slices of a thread stay as they are");
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for(_: Duration) {}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no library has this system call")]
mod linux {
    use std::{io, mem::size_of, time::Duration};

    use libc::{SCHED_OTHER, SYS_sched_getattr, SYS_sched_setattr, sched_attr, syscall};

    /// Of `sched_attr`: known since its first version, and all that is needed.
    const SIZE: u32 = size_of::<sched_attr>() as u32;
    /// The thread that calls.
    const SELF: libc::pid_t = 0;

    pub(super) fn ask_for(slice: Duration) -> io::Result<()> {
        let mut attributes = current()?;
        // Whoever was started with another policy was meant to have it.
        if attributes.sched_policy != SCHED_OTHER as u32 {
            return Ok(());
        }
        attributes.sched_runtime = slice.as_nanos() as u64;
        // SAFETY: the kernel reads as many bytes of the record as `size` in it says, which `current` has made those that
        // it has; nothing is kept.
        let result = unsafe { syscall(SYS_sched_setattr, SELF, &raw const attributes, 0) };
        done(result)
    }

    /// What the calling thread has.
    pub(super) fn current() -> io::Result<sched_attr> {
        let mut attributes = sched_attr {
            size: SIZE,
            sched_policy: 0,
            sched_flags: 0,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the kernel writes `SIZE` bytes at most, which the record has; any value of its numbers is valid.
        let result = unsafe { syscall(SYS_sched_getattr, SELF, &raw mut attributes, SIZE, 0) };
        done(result)?;
        Ok(attributes)
    }

    fn done(result: libc::c_long) -> io::Result<()> {
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_policy_and_priority() {
        let slices = || linux::current().map(|a| (a.sched_policy, a.sched_nice, a.sched_runtime));
        let before = slices().unwrap();
        linux::ask_for(HEAVY).unwrap();
        let after = slices().unwrap();
        assert_eq!((before.0, before.1), (after.0, after.1));
        // Kernels before 6.12 know no slices, and say 0.
        let slice = if before.2 == 0 {
            0
        } else {
            HEAVY.as_nanos() as u64
        };
        assert_eq!(after.2, slice);
    }
}
