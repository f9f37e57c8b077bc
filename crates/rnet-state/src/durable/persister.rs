//! The persister's thread: takes requests from the region, writes them immediately, and reports the results.
//!
//! It starts with the opened store in the process whose durable write found no persister. It exits with its
//! node, if the disk fails, or if another process took over because this one was stopped. A second thread
//! shows that the process is alive while a slow disk blocks the first one: a persister that waits for its
//! disk is not stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rnet_core::{Error, Result, fnv1a_64};
use rnet_shm::domain::lease::{HEARTBEAT_INTERVAL, Lease};
use rnet_shm::os::bell::MAX_SLEEP;
use rnet_shm::state::{PersistRequest, PersisterHandle, Record, RestoreOutcome};

use super::expiry_index::ExpiryIndex;
use super::record::{Change, Saved};
use super::restore::restore;
use super::store::{Commit, Failure, Store};

/// Number of beats for which the second thread stays awake without work, so that a busy persister need not
/// wake it each time.
const IDLE_BEATS: u32 = 10;

/// Flags that the persister's threads share with their node.
#[derive(Debug, Default)]
pub(super) struct PersisterFlags {
    /// Whether this node's persister thread is running.
    running: AtomicBool,
    /// Whether it must exit.
    stopping: AtomicBool,
}

impl PersisterFlags {
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub fn stop(&self, disk: &PersisterHandle) {
        self.stopping.store(true, Ordering::SeqCst);
        disk.wake_persister();
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// Keys on disk that are not in the region. The disk keeps them nevertheless.
#[derive(Debug, Default)]
pub(super) struct Unrestored {
    /// Blocked by a transaction; retried.
    pub waiting: Vec<String>,
    /// The key already has another value.
    pub occupied: Vec<String>,
}

/// Starts the thread, which owns the store from then on.
pub(super) fn start(
    flags: &Arc<PersisterFlags>,
    disk: PersisterHandle,
    store: Store,
    unrestored: Unrestored,
) -> Result<JoinHandle<()>> {
    flags.running.store(true, Ordering::Release);
    let (ours, theirs) = (flags.clone(), flags.clone());
    let body = move || {
        /// Also runs after a panic, so that another thread can take over.
        struct ClearRunning(Arc<PersisterFlags>);
        impl Drop for ClearRunning {
            fn drop(&mut self) {
                self.0.running.store(false, Ordering::Release);
            }
        }
        let _clear_running = ClearRunning(theirs.clone());
        if let Ok(heartbeat) = Heartbeat::start(store.lease().clone()) {
            run_persister(&theirs, &disk, store, unrestored, &heartbeat);
            heartbeat.stop();
        }
    };
    rnet_shm::os::thread::spawn("rnet-persister", body)
        .inspect_err(|_| ours.running.store(false, Ordering::Release))
}

/// Persists until it must stop. On return the store is closed, and the next process that needs it takes it.
fn run_persister(
    flags: &PersisterFlags,
    disk: &PersisterHandle,
    mut store: Store,
    mut unrestored: Unrestored,
    heartbeat: &Heartbeat,
) {
    heartbeat.work(true);
    // Requests are read before the committed values: each change is then in at least one of both, including
    // one that an earlier persister decides meanwhile.
    let requests = disk.take_requests();
    let now = || disk.clock().boot_ns();
    let mut ends = ExpiryIndex::default();
    let done = reconcile(disk, &mut store, &requests, &unrestored, &mut ends);
    let mut go_on = report_outcome(disk, &store, &requests, done);
    retry_restore(disk, &store, &mut unrestored.waiting);
    heartbeat.work(false);
    while go_on && !flags.is_stopping() {
        // Read before the check, so that later changes end the sleep.
        let bell = disk.bell();
        let requests = disk.take_requests();
        if !requests.is_empty() || ends.is_due(now()) {
            heartbeat.work(true);
            let over = ends.expired(now());
            // A value that the region holds without the disk, because the disk was full, stays.
            let stays: Vec<_> = over.iter().map(|key| disk.durable_at(key)).collect();
            let mut all: Vec<_> = (over.iter().zip(&stays))
                .map(|(key, record)| Change { key, saved: record.as_ref().map(saved) })
                .collect();
            // After them, because a key may be set again.
            all.extend(changes(&requests));
            let noted = now();
            let done = store.commit(&all, disk.revision());
            ends.on_written(&all, noted);
            go_on = report_outcome(disk, &store, &requests, done);
            retry_restore(disk, &store, &mut unrestored.waiting);
            heartbeat.work(false);
            disk.wait_for_batch(requests.len());
        } else if !flags.is_stopping() {
            disk.wait_for_requests(bell, MAX_SLEEP.min(ends.sleep_limit(now())));
        }
        go_on &= store.lease().beat();
    }
    if go_on && !ends.is_empty() {
        // The current time: otherwise keys would get additional lifetime after a reboot.
        heartbeat.work(true);
        let _ = store.commit(&[], disk.revision());
        heartbeat.work(false);
    }
}

/// Reports the result to the writers; returns whether the persister may continue.
fn report_outcome(
    disk: &PersisterHandle,
    store: &Store,
    requests: &[PersistRequest],
    done: std::result::Result<Commit, Failure>,
) -> bool {
    match done {
        Ok(Commit::Done) => {
            // A transaction that another persister has refused meanwhile is on disk but not in memory. The
            // next persister resolves this, so one must take the store.
            requests.iter().fold(true, |all, ask| disk.decide(ask, Ok(())) & all)
        }
        // The process that took over has all requests and decides them.
        Ok(Commit::Lost) => false,
        Err(failure) => {
            if store.lease().beat() {
                let reason = u64::from(failure.errno.unsigned_abs());
                for ask in requests {
                    disk.decide(ask, Err(reason));
                }
            }
            false
        }
    }
}

/// Retries the keys that a transaction blocked: it was decided by now, or will be.
fn retry_restore(disk: &PersisterHandle, store: &Store, unrestored: &mut Vec<String>) {
    if unrestored.is_empty() {
        return;
    }
    let mut still = Vec::new();
    let loaded = store.load(&mut |saved| {
        let wanted = unrestored.iter().any(|key| key == saved.key);
        if wanted
            && !matches!(restore(disk, &saved), Ok(RestoreOutcome::Done | RestoreOutcome::Occupied))
        {
            still.push(saved.key.to_owned());
        }
    });
    // A key that is no longer on disk was deleted since.
    if loaded.is_ok() {
        *unrestored = still;
    }
}

fn changes(requests: &[PersistRequest]) -> Vec<Change<'_>> {
    requests.iter().flat_map(|ask| &ask.changes).map(|c| change(&c.record, c.keep)).collect()
}

fn change(record: &Record, keep: bool) -> Change<'_> {
    Change { key: record.key(), saved: keep.then(|| saved(record)) }
}

