//! Cleaning up after a process slot whose owner is dead: nothing it began stays half-done, nothing it held
//! stays held, and each of its blocks is in a slot or free.

use super::blocks::Local;
use super::key::{Key, Prefix};
use super::layout::{
    CLASS_UNITS, FOLLOWER_OWNER, LEASE_OWNER, PROCESS_BUSY, PROCESS_NEW, PROCESS_SLAB,
    PROCESS_WILLS, SLAB_UNITS, SNAPSHOT_LEASES,
};
use super::leaf::{self, DELETED, DURABLE, LeafMeta, Record, WILL};
use super::region::{Host, Region};
use super::settle::Settled;
use super::slabs::{Slab, blocks_per_slab};
use super::trie::NOBODY;
use super::word::{
    ABORTED, COMMITTED, FREE, Head, IS_LEAF, IS_NODE, IS_TXN, LEAF, NODE, PERSISTING, PRIVATE,
    RETIRED, Status, TXN, UNDECIDED, WRITING, Word,
};
use super::{Broken, MAX_TRIES, Stuck};
use crate::fail_point;
use crate::sync::Ordering;

/// How far a sweep has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// The process slot can be used again.
    Clean,
    /// The persister still has a transaction of the process slot: sweep again later.
    Later,
}

impl Region<'_> {
    /// Keys whose last will is due, because the owner of their process slot is dead. The caller writes what
    /// they become, each with the revision that is shown here as its condition, before it sweeps, and looks
    /// once more afterwards. `process_slot` is the caller's.
    pub fn wills(
        &self,
        process_slot: u16,
        dead: u16,
        see: &mut dyn FnMut(&Record),
    ) -> Result<(), Stuck> {
        if self.process_slot(usize::from(dead), PROCESS_WILLS).load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.each_leaf(
            process_slot,
            &|head, meta| head.process_slot() == dead && meta.has(WILL),
            see,
        )
    }

    /// Shows what is to be on disk, whatever its key and its time, as of one revision.
    pub fn each_durable(
        &self,
        process_slot: u16,
        see: &mut dyn FnMut(&Record),
    ) -> Result<(), Stuck> {
        self.each_leaf(process_slot, &|_, meta| meta.has(DURABLE) && !meta.has(DELETED), see)
    }

    /// Shows the keys whose time is over, as of one revision.
    pub fn each_expired(
        &self,
        process_slot: u16,
        now: u64,
        see: &mut dyn FnMut(&Record),
    ) -> Result<(), Stuck> {
        let over = |meta: &LeafMeta| meta.expires_boot_ns != 0 && meta.expires_boot_ns <= now;
        self.each_leaf(process_slot, &|_, meta| over(meta) && !meta.has(DELETED), see)
    }

    /// Shows the leaves that are wanted, as of one revision; those of internal keys too.
    fn each_leaf(
        &self,
        process_slot: u16,
        wanted: &dyn Fn(Head, &LeafMeta) -> bool,
        see: &mut dyn FnMut(&Record),
    ) -> Result<(), Stuck> {
        let all = Prefix::new(b"/", self.seed, &self.geometry);
        let mut records = Vec::new();
        self.as_of_one(process_slot, &mut |lease| {
            records.clear();
            let mut record = Record::default();
            self.walk(&all, &mut |word, root| {
                let word = self.as_of(word, root, lease.revision)?.ok_or(Stuck)?;
                if word.is_none() {
                    return Ok(());
                }
                let block = self.named(word).ok_or(Stuck)?;
                let head = Head(block[0].load(Ordering::Acquire));
                if wanted(head, &leaf::meta(block, word).ok_or(Stuck)?) {
                    leaf::copy(block, word, &mut record).ok_or(Stuck)?;
                    records.push(record.clone());
                }
                Ok(())
            })
        })?;
        records.iter().for_each(see);
        Ok(())
    }

    /// Cleans up after a dead process slot. One process at a time for a process slot; who is killed here is
    /// swept, and the next one begins anew.
    pub fn sweep(&self, local: &mut Local, host: &impl Host, dead: u16) -> Result<Swept, Stuck> {
        self.free_places(dead);
        // Transactions first: what they say decides which leaves are in use.
        let mut later = false;
        let mut txns = Vec::new();
        self.each_block(&mut |unit, head| {
            if head.state() == IS_TXN && head.process_slot() == dead {
                txns.push(Word::new(TXN, unit, head.tag()));
            }
        });
        for txn in txns {
            later |= !self.end_txn(local, host, txn)?;
        }
        if later {
            return Ok(Swept::Later);
        }
        fail_point!("state.sweep_txns");
        let mut theirs = Vec::new();
        self.each_block(&mut |unit, head| {
            if head.process_slot() == dead && head.state() != FREE {
                theirs.push((unit, head));
            }
        });
        for (unit, head) in theirs {
            self.sweep_block(local, unit, head)?;
        }
        fail_point!("state.sweep_blocks");
        let busy = Word(self.process_slot(usize::from(dead), PROCESS_BUSY).load(Ordering::Acquire));
        if busy.kind() == LEAF {
            self.take_orphan(local, busy)?;
        }
        self.sweep_slabs(dead);
        // The last wills are the caller's: it looks once more, as a transaction of the dead may hold since.
        for word in [PROCESS_BUSY, PROCESS_NEW, PROCESS_SLAB] {
            self.process_slot(usize::from(dead), word).store(0, Ordering::Release);
        }
        fail_point!("state.swept");
        // All of it, here where nobody waits: a node that never writes would keep it for ever.
        self.recycle_all(local);
        Ok(Swept::Clean)
    }

    /// Frees the leases and followers of a dead process slot.
    pub fn free_places(&self, dead: u16) {
        for lease in 0..SNAPSHOT_LEASES {
            if self.lease(lease, LEASE_OWNER).load(Ordering::Acquire) == u64::from(dead) + 1 {
                self.taken_leases().fetch_and(!(1 << lease), Ordering::SeqCst);
                self.lease(lease, LEASE_OWNER).store(0, Ordering::Release);
                fail_point!("state.sweep_lease");
            }
        }
        for follower in 0..self.geometry.followers {
            let owner = self.follower(follower, FOLLOWER_OWNER);
            if owner.load(Ordering::Acquire) == u64::from(dead) + 1 {
                self.after_sleep(follower);
                owner.store(0, Ordering::Release);
                fail_point!("state.sweep_follower");
            }
        }
    }

    /// A follower that does not sleep any more.
    pub fn after_sleep(&self, follower: usize) {
        self.asleep(follower / 64).fetch_and(!(1 << (follower % 64)), Ordering::SeqCst);
    }

    fn each_block(&self, see: &mut dyn FnMut(u32, Head)) {
        for slab in 0..self.slabs_in_use() {
            let known = Slab(self.slab(slab).load(Ordering::Acquire));
            let (blocks, units) = match (known.has_blocks(), known.is_span()) {
                (true, _) => (blocks_per_slab(known.class()), CLASS_UNITS[known.class()]),
                (_, true) => (1, 0),
                _ => continue,
            };
            for index in 0..blocks as u32 {
                let unit = (slab * SLAB_UNITS) as u32 + index * u32::from(units);
                let Some(block) = self.block(unit) else { continue };
                see(unit, Head(block[0].load(Ordering::Acquire)));
            }
        }
    }

    /// Ends a transaction of a dead process slot; `false` if the persister has it.
    fn end_txn(&self, local: &mut Local, host: &impl Host, txn: Word) -> Result<bool, Stuck> {
        for _ in 0..MAX_TRIES {
            match self.status(txn).map(Status::state) {
                Some(UNDECIDED) => {
                    self.decide(txn, UNDECIDED, ABORTED);
                }
                // Nobody was told that it holds, and its writer is not there to be told.
                Some(PERSISTING) => {
                    self.decide(txn, PERSISTING, ABORTED);
                }
                Some(WRITING) => return Ok(false),
                Some(COMMITTED) => {
                    self.adopt_committed(local, host, txn)?;
                    return Ok(true);
                }
                Some(ABORTED) => {
                    for (leaf, before) in self.pairs(txn).unwrap_or_default() {
                        let after = self.newest()?.saturating_add(1);
                        self.put_back_before(local, leaf, before, after);
                        self.take_orphan(local, leaf)?;
                    }
                    let after = self.newest()?.saturating_add(1);
                    self.retire(local, txn, after);
                    return Ok(true);
                }
                _ => return Ok(true),
            }
        }
        Err(Stuck)
    }

    fn adopt_committed(&self, local: &mut Local, host: &impl Host, txn: Word) -> Result<(), Stuck> {
        let pairs = self.pairs(txn).ok_or(Stuck)?;
        let revision = self.number(txn, 0)?.ok_or(Stuck)?;
        for (leaf, _) in &pairs {
            if self.is_guard(*leaf) != Some(true) {
                self.number_of_txn(*leaf, revision);
            }
        }
        for (leaf, before) in pairs {
            if self.is_guard(leaf) == Some(true) {
                self.put_back_before(local, leaf, before, revision);
                self.take_orphan(local, leaf)?;
                continue;
            }
            if !before.is_none() {
                self.take_orphan(local, before)?;
            }
            let meta = self.named(leaf).and_then(|block| leaf::meta(block, leaf));
            if meta.is_some_and(|meta| meta.has(DELETED)) {
                self.adopt(local.process_slot, leaf);
                self.queue_tomb(local, leaf, revision);
            }
        }
        self.retire(local, txn, revision);
        self.wake_followers(host, None);
        Ok(())
    }

    fn sweep_block(&self, local: &mut Local, unit: u32, head: Head) -> Result<(), Stuck> {
        match head.state() {
            PRIVATE | RETIRED => {
                let after = self.newest()?.saturating_add(1);
                self.retire_from(local, Word::new(LEAF, unit, head.tag()), head, after);
            }
            IS_LEAF => {
                let word = Word::new(LEAF, unit, head.tag());
                let block = self.named(word);
                let tomb = block
                    .and_then(|block| leaf::meta(block, word))
                    .is_some_and(|meta| meta.has(DELETED));
                if !self.take_orphan(local, word)? && tomb {
                    // In its slot: its owner would have taken it out.
                    let after = self.newest()?.saturating_add(1);
                    self.adopt(local.process_slot, word);
                    self.queue_tomb(local, word, after);
                }
            }
            IS_NODE => {
                let word = Word::new(NODE, unit, head.tag());
                if self.has_node(word) {
                    if let Some(block) = self.named(word) {
                        block[0].store(Head::new(IS_NODE, NOBODY, head.tag()).0, Ordering::Release);
                    }
                } else {
                    let after = self.newest()?.saturating_add(1);
                    self.retire_from(local, word, head, after);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Retires a leaf that is in no slot and that its owner did not come to retire; whether it was one.
    fn take_orphan(&self, local: &mut Local, word: Word) -> Result<bool, Stuck> {
        let Some(block) = self.named(word) else { return Ok(false) };
        let head = Head(block[0].load(Ordering::Acquire));
        if head.state() != IS_LEAF || head.tag() != word.tag() {
            return Ok(false);
        }
        let Some(key) = self.key_of(word) else { return Ok(false) };
        if self.is_in_use(&key.key(), word)? {
            return Ok(false);
        }
        let after = self.newest()?.saturating_add(1);
        self.retire_from(local, word, head, after);
        Ok(true)
    }

    /// Whether a leaf is what a slot says, or what it said before a change that does not hold yet.
    fn is_in_use(&self, key: &Key<'_>, word: Word) -> Result<bool, Stuck> {
        let find = || self.find(key).map(|slot| slot.word).map_err(|Broken| Stuck);
        let mut at = find()?;
        for _ in 0..MAX_TRIES {
            if at == word {
                return Ok(true);
            }
            if at.kind() != LEAF {
                return Ok(false);
            }
            at = match self.settle(at, key.root())? {
                Settled::Before { word: before, .. } => before,
                Settled::Holds => return Ok(false),
                // Changed under the look.
                Settled::Gone => find()?,
            };
        }
        Err(Stuck)
    }
}
