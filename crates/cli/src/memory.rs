//! The allocator, and how memory goes back to the operating system.
//!
//! mimalloc by default, jemalloc with `--no-default-features --features jemalloc`, the system's with neither; the
//! figures are in `docs/hot-path.md`, `bench/allocators.sh` prints them anew.
//!
//! mimalloc gives memory back when a thread allocates or frees, some time after it was freed. A thread that has nothing
//! to do does neither, so it is told to by [`give_back`] once it has come to rest. It asks for no huge pages: the first
//! of them would make an idle gateway half as large again. jemalloc has a thread of its own for that.

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
