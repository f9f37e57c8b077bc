//! The persister's thread: takes what waits in the region, writes it at once, tells each how it ended.
//!
//! It starts in the process whose durable write found no persister, with the store in its hands, and
//! ends with its node, when the disk fails, or when another took over because it stood still. A
//! second thread shows that the process moves while a slow disk holds up the first: a persister that
//! waits for its disk is not one that is stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rnet_core::{Error, Result, fnv1a_64};
use rnet_shm::domain::heartbeat::{HEARTBEAT_INTERVAL, Lease};
use rnet_shm::os::bell::MAX_SLEEP;
use rnet_shm::state::{PersistRequest, PersisterHandle, Record, RestoreOutcome};

use super::expiry_index::ExpiryIndex;
use super::record::{Change, Saved};
use super::restore::restore;
use super::store::{Commit, Failure, Store};

/// For how many beats the second thread stays awake without work, so that a busy persister need not
/// wake it each time.
const IDLE_BEATS: u32 = 10;

/// What the persister's threads share with their node.
#[derive(Debug, Default)]
pub(super) struct PersisterFlags {
    /// The persister's thread of this node runs.
    running: AtomicBool,
    /// It is to end.
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

/// Keys of which the region has not got what is on disk. The disk does not forget them for that.
#[derive(Debug, Default)]
pub(super) struct Unrestored {
    /// A transaction stood in the way: tried again.
    pub waiting: Vec<String>,
    /// Something else stood there already.
    pub occupied: Vec<String>,
}

/// Starts the thread. The store is its own from here on.
pub(super) fn start(
    flags: &Arc<PersisterFlags>,
    disk: PersisterHandle,
    store: Store,
    unrestored: Unrestored,
) -> Result<JoinHandle<()>> {
    flags.running.store(true, Ordering::Release);
    let (ours, theirs) = (flags.clone(), flags.clone());
    let body = move || {
        /// Also behind a panic, so that another thread can take over.
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

/// Keeps until there is a reason not to. On return the store is closed, and whoever asks next takes
/// it.
fn run_persister(
    flags: &PersisterFlags,
    disk: &PersisterHandle,
    mut store: Store,
    mut unrestored: Unrestored,
    heartbeat: &Heartbeat,
) {
    heartbeat.work(true);
    // What waits is looked at before what holds: so each change is seen in one of both, also one
    // that a persister before us decides while we look.
    let requests = disk.take_requests();
    let now = || disk.clock().boot_ns();
    let mut ends = ExpiryIndex::default();
    let done = reconcile(disk, &mut store, &requests, &unrestored, &mut ends);
    let mut go_on = report_outcome(disk, &store, &requests, done);
    retry_restore(disk, &store, &mut unrestored.waiting);
    heartbeat.work(false);
    while go_on && !flags.is_stopping() {
        // Read before the look, so that what comes behind it ends the sleep.
        let bell = disk.bell();
        let requests = disk.take_requests();
        if !requests.is_empty() || ends.is_due(now()) {
            heartbeat.work(true);
            let over = ends.expired(now());
            // One that the region holds without the disk, because that was full, stays.
            let stays: Vec<_> = over.iter().map(|key| disk.durable_at(key)).collect();
            let mut all: Vec<_> = (over.iter().zip(&stays))
                .map(|(key, record)| Change { key, saved: record.as_ref().map(saved) })
                .collect();
            // Behind them: a key may be set anew.
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
        // What time it is: the keys have no more left of theirs than now.
        heartbeat.work(true);
        let _ = store.commit(&[], disk.revision());
        heartbeat.work(false);
    }
}

/// Tells the writers how it ended; whether the persister may go on.
fn report_outcome(
    disk: &PersisterHandle,
    store: &Store,
    requests: &[PersistRequest],
    done: std::result::Result<Commit, Failure>,
) -> bool {
    match done {
        Ok(Commit::Done) => {
            // One that another persister has refused meanwhile is on our disk and not in memory: who
            // takes the store next finds that, so somebody must take it.
            requests.iter().fold(true, |all, ask| disk.decide(ask, Ok(())) & all)
        }
        // The one who took over has them all, and knows.
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

/// Tries again to restore what a transaction stood in the way of: it was decided, or will be.
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
    // What is not on disk any more was deleted since.
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
        // Of one that waits it is not known yet.
        revision: record.revision,
        written_unix_ns: record.written_unix_ns,
        expires_boot_ns: record.expires_boot_ns,
        writer: record.writer(),
        value: record.value(),
        will: record.will(),
    }
}

/// What tells two states of a key apart; not its revision, which the disk may not know.
fn fingerprint(saved: &Saved<'_>) -> u64 {
    let mut bytes = Vec::with_capacity(saved.value.len() + 64);
    Saved { revision: 0, ..*saved }.encode(&mut bytes);
    fnv1a_64(&bytes)
}

/// Makes the disk hold what the region holds, and what waits there: a store was set aside, a commit
/// of a persister before us is in doubt, wills and times were over when it was loaded.
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
    // What could not be restored yet is not gone for that.
    on_disk
        .retain(|key, _| !unrestored.waiting.contains(key) && !unrestored.occupied.contains(key));
    // A region that cannot be read is no reason to forget what is on disk.
    if walked.is_err() {
        on_disk.clear();
    }
    let mut all: Vec<_> = differ.iter().map(|record| change(record, true)).collect();
    all.extend(on_disk.keys().map(|key| Change { key, saved: None }));
    // Behind them, because it is newer.
    all.extend(changes(requests));
    if all.is_empty() && ends.is_empty() {
        return Ok(Commit::Done);
    }
    let noted = disk.clock().boot_ns();
    let done = store.commit(&all, disk.revision());
    ends.on_written(&all, noted);
    done
}

/// Shows that the process moves, as long as there is work.
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
            // Whether the lease is still ours is for the other thread to see.
            lease.beat();
        } else {
            idle += 1;
        }
        if idle <= IDLE_BEATS {
            std::thread::park_timeout(HEARTBEAT_INTERVAL);
            continue;
        }
        working.asleep.store(true, Ordering::SeqCst);
        // Either we see the work here, or its beginner sees that we sleep.
        if !working.has_work.load(Ordering::SeqCst) && !working.stopping.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_secs(3600));
        }
        working.asleep.store(false, Ordering::SeqCst);
    }
}
