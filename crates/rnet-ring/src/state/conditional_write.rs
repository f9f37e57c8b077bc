//! Writes: one key by one compare-and-swap, several by a transaction that is all or nothing.

use super::block_words::{BlockRef, IS_LEAF, LEAF};
use super::blocks::{LocalBlocks, OutOfMemory, OwnedBlock};
use super::key::Key;
use super::layout::{PROCESS_NEW, PROCESS_WILLS};
use super::leaf::{
    self, DELETED, DURABLE, EXPIRED, LOADED, LeafContent, LeafMeta, MEMORY_ONLY, TXN_WORD,
};
use super::region::{Environment, Region};
use super::resolve::ResolvedLeaf;
use super::trie::Slot;
use super::{CorruptRegion, MAX_TRIES, RetriesExhausted};
use crate::fail_point;
use crate::sync::Ordering;

/// One change of one key.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The key.
    pub key: &'a Key<'a>,
    /// The new content. With the flag `DELETED` the key is deleted, and the value is empty.
    pub content: LeafContent<'a>,
    /// The expected revision; 0 if the key must be absent.
    pub expect: Option<u64>,
    /// Whether to write it to disk; `None`: if the current value is on disk.
    pub durable: Option<bool>,
}

impl Write<'_> {
    pub(crate) fn deletes(&self) -> bool {
        self.content.meta.has(DELETED)
    }
}

/// A key that must be unchanged since it was read.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// The key.
    pub key: &'a Key<'a>,
    /// The expected revision; 0 if the key must be absent.
    pub revision: u64,
}

/// Why a commit changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitError<E> {
    /// The caller's check failed.
    Check(E),
    /// A key is at another revision than expected.
    Conflict {
        /// Index of the write, or of the guard; guards are counted after the writes.
        index: usize,
        /// The expected revision; 0: absent.
        expected: u64,
        /// The current revision.
        found: u64,
    },
    /// Another transaction interfered, or aborted this one: try again.
    Retry,
    /// This transaction is being written to disk and blocks the commit: wait for it, then try again.
    Wait(BlockRef),
    /// Shared memory is exhausted; the number of requested words.
    OutOfMemory(usize),
    /// Other writers won every attempt, or the region is corrupt.
    RetriesExhausted,
}

impl<E> From<RetriesExhausted> for CommitError<E> {
    fn from(_: RetriesExhausted) -> Self {
        CommitError::RetriesExhausted
    }
}
impl<E> From<CorruptRegion> for CommitError<E> {
    fn from(_: CorruptRegion) -> Self {
        CommitError::RetriesExhausted
    }
}

/// Result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The changes are committed, with this revision.
    Committed(u64),
    /// The commit changed nothing because it deletes only absent keys.
    Unchanged,
    /// The changes wait for the persister; then call [`Region::conclude`].
    Persisting(BlockRef),
}

/// Decides, based on the current value, whether a key may be written.
pub type Check<'c, E> = &'c mut dyn FnMut(usize, Option<&LeafMeta>) -> Result<(), E>;

/// The current leaf of a key, for a writer.
pub(crate) struct CurrentLeaf<'a> {
    pub(crate) slot: Slot<'a>,
    /// The committed leaf; empty if none.
    pub(crate) old: BlockRef,
    pub(crate) meta: Option<LeafMeta>,
}

impl CurrentLeaf<'_> {
    /// The metadata of an unexpired value, for a reader.
    pub(crate) fn live(&self, now: u64) -> Option<&LeafMeta> {
        self.meta.as_ref().filter(|meta| {
            !meta.has(DELETED) && (meta.expires_boot_ns == 0 || meta.expires_boot_ns > now)
        })
    }
    /// The same including an expired value, for a writer that deletes expired keys.
    pub(crate) fn with_expired(&self) -> Option<&LeafMeta> {
        self.meta.as_ref().filter(|meta| !meta.has(DELETED))
    }
    /// Whether the unexpired value is also on disk. An expired value counts as absent, and the persister,
    /// which uses the same clock, removes its own copy; neither deleting nor replacing it waits for the disk.
    pub(crate) fn is_durable(&self, now: u64) -> bool {
        self.live(now).is_some_and(|meta| meta.has(DURABLE))
    }
}

