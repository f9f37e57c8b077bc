//! What a leaf in a slot means: that its change holds, or that what was before it still does.

use super::blocks::LocalBlocks;
use super::key::Key;
use super::layout::MAX_TXN_WRITES;
use super::leaf::{self, DELETED, LeafBuffer, LeafMeta, PREV, REVISION, TXN_WORD};
use super::region::{Block, Region};
use super::word::{
    ABORTED, BlockHeader, BlockRef, COMMITTED, IS_LEAF, LEAF, PERSISTING, TXN, TxnStatus,
    UNDECIDED, WRITING, is_pending, pending,
};
use super::{MAX_TRIES, RetriesExhausted};
use crate::fail_point;
use crate::sync::Ordering;

/// Transaction word: decides over it.
pub(crate) const STATUS: usize = 2;
/// Transaction word: how many leaves it has.
pub(crate) const COUNT: usize = 3;
/// Transaction word: what the persister says of a refusal.
pub(crate) const REASON: usize = 4;
/// First of the transaction's pairs: a leaf, and what stood before it.
pub(crate) const PAIRS: usize = 5;

/// What a leaf's word means now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedLeaf {
    /// Its change holds, and has a revision.
    Committed,
    /// It does not hold, or not yet: this does (nothing, if it names nothing).
    Previous { word: BlockRef, pending: Option<BlockRef> },
    /// The block is used for something else by now: look at the slot again.
    Reused,
}

impl<'a> Region<'a> {
    /// Settles a leaf's word. Gives the change a revision if it holds and has none.
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
            // It is over, then, and said how first.
            return Ok(match is_pending(block[REVISION].load(Ordering::Acquire)) {
                true => ResolvedLeaf::Reused,
                false => ResolvedLeaf::Committed,
            });
        };
        match status.state() {
            COMMITTED => {
                // Numbered first also where nothing changed: what comes next here comes after it.
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

    /// Gives a leaf the revision of its transaction.
    pub(crate) fn assign_txn_revision(&self, leaf: BlockRef, revision: u64) {
        if let Some(block) = self.block(leaf.unit()) {
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = block[REVISION].compare_exchange(pending(leaf.tag()), revision, ok, miss);
            fail_point!("state.spread");
        }
    }

    /// The status of a transaction; `None` if its block is used for something else by now.
    pub fn status(&self, txn: BlockRef) -> Option<TxnStatus> {
        if txn.kind() != TXN {
            return None;
        }
        let status = TxnStatus(self.current_block(txn)?[STATUS].load(Ordering::SeqCst));
        (status.tag() == txn.tag()).then_some(status)
    }

    /// Decides over a transaction, if it is in this state.
    pub fn decide(&self, txn: BlockRef, from: u64, to: u64) -> bool {
        let Some(block) = self.block(txn.unit()) else { return false };
        let (from, to) = (TxnStatus::new(from, txn.tag()).0, TxnStatus::new(to, txn.tag()).0);
        let decided =
            block[STATUS].compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        fail_point!("state.decided");
        decided
    }

    /// What is in the way of a writer: ends a transaction that is not decided, after leaving it some
    /// time. `false` if it is with the persister and must be waited for.
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

    /// The word that holds for a key as of a revision, from what stands in its slot; the empty word if
    /// the key was not there.
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

    /// Takes a deletion out of its slot, so that the slot is empty; whether this did it.
    pub(crate) fn clear_tombstone(&self, word: BlockRef) -> bool {
        let Some(key) = self.key_of(word) else { return false };
        self.replace_in_slot(&key.key(), word, BlockRef::NONE)
    }

    /// Puts `next` where `word` stands, wherever that is by now.
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

    /// The leaves of a transaction, each with what stood before it.
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

    /// Copies a leaf that is named; `None` if its block is used for something else by now.
    pub fn copy_leaf(&self, word: BlockRef, into: &mut LeafBuffer) -> Option<()> {
        leaf::copy(self.current_block(word)?, word, into)
    }

    /// The numbers of a leaf that is named.
    pub fn meta_of(&self, word: BlockRef) -> Option<LeafMeta> {
        if word.is_none() {
            return None;
        }
        leaf::meta(self.current_block(word)?, word)
    }

    /// Why the persister refuses a transaction; to be said before it is aborted.
    pub fn set_reason(&self, txn: BlockRef, reason: u64) {
        if let Some(block) = self.current_block(txn) {
            block[REASON].store(reason, Ordering::Release);
        }
    }

    /// Ends a transaction of ours that does not hold: its leaves leave their slots, and are kept for
    /// those who read them.
    pub(crate) fn undo(&self, local: &mut LocalBlocks, txn: BlockRef) {
        let pairs = self.pairs(txn).unwrap_or_default();
        let newest = || self.newest().unwrap_or(u64::MAX - 1).saturating_add(1);
        for (leaf, before) in &pairs {
            self.restore_previous(local, *leaf, *before, newest());
        }
        // Asked when they are out of their slots: who reads as of an earlier revision may have met one.
        let after = newest();
        for (leaf, _) in pairs {
            self.retire(local, leaf, after);
        }
        self.retire(local, txn, after);
    }

    /// Puts what was before a leaf that does not hold into its slot again, if the leaf stands there.
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
            // Who wanted to take the deletion out of its slot meanwhile did not find it there.
            self.adopt(local.process_slot, before);
            self.queue_tombstone(local, before, after);
        }
    }

    /// Makes a process slot responsible for a leaf of another.
    pub(crate) fn adopt(&self, process_slot: u16, leaf: BlockRef) {
        let Some(block) = self.current_block(leaf) else { return };
        let head = BlockHeader(block[0].load(Ordering::Acquire));
        if head.state() == IS_LEAF && head.tag() == leaf.tag() {
            let ours = BlockHeader::new(IS_LEAF, process_slot, leaf.tag()).0;
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = block[0].compare_exchange(head.0, ours, ok, miss);
        }
    }

    /// Whether a leaf of a transaction is a guard's mark; `None` if its block is used for something else.
    pub(crate) fn is_guard(&self, leaf: BlockRef) -> Option<bool> {
        let block = self.current_block(leaf)?;
        let guard = leaf::is_guard(block);
        leaf::is_current(block, leaf).then_some(guard)
    }
}

/// How often a writer looks at a transaction in its way before it ends it.
const WAIT_LIMIT: usize = 256;
