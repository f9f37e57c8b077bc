//! Reading: one key, many as of one revision, and what changes.

use super::journal::{JournalSlot, SnapshotLease};
use super::key::{Key, Prefix};
use super::layout::SLAB_WORDS;
use super::leaf::{self, DELETED, LeafBuffer};
use super::region::Region;
use super::resolve::ResolvedLeaf;
use super::word::{BlockRef, LEAF};
use super::{CorruptRegion, RetriesExhausted};
use crate::fail_point;

/// Reads without holding anything, before one holds what it reads: a block must be used again, which
/// takes `QUARANTINE` other writes, between two looks for one of these to fail.
const OPTIMISTIC_READS: usize = 8;
/// Snapshots that may be taken from their reader before it gives up.
const SNAPSHOT_TRIES: usize = 8;

/// What a look at a key's slot found.
enum SlotRead {
    Empty,
    Leaf,
    /// It changed under the look.
    Changed,
}

impl Region<'_> {
    /// Copies the value of a key; `false` if it has none. `now` is asked for values that end.
    ///
    /// Takes a bounded number of steps whatever others do: a light read fails only if others were so
    /// fast, and then what is read is held.
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

    /// Copies all keys of a prefix as of one revision, which is returned: the newest at its beginning.
    pub fn snapshot(
        &self,
        process_slot: u16,
        prefix: &Prefix,
        now: u64,
        see: &mut dyn FnMut(&LeafBuffer),
    ) -> Result<u64, RetriesExhausted> {
        // Shown only when whole: what was taken from the reader half-way is read anew.
        let mut records: Vec<LeafBuffer> = Vec::new();
        let revision = self.with_snapshot(process_slot, &mut |lease| {
            records.clear();
            self.collect(lease, prefix, now, &mut records)
        })?;
        records.iter().for_each(see);
        Ok(revision)
    }

    /// Looks at several things as of one revision, which is returned: again, if what was needed was used
    /// for something else meanwhile.
    pub(crate) fn with_snapshot(
        &self,
        process_slot: u16,
        look: &mut dyn FnMut(&SnapshotLease) -> Result<(), RetriesExhausted>,
    ) -> Result<u64, RetriesExhausted> {
        for _ in 0..SNAPSHOT_TRIES {
            let Some(lease) = self.take_lease(process_slot)? else { continue };
            let looked = look(&lease);
            let held = self.is_lease_valid(&lease);
            let revision = lease.revision;
            self.end_snapshot(lease);
            if looked.is_ok() && held {
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
        // More than all memory that is in use is what only a peer's tricks can show.
        // (A copy of the smallest leaf is some times as long as the leaf.)
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

    /// Whether a key has this revision as of a snapshot's; 0: none.
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

    /// The next change of a prefix's keys from a position of the journal on, which moves behind it. What is
    /// missed is at the position or after it, and no deletion before.
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
                // A newer value of the key stands further on; of a deletion nothing else may tell.
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
            // Which keys it changed is not known any more, nor whether it deleted any.
            return Some(Next::Overrun);
        };
        while at.within < pairs.len() {
            let (word, _) = pairs[at.within];
            at.within += 1;
            match self.is_guard(word) {
                // A guard's mark may be used for something else already: it was retired at once.
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

    /// Whether there may be a change from this position on.
    pub fn may_have(&self, at: &Position) -> bool {
        self.newest().is_ok_and(|newest| at.revision <= newest)
    }
}

/// Whether a copied leaf is a value that is there.
fn is_live(record: &LeafBuffer, now: &dyn Fn() -> u64) -> bool {
    let meta = &record.meta;
    !meta.has(DELETED) && (meta.expires_boot_ns == 0 || meta.expires_boot_ns > now())
}

/// Where a follower is in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The change that is read next.
    pub revision: u64,
    /// Which of a transaction's changes.
    pub within: usize,
}

/// What [`Region::next_change`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A change, which was copied out.
    Change,
    /// None yet.
    Nothing,
    /// Something was missed: look at everything anew.
    Overrun,
}
