//! Becoming the persister.
//!
//! That is one of three things, all drawn in docs/design/durable-state.md: to begin a store where
//! there is none, to take one whose lock is free, or to copy that of a persister who is stopped. Each
//! ends with the store under a number that was never given before; whoever finds after that that
//! his number is not the highest, or that the lease went to another meanwhile, was too slow and
//! starts over.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::StorageBackend;
use rnet_core::Error;
use rnet_shm::domain::heartbeat::{Lease, LeaseCell, StallDetector};
use rnet_shm::os::clock;
use rnet_shm::os::file_lock::{self, FileLock, LockAttempt};
use rnet_shm::ring::fail_point;
use rnet_shm::state::Clock;
use rustix::io::Errno;

use super::engine::{Engine, Fault};
use super::file::{Fence, StoreFile};
use super::folder::{FolderListing, StateFolder, storage};
use super::store::{Store, each_chunk, explain};

/// How often a try begins anew because others were faster.
const MAX_TRIES: u32 = 16;

/// On whose behalf a store is kept.
#[derive(Clone, Debug)]
pub(crate) struct StoreOwner {
    /// Tells regions apart among those that live; at most [`file_lock::MAX_HOLDER`].
    pub region: u64,
    pub pulse: Arc<dyn LeaseCell>,
    pub clock: Clock,
}

/// What came of asking to be the persister.
#[derive(Debug)]
pub(crate) enum TakeOutcome {
    /// This process is.
    Acquired(Box<Store>),
    /// Another one is, or is becoming it. Ask again later.
    Busy,
}

/// What the user is to be told: a store was damaged, and an empty one was begun in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DamageReport {
    /// Where it was.
    pub path: PathBuf,
    /// Where it is now.
    pub moved_to: PathBuf,
    pub why: String,
}

/// One who wants to be the persister, with what he has seen so far.
#[derive(Debug)]
pub(crate) struct PersisterCandidate {
    folder: StateFolder,
    host: StoreOwner,
    stall_detector: StallDetector,
    reports: Vec<DamageReport>,
    /// The monotonic clock, in ns.
    now_ns: fn() -> u64,
}

/// What one try led to.
enum TakeStep {
    Acquired(Store),
    Busy,
    Retry,
}

/// A store that is locked and has no number yet; removed on drop, unless it got one.
struct Draft {
    path: PathBuf,
    held: Arc<FileLock>,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.path);
    }
}

/// The fence of a file that nobody else knows of.
#[derive(Debug)]
struct NoFence;

impl Fence for NoFence {
    fn holds(&self) -> bool {
        true
    }
}

impl PersisterCandidate {
    /// One who wants to keep the state in `folder`.
    pub fn new(folder: StateFolder, host: StoreOwner) -> PersisterCandidate {
        let (stall_detector, reports) = (StallDetector::default(), Vec::new());
        PersisterCandidate { folder, host, stall_detector, reports, now_ns: clock::now_ns }
    }

    /// For a test that has no time to wait.
    #[cfg(test)]
    pub fn with_clock(self, now_ns: fn() -> u64) -> PersisterCandidate {
        PersisterCandidate { now_ns, ..self }
    }

    /// Becomes the persister, if nobody is. To be called again while it says [`TakeOutcome::Busy`], each
    /// [`CHECK_INTERVAL`](rnet_shm::domain::heartbeat::CHECK_INTERVAL) or so: a persister counts as stopped when several looks in a row
    /// found him where he was.
    ///
    /// # Errors
    /// `Storage`: the folder or the file cannot be used, and why.
    pub fn take(&mut self) -> Result<TakeOutcome, Error> {
        self.folder.create()?;
        for _ in 0..MAX_TRIES {
            // Before the look at the files: whoever takes the lease behind our back changes it.
            let seen = self.host.pulse.read();
            let listing = self.folder.list()?;
            let step = match listing.highest {
                None => self.create_store(seen, listing.next)?,
                Some(number) => self.take_over(seen, number, &listing)?,
            };
            match step {
                TakeStep::Acquired(store) => {
                    self.folder.sweep();
                    return Ok(TakeOutcome::Acquired(Box::new(store)));
                }
                TakeStep::Busy => return Ok(TakeOutcome::Busy),
                TakeStep::Retry => {}
            }
        }
        Ok(TakeOutcome::Busy)
    }

