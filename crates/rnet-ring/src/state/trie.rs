//! The trie: from a key to its slot. A slot refers to a leaf or, after two keys collided there, to an inner
//! node. Nodes are added by one compare-and-swap and never removed, so a slot position stays valid.

use super::block_words::{BlockHeader, BlockRef, EMPTY, IS_NODE, LEAF, NODE};
use super::blocks::{LocalBlocks, OutOfMemory};
use super::key::{Key, Prefix};
use super::layout::{FANOUT, MAX_LEVEL, SLAB_UNITS};
use super::region::{Environment, Region};
use super::{CorruptRegion, RetriesExhausted};
use crate::fail_point;
use crate::sync::{AtomicU64, Ordering};

/// Node word: its level, so that corrupt references cannot form a cycle.
const LEVEL: usize = 1;
/// First slot of a node.
const SLOTS: usize = 2;
const NODE_WORDS: usize = SLOTS + FANOUT;
/// The process slot of blocks without a responsible process slot.
pub(crate) const NO_PROCESS_SLOT: u16 = u16::MAX;

/// A slot as read.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) at: &'a AtomicU64,
    pub(crate) word: BlockRef,
    /// Number of nodes above it.
    pub(crate) level: usize,
}

impl<'a> Region<'a> {
    pub(crate) fn root_slot(&self, root: u32) -> &'a AtomicU64 {
        self.at(self.root_at + root as usize)
    }

    /// The slot that contains, or would contain, a key.
    #[inline]
    pub(crate) fn find(&self, key: &Key<'_>) -> Result<Slot<'a>, CorruptRegion> {
        let mut at = self.root_slot(key.root());
        for level in 0..MAX_LEVEL {
            // SYNC-SLOT: a reader that finds the leaf's word also sees the leaf.
            let word = BlockRef(at.load(Ordering::Acquire));
            if word.kind() != NODE {
                return Ok(Slot { at, word, level });
            }
            let block = self.block(word.unit()).ok_or(CorruptRegion)?;
            at = block.get(SLOTS + key.nibble(level)).ok_or(CorruptRegion)?;
        }
        Err(CorruptRegion)
    }

    /// Replaces a leaf of another key by an inner node. In any case the slot has changed afterwards, by this
    /// or another process; read it again.
    pub(crate) fn expand(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        slot: Slot<'a>,
    ) -> Result<(), OutOfMemory> {
        let Some(other) = self.key_of(slot.word) else { return Ok(()) };
        if slot.level + 1 >= MAX_LEVEL {
            return Err(OutOfMemory);
        }
        let own = self.allocate(local, env, NODE_WORDS)?;
        let block = self.block(own.unit).expect("our own blocks lie inside the region");
        block[LEVEL].store(slot.level as u64, Ordering::Relaxed);
        for at in block[SLOTS..NODE_WORDS].iter() {
            at.store(EMPTY, Ordering::Relaxed);
        }
        block[SLOTS + other.key().nibble(slot.level)].store(slot.word.0, Ordering::Relaxed);
        fail_point!("state.node");
        self.set_state(local.process_slot, own, IS_NODE);
        let node = BlockRef::new(NODE, own.unit, own.tag);
        fail_point!("state.node_ready");
        // SYNC-SLOT: see `find`.
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        if slot.at.compare_exchange(slot.word.0, node.0, ok, miss).is_err() {
            self.put_back(local, own);
            return Ok(());
        }
        fail_point!("state.expanded");
        // Without a responsible process slot, so that a sweep need not check whether it is in use.
        self.set_state(NO_PROCESS_SLOT, own, IS_NODE);
        Ok(())
    }

    /// Visits every leaf word in the slots of this prefix, until `see` stops.
    pub(crate) fn walk(
        &self,
        prefix: &Prefix,
        see: &mut impl FnMut(BlockRef, u32) -> Result<(), RetriesExhausted>,
    ) -> Result<(), RetriesExhausted> {
        // Only a cycle visits more nodes than the region has blocks.
        let mut budget = self.slabs_in_use() * SLAB_UNITS / 2 + 1;
        let roots = match prefix.root() {
            Some(root) => root..root + 1,
            None => 0..1 << self.geometry.root_bits,
        };
        for root in roots {
            let word = BlockRef(self.root_slot(root).load(Ordering::Acquire));
            self.walk_slot(prefix, root, word, 0, &mut budget, see)?;
        }
        Ok(())
    }

    fn walk_slot(
        &self,
        prefix: &Prefix,
        root: u32,
        word: BlockRef,
        level: usize,
        budget: &mut usize,
        see: &mut impl FnMut(BlockRef, u32) -> Result<(), RetriesExhausted>,
    ) -> Result<(), RetriesExhausted> {
        match word.kind() {
            EMPTY => return Ok(()),
            LEAF => return see(word, root),
            NODE => {}
            _ => return Err(RetriesExhausted),
        }
        *budget = budget.checked_sub(1).ok_or(RetriesExhausted)?;
        let Some(block) = self.current_block(word) else { return Err(RetriesExhausted) };
        let head = BlockHeader(block[0].load(Ordering::Acquire));
        let is_node = head.state() == IS_NODE;
        if !is_node || block[LEVEL].load(Ordering::Relaxed) != level as u64 || level >= MAX_LEVEL {
            return Err(RetriesExhausted);
        }
        let slots = block.get(SLOTS..NODE_WORDS).ok_or(RetriesExhausted)?;
        let only = prefix.nibble(level);
        for (_, at) in slots.iter().enumerate().filter(|(i, _)| only.is_none_or(|o| o == *i)) {
            let word = BlockRef(at.load(Ordering::Acquire));
            self.walk_slot(prefix, root, word, level + 1, budget, see)?;
        }
        Ok(())
    }

    /// Whether an inner node is part of the trie. Scans the whole trie.
    pub(crate) fn has_node(&self, word: BlockRef) -> bool {
        let mut budget = self.slabs_in_use() * SLAB_UNITS / 2 + 1;
        let found = (0..1u32 << self.geometry.root_bits).any(|root| {
            let at = BlockRef(self.root_slot(root).load(Ordering::Acquire));
            self.leads_to(at, word, 0, &mut budget)
        });
        // If undecided, the node is kept.
        found || budget == 0
    }

    fn leads_to(&self, at: BlockRef, word: BlockRef, level: usize, budget: &mut usize) -> bool {
        if at == word {
            return true;
        }
        if at.kind() != NODE || level >= MAX_LEVEL || *budget == 0 {
            return false;
        }
        *budget -= 1;
        let Some(block) = self.current_block(at) else { return false };
        if block[LEVEL].load(Ordering::Relaxed) != level as u64 {
            return false;
        }
        let Some(slots) = block.get(SLOTS..NODE_WORDS) else { return false };
        slots.iter().any(|slot| {
            self.leads_to(BlockRef(slot.load(Ordering::Acquire)), word, level + 1, budget)
        })
    }
}
