//! The blocks of a log: how many are in use, and where they are.
//!
//! A log consists of at most [`BLOCKS_PER_LOG`] blocks of equal length. Its bytes are a window of the newest
//! blocks, numbered by position. Each block occupies a *place* of the file; the table in the control page
//! maps numbers to places. The log is therefore a ring of as many bytes as it has blocks. The number of
//! blocks changes with the traffic, whenever the writer reaches a new block:
//!
//! - The new block reuses the place of the oldest one if the content of the oldest is no longer needed.
//! - Otherwise it gets an additional place, and the log grows by one block. Memory is allocated in advance,
//!   as much as the log already has, so that a burst needs only a few allocations.
//! - If the two oldest blocks are no longer needed, the log shrinks by one block. Memory that is unused for a
//!   while is released.
//!
//! Needed are messages younger than [`MIN_RETENTION_NS`], so that a reader may be late by that much; those
//! that a reader with keep_all has not read; and the newest ones that late joiners or a reader's keep_last
//! require. If memory is not available or the log has all its blocks, the oldest block is overwritten as soon
//! as readers allow, as in a ring of fixed length.

use crate::fail_point;
use crate::layout::BLOCKS_PER_LOG;
use crate::sync::{AtomicU64, Ordering};
use crate::writer::Gate;

/// Minimum retention of a message, in ns, while the log may grow.
pub const MIN_RETENTION_NS: u64 = 1_000_000_000;
/// How long a block must be unused, in ns, before its memory is released.
pub const BLOCK_IDLE_NS: u64 = 4 * MIN_RETENTION_NS;
/// Delay after a failed allocation before the log allocates again, in ns.
const RETRY_NS: u64 = MIN_RETENTION_NS;
/// Blocks released at a time: each release takes microseconds of CPU time.
const MAX_BLOCKS_RELEASED: u32 = 8;

/// The last message that extends into a block.
#[derive(Clone, Copy, Debug, Default)]
struct NewestMessage {
    seq: u64,
    time_ns: u64,
}

/// The writer's private bookkeeping of its blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Binary logarithm of the block length.
    bits: u32,
    /// Maximum number of blocks, a power of two.
    max_blocks: u64,
    /// Minimum number of blocks.
    min_blocks: u64,
    /// Blocks in use.
    used: u64,
    /// Number of the newest block.
    newest: u64,
    /// The place of each block, by number modulo `max_blocks`.
    places: [u8; BLOCKS_PER_LOG],
    /// The last message of each block, by number modulo `max_blocks`.
    newest_messages: [NewestMessage; BLOCKS_PER_LOG],
    /// Bit set of the places that have memory.
    backed: u64,
    /// Bit set of the places that hold a block in use.
    occupied: u64,
    /// Time of the last growth or failed allocation.
    grown_ns: u64,
    denied_ns: Option<u64>,
}

impl Blocks {
    /// The blocks of an empty log; the first `least` have memory.
    pub(crate) fn new(block_len: u64, most: u64, least: u64) -> Blocks {
        debug_assert!(most.is_power_of_two() && most <= BLOCKS_PER_LOG as u64);
        let least = least.clamp(1, most);
        Blocks {
            bits: block_len.ilog2(),
            max_blocks: most,
            min_blocks: least,
            used: 1,
            newest: 0,
            places: [0; BLOCKS_PER_LOG],
            newest_messages: [NewestMessage::default(); BLOCKS_PER_LOG],
            backed: u64::MAX >> (64 - least),
            occupied: 1,
            grown_ns: 0,
            denied_ns: None,
        }
    }

