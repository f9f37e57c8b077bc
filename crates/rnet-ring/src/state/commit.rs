//! Writing: one key by one compare-and-swap, several by a transaction, all or nothing.

use super::blocks::{Local, NoRoom, Own};
use super::journal::Seat;
use super::key::Key;
use super::layout::{LANE_NEW, LANE_WILLS};
use super::leaf::{
    self, Content, DELETED, DURABLE, EXPIRED, Facts, GUARD, LOADED, REVISION, TXN_WORD,
};
use super::region::{Block, Host, Region};
use super::settle::{COUNT, PAIRS, REASON, STATUS, Settled};
use super::trie::Slot;
use super::word::{
    COMMITTED, IS_LEAF, IS_TXN, LEAF, PERSISTING, Status, TXN, UNDECIDED, Word, pending,
};
use super::{Broken, MAX_TRIES, Stuck};
use crate::fail_point;
use crate::sync::Ordering;

/// One change of one key.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Which key.
    pub key: &'a Key<'a>,
    /// What it becomes. With the flag `DELETED` it goes, and the value is empty.
    pub content: Content<'a>,
    /// The revision at which it must be; 0: it must not be there.
    pub expect: Option<u64>,
    /// Whether it is to be on disk; `None`: if what stands there is.
    pub durable: Option<bool>,
}

impl Write<'_> {
    fn deletes(&self) -> bool {
        self.content.facts.has(DELETED)
    }
}

/// A key that must be as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// Which key.
    pub key: &'a Key<'a>,
    /// At which revision; 0: it must not be there.
    pub revision: u64,
}

/// Why a commit changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<E> {
    /// The caller's condition.
    Check(E),
    /// A key is at another revision than expected.
    Conflict {
        /// The write's number, or the guard's, counted behind the writes.
        index: usize,
        /// At which revision it should be; 0: not there.
        expected: u64,
        /// At which it is.
        found: u64,
    },
    /// Another transaction was in the way, or ended this one: try again.
    Again,
    /// This transaction is being written to disk and stands in the way: wait for it, then try again.
    Wait(Word),
    /// Out of shared memory: words that were asked for.
    NoRoom(usize),
    /// Others were always faster, or the region is spoilt.
    Stuck,
}

impl<E> From<Stuck> for Refused<E> {
    fn from(_: Stuck) -> Self {
        Refused::Stuck
    }
}
impl<E> From<Broken> for Refused<E> {
    fn from(_: Broken) -> Self {
        Refused::Stuck
    }
}

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The changes hold, with this revision.
    At(u64),
    /// There was nothing to change.
    Nothing,
    /// The changes wait for the keeper; then [`Region::conclude`].
    Persisting(Word),
}

/// Decides whether a key may be written, from what stands there.
pub type Check<'c, E> = &'c mut dyn FnMut(usize, Option<&Facts>) -> Result<(), E>;

/// What stands at a key, for a writer.
struct Present<'a> {
    slot: Slot<'a>,
    /// The leaf that holds; names nothing if there is none.
    old: Word,
    facts: Option<Facts>,
}

impl Present<'_> {
    /// The numbers of what is there, for a reader.
    fn there(&self, now: u64) -> Option<&Facts> {
        self.facts.as_ref().filter(|facts| {
            !facts.has(DELETED) && (facts.expires_unix_ns == 0 || facts.expires_unix_ns > now)
        })
    }
    /// The same with what is over, for who deletes it because it is over.
    fn with_expired(&self) -> Option<&Facts> {
        self.facts.as_ref().filter(|facts| !facts.has(DELETED))
    }
    fn is_durable(&self) -> bool {
        self.facts.is_some_and(|facts| facts.has(DURABLE) && !facts.has(DELETED))
    }
}

