//! Process slots: a place in the region for each node that uses state, and cleaning up after the dead.
//!
//! Whether a process slot's owner lives is a fact of the region's file: the owner has locked the byte of the
//! file whose number is the process slot's, before it wrote itself into the process slot, and the kernel
//! releases the lock with the process. So a process slot that has an owner and no lock is that of a dead
//! node, whoever knew the node, and whatever has become of the domain's directory meanwhile.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::layout::{
    PROCESS_BUSY, PROCESS_CLAIMS, PROCESS_NEW, PROCESS_OWNER, PROCESS_SLAB, PROCESS_SWEEPER,
    PROCESS_WILLS,
};
use rnet_ring::state::{self as ring, SweepOutcome};

use super::file::StateFile;
use super::{Inner, Region, StoredValue, Will, Write};

/// Takes a free process slot; where there is none, that of a dead node which left nothing to do, as a sweep
/// needs a process slot itself.
pub(super) fn claim(file: &StateFile, ring: &ring::Region<'_>, incarnation: u64) -> Option<u16> {
    let process_slots = 0..ring.geometry().process_slots;
    let free = process_slots.clone().find(|process_slot| {
        let is_free = ring.process_slot(*process_slot, PROCESS_OWNER).load(Ordering::Relaxed) == 0;
        is_free && take(file, ring, *process_slot, 0, incarnation)
    });
    let process_slot = free
        .or_else(|| process_slots.into_iter().find(|l| take_clean(file, ring, *l, incarnation)))?;
    fail_point!("state.process_slot");
    ring.process_slot(process_slot, PROCESS_CLAIMS).fetch_add(1, Ordering::Relaxed);
    u16::try_from(process_slot).ok()
}

/// Locks a process slot and replaces its owner.
fn take(
    file: &StateFile,
    ring: &ring::Region<'_>,
    process_slot: usize,
    from: u64,
    to: u64,
) -> bool {
    if !file.lock_process_slot(process_slot) {
        return false;
    }
    fail_point!("state.locked");
    let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
    let taken =
        ring.process_slot(process_slot, PROCESS_OWNER).compare_exchange(from, to, ok, miss).is_ok();
    if !taken {
        file.unlock_process_slot(process_slot);
    }
    taken
}

/// Takes the process slot of a dead node that has no will to be done and was in the middle of nothing. Blocks
/// that it kept stay the process slot's, and are found by the sweep after the process slot's new owner.
fn take_clean(
    file: &StateFile,
    ring: &ring::Region<'_>,
    process_slot: usize,
    incarnation: u64,
) -> bool {
    let word = |word: usize| ring.process_slot(process_slot, word);
    let owner = word(PROCESS_OWNER).load(Ordering::Acquire);
    let idle = [PROCESS_BUSY, PROCESS_NEW, PROCESS_SLAB, PROCESS_WILLS]
        .iter()
        .all(|at| word(*at).load(Ordering::Acquire) == 0);
    if owner == 0 || !idle || !take(file, ring, process_slot, owner, incarnation) {
        return false;
    }
    // SYNC-SWEEP: pairs with `Region::sweep_process_slot`. A sweep of the process slot that has begun is seen
    // here, also if it was stopped in the middle; one that begins from here on sees another owner.
    if word(PROCESS_SWEEPER).load(Ordering::SeqCst) != 0 {
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = word(PROCESS_OWNER).compare_exchange(incarnation, owner, ok, miss);
        file.unlock_process_slot(process_slot);
        return false;
    }
    ring.free_leases_and_followers(process_slot as u16);
    true
}

impl Region {
    /// Whether a process slot is owned by a node that does not live any more.
    pub fn has_dead(&self) -> bool {
        !self.inner.dead_process_slots().is_empty()
    }

    /// Whether a process slot is owned by a node that is neither this one nor known to the caller, or this node
    /// has something of such a one. Cheap.
    pub fn has_unknown_owners(&self, known: impl Fn(u64) -> bool) -> bool {
        let inner = &*self.inner;
        let stranger =
            |(process_slot, owner): (u16, u64)| process_slot != inner.process_slot && !known(owner);
        inner.owners().into_iter().any(stranger) || inner.peer_bells.has(|node| !known(node))
    }

