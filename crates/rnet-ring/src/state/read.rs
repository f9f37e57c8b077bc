//! Reads: one key, many as of one revision, and changes.

use super::block_words::{BlockRef, LEAF};
use super::journal::{JournalSlot, SnapshotLease};
use super::key::{Key, Prefix};
use super::layout::SLAB_WORDS;
use super::leaf::{self, DELETED, LeafBuffer};
use super::region::Region;
use super::resolve::ResolvedLeaf;
use super::{CorruptRegion, RetriesExhausted};
use crate::fail_point;

/// Optimistic reads before a snapshot lease is taken. One of these fails only if a block is reused between
/// two loads, which takes `QUARANTINE` other writes.
const OPTIMISTIC_READS: usize = 8;
/// Revoked snapshots before a reader gives up.
const SNAPSHOT_TRIES: usize = 8;

/// Result of one read of a key's slot.
enum SlotRead {
    Empty,
    Leaf,
    /// The slot changed during the read.
    Changed,
}

impl Region<'_> {
    /// Copies the value of a key; `false` if it has none. `now` is called for values with an expiry time.
    ///
    /// Takes a bounded number of steps whatever other processes do: an optimistic read fails only if others
    /// write very fast, and the next read holds a snapshot lease.
    pub fn get(
        &self,
        process_slot: u16,
        key: &Key<'_>,
        now: &dyn Fn() -> u64,
        into: &mut LeafBuffer,
    ) -> Result<bool, RetriesExhausted> {
        for _ in 0..OPTIMISTIC_READS {
            match self.read(key, into)? {
                SlotRead::Empty => return Ok(false),
                SlotRead::Leaf => return Ok(is_live(into, now)),
                SlotRead::Changed => {}
            }
        }
        for _ in 0..OPTIMISTIC_READS {
            let Some(lease) = self.take_lease(process_slot)? else { continue };
            let found = self.read(key, into);
            self.end_snapshot(lease);
            match found? {
                SlotRead::Empty => return Ok(false),
                SlotRead::Leaf => return Ok(is_live(into, now)),
                SlotRead::Changed => {}
            }
        }
        Err(RetriesExhausted)
    }

    #[inline]
    fn read(&self, key: &Key<'_>, into: &mut LeafBuffer) -> Result<SlotRead, RetriesExhausted> {
        let slot = self.find(key).map_err(|CorruptRegion| RetriesExhausted)?;
        if slot.word.is_none() {
            return Ok(SlotRead::Empty);
        }
        if slot.word.kind() != LEAF {
            return Err(RetriesExhausted);
        }
        let Some(block) = self.current_block(slot.word) else { return Ok(SlotRead::Changed) };
        match leaf::is_of(block, slot.word, key) {
            None => return Ok(SlotRead::Changed),
            Some(false) => return Ok(SlotRead::Empty),
            Some(true) => {}
        }
        let word = match self.resolve(slot.word, key.root())? {
            ResolvedLeaf::Committed => slot.word,
            ResolvedLeaf::Previous { word, .. } if word.is_none() => return Ok(SlotRead::Empty),
            ResolvedLeaf::Previous { word, .. } => word,
            ResolvedLeaf::Reused => return Ok(SlotRead::Changed),
        };
        fail_point!("state.reading");
        let copied = self.current_block(word).and_then(|block| leaf::copy(block, word, into));
        Ok(if copied.is_some() { SlotRead::Leaf } else { SlotRead::Changed })
    }

    /// Copies all keys of a prefix as of one revision, the newest at its start, and returns the revision.
    pub fn snapshot(
        &self,
        process_slot: u16,
        prefix: &Prefix,
        now: u64,
        see: &mut dyn FnMut(&LeafBuffer),
    ) -> Result<u64, RetriesExhausted> {
        // Delivered only when complete: if the lease is revoked half-way, everything is read again.
        let mut records: Vec<LeafBuffer> = Vec::new();
        let revision = self.with_snapshot(process_slot, &mut |lease| {
            records.clear();
            self.collect(lease, prefix, now, &mut records)
        })?;
        records.iter().for_each(see);
        Ok(revision)
    }

    /// Calls `look` with a snapshot lease and returns its revision. Repeats the call if the lease was revoked
    /// meanwhile.
    pub(crate) fn with_snapshot(
        &self,
        process_slot: u16,
        look: &mut dyn FnMut(&SnapshotLease) -> Result<(), RetriesExhausted>,
    ) -> Result<u64, RetriesExhausted> {
        for _ in 0..SNAPSHOT_TRIES {
            let Some(lease) = self.take_lease(process_slot)? else { continue };
            let result = look(&lease);
            let held = self.is_lease_valid(&lease);
            let revision = lease.revision;
            self.end_snapshot(lease);
            if result.is_ok() && held {
                return Ok(revision);
            }
        }
        Err(RetriesExhausted)
    }

    fn collect(
        &self,
        lease: &SnapshotLease,
        prefix: &Prefix,
        now: u64,
        records: &mut Vec<LeafBuffer>,
    ) -> Result<(), RetriesExhausted> {
        let mut record = LeafBuffer::default();
        // Only a hostile peer can exceed the size of all memory in use. (A copy of the smallest leaf is
        // several times as long as the leaf.)
        let mut budget = self.slabs_in_use().saturating_mul(SLAB_WORDS * 8 * 4);
        self.walk(prefix, &mut |word, root| {
            let Some(word) = self.as_of(word, root, lease.revision)? else {
                return Err(RetriesExhausted);
            };
            if word.is_none() {
                return Ok(());
            }
            let Some(block) = self.current_block(word) else { return Err(RetriesExhausted) };
            leaf::copy(block, word, &mut record).ok_or(RetriesExhausted)?;
            budget = budget.checked_sub(record.len_bytes()).ok_or(RetriesExhausted)?;
            if is_live(&record, &|| now) && prefix.matches(record.key()) {
                records.push(record.clone());
            }
            fail_point!("state.collected");
            Ok(())
        })
    }

    /// Compares the revision of a key as of a snapshot with `expected` (0: absent); returns it if it differs.
    pub(crate) fn differing_revision(
        &self,
        lease: &SnapshotLease,
        key: &Key<'_>,
        revision: u64,
        now: u64,
    ) -> Result<Option<u64>, RetriesExhausted> {
        let slot = self.find(key).map_err(|CorruptRegion| RetriesExhausted)?;
        let mut found = 0;
        if slot.word.kind() == LEAF {
            let Some(block) = self.current_block(slot.word) else { return Err(RetriesExhausted) };
            if leaf::is_of(block, slot.word, key).ok_or(RetriesExhausted)? {
                let word =
                    self.as_of(slot.word, key.root(), lease.revision)?.ok_or(RetriesExhausted)?;
                if !word.is_none() {
                    let block = self.current_block(word).ok_or(RetriesExhausted)?;
                    let meta = leaf::meta(block, word).ok_or(RetriesExhausted)?;
                    let over = meta.expires_boot_ns != 0 && meta.expires_boot_ns <= now;
                    found = if meta.has(DELETED) || over { 0 } else { meta.revision };
                }
            }
        }
        Ok((found != revision).then_some(found))
    }

    /// The next change of a prefix's keys from a position of the journal on, and advances the position. An
    /// overrun is reported for changes at or after the position, never after a skipped deletion.
    pub fn next_change(&self, at: &mut Position, prefix: &Prefix, into: &mut LeafBuffer) -> Next {
        let entries = 1u64 << self.geometry.journal_bits;
        let Ok(newest) = self.newest() else { return Next::Overrun };
        loop {
            if at.revision > newest {
                return Next::Nothing;
            }
            if newest.wrapping_sub(at.revision) >= entries - 1 {
                return Next::Overrun;
            }
            let JournalSlot::Change { entry, word } = self.at_position(at.revision) else {
                return Next::Overrun;
            };
            if entry.is_txn() {
                match self.next_in_txn(at, word, prefix, into) {
                    Some(next) => return next,
                    None => continue,
                }
            }
            let revision = at.revision;
            at.revision = at.revision.wrapping_add(1);
            if prefix.root().is_some_and(|root| !entry.fits_root(root)) {
                continue;
            }
            let copied = word
                .and_then(|word| leaf::copy(self.current_block(word)?, word, into))
                .filter(|()| into.meta.revision == revision);
            match copied {
                Some(()) if prefix.matches(into.key()) => return Next::Change,
                Some(()) => {}
                // A newer value of the key follows in the journal; a deletion may have no successor.
                None if entry.is_deleted() => {
                    at.revision = revision;
                    return Next::Overrun;
                }
                None => {}
            }
        }
    }

    fn next_in_txn(
        &self,
        at: &mut Position,
        txn: Option<BlockRef>,
        prefix: &Prefix,
        into: &mut LeafBuffer,
    ) -> Option<Next> {
        let Some(pairs) = txn.and_then(|txn| self.pairs(txn)) else {
            // The changed keys, and whether any were deleted, are no longer known.
            return Some(Next::Overrun);
        };
        while at.within < pairs.len() {
            let (word, _) = pairs[at.within];
            at.within += 1;
            match self.is_guard(word) {
                // The block of a guard mark may already be reused, because marks are retired immediately.
                Some(true) => continue,
                Some(false) => self.assign_txn_revision(word, at.revision),
                None => {}
            }
            let copied = self.current_block(word).and_then(|block| leaf::copy(block, word, into));
            if copied.is_none() || into.meta.revision != at.revision {
                return Some(Next::Overrun);
            }
            if prefix.matches(into.key()) {
                return Some(Next::Change);
            }
        }
        at.revision = at.revision.wrapping_add(1);
        at.within = 0;
        None
    }

    /// Whether a change at or after this position may exist.
    pub fn may_have(&self, at: &Position) -> bool {
        self.newest().is_ok_and(|newest| at.revision <= newest)
    }
}

/// Whether a copied leaf is an existing, unexpired value.
fn is_live(record: &LeafBuffer, now: &dyn Fn() -> u64) -> bool {
    let meta = &record.meta;
    !meta.has(DELETED) && (meta.expires_boot_ns == 0 || meta.expires_boot_ns > now())
}

/// Position of a follower in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The revision that is read next.
    pub revision: u64,
    /// Index within a transaction's changes.
    pub within: usize,
}

/// Result of [`Region::next_change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A change, which was copied.
    Change,
    /// No change yet.
    Nothing,
    /// Changes were missed: read everything again.
    Overrun,
}
