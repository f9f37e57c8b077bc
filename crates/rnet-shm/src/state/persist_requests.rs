//! Writing transactions to disk before they commit: requests to the persister, and the persister's side.
//!
//! A transaction with durable keys waits in its slots, undecided; readers see the previous values. Its writer
//! queues it for the persister and sleeps. The persister takes all queued transactions, writes them to disk
//! together, and decides each. See docs/design/durable-state.md.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::block_words::{ABORTED, BlockRef, COMMITTED, PERSISTING, WRITING};
use rnet_ring::state::layout::{LOADED_AT, PERSISTER_AT};
use rnet_ring::state::leaf::{DELETED, DURABLE, GUARD, LOADED};
use rnet_ring::state::{self as ring, CommitError, LeafContent, LeafMeta};
use rustix::thread::futex;

use super::{Clock, Inner, Record, Region, blocking_hooks};

/// Word of the persister's line: its bell, rung for each request.
const PERSISTER_BELL: usize = PERSISTER_AT;
/// Word of the persister's line: the writers' bell, rung after each decision.
const DECIDED_BELL: usize = PERSISTER_AT + 1;
/// Word of the persister's line: the lease, which identifies the persister and shows that it is not stopped.
const LEASE: usize = PERSISTER_AT + 2;

/// Interval at which a waiting writer checks that a persister exists.
const PERSISTER_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a writer spins for the persister, and the persister for the next writer.
const SPIN_LIMIT: Duration = Duration::from_micros(300);
/// How long the persister waits for the writers that it has just answered, so that they are batched again.
const BATCH_DELAY: Duration = Duration::from_micros(60);
/// How long a persister's lease may stay unchanged before it counts as stopped.
const LEASE_STALL_LIMIT: Duration = Duration::from_millis(700);
/// How long a writer waits for a persister that does not take its request.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

/// What waiting writers need from the persister's owner.
pub trait PersisterControl: Send + Sync {
    /// Ensures that a persister exists; called repeatedly.
    ///
    /// # Errors
    /// The error of the disk, if a persister neither exists nor can be started.
    fn ensure_persister(&self) -> Result<(), Error>;

    /// Checks whether this node may write durable keys.
    ///
    /// # Errors
    /// The node was configured with another folder than the domain's.
    fn check_allowed(&self) -> Result<(), Error>;

    /// The error for a reason that was passed to [`PersisterHandle::decide`].
    fn refusal_error(&self, reason: u64) -> Error;
}

/// The persister's side of a region. It may outlive the [`Region`], whose last wills it also writes.
#[derive(Clone)]
pub struct PersisterHandle {
    pub(super) inner: Arc<Inner>,
}

/// A value loaded from disk.
#[derive(Clone, Copy, Debug)]
pub struct DiskValue<'a> {
    /// The key.
    pub key: &'a str,
    /// See [`Record::kind`].
    pub kind: u16,
    /// See [`Record::type_id`].
    pub type_id: u64,
    /// See [`Record::version`].
    pub version: u64,
    /// When it was written, ns since 1970.
    pub written_unix_ns: u64,
    /// Expiry time in ns of CLOCK_BOOTTIME; 0: never.
    pub expires_boot_ns: u64,
    /// Name of the node that wrote it.
    pub writer: &'a str,
    /// The value.
    pub bytes: &'a [u8],
}

/// A transaction that waits for the persister.
#[derive(Clone, Debug)]
pub struct PersistRequest {
    word: BlockRef,
    /// Its changes.
    pub changes: Vec<DurableChange>,
}

/// The result of [`PersisterHandle::restore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The region contains the value, or the key is invalid.
    Done,
    /// The region contains another value. If that value is not durable, the disk keeps its own.
    Occupied,
    /// An undecided transaction on the key blocks it.
    Pending,
}

/// A change of a durable key.
#[derive(Clone, Debug)]
pub struct DurableChange {
    /// The key, its value and metadata.
    pub record: Record,
    /// Whether the disk must store the key; otherwise it must remove it.
    pub keep: bool,
}