    /// Current capacity of the log in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.used << self.bits
    }

    /// Whether it may grow.
    pub(crate) fn may_grow(&self) -> bool {
        self.used < self.max_blocks
    }

    /// Length of a block in bytes.
    pub(crate) fn block_len(&self) -> u64 {
        1 << self.bits
    }

    /// End of the newest block, a position.
    pub(crate) fn end(&self) -> u64 {
        (self.newest + 1) << self.bits
    }

    /// Word index of a position in a block in use.
    pub(crate) fn index(&self, position: u64) -> usize {
        let place = u64::from(self.places[self.slot(position >> self.bits)]);
        let within = position & (self.block_len() - 1);
        ((place << self.bits | within) >> 3) as usize
    }

    fn slot(&self, number: u64) -> usize {
        (number & (self.max_blocks - 1)) as usize
    }

    /// Records that the message is the first to extend into the newest block.
    pub(crate) fn note_end(&mut self, message: PendingMessage) {
        if let Some(before) = self.newest.checked_sub(1) {
            let PendingMessage { seq, time_ns } = message;
            self.newest_messages[self.slot(before)] = NewestMessage { seq, time_ns };
        }
    }

    /// Number of the oldest block in use.
    fn oldest(&self) -> u64 {
        self.newest + 1 - self.used
    }

    /// Whether the block is needed: it has a message younger than `for_ns`, or one of the `newest`.
    fn is_needed(&self, number: u64, for_ns: u64, message: PendingMessage, newest: u64) -> bool {
        // The youngest message of the current block is not yet written.
        if number >= self.newest {
            return true;
        }
        let youngest = self.newest_messages[self.slot(number)];
        message.time_ns.saturating_sub(youngest.time_ns) < for_ns
            || youngest.seq.saturating_add(newest) >= message.seq
    }

    /// Opens the next block. The log's head must be at most [`Blocks::capacity`] behind [`Blocks::end`]: it
    /// has then left the block that the table slot referred to before.
    ///
    /// # Errors
    /// If late joiners need what would be overwritten, and memory is not available.
    pub(crate) fn open(
        &mut self,
        table: &[AtomicU64],
        message: PendingMessage,
        gate: &mut impl Gate,
    ) -> Result<(), OutOfMemory> {
        let number = self.newest + 1;
        let place = match self.extra_place(message, gate)? {
            Some(place) => {
                self.used += 1;
                self.grown_ns = message.time_ns;
                place
            }
            None => self.places[self.slot(self.oldest())],
        };
        self.occupied |= 1 << place;
        self.newest = number;
        let slot = self.slot(number);
        self.places[slot] = place;
        // SYNC-LAP: the head is past the former block of this slot and was stored before this word; a reader
        // that sees this word sees that head.
        table[slot].store(u64::from(place), Ordering::Relaxed);
        fail_point!("push.block");
        Ok(())
    }

    /// An additional place for the next block; `None` to reuse the place of the oldest.
    fn extra_place(
        &mut self,
        message: PendingMessage,
        gate: &mut impl Gate,
    ) -> Result<Option<u8>, OutOfMemory> {
        if self.used == self.max_blocks {
            return Ok(None);
        }
        let oldest = self.oldest();
        let retention = gate.retention();
        let misses = self.used < self.min_blocks
            || self.is_needed(
                oldest,
                MIN_RETENTION_NS,
                message,
                retention.newest.max(retention.history),
            )
            || gate.lowest_wanted() < (oldest + 1) << self.bits;
        if !misses {
            return Ok(None);
        }
        if let Some(place) = self.backed_free_place(message, gate) {
            return Ok(Some(place));
        }
        if retention.history != 0 && self.is_needed(oldest, 0, message, retention.history) {
            return Err(OutOfMemory);
        }
        Ok(None)
    }

    /// A place with memory and without a block.
    fn backed_free_place(&mut self, message: PendingMessage, gate: &mut impl Gate) -> Option<u8> {
        if self.backed & !self.occupied == 0 {
            self.back_with_memory(message, gate);
        }
        let spare = self.backed & !self.occupied;
        (spare != 0).then(|| spare.trailing_zeros() as u8)
    }

    /// Allocates as much memory as the log has, or one block.
    fn back_with_memory(&mut self, message: PendingMessage, gate: &mut impl Gate) {
        if self.denied_ns.is_some_and(|then| message.time_ns.saturating_sub(then) < RETRY_NS) {
            return;
        }
        let first = (!self.backed).trailing_zeros();
        let run = (self.backed >> first).trailing_zeros().min(self.max_blocks as u32 - first);
        for count in [run.min(self.used as u32), 1] {
            if gate.back_with_memory(first, count) {
                self.backed |= mask(first, count);
                self.denied_ns = None;
                return;
            }
        }
        self.denied_ns = Some(message.time_ns);
    }

    /// Releases memory that was unused for a while.
    pub(crate) fn release_memory(&mut self, message: PendingMessage, gate: &mut impl Gate) {
        let spare = self.backed & !self.occupied;
        let waits = self.used < self.min_blocks
            || message.time_ns.saturating_sub(self.grown_ns) < BLOCK_IDLE_NS;
        if spare == 0 || waits {
            return;
        }
        let first = spare.trailing_zeros();
        let run = (!(spare >> first)).trailing_zeros().min(MAX_BLOCKS_RELEASED);
        if gate.release_memory(first, run) {
            self.backed &= !mask(first, run);
        }
    }

    /// The position at which the log would start with one block less, if that loses nothing needed.
    pub(crate) fn could_begin(&self, message: PendingMessage, gate: &mut impl Gate) -> Option<u64> {
        if self.used <= self.min_blocks {
            return None;
        }
        let next = self.oldest() + 1;
        if self.is_needed(next, BLOCK_IDLE_NS, message, 0) {
            return None;
        }
        let retention = gate.retention();
        let missed =
            self.is_needed(next, BLOCK_IDLE_NS, message, retention.newest.max(retention.history))
                || gate.lowest_read() < (next + 1) << self.bits;
        (!missed).then_some(next << self.bits)
    }

    /// The head has left the oldest block; its place is free.
    pub(crate) fn drop_oldest(&mut self) {
        let place = self.places[self.slot(self.oldest())];
        self.occupied &= !(1 << place);
        self.used -= 1;
    }
}

/// The message that is about to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingMessage {
    pub(crate) seq: u64,
    pub(crate) time_ns: u64,
}

/// Memory for messages that must be kept is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

fn mask(first: u32, count: u32) -> u64 {
    (u64::MAX >> (64 - count)) << first
}
