//! Blocks: taken from slabs, kept for a while after their last use, used again.
//!
//! Each process slot keeps blocks of its own at hand, so that writers of different keys do not meet here. All
//! that another process must know to clean up after a dead one stands in the heads of the blocks:
//! which process slot is responsible for each. The lists are the process slot's own memory and die with it.

use std::collections::VecDeque;

use super::key::KEY_WORDS;
use super::layout::{
    CLASS_UNITS, LEASE_REVISION, PROCESS_NEW, PROCESS_SLAB, REVOKED, SLAB_UNITS, SLAB_WORDS,
    SNAPSHOT_LEASES, SPAN_CLASS, UNIT_WORDS, class_of,
};
use super::leaf::{LEAF_HEADER_WORDS, MAX_WRITER_LEN_BYTES, REVISION};
use super::region::{Environment, Region};
use super::slabs::{BLOCKS, SPAN, SPAN_REST, Slab, blocks_per_slab};
use super::word::{BlockHeader, BlockRef, FREE, IS_LEAF, IS_TXN, PRIVATE, RETIRED, pending};
use crate::fail_point;
use crate::sync::{Ordering, fence};

/// Blocks that a process slot takes from the slabs at a time.
const REFILL: usize = 64;
/// Slabs that one refill looks at before it takes a new one.
const REFILL_SLABS: usize = 512;
/// Blocks of one class that a process slot keeps for itself.
const MAX_CACHED: usize = 256;
/// But not more words than these (512 KiB).
const MAX_CACHED_WORDS: usize = (512 << 10) / 8;
/// Blocks that stay readable after they were replaced: followers that are no further behind see each
/// change.
pub const QUARANTINE: usize = if cfg!(loom) { 0 } else { 128 };
/// But not more bytes than this, of which two versions of one large value are always kept.
const QUARANTINE_WORDS: usize = (1 << 20) / 8;
/// Words of the longest deletion.
const RESERVE_WORDS: usize = LEAF_HEADER_WORDS + KEY_WORDS + MAX_WRITER_LEN_BYTES.div_ceil(8);
/// Blocks that one write uses again at most: more become free than are taken, and no write takes long.
const MAX_RECYCLED: usize = 16;
/// Replaced blocks that are kept for readers as of a revision, before they are revoked.
const MAX_RETAINED: usize = 1 << 20;
/// The same in words (1 GiB).
const MAX_RETAINED_WORDS: usize = (1 << 30) / 8;

/// A block that is ours to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedBlock {
    pub(crate) unit: u32,
    pub(crate) tag: u32,
    pub(crate) class: usize,
    /// Words of the block.
    pub(crate) words: usize,
}

/// Blocks of a class that a process slot keeps for itself.
fn max_cached(class: usize) -> usize {
    (MAX_CACHED_WORDS / (usize::from(CLASS_UNITS[class]) * UNIT_WORDS)).clamp(2, MAX_CACHED)
}

/// Out of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RetiredBlock {
    word: BlockRef,
    /// The process slot that made it.
    from: u16,
    class: usize,
    words: usize,
    /// Revision of what came after it.
    after: u64,
    /// Not out of its slot yet: a deletion that readers as of an older revision must find.
    pub(crate) tombstone: Option<BlockRef>,
}

/// What a process slot knows of its own blocks.
#[derive(Debug)]
pub struct LocalBlocks {
    /// Which process slot.
    pub process_slot: u16,
    cached: [VecDeque<u32>; SPAN_CLASS],
    cursor: [usize; SPAN_CLASS],
    retired: VecDeque<RetiredBlock>,
    retired_words: usize,
    /// So that a key can be deleted when there is no room left.
    reserve: Option<OwnedBlock>,
}

impl LocalBlocks {
    /// Nothing is known yet.
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
    /// A block of at least so many words, ours alone, with a tag of its own.
    pub(crate) fn allocate(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        words: usize,
    ) -> Result<OwnedBlock, OutOfMemory> {
        if let Ok(own) = self.allocate_now(local, env, words) {
            return Ok(own);
        }
        // What is only kept for late followers, and what was put by of other sizes.
        self.release_all(local);
        if let Ok(own) = self.allocate_now(local, env, words) {
            return Ok(own);
        }
        // What is kept for readers as of a revision, one of whom may be stopped: they begin anew.
        for _ in 0..SNAPSHOT_LEASES {
            if !self.revoke(self.oldest_lease()) {
                break;
            }
        }
        self.release_all(local);
        self.allocate_now(local, env, words)
    }

    /// As [`Region::allocate`], for a deletion: there is always room for one.
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

    /// Puts a block by for deletions.
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