    /// What the user is to be told, each thing once.
    pub fn take_reports(&mut self) -> Vec<DamageReport> {
        std::mem::take(&mut self.reports)
    }

    /// Begins a store where there is none.
    fn create_store(&mut self, seen: u64, number: u64) -> Result<TakeStep, Error> {
        let Some(held) = self.create_empty(number)? else { return Ok(TakeStep::Retry) };
        let Some(lease) = Lease::take(&self.host.pulse, seen) else { return Ok(TakeStep::Retry) };
        self.keep(&lease, &held, number)
    }

    /// Takes the store that is there, if its persister is gone or stopped.
    fn take_over(
        &mut self,
        seen: u64,
        number: u64,
        listing: &FolderListing,
    ) -> Result<TakeStep, Error> {
        let path = self.folder.store(number);
        match file_lock::try_lock(&path, self.host.region) {
            Ok(LockAttempt::Acquired(held)) => {
                if !held.is_at(&path) {
                    return Ok(TakeStep::Retry);
                }
                let Some(lease) = Lease::take(&self.host.pulse, seen) else {
                    return Ok(TakeStep::Retry);
                };
                fail_point!("durable.leased");
                if !self.folder.publish_store(&path, listing.next)? {
                    return Ok(TakeStep::Retry);
                }
                self.keep(&lease, &Arc::new(held), listing.next)
            }
            Ok(LockAttempt::HeldBy(by)) if by == self.host.region => {
                let word = self.stall_detector.check(&*self.host.pulse, (self.now_ns)());
                match word.and_then(|word| Lease::take(&self.host.pulse, word)) {
                    Some(lease) => self.replace(&lease, number, listing.next),
                    None => Ok(TakeStep::Busy),
                }
            }
            Ok(LockAttempt::HeldBy(_)) => Err(Error::Storage {
                path,
                why: "a domain in another directory (RNET_DIR), or in another container, writes it; stop \
                      its nodes, or set RNET_STATE_DIR to a separate directory"
                    .to_owned(),
            }),
            Err(Errno::NOENT) => Ok(TakeStep::Retry),
            Err(errno) => Err(storage(&path, &errno.into())),
        }
    }

    /// Goes on with a copy of the store of a persister that is stopped, who may yet write to his own.
    fn replace(&mut self, lease: &Arc<Lease>, number: u64, next: u64) -> Result<TakeStep, Error> {
        let step = self.replace_by_copy(lease, number, next);
        match step {
            // Whoever took the lease from us has the answer.
            Err(_) if !lease.holds() => Ok(TakeStep::Retry),
            step => step,
        }
    }

    fn replace_by_copy(
        &mut self,
        lease: &Arc<Lease>,
        number: u64,
        next: u64,
    ) -> Result<TakeStep, Error> {
        let Some(draft) = self.draft()? else { return Ok(TakeStep::Retry) };
        if !copy(&self.folder.store(number), &draft, lease)? {
            return Ok(TakeStep::Retry);
        }
        // Before it counts, so that what cannot be read never does.
        match Engine::open(StoreFile::new(draft.held.clone(), lease.clone())) {
            Ok(engine) => drop(engine),
            Err(_) if !lease.holds() => return Ok(TakeStep::Retry),
            Err(Fault::Damaged(why)) => {
                self.set_aside(&draft.path, number, why)?;
                return self.create_replacement(lease);
            }
            Err(fault) => return Err(explain(&draft.path, fault)),
        }
        fail_point!("durable.copied");
        if !self.folder.publish_store(&draft.path, next)? {
            return Ok(TakeStep::Retry);
        }
        fail_point!("durable.placed");
        self.keep(lease, &draft.held, next)
    }