    /// Lets go of what this node has of others for ringing them, if they do not live any more.
    pub fn forget_dead(&self) {
        let inner = &*self.inner;
        let Ok(ring) = inner.checked_ring() else { return };
        inner.peer_bells.forget(|process_slot, incarnation| {
            ring.process_slot(process_slot, PROCESS_OWNER).load(Ordering::Acquire) == incarnation
                && inner.file.process_slot_is_locked(process_slot)
        });
    }

    /// Executes the last wills of nodes that died, and cleans up after them; `false` if something is left to
    /// do, later. Any number of nodes may do so at the same time. Wills of keys on disk wait for the persister.
    pub fn sweep_dead(&self) -> bool {
        let mut all = true;
        // One thread of a node: the process slot's mark names the node.
        let _alone = self.inner.sweeping.lock().unwrap_or_else(PoisonError::into_inner);
        for (process_slot, owner) in self.inner.dead_process_slots() {
            // A will that could not be executed keeps its process slot from being swept, which would forget it.
            all &= self.execute_wills(process_slot, owner).is_ok()
                && self.sweep_process_slot(process_slot, owner);
        }
        all
    }

    /// Sweeps a process slot, unless another who lives does; `false` if it is to be tried again.
    fn sweep_process_slot(&self, process_slot: u16, owner: u64) -> bool {
        let inner = &*self.inner;
        let Ok(ring) = inner.checked_ring() else { return true };
        let at = usize::from(process_slot);
        let sweeper = ring.process_slot(at, PROCESS_SWEEPER);
        let now = sweeper.load(Ordering::Acquire);
        let me = inner.own.incarnation();
        let another = now != 0 && now != me;
        if another && inner.lives(now) {
            // Should it die in the middle, whoever hears of that goes on.
            return true;
        }
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        if sweeper.compare_exchange(now, me, ok, miss).is_err() {
            return true;
        }
        fail_point!("state.sweeper");
        // SYNC-SWEEP: asked again; it may have been swept, or taken by another, since.
        let mut clean = ring.process_slot(at, PROCESS_OWNER).load(Ordering::SeqCst) != owner;
        if !clean
            && ring.sweep(&mut inner.local(), inner, process_slot) == Ok(SweepOutcome::Complete)
        {
            // A transaction of the dead that was being written to disk may hold only now.
            clean = self.execute_wills(process_slot, owner).is_ok();
            if clean {
                ring.process_slot(at, PROCESS_WILLS).store(0, Ordering::Release);
                let _ = ring.process_slot(at, PROCESS_OWNER).compare_exchange(owner, 0, ok, miss);
            }
        }
        fail_point!("state.unowned");
        let _ = sweeper.compare_exchange(me, 0, ok, miss);
        clean
    }

    /// Makes the keys of a process slot what their last wills say, as long as the process slot is this owner's.
    fn execute_wills(&self, process_slot: u16, owner: u64) -> Result<(), Error> {
        let inner = &*self.inner;
        let ring = inner.checked_ring()?;
        let mut due = Vec::new();
        let walked = ring.due_wills(inner.process_slot, process_slot, &mut |record| {
            due.push((
                String::from_utf8_lossy(record.key()).into_owned(),
                record.will().unwrap_or_default().to_vec(),
                record.meta.revision,
            ));
        });
        walked.map_err(|_| inner.corrupt("a list walk does not finish"))?;
        // Swept by another, and claimed by one who lives: these may be his.
        if ring.process_slot(usize::from(process_slot), PROCESS_OWNER).load(Ordering::Acquire)
            != owner
        {
            return Ok(());
        }
        let mut left = Ok(());
        for (key, will, revision) in due {
            let value = Will::decode(&will).map(|(kind, type_id, bytes)| StoredValue {
                kind,
                type_id,
                bytes,
                will: None,
                expires_boot_ns: 0,
            });
            let write = Write { key: &key, value, expect: Some(revision), durable: None };
            // Any other error: somebody wrote it since, or executed the will, or nobody ever can.
            if let Err(
                error @ (Error::Timeout { .. }
                | Error::Storage { .. }
                | Error::OutOfMemory { .. }
                | Error::Corrupt { .. }),
            ) = self.commit(&[write], &[], &mut |_, _| Ok(()))
            {
                left = Err(error);
            }
            fail_point!("state.will");
        }
        left
    }
}

