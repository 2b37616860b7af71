//! Counting allocations, to show that a hot path makes none.
//!
//! A test binary installs the allocator once and asks about a stretch of code:
//!
//! ```
//! use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let mut numbers = Vec::with_capacity(8);
//! let (allocations, ()) = allocations_during(|| numbers.extend(0..8));
//! assert_eq!(allocations, 0);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// The system's allocator, counting how often each thread asks it for memory: growing a block counts, giving it back
/// does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

thread_local! {
    // Initialised at compile time and without a destructor: using it allocates nothing.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    // Bytes that this thread has allocated and not freed, and their maximum. A block that another thread frees counts there.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Runs `work`, and returns the most bytes that this thread held meanwhile beyond those that it held before.
///
/// # Panics
/// If [`CountingAllocator`] is not this program's global allocator.
pub fn peak_during<R>(work: impl FnOnce() -> R) -> (u64, R) {
    let start = COUNT.get();
    drop(black_box(Box::new(0u8)));
    assert!(
        COUNT.get() > start,
        "the test binary has not installed CountingAllocator as its #[global_allocator]"
    );
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (u64::try_from(PEAK.get() - before).unwrap_or(0), result)
}

fn hold(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

/// Runs `work` and counts the allocations that this thread makes meanwhile.
///
/// # Panics
/// If [`CountingAllocator`] is not this program's global allocator: zero would mean nothing then.
pub fn allocations_during<R>(work: impl FnOnce() -> R) -> (u64, R) {
    let start = COUNT.get();
    drop(black_box(Box::new(0u8)));
    let before = COUNT.get();
    assert!(before > start, "the test binary has not installed CountingAllocator as its #[global_allocator]");
    let result = work();
    (COUNT.get() - before, result)
}

fn count() {
    // A thread's last moments may allocate when its locals are gone; nobody asks about those.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the trait's promises; counting
// neither allocates nor unwinds.
#[allow(unsafe_code, reason = "the trait is unsafe")]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size() as i64);
        // SAFETY: the caller's promises are the ones asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // While it is moved there are both.
        hold(size as i64);
        hold(-(layout.size() as i64));
        // SAFETY: as above; `block` came from the same allocator.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: as above; `block` came from the same allocator.
        unsafe { System.dealloc(block, layout) }
    }
}
