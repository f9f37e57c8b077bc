//! Allocator of the test executables: counts the allocations of each thread, and can refuse a thread's
//! allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Allocations of this thread. Node threads and other tests are not counted.
    pub static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// If true, this thread's allocations fail while [`NONE_LEFT`] is set.
    pub static IS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// If true, allocations of threads with [`IS_REFUSED`] fail.
pub static NONE_LEFT: AtomicBool = AtomicBool::new(false);

struct TestAllocator;

impl TestAllocator {
    /// Counts an allocation. Returns false if it is refused.
    fn admit() -> bool {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        !(NONE_LEFT.load(Ordering::Relaxed) && IS_REFUSED.try_with(Cell::get).unwrap_or(false))
    }
}

// SAFETY: each call that is not refused goes to the system allocator unchanged; nothing here allocates or
// unwinds.
unsafe impl GlobalAlloc for TestAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !Self::admit() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`; `System` allocated the memory.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        if !Self::admit() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller upholds the contract of `realloc`; `System` allocated the memory.
        unsafe { System.realloc(at, layout, len) }
    }
}

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;
