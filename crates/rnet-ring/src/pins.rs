//! Pins: chunks that are read in place are not reused.
//!
//! A hazard-pointer protocol (M. Michael, "Hazard Pointers", IEEE TPDS 15(6), 2004) with the hazards in the
//! reader's own page. The reader publishes the chunk and then checks that the chunk still carries the
//! message; the writer invalidates the message and then checks for pins. At least one of the two sees the
//! other. The page of a reader that dies disappears, which removes its pins.

use crate::fail_point;
use crate::layout::ChunkHeader;
use crate::record::ChunkRef;
use crate::sync::{AtomicU64, Ordering, fence};

/// The pin word that holds a chunk; never 0.
pub fn pin_word(chunk: u32) -> u64 {
    u64::from(chunk) + 1
}

/// Reader side: pins the chunk in `pin`; returns `false` if the message is gone.
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

/// Reader side: releases the pin. Its reads of the chunk are complete.
pub fn unpin(pin: &AtomicU64) {
    // SYNC-UNPIN: pairs with the acquire load in `is_pinned`.
    pin.store(0, Ordering::Release);
    fail_point!("pin.released");
}

/// Writer side: invalidates the chunk's message; new pins fail.
pub fn invalidate(header: &ChunkHeader, next_generation: u64) {
    header.generation.store(next_generation, Ordering::Relaxed);
    fail_point!("pool.invalidate");
    // SYNC-PIN: see `try_pin`.
    fence(Ordering::SeqCst);
}

/// Writer side, after [`invalidate`]: whether one of these pins holds the chunk.
pub fn is_pinned<'a>(chunk: u32, pins: impl IntoIterator<Item = &'a AtomicU64>) -> bool {
    let word = pin_word(chunk);
    // SYNC-UNPIN: see `unpin`.
    pins.into_iter().any(|pin| pin.load(Ordering::Acquire) == word)
}
