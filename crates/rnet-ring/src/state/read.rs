//! Reading: one key, many as of one revision, and what changes.

use super::journal::{Place, SnapshotLease};
use super::key::{Key, Prefix};
use super::layout::SLAB_WORDS;
use super::leaf::{self, DELETED, Record};
use super::region::Region;
use super::settle::Settled;
use super::word::{LEAF, Word};
use super::{Broken, Stuck};
use crate::fail_point;

/// Reads without holding anything, before one holds what it reads: a block must be used again, which
/// takes `QUARANTINE` other writes, between two looks for one of these to fail.
const LIGHT_READS: usize = 8;
/// Snapshots that may be taken from their reader before it gives up.
const SNAPSHOTS: usize = 8;

/// What a look at a key's slot found.
enum Found {
    Nothing,
    Leaf,
    /// It changed under the look.
    Again,
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
        into: &mut Record,
    ) -> Result<bool, Stuck> {
        for _ in 0..LIGHT_READS {
            match self.read(key, into)? {
                Found::Nothing => return Ok(false),
                Found::Leaf => return Ok(is_there(into, now)),
                Found::Again => {}
            }
        }
        for _ in 0..LIGHT_READS {
            let Some(lease) = self.take_lease(process_slot)? else { continue };
            let found = self.read(key, into);
            self.end_snapshot(lease);
            match found? {
                Found::Nothing => return Ok(false),
                Found::Leaf => return Ok(is_there(into, now)),
                Found::Again => {}
            }
        }
        Err(Stuck)
    }

    #[inline]
    fn read(&self, key: &Key<'_>, into: &mut Record) -> Result<Found, Stuck> {
        let slot = self.find(key).map_err(|Broken| Stuck)?;
        if slot.word.is_none() {
            return Ok(Found::Nothing);
        }
        if slot.word.kind() != LEAF {
            return Err(Stuck);
        }
        let Some(block) = self.named(slot.word) else { return Ok(Found::Again) };
        match leaf::is_of(block, slot.word, key) {
            None => return Ok(Found::Again),
            Some(false) => return Ok(Found::Nothing),
            Some(true) => {}
        }
        let word = match self.settle(slot.word, key.root())? {
            Settled::Holds => slot.word,
            Settled::Before { word, .. } if word.is_none() => return Ok(Found::Nothing),
            Settled::Before { word, .. } => word,
            Settled::Gone => return Ok(Found::Again),
        };
        fail_point!("state.reading");
        let copied = self.named(word).and_then(|block| leaf::copy(block, word, into));
        Ok(if copied.is_some() { Found::Leaf } else { Found::Again })
    }

    /// Copies all keys of a prefix as of one revision, which is returned: the newest at its beginning.
    pub fn snapshot(
        &self,
        process_slot: u16,
        prefix: &Prefix,
        now: u64,
        see: &mut dyn FnMut(&Record),
    ) -> Result<u64, Stuck> {
        // Shown only when whole: what was taken from the reader half-way is read anew.
        let mut records: Vec<Record> = Vec::new();
        let revision = self.as_of_one(process_slot, &mut |lease| {
            records.clear();
            self.collect(lease, prefix, now, &mut records)
        })?;
        records.iter().for_each(see);
        Ok(revision)
    }

    /// Looks at several things as of one revision, which is returned: again, if what was needed was used
    /// for something else meanwhile.
    pub(crate) fn as_of_one(
        &self,
        process_slot: u16,
        look: &mut dyn FnMut(&SnapshotLease) -> Result<(), Stuck>,
    ) -> Result<u64, Stuck> {
        for _ in 0..SNAPSHOTS {
            let Some(lease) = self.take_lease(process_slot)? else { continue };
            let looked = look(&lease);
            let held = self.held(&lease);
            let revision = lease.revision;
            self.end_snapshot(lease);
            if looked.is_ok() && held {
                return Ok(revision);
            }
        }
        Err(Stuck)
    }

    fn collect(
        &self,
        lease: &SnapshotLease,
        prefix: &Prefix,
        now: u64,
        records: &mut Vec<Record>,
    ) -> Result<(), Stuck> {
        let mut record = Record::default();
        // More than all memory that is in use is what only a peer's tricks can show.
        // (A copy of the smallest leaf is some times as long as the leaf.)
        let mut budget = self.slabs_in_use().saturating_mul(SLAB_WORDS * 8 * 4);
        self.walk(prefix, &mut |word, root| {
            let Some(word) = self.as_of(word, root, lease.revision)? else { return Err(Stuck) };
            if word.is_none() {
                return Ok(());
            }
            let Some(block) = self.named(word) else { return Err(Stuck) };
            leaf::copy(block, word, &mut record).ok_or(Stuck)?;
            budget = budget.checked_sub(record.len_bytes()).ok_or(Stuck)?;
            if is_there(&record, &|| now) && prefix.matches(record.key()) {
                records.push(record.clone());
            }
            fail_point!("state.collected");
            Ok(())
        })
    }

    /// Whether a key has this revision as of a snapshot's; 0: none.
    pub(crate) fn is_at(
        &self,
        lease: &SnapshotLease,
        key: &Key<'_>,
        revision: u64,
        now: u64,
    ) -> Result<Option<u64>, Stuck> {
        let slot = self.find(key).map_err(|Broken| Stuck)?;
        let mut found = 0;
        if slot.word.kind() == LEAF {
            let Some(block) = self.named(slot.word) else { return Err(Stuck) };
            if leaf::is_of(block, slot.word, key).ok_or(Stuck)? {
                let word = self.as_of(slot.word, key.root(), lease.revision)?.ok_or(Stuck)?;
                if !word.is_none() {
                    let block = self.named(word).ok_or(Stuck)?;
                    let meta = leaf::meta(block, word).ok_or(Stuck)?;
                    let over = meta.expires_boot_ns != 0 && meta.expires_boot_ns <= now;
                    found = if meta.has(DELETED) || over { 0 } else { meta.revision };
                }
            }
        }
        Ok((found != revision).then_some(found))
    }

    /// The next change of a prefix's keys from a position of the journal on, which moves behind it. What is
    /// missed is at the position or after it, and no deletion before.
    pub fn next_change(&self, at: &mut Position, prefix: &Prefix, into: &mut Record) -> Next {
        let entries = 1u64 << self.geometry.journal_bits;
        let Ok(newest) = self.newest() else { return Next::Behind };
        loop {
            if at.revision > newest {
                return Next::Nothing;
            }
            if newest.wrapping_sub(at.revision) >= entries - 1 {
                return Next::Behind;
            }
            let Place::Change { entry, word } = self.at_position(at.revision) else {
                return Next::Behind;
            };
            if entry.is_txn() {
                match self.next_of_txn(at, word, prefix, into) {
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
                .and_then(|word| leaf::copy(self.named(word)?, word, into))
                .filter(|()| into.meta.revision == revision);
            match copied {
                Some(()) if prefix.matches(into.key()) => return Next::Change,
                Some(()) => {}
                // A newer value of the key stands further on; of a deletion nothing else may tell.
                None if entry.is_deleted() => {
                    at.revision = revision;
                    return Next::Behind;
                }
                None => {}
            }
        }
    }

    fn next_of_txn(
        &self,
        at: &mut Position,
        txn: Option<Word>,
        prefix: &Prefix,
        into: &mut Record,
    ) -> Option<Next> {
        let Some(pairs) = txn.and_then(|txn| self.pairs(txn)) else {
            // Which keys it changed is not known any more, nor whether it deleted any.
            return Some(Next::Behind);
        };
        while at.within < pairs.len() {
            let (word, _) = pairs[at.within];
            at.within += 1;
            match self.is_guard(word) {
                // A guard's mark may be used for something else already: it was retired at once.
                Some(true) => continue,
                Some(false) => self.number_of_txn(word, at.revision),
                None => {}
            }
            let copied = self.named(word).and_then(|block| leaf::copy(block, word, into));
            if copied.is_none() || into.meta.revision != at.revision {
                return Some(Next::Behind);
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
fn is_there(record: &Record, now: &dyn Fn() -> u64) -> bool {
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
    Behind,
}
