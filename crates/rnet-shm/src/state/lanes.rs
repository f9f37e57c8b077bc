//! Lanes: a place in the region for each node that uses state, and cleaning up after the dead.
//!
//! Whether a lane's owner lives is a fact of the region's file: the owner has locked the byte of the file
//! whose number is the lane's, before it wrote itself into the lane, and the kernel releases the lock with
//! the process. So a lane that has an owner and no lock is that of a dead node, whoever knew the node, and
//! whatever has become of the domain's directory meanwhile.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::layout::{
    LANE_BUSY, LANE_CLAIMS, LANE_NEW, LANE_OWNER, LANE_SLAB, LANE_SWEEPER, LANE_WILLS,
};
use rnet_ring::state::{self as ring, Swept};

use super::file::StateFile;
use super::{Inner, Region, Stored, Will, Write};

/// Takes a free lane.
pub(super) fn claim(file: &StateFile, ring: &ring::Region<'_>, incarnation: u64) -> Option<u16> {
    for lane in 0..ring.geometry().lanes {
        let owner = ring.lane(lane, LANE_OWNER);
        if owner.load(Ordering::Relaxed) != 0 || !file.lock_lane(lane) {
            continue;
        }
        fail_point!("state.locked");
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        if owner.compare_exchange(0, incarnation, ok, miss).is_ok() {
            fail_point!("state.lane");
            ring.lane(lane, LANE_CLAIMS).fetch_add(1, Ordering::Relaxed);
            return u16::try_from(lane).ok();
        }
        file.unlock_lane(lane);
    }
    None
}

/// Frees lanes of the dead that hold nothing, when there is no other left: a sweep needs a lane itself.
pub(super) fn free_the_clean(file: &StateFile, ring: &ring::Region<'_>) {
    for lane in 0..ring.geometry().lanes {
        let owner = ring.lane(lane, LANE_OWNER).load(Ordering::Acquire);
        let idle = [LANE_BUSY, LANE_NEW, LANE_SLAB, LANE_WILLS]
            .iter()
            .all(|word| ring.lane(lane, *word).load(Ordering::Acquire) == 0);
        if owner != 0 && idle && !file.lane_is_locked(lane) {
            ring.free_places(lane as u16);
            // Its blocks, if it has any, are found by the sweep of whoever has the lane next and dies.
            let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = ring.lane(lane, LANE_OWNER).compare_exchange(owner, 0, ok, miss);
        }
    }
}

impl Region {
    /// Whether a lane is owned by a node that does not live any more.
    pub fn has_dead(&self) -> bool {
        !self.inner.dead_lanes().is_empty()
    }

    /// Whether a lane is owned by a node that is neither this one nor known to the caller. Cheap.
    pub fn has_strangers(&self, known: impl Fn(u64) -> bool) -> bool {
        let inner = &*self.inner;
        let stranger = |(lane, owner): (u16, u64)| lane != inner.lane && !known(owner);
        inner.owners().into_iter().any(stranger)
    }

    /// Executes the last wills of nodes that died, and cleans up after them; `false` if something is left to
    /// do, later. Any number of nodes may do so at the same time. Wills of keys on disk wait for the keeper.
    pub fn sweep_dead(&self) -> bool {
        let mut all = true;
        // One thread of a node: the lane's mark names the node.
        let _alone = self.inner.sweeping.lock().unwrap_or_else(PoisonError::into_inner);
        for (lane, owner) in self.inner.dead_lanes() {
            // A will that could not be executed keeps its lane from being swept, which would forget it.
            all &= self.execute_wills(lane, owner).is_ok() && self.sweep_lane(lane, owner);
        }
        all
    }