impl Inner {
    /// The process slots that have owners, with these.
    fn owners(&self) -> Vec<(u16, u64)> {
        let Ok(ring) = self.checked_ring() else { return Vec::new() };
        (0..ring.geometry().process_slots as u16)
            .map(|process_slot| {
                (
                    process_slot,
                    ring.process_slot(usize::from(process_slot), PROCESS_OWNER)
                        .load(Ordering::Acquire),
                )
            })
            .filter(|(_, owner)| *owner != 0)
            .collect()
    }

    /// Process slots whose owners do not live, with their owners.
    fn dead_process_slots(&self) -> Vec<(u16, u64)> {
        // The lock is asked for after the owner was read: it was locked when its owner came.
        let dead = |(process_slot, _): &(u16, u64)| {
            *process_slot != self.process_slot
                && !self.file.process_slot_is_locked(usize::from(*process_slot))
        };
        self.owners().into_iter().filter(dead).collect()
    }

    /// Whether another node, which has a process slot, lives.
    fn lives(&self, incarnation: u64) -> bool {
        let owners = self.owners();
        let mut process_slots = owners.iter().filter(|(_, owner)| *owner == incarnation);
        process_slots
            .any(|(process_slot, _)| self.file.process_slot_is_locked(usize::from(*process_slot)))
    }
}

impl Drop for Region {
    /// The node's own last wills; followers may go on until they are dropped too.
    fn drop(&mut self) {
        if !self.inner.own.fork_guard().is_from_parent() {
            let inner = &self.inner;
            let executed = self.execute_wills(inner.process_slot, inner.own.incarnation());
            // Others find what is left when they look for the dead.
            inner.wills_left.store(executed.is_err(), Ordering::Release);
            inner.drop_persister_control();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.own.fork_guard().is_from_parent() {
            return;
        }
        let Ok(ring) = self.checked_ring() else { return };
        let mut local = self.local();
        // What somebody still reads, and what is not ended yet, is left to whoever sweeps the process slot,
        // as one of the dead.
        let open = self.wills_left.load(Ordering::Acquire) || self.has_abandoned();
        if ring.leave(&mut local) && !open {
            let process_slot = usize::from(self.process_slot);
            for word in [PROCESS_BUSY, PROCESS_NEW, PROCESS_SLAB, PROCESS_WILLS] {
                ring.process_slot(process_slot, word).store(0, Ordering::Release);
            }
            fail_point!("state.leaving");
            ring.process_slot(process_slot, PROCESS_OWNER).store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use rnet_core::NodeName;

    use super::*;
    use crate::domain::directory::{DomainConfig, DomainDir};
    use crate::domain::node::OwnNode;
    use crate::os::random::random_u64;
    use crate::state::Clock;

    fn open(dir: &DomainDir, name: &str) -> Result<Region, Error> {
        let name = NodeName::new(name).unwrap();
        let own = Arc::new(OwnNode::create(dir, &name, "rust", "0").unwrap());
        Region::open_unswept(&own, Clock::system())
    }

    #[test]
    fn process_slots_of_the_dead_are_taken_when_there_is_no_other_but_none_that_is_being_swept() {
        const DEAD: u64 = 77;
        let base = PathBuf::from(format!("/dev/shm/rnet-process_slots-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let region = open(&dir, "first").unwrap();
        let ring = region.inner.checked_ring().unwrap();
        for process_slot in 1..ring.geometry().process_slots {
            ring.process_slot(process_slot, PROCESS_OWNER).store(DEAD, Ordering::Relaxed);
            // A sweep that was stopped in the middle goes on at any time.
            ring.process_slot(process_slot, PROCESS_SWEEPER)
                .store(u64::from(process_slot != 5), Ordering::Relaxed);
        }
        ring.process_slot(5, PROCESS_WILLS).store(1, Ordering::Relaxed);
        assert!(matches!(open(&dir, "second"), Err(Error::LimitReached { .. })));
        ring.process_slot(5, PROCESS_WILLS).store(0, Ordering::Relaxed);
        let second = open(&dir, "second").unwrap();
        assert_eq!(second.inner.process_slot, 5);
        let owners = region.inner.owners();
        assert!(
            owners
                .iter()
                .all(|(process_slot, owner)| [0, 5].contains(process_slot) != (*owner == DEAD))
        );
        drop((second, region));
        std::fs::remove_dir_all(base).unwrap();
    }
}
