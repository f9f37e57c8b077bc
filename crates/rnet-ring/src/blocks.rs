//! How much of a log is in use, and where it stands.
//!
//! A log is cut into at most [`BLOCKS_PER_LOG`] blocks of equal length. The bytes of the log are a
//! window of the newest blocks, numbered by position; each stands at some *place* of the file, which
//! the table in the control page names. So the log is a ring of as many bytes as it has blocks, and
//! that number changes with the traffic, whenever the writer comes to a new block:
//!
//! - The new block takes the place of the oldest one, if nobody misses what stands there.
//! - Otherwise it takes a place of its own, and the log has one block more. Memory for it is asked
//!   for in advance, as much as there is already, so that a burst asks a few times only.
//! - If nobody misses the two oldest, the log has one block less. What is not used for a while is
//!   given back.
//!
//! Missed are messages younger than [`MIN_RETENTION_NS`], so that a reader may be late by that much; those
//! that a reader which keeps all has not read; and the newest ones that late joiners or a reader's
//! keep_last ask for. Where there is no memory or the log has all its blocks, the oldest block is
//! written over as readers allow: that is what a ring of fixed length does.

use crate::fail_point;
use crate::layout::BLOCKS_PER_LOG;
use crate::sync::{AtomicU64, Ordering};
use crate::writer::Gate;

/// How long a message stays in the log, in ns, while the log may grow.
pub const MIN_RETENTION_NS: u64 = 1_000_000_000;
/// How long a block must have been of no use, in ns, before its memory is given back.
pub const BLOCK_IDLE_NS: u64 = 4 * MIN_RETENTION_NS;
/// How long a log does not ask for memory again after it got none, in ns.
const RETRY_NS: u64 = MIN_RETENTION_NS;
/// Blocks that are given back at a time: each costs its processor microseconds.
const MAX_BLOCKS_RELEASED: u32 = 8;

/// The last message that reaches into a block.
#[derive(Clone, Copy, Debug, Default)]
struct NewestMessage {
    seq: u64,
    time_ns: u64,
}

/// The writer's private account of its blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Length of a block is 2 to this.
    bits: u32,
    /// Blocks that the log may have, a power of two.
    max_blocks: u64,
    /// Blocks that it has at least.
    min_blocks: u64,
    /// Blocks in use.
    used: u64,
    /// Number of the newest block.
    newest: u64,
    /// Where blocks stand, by number modulo `max_blocks`.
    places: [u8; BLOCKS_PER_LOG],
    /// The last message of each block, by number modulo `max_blocks`.
    newest_messages: [NewestMessage; BLOCKS_PER_LOG],
    /// Places that have memory, a bit each.
    backed: u64,
    /// Places that a block in use stands at, a bit each.
    occupied: u64,
    /// When a block was added last, or memory could not be had.
    grown_ns: u64,
    denied_ns: Option<u64>,
}

impl Blocks {
    /// The blocks of an empty log, of which the first `least` have memory.
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

    /// Bytes that the log holds now.
    pub(crate) fn capacity(&self) -> u64 {
        self.used << self.bits
    }

    /// Whether it may have more blocks than it has.
    pub(crate) fn may_grow(&self) -> bool {
        self.used < self.max_blocks
    }

    /// Bytes of a block.
    pub(crate) fn block_len(&self) -> u64 {
        1 << self.bits
    }

    /// Where the newest block ends, a position.
    pub(crate) fn end(&self) -> u64 {
        (self.newest + 1) << self.bits
    }

    /// Index of the word at a position of a block in use.
    pub(crate) fn index(&self, position: u64) -> usize {
        let place = u64::from(self.places[self.slot(position >> self.bits)]);
        let within = position & (self.block_len() - 1);
        ((place << self.bits | within) >> 3) as usize
    }

    fn slot(&self, number: u64) -> usize {
        (number & (self.max_blocks - 1)) as usize
    }

    /// Notes that the message is the first to reach into the newest block.
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

    /// Whether a message of the block is younger than `for_ns`, or one of the `newest`.
    fn is_needed(&self, number: u64, for_ns: u64, message: PendingMessage, newest: u64) -> bool {
        // What is being left has its youngest message yet to come.
        if number >= self.newest {
            return true;
        }
        let youngest = self.newest_messages[self.slot(number)];
        message.time_ns.saturating_sub(youngest.time_ns) < for_ns
            || youngest.seq.saturating_add(newest) >= message.seq
    }

    /// Opens the next block. The log's head must be at most [`Blocks::capacity`] behind
    /// [`Blocks::end`]: so it has left the block that the slot of the table named before.
    ///
    /// # Errors
    /// If late joiners would miss what is written over, and there is no memory.
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
        // SYNC-LAP: the head is past what this slot named before, and was stored before this; a
        // reader that sees this word sees that head.
        table[slot].store(u64::from(place), Ordering::Relaxed);
        fail_point!("push.block");
        Ok(())
    }

    /// A place of its own for the next block, unless it takes that of the oldest.
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

    /// A place that has memory and no block.
    fn backed_free_place(&mut self, message: PendingMessage, gate: &mut impl Gate) -> Option<u8> {
        if self.backed & !self.occupied == 0 {
            self.back_with_memory(message, gate);
        }
        let spare = self.backed & !self.occupied;
        (spare != 0).then(|| spare.trailing_zeros() as u8)
    }

    /// Asks for as much memory as the log has, or for one block.
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

    /// Gives back memory that was of no use for a while.
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

    /// Where the log would begin if it had a block less, if nobody would miss anything.
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

    /// The head has left the oldest block: its place is free.
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

/// There is no memory for what must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

fn mask(first: u32, count: u32) -> u64 {
    (u64::MAX >> (64 - count)) << first
}