    /// Sweeps a lane, unless another who lives does; `false` if it is to be tried again.
    fn sweep_lane(&self, lane: u16, owner: u64) -> bool {
        let inner = &*self.inner;
        let Ok(ring) = inner.sound() else { return true };
        let at = usize::from(lane);
        let sweeper = ring.lane(at, LANE_SWEEPER);
        let now = sweeper.load(Ordering::Acquire);
        let me = inner.own.incarnation();
        let another = now != 0 && now != me;
        if another && inner.lives(now) {
            // Should it die in the middle, whoever hears of that goes on.
            return true;
        }
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        if sweeper.compare_exchange(now, me, ok, miss).is_err() {
            return true;
        }
        fail_point!("state.sweeper");
        // Asked again: it may have been swept, and claimed by another, since.
        let mut clean = ring.lane(at, LANE_OWNER).load(Ordering::Acquire) != owner;
        if !clean && ring.sweep(&mut inner.local(), inner, lane) == Ok(Swept::Clean) {
            // A transaction of the dead that was being written to disk may hold only now.
            clean = self.execute_wills(lane, owner).is_ok();
            if clean {
                ring.lane(at, LANE_WILLS).store(0, Ordering::Release);
                let _ = ring.lane(at, LANE_OWNER).compare_exchange(owner, 0, ok, miss);
            }
        }
        fail_point!("state.unowned");
        let _ = sweeper.compare_exchange(me, 0, ok, miss);
        clean
    }

    /// Makes the keys of a lane what their last wills say, as long as the lane is this owner's.
    fn execute_wills(&self, lane: u16, owner: u64) -> Result<(), Error> {
        let inner = &*self.inner;
        let ring = inner.sound()?;
        let mut due = Vec::new();
        let walked = ring.wills(inner.lane, lane, &mut |record| {
            due.push((
                String::from_utf8_lossy(record.key()).into_owned(),
                record.will().unwrap_or_default().to_vec(),
                record.facts.revision,
            ));
        });
        walked.map_err(|_| inner.corrupt("a walk does not come to an end"))?;
        // Swept by another, and claimed by one who lives: these may be his.
        if ring.lane(usize::from(lane), LANE_OWNER).load(Ordering::Acquire) != owner {
            return Ok(());
        }
        let mut left = Ok(());
        for (key, will, revision) in due {
            let value = Will::decode(&will).map(|(kind, type_id, bytes)| Stored {
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
    /// The lanes that have owners, with these.
    fn owners(&self) -> Vec<(u16, u64)> {
        let Ok(ring) = self.sound() else { return Vec::new() };
        (0..ring.geometry().lanes as u16)
            .map(|lane| (lane, ring.lane(usize::from(lane), LANE_OWNER).load(Ordering::Acquire)))
            .filter(|(_, owner)| *owner != 0)
            .collect()
    }

    /// Lanes whose owners do not live, with their owners.
    fn dead_lanes(&self) -> Vec<(u16, u64)> {
        // The lock is asked for after the owner was read: it was locked when its owner came.
        let dead = |(lane, _): &(u16, u64)| {
            *lane != self.lane && !self.file.lane_is_locked(usize::from(*lane))
        };
        self.owners().into_iter().filter(dead).collect()
    }

    /// Whether another node, which has a lane, lives.
    fn lives(&self, incarnation: u64) -> bool {
        let owners = self.owners();
        let mut lanes = owners.iter().filter(|(_, owner)| *owner == incarnation);
        lanes.any(|(lane, _)| self.file.lane_is_locked(usize::from(*lane)))
    }
}

impl Drop for Region {
    /// The node's own last wills; followers may go on until they are dropped too.
    fn drop(&mut self) {
        if !self.inner.own.birth().is_parents() {
            let inner = &self.inner;
            let executed = self.execute_wills(inner.lane, inner.own.incarnation());
            // Others find what is left when they look for the dead.
            inner.wills_left.store(executed.is_err(), Ordering::Release);
            inner.let_go();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.own.birth().is_parents() {
            return;
        }
        let Ok(ring) = self.sound() else { return };
        let mut local = self.local();
        // What somebody still reads, and what is not ended yet, is left to whoever sweeps the lane, as one of the dead.
        let open = self.wills_left.load(Ordering::Acquire) || self.has_late();
        if ring.leave(&mut local) && !open {
            let lane = usize::from(self.lane);
            for word in [LANE_BUSY, LANE_NEW, LANE_SLAB, LANE_WILLS] {
                ring.lane(lane, word).store(0, Ordering::Release);
            }
            fail_point!("state.leaving");
            ring.lane(lane, LANE_OWNER).store(0, Ordering::Release);
        }
    }
}