    /// Gives a block that is already ours its next tag; what is written into it comes afterwards, for
    /// all readers.
    fn begin(
        &self,
        process_slot: u16,
        unit: u32,
        class: usize,
        words: usize,
    ) -> Result<OwnedBlock, OutOfMemory> {
        // Where it lies, and how long it is, came from tables that a peer may have corrupt.
        let block = self.block(unit).filter(|block| block.len() >= words).ok_or(OutOfMemory)?;
        let tag = BlockHeader(block[0].load(Ordering::Relaxed)).tag().wrapping_add(1);
        // Released, so that who finds the new tag also finds the tail past the block's last entry (`help`).
        block[0].store(BlockHeader::new(PRIVATE, process_slot, tag).0, Ordering::Release);
        // So that who is killed before it writes anything leaves no block that says two things.
        block[REVISION].store(pending(tag), Ordering::Relaxed);
        // SYNC-BLOCK: pairs with `Region::current_block` and `leaf::is_current`.
        fence(Ordering::Release);
        fail_point!("state.taken");
        Ok(OwnedBlock { unit, tag, class, words })
    }

    /// Says what the block is from now on; everything in it was written before.
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
        // No new slab: every block that is left anywhere, then, also where none is known of.
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

    /// Takes free blocks of a slab; others may do the same.
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

    /// Gives back a block that nobody else has ever seen.
    pub(crate) fn put_back(&self, local: &mut LocalBlocks, own: OwnedBlock) {
        self.cache_or_free(local, own.unit, own.class);
    }

    /// A block that is ours, and that nobody reads any more.
    fn cache_or_free(&self, local: &mut LocalBlocks, unit: u32, class: usize) {
        if class < SPAN_CLASS && local.cached[class].len() < max_cached(class) {
            local.cached[class].push_back(unit);
        } else {
            self.free(local.process_slot, unit);
        }
    }

    /// Lets anybody have a block. Its tag stays until then, so that a late reader still reads it whole.
    pub(crate) fn free(&self, process_slot: u16, unit: u32) {
        let Some(block) = self.block(unit) else { return };
        let slab = Self::slab_of(unit);
        let known = Slab(self.slab(slab).load(Ordering::Acquire));
        if known.is_span() {
            // Others may use its later slabs again, and leave this head as it is: a late reader must not
            // take their words for the span's. State and process slot stay, for the sweep after a death here.
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

    /// A leaf or transaction that is out of its slot, by us: kept until nobody needs it. Another who
    /// thought us dead may have taken it already.
    pub(crate) fn retire(&self, local: &mut LocalBlocks, word: BlockRef, after: u64) {
        let Some(block) = self.block(word.unit()) else { return };
        let head = BlockHeader(block[0].load(Ordering::Acquire));
        if head.tag() == word.tag() && matches!(head.state(), IS_LEAF | IS_TXN) {
            self.retire_from(local, word, head, after);
        }
    }

    /// The same for a block in any state; one of several who try succeeds.
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

    /// A deletion that stays in its slot until those who read as of an older revision are done.
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
        // What is not in the table any more was corrupt by somebody; it is let go of.
        let (class, words) = match (known.has_blocks(), known.is_span()) {
            (true, _) => (known.class(), usize::from(CLASS_UNITS[known.class()]) * UNIT_WORDS),
            (_, true) => (SPAN_CLASS, known.count() * SLAB_WORDS),
            _ => return,
        };
        local.retired_words += words;
        local.retired.push_back(RetiredBlock { word, from, class, words, after, tombstone });
    }

    /// Uses again what nobody needs any more, some of it each time.
    pub(crate) fn recycle(&self, local: &mut LocalBlocks) {
        self.recycle_some(local, MAX_RECYCLED);
    }

    /// Uses again all that nobody needs any more.
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

    /// The same with what was put by for deletions, because the process slot's owner ends.
    pub fn leave(&self, local: &mut LocalBlocks) -> bool {
        if let Some(own) = local.reserve.take() {
            self.free(local.process_slot, own.unit);
        }
        self.release_all(local)
    }

    /// Lets go of all that the process slot keeps; `false` if somebody still reads some.
    pub(crate) fn release_all(&self, local: &mut LocalBlocks) -> bool {
        // Each twice: a deletion is taken out of its slot, and then retired.
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

    /// `needed` is the oldest revision that somebody reads.
    fn recycle_one(&self, local: &mut LocalBlocks, needed: u64) -> bool {
        let Some(front) = local.retired.front().copied() else { return false };
        // What came after it is newer than what is read: the reader may want this one.
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

    /// Whether the writer of a leaf has yet to learn its revision. Writers that are stopped there hold one
    /// leaf each.
    fn is_revision_awaited(&self, retired: &RetiredBlock) -> bool {
        let from = usize::from(retired.from);
        from < self.geometry.process_slots
            && self.process_slot(from, PROCESS_NEW).load(Ordering::Acquire) == retired.word.0
    }

    /// The oldest revision that somebody reads; `u64::MAX` if nobody does.
    pub(crate) fn oldest_lease(&self) -> u64 {
        // SYNC-LEASE: pairs with `Region::take_lease`: either the lease is seen here, or its reader's revision is
        // no older than what was replaced before this.
        let mut taken = self.taken_leases().load(Ordering::SeqCst);
        let mut oldest = u64::MAX;
        while taken != 0 {
            let lease = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            oldest = oldest.min(self.lease(lease, LEASE_REVISION).load(Ordering::SeqCst));
        }
        oldest
    }

    /// Takes from those who read as of so old a revision what they read; they notice and begin anew.
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
