//! Cleanup after a dead process slot: its incomplete operations are completed or aborted, its leases are
//! released, and each of its blocks is either in a slot or free.

use super::block_words::{
    ABORTED, BlockHeader, BlockRef, COMMITTED, FREE, IS_LEAF, IS_NODE, IS_TXN, LEAF, NODE,
    PERSISTING, PRIVATE, RETIRED, TXN, TxnStatus, UNDECIDED, WRITING,
};
use super::blocks::LocalBlocks;
use super::key::{Key, Prefix};
use super::layout::{
    CLASS_UNITS, FOLLOWER_OWNER, LEASE_OWNER, PROCESS_BUSY, PROCESS_NEW, PROCESS_SLAB,
    PROCESS_WILLS, SLAB_UNITS, SNAPSHOT_LEASES,
};
use super::leaf::{self, DELETED, DURABLE, LeafBuffer, LeafMeta, WILL};
use super::region::{Environment, Region};
use super::resolve::ResolvedLeaf;
use super::slabs::{Slab, blocks_per_slab};
use super::trie::NO_PROCESS_SLOT;
use super::{CorruptRegion, MAX_TRIES, RetriesExhausted};
use crate::fail_point;
use crate::sync::Ordering;

/// Result of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepOutcome {
    /// The process slot can be used again.
    Complete,
    /// The persister still has a transaction of the process slot: sweep again later.
    Pending,
}

