//! Counting what the allocator is asked for. Needs no valgrind; while nothing is counted, it costs three instructions a
//! call.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed},
};

static COUNTING: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, counted.
pub struct Counted;

/// What the allocator was asked for during one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Calls that give memory.
    pub allocations: u64,
    /// Most bytes held at a time, over what was held before.
    pub peak: u64,
    /// Bytes still held at the end, over what was held before.
    pub held: i64,
}

/// Counts what happens in `run`. Not for several threads at a time.
pub fn count<T>(run: impl FnOnce() -> T) -> (T, Heap) {
    CALLS.store(0, Relaxed);
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let out = run();
    COUNTING.store(false, Relaxed);
    let heap = Heap {
        allocations: CALLS.load(Relaxed),
        peak: PEAK.load(Relaxed).max(0) as u64,
        held: LIVE.load(Relaxed),
    };
    (out, heap)
}

#[cold]
fn given(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(bytes as i64, Relaxed) + bytes as i64;
    PEAK.fetch_max(live, Relaxed);
}
#[cold]
fn taken(bytes: usize) {
    LIVE.fetch_sub(bytes as i64, Relaxed);
}

#[allow(unsafe_code, reason = "there is no safe way to be an allocator")]
// SAFETY: every call is handed to the system's allocator as it is, and so is every answer.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTING.load(Relaxed) {
            given(layout.size());
        }
        // SAFETY: the caller's promises are those the system wants.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if COUNTING.load(Relaxed) {
            given(layout.size());
        }
        // SAFETY: the caller's promises are those the system wants.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if COUNTING.load(Relaxed) {
            taken(layout.size());
        }
        // SAFETY: `at` came from `System`, because everything here does.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if COUNTING.load(Relaxed) {
            taken(layout.size());
            given(size);
        }
        // SAFETY: `at` came from `System`, because everything here does.
        unsafe { System.realloc(at, layout, size) }
    }
}