impl<'a> Region<'a> {
    /// Reads a key's slot until its state is settled; expands the trie if another key occupies the slot.
    pub(crate) fn current<E>(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        key: &Key<'_>,
    ) -> Result<CurrentLeaf<'a>, CommitError<E>> {
        for _ in 0..MAX_TRIES {
            let slot = self.find(key)?;
            if slot.word.is_none() {
                return Ok(CurrentLeaf { slot, old: BlockRef::NONE, meta: None });
            }
            if slot.word.kind() != LEAF {
                return Err(CommitError::RetriesExhausted);
            }
            let Some(block) = self.current_block(slot.word) else { continue };
            match leaf::is_of(block, slot.word, key) {
                None => continue,
                Some(true) => {}
                Some(false) => {
                    self.expand(local, env, slot)
                        .map_err(|OutOfMemory| CommitError::OutOfMemory(1))?;
                    continue;
                }
            }
            let old = match self.resolve(slot.word, key.root())? {
                ResolvedLeaf::Committed => slot.word,
                ResolvedLeaf::Reused => continue,
                ResolvedLeaf::Previous { word, pending: None } => word,
                ResolvedLeaf::Previous { pending: Some(txn), .. } => {
                    if self.abort_undecided(txn) {
                        continue;
                    }
                    return Err(CommitError::Wait(txn));
                }
            };
            if old.is_none() {
                return Ok(CurrentLeaf { slot, old, meta: None });
            }
            let Some(meta) = self.current_block(old).and_then(|block| leaf::meta(block, old))
            else {
                continue;
            };
            return Ok(CurrentLeaf { slot, old, meta: Some(meta) });
        }
        Err(CommitError::RetriesExhausted)
    }

    /// Prepares a leaf: the long part of a write, which blocks no other process.
    pub fn prepare(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        write: &Write<'_>,
    ) -> Result<Prepared, OutOfMemory> {
        self.fill_reserve(local, env);
        let words = write.content.words(write.key);
        let own = match write.deletes() {
            true => self.allocate_for_deletion(local, env, words)?,
            false => self.allocate(local, env, words)?,
        };
        if write.content.will.is_some() {
            self.process_slot(usize::from(local.process_slot), PROCESS_WILLS)
                .store(1, Ordering::Release);
        }
        Ok(Prepared(own))
    }

    /// Fills a prepared leaf. Separate from [`Region::prepare`], so that no lock is held meanwhile.
    pub fn fill(&self, prepared: &Prepared, write: &Write<'_>) {
        let block = self.block(prepared.0.unit).expect("our own blocks lie inside the region");
        leaf::fill(&block[..prepared.0.words], write.key, &write.content);
    }

    /// Returns a prepared leaf that is not committed.
    pub fn discard(&self, local: &mut LocalBlocks, prepared: Prepared) {
        self.put_back(local, prepared.0);
    }

    pub(crate) fn conditions<E>(
        &self,
        index: usize,
        write: &Write<'_>,
        current: &CurrentLeaf<'_>,
        now: u64,
        check: Check<'_, E>,
    ) -> Result<(), CommitError<E>> {
        let there = current.live(now);
        if let Some(expected) = write.expect {
            // A delete at the revision of an expired key succeeds, although the key counts as absent.
            let over = write.deletes() && expected != 0;
            let seen = if over { current.with_expired() } else { there };
            let found = seen.map_or(0, |meta| meta.revision);
            if found != expected {
                return Err(CommitError::Conflict { index, expected, found });
            }
        }
        check(index, there).map_err(CommitError::Check)
    }

    /// Links a prepared leaf to its predecessor, and marks the block as a leaf.
    pub(crate) fn link(
        &self,
        local: &LocalBlocks,
        own: OwnedBlock,
        write: &Write<'_>,
        current: &CurrentLeaf<'_>,
        txn: BlockRef,
        now: u64,
    ) -> BlockRef {
        let block = self.block(own.unit).expect("our own blocks lie inside the region");
        let was_durable = current.is_durable(now);
        let mut flags = write.content.meta.flags & !(MEMORY_ONLY | DURABLE | EXPIRED | LOADED);
        if write.durable.unwrap_or(was_durable) {
            flags |= DURABLE;
        }
        if write.deletes() && current.with_expired().is_some() && current.live(now).is_none() {
            flags |= EXPIRED;
        }
        // A deleted key restarts its version; followers rely on the version of an expired key.
        let version = match write.content.meta.has(LOADED) {
            true => write.content.meta.version,
            false => current.with_expired().map_or(0, |meta| meta.version).wrapping_add(1),
        };
        leaf::set_previous(block, current.old, version, flags);
        block[TXN_WORD].store(txn.0, Ordering::Relaxed);
        self.set_state(local.process_slot, own, IS_LEAF);
        fail_point!("state.linked");
        BlockRef::new(LEAF, own.unit, own.tag)
    }

    /// Writes one key. A durable write needs [`Region::commit_all`]: the result is then `Ok(None)`, and the
    /// caller still owns the prepared leaf.
    pub fn commit_one<E>(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        write: &Write<'_>,
        prepared: &Prepared,
        now: u64,
        check: Check<'_, E>,
    ) -> Result<Option<CommitOutcome>, CommitError<E>> {
        let mut lost = 0;
        for _ in 0..MAX_TRIES {
            let current = self.current(local, env, write.key)?;
            self.conditions(0, write, &current, now, check)?;
            if write.deletes() && current.with_expired().is_none() {
                return Ok(Some(CommitOutcome::Unchanged));
            }
            let apart = write.content.meta.has(LOADED) || write.content.meta.has(MEMORY_ONLY);
            if !apart && (write.durable == Some(true) || current.is_durable(now)) {
                return Ok(None);
            }
            let word = self.link(local, prepared.0, write, &current, BlockRef::NONE, now);
            let busy = self.busy(local.process_slot);
            let new = self.process_slot(usize::from(local.process_slot), PROCESS_NEW);
            busy.store(current.old.0, Ordering::Release);
            new.store(word.0, Ordering::Release);
            fail_point!("state.busy");
            let at = current.slot.at;
            // SYNC-SLOT: see `find`.
            let swapped = at.compare_exchange(
                current.slot.word.0,
                word.0,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if swapped.is_err() {
                busy.store(0, Ordering::Release);
                new.store(0, Ordering::Release);
                // The winner has the key's cache lines. After a short pause of this process, it makes several
                // changes in the time that one process needs to fetch them.
                lost = (2 * lost).clamp(8, 128);
                (0..lost).for_each(|_| crate::sync::spin());
                continue;
            }
            fail_point!("state.visible");
            let revision = self
                .assign_revision(word, write.key.root())?
                .ok_or(CommitError::RetriesExhausted)?;
            new.store(0, Ordering::Release);
            if !current.old.is_none() {
                self.retire(local, current.old, revision);
            }
            busy.store(0, Ordering::Release);
            if write.deletes() {
                self.remove_tombstone(local, write.key, word, revision);
            }
            self.wake_followers(env, Some(write.key.root()));
            self.recycle(local);
            return Ok(Some(CommitOutcome::Committed(revision)));
        }
        Err(CommitError::RetriesExhausted)
    }

    /// Removes a deletion from its trie slot, immediately if no older snapshot exists.
    pub(crate) fn remove_tombstone(
        &self,
        local: &mut LocalBlocks,
        key: &Key<'_>,
        word: BlockRef,
        revision: u64,
    ) {
        if self.oldest_lease() < revision {
            self.queue_tombstone(local, word, revision);
        } else {
            let busy = self.busy(local.process_slot);
            busy.store(word.0, Ordering::Release);
            fail_point!("state.removing_tombstone");
            if self.replace_in_slot(key, word, BlockRef::NONE) {
                self.retire(local, word, revision);
            }
            busy.store(0, Ordering::Release);
        }
    }
}

/// An owned leaf before it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(pub(crate) OwnedBlock);