    /// Opens the store that has just got its number, if that is still the one that counts.
    fn keep(
        &mut self,
        lease: &Arc<Lease>,
        held: &Arc<FileLock>,
        number: u64,
    ) -> Result<TakeStep, Error> {
        let path = self.folder.store(number);
        match self.open(lease, held, number)? {
            None => Ok(TakeStep::Retry),
            Some(Ok(store)) => Ok(TakeStep::Acquired(store)),
            Some(Err(Fault::Damaged(why))) => {
                self.set_aside(&path, number, why)?;
                self.create_replacement(lease)
            }
            Some(Err(fault)) => Err(explain(&path, fault)),
        }
    }

    /// `None` if another was faster.
    fn open(
        &self,
        lease: &Arc<Lease>,
        held: &Arc<FileLock>,
        number: u64,
    ) -> Result<Option<Result<Store, Fault>>, Error> {
        if self.folder.list()?.highest != Some(number) {
            return Ok(None);
        }
        let opened = Engine::open(StoreFile::new(held.clone(), lease.clone()));
        if !lease.holds() {
            return Ok(None);
        }
        Ok(Some(opened.and_then(|engine| Store::new(engine, lease.clone(), &self.host.clock))))
    }

    /// Begins an empty store in the place of a damaged one, and not with an older one that may lie
    /// there: nobody would know how old its values are.
    fn create_replacement(&mut self, lease: &Arc<Lease>) -> Result<TakeStep, Error> {
        let next = self.folder.list()?.next;
        let Some(held) = self.create_empty(next)? else { return Ok(TakeStep::Retry) };
        match self.open(lease, &held, next)? {
            None => Ok(TakeStep::Retry),
            Some(Ok(store)) => Ok(TakeStep::Acquired(store)),
            Some(Err(fault)) => Err(explain(&self.folder.store(next), fault)),
        }
    }

    fn set_aside(&mut self, from: &Path, number: u64, why: String) -> Result<(), Error> {
        let moved_to = self.folder.set_aside(from, number, clock::unix_ns() / 1_000_000_000)?;
        self.reports.push(DamageReport { path: self.folder.store(number), moved_to, why });
        Ok(())
    }

    /// Puts an empty store under a number; `None` if another was faster.
    fn create_empty(&self, number: u64) -> Result<Option<Arc<FileLock>>, Error> {
        let Some(draft) = self.draft()? else { return Ok(None) };
        let file = StoreFile::new(draft.held.clone(), Arc::new(NoFence));
        // Closed and synced before it gets its number: what has one is whole.
        Engine::create(file.clone()).map_err(|fault| explain(&draft.path, fault)).map(drop)?;
        file.sync_data().map_err(|e| storage(&draft.path, &e))?;
        let placed = self.folder.publish_store(&draft.path, number)?;
        Ok(placed.then(|| draft.held.clone()))
    }

    /// `None` if a sweeper came between the making and the locking.
    fn draft(&self) -> Result<Option<Draft>, Error> {
        let path = self.folder.draft();
        match file_lock::create_locked(&path, self.folder.file_mode(), self.host.region) {
            Ok(held) => Ok(Some(Draft { path, held: Arc::new(held) })),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(storage(&path, &errno.into())),
        }
    }
}

/// `false` if the store has moved on: its persister had the lease before us, and not yet its number.
fn copy(from: &Path, to: &Draft, lease: &Arc<Lease>) -> Result<bool, Error> {
    let file = match File::open(from) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(|e| storage(from, &e))?,
    };
    let draft = StoreFile::new(to.held.clone(), lease.clone());
    each_chunk(&file, &mut |offset, chunk| {
        // A large copy takes its time, and others wait for a sign of life.
        lease.beat();
        draft.write(offset, chunk)
    })
    .and_then(|()| draft.sync_data())
    .map_err(|e| storage(&to.path, &e))?;
    Ok(true)
}
