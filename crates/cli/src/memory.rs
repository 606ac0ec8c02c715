//! The allocator, and how memory goes back to the operating system.
//!
//! mimalloc by default, jemalloc with `--no-default-features --features jemalloc`, the system's with neither;
//! `bench/allocators.sh` compares them.
//!
//! mimalloc gives memory back when a thread allocates or frees, some time after it was freed. A thread that has nothing
//! to do does neither, so it is told to by [`give_back`] once it has come to rest. It asks for no huge pages: the first
//! of them would make an idle gateway half as large again. jemalloc has a thread of its own for that.
//!
//! Some time is too long where memory is short: each thread has a part of the address space of its own, so that what one
//! has freed is not what another one takes, and all of it counts for the process. When requests have given back a lot
//! ([`ogive_base::MemoryBudget::on_freed`]), all of it is given back soon ([`give_back_soon`]).

#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Gives the memory that the calling thread has freed back to the operating system. Takes about a millisecond.
#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
#[allow(unsafe_code, reason = "the allocator is a C library")]
pub(crate) fn give_back() {
    // SAFETY: it may be called at any time from any thread, and concerns no memory in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// Other allocators do it by themselves.
#[cfg(not(all(feature = "mimalloc", not(feature = "jemalloc"))))]
pub(crate) fn give_back() {}

/// Has what all threads have freed given back to the operating system, in a moment. That may take milliseconds, in which a
/// thread that frees has clients to answer, so a thread of its own does it, which is started the first time.
#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
pub(crate) fn give_back_soon() {
    use std::{
        sync::OnceLock,
        thread::{self, Thread},
    };

    static GIVING: OnceLock<Option<Thread>> = OnceLock::new();
    let giving = GIVING.get_or_init(|| {
        let give = || {
            loop {
                thread::park();
                give_back();
            }
        };
        let started = thread::Builder::new().name("ogive-memory".into());
        let started = started.spawn(give).ok();
        started.map(|handle| handle.thread().clone())
    });
    match giving {
        Some(thread) => thread.unpark(),
        None => give_back(),
    }
}

/// Other allocators do it by themselves.
#[cfg(not(all(feature = "mimalloc", not(feature = "jemalloc"))))]
pub(crate) fn give_back_soon() {}
