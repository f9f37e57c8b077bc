//! A node's part in durable state: loading it once, and becoming or finding the persister.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result, fnv1a_64};
use rnet_node::sync::lock;
use rnet_shm::domain::directory::DomainDir;
use rnet_shm::domain::lease::{CHECK_INTERVAL, LeaseCell};
use rnet_shm::os::fork::ForkGuard;
use rnet_shm::state::{PersisterControl, PersisterHandle, Region, RestoreOutcome};

use super::folder::StateFolder;
use super::persister::{self, PersisterFlags, Unrestored};
use super::persister_candidate::{PersisterCandidate, StoreOwner, TakeOutcome};
use super::restore::restore;
use super::store::{Failure, Store, read_only};

/// [`PersisterHandle::loaded`]: not checked yet.
const UNKNOWN: u64 = 0;
/// [`PersisterHandle::loaded`], lowest byte: the state on disk was loaded; the other bytes identify the
/// folder.
const IS_LOADED: u64 = 1;
/// [`PersisterHandle::loaded`]: the store did not exist, or the disk could not be used. A process that takes
/// a store later loads it first. Otherwise keys missing in the region would be deleted on disk, too.
const UNUSABLE: u64 = 2;

/// Maximum wait of a start for another process that is loading.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of kept reports; the newest are kept.
const MAX_REPORTS: usize = 16;

/// A node's part of durable state.
pub(crate) struct Durable {
    shared: Arc<DurableShared>,
    fork_guard: ForkGuard,
}

struct DurableShared {
    disk: PersisterHandle,
    domain: DomainDir,
    /// The location configured for this node, or the default. An error means that state cannot be stored, and
    /// why. [`DurableShared::folder`] determines the actual folder.
    configured_folder: Result<StateFolder, Error>,
    flags: Arc<PersisterFlags>,
    role: Mutex<PersisterRole>,
    has_new_reports: AtomicBool,
    /// Whether loading was tried after another process started without the store.
    late_load_tried: AtomicBool,
    reports: Mutex<Vec<String>>,
}

/// State of the one thread of the node that handles the persister role at a time.
#[derive(Default)]
struct PersisterRole {
    candidate: Option<PersisterCandidate>,
    thread: Option<JoinHandle<()>>,
}

/// The lease in the region's header.
#[derive(Clone)]
struct LeaseWord(PersisterHandle);

impl std::fmt::Debug for LeaseWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LeaseWord({:#x})", self.read())
    }
}

impl LeaseCell for LeaseWord {
    fn read(&self) -> u64 {
        self.0.lease().load(Ordering::SeqCst)
    }

    fn swap(&self, seen: u64, next: u64) -> bool {
        let (ok, miss) = (Ordering::SeqCst, Ordering::SeqCst);
        self.0.lease().compare_exchange(seen, next, ok, miss).is_ok()
    }
}

impl Durable {
    /// Joins the region, and loads the state on disk unless another process has. An unusable disk is not an
    /// error: a robot starts without it and gets a report ([`Durable::take_reports`]).
    ///
    /// # Errors
    /// `Storage`: this node is configured for another folder than the domain.
    pub fn open(
        region: &Region,
        domain: &DomainDir,
        folder: Result<StateFolder, Error>,
    ) -> Result<Durable, Error> {
        let shared = Arc::new(DurableShared {
            disk: region.persister_handle(),
            domain: domain.clone(),
            configured_folder: folder,
            flags: Arc::default(),
            role: Mutex::default(),
            has_new_reports: AtomicBool::new(false),
            late_load_tried: AtomicBool::new(false),
            reports: Mutex::default(),
        });
        region.set_persister_control(shared.clone());
        shared.check_folder()?;
        shared.load();
        shared.check_folder()?;
        Ok(Durable { shared, fork_guard: ForkGuard::here() })
    }

    /// Whether reports are available. Cheap.
    pub fn has_reports(&self) -> bool {
        self.shared.has_new_reports.load(Ordering::Relaxed)
    }