impl Region {
    /// Sets the control that starts a persister; without it, a durable write waits in vain for one. The
    /// control may hold a [`PersisterHandle`]: it is dropped with the region, after the last wills.
    pub fn set_persister_control(&self, control: Arc<dyn PersisterControl>) {
        *self.inner.persister_control.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(control);
    }

    /// Returns the persister's side.
    pub fn persister_handle(&self) -> PersisterHandle {
        PersisterHandle { inner: self.inner.clone() }
    }
}

impl PersisterHandle {
    /// A number below 2^62 that identifies the region among those in use on this machine.
    pub fn region(&self) -> u64 {
        // Device and inode together identify an open file.
        let id = rustix::fs::fstat(&self.inner.file.fd).map_or(0, |stat| {
            rnet_core::fnv1a_64(format!("{} {}", stat.st_dev, stat.st_ino).as_bytes())
        });
        id >> 2
    }

    /// A word that tells whether the disk's content is loaded: 0 not tried yet, 1 loaded, 2 the disk was
    /// unusable.
    pub fn loaded(&self) -> &AtomicU64 {
        self.inner.ring().header(LOADED_AT)
    }

    /// The lease word of the persister, 0 in a new region. Its users define its meaning.
    pub fn lease(&self) -> &AtomicU64 {
        self.inner.ring().header(LEASE)
    }

    /// Revision of the newest change in the domain.
    pub fn revision(&self) -> u64 {
        self.inner.checked_ring().ok().and_then(|ring| ring.newest().ok()).unwrap_or_default()
    }