impl<'a> Region<'a> {
    /// Looks at a key's slot until what stands there is settled; makes room where another key stands.
    fn present<E>(
        &self,
        local: &mut Local,
        host: &impl Host,
        key: &Key<'_>,
    ) -> Result<Present<'a>, Refused<E>> {
        for _ in 0..MAX_TRIES {
            let slot = self.find(key)?;
            if slot.word.is_none() {
                return Ok(Present { slot, old: Word::NONE, facts: None });
            }
            if slot.word.kind() != LEAF {
                return Err(Refused::Stuck);
            }
            let Some(block) = self.named(slot.word) else { continue };
            match leaf::is_of(block, slot.word, key) {
                None => continue,
                Some(true) => {}
                Some(false) => {
                    self.expand(local, host, slot).map_err(|NoRoom| Refused::NoRoom(1))?;
                    continue;
                }
            }
            let old = match self.settle(slot.word, key.root())? {
                Settled::Holds => slot.word,
                Settled::Gone => continue,
                Settled::Before { word, pending: None } => word,
                Settled::Before { pending: Some(txn), .. } => {
                    if self.clear_the_way(txn) {
                        continue;
                    }
                    return Err(Refused::Wait(txn));
                }
            };
            if old.is_none() {
                return Ok(Present { slot, old, facts: None });
            }
            let Some(facts) = self.named(old).and_then(|block| leaf::facts(block, old)) else {
                continue;
            };
            return Ok(Present { slot, old, facts: Some(facts) });
        }
        Err(Refused::Stuck)
    }

    /// Prepares a leaf: the long part of a write, for which nobody waits.
    pub fn prepare(
        &self,
        local: &mut Local,
        host: &impl Host,
        write: &Write<'_>,
    ) -> Result<Prepared, NoRoom> {
        self.keep_reserve(local, host);
        let words = write.content.words(write.key);
        let own = match write.deletes() {
            true => self.take_for_deletion(local, host, words)?,
            false => self.take(local, host, words)?,
        };
        if write.content.will.is_some() {
            self.lane(usize::from(local.lane), LANE_WILLS).store(1, Ordering::Release);
        }
        Ok(Prepared(own))
    }

    /// Fills a prepared leaf. Apart from [`Region::prepare`], so that no lock is held meanwhile.
    pub fn fill(&self, prepared: &Prepared, write: &Write<'_>) {
        let block = self.block(prepared.0.unit).expect("our own blocks lie inside the region");
        leaf::fill(&block[..prepared.0.words], prepared.0.tag, write.key, &write.content);
    }

    /// Gives a prepared leaf back that is not committed after all.
    pub fn discard(&self, local: &mut Local, prepared: Prepared) {
        self.put_back(local, prepared.0);
    }

    fn conditions<E>(
        &self,
        index: usize,
        write: &Write<'_>,
        present: &Present<'_>,
        now: u64,
        check: Check<'_, E>,
    ) -> Result<(), Refused<E>> {
        let there = present.there(now);
        if let Some(expected) = write.expect {
            let seen = if write.deletes() { present.with_expired() } else { there };
            let found = seen.map_or(0, |facts| facts.revision);
            if found != expected {
                return Err(Refused::Conflict { index, expected, found });
            }
        }
        check(index, there).map_err(Refused::Check)
    }

    /// Makes a prepared leaf say what it follows, and be a leaf.
    fn link(
        &self,
        local: &Local,
        own: Own,
        write: &Write<'_>,
        present: &Present<'_>,
        txn: Word,
        now: u64,
    ) -> Word {
        let block = self.block(own.unit).expect("our own blocks lie inside the region");
        let was_durable = present.is_durable();
        let mut flags = write.content.facts.flags & !(DURABLE | EXPIRED | LOADED);
        if write.durable.unwrap_or(was_durable) {
            flags |= DURABLE;
        }
        if write.deletes() && present.with_expired().is_some() && present.there(now).is_none() {
            flags |= EXPIRED;
        }
        // Of a deleted key nobody counts on, of one whose time is over its followers do.
        let version = match write.content.facts.has(LOADED) {
            true => write.content.facts.version,
            false => present.with_expired().map_or(0, |facts| facts.version).wrapping_add(1),
        };
        leaf::set_before(block, present.old, version, flags);
        block[TXN_WORD].store(txn.0, Ordering::Relaxed);
        self.become_(local.lane, own, IS_LEAF);
        fail_point!("state.linked");
        Word::new(LEAF, own.unit, own.tag)
    }

    /// Writes one key. What goes to disk is for [`Region::commit_all`]: then `Ok(None)`, and the
    /// prepared leaf is still the caller's.
    pub fn commit_one<E>(
        &self,
        local: &mut Local,
        host: &impl Host,
        write: &Write<'_>,
        prepared: &Prepared,
        now: u64,
        check: Check<'_, E>,
    ) -> Result<Option<Done>, Refused<E>> {
        for _ in 0..MAX_TRIES {
            let present = self.present(local, host, write.key)?;
            self.conditions(0, write, &present, now, check)?;
            if write.deletes() && present.with_expired().is_none() {
                return Ok(Some(Done::Nothing));
            }
            let loaded = write.content.facts.has(LOADED);
            if !loaded && (write.durable == Some(true) || present.is_durable()) {
                return Ok(None);
            }
            let word = self.link(local, prepared.0, write, &present, Word::NONE, now);
            let busy = self.busy(local.lane);
            let new = self.lane(usize::from(local.lane), LANE_NEW);
            busy.store(present.old.0, Ordering::Release);
            new.store(word.0, Ordering::Release);
            fail_point!("state.busy");
            let at = present.slot.at;
            // SYNC-SLOT: see `find`.
            let swapped = at.compare_exchange(
                present.slot.word.0,
                word.0,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if swapped.is_err() {
                busy.store(0, Ordering::Release);
                new.store(0, Ordering::Release);
                continue;
            }
            fail_point!("state.visible");
            let revision = self.number(word, write.key.root())?.ok_or(Refused::Stuck)?;
            new.store(0, Ordering::Release);
            if !present.old.is_none() {
                self.retire(local, present.old, revision);
            }
            busy.store(0, Ordering::Release);
            if write.deletes() {
                self.bury(local, write.key, word, revision);
            }
            self.wake_followers(host, Some(write.key.root()));
            self.recycle(local);
            return Ok(Some(Done::At(revision)));
        }
        Err(Refused::Stuck)
    }

    /// Takes a deletion out of its slot, at once if nobody reads as of an older revision.
    fn bury(&self, local: &mut Local, key: &Key<'_>, word: Word, revision: u64) {
        if self.oldest_seat() < revision {
            self.queue_tomb(local, word, revision);
        } else {
            let busy = self.busy(local.lane);
            busy.store(word.0, Ordering::Release);
            fail_point!("state.burying");
            if self.swap_out(key, word, Word::NONE) {
                self.retire(local, word, revision);
            }
            busy.store(0, Ordering::Release);
        }
    }

    /// Writes several keys, all or nothing, if all guards hold. The prepared leaves are used up or given
    /// back, whatever comes out.
    pub fn commit_all<E>(
        &self,
        local: &mut Local,
        host: &impl Host,
        writes: &[(Write<'_>, Prepared)],
        guards: &[Guard<'_>],
        now: u64,
        check: Check<'_, E>,
    ) -> Result<Done, Refused<E>> {
        if writes.is_empty() {
            return self.only_guards(local, guards, now);
        }
        let (txn, own) = match self.begin_txn(local, host, writes.len() + guards.len()) {
            Ok(begun) => begun,
            Err(NoRoom) => {
                self.discard_all(local, writes, 0);
                return Err(Refused::NoRoom(PAIRS + 2 * (writes.len() + guards.len())));
            }
        };
        let mut used = 0;
        let installed = self.install(local, host, txn, writes, now, check, &mut used);
        let decided = installed.and_then(|disk| {
            if used != 0 {
                self.install_guards(local, host, txn, guards, writes.len(), now, &mut used)?;
            }
            fail_point!("state.deciding");
            let to = if disk { PERSISTING } else { COMMITTED };
            if self.decide(txn, UNDECIDED, to) { Ok(disk) } else { Err(Refused::Again) }
        });
        match decided {
            Err(refused) => {
                self.decide(txn, UNDECIDED, super::word::ABORTED);
                let after = self.newest().unwrap_or(u64::MAX);
                self.undo(local, txn, after.saturating_add(1));
                self.discard_skipped(local, writes, txn);
                Err(refused)
            }
            Ok(_) if used == 0 => {
                self.put_back(local, own);
                self.discard_all(local, writes, 0);
                // Nothing to change; whether the guards hold is all that is asked.
                self.only_guards(local, guards, now)
            }
            Ok(true) => {
                self.discard_skipped(local, writes, txn);
                Ok(Done::Persisting(txn))
            }
            Ok(false) => {
                self.discard_skipped(local, writes, txn);
                let revision = self.conclude_committed(local, host, txn)?;
                Ok(Done::At(revision))
            }
        }
    }

    fn only_guards<E>(
        &self,
        local: &Local,
        guards: &[Guard<'_>],
        now: u64,
    ) -> Result<Done, Refused<E>> {
        let Some(seat) = self.sit(local.lane)? else { return Err(Refused::Again) };
        let checked = self.all_at(&seat, guards, now);
        let held = self.held(&seat);
        self.stand_up(seat);
        match checked {
            Ok(None) if held => Ok(Done::Nothing),
            Ok(Some((index, expected, found))) if held => {
                Err(Refused::Conflict { index, expected, found })
            }
            _ => Err(Refused::Again),
        }
    }

    fn all_at(
        &self,
        seat: &Seat,
        guards: &[Guard<'_>],
        now: u64,
    ) -> Result<Option<(usize, u64, u64)>, Stuck> {
        for (index, guard) in guards.iter().enumerate() {
            if let Some(found) = self.is_at(seat, guard.key, guard.revision, now)? {
                return Ok(Some((index, guard.revision, found)));
            }
        }
        Ok(None)
    }

    fn begin_txn(
        &self,
        local: &mut Local,
        host: &impl Host,
        writes: usize,
    ) -> Result<(Word, Own), NoRoom> {
        let own = self.take(local, host, PAIRS + 2 * writes)?;
        let block = self.block(own.unit).expect("our own blocks lie inside the region");
        block[REVISION].store(pending(own.tag), Ordering::Relaxed);
        block[STATUS].store(Status::new(UNDECIDED, own.tag).0, Ordering::Relaxed);
        block[COUNT].store(0, Ordering::Relaxed);
        block[REASON].store(0, Ordering::Relaxed);
        fail_point!("state.txn");
        self.become_(local.lane, own, IS_TXN);
        Ok((Word::new(TXN, own.unit, own.tag), own))
    }

    /// Puts the leaves of a transaction into their slots; whether any of it goes to disk.
    #[allow(clippy::too_many_arguments)]
    fn install<E>(
        &self,
        local: &mut Local,
        host: &impl Host,
        txn: Word,
        writes: &[(Write<'_>, Prepared)],
        now: u64,
        check: Check<'_, E>,
        used: &mut usize,
    ) -> Result<bool, Refused<E>> {
        let block = self.block(txn.unit()).ok_or(Refused::Stuck)?;
        let mut disk = false;
        for (index, (write, prepared)) in writes.iter().enumerate() {
            let mut tries = 0;
            loop {
                tries += 1;
                if tries > MAX_TRIES {
                    return Err(Refused::Stuck);
                }
                if self.status(txn).is_none_or(|status| status.state() != UNDECIDED) {
                    return Err(Refused::Again);
                }
                let present = self.present(local, host, write.key)?;
                self.conditions(index, write, &present, now, check)?;
                if write.deletes() && present.with_expired().is_none() {
                    break;
                }
                let word = self.link(local, prepared.0, write, &present, txn, now);
                if self.put_in(block, &present, word, used) {
                    disk |= write.durable == Some(true) || present.is_durable();
                    break;
                }
            }
        }
        Ok(disk)
    }

    /// Puts a mark into the slots of the keys that were read: whoever changes one from now on ends this
    /// transaction, or comes after it.
    #[allow(clippy::too_many_arguments)]
    fn install_guards<E>(
        &self,
        local: &mut Local,
        host: &impl Host,
        txn: Word,
        guards: &[Guard<'_>],
        first: usize,
        now: u64,
        used: &mut usize,
    ) -> Result<(), Refused<E>> {
        for (index, guard) in guards.iter().enumerate() {
            let facts = Facts { flags: GUARD, ..Facts::default() };
            let content = Content { writer: &[], value: &[], will: None, facts };
            let write = Write { key: guard.key, content, expect: None, durable: Some(false) };
            let words = content.words(guard.key);
            let own = self.take(local, host, words).map_err(|NoRoom| Refused::NoRoom(words))?;
            let prepared = Prepared(own);
            self.fill(&prepared, &write);
            let installed = self.install_guard(local, host, txn, &write, guard, own, now, used);
            match installed {
                Ok(None) => {}
                Ok(Some(found)) => {
                    self.put_back(local, own);
                    let index = first + index;
                    return Err(Refused::Conflict { index, expected: guard.revision, found });
                }
                Err(refused) => {
                    self.put_back(local, own);
                    return Err(refused);
                }
            }
        }
        Ok(())
    }

    /// One mark; the revision that was found instead of the guard's, if it was another.
    #[allow(clippy::too_many_arguments)]
    fn install_guard<E>(
        &self,
        local: &mut Local,
        host: &impl Host,
        txn: Word,
        write: &Write<'_>,
        guard: &Guard<'_>,
        own: Own,
        now: u64,
        used: &mut usize,
    ) -> Result<Option<u64>, Refused<E>> {
        let block = self.block(txn.unit()).ok_or(Refused::Stuck)?;
        for _ in 0..MAX_TRIES {
            if self.status(txn).is_none_or(|status| status.state() != UNDECIDED) {
                return Err(Refused::Again);
            }
            let present = self.present(local, host, guard.key)?;
            let found = present.there(now).map_or(0, |facts| facts.revision);
            if found != guard.revision {
                return Ok(Some(found));
            }
            let word = self.link(local, own, write, &present, txn, now);
            if self.put_in(block, &present, word, used) {
                return Ok(None);
            }
        }
        Err(Refused::Stuck)
    }

    /// Lists a leaf of a transaction and puts it into its slot; `false` if the slot has changed.
    fn put_in(&self, txn: Block<'_>, present: &Present<'_>, word: Word, used: &mut usize) -> bool {
        // Named before it is seen, so that whoever ends this transaction finds it.
        txn[PAIRS + 2 * *used].store(word.0, Ordering::Relaxed);
        txn[PAIRS + 2 * *used + 1].store(present.old.0, Ordering::Relaxed);
        txn[COUNT].store(*used as u64 + 1, Ordering::Release);
        fail_point!("state.listed");
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        let at = present.slot.at;
        if at.compare_exchange(present.slot.word.0, word.0, ok, miss).is_ok() {
            fail_point!("state.installed");
            *used += 1;
            return true;
        }
        txn[COUNT].store(*used as u64, Ordering::Release);
        false
    }

    /// Gives back all prepared leaves from one on.
    fn discard_all(&self, local: &mut Local, writes: &[(Write<'_>, Prepared)], from: usize) {
        for (_, prepared) in &writes[from..] {
            self.put_back(local, prepared.0);
        }
    }

    /// Gives back the prepared leaves that a transaction did not use.
    fn discard_skipped(&self, local: &mut Local, writes: &[(Write<'_>, Prepared)], txn: Word) {
        let Some(pairs) = self.pairs(txn) else { return };
        for (_, prepared) in writes {
            let own = prepared.0;
            if !pairs.iter().any(|(leaf, _)| leaf.unit() == own.unit && leaf.tag() == own.tag) {
                self.put_back(local, own);
            }
        }
    }

    /// Ends a transaction of ours that was decided by the keeper: its revision, or `None` if it was
    /// refused, with the keeper's reason.
    pub fn conclude(
        &self,
        local: &mut Local,
        host: &impl Host,
        txn: Word,
    ) -> Result<Result<u64, u64>, Stuck> {
        match self.status(txn).map(Status::state) {
            Some(COMMITTED) => self.conclude_committed(local, host, txn).map(Ok),
            Some(super::word::ABORTED) => {
                let reason =
                    self.block(txn.unit()).map_or(0, |b| b[REASON].load(Ordering::Acquire));
                let after = self.newest()?.saturating_add(1);
                self.undo(local, txn, after);
                Ok(Err(reason))
            }
            _ => Err(Stuck),
        }
    }

    /// Ends a transaction that holds: numbers its leaves, and retires what was before them.
    pub(crate) fn conclude_committed(
        &self,
        local: &mut Local,
        host: &impl Host,
        txn: Word,
    ) -> Result<u64, Stuck> {
        let revision = self.number(txn, 0)?.ok_or(Stuck)?;
        let pairs = self.pairs(txn).ok_or(Stuck)?;
        let guard = |leaf: Word| self.is_guard(leaf) == Some(true);
        for (leaf, _) in pairs.iter().filter(|(leaf, _)| !guard(*leaf)) {
            self.number_of_txn(*leaf, revision);
        }
        for (leaf, before) in &pairs {
            if guard(*leaf) {
                self.put_back_before(local, *leaf, *before, revision);
                self.retire(local, *leaf, revision);
                continue;
            }
            if !before.is_none() {
                self.retire(local, *before, revision);
            }
            let key = self.key_of(*leaf);
            let facts = self.named(*leaf).and_then(|block| leaf::facts(block, *leaf));
            if let (Some(key), Some(facts)) = (key, facts)
                && facts.has(DELETED)
            {
                self.bury(local, &key.key(), *leaf, revision);
            }
        }
        fail_point!("state.concluding");
        self.retire(local, txn, revision);
        self.wake_followers(host, None);
        self.recycle(local);
        Ok(revision)
    }
}

/// A leaf that is ours alone, before it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(pub(crate) Own);
