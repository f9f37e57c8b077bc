//! What a leaf in a slot means: that its change holds, or that what was before it still does.

use super::blocks::Local;
use super::key::Key;
use super::layout::MAX_TXN_WRITES;
use super::leaf::{self, DELETED, LeafMeta, PREV, REVISION, Record, TXN_WORD};
use super::region::{Block, Region};
use super::word::{
    ABORTED, COMMITTED, Head, IS_LEAF, LEAF, PERSISTING, Status, TXN, UNDECIDED, WRITING, Word,
    is_pending, pending,
};
use super::{MAX_TRIES, Stuck};
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
pub(crate) enum Settled {
    /// Its change holds, and has a revision.
    Holds,
    /// It does not hold, or not yet: this does (nothing, if it names nothing).
    Before { word: Word, pending: Option<Word> },
    /// The block is used for something else by now: look at the slot again.
    Gone,
}

impl<'a> Region<'a> {
    /// Settles a leaf's word. Gives the change a revision if it holds and has none.
    pub(crate) fn settle(&self, word: Word, root: u32) -> Result<Settled, Stuck> {
        let Some(block) = self.named(word) else { return Ok(Settled::Gone) };
        let revision = block[REVISION].load(Ordering::Acquire);
        if !is_pending(revision) {
            return Ok(Settled::Holds);
        }
        let txn = Word(block[TXN_WORD].load(Ordering::Relaxed));
        let before = Word(block[PREV].load(Ordering::Relaxed));
        let guard = leaf::is_guard(block);
        if !leaf::is_still(block, word) {
            return Ok(Settled::Gone);
        }
        if txn.is_none() {
            return Ok(self.number(word, root)?.map_or(Settled::Gone, |_| Settled::Holds));
        }
        let Some(status) = self.status(txn) else {
            // It is over, then, and said how first.
            return Ok(match is_pending(block[REVISION].load(Ordering::Acquire)) {
                true => Settled::Gone,
                false => Settled::Holds,
            });
        };
        match status.state() {
            COMMITTED => {
                // Numbered first also where nothing changed: what comes next here comes after it.
                let Some(revision) = self.number(txn, 0)? else { return Ok(Settled::Gone) };
                if guard {
                    return Ok(Settled::Before { word: before, pending: None });
                }
                self.number_of_txn(word, revision);
                Ok(Settled::Holds)
            }
            ABORTED => Ok(Settled::Before { word: before, pending: None }),
            _ => Ok(Settled::Before { word: before, pending: Some(txn) }),
        }
    }

    /// Gives a leaf the revision of its transaction.
    pub(crate) fn number_of_txn(&self, leaf: Word, revision: u64) {
        if let Some(block) = self.block(leaf.unit()) {
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = block[REVISION].compare_exchange(pending(leaf.tag()), revision, ok, miss);
            fail_point!("state.spread");
        }
    }

    /// The status of a transaction; `None` if its block is used for something else by now.
    pub fn status(&self, txn: Word) -> Option<Status> {
        if txn.kind() != TXN {
            return None;
        }
        let status = Status(self.named(txn)?[STATUS].load(Ordering::SeqCst));
        (status.tag() == txn.tag()).then_some(status)
    }

    /// Decides over a transaction, if it is in this state.
    pub fn decide(&self, txn: Word, from: u64, to: u64) -> bool {
        let Some(block) = self.block(txn.unit()) else { return false };
        let (from, to) = (Status::new(from, txn.tag()).0, Status::new(to, txn.tag()).0);
        let decided =
            block[STATUS].compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        fail_point!("state.decided");
        decided
    }

    /// What is in the way of a writer: ends a transaction that is not decided, after leaving it some
    /// time. `false` if it is with the persister and must be waited for.
    pub(crate) fn clear_the_way(&self, txn: Word) -> bool {
        for _ in 0..WAIT_LIMIT {
            match self.status(txn).map(Status::state) {
                Some(UNDECIDED) => crate::sync::spin(),
                Some(PERSISTING | WRITING) => return false,
                _ => return true,
            }
        }
        self.decide(txn, UNDECIDED, ABORTED);
        !matches!(self.status(txn).map(Status::state), Some(PERSISTING | WRITING))
    }