    /// The region's clocks.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Visits each committed durable value, including those of internal keys.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn durable(&self, see: &mut dyn FnMut(&Record)) -> Result<(), Error> {
        let ring = self.inner.checked_ring()?;
        let now = self.inner.clock.boot_ns();
        let mut shown = Record::default();
        let walked = ring.each_durable(self.inner.process_slot, &mut |record| {
            let ends = record.meta.expires_boot_ns;
            if ends == 0 || ends > now {
                shown.raw.clone_from(record);
                shown.load_meta();
                see(&shown);
            }
        });
        walked.map_err(|_| self.inner.corrupt("a list walk does not finish"))
    }

    /// The durable value of a key in the region; `None` if absent.
    pub fn durable_at(&self, key: &str) -> Option<Record> {
        let inner = &*self.inner;
        let (ring, ring_key) = (inner.checked_ring().ok()?, inner.key(key).ok()?);
        let mut record = Record::default();
        let now = || inner.clock.boot_ns();
        let found = ring.get(inner.process_slot, &ring_key, &now, &mut record.raw);
        record.load_meta();
        (found == Ok(true) && record.durable).then_some(record)
    }

    /// Restores a value from disk if the key is absent. It is not written to disk again.
    ///
    /// # Errors
    /// Errors of [`Region::commit`] for one key.
    pub fn restore(&self, value: &DiskValue<'_>) -> Result<RestoreOutcome, Error> {
        let inner = &*self.inner;
        // Invalid key: the store was modified by another program. It is skipped, and the others are loaded.
        let Ok(key) = inner.key(value.key) else { return Ok(RestoreOutcome::Done) };
        let meta = LeafMeta {
            kind: value.kind,
            type_id: value.type_id,
            version: value.version,
            written_unix_ns: value.written_unix_ns,
            expires_boot_ns: value.expires_boot_ns,
            flags: LOADED,
            ..LeafMeta::default()
        };
        let content =
            LeafContent { writer: value.writer.as_bytes(), value: value.bytes, will: None, meta };
        let write = ring::Write { key: &key, content, expect: Some(0), durable: Some(true) };
        let now = inner.clock.boot_ns();
        loop {
            match inner.attempt_one(&write, now, &mut |_, _| Ok(())) {
                Ok(_) => return Ok(RestoreOutcome::Done),
                Err(CommitError::Conflict { .. }) => return Ok(RestoreOutcome::Occupied),
                Err(CommitError::Retry) => std::thread::yield_now(),
                Err(CommitError::Wait(_)) => return Ok(RestoreOutcome::Pending),
                Err(CommitError::Check(error)) => return Err(error),
                Err(CommitError::OutOfMemory(_)) => return Err(inner.full_error(value.bytes.len())),
                Err(CommitError::RetriesExhausted) => {
                    return Err(inner.corrupt("a write does not finish"));
                }
            }
        }
    }

    /// For the persister: takes all waiting transactions. From here on their writers do not withdraw them.
    /// Returns them again until [`PersisterHandle::decide`].
    pub fn take_requests(&self) -> Vec<PersistRequest> {
        let Ok(ring) = self.inner.checked_ring() else { return Vec::new() };
        let mut requests = Vec::new();
        for place in 0..ring.geometry().persist_requests {
            let word = BlockRef(ring.persist_request(place).load(Ordering::SeqCst));
            if word.is_none() {
                continue;
            }
            ring.decide(word, PERSISTING, WRITING);
            fail_point!("state.writing");
            let state = ring.status(word).map(|status| status.state());
            if state == Some(WRITING)
                && let Some(changes) = self.changes(word)
            {
                requests.push(PersistRequest { word, changes });
            } else {
                // Already decided by a persister that was killed before it cleared the slot.
                let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
                let _ = ring.persist_request(place).compare_exchange(word.0, 0, ok, miss);
            }
        }
        requests
    }

    fn changes(&self, txn: BlockRef) -> Option<Vec<DurableChange>> {
        let ring = self.inner.ring();
        let mut changes = Vec::new();
        for (leaf, before) in ring.pairs(txn)? {
            // A guarded key that was only read is unchanged.
            if ring.meta_of(leaf)?.has(GUARD) {
                continue;
            }
            let mut record = Record::default();
            ring.copy_leaf(leaf, &mut record.raw)?;
            record.load_meta();
            // The revision is unknown until the transaction is decided.
            record.revision = 0;
            let keep = record.raw.meta.has(DURABLE) && !record.raw.meta.has(DELETED);
            let was = ring.meta_of(before).is_some_and(|meta| meta.has(DURABLE));
            if keep || was {
                changes.push(DurableChange { record, keep });
            }
        }
        Some(changes)
    }

    /// For the persister: decides a transaction. `Ok` means that it is on disk; an error means that it never
    /// will be, for this reason ([`PersisterControl::refusal_error`] interprets it). Returns whether this
    /// outcome was recorded; another persister may have been faster.
    pub fn decide(&self, ask: &PersistRequest, done: Result<(), u64>) -> bool {
        let ring = self.inner.ring();
        if let Err(reason) = done {
            ring.set_reason(ask.word, reason);
        }
        let to = if done.is_ok() { COMMITTED } else { ABORTED };
        // If another node wrote it, its writer may have seen the outcome and reused the slot.
        let mine = ring.decide(ask.word, WRITING, to);
        let so = mine || ring.status(ask.word).is_some_and(|status| status.state() == to);
        self.inner.withdraw_request(ask.word);
        fail_point!("state.answered");
        self.inner.ring_bell(DECIDED_BELL);
        if mine && done.is_ok() {
            self.read_first_key(ask);
        }
        so
    }

    /// Reads a key of a committed transaction, which assigns its revision. So followers see the change even
    /// if its writer does not do this, because it is stopped or has timed out.
    fn read_first_key(&self, ask: &PersistRequest) {
        let Some(change) = ask.changes.first() else { return };
        let Ok(key) = self.inner.key(change.record.key()) else { return };
        let now = || self.inner.clock.boot_ns();
        let mut seen = ring::LeafBuffer::default();
        let _ = self.inner.ring().get(self.inner.process_slot, &key, &now, &mut seen);
    }

    /// The persister's bell: read it before checking for requests, then pass it to
    /// [`PersisterHandle::wait_for_requests`].
    pub fn bell(&self) -> u32 {
        self.inner.file.futex(PERSISTER_BELL).load(Ordering::Acquire)
    }

    /// For the persister: sleeps until a request arrives, unless one has since the bell read `before`, at
    /// most for `limit`.
    pub fn wait_for_requests(&self, before: u32, limit: Duration) {
        let bell = self.inner.file.futex(PERSISTER_BELL);
        if !spin_until(&|| bell.load(Ordering::Acquire) != before, SPIN_LIMIT) {
            wait(bell, before, limit);
        }
    }

    /// For the persister, after a commit: waits briefly until as many requests arrive as it has just
    /// answered.
    pub fn wait_for_batch(&self, answered: usize) {
        let ring = self.inner.ring();
        let asks = ring.geometry().persist_requests;
        let waiting =
            || (0..asks).filter(|a| ring.persist_request(*a).load(Ordering::Relaxed) != 0).count();
        let already = waiting();
        if answered > 1 || already > 0 {
            spin_until(&|| waiting() >= answered + already, BATCH_DELAY);
        }
    }

    /// Ends [`PersisterHandle::wait_for_requests`].
    pub fn wake_persister(&self) {
        self.inner.ring_bell(PERSISTER_BELL);
    }
}