    /// Reports for the user as text; each is returned once.
    pub fn take_reports(&self) -> Vec<String> {
        let mut reports = lock(&self.shared.reports);
        self.shared.has_new_reports.store(false, Ordering::Relaxed);
        std::mem::take(&mut reports)
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        // A forked child has neither the thread nor its locks.
        if self.fork_guard.is_from_parent() {
            std::mem::forget(self.shared.clone());
            return;
        }
        self.shared.flags.stop(&self.shared.disk);
        let thread = lock(&self.shared.role).thread.take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl PersisterControl for DurableShared {
    fn ensure_persister(&self) -> Result<(), Error> {
        if self.flags.is_running() || self.flags.is_stopping() {
            return Ok(());
        }
        // Another thread of this node is handling it.
        let Ok(mut role) = self.role.try_lock() else { return Ok(()) };
        match self.try_take(&mut role)? {
            Some(store) => self.start(&mut role, store).map(drop),
            None => Ok(()),
        }
    }

    fn check_allowed(&self) -> Result<(), Error> {
        self.check_folder()
    }

    fn refusal_error(&self, reason: u64) -> Error {
        let errno = i32::try_from(reason).unwrap_or(libc::EIO);
        match &self.folder() {
            Ok(folder) => Failure { errno }.explain(folder),
            Err(error) => error.clone(),
        }
    }
}

/// The value of [`PersisterHandle::loaded`] after this folder's store has been loaded.
fn loaded_mark(folder: &StateFolder) -> u64 {
    // Identifies the directory, not only its path: a disk may be mounted over it later.
    let stat = rustix::fs::stat(folder.path());
    let (device, number) = stat.map_or((0, 0), |stat| (stat.st_dev, stat.st_ino));
    let text = format!("{} {device} {number}", folder.path().display());
    IS_LOADED | fnv1a_64(text.as_bytes()) << 8
}

impl DurableShared {
    /// The folder of the domain's state: where it was loaded from or first written to; before that, the one
    /// configured for this node.
    fn folder(&self) -> Result<StateFolder, Error> {
        match self.disk.bound_folder()? {
            Some(bound) => {
                StateFolder::resolve_bound(&self.configured_folder, &self.domain, &bound)
            }
            None => self.configured_folder.clone(),
        }
    }

    /// Rejects a node that is configured for another folder than the domain's.
    fn check_folder(&self) -> Result<(), Error> {
        match self.disk.bound_folder()? {
            Some(bound) => {
                StateFolder::resolve_bound(&self.configured_folder, &self.domain, &bound).map(drop)
            }
            None => Ok(()),
        }
    }

    /// The folder for all nodes from now on: creates it, and binds the domain to it.
    fn bind_folder(&self) -> Result<StateFolder, Error> {
        let folder = self.folder()?;
        folder.create()?;
        let bound = self.disk.bind_folder(&folder.binding())?;
        StateFolder::resolve_bound(&Ok(folder), &self.domain, &bound)
    }

    fn report(&self, report: String) {
        // Also printed, because not every user reads the reports: damaged or unusable stores must be visible.
        eprintln!("rnet: {report}");
        let mut reports = lock(&self.reports);
        if reports.len() == MAX_REPORTS {
            reports.remove(0);
        }
        reports.push(report);
        self.has_new_reports.store(true, Ordering::Relaxed);
    }

    /// Becomes the persister if there is none; `None` if there is one.
    fn try_take(&self, role: &mut PersisterRole) -> Result<Option<Store>, Error> {
        if self.flags.is_running() {
            return Ok(None);
        }
        let folder = self.bind_folder()?;
        let candidate = role.candidate.get_or_insert_with(|| {
            let pulse = Arc::new(LeaseWord(self.disk.clone()));
            PersisterCandidate::new(
                folder,
                StoreOwner { region: self.disk.region(), pulse, clock: self.disk.clock().clone() },
            )
        });
        let taken = candidate.take();
        for report in candidate.take_reports() {
            self.report(format!(
                "the state on disk was damaged: {} ({}); the damaged file is now {}, and a new one was created",
                report.path.display(),
                report.why,
                report.moved_to.display()
            ));
        }
        match taken? {
            TakeOutcome::Acquired(store) => Ok(Some(*store)),
            TakeOutcome::Busy => Ok(None),
        }
    }

    /// Loads the state on disk unless another process has, and starts the persister's thread; `false` if
    /// another process has taken over meanwhile.
    fn start(&self, role: &mut PersisterRole, store: Store) -> Result<bool, Error> {
        // The previous thread has exited, or is about to.
        if let Some(before) = role.thread.take() {
            let _ = before.join();
        }
        let mut unrestored = Unrestored::default();
        // A folder other than the loaded one, from a node with another setting, is loaded as well.
        let mark = self.folder().map_or(IS_LOADED, |folder| loaded_mark(&folder));
        if self.disk.loaded().load(Ordering::SeqCst) != mark {
            // Values that this process cannot hold must stay on disk.
            unrestored = self.restore_all(&store)?;
            if !store.lease().beat() {
                return Ok(false);
            }
            self.disk.loaded().store(mark, Ordering::SeqCst);
        }
        role.thread = Some(persister::start(&self.flags, self.disk.clone(), store, unrestored)?);
        Ok(true)
    }

    /// Loads the state on disk, or waits for the process that does.
    fn load(&self) {
        let begun = Instant::now();
        loop {
            let loaded = self.disk.loaded().load(Ordering::SeqCst);
            if loaded != UNKNOWN && !self.missed_store(loaded) {
                return;
            }
            match self.load_once() {
                Ok(true) => return,
                Ok(false) if begun.elapsed() < LOAD_TIMEOUT => {
                    std::thread::sleep(CHECK_INTERVAL / 4)
                }
                Ok(false) => {
                    self.report("another process is still loading the state from disk".into());
                    return self.mark_unusable();
                }
                Err(error) => {
                    self.report(format!("the state on disk cannot be used: {error}"));
                    self.read_only();
                    return self.mark_unusable();
                }
            }
        }
    }

    /// Whether other processes started without this store: from another folder, or before its disk was
    /// available.
    fn missed_store(&self, loaded: u64) -> bool {
        let Ok(folder) = self.folder() else { return false };
        loaded != loaded_mark(&folder)
            && matches!(folder.has_store(), Ok(true))
            && !self.late_load_tried.swap(true, Ordering::Relaxed)
    }

    fn mark_unusable(&self) {
        let (ok, miss) = (Ordering::SeqCst, Ordering::SeqCst);
        let _ = self.disk.loaded().compare_exchange(UNKNOWN, UNUSABLE, ok, miss);
    }

    /// `false` if another process is loading.
    fn load_once(&self) -> Result<bool, Error> {
        let Ok(folder) = self.folder() else {
            // A node that never writes durable state needs no folder; others get the error when they write.
            self.mark_unusable();
            return Ok(true);
        };
        if !folder.has_store()? {
            self.mark_unusable();
            return Ok(true);
        }
        let mut role = lock(&self.role);
        match self.try_take(&mut role)? {
            Some(store) => self.start(&mut role, store),
            None => Ok(false),
        }
    }

    /// Restores everything on disk; returns the keys that a transaction blocks.
    fn restore_all(&self, store: &Store) -> Result<Unrestored, Error> {
        let (mut failed, mut unrestored) = (None, Unrestored::default());
        let loaded = store.load(&mut |saved| {
            // Another process has taken over and loads.
            if failed.is_some() || !store.lease().beat() {
                return;
            }
            match restore(&self.disk, &saved) {
                Ok(RestoreOutcome::Done) => {}
                Ok(RestoreOutcome::Occupied) => unrestored.occupied.push(saved.key.to_owned()),
                Ok(RestoreOutcome::Pending) => unrestored.waiting.push(saved.key.to_owned()),
                Err(error) => failed = Some(error),
            }
        });
        match (loaded, failed, self.folder()) {
            (Err(failure), _, Ok(folder)) => Err(failure.explain(&folder)),
            (_, Some(error), _) => Err(error),
            _ => Ok(unrestored),
        }
    }

    /// Loads from a read-only disk.
    fn read_only(&self) {
        let Ok(folder) = self.folder() else { return };
        let mut failed = None;
        let read = read_only(&folder, self.disk.clock(), &mut |saved| {
            if failed.is_none() {
                failed = restore(&self.disk, &saved).err();
            }
        });
        if let Some(error) = read.err().or(failed) {
            self.report(format!("the state on disk cannot be read either: {error}"));
        }
    }
}
