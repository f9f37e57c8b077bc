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

/// Takes a free lane; where there is none, that of a dead node which left nothing to do, as a sweep needs a
/// lane itself.
pub(super) fn claim(file: &StateFile, ring: &ring::Region<'_>, incarnation: u64) -> Option<u16> {
    let lanes = 0..ring.geometry().lanes;
    let free = lanes.clone().find(|lane| {
        let is_free = ring.lane(*lane, LANE_OWNER).load(Ordering::Relaxed) == 0;
        is_free && take(file, ring, *lane, 0, incarnation)
    });
    let lane =
        free.or_else(|| lanes.into_iter().find(|l| take_clean(file, ring, *l, incarnation)))?;
    fail_point!("state.lane");
    ring.lane(lane, LANE_CLAIMS).fetch_add(1, Ordering::Relaxed);
    u16::try_from(lane).ok()
}

/// Locks a lane and replaces its owner.
fn take(file: &StateFile, ring: &ring::Region<'_>, lane: usize, from: u64, to: u64) -> bool {
    if !file.lock_lane(lane) {
        return false;
    }
    fail_point!("state.locked");
    let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
    let taken = ring.lane(lane, LANE_OWNER).compare_exchange(from, to, ok, miss).is_ok();
    if !taken {
        file.unlock_lane(lane);
    }
    taken
}

/// Takes the lane of a dead node that has no will to be done and was in the middle of nothing. Blocks that
/// it kept stay the lane's, and are found by the sweep after the lane's new owner.
fn take_clean(file: &StateFile, ring: &ring::Region<'_>, lane: usize, incarnation: u64) -> bool {
    let word = |word: usize| ring.lane(lane, word);
    let owner = word(LANE_OWNER).load(Ordering::Acquire);
    let idle = [LANE_BUSY, LANE_NEW, LANE_SLAB, LANE_WILLS]
        .iter()
        .all(|at| word(*at).load(Ordering::Acquire) == 0);
    if owner == 0 || !idle || !take(file, ring, lane, owner, incarnation) {
        return false;
    }
    // SYNC-SWEEP: pairs with `Region::sweep_lane`. A sweep of the lane that has begun is seen here, also if
    // it was stopped in the middle; one that begins from here on sees another owner.
    if word(LANE_SWEEPER).load(Ordering::SeqCst) != 0 {
        let (ok, miss) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = word(LANE_OWNER).compare_exchange(incarnation, owner, ok, miss);
        file.unlock_lane(lane);
        return false;
    }
    ring.free_places(lane as u16);
    true
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
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        if sweeper.compare_exchange(now, me, ok, miss).is_err() {
            return true;
        }
        fail_point!("state.sweeper");
        // SYNC-SWEEP: asked again; it may have been swept, or taken by another, since.
        let mut clean = ring.lane(at, LANE_OWNER).load(Ordering::SeqCst) != owner;
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use rnet_core::NodeName;

    use super::*;
    use crate::domain::{DomainConfig, DomainDir};
    use crate::node::OwnNode;
    use crate::random::random_u64;
    use crate::state::Clock;

    fn open(dir: &DomainDir, name: &str) -> Result<Region, Error> {
        let name = NodeName::new(name).unwrap();
        let own = Arc::new(OwnNode::create(dir, &name, "rust", "0").unwrap());
        Region::open_unswept(&own, Clock::system())
    }

    #[test]
    fn lanes_of_the_dead_are_taken_when_there_is_no_other_but_none_that_is_being_swept() {
        const DEAD: u64 = 77;
        let base = PathBuf::from(format!("/dev/shm/rnet-lanes-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let region = open(&dir, "first").unwrap();
        let ring = region.inner.sound().unwrap();
        for lane in 1..ring.geometry().lanes {
            ring.lane(lane, LANE_OWNER).store(DEAD, Ordering::Relaxed);
            // A sweep that was stopped in the middle goes on at any time.
            ring.lane(lane, LANE_SWEEPER).store(u64::from(lane != 5), Ordering::Relaxed);
        }
        ring.lane(5, LANE_WILLS).store(1, Ordering::Relaxed);
        assert!(matches!(open(&dir, "second"), Err(Error::LimitReached { .. })));
        ring.lane(5, LANE_WILLS).store(0, Ordering::Relaxed);
        let second = open(&dir, "second").unwrap();
        assert_eq!(second.inner.lane, 5);
        let owners = region.inner.owners();
        assert!(owners.iter().all(|(lane, owner)| [0, 5].contains(lane) != (*owner == DEAD)));
        drop((second, region));
        std::fs::remove_dir_all(base).unwrap();
    }
}