/// Spins until `so` returns true, at most for `limit`.
fn spin_until(so: &dyn Fn() -> bool, limit: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        for _ in 0..32 {
            if so() {
                return true;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
    false
}

fn wait(bell: &std::sync::atomic::AtomicU32, before: u32, limit: Duration) {
    let limit = rustix::time::Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let _ = futex::wait(bell, futex::Flags::empty(), before, Some(&limit));
}

impl Inner {
    fn ring_bell(&self, word: usize) {
        let bell = self.file.futex(word);
        bell.fetch_add(1, Ordering::Release);
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }

    fn persister_control(&self) -> Option<Arc<dyn PersisterControl>> {
        self.persister_control.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the persister control, and with it the reference cycle through its [`PersisterHandle`].
    pub(super) fn drop_persister_control(&self) {
        self.finish_abandoned();
        let kept = self.persister_control.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(kept);
    }

    fn ensure_persister(&self) -> Result<(), Error> {
        let control = self.persister_control();
        control.map_or(Ok(()), |control| control.ensure_persister())
    }

    /// Has the persister write one of our transactions to disk; returns its revision once it is there.
    pub(super) fn persist(&self, txn: BlockRef) -> Result<u64, Error> {
        blocking_hooks::run_blocking(|| self.persist_now(txn))
    }

    fn persist_now(&self, txn: BlockRef) -> Result<u64, Error> {
        let ring = self.ring();
        self.finish_abandoned();
        fail_point!("state.asking");
        let allowed = self.persister_control().map_or(Ok(()), |control| control.check_allowed());
        let asked = allowed.and_then(|()| self.ask(txn));
        let waited = asked.and_then(|()| self.wait_until_decided(txn));
        if waited.is_err() && ring.decide(txn, PERSISTING, ABORTED) {
            self.withdraw_request(txn);
        } else {
            // It was decided, or is being written and will be decided.
            self.wait_until_decided(txn).inspect_err(|_| self.abandoned().push(txn))?;
        }
        let concluded = ring.conclude(&mut self.local(), self, txn);
        match concluded {
            Ok(Ok(revision)) => Ok(revision),
            Ok(Err(reason)) => Err(waited.err().unwrap_or_else(|| self.refusal_error(reason))),
            Err(_) => Err(self.corrupt("a transaction does not finish")),
        }
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<BlockRef>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a transaction of this node is still being written to disk.
    pub(super) fn has_abandoned(&self) -> bool {
        !self.abandoned().is_empty()
    }

    /// Completes our transactions that were decided after their writers timed out.
    fn finish_abandoned(&self) {
        let mut abandoned = self.abandoned();
        if abandoned.is_empty() {
            return;
        }
        let ring = self.ring();
        abandoned.retain(|txn| {
            let state = ring.status(*txn).map(|status| status.state());
            let decided = matches!(state, Some(COMMITTED | ABORTED));
            if decided {
                let _ = ring.conclude(&mut self.local(), self, *txn);
            }
            !decided && state.is_some()
        });
    }

    /// The error for the persister's refusal.
    fn refusal_error(&self, reason: u64) -> Error {
        self.persister_control().map_or_else(
            || Error::Storage { path: "state".into(), why: "the persister refused it".to_owned() },
            |control| control.refusal_error(reason),
        )
    }

    fn ask(&self, txn: BlockRef) -> Result<(), Error> {
        let ring = self.ring();
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        let begun = Instant::now();
        while begun.elapsed() < WAIT_LIMIT {
            let placed = (0..ring.geometry().persist_requests)
                .any(|ask| ring.persist_request(ask).compare_exchange(0, txn.0, ok, miss).is_ok());
            if placed {
                fail_point!("state.asked");
                self.ring_bell(PERSISTER_BELL);
                return Ok(());
            }
            if !blocking_hooks::should_continue() {
                return Err(Error::Interrupted);
            }
            // A persister is started once the queue has space for the request.
            let _ = self.ensure_persister();
            let bell = self.file.futex(DECIDED_BELL);
            wait(bell, bell.load(Ordering::Acquire), PERSISTER_CHECK_INTERVAL);
        }
        Err(timeout_error())
    }

    fn withdraw_request(&self, txn: BlockRef) {
        let ring = self.ring();
        for ask in 0..ring.geometry().persist_requests {
            let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
            let _ = ring.persist_request(ask).compare_exchange(txn.0, 0, ok, miss);
        }
    }

    /// Waits until a transaction of any node is decided.
    fn wait_until_decided(&self, txn: BlockRef) -> Result<(), Error> {
        let ring = self.ring();
        let bell = self.file.futex(DECIDED_BELL);
        let begun = Instant::now();
        let mut alone: Option<(u64, Instant)> = None;
        loop {
            let before = bell.load(Ordering::Acquire);
            let state = ring.status(txn).map(|status| status.state());
            if !matches!(state, Some(PERSISTING | WRITING)) {
                return Ok(());
            }
            if begun.elapsed() >= WAIT_LIMIT {
                return Err(timeout_error());
            }
            if !blocking_hooks::should_continue() {
                return Err(Error::Interrupted);
            }
            // Also before the first sleep: a persister may not exist.
            match self.ensure_persister() {
                Ok(()) => alone = None,
                // This process cannot be the persister. Another process may be; then its lease changes.
                Err(error) => {
                    let lease = ring.header(LEASE).load(Ordering::SeqCst);
                    let since = match alone {
                        Some((seen, since)) if seen == lease => since,
                        _ => Instant::now(),
                    };
                    alone = Some((lease, since));
                    let persister_missing = lease == 0 || since.elapsed() >= LEASE_STALL_LIMIT;
                    if persister_missing && state == Some(PERSISTING) {
                        return Err(error);
                    }
                }
            }
            if spin_until(&|| bell.load(Ordering::Acquire) != before, self.spin_limit()) {
                continue;
            }
            wait(bell, before, PERSISTER_CHECK_INTERVAL);
        }
    }

    /// How long a writer spins: a disk takes little longer than waking an idle core twice. Several waiting
    /// writers do not spin, because they would slow down the persister.
    fn spin_limit(&self) -> Duration {
        let ring = self.ring();
        let asks = ring.geometry().persist_requests;
        let waiting =
            (0..asks).filter(|a| ring.persist_request(*a).load(Ordering::Relaxed) != 0).take(2);
        if waiting.count() < 2 { SPIN_LIMIT } else { Duration::ZERO }
    }

    /// Waits for a transaction that blocks a write.
    pub(super) fn wait_for(&self, txn: BlockRef) -> Result<(), Error> {
        blocking_hooks::run_blocking(|| {
            self.request_for_writer(txn);
            self.wait_until_decided(txn)
        })
    }

    /// Queues a transaction whose writer has not done so: it may have been stopped just before. Duplicate
    /// requests are harmless.
    fn request_for_writer(&self, txn: BlockRef) {
        let ring = self.ring();
        let asks = || (0..ring.geometry().persist_requests).map(|ask| ring.persist_request(ask));
        let waits = ring.status(txn).is_some_and(|status| status.state() == PERSISTING);
        if !waits || asks().any(|ask| ask.load(Ordering::SeqCst) == txn.0) {
            return;
        }
        let (ok, miss) = (Ordering::SeqCst, Ordering::Relaxed);
        if asks().any(|ask| ask.compare_exchange(0, txn.0, ok, miss).is_ok()) {
            self.ring_bell(PERSISTER_BELL);
        }
    }
}

fn timeout_error() -> Error {
    let what = "the persister of durable state to write to disk; a write that has started may still complete";
    Error::timeout("", what, WAIT_LIMIT)
}
