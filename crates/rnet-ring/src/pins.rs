//! Chunks that are read in place are not reused under the reader.
//!
//! A hazard-pointer protocol (M. Michael, "Hazard Pointers", IEEE TPDS 15(6), 2004) with the
//! hazards in the reader's own page: the reader names the chunk, then checks that the chunk still
//! carries the message; the writer ends the message, then looks for names. One of the two sees
//! the other. A reader that dies takes its page with it, which is the unpinning.

use crate::fail_point;
use crate::layout::ChunkHeader;
use crate::record::ChunkRef;
use crate::sync::{AtomicU64, Ordering, fence};

/// What a reader writes into a pin to hold a chunk: never 0.
pub fn pin_word(chunk: u32) -> u64 {
    u64::from(chunk) + 1
}

/// The reader's side: holds the chunk in `pin`, or returns `false` if the message is gone.
pub fn try_pin(pin: &AtomicU64, header: &ChunkHeader, message: ChunkRef) -> bool {
    pin.store(pin_word(message.chunk), Ordering::Relaxed);
    fail_point!("pin.set");
    // SYNC-PIN: pairs with the fence in `invalidate`.
    fence(Ordering::SeqCst);
    if header.generation.load(Ordering::Acquire) == message.generation {
        fail_point!("pin.held");
        return true;
    }
    unpin(pin);
    false
}

/// The reader's side: lets go. Its reads of the chunk are over.
pub fn unpin(pin: &AtomicU64) {
    // SYNC-UNPIN: pairs with the acquire load in `is_pinned`.
    pin.store(0, Ordering::Release);
    fail_point!("pin.released");
}

/// The writer's side: the chunk's message is over; no new pin will succeed.
pub fn invalidate(header: &ChunkHeader, next_generation: u64) {
    header.generation.store(next_generation, Ordering::Relaxed);
    fail_point!("pool.invalidate");
    // SYNC-PIN: see `try_pin`.
    fence(Ordering::SeqCst);
}

/// The writer's side, after [`invalidate`]: whether one of these pins holds the chunk.
pub fn is_pinned<'a>(chunk: u32, pins: impl IntoIterator<Item = &'a AtomicU64>) -> bool {
    let word = pin_word(chunk);
    // SYNC-UNPIN: see `unpin`.
    pins.into_iter().any(|pin| pin.load(Ordering::Acquire) == word)
}
