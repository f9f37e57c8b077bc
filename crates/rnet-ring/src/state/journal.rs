//! The journal: every change has a position in it, and the position is its revision.
//!
//! A change becomes visible when its leaf is in its slot, and is ordered among all others when its block is
//! in the journal. A process that finds a leaf without a revision writes it into the journal before it uses
//! the leaf. Therefore no process waits for a writer that was stopped or killed in between, revisions have no
//! gaps, and all processes see the changes in the order of the journal.

use super::block_words::{
    BlockHeader, BlockRef, IS_LEAF, IS_TXN, JournalEntry, LEAF, RETIRED, TXN, is_pending, pending,
};
use super::layout::{FOLLOWER_FILTER, LEASE_OWNER, LEASE_REVISION, REVOKED, SNAPSHOT_LEASES};
use super::leaf::{self, DELETED, REVISION};
use super::region::{Block, Environment, Region};
use super::{MAX_TRIES, RetriesExhausted};
use crate::fail_point;
use crate::sync::Ordering;

/// The first revision.
pub const FIRST_REVISION: u64 = 1;

impl<'a> Region<'a> {
    pub(crate) fn entry(&self, position: u64) -> &'a crate::sync::AtomicU64 {
        let mask = (1 << self.geometry.journal_bits) - 1;
        self.at(self.journal_at + (position & mask) as usize)
    }

    fn lap(&self, position: u64) -> u64 {
        JournalEntry::lap_of(&self.geometry, position)
    }

    /// Finishes an entry at the tail, if one exists; `true` if the tail has moved.
    pub(crate) fn help(&self, tail: u64) -> bool {
        let entry = JournalEntry(self.entry(tail).load(Ordering::SeqCst));
        if !entry.is_of(self.lap(tail)) {
            return false;
        }
        if let Some(block) = self.block(entry.unit()) {
            let tag = BlockHeader(block[0].load(Ordering::Acquire)).tag();
            fail_point!("state.helping");
            // A block is reused only after the tail has passed its entry. If the tail is unchanged, the tag
            // belongs to the use in the entry; otherwise another process has helped.
            if self.tail().load(Ordering::SeqCst) == tail {
                let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
                let _ = block[REVISION].compare_exchange(pending(tag), tail, ok, miss);
                fail_point!("state.numbered");
            }
        }
        // SYNC-TAIL: a process that sees the new tail also sees the assigned revision.
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        let _ = self.tail().compare_exchange(tail, tail.wrapping_add(1), ok, miss);
        true
    }

    /// The newest revision that any process may have seen.
    pub fn newest(&self) -> Result<u64, RetriesExhausted> {
        for _ in 0..MAX_TRIES {
            let tail = self.tail().load(Ordering::SeqCst);
            if !self.help(tail) {
                return Ok(tail.wrapping_sub(1));
            }
        }
        Err(RetriesExhausted)
    }

    /// The revision of a committed leaf or transaction; assigns it if necessary. `None` if the block was
    /// reused.
    pub(crate) fn assign_revision(
        &self,
        word: BlockRef,
        root: u32,
    ) -> Result<Option<u64>, RetriesExhausted> {
        for _ in 0..MAX_TRIES {
            // SYNC-TAIL: in this order; a block whose entry is below this tail has its revision.
            let tail = self.tail().load(Ordering::SeqCst);
            let Some(block) = self.current_block(word) else { return Ok(None) };
            let revision = block[REVISION].load(Ordering::Acquire);
            if !is_pending(revision) {
                return Ok(leaf::is_current(block, word).then_some(revision));
            }
            if revision != pending(word.tag()) {
                return Ok(None);
            }
            fail_point!("state.unnumbered");
            self.append(tail, block, word, root);
            self.help(tail);
        }
        Err(RetriesExhausted)
    }

    /// Writes a block without a revision into the journal at the tail, unless an entry exists.
    pub(crate) fn append(&self, tail: u64, block: Block<'_>, word: BlockRef, root: u32) {
        let place = self.entry(tail);
        let old = JournalEntry(place.load(Ordering::SeqCst));
        // The loaded entry was there when this was the tail, not a lap later.
        if old.is_of(self.lap(tail)) || self.tail().load(Ordering::SeqCst) != tail {
            return;
        }
        let deleted =
            word.kind() == LEAF && leaf::meta(block, word).is_some_and(|meta| meta.has(DELETED));
        let new = JournalEntry::new(word, self.lap(tail), deleted, root);
        fail_point!("state.appending");
        // SYNC-FOLLOW: sequentially consistent, like a follower's bit and its last check.
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        if place.compare_exchange(old.0, new.0, ok, miss).is_ok() {
            fail_point!("state.journalled");
        }
    }

    /// Wakes the followers that wait for a change in this root slot (`None`: in any).
    pub(crate) fn wake_followers(&self, env: &impl Environment, root: Option<u32>) {
        for group in 0..self.geometry.followers / 64 {
            // SYNC-FOLLOW: see `append`.
            let mut asleep = self.asleep(group).load(Ordering::SeqCst);
            while asleep != 0 {
                let bit = asleep & asleep.wrapping_neg();
                let follower = group * 64 + asleep.trailing_zeros() as usize;
                asleep &= asleep - 1;
                let filter = self.follower(follower, FOLLOWER_FILTER).load(Ordering::Acquire);
                let meant = filter == 0 || root.is_none_or(|root| u64::from(root) + 1 == filter);
                // The process that clears the bit rings; others need not.
                if meant && self.asleep(group).fetch_and(!bit, Ordering::SeqCst) & bit != 0 {
                    fail_point!("state.ringing");
                    env.wake(follower);
                }
            }
        }
    }

    /// Announces that a follower will sleep. `true` if a change after its position already exists and it must
    /// not sleep. Later changes wake it.
    pub fn before_sleep(&self, follower: usize, at: &super::Position) -> bool {
        let (group, bit) = (follower / 64, 1 << (follower % 64));
        // SYNC-FOLLOW: see `append`.
        self.asleep(group).fetch_or(bit, Ordering::SeqCst);
        let has_change = self.may_have(at);
        if has_change {
            self.asleep(group).fetch_and(!bit, Ordering::SeqCst);
        }
        has_change
    }

    /// Takes a lease to read as of the newest revision. The required blocks are kept until
    /// [`Region::end_snapshot`]. `None` if all leases are taken, or it was revoked immediately.
    pub(crate) fn take_lease(
        &self,
        process_slot: u16,
    ) -> Result<Option<SnapshotLease>, RetriesExhausted> {
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        let free = (0..SNAPSHOT_LEASES).find(|lease| {
            let owner = self.lease(*lease, LEASE_OWNER);
            owner.load(Ordering::Relaxed) == 0
                && owner.compare_exchange(0, u64::from(process_slot) + 1, ok, miss).is_ok()
        });
        let Some(lease) = free else { return Ok(None) };
        fail_point!("state.lease");
        // 0 keeps everything until the revision is known.
        self.lease(lease, LEASE_REVISION).store(0, Ordering::SeqCst);
        // SYNC-LEASE: see `Region::oldest_lease`.
        self.taken_leases().fetch_or(1 << lease, Ordering::SeqCst);
        fail_point!("state.lease_taken");
        let revision = match self.newest() {
            Ok(revision) => revision,
            Err(stuck) => {
                self.end_snapshot(SnapshotLease { lease, revision: 0 });
                return Err(stuck);
            }
        };
        let word = self.lease(lease, LEASE_REVISION);
        if word.compare_exchange(0, revision, ok, miss).is_err() {
            // Revoked before it started.
            self.end_snapshot(SnapshotLease { lease, revision });
            return Ok(None);
        }
        Ok(Some(SnapshotLease { lease, revision }))
    }

    /// Whether a snapshot lease is free.
    pub fn has_free_lease(&self) -> bool {
        self.taken_leases().load(Ordering::Acquire) != u64::MAX
    }

    /// Whether a lease is still valid: nothing it needs was reused.
    pub(crate) fn is_lease_valid(&self, lease: &SnapshotLease) -> bool {
        self.lease(lease.lease, LEASE_REVISION).load(Ordering::SeqCst) != REVOKED
    }

    pub(crate) fn end_snapshot(&self, lease: SnapshotLease) {
        self.taken_leases().fetch_and(!(1 << lease.lease), Ordering::SeqCst);
        fail_point!("state.standing");
        self.lease(lease.lease, LEASE_OWNER).store(0, Ordering::Release);
    }

    /// The change at a position of the journal.
    pub(crate) fn at_position(&self, position: u64) -> JournalSlot {
        let entry = JournalEntry(self.entry(position).load(Ordering::Acquire));
        if !entry.is_of(self.lap(position)) {
            return JournalSlot::Overwritten;
        }
        let word = self.block(entry.unit()).and_then(|block| {
            let head = BlockHeader(block[0].load(Ordering::Acquire));
            // A block that is being prepared for reuse has its next tag before its new content: a copy of it
            // would mix old and new content under one tag.
            let (kind, state) = if entry.is_txn() { (TXN, IS_TXN) } else { (LEAF, IS_LEAF) };
            if head.state() != state && head.state() != RETIRED {
                return None;
            }
            let word = BlockRef::new(kind, entry.unit(), head.tag());
            // The revision shows whether the block still contains this change: revisions are unique.
            let revision = block[REVISION].load(Ordering::Acquire);
            (revision == position && leaf::is_current(block, word)).then_some(word)
        });
        JournalSlot::Change { entry, word }
    }
}

/// A snapshot reader's lease.
#[derive(Debug)]
pub(crate) struct SnapshotLease {
    lease: usize,
    /// Changes up to this revision are visible, later ones are not.
    pub(crate) revision: u64,
}

/// The content of a journal position.
pub(crate) enum JournalSlot {
    /// A newer change overwrote the entry.
    Overwritten,
    /// The change; `word` is `None` if its block was reused.
    Change { entry: JournalEntry, word: Option<BlockRef> },
}