impl Region<'_> {
    /// Keys whose last will is due, because the owner of their process slot is dead. Before the sweep, the
    /// caller writes each will on condition of the revision given here; afterwards it checks once more.
    /// `process_slot` is the caller's.
    pub fn due_wills(
        &self,
        process_slot: u16,
        dead: u16,
        see: &mut dyn FnMut(&LeafBuffer),
    ) -> Result<(), RetriesExhausted> {
        if self.process_slot(usize::from(dead), PROCESS_WILLS).load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.each_leaf(
            process_slot,
            &|head, meta| head.process_slot() == dead && meta.has(WILL),
            see,
        )
    }

    /// Visits all durable values, of any key and expiry, as of one revision.
    pub fn each_durable(
        &self,
        process_slot: u16,
        see: &mut dyn FnMut(&LeafBuffer),
    ) -> Result<(), RetriesExhausted> {
        self.each_leaf(process_slot, &|_, meta| meta.has(DURABLE) && !meta.has(DELETED), see)
    }

    /// Visits the expired keys, as of one revision.
    pub fn each_expired(
        &self,
        process_slot: u16,
        now: u64,
        see: &mut dyn FnMut(&LeafBuffer),
    ) -> Result<(), RetriesExhausted> {
        let over = |meta: &LeafMeta| meta.expires_boot_ns != 0 && meta.expires_boot_ns <= now;
        self.each_leaf(process_slot, &|_, meta| over(meta) && !meta.has(DELETED), see)
    }

    /// Visits the selected leaves as of one revision, including those of internal keys.
    fn each_leaf(
        &self,
        process_slot: u16,
        wanted: &dyn Fn(BlockHeader, &LeafMeta) -> bool,
        see: &mut dyn FnMut(&LeafBuffer),
    ) -> Result<(), RetriesExhausted> {
        let all = Prefix::new(b"/", self.seed, &self.geometry);
        let mut records = Vec::new();
        self.with_snapshot(process_slot, &mut |lease| {
            records.clear();
            let mut record = LeafBuffer::default();
            self.walk(&all, &mut |word, root| {
                let word = self.as_of(word, root, lease.revision)?.ok_or(RetriesExhausted)?;
                if word.is_none() {
                    return Ok(());
                }
                let block = self.current_block(word).ok_or(RetriesExhausted)?;
                let head = BlockHeader(block[0].load(Ordering::Acquire));
                if wanted(head, &leaf::meta(block, word).ok_or(RetriesExhausted)?) {
                    leaf::copy(block, word, &mut record).ok_or(RetriesExhausted)?;
                    records.push(record.clone());
                }
                Ok(())
            })
        })?;
        records.iter().for_each(see);
        Ok(())
    }

    /// Cleans up after a dead process slot. Only one process sweeps a process slot at a time. If it is
    /// killed, its own slot is swept, and another process repeats this sweep.
    pub fn sweep(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        dead: u16,
    ) -> Result<SweepOutcome, RetriesExhausted> {
        self.free_leases_and_followers(dead);
        // Transactions first, because their state decides which leaves are in use.
        let mut later = false;
        let mut txns = Vec::new();
        self.each_block(&mut |unit, head| {
            if head.state() == IS_TXN && head.process_slot() == dead {
                txns.push(BlockRef::new(TXN, unit, head.tag()));
            }
        });
        for txn in txns {
            later |= !self.end_txn(local, env, txn)?;
        }
        if later {
            return Ok(SweepOutcome::Pending);
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
        let busy =
            BlockRef(self.process_slot(usize::from(dead), PROCESS_BUSY).load(Ordering::Acquire));
        if busy.kind() == LEAF {
            self.retire_orphan(local, busy)?;
        }
        self.sweep_slabs(dead);
        // The caller handles last wills: it checks once more, because a transaction of the dead process may
        // be committed since.
        for word in [PROCESS_BUSY, PROCESS_NEW, PROCESS_SLAB] {
            self.process_slot(usize::from(dead), word).store(0, Ordering::Release);
        }
        fail_point!("state.swept");
        // Recycles everything now, off the critical path: a node that never writes would keep it forever.
        self.recycle_all(local);
        Ok(SweepOutcome::Complete)
    }

    /// Frees the leases and followers of a dead process slot.
    pub fn free_leases_and_followers(&self, dead: u16) {
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

    /// Marks a follower as awake.
    pub fn after_sleep(&self, follower: usize) {
        self.asleep(follower / 64).fetch_and(!(1 << (follower % 64)), Ordering::SeqCst);
    }

    fn each_block(&self, see: &mut dyn FnMut(u32, BlockHeader)) {
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
                see(unit, BlockHeader(block[0].load(Ordering::Acquire)));
            }
        }
    }

    /// Ends a transaction of a dead process slot; `false` if the persister has it.
    fn end_txn(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        txn: BlockRef,
    ) -> Result<bool, RetriesExhausted> {
        for _ in 0..MAX_TRIES {
            match self.status(txn).map(TxnStatus::state) {
                Some(UNDECIDED) => {
                    self.decide(txn, UNDECIDED, ABORTED);
                }
                // Its commit was not reported, and its writer is dead.
                Some(PERSISTING) => {
                    self.decide(txn, PERSISTING, ABORTED);
                }
                Some(WRITING) => return Ok(false),
                Some(COMMITTED) => {
                    self.adopt_committed(local, env, txn)?;
                    return Ok(true);
                }
                Some(ABORTED) => {
                    for (leaf, before) in self.pairs(txn).unwrap_or_default() {
                        let after = self.newest()?.saturating_add(1);
                        self.restore_previous(local, leaf, before, after);
                        self.retire_orphan(local, leaf)?;
                    }
                    let after = self.newest()?.saturating_add(1);
                    self.retire(local, txn, after);
                    return Ok(true);
                }
                _ => return Ok(true),
            }
        }
        Err(RetriesExhausted)
    }

    fn adopt_committed(
        &self,
        local: &mut LocalBlocks,
        env: &impl Environment,
        txn: BlockRef,
    ) -> Result<(), RetriesExhausted> {
        let pairs = self.pairs(txn).ok_or(RetriesExhausted)?;
        let revision = self.assign_revision(txn, 0)?.ok_or(RetriesExhausted)?;
        for (leaf, _) in &pairs {
            if self.is_guard(*leaf) != Some(true) {
                self.assign_txn_revision(*leaf, revision);
            }
        }
        for (leaf, before) in pairs {
            if self.is_guard(leaf) == Some(true) {
                self.restore_previous(local, leaf, before, revision);
                self.retire_orphan(local, leaf)?;
                continue;
            }
            if !before.is_none() {
                self.retire_orphan(local, before)?;
            }
            let meta = self.current_block(leaf).and_then(|block| leaf::meta(block, leaf));
            if meta.is_some_and(|meta| meta.has(DELETED)) {
                self.adopt(local.process_slot, leaf);
                self.queue_tombstone(local, leaf, revision);
            }
        }
        self.retire(local, txn, revision);
        self.wake_followers(env, None);
        Ok(())
    }

    fn sweep_block(
        &self,
        local: &mut LocalBlocks,
        unit: u32,
        head: BlockHeader,
    ) -> Result<(), RetriesExhausted> {
        match head.state() {
            PRIVATE | RETIRED => {
                let after = self.newest()?.saturating_add(1);
                self.retire_from(local, BlockRef::new(LEAF, unit, head.tag()), head, after);
            }
            IS_LEAF => {
                let word = BlockRef::new(LEAF, unit, head.tag());
                let block = self.current_block(word);
                let tombstone = block
                    .and_then(|block| leaf::meta(block, word))
                    .is_some_and(|meta| meta.has(DELETED));
                if !self.retire_orphan(local, word)? && tombstone {
                    // It is still in its trie slot; its owner would have removed it.
                    let after = self.newest()?.saturating_add(1);
                    self.adopt(local.process_slot, word);
                    self.queue_tombstone(local, word, after);
                }
            }
            IS_NODE => {
                let word = BlockRef::new(NODE, unit, head.tag());
                if self.has_node(word) {
                    if let Some(block) = self.current_block(word) {
                        block[0].store(
                            BlockHeader::new(IS_NODE, NO_PROCESS_SLOT, head.tag()).0,
                            Ordering::Release,
                        );
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

    /// Retires a leaf that is not in a slot and was not retired by its owner; returns whether it was one.
    fn retire_orphan(
        &self,
        local: &mut LocalBlocks,
        word: BlockRef,
    ) -> Result<bool, RetriesExhausted> {
        let Some(block) = self.current_block(word) else { return Ok(false) };
        let head = BlockHeader(block[0].load(Ordering::Acquire));
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

    /// Whether a leaf is the content of a slot, or its previous content under an uncommitted change.
    fn is_in_use(&self, key: &Key<'_>, word: BlockRef) -> Result<bool, RetriesExhausted> {
        let find =
            || self.find(key).map(|slot| slot.word).map_err(|CorruptRegion| RetriesExhausted);
        let mut at = find()?;
        for _ in 0..MAX_TRIES {
            if at == word {
                return Ok(true);
            }
            if at.kind() != LEAF {
                return Ok(false);
            }
            at = match self.resolve(at, key.root())? {
                ResolvedLeaf::Previous { word: before, .. } => before,
                ResolvedLeaf::Committed => return Ok(false),
                // The slot changed during the check.
                ResolvedLeaf::Reused => find()?,
            };
        }
        Err(RetriesExhausted)
    }
}
