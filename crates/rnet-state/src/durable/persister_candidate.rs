//! Becoming the persister.
//!
//! docs/design/durable-state.md shows the three ways: creating a store if none exists, taking one whose lock
//! is free, or copying that of a stopped persister. Each ends with the store under a number that was never
//! used before. A process that finds afterwards that its number is not the highest, or that another process
//! got the lease, was too slow and starts over.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::StorageBackend;
use rnet_core::Error;
use rnet_shm::domain::lease::{Lease, LeaseCell, StallDetector};
use rnet_shm::os::clock;
use rnet_shm::os::file_lock::{self, FileLock, LockAttempt};
use rnet_shm::ring::fail_point;
use rnet_shm::state::Clock;
use rustix::io::Errno;

use super::engine::{Engine, Fault};
use super::file::{Fence, StoreFile};
use super::folder::{FolderListing, StateFolder, storage};
use super::store::{Store, each_chunk, explain};

/// Maximum number of attempts when other processes are faster.
const MAX_TRIES: u32 = 16;

/// The owner of a store.
#[derive(Clone, Debug)]
pub(crate) struct StoreOwner {
    /// Distinguishes live regions; at most [`file_lock::MAX_HOLDER`].
    pub region: u64,
    pub pulse: Arc<dyn LeaseCell>,
    pub clock: Clock,
}

/// Result of an attempt to become the persister.
#[derive(Debug)]
pub(crate) enum TakeOutcome {
    /// This process is the persister.
    Acquired(Box<Store>),
    /// Another process is, or is becoming, the persister. Try again later.
    Busy,
}

/// A report for the user: a store was damaged and replaced by an empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DamageReport {
    /// The original path.
    pub path: PathBuf,
    /// The new path.
    pub moved_to: PathBuf,
    pub why: String,
}

/// A process that tries to become the persister, with its observations so far.
#[derive(Debug)]
pub(crate) struct PersisterCandidate {
    folder: StateFolder,
    host: StoreOwner,
    stall_detector: StallDetector,
    reports: Vec<DamageReport>,
    /// The monotonic clock, in ns.
    now_ns: fn() -> u64,
}

/// Result of one step.
enum TakeStep {
    Acquired(Store),
    Busy,
    Retry,
}

/// A locked store without a number; removed on drop, unless it got one.
struct Draft {
    path: PathBuf,
    held: Arc<FileLock>,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.path);
    }
}

/// The fence of a file that no other process knows.
#[derive(Debug)]
struct NoFence;

impl Fence for NoFence {
    fn holds(&self) -> bool {
        true
    }
}

impl PersisterCandidate {
    /// A candidate for the state in `folder`.
    pub fn new(folder: StateFolder, host: StoreOwner) -> PersisterCandidate {
        let (stall_detector, reports) = (StallDetector::default(), Vec::new());
        PersisterCandidate { folder, host, stall_detector, reports, now_ns: clock::now_ns }
    }

    /// With another clock, for tests.
    #[cfg(test)]
    pub fn with_clock(self, now_ns: fn() -> u64) -> PersisterCandidate {
        PersisterCandidate { now_ns, ..self }
    }

    /// Becomes the persister if there is none. Call it again while it returns [`TakeOutcome::Busy`], about
    /// every [`CHECK_INTERVAL`](rnet_shm::domain::lease::CHECK_INTERVAL): a persister counts as stopped if
    /// several consecutive checks found no progress.
    ///
    /// # Errors
    /// `Storage`: the folder or the file cannot be used; contains the reason.
    pub fn take(&mut self) -> Result<TakeOutcome, Error> {
        self.folder.create()?;
        for _ in 0..MAX_TRIES {
            // Read before the files are checked, because a process that takes the lease meanwhile changes it.
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

    /// Reports for the user; each is returned once.
    pub fn take_reports(&mut self) -> Vec<DamageReport> {
        std::mem::take(&mut self.reports)
    }

    /// Creates a store if none exists.
    fn create_store(&mut self, seen: u64, number: u64) -> Result<TakeStep, Error> {
        let Some(held) = self.create_empty(number)? else { return Ok(TakeStep::Retry) };
        let Some(lease) = Lease::take(&self.host.pulse, seen) else { return Ok(TakeStep::Retry) };
        self.keep(&lease, &held, number)
    }

    /// Takes the existing store if its persister is gone or stopped.
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

    /// Continues with a copy of the store of a stopped persister, which may still write to its own.
    fn replace(&mut self, lease: &Arc<Lease>, number: u64, next: u64) -> Result<TakeStep, Error> {
        let step = self.replace_by_copy(lease, number, next);
        match step {
            // The process that got the lease decides.
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
        // Checked before it gets its number, so that an unreadable store never becomes current.
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

    /// Opens the store that just got its number, if that is still the current one.
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

    /// `None` if another process was faster.
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

    /// Creates an empty store in place of a damaged one. An older store in the folder is not used, because
    /// the age of its values is unknown.
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

    /// Creates an empty store with this number; `None` if another process was faster.
    fn create_empty(&self, number: u64) -> Result<Option<Arc<FileLock>>, Error> {
        let Some(draft) = self.draft()? else { return Ok(None) };
        let file = StoreFile::new(draft.held.clone(), Arc::new(NoFence));
        // Closed and synced before it gets its number: numbered stores are complete.
        Engine::create(file.clone()).map_err(|fault| explain(&draft.path, fault)).map(drop)?;
        file.sync_data().map_err(|e| storage(&draft.path, &e))?;
        let placed = self.folder.publish_store(&draft.path, number)?;
        Ok(placed.then(|| draft.held.clone()))
    }

    /// `None` if a sweep removed the file before it was locked.
    fn draft(&self) -> Result<Option<Draft>, Error> {
        let path = self.folder.draft();
        match file_lock::create_locked(&path, self.folder.file_mode(), self.host.region) {
            Ok(held) => Ok(Some(Draft { path, held: Arc::new(held) })),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(storage(&path, &errno.into())),
        }
    }
}

/// `false` if the store has changed: its persister got the lease before this process, but not yet its number.
fn copy(from: &Path, to: &Draft, lease: &Arc<Lease>) -> Result<bool, Error> {
    let file = match File::open(from) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(|e| storage(from, &e))?,
    };
    let draft = StoreFile::new(to.held.clone(), lease.clone());
    each_chunk(&file, &mut |offset, chunk| {
        // A large copy takes time, and other processes expect heartbeats.
        lease.beat();
        draft.write(offset, chunk)
    })
    .and_then(|()| draft.sync_data())
    .map_err(|e| storage(&to.path, &e))?;
    Ok(true)
}
