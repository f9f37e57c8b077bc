//! Resolves a leaf in a slot: whether its change or the previous value is committed.

use super::block_words::{
    ABORTED, BlockHeader, BlockRef, COMMITTED, IS_LEAF, LEAF, PERSISTING, TXN, TxnStatus,
    UNDECIDED, WRITING, is_pending, pending,
};
use super::blocks::LocalBlocks;
use super::key::Key;
use super::layout::MAX_TXN_WRITES;
use super::leaf::{self, DELETED, LeafBuffer, LeafMeta, PREV, REVISION, TXN_WORD};
use super::region::{Block, Region};
use super::{MAX_TRIES, RetriesExhausted};
use crate::fail_point;
use crate::sync::Ordering;

/// Transaction word: the status, which decides over the transaction.
pub(crate) const STATUS: usize = 2;
/// Transaction word: number of leaves.
pub(crate) const COUNT: usize = 3;
/// Transaction word: the persister's reason for a refusal.
pub(crate) const REASON: usize = 4;
/// First of the transaction's pairs: a leaf, and the previous content of its slot.
pub(crate) const PAIRS: usize = 5;

/// The resolved state of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedLeaf {
    /// Its change is committed and has a revision.
    Committed,
    /// It is not (or not yet) committed; `word` is the previous value (empty if none).
    Previous { word: BlockRef, pending: Option<BlockRef> },
    /// The block was reused: read the slot again.
    Reused,
}

impl<'a> Region<'a> {
    /// Resolves a leaf. Assigns a revision if the change is committed and has none.
    pub(crate) fn resolve(
        &self,
        word: BlockRef,
        root: u32,
    ) -> Result<ResolvedLeaf, RetriesExhausted> {
        let Some(block) = self.current_block(word) else { return Ok(ResolvedLeaf::Reused) };
        let revision = block[REVISION].load(Ordering::Acquire);
        if !is_pending(revision) {
            return Ok(ResolvedLeaf::Committed);
        }
        let txn = BlockRef(block[TXN_WORD].load(Ordering::Relaxed));
        let before = BlockRef(block[PREV].load(Ordering::Relaxed));
        let guard = leaf::is_guard(block);
        if !leaf::is_current(block, word) {
            return Ok(ResolvedLeaf::Reused);
        }
        if txn.is_none() {
            return Ok(self
                .assign_revision(word, root)?
                .map_or(ResolvedLeaf::Reused, |_| ResolvedLeaf::Committed));
        }
        let Some(status) = self.status(txn) else {
            // The transaction has ended; the leaf's revision shows its result.
            return Ok(match is_pending(block[REVISION].load(Ordering::Acquire)) {
                true => ResolvedLeaf::Reused,
                false => ResolvedLeaf::Committed,
            });
        };
        match status.state() {
            COMMITTED => {
                // Guards also get the transaction's revision first, so that later changes are ordered after
                // it.
                let Some(revision) = self.assign_revision(txn, 0)? else {
                    return Ok(ResolvedLeaf::Reused);
                };
                if guard {
                    return Ok(ResolvedLeaf::Previous { word: before, pending: None });
                }
                self.assign_txn_revision(word, revision);
                Ok(ResolvedLeaf::Committed)
            }
            ABORTED => Ok(ResolvedLeaf::Previous { word: before, pending: None }),
            _ => Ok(ResolvedLeaf::Previous { word: before, pending: Some(txn) }),
        }
    }

    /// Assigns its transaction's revision to a leaf.
    pub(crate) fn assign_txn_revision(&self, leaf: BlockRef, revision: u64) {
        if let Some(block) = self.block(leaf.unit()) {
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = block[REVISION].compare_exchange(pending(leaf.tag()), revision, ok, miss);
            fail_point!("state.spread");
        }
    }

    /// The status of a transaction; `None` if its block was reused.
    pub fn status(&self, txn: BlockRef) -> Option<TxnStatus> {
        if txn.kind() != TXN {
            return None;
        }
        let status = TxnStatus(self.current_block(txn)?[STATUS].load(Ordering::SeqCst));
        (status.tag() == txn.tag()).then_some(status)
    }

    /// Decides a transaction if it is in state `from`.
    pub fn decide(&self, txn: BlockRef, from: u64, to: u64) -> bool {
        let Some(block) = self.block(txn.unit()) else { return false };
        let (from, to) = (TxnStatus::new(from, txn.tag()).0, TxnStatus::new(to, txn.tag()).0);
        let decided =
            block[STATUS].compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        fail_point!("state.decided");
        decided
    }

    /// Aborts an undecided transaction that blocks a writer, after leaving it some time. `false` if the
    /// persister has it and the writer must wait.
    pub(crate) fn abort_undecided(&self, txn: BlockRef) -> bool {
        for _ in 0..WAIT_LIMIT {
            match self.status(txn).map(TxnStatus::state) {
                Some(UNDECIDED) => crate::sync::spin(),
                Some(PERSISTING | WRITING) => return false,
                _ => return true,
            }
        }
        self.decide(txn, UNDECIDED, ABORTED);
        !matches!(self.status(txn).map(TxnStatus::state), Some(PERSISTING | WRITING))
    }

