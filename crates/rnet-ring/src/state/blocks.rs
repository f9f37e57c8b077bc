//! Blocks: allocated from slabs, kept for a while after their last use, then reused.
//!
//! Each process slot has a cache of blocks, so that writers of different keys do not contend here. Everything
//! that another process needs to clean up after a dead one is in the headers of the blocks: the responsible
//! process slot of each. The lists are private memory of the process slot and disappear with it.

use std::collections::VecDeque;

use super::block_words::{BlockHeader, BlockRef, FREE, IS_LEAF, IS_TXN, PRIVATE, RETIRED, pending};
use super::key::KEY_WORDS;
use super::layout::{
    CLASS_UNITS, LEASE_REVISION, PROCESS_NEW, PROCESS_SLAB, REVOKED, SLAB_UNITS, SLAB_WORDS,
    SNAPSHOT_LEASES, SPAN_CLASS, UNIT_WORDS, class_of,
};
use super::leaf::{LEAF_HEADER_WORDS, MAX_WRITER_LEN_BYTES, REVISION};
use super::region::{Environment, Region};
use super::slabs::{BLOCKS, SPAN, SPAN_REST, Slab, blocks_per_slab};
use crate::fail_point;
use crate::sync::{Ordering, fence};

/// Blocks that a process slot takes from the slabs at a time.
const REFILL: usize = 64;
/// Slabs that one refill scans before it takes a new one.
const REFILL_SLABS: usize = 512;
/// Blocks of one class that a process slot caches.
const MAX_CACHED: usize = 256;
/// The same limit in words (512 KiB).
const MAX_CACHED_WORDS: usize = (512 << 10) / 8;
/// Replaced blocks that stay readable: followers that are less far behind see each change.
pub const QUARANTINE: usize = if cfg!(loom) { 0 } else { 128 };
/// The same limit in words. Two versions of one large value are always kept.
const QUARANTINE_WORDS: usize = (1 << 20) / 8;
/// Words of the longest deletion record.
const RESERVE_WORDS: usize = LEAF_HEADER_WORDS + KEY_WORDS + MAX_WRITER_LEN_BYTES.div_ceil(8);
/// Maximum number of blocks that one write recycles: more than it takes, and few enough to bound its time.
const MAX_RECYCLED: usize = 16;
/// Replaced blocks that are kept for snapshot readers before their leases are revoked.
const MAX_RETAINED: usize = 1 << 20;
/// The same limit in words (1 GiB).
const MAX_RETAINED_WORDS: usize = (1 << 30) / 8;

/// A block that only this process slot may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedBlock {
    pub(crate) unit: u32,
    pub(crate) tag: u32,
    pub(crate) class: usize,
    /// Length of the block in words.
    pub(crate) words: usize,
}

/// Number of blocks of a class that a process slot caches.
fn max_cached(class: usize) -> usize {
    (MAX_CACHED_WORDS / (usize::from(CLASS_UNITS[class]) * UNIT_WORDS)).clamp(2, MAX_CACHED)
}

/// Out of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RetiredBlock {
    word: BlockRef,
    /// The process slot that created it.
    from: u16,
    class: usize,
    words: usize,
    /// Revision of its replacement.
    after: u64,
    /// Set for a deletion that is still in its trie slot, because snapshot readers must find it.
    pub(crate) tombstone: Option<BlockRef>,
}

/// A process slot's private bookkeeping of its blocks.
#[derive(Debug)]
pub struct LocalBlocks {
    /// Which process slot.
    pub process_slot: u16,
    cached: [VecDeque<u32>; SPAN_CLASS],
    cursor: [usize; SPAN_CLASS],
    retired: VecDeque<RetiredBlock>,
    retired_words: usize,
    /// Reserved so that a key can be deleted when memory is exhausted.
    reserve: Option<OwnedBlock>,
}