    /// The word that holds for a key as of a revision, from what stands in its slot; the empty word if
    /// the key was not there.
    pub(crate) fn as_of(
        &self,
        word: Word,
        root: u32,
        revision: u64,
    ) -> Result<Option<Word>, Stuck> {
        let mut word = word;
        for _ in 0..MAX_TRIES {
            if word.is_none() {
                return Ok(Some(word));
            }
            if word.kind() != LEAF {
                return Err(Stuck);
            }
            match self.settle(word, root)? {
                Settled::Gone => return Ok(None),
                Settled::Before { word: before, .. } => word = before,
                Settled::Holds => {
                    let Some(block) = self.named(word) else { return Ok(None) };
                    let at = block[REVISION].load(Ordering::Acquire);
                    let before = Word(block[PREV].load(Ordering::Relaxed));
                    if !leaf::is_still(block, word) {
                        return Ok(None);
                    }
                    if at <= revision {
                        return Ok(Some(word));
                    }
                    word = before;
                }
            }
        }
        Err(Stuck)
    }

    /// Takes a deletion out of its slot, so that the slot is empty; whether this did it.
    pub(crate) fn clear_tomb(&self, word: Word) -> bool {
        let Some(key) = self.key_of(word) else { return false };
        self.swap_out(&key.key(), word, Word::NONE)
    }

    /// Puts `next` where `word` stands, wherever that is by now.
    pub(crate) fn swap_out(&self, key: &Key<'_>, word: Word, next: Word) -> bool {
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
    pub fn pairs(&self, txn: Word) -> Option<Vec<(Word, Word)>> {
        let block = self.named(txn)?;
        let count = block[COUNT].load(Ordering::Acquire) as usize;
        if count > MAX_TXN_WRITES {
            return None;
        }
        let words: Block<'_> = block.get(PAIRS..PAIRS + 2 * count)?;
        let load = |at: usize| Word(words[at].load(Ordering::Relaxed));
        let pairs = (0..count).map(|i| (load(2 * i), load(2 * i + 1))).collect();
        leaf::is_still(block, txn).then_some(pairs)
    }

    /// Copies a leaf that is named; `None` if its block is used for something else by now.
    pub fn copy_leaf(&self, word: Word, into: &mut Record) -> Option<()> {
        leaf::copy(self.named(word)?, word, into)
    }

    /// The numbers of a leaf that is named.
    pub fn meta_of(&self, word: Word) -> Option<LeafMeta> {
        if word.is_none() {
            return None;
        }
        leaf::meta(self.named(word)?, word)
    }

    /// Why the persister refuses a transaction; to be said before it is aborted.
    pub fn set_reason(&self, txn: Word, reason: u64) {
        if let Some(block) = self.named(txn) {
            block[REASON].store(reason, Ordering::Release);
        }
    }

    /// Ends a transaction of ours that does not hold: its leaves leave their slots, and are kept for
    /// those who read them.
    pub(crate) fn undo(&self, local: &mut Local, txn: Word) {
        let pairs = self.pairs(txn).unwrap_or_default();
        let newest = || self.newest().unwrap_or(u64::MAX - 1).saturating_add(1);
        for (leaf, before) in &pairs {
            self.put_back_before(local, *leaf, *before, newest());
        }
        // Asked when they are out of their slots: who reads as of an earlier revision may have met one.
        let after = newest();
        for (leaf, _) in pairs {
            self.retire(local, leaf, after);
        }
        self.retire(local, txn, after);
    }

    /// Puts what was before a leaf that does not hold into its slot again, if the leaf stands there.
    pub(crate) fn put_back_before(&self, local: &mut Local, leaf: Word, before: Word, after: u64) {
        let Some(key) = self.key_of(leaf) else { return };
        let swapped = self.swap_out(&key.key(), leaf, before);
        let deleted = self.meta_of(before).is_some_and(|meta| meta.has(DELETED));
        if swapped && deleted {
            // Who wanted to take the deletion out of its slot meanwhile did not find it there.
            self.adopt(local.process_slot, before);
            self.queue_tomb(local, before, after);
        }
    }

    /// Makes a process slot responsible for a leaf of another.
    pub(crate) fn adopt(&self, process_slot: u16, leaf: Word) {
        let Some(block) = self.named(leaf) else { return };
        let head = Head(block[0].load(Ordering::Acquire));
        if head.state() == IS_LEAF && head.tag() == leaf.tag() {
            let ours = Head::new(IS_LEAF, process_slot, leaf.tag()).0;
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = block[0].compare_exchange(head.0, ours, ok, miss);
        }
    }

    /// Whether a leaf of a transaction is a guard's mark; `None` if its block is used for something else.
    pub(crate) fn is_guard(&self, leaf: Word) -> Option<bool> {
        let block = self.named(leaf)?;
        let guard = leaf::is_guard(block);
        leaf::is_still(block, leaf).then_some(guard)
    }
}

/// How often a writer looks at a transaction in its way before it ends it.
const WAIT_LIMIT: usize = 256;
