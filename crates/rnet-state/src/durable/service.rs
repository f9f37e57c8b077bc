//! A node's part in keeping state on disk: loading it once, and being or finding the persister.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result, fnv1a_64};
use rnet_node::sync::lock;
use rnet_shm::domain::directory::DomainDir;
use rnet_shm::domain::heartbeat::{CHECK_INTERVAL, LeaseCell};
use rnet_shm::os::fork::ForkGuard;
use rnet_shm::state::{PersisterControl, PersisterHandle, Region, RestoreOutcome};

use super::folder::StateFolder;
use super::persister::{self, PersisterFlags, Unrestored};
use super::persister_candidate::{PersisterCandidate, StoreOwner, TakeOutcome};
use super::restore::restore;
use super::store::{Failure, Store, read_only};

/// [`PersisterHandle::loaded`]: nobody has looked yet.
const UNKNOWN: u64 = 0;
/// [`PersisterHandle::loaded`], lowest byte: what was on disk is here; of which folder, the others say.
const LOADED: u64 = 1;
/// [`PersisterHandle::loaded`]: there was no store, or the disk could not be used; whoever takes one later loads it
/// first. Else what it does not find in the region would be forgotten on disk, too.
const UNUSABLE: u64 = 2;

/// How long a start waits for another process that loads.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Reports that are kept for the user, the newest.
const MAX_REPORTS: usize = 16;

/// What a node has of durable state.
pub(crate) struct Durable {
    shared: Arc<DurableShared>,
    fork_guard: ForkGuard,
}

struct DurableShared {
    disk: PersisterHandle,
    domain: DomainDir,
    /// The place that this node was told, or has by default. Without one nothing can be kept, and this says
    /// why. What counts is [`DurableShared::folder`].
    configured_folder: Result<StateFolder, Error>,
    flags: Arc<PersisterFlags>,
    role: Mutex<PersisterRole>,
    has_new_reports: AtomicBool,
    /// Whether it was tried to load what others started without.
    late_load_tried: AtomicBool,
    reports: Mutex<Vec<String>>,
}

/// What one thread of the node at a time is at.
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
    /// Joins the region, and loads what is on disk if nobody has. A disk that cannot be used is no error: a
    /// robot starts without it, and is told ([`Durable::take_reports`]).
    ///
    /// # Errors
    /// `Storage`: this node was told to keep the state elsewhere than the domain keeps it.
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

    /// Whether there is something to tell. Cheap.
    pub fn has_reports(&self) -> bool {
        self.shared.has_new_reports.load(Ordering::Relaxed)
    }

    /// What the user is to be told, in words, each thing once.
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
        // Another thread of this node is at it.
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

/// What [`PersisterHandle::loaded`] says when this folder's store has been loaded.
fn loaded_mark(folder: &StateFolder) -> u64 {
    // Which folder it is, not only what it is called: a disk may be mounted over it later.
    let stat = rustix::fs::stat(folder.path());
    let (device, number) = stat.map_or((0, 0), |stat| (stat.st_dev, stat.st_ino));
    let text = format!("{} {device} {number}", folder.path().display());
    LOADED | fnv1a_64(text.as_bytes()) << 8
}

impl DurableShared {
    /// Where the state of the domain is kept: where it was loaded from or first written to; before that,
    /// where this node was told to.
    fn folder(&self) -> Result<StateFolder, Error> {
        match self.disk.bound_folder()? {
            Some(bound) => {
                StateFolder::resolve_bound(&self.configured_folder, &self.domain, &bound)
            }
            None => self.configured_folder.clone(),
        }
    }

    /// Refuses a node that was told another place than the domain's.
    fn check_folder(&self) -> Result<(), Error> {
        match self.disk.bound_folder()? {
            Some(bound) => {
                StateFolder::resolve_bound(&self.configured_folder, &self.domain, &bound).map(drop)
            }
            None => Ok(()),
        }
    }

    /// The folder that is to be used from now on, by all: it is made, and the domain bound to it.
    fn bind_folder(&self) -> Result<StateFolder, Error> {
        let folder = self.folder()?;
        folder.create()?;
        let bound = self.disk.bind_folder(&folder.binding())?;
        StateFolder::resolve_bound(&Ok(folder), &self.domain, &bound)
    }

    fn report(&self, report: String) {
        // Also where nobody asks for reports: what was set aside, or cannot be used, is to be known.
        eprintln!("rnet: {report}");
        let mut reports = lock(&self.reports);
        if reports.len() == MAX_REPORTS {
            reports.remove(0);
        }
        reports.push(report);
        self.has_new_reports.store(true, Ordering::Relaxed);
    }

    /// Becomes the persister, if nobody is; `None` if somebody is.
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

    /// Loads what is on disk, if nobody has, and starts the persister's thread; `false` if another has
    /// taken over meanwhile.
    fn start(&self, role: &mut PersisterRole, store: Store) -> Result<bool, Error> {
        // The one before has ended, or is about to.
        if let Some(before) = role.thread.take() {
            let _ = before.join();
        }
        let mut unrestored = Unrestored::default();
        // Another folder than the one that was loaded, by who was told of another place, is loaded as well.
        let mark = self.folder().map_or(LOADED, |folder| loaded_mark(&folder));
        if self.disk.loaded().load(Ordering::SeqCst) != mark {
            // What this process cannot hold, it must not have the disk forget.
            unrestored = self.restore_all(&store)?;
            if !store.lease().beat() {
                return Ok(false);
            }
            self.disk.loaded().store(mark, Ordering::SeqCst);
        }
        role.thread = Some(persister::start(&self.flags, self.disk.clone(), store, unrestored)?);
        Ok(true)
    }

    /// Loads what is on disk, or waits for who does.
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

    /// Whether others started without our store: from elsewhere, or before its disk was there.
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

    /// `false` if another process is at it.
    fn load_once(&self) -> Result<bool, Error> {
        let Ok(folder) = self.folder() else {
            // Who never keeps anything need not have a place for it; who does is told then.
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

    /// Puts back all that is on disk; the keys at which a transaction is in the way.
    fn restore_all(&self, store: &Store) -> Result<Unrestored, Error> {
        let (mut failed, mut unrestored) = (None, Unrestored::default());
        let loaded = store.load(&mut |saved| {
            // Another has taken over, and loads.
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

    /// Loads from a disk that cannot be written.
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
