//! Slabs: 64 KiB of blocks of one class, or a part of a larger block. A word of the table contains the state
//! of each slab; processes claim slabs there.

use super::block_words::{BlockHeader, FREE, IS_LEAF, IS_NODE, IS_TXN, PRIVATE};
use super::layout::{CLASS_UNITS, LOW_AT, PROCESS_SLAB, SLAB_UNITS, SLAB_WORDS, SPAN_CLASS};
use super::region::{Environment, Region};
use crate::fail_point;
use crate::sync::Ordering;

/// States of a slab, bits 8..16 of its word in the table.
const UNUSED: u64 = 0;
const CLAIMED: u64 = 1;
pub(crate) const BLOCKS: u64 = 2;
pub(crate) const SPAN: u64 = 3;
pub(crate) const SPAN_REST: u64 = 4;
/// Blocks that are not allocated now, because a process checks whether all are free.
const EMPTYING: u64 = 5;
const BACKED: u64 = 1 << 63;

/// A slab's word: class, state, claiming process slot, free blocks or slabs of the span, backed flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slab(pub(crate) u64);

impl Slab {
    pub(crate) const fn new(class: usize, state: u64, process_slot: u16, count: u64) -> Slab {
        Slab(class as u64 | state << 8 | (process_slot as u64) << 16 | count << 32 | BACKED)
    }
    pub(crate) fn class(self) -> usize {
        (self.0 & 0xff) as usize
    }
    fn state(self) -> u64 {
        self.0 >> 8 & 0xff
    }
    fn process_slot(self) -> u16 {
        (self.0 >> 16) as u16
    }
    /// Free blocks as far as known, or number of slabs of a span.
    pub(crate) fn count(self) -> usize {
        (self.0 >> 32 & 0xf_ffff) as usize
    }
    /// Only claimed by this process slot.
    pub(crate) fn is_claimed_by(self, process_slot: u16) -> bool {
        self.state() == CLAIMED && self.process_slot() == process_slot
    }
    /// Continuation of a span of this process slot.
    pub(crate) fn is_rest_of(self, process_slot: u16) -> bool {
        self.state() == SPAN_REST && self.process_slot() == process_slot
    }
    pub(crate) fn has_blocks(self) -> bool {
        matches!(self.state(), BLOCKS | EMPTYING) && self.class() < SPAN_CLASS
    }
    /// Has blocks that can be claimed.
    pub(crate) fn is_open(self) -> bool {
        self.has_blocks() && self.state() == BLOCKS
    }
    fn is_emptied_by(self, process_slot: u16) -> bool {
        self.state() == EMPTYING && self.process_slot() == process_slot
    }
    /// The same slab in another state.
    const fn with_state(self, state: u64, process_slot: u16) -> Slab {
        Slab(self.0 & !0xffff_ff00 | state << 8 | (process_slot as u64) << 16)
    }
    pub(crate) fn is_span(self) -> bool {
        self.state() == SPAN
    }
}

/// Number of blocks in a slab of this class.
pub(crate) fn blocks_per_slab(class: usize) -> usize {
    SLAB_UNITS / usize::from(CLASS_UNITS[class])
}

