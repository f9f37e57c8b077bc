//! The only module that imports atomics, so that loom can replace them.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// How the two sides of a store-then-load handshake order their store before their load.
///
/// The frequent side (a publishing writer) calls [`Barrier::light`], the rare side (a reader before it
/// sleeps, a writer that admits a reader) calls [`Barrier::heavy`]. Either both are full fences, or the heavy
/// one makes every thread of the other side execute one (`membarrier`), and the frequent side needs none.
pub trait Barrier {
    /// Called by the frequent side between its store and its load.
    fn light(&self);
    /// Called by the rare side between its store and its load.
    fn heavy(&self);
}

/// Full fences on both sides: always correct, but the publisher executes a fence per message.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullFences;

impl Barrier for FullFences {
    #[inline]
    fn light(&self) {
        fence(Ordering::SeqCst);
    }
    #[inline]
    fn heavy(&self) {
        fence(Ordering::SeqCst);
    }
}

/// One iteration of a loop that waits for another thread.
pub fn spin() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