impl LocalBlocks {
    /// Empty bookkeeping.
    pub fn new(process_slot: u16) -> LocalBlocks {
        LocalBlocks {
            process_slot,
            cached: Default::default(),
            cursor: [0; SPAN_CLASS],
            retired: VecDeque::new(),
            retired_words: 0,
            reserve: None,
        }
    }
}

impl Region<'_> {
    /// Allocates a block of at least this many words with a new tag, for exclusive use.
    pub(crate) fn allocate(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        words: usize,
    ) -> Result<OwnedBlock, OutOfMemory> {
        if let Ok(own) = self.allocate_now(local, env, words) {
            return Ok(own);
        }
        // Release quarantined blocks and cached blocks of other sizes.
        self.release_all(local);
        if let Ok(own) = self.allocate_now(local, env, words) {
            return Ok(own);
        }
        // Revoke snapshot leases, whose reader may be stopped; the readers start again.
        for _ in 0..SNAPSHOT_LEASES {
            if !self.revoke(self.oldest_lease()) {
                break;
            }
        }
        self.release_all(local);
        self.allocate_now(local, env, words)
    }

    /// As [`Region::allocate`], for a deletion, which always has the reserve.
    pub(crate) fn allocate_for_deletion(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        words: usize,
    ) -> Result<OwnedBlock, OutOfMemory> {
        match self.allocate(local, env, words) {
            Ok(own) => Ok(own),
            Err(OutOfMemory) => {
                local.reserve.take().filter(|own| own.words >= words).ok_or(OutOfMemory)
            }
        }
    }

    /// Reserves a block for deletions.
    pub(crate) fn fill_reserve(&self, local: &mut LocalBlocks, env: &impl Environment) {
        if local.reserve.is_none() {
            local.reserve = self.allocate_now(local, env, RESERVE_WORDS).ok();
        }
    }

    fn allocate_now(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        words: usize,
    ) -> Result<OwnedBlock, OutOfMemory> {
        let class = class_of(words);
        if class == SPAN_CLASS {
            return self.allocate_span(local, env, words);
        }
        if local.cached[class].is_empty() {
            self.refill(local, env, class)?;
        }
        let unit = local.cached[class].pop_front().ok_or(OutOfMemory)?;
        let words = usize::from(CLASS_UNITS[class]) * UNIT_WORDS;
        self.begin(local.process_slot, unit, class, words)
    }

    /// Starts the next use of an owned block with a new tag. Readers see what is written into it afterwards
    /// as that use.
    fn begin(
        &self,
        process_slot: u16,
        unit: u32,
        class: usize,
        words: usize,
    ) -> Result<OwnedBlock, OutOfMemory> {
        // Its position and length come from tables that a peer may have corrupted.
        let block = self.block(unit).filter(|block| block.len() >= words).ok_or(OutOfMemory)?;
        let tag = BlockHeader(block[0].load(Ordering::Relaxed)).tag().wrapping_add(1);
        // Release: a reader that finds the new tag also finds the tail past the block's last entry (`help`).
        block[0].store(BlockHeader::new(PRIVATE, process_slot, tag).0, Ordering::Release);
        // A process that is killed before its first write then leaves no block with a contradictory state.
        block[REVISION].store(pending(tag), Ordering::Relaxed);
        // SYNC-BLOCK: pairs with `Region::current_block` and `leaf::is_current`.
        fence(Ordering::Release);
        fail_point!("state.taken");
        Ok(OwnedBlock { unit, tag, class, words })
    }

    /// Publishes the new state of the block; its content was written before.
    pub(crate) fn set_state(&self, process_slot: u16, own: OwnedBlock, state: u64) {
        let block = self.block(own.unit).expect("our own blocks lie inside the region");
        block[0].store(BlockHeader::new(state, process_slot, own.tag).0, Ordering::Release);
    }

    fn refill(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        class: usize,
    ) -> Result<(), OutOfMemory> {
        let slabs = self.slabs_in_use();
        for step in 0..slabs.min(REFILL_SLABS) {
            let slab = (local.cursor[class] + step) % slabs;
            let known = Slab(self.slab(slab).load(Ordering::Acquire));
            if known.is_open() && known.class() == class && known.count() > 0 {
                self.claim_blocks(local, slab, class);
                if local.cached[class].len() >= REFILL / 2 {
                    local.cursor[class] = slab;
                    return Ok(());
                }
            }
        }
        local.cursor[class] = (local.cursor[class] + REFILL_SLABS) % slabs.max(1);
        if !local.cached[class].is_empty() {
            return Ok(());
        }
        if let Some(slab) = self.claim_slabs(local.process_slot, env, 1, class) {
            let blocks = blocks_per_slab(class) as u64;
            let word = Slab::new(class, BLOCKS, 0, blocks);
            self.slab(slab).store(word.0, Ordering::Release);
            fail_point!("state.slab");
            self.claim_blocks(local, slab, class);
            local.cursor[class] = slab;
            return Ok(());
        }
        // No new slab is available: scan all slabs for free blocks, whatever their counts say.
        for slab in 0..self.slabs_in_use() {
            let known = Slab(self.slab(slab).load(Ordering::Acquire));
            if known.is_open() && known.class() == class {
                self.claim_blocks(local, slab, class);
                if !local.cached[class].is_empty() {
                    return Ok(());
                }
            }
        }
        Err(OutOfMemory)
    }

    /// Claims free blocks of a slab; other processes may do the same concurrently.
    fn claim_blocks(&self, local: &mut LocalBlocks, slab: usize, class: usize) {
        let units = u32::from(CLASS_UNITS[class]);
        let mut got = 0;
        let here = self.process_slot(usize::from(local.process_slot), PROCESS_SLAB);
        // SYNC-SLAB: see `empty_slab`.
        here.store(slab as u64 + 1, Ordering::SeqCst);
        let known = Slab(self.slab(slab).load(Ordering::SeqCst));
        let blocks = match known.is_open() && known.class() == class {
            true => blocks_per_slab(class) as u32,
            false => 0,
        };
        for index in 0..blocks {
            if got == REFILL {
                break;
            }
            let unit = (slab * SLAB_UNITS) as u32 + index * units;
            let Some(block) = self.block(unit) else { return };
            let head = BlockHeader(block[0].load(Ordering::Relaxed));
            if head.state() == FREE {
                let ours = BlockHeader::new(PRIVATE, local.process_slot, head.tag()).0;
                if block[0]
                    .compare_exchange(head.0, ours, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
                {
                    local.cached[class].push_back(unit);
                    got += 1;
                }
            }
        }
        fail_point!("state.claimed");
        here.store(0, Ordering::Release);
        self.count_free(slab, -(got as i64));
    }

    fn allocate_span(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        words: usize,
    ) -> Result<OwnedBlock, OutOfMemory> {
        let count = words.div_ceil(SLAB_WORDS);
        let first =
            self.claim_slabs(local.process_slot, env, count, SPAN_CLASS).ok_or(OutOfMemory)?;
        let unit = (first * SLAB_UNITS) as u32;
        let own = self.begin(local.process_slot, unit, SPAN_CLASS, count * SLAB_WORDS)?;
        for rest in first + 1..first + count {
            let word = Slab::new(SPAN_CLASS, SPAN_REST, local.process_slot, 0);
            self.slab(rest).store(word.0, Ordering::Release);
        }
        let word = Slab::new(SPAN_CLASS, SPAN, local.process_slot, count as u64);
        self.slab(first).store(word.0, Ordering::Release);
        fail_point!("state.span");
        Ok(own)
    }

    /// Returns a block that no other process has seen.
    pub(crate) fn put_back(&self, local: &mut LocalBlocks, own: OwnedBlock) {
        self.cache_or_free(local, own.unit, own.class);
    }

    /// Caches or frees an owned block that has no readers.
    fn cache_or_free(&self, local: &mut LocalBlocks, unit: u32, class: usize) {
        if class < SPAN_CLASS && local.cached[class].len() < max_cached(class) {
            local.cached[class].push_back(unit);
        } else {
            self.free(local.process_slot, unit);
        }
    }

    /// Frees a block for any process. Its tag is unchanged until the next use, so that a late reader still
    /// reads it whole.
    pub(crate) fn free(&self, process_slot: u16, unit: u32) {
        let Some(block) = self.block(unit) else { return };
        let slab = Self::slab_of(unit);
        let known = Slab(self.slab(slab).load(Ordering::Acquire));
        if known.is_span() {
            // Its later slabs may be reused while this header stays as it is: a late reader must not take
            // their words for those of the span. State and process slot stay, for the sweep after a death
            // here.
            let head = BlockHeader(block[0].load(Ordering::Relaxed));
            let ended =
                BlockHeader::new(head.state(), head.process_slot(), head.tag().wrapping_add(1));
            block[0].store(ended.0, Ordering::Release);
            self.free_span(process_slot, slab, known.count());
            return;
        }
        let tag = BlockHeader(block[0].load(Ordering::Relaxed)).tag();
        block[0].store(BlockHeader::new(FREE, 0, tag).0, Ordering::Release);
        fail_point!("state.freed");
        self.count_free(slab, 1);
    }

    /// Retires a leaf or transaction that this process removed from its slot: it is kept until it is no
    /// longer needed. Another process that considered this one dead may have taken it already.
    pub(crate) fn retire(&self, local: &mut LocalBlocks, word: BlockRef, after: u64) {
        let Some(block) = self.block(word.unit()) else { return };
        let head = BlockHeader(block[0].load(Ordering::Acquire));
        if head.tag() == word.tag() && matches!(head.state(), IS_LEAF | IS_TXN) {
            self.retire_from(local, word, head, after);
        }
    }

    /// The same for a block in any state; only one of several callers succeeds.
    pub(crate) fn retire_from(
        &self,
        local: &mut LocalBlocks,
        word: BlockRef,
        head: BlockHeader,
        after: u64,
    ) {
        let Some(block) = self.block(word.unit()) else { return };
        let retired = BlockHeader::new(RETIRED, local.process_slot, word.tag()).0;
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        if block[0].compare_exchange(head.0, retired, ok, miss).is_ok() {
            fail_point!("state.retired");
            self.queue(local, word, head.process_slot(), after, None);
        }
    }

    /// Queues a deletion that stays in its trie slot until older snapshot leases end.
    pub(crate) fn queue_tombstone(&self, local: &mut LocalBlocks, word: BlockRef, after: u64) {
        self.queue(local, word, local.process_slot, after, Some(word));
    }

    fn queue(
        &self,
        local: &mut LocalBlocks,
        word: BlockRef,
        from: u16,
        after: u64,
        tombstone: Option<BlockRef>,
    ) {
        let known = Slab(self.slab(Self::slab_of(word.unit())).load(Ordering::Relaxed));
        // A block that is no longer in the table was corrupted; it is dropped.
        let (class, words) = match (known.has_blocks(), known.is_span()) {
            (true, _) => (known.class(), usize::from(CLASS_UNITS[known.class()]) * UNIT_WORDS),
            (_, true) => (SPAN_CLASS, known.count() * SLAB_WORDS),
            _ => return,
        };
        local.retired_words += words;
        local.retired.push_back(RetiredBlock { word, from, class, words, after, tombstone });
    }

    /// Recycles some blocks that are no longer needed.
    pub(crate) fn recycle(&self, local: &mut LocalBlocks) {
        self.recycle_some(local, MAX_RECYCLED);
    }

    /// Recycles all blocks that are no longer needed.
    pub(crate) fn recycle_all(&self, local: &mut LocalBlocks) {
        self.recycle_some(local, 2 * local.retired.len());
    }

    fn recycle_some(&self, local: &mut LocalBlocks, turns: usize) {
        let mut oldest = None;
        for _ in 0..turns {
            let many = local.retired.len() > QUARANTINE;
            let large = local.retired_words > QUARANTINE_WORDS && local.retired.len() > 1;
            if !many && !large {
                return;
            }
            let needed = *oldest.get_or_insert_with(|| self.oldest_lease());
            if !self.recycle_one(local, needed) {
                return;
            }
        }
    }

    /// As `release_all`, including the reserve for deletions, because the process slot's owner exits.
    pub fn leave(&self, local: &mut LocalBlocks) -> bool {
        if let Some(own) = local.reserve.take() {
            self.free(local.process_slot, own.unit);
        }
        self.release_all(local)
    }

    /// Releases all blocks that the process slot keeps; `false` if some still have readers.
    pub(crate) fn release_all(&self, local: &mut LocalBlocks) -> bool {
        // Two passes per block: a deletion is first removed from its trie slot and then retired.
        for _ in 0..2 * local.retired.len() {
            let needed = self.oldest_lease();
            if local.retired.is_empty() || !self.recycle_one(local, needed) {
                break;
            }
        }
        if !local.retired.is_empty() {
            return false;
        }
        for class in 0..SPAN_CLASS {
            while let Some(unit) = local.cached[class].pop_front() {
                self.free(local.process_slot, unit);
            }
        }
        true
    }

    /// `needed` is the oldest revision that a snapshot reads.
    fn recycle_one(&self, local: &mut LocalBlocks, needed: u64) -> bool {
        let Some(front) = local.retired.front().copied() else { return false };
        // Its replacement is newer than the snapshot, which may need this block.
        if front.after > needed {
            let held =
                local.retired.len() > MAX_RETAINED || local.retired_words > MAX_RETAINED_WORDS;
            if !held || !self.revoke(needed) {
                return false;
            }
        }
        local.retired.pop_front();
        local.retired_words -= front.words;
        match front.tombstone {
            None if self.is_revision_awaited(&front) => {
                local.retired.push_back(front);
                local.retired_words += front.words;
                return local.retired.len() > 1;
            }
            None => self.cache_or_free(local, front.word.unit(), front.class),
            Some(word) => {
                if self.clear_tombstone(word) {
                    self.retire(local, word, front.after);
                }
            }
        }
        true
    }

    /// Whether the writer of a leaf has yet to learn its revision. A writer that is stopped at that point
    /// holds one leaf.
    fn is_revision_awaited(&self, retired: &RetiredBlock) -> bool {
        let from = usize::from(retired.from);
        from < self.geometry.process_slots
            && self.process_slot(from, PROCESS_NEW).load(Ordering::Acquire) == retired.word.0
    }

    /// The oldest leased revision; `u64::MAX` without leases.
    pub(crate) fn oldest_lease(&self) -> u64 {
        // SYNC-LEASE: pairs with `Region::take_lease`: either the lease is seen here, or its reader's
        // revision is at least as new as everything replaced before this point.
        let mut taken = self.taken_leases().load(Ordering::SeqCst);
        let mut oldest = u64::MAX;
        while taken != 0 {
            let lease = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            oldest = oldest.min(self.lease(lease, LEASE_REVISION).load(Ordering::SeqCst));
        }
        oldest
    }

    /// Revokes the leases of this revision; their readers detect it and start again.
    fn revoke(&self, revision: u64) -> bool {
        if revision == REVOKED {
            return false;
        }
        let mut taken = self.taken_leases().load(Ordering::SeqCst);
        let mut done = false;
        while taken != 0 {
            let lease = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            let word = self.lease(lease, LEASE_REVISION);
            done |= word
                .compare_exchange(revision, REVOKED, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok();
        }
        done
    }
}
