//! A borrowed region of state, and bounds checks for its untrusted content.

use super::block_words::{BlockHeader, BlockRef};
use super::layout::{
    ASLEEP_AT, Geometry, HIGH_AT, LINE_WORDS, PROCESS_BUSY, SLAB_UNITS, SLAB_WORDS, TAIL_AT,
    TAKEN_LEASES_AT, UNIT_WORDS,
};
use crate::sync::{AtomicU64, Ordering};

/// A borrowed region: the words of the file `state`.
#[derive(Clone, Copy)]
pub struct Region<'a> {
    words: &'a [AtomicU64],
    pub(crate) geometry: Geometry,
    pub(crate) blocks_at: usize,
    pub(crate) root_at: usize,
    pub(crate) journal_at: usize,
    pub(crate) seed: u64,
}

/// A block: its words, up to the end of the region. Any process may have written its content.
pub(crate) type Block<'a> = &'a [AtomicU64];

/// Services of the environment for a region.
pub trait Environment {
    /// Backs these words with memory; `false` if memory is exhausted.
    fn back_with_memory(&self, first_word: usize, words: usize) -> bool;
    /// Wakes a follower, by its number.
    fn wake(&self, follower: usize);
}

impl<'a> Region<'a> {
    /// Borrows a region with this geometry and hash seed; `None` if the words are too few.
    pub fn new(words: &'a [AtomicU64], geometry: Geometry, seed: u64) -> Option<Region<'a>> {
        (words.len() >= geometry.words()).then(|| Region {
            words: &words[..geometry.words()],
            geometry,
            blocks_at: geometry.blocks_at(),
            root_at: geometry.root_at(),
            journal_at: geometry.journal_at(),
            seed,
        })
    }

    /// The word at a local offset. Panics outside the region, because offsets come from the geometry.
    #[inline]
    pub(crate) fn at(&self, word: usize) -> &'a AtomicU64 {
        &self.words[word]
    }

    /// The block at a unit, which may come from a peer; `None` outside the region.
    #[inline]
    pub(crate) fn block(&self, unit: u32) -> Option<Block<'a>> {
        let start = self.blocks_at + unit as usize * UNIT_WORDS;
        // The smallest block, and the fixed part of every kind of block, has two units.
        let rest = self.words.get(start..)?;
        (rest.len() >= 2 * UNIT_WORDS).then_some(rest)
    }

    /// The block that `word` refers to, if it was not reused.
    #[inline]
    pub(crate) fn current_block(&self, word: BlockRef) -> Option<Block<'a>> {
        let block = self.block(word.unit())?;
        // SYNC-BLOCK: pairs with the fence in `begin`: a reader that reads words of a later use also finds
        // its tag in the next check.
        (BlockHeader(block[0].load(Ordering::Acquire)).tag() == word.tag()).then_some(block)
    }

    pub(crate) fn tail(&self) -> &'a AtomicU64 {
        self.at(TAIL_AT)
    }
    pub(crate) fn taken_leases(&self) -> &'a AtomicU64 {
        self.at(TAKEN_LEASES_AT)
    }
    pub(crate) fn asleep(&self, group: usize) -> &'a AtomicU64 {
        self.at(ASLEEP_AT + group)
    }
    pub(crate) fn high(&self) -> &'a AtomicU64 {
        self.at(HIGH_AT)
    }
    /// A word of a process slot.
    pub fn process_slot(&self, process_slot: usize, word: usize) -> &'a AtomicU64 {
        self.at(self.geometry.process_slots_at() + process_slot * LINE_WORDS + word)
    }
    pub(crate) fn busy(&self, process_slot: u16) -> &'a AtomicU64 {
        self.process_slot(usize::from(process_slot), PROCESS_BUSY)
    }
    pub(crate) fn lease(&self, lease: usize, word: usize) -> &'a AtomicU64 {
        self.at(self.geometry.leases_at() + lease * LINE_WORDS + word)
    }
    /// A word of a follower.
    pub fn follower(&self, follower: usize, word: usize) -> &'a AtomicU64 {
        self.at(self.geometry.followers_at() + follower * LINE_WORDS + word)
    }
    /// A slot for a request to the persister.
    pub fn persist_request(&self, number: usize) -> &'a AtomicU64 {
        self.at(self.geometry.persist_requests_at() + number)
    }
    /// A word of the header page.
    pub fn header(&self, word: usize) -> &'a AtomicU64 {
        assert!(word < super::layout::HEADER_WORDS);
        self.at(word)
    }
    pub(crate) fn slab(&self, slab: usize) -> &'a AtomicU64 {
        self.at(self.geometry.table_at() + slab)
    }
    /// Slabs that were ever claimed, limited to the existing ones whatever the header contains.
    pub(crate) fn slabs_in_use(&self) -> usize {
        (self.high().load(Ordering::Acquire) as usize).min(self.geometry.slabs)
    }
    /// First word of a slab's blocks.
    pub(crate) fn slab_start(&self, slab: usize) -> usize {
        self.blocks_at + slab * SLAB_WORDS
    }
    pub(crate) fn slab_of(unit: u32) -> usize {
        unit as usize / SLAB_UNITS
    }

    /// The region's geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// Seed of its hashes.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