    /// The committed word of a key as of a revision, from the content of its slot; the empty word if the key
    /// was absent.
    pub(crate) fn as_of(
        &self,
        word: BlockRef,
        root: u32,
        revision: u64,
    ) -> Result<Option<BlockRef>, RetriesExhausted> {
        let mut word = word;
        for _ in 0..MAX_TRIES {
            if word.is_none() {
                return Ok(Some(word));
            }
            if word.kind() != LEAF {
                return Err(RetriesExhausted);
            }
            match self.resolve(word, root)? {
                ResolvedLeaf::Reused => return Ok(None),
                ResolvedLeaf::Previous { word: before, .. } => word = before,
                ResolvedLeaf::Committed => {
                    let Some(block) = self.current_block(word) else { return Ok(None) };
                    let at = block[REVISION].load(Ordering::Acquire);
                    let before = BlockRef(block[PREV].load(Ordering::Relaxed));
                    if !leaf::is_current(block, word) {
                        return Ok(None);
                    }
                    if at <= revision {
                        return Ok(Some(word));
                    }
                    word = before;
                }
            }
        }
        Err(RetriesExhausted)
    }

    /// Removes a deletion from its slot, so that the slot is empty; returns whether this call did it.
    pub(crate) fn clear_tombstone(&self, word: BlockRef) -> bool {
        let Some(key) = self.key_of(word) else { return false };
        self.replace_in_slot(&key.key(), word, BlockRef::NONE)
    }

    /// Replaces `word` by `next` in the slot that currently contains it.
    pub(crate) fn replace_in_slot(&self, key: &Key<'_>, word: BlockRef, next: BlockRef) -> bool {
        for _ in 0..MAX_TRIES {
            let Ok(slot) = self.find(key) else { return false };
            if slot.word != word {
                return false;
            }
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            if slot.at.compare_exchange(word.0, next.0, ok, miss).is_ok() {
                fail_point!("state.swapped");
                return true;
            }
        }
        false
    }

    /// The leaves of a transaction, each with the previous content of its slot.
    pub fn pairs(&self, txn: BlockRef) -> Option<Vec<(BlockRef, BlockRef)>> {
        let block = self.current_block(txn)?;
        let count = block[COUNT].load(Ordering::Acquire) as usize;
        if count > MAX_TXN_WRITES {
            return None;
        }
        let words: Block<'_> = block.get(PAIRS..PAIRS + 2 * count)?;
        let load = |at: usize| BlockRef(words[at].load(Ordering::Relaxed));
        let pairs = (0..count).map(|i| (load(2 * i), load(2 * i + 1))).collect();
        leaf::is_current(block, txn).then_some(pairs)
    }

    /// Copies a leaf; `None` if its block was reused.
    pub fn copy_leaf(&self, word: BlockRef, into: &mut LeafBuffer) -> Option<()> {
        leaf::copy(self.current_block(word)?, word, into)
    }

    /// The metadata of a leaf.
    pub fn meta_of(&self, word: BlockRef) -> Option<LeafMeta> {
        if word.is_none() {
            return None;
        }
        leaf::meta(self.current_block(word)?, word)
    }

    /// Stores the persister's reason to refuse a transaction; call it before aborting the transaction.
    pub fn set_reason(&self, txn: BlockRef, reason: u64) {
        if let Some(block) = self.current_block(txn) {
            block[REASON].store(reason, Ordering::Release);
        }
    }

    /// Undoes an aborted transaction of this process: removes its leaves from their slots and retires them.
    pub(crate) fn undo(&self, local: &mut LocalBlocks, txn: BlockRef) {
        let pairs = self.pairs(txn).unwrap_or_default();
        let newest = || self.newest().unwrap_or(u64::MAX - 1).saturating_add(1);
        for (leaf, before) in &pairs {
            self.restore_previous(local, *leaf, *before, newest());
        }
        // Determined after all leaves are removed from their slots: readers of an earlier revision may have
        // seen one.
        let after = newest();
        for (leaf, _) in pairs {
            self.retire(local, leaf, after);
        }
        self.retire(local, txn, after);
    }

    /// Restores the previous content of a slot if an aborted leaf is still in it.
    pub(crate) fn restore_previous(
        &self,
        local: &mut LocalBlocks,
        leaf: BlockRef,
        before: BlockRef,
        after: u64,
    ) {
        let Some(key) = self.key_of(leaf) else { return };
        let swapped = self.replace_in_slot(&key.key(), leaf, before);
        let deleted = self.meta_of(before).is_some_and(|meta| meta.has(DELETED));
        if swapped && deleted {
            // A process that tried to remove the deletion meanwhile did not find it in the slot.
            self.adopt(local.process_slot, before);
            self.queue_tombstone(local, before, after);
        }
    }

    /// Makes a process slot responsible for a leaf of another one.
    pub(crate) fn adopt(&self, process_slot: u16, leaf: BlockRef) {
        let Some(block) = self.current_block(leaf) else { return };
        let head = BlockHeader(block[0].load(Ordering::Acquire));
        if head.state() == IS_LEAF && head.tag() == leaf.tag() {
            let ours = BlockHeader::new(IS_LEAF, process_slot, leaf.tag()).0;
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = block[0].compare_exchange(head.0, ours, ok, miss);
        }
    }

    /// Whether a leaf of a transaction is a guard mark; `None` if its block was reused.
    pub(crate) fn is_guard(&self, leaf: BlockRef) -> Option<bool> {
        let block = self.current_block(leaf)?;
        let guard = leaf::is_guard(block);
        leaf::is_current(block, leaf).then_some(guard)
    }
}

/// Number of checks of a blocking transaction before a writer aborts it.
const WAIT_LIMIT: usize = 256;
