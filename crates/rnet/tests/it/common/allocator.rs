//! The allocator of test executables: it counts what each thread allocates, and refuses a thread memory on request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Allocations of this thread. The threads of a node, and other tests, are not counted.
    pub static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Whether this thread gets no memory while [`NONE_LEFT`] is set.
    pub static IS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether threads with [`IS_REFUSED`] get no memory.
pub static NONE_LEFT: AtomicBool = AtomicBool::new(false);

struct TestAllocator;

impl TestAllocator {
    /// Counts an allocation; false if it is refused.
    fn admit() -> bool {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        !(NONE_LEFT.load(Ordering::Relaxed) && IS_REFUSED.try_with(Cell::get).unwrap_or(false))
    }
}

// SAFETY: every call that is not refused goes to the system's allocator unchanged; nothing here allocates or unwinds.
unsafe impl GlobalAlloc for TestAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !Self::admit() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`; the memory is of `System`.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        if !Self::admit() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the promises of `realloc`; the memory is of `System`.
        unsafe { System.realloc(at, layout, len) }
    }
}

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;
