//! Transactions: several keys, all or nothing.
//!
//! A transaction's leaves are in their slots before it commits; one status word decides over all of them.
//! Keys that were only read carry a guard mark, so that no change comes between the reads and the writes. If
//! a process dies half-way, other processes can decide the transaction.

use super::block_words::{
    ABORTED, BlockRef, COMMITTED, IS_TXN, PERSISTING, TXN, TxnStatus, UNDECIDED,
};
use super::blocks::{LocalBlocks, OutOfMemory, OwnedBlock};
use super::conditional_write::{
    Check, CommitError, CommitOutcome, CurrentLeaf, Guard, Prepared, Write,
};
use super::journal::SnapshotLease;
use super::leaf::{self, DELETED, GUARD, LeafContent, LeafMeta, MEMORY_ONLY};
use super::region::{Block, Environment, Region};
use super::resolve::{COUNT, PAIRS, REASON, STATUS};
use super::{MAX_TRIES, RetriesExhausted};
use crate::fail_point;
use crate::sync::Ordering;

impl Region<'_> {
    /// Writes several keys, all or nothing, if all guards hold. Consumes or releases the prepared leaves in
    /// any case.
    pub fn commit_all<E>(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        writes: &[(Write<'_>, Prepared)],
        guards: &[Guard<'_>],
        now: u64,
        check: Check<'_, E>,
    ) -> Result<CommitOutcome, CommitError<E>> {
        if writes.is_empty() {
            return self.check_guards(local, guards, 0, now);
        }
        let txn = match self.begin_txn(local, env, writes.len() + guards.len()) {
            Ok(begun) => begun,
            Err(OutOfMemory) => {
                self.discard_all(local, writes, 0);
                return Err(CommitError::OutOfMemory(PAIRS + 2 * (writes.len() + guards.len())));
            }
        };
        let mut used = 0;
        let installed = self.install(local, env, txn, writes, now, check, &mut used);
        if let Ok(InstalledLeaves { changes: 0, .. }) = installed {
            self.abort_txn(local, txn, writes);
            return self.check_unchanged(local, writes, guards, now);
        }
        let decided = installed.and_then(|InstalledLeaves { disk, .. }| {
            self.install_guards(local, env, txn, guards, writes.len(), now, &mut used)?;
            fail_point!("state.deciding");
            let to = if disk { PERSISTING } else { COMMITTED };
            if self.decide(txn, UNDECIDED, to) { Ok(disk) } else { Err(CommitError::Retry) }
        });
        match decided {
            Err(refused) => {
                self.abort_txn(local, txn, writes);
                Err(refused)
            }
            Ok(true) => {
                self.discard_skipped(local, writes, txn);
                Ok(CommitOutcome::Persisting(txn))
            }
            Ok(false) => {
                self.discard_skipped(local, writes, txn);
                let revision = self.conclude_committed(local, env, txn)?;
                Ok(CommitOutcome::Committed(revision))
            }
        }
    }

    /// Aborts a transaction of this process and returns its unused leaves.
    fn abort_txn(&self, local: &mut LocalBlocks, txn: BlockRef, writes: &[(Write<'_>, Prepared)]) {
        self.decide(txn, UNDECIDED, ABORTED);
        self.undo(local, txn);
        self.discard_skipped(local, writes, txn);
    }

    /// For a transaction that deletes only absent keys: checks that they are still absent and that its guards
    /// hold.
    fn check_unchanged<E>(
        &self,
        local: &LocalBlocks,
        writes: &[(Write<'_>, Prepared)],
        guards: &[Guard<'_>],
        now: u64,
    ) -> Result<CommitOutcome, CommitError<E>> {
        let absent = writes.iter().map(|(write, _)| Guard { key: write.key, revision: 0 });
        let all: Vec<Guard<'_>> = absent.chain(guards.iter().copied()).collect();
        match self.check_guards(local, &all, 0, now) {
            // The key was created meanwhile and must be deleted: try again.
            Err(CommitError::Conflict { index, .. }) if index < writes.len() => {
                Err(CommitError::Retry)
            }
            other => other,
        }
    }

    /// `first` is the caller's index of the first guard.
    fn check_guards<E>(
        &self,
        local: &LocalBlocks,
        guards: &[Guard<'_>],
        first: usize,
        now: u64,
    ) -> Result<CommitOutcome, CommitError<E>> {
        let Some(lease) = self.take_lease(local.process_slot)? else {
            return Err(CommitError::Retry);
        };
        let checked = self.failed_guard(&lease, guards, now);
        let held = self.is_lease_valid(&lease);
        self.end_snapshot(lease);
        match checked {
            Ok(None) if held => Ok(CommitOutcome::Unchanged),
            Ok(Some((index, expected, found))) if held => {
                Err(CommitError::Conflict { index: first + index, expected, found })
            }
            _ => Err(CommitError::Retry),
        }
    }

    fn failed_guard(
        &self,
        lease: &SnapshotLease,
        guards: &[Guard<'_>],
        now: u64,
    ) -> Result<Option<(usize, u64, u64)>, RetriesExhausted> {
        for (index, guard) in guards.iter().enumerate() {
            if let Some(found) = self.differing_revision(lease, guard.key, guard.revision, now)? {
                return Ok(Some((index, guard.revision, found)));
            }
        }
        Ok(None)
    }

    fn begin_txn(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        writes: usize,
    ) -> Result<BlockRef, OutOfMemory> {
        let own = self.allocate(local, env, PAIRS + 2 * writes)?;
        let block = self.block(own.unit).expect("our own blocks lie inside the region");
        block[STATUS].store(TxnStatus::new(UNDECIDED, own.tag).0, Ordering::Relaxed);
        block[COUNT].store(0, Ordering::Relaxed);
        block[REASON].store(0, Ordering::Relaxed);
        fail_point!("state.txn");
        self.set_state(local.process_slot, own, IS_TXN);
        Ok(BlockRef::new(TXN, own.unit, own.tag))
    }

    /// Puts the leaves of a transaction into their slots.
    #[allow(clippy::too_many_arguments)]
    fn install<E>(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        txn: BlockRef,
        writes: &[(Write<'_>, Prepared)],
        now: u64,
        check: Check<'_, E>,
        used: &mut usize,
    ) -> Result<InstalledLeaves, CommitError<E>> {
        let block = self.block(txn.unit()).ok_or(CommitError::RetriesExhausted)?;
        let mut done = InstalledLeaves { changes: 0, disk: false };
        for (index, (write, prepared)) in writes.iter().enumerate() {
            let mut tries = 0;
            loop {
                tries += 1;
                if tries > MAX_TRIES {
                    return Err(CommitError::RetriesExhausted);
                }
                if self.status(txn).is_none_or(|status| status.state() != UNDECIDED) {
                    return Err(CommitError::Retry);
                }
                let current = self.current(local, env, write.key)?;
                self.conditions(index, write, &current, now, check)?;
                let mut write = *write;
                let changes = !write.deletes() || current.with_expired().is_some();
                if !changes {
                    // The absence of the key becomes a condition of the commit.
                    write.content.meta.flags = GUARD;
                    write.durable = Some(false);
                }
                let word = self.link(local, prepared.0, &write, &current, txn, now);
                if self.install_leaf(block, &current, word, used) {
                    done.changes += usize::from(changes);
                    let apart = write.content.meta.has(MEMORY_ONLY);
                    let durable = write.durable == Some(true) || current.is_durable(now);
                    done.disk |= changes && durable && !apart;
                    break;
                }
            }
        }
        Ok(done)
    }

    /// Puts guard marks into the slots of the keys that were read: later changes of these keys abort this
    /// transaction or follow it.
    #[allow(clippy::too_many_arguments)]
    fn install_guards<E>(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        txn: BlockRef,
        guards: &[Guard<'_>],
        first: usize,
        now: u64,
        used: &mut usize,
    ) -> Result<(), CommitError<E>> {
        for (index, guard) in guards.iter().enumerate() {
            let meta = LeafMeta { flags: GUARD, ..LeafMeta::default() };
            let content = LeafContent { writer: &[], value: &[], will: None, meta };
            let write = Write { key: guard.key, content, expect: None, durable: Some(false) };
            let words = content.words(guard.key);
            let own = self
                .allocate(local, env, words)
                .map_err(|OutOfMemory| CommitError::OutOfMemory(words))?;
            let prepared = Prepared(own);
            self.fill(&prepared, &write);
            let installed = self.install_guard(local, env, txn, &write, guard, own, now, used);
            match installed {
                Ok(None) => {}
                Ok(Some(found)) => {
                    self.put_back(local, own);
                    let index = first + index;
                    return Err(CommitError::Conflict { index, expected: guard.revision, found });
                }
                Err(refused) => {
                    self.put_back(local, own);
                    return Err(refused);
                }
            }
        }
        Ok(())
    }

    /// Installs one mark; returns the current revision if it differs from the guard's.
    #[allow(clippy::too_many_arguments)]
    fn install_guard<E>(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        txn: BlockRef,
        write: &Write<'_>,
        guard: &Guard<'_>,
        own: OwnedBlock,
        now: u64,
        used: &mut usize,
    ) -> Result<Option<u64>, CommitError<E>> {
        let block = self.block(txn.unit()).ok_or(CommitError::RetriesExhausted)?;
        for _ in 0..MAX_TRIES {
            if self.status(txn).is_none_or(|status| status.state() != UNDECIDED) {
                return Err(CommitError::Retry);
            }
            let current = self.current(local, env, guard.key)?;
            let found = current.live(now).map_or(0, |meta| meta.revision);
            if found != guard.revision {
                return Ok(Some(found));
            }
            let word = self.link(local, own, write, &current, txn, now);
            if self.install_leaf(block, &current, word, used) {
                return Ok(None);
            }
        }
        Err(CommitError::RetriesExhausted)
    }

    /// Lists a leaf of a transaction and puts it into its slot; `false` if the slot has changed.
    fn install_leaf(
        &self,
        txn: Block<'_>,
        current: &CurrentLeaf<'_>,
        word: BlockRef,
        used: &mut usize,
    ) -> bool {
        // Listed before it is visible, so that a process that aborts this transaction finds it.
        txn[PAIRS + 2 * *used].store(word.0, Ordering::Relaxed);
        txn[PAIRS + 2 * *used + 1].store(current.old.0, Ordering::Relaxed);
        txn[COUNT].store(*used as u64 + 1, Ordering::Release);
        fail_point!("state.listed");
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        let at = current.slot.at;
        if at.compare_exchange(current.slot.word.0, word.0, ok, miss).is_ok() {
            fail_point!("state.installed");
            *used += 1;
            return true;
        }
        txn[COUNT].store(*used as u64, Ordering::Release);
        false
    }

    /// Returns all prepared leaves from index `from` on.
    fn discard_all(&self, local: &mut LocalBlocks, writes: &[(Write<'_>, Prepared)], from: usize) {
        for (_, prepared) in &writes[from..] {
            self.put_back(local, prepared.0);
        }
    }

    /// Returns the prepared leaves that a transaction did not use.
    fn discard_skipped(
        &self,
        local: &mut LocalBlocks,
        writes: &[(Write<'_>, Prepared)],
        txn: BlockRef,
    ) {
        let Some(pairs) = self.pairs(txn) else { return };
        for (_, prepared) in writes {
            let own = prepared.0;
            if !pairs.iter().any(|(leaf, _)| leaf.unit() == own.unit && leaf.tag() == own.tag) {
                self.put_back(local, own);
            }
        }
    }

    /// Concludes a transaction that the persister has decided: returns its revision, or `None` and the
    /// persister's reason if it was refused.
    pub fn conclude(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        txn: BlockRef,
    ) -> Result<Result<u64, u64>, RetriesExhausted> {
        match self.status(txn).map(TxnStatus::state) {
            Some(COMMITTED) => self.conclude_committed(local, env, txn).map(Ok),
            Some(ABORTED) => {
                let reason =
                    self.block(txn.unit()).map_or(0, |b| b[REASON].load(Ordering::Acquire));
                self.undo(local, txn);
                Ok(Err(reason))
            }
            _ => Err(RetriesExhausted),
        }
    }

    /// Concludes a committed transaction: assigns revisions to its leaves and retires their predecessors.
    pub(crate) fn conclude_committed(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        txn: BlockRef,
    ) -> Result<u64, RetriesExhausted> {
        let revision = self.assign_revision(txn, 0)?.ok_or(RetriesExhausted)?;
        let pairs = self.pairs(txn).ok_or(RetriesExhausted)?;
        let guard = |leaf: BlockRef| self.is_guard(leaf) == Some(true);
        for (leaf, _) in pairs.iter().filter(|(leaf, _)| !guard(*leaf)) {
            self.assign_txn_revision(*leaf, revision);
        }
        for (leaf, before) in &pairs {
            if guard(*leaf) {
                self.restore_previous(local, *leaf, *before, revision);
                self.retire(local, *leaf, revision);
                continue;
            }
            if !before.is_none() {
                self.retire(local, *before, revision);
            }
            let key = self.key_of(*leaf);
            let meta = self.current_block(*leaf).and_then(|block| leaf::meta(block, *leaf));
            if let (Some(key), Some(meta)) = (key, meta)
                && meta.has(DELETED)
            {
                self.remove_tombstone(local, &key.key(), *leaf, revision);
            }
        }
        fail_point!("state.concluding");
        self.retire(local, txn, revision);
        self.wake_followers(env, None);
        self.recycle(local);
        Ok(revision)
    }
}

/// Result of installing a transaction's leaves.
struct InstalledLeaves {
    /// Number of leaves that change something; the others are marks.
    changes: usize,
    /// Whether any change must be written to disk.
    disk: bool,
}