impl Region<'_> {
    /// Adjusts the free count. The count is a hint: a process killed in between leaves it wrong; a scan of
    /// the slab determines the real state.
    pub(crate) fn count_free(&self, slab: usize, change: i64) {
        let word = self.slab(slab);
        let mut now = word.load(Ordering::Relaxed);
        loop {
            let known = Slab(now);
            if !known.has_blocks() {
                return;
            }
            let limit = blocks_per_slab(known.class()) as i64;
            let count = (known.count() as i64 + change).clamp(0, limit) as u64;
            let next = known.0 & !(0xf_ffff << 32) | count << 32;
            match word.compare_exchange(now, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }

    /// Claims `count` consecutive slabs, backs them with memory and initializes their headers as free.
    pub(crate) fn claim_slabs(
        &self,
        process_slot: u16,
        env: &impl Environment,
        count: usize,
        class: usize,
    ) -> Option<usize> {
        let first = self.claim_unused(process_slot, env, count, class);
        if first.is_some() {
            return first;
        }
        // A process killed while freeing a slab may have left it below the recorded minimum.
        self.at(LOW_AT).store(0, Ordering::Release);
        self.empty_slabs(process_slot);
        self.claim_unused(process_slot, env, count, class)
    }

    fn claim_unused(
        &self,
        process_slot: u16,
        env: &impl Environment,
        count: usize,
        class: usize,
    ) -> Option<usize> {
        let low = self.at(LOW_AT).load(Ordering::Acquire);
        // The word is untrusted.
        let mut first = (low as usize).min(self.geometry.slabs);
        while first + count <= self.geometry.slabs {
            let taken = (0..count).find(|i| !self.claim_slab(first + i, process_slot, class));
            match taken {
                None => {
                    if count == 1 {
                        self.raise_low(low, first);
                    }
                    self.high().fetch_max((first + count) as u64, Ordering::AcqRel);
                    if self.back_slabs(env, first, count, class) {
                        return Some(first);
                    }
                    self.unclaim(first, count);
                    return None;
                }
                Some(at) => {
                    self.unclaim(first, at);
                    first += at + 1;
                }
            }
        }
        None
    }

    /// Raises the minimum: all slabs below `first` were in use when they were checked.
    fn raise_low(&self, low: u64, first: usize) {
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        if self.at(LOW_AT).compare_exchange(low, first as u64 + 1, ok, miss).is_ok() {
            // A slab may have become unused since, and its update may have been overwritten here.
            let unused =
                |slab: &usize| Slab(self.slab(*slab).load(Ordering::Acquire)).state() == UNUSED;
            let from = (low as usize).min(first);
            if let Some(slab) = (from..first).find(unused) {
                self.at(LOW_AT).fetch_min(slab as u64, Ordering::AcqRel);
            }
        }
    }

    fn claim_slab(&self, slab: usize, process_slot: u16, class: usize) -> bool {
        let word = self.slab(slab);
        let now = word.load(Ordering::Acquire);
        if Slab(now).state() != UNUSED {
            return false;
        }
        let claimed = class as u64 | CLAIMED << 8 | u64::from(process_slot) << 16 | now & BACKED;
        word.compare_exchange(now, claimed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn unclaim(&self, first: usize, count: usize) {
        for slab in first..first + count {
            let word = self.slab(slab);
            word.store(word.load(Ordering::Relaxed) & BACKED, Ordering::Release);
        }
        if count > 0 {
            self.at(LOW_AT).fetch_min(first as u64, Ordering::AcqRel);
        }
    }

    /// Makes slabs with only free blocks unused, so that they can get another class.
    fn empty_slabs(&self, process_slot: u16) {
        for slab in 0..self.slabs_in_use() {
            let known = Slab(self.slab(slab).load(Ordering::Acquire));
            if known.is_open() && known.count() == blocks_per_slab(known.class()) {
                self.empty_slab(process_slot, slab, known);
            }
        }
    }

    fn empty_slab(&self, process_slot: u16, slab: usize, known: Slab) {
        let class = known.class();
        let word = self.slab(slab);
        let emptying = known.with_state(EMPTYING, process_slot).0;
        // SYNC-SLAB: pairs with `claim_blocks`: a process that claims blocks here is seen, or sees this
        // state.
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        if !known.is_open() || word.compare_exchange(known.0, emptying, ok, miss).is_err() {
            return;
        }
        fail_point!("state.emptying");
        let searched = (0..self.geometry.process_slots)
            .any(|l| self.process_slot(l, PROCESS_SLAB).load(Ordering::SeqCst) == slab as u64 + 1);
        let unit = |index: usize| {
            (slab * SLAB_UNITS) as u32 + index as u32 * u32::from(CLASS_UNITS[class])
        };
        let blocks = blocks_per_slab(class);
        let turn = |index: usize, from: u64, to: u64, process_slot: u16| {
            let Some(block) = self.block(unit(index)) else { return false };
            let head = BlockHeader(block[0].load(Ordering::Acquire));
            let next = BlockHeader::new(to, process_slot, head.tag()).0;
            head.state() == from
                && block[0]
                    .compare_exchange(head.0, next, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        };
        let ours = match searched {
            true => 0,
            false => (0..blocks).take_while(|i| turn(*i, FREE, PRIVATE, process_slot)).count(),
        };
        if ours == blocks {
            return self.unclaim(slab, 1);
        }
        for index in 0..ours {
            turn(index, PRIVATE, FREE, 0);
        }
        self.reopen(slab);
    }

    /// Reopens a slab after the check; includes the blocks freed meanwhile.
    fn reopen(&self, slab: usize) {
        let word = self.slab(slab);
        let mut now = word.load(Ordering::Relaxed);
        while Slab(now).state() == EMPTYING {
            let open = Slab(now).with_state(BLOCKS, 0).0;
            match word.compare_exchange(now, open, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }

    /// Rolls back the slab operations of a dead process slot.
    pub(crate) fn sweep_slabs(&self, dead: u16) {
        let mut slab = 0;
        while slab < self.slabs_in_use() {
            let known = Slab(self.slab(slab).load(Ordering::Acquire));
            if known.is_span() {
                slab += known.count().max(1);
                continue;
            }
            if known.is_claimed_by(dead) || known.is_rest_of(dead) {
                self.unclaim(slab, 1);
                fail_point!("state.sweep_slab");
            }
            if known.is_emptied_by(dead) {
                self.reopen(slab);
            }
            slab += 1;
        }
    }

    /// Frees the slabs of an owned span.
    pub(crate) fn free_span(&self, process_slot: u16, first: usize, count: usize) {
        let count = count.min(self.geometry.slabs - first);
        // From the last to the first: a sweep then finds either the complete span, or loose continuation
        // slabs of this process.
        for slab in (first..first + count).rev() {
            let word = Slab::new(SPAN_CLASS, SPAN_REST, process_slot, 0);
            self.slab(slab).store(word.0, Ordering::Release);
        }
        fail_point!("state.span_freed");
        self.unclaim(first, count);
    }

    /// Backs claimed slabs with memory and writes the headers of their blocks where another class was before.
    fn back_slabs(&self, env: &impl Environment, first: usize, count: usize, class: usize) -> bool {
        fail_point!("state.slab_claimed");
        let backed = |slab: usize| self.slab(slab).load(Ordering::Relaxed) & BACKED != 0;
        let fresh = (first..first + count).all(|slab| !backed(slab));
        let all = (first..first + count).all(backed);
        if !all && !env.back_with_memory(self.slab_start(first), count * SLAB_WORDS) {
            return false;
        }
        // Before any write: a slab that is released again must not be taken for fresh memory.
        for slab in first..first + count {
            self.slab(slab).fetch_or(BACKED, Ordering::AcqRel);
        }
        if !fresh {
            // Stale references may point to any unit of the slab; this tag differs from all of theirs.
            let tag = (self.tail().load(Ordering::Relaxed) as u32).wrapping_mul(0x9e37_79b1);
            let blocks = if class == SPAN_CLASS { 1 } else { blocks_per_slab(class) };
            for index in 0..blocks as u32 {
                let unit = (first * SLAB_UNITS) as u32 + index * u32::from(CLASS_UNITS[class]);
                if let Some(block) = self.block(unit) {
                    block[0].store(BlockHeader::new(FREE, 0, tag).0, Ordering::Release);
                }
            }
        }
        true
    }

    fn head_of(&self, unit: u32) -> BlockHeader {
        BlockHeader(self.block(unit).map_or(0, |block| block[0].load(Ordering::Acquire)))
    }

    /// Usage of the region, by scanning every block; for tools and tests.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for slab in 0..self.slabs_in_use() {
            let known = Slab(self.slab(slab).load(Ordering::Acquire));
            usage.slabs += u64::from(known.state() != UNUSED);
            if known.is_span() {
                usage.count(self.head_of((slab * SLAB_UNITS) as u32));
            }
            if known.has_blocks() {
                for index in 0..blocks_per_slab(known.class()) as u32 {
                    let units = u32::from(CLASS_UNITS[known.class()]);
                    usage.count(self.head_of((slab * SLAB_UNITS) as u32 + index * units));
                }
            }
        }
        usage
    }
}

/// Usage of the blocks of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Slabs (64 KiB) in use, with memory.
    pub slabs: u64,
    /// Free blocks.
    pub free: u64,
    /// Blocks that process slots keep: prepared, cached, or replaced and still readable.
    pub cached: u64,
    /// Leaves.
    pub leaves: u64,
    /// Inner nodes.
    pub nodes: u64,
    /// Transactions.
    pub transactions: u64,
}

impl Usage {
    fn count(&mut self, head: BlockHeader) {
        let count = match head.state() {
            FREE => &mut self.free,
            IS_LEAF => &mut self.leaves,
            IS_NODE => &mut self.nodes,
            IS_TXN => &mut self.transactions,
            _ => &mut self.cached,
        };
        *count += 1;
    }
}