fn saved(record: &Record) -> Saved<'_> {
    Saved {
        key: record.key(),
        kind: record.kind,
        type_id: record.type_id,
        version: record.version,
        // The revision of a pending change is not known yet.
        revision: record.revision,
        written_unix_ns: record.written_unix_ns,
        expires_boot_ns: record.expires_boot_ns,
        writer: record.writer(),
        value: record.value(),
        will: record.will(),
    }
}

/// Distinguishes two values of a key, without the revision, which the disk may not know.
fn fingerprint(saved: &Saved<'_>) -> u64 {
    let mut bytes = Vec::with_capacity(saved.value.len() + 64);
    Saved { revision: 0, ..*saved }.encode(&mut bytes);
    fnv1a_64(&bytes)
}

/// Makes the disk equal to the region plus the pending requests: a store was set aside, a commit of an
/// earlier persister is in doubt, or wills and expiry times were due when it was loaded.
fn reconcile(
    disk: &PersisterHandle,
    store: &mut Store,
    requests: &[PersistRequest],
    unrestored: &Unrestored,
    ends: &mut ExpiryIndex,
) -> std::result::Result<Commit, Failure> {
    let mut on_disk = HashMap::new();
    store.load(&mut |saved| {
        ends.set(saved.key, saved.expires_boot_ns);
        on_disk.insert(saved.key.to_owned(), fingerprint(&saved));
    })?;
    let mut differ = Vec::new();
    let walked = disk.durable(&mut |record| {
        if on_disk.remove(record.key()) != Some(fingerprint(&saved(record))) {
            differ.push(record.clone());
        }
    });
    // Keys that could not be restored yet are kept.
    on_disk
        .retain(|key, _| !unrestored.waiting.contains(key) && !unrestored.occupied.contains(key));
    // If the region cannot be read, the disk must not lose keys.
    if walked.is_err() {
        on_disk.clear();
    }
    let mut all: Vec<_> = differ.iter().map(|record| change(record, true)).collect();
    all.extend(on_disk.keys().map(|key| Change { key, saved: None }));
    // After them, because requests are newer.
    all.extend(changes(requests));
    if all.is_empty() && ends.is_empty() {
        return Ok(Commit::Done);
    }
    let noted = disk.clock().boot_ns();
    let done = store.commit(&all, disk.revision());
    ends.on_written(&all, noted);
    done
}

/// Shows that the process is alive while it has work.
#[derive(Debug)]
struct Heartbeat {
    shared: Arc<HeartbeatState>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct HeartbeatState {
    has_work: AtomicBool,
    asleep: AtomicBool,
    stopping: AtomicBool,
}

impl Heartbeat {
    fn start(lease: Arc<Lease>) -> Result<Heartbeat, Error> {
        let shared = Arc::new(HeartbeatState::default());
        let working = shared.clone();
        let thread = rnet_shm::os::thread::spawn("rnet-heartbeat", move || {
            heartbeat_loop(&working, &lease)
        })?;
        Ok(Heartbeat { shared, thread })
    }

    fn work(&self, works: bool) {
        self.shared.has_work.store(works, Ordering::SeqCst);
        if works && self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.thread().unpark();
        }
    }

    fn stop(self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

fn heartbeat_loop(working: &HeartbeatState, lease: &Lease) {
    let mut idle = 0;
    while !working.stopping.load(Ordering::SeqCst) {
        if working.has_work.load(Ordering::SeqCst) {
            idle = 0;
            // The other thread checks whether the lease is still valid.
            lease.beat();
        } else {
            idle += 1;
        }
        if idle <= IDLE_BEATS {
            std::thread::park_timeout(HEARTBEAT_INTERVAL);
            continue;
        }
        working.asleep.store(true, Ordering::SeqCst);
        // Either this thread sees the work, or the thread that adds it sees that this one sleeps.
        if !working.has_work.load(Ordering::SeqCst) && !working.stopping.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_secs(3600));
        }
        working.asleep.store(false, Ordering::SeqCst);
    }
}
