//! Being told of changes.
//!
//! A watch begins with a snapshot, tells what stands there, and then follows the journal of the region from the revision of the
//! snapshot on. What it tells of a key is bounded by what it remembers of it: the version that it told last, from which it counts
//! what it did not see. If the journal went on without it, it takes another snapshot and tells the differences, so that the
//! newest value of each key is always told, and a slow watcher costs nobody memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_shm::bell::{MAX_SLEEP, Woken};
use rnet_shm::fork::Own;
use rnet_shm::state::{Follower, Interrupter, Next, Record, Write};

use super::entry::Change;
use super::pace::{Pace, Place};
use super::prefix::Prefix;
use super::shared::StateShared;
use super::{State, WatchHandle};
use crate::core::NodeCore;

/// After how long the end of a key's time is told again, if that failed, in ns.
const RETRY_NS: u64 = 100_000_000;

fn lock(interrupter: &Mutex<Interrupter>) -> MutexGuard<'_, Interrupter> {
    interrupter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a watch remembers of a key.
#[derive(Clone, Copy, Debug)]
struct Seen {
    revision: u64,
    version: u64,
    expires_unix_ns: u64,
}

/// A watch without its node: what the state's thread holds.
pub(super) struct WatchCore {
    pub(super) shared: Arc<StateShared>,
    prefix: Prefix,
    follower: Own<Follower>,
    /// What is to be told before anything that follows; no more than one for each key.
    ahead: VecDeque<Ahead>,
    seen: BTreeMap<Box<str>, Seen>,
    /// When the time of which key is over.
    expiries: BTreeSet<(u64, Box<str>)>,
    record: Record,
    written_unix_ns: u64,
    stop: Arc<AtomicBool>,
    /// That of the present follower.
    interrupter: Arc<Mutex<Interrupter>>,
}

enum Ahead {
    /// Was taken out before, and is not told yet.
    Told(Box<Change>),
    Is {
        record: Box<Record>,
        initial: bool,
    },
    Gone {
        key: Box<str>,
        revision: u64,
        expired: bool,
    },
}

impl WatchCore {
    fn open(shared: &Arc<StateShared>, prefix: Prefix) -> Result<WatchCore> {
        let (revision, mut records) = shared.records(&prefix)?;
        records.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        let follower = Own::new(shared.follow(revision)?);
        let interrupter = Arc::new(Mutex::new(follower.interrupter()));
        let ahead = records
            .into_iter()
            .map(|record| Ahead::Is { record: Box::new(record), initial: true })
            .collect();
        Ok(WatchCore {
            shared: shared.clone(),
            prefix,
            follower,
            ahead,
            seen: BTreeMap::new(),
            expiries: BTreeSet::new(),
            record: Record::default(),
            written_unix_ns: 0,
            stop: Arc::default(),
            interrupter,
        })
    }

    pub(super) fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The next change, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Change>> {
        self.shared.check_birth()?;
        self.end_times();
        loop {
            match self.ahead.pop_front() {
                Some(Ahead::Told(change)) => return Ok(Some(*change)),
                Some(Ahead::Is { record, initial }) => {
                    return Ok(Some(self.tell(&record, initial)));
                }
                Some(Ahead::Gone { key, revision, expired }) => {
                    self.forget(&key);
                    let key = key.into();
                    let (entry, skipped, initial) = (None, 0, false);
                    return Ok(Some(Change { key, entry, expired, revision, skipped, initial }));
                }
                None => {}
            }
            let mut record = std::mem::take(&mut self.record);
            let next = self.follower.next(self.prefix.bytes(), &mut record);
            let told =
                (next == Next::Change && self.is_new(&record)).then(|| self.tell(&record, false));
            self.record = record;
            match (next, told) {
                (_, Some(change)) => return Ok(Some(change)),
                (Next::Change, None) => {}
                (Next::Nothing, None) => return Ok(None),
                (Next::Behind, None) => self.catch_up()?,
            }
        }
    }

    /// Takes back the change that [`WatchCore::next`] has returned last: it is the next one again.
    pub(super) fn put_back(&mut self, change: Change) {
        self.ahead.push_front(Ahead::Told(Box::new(change)));
    }

    fn is_new(&self, record: &Record) -> bool {
        let key = record.key();
        if !self.prefix.matches(key) {
            return false;
        }
        match self.seen.get(key) {
            Some(seen) => record.revision > seen.revision,
            // A key that came and went unseen is nothing to anybody.
            None => !record.deleted,
        }
    }

    fn tell(&mut self, record: &Record, initial: bool) -> Change {
        let key = record.key();
        self.written_unix_ns = record.written_unix_ns;
        let before = self.seen.get(key).map_or(0, |seen| seen.version);
        let skipped = match record.version.checked_sub(before) {
            _ if initial => 0,
            Some(writes) if writes > 0 => writes - 1,
            // It was deleted and made anew: what was before is not known, what was since is.
            _ => record.version.saturating_sub(1),
        };
        self.forget(key);
        if !record.deleted {
            let (revision, version) = (record.revision, record.version);
            let expires_unix_ns = record.expires_unix_ns;
            self.seen.insert(key.into(), Seen { revision, version, expires_unix_ns });
            if expires_unix_ns != 0 {
                self.expiries.insert((expires_unix_ns, key.into()));
            }
        }
        Change {
            key: key.to_owned(),
            entry: (!record.deleted).then(|| self.shared.entry_or_unreadable(record)),
            expired: record.deleted && record.expired,
            revision: record.revision,
            skipped,
            initial,
        }
    }

    fn forget(&mut self, key: &str) {
        if let Some((key, seen)) = self.seen.remove_entry(key) {
            self.expiries.remove(&(seen.expires_unix_ns, key));
        }
    }

    /// Compares what stands there with what was told: the journal went on without us.
    fn catch_up(&mut self) -> Result<()> {
        let (revision, mut records) = self.shared.records(&self.prefix)?;
        self.follower.go_on_from(revision);
        records.sort_unstable_by_key(|record| record.revision);
        let mut gone: BTreeMap<&str, Seen> = self.seen.iter().map(|(k, s)| (&**k, *s)).collect();
        let now = self.shared.now();
        let mut ahead = Vec::new();
        for record in records {
            let seen = gone.remove(record.key());
            if seen.is_none_or(|seen| seen.revision < record.revision) {
                ahead.push(Ahead::Is { record: Box::new(record), initial: false });
            }
        }
        let gone = gone.into_iter().map(|(key, seen)| {
            let expired = seen.expires_unix_ns != 0 && seen.expires_unix_ns <= now;
            Ahead::Gone { key: key.into(), revision, expired }
        });
        // Nobody can tell any more when they went; they are gone as of the snapshot, and so come last.
        let ahead: VecDeque<Ahead> = ahead.into_iter().chain(gone).collect();
        self.ahead = ahead;
        Ok(())
    }

    /// Deletes the keys whose time is over, so that everybody is told once, by the journal.
    fn end_times(&mut self) {
        if self.expiries.is_empty() {
            return;
        }
        let now = self.shared.now();
        while let Some((at, key)) = self.expiries.first().filter(|(at, _)| *at <= now).cloned() {
            self.expiries.remove(&(at, key.clone()));
            // It may have been written anew since it was to be tried again.
            let over = |seen: &&Seen| seen.expires_unix_ns != 0 && seen.expires_unix_ns <= now;
            let Some(seen) = self.seen.get(&key).filter(over) else { continue };
            let expect = Some(seen.revision);
            let write = Write { key: &key, value: None, expect, durable: None };
            match self.shared.write_at(write) {
                // Somebody was faster: that comes by the journal.
                Ok(_) | Err(Error::Conflict { .. }) => {}
                Err(_) => {
                    // For want of memory, say; it is absent for readers all the same.
                    self.expiries.insert((now.saturating_add(RETRY_NS), key));
                }
            }
        }
    }

    /// How long a sleep may be, at the most.
    pub(super) fn sleep_limit(&self) -> Duration {
        let Some((at, _)) = self.expiries.first() else { return MAX_SLEEP };
        Duration::from_nanos(at.saturating_sub(self.shared.now())).min(MAX_SLEEP)
    }

    /// When what was told last was written, ns since 1970.
    pub(super) fn written_unix_ns(&self) -> u64 {
        self.written_unix_ns
    }
}

impl Place for WatchCore {
    fn poll(&mut self) -> bool {
        if self.stop.load(Ordering::Acquire) {
            return true;
        }
        match self.next() {
            Ok(None) => false,
            Ok(Some(change)) => {
                self.put_back(change);
                true
            }
            // It is met again, by who can tell it.
            Err(_) => true,
        }
    }
    fn sleep(&mut self, limit: Duration, precise: bool) -> Woken {
        let limit = limit.min(self.sleep_limit());
        let (follower, prefix) = (&mut self.follower, self.prefix.bytes());
        if precise { follower.doze(prefix, limit) } else { follower.wait(prefix, limit) }
    }
}

/// Tells changes of the keys under a prefix; made by [`State::watch`].
///
/// First come the present values ([`Change::initial`]), in the order of the keys, then every change in the order of its
/// revision. A watch that comes late gets the newest value and the number of those that it did not see
/// ([`Change::skipped`]); nothing queues up for it. A key whose time is over is told as deleted ([`Change::expired`]).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir();
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&format!("watch{}", std::process::id())).open()?;
/// # let state = node.state()?;
/// let mut watch = state.watch("/arm")?;
/// state.set("/arm/mode", "idle")?;
/// let change = watch.recv(None)?;
/// assert_eq!(change.entry.map(|entry| entry.value), Some("idle".into()));
/// # let path = node.domain_path().to_owned();
/// # drop((watch, state, node));
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
pub struct Watch {
    pub(super) watch: WatchCore,
    pub(super) core: Arc<NodeCore>,
    pub(super) interruptible: bool,
    pace: Pace,
}

impl Watch {
    pub(super) fn open(state: &State, prefix: Prefix) -> Result<Watch> {
        let watch = WatchCore::open(&state.shared, prefix)?;
        Ok(Watch::of(watch, state.core.clone()))
    }

    pub(super) fn of(watch: WatchCore, core: Arc<NodeCore>) -> Watch {
        Watch { watch, core, interruptible: false, pace: Pace::default() }
    }

    /// The next change, if there is one.
    pub fn try_recv(&mut self) -> Result<Option<Change>> {
        self.watch.next()
    }

    /// The next change; waits for it, for ever without a timeout. Changes that follow each other closely, or keep time, are waited
    /// for awake as far as that pays, as messages are.
    ///
    /// # Errors
    /// `Timeout`; `Interrupted` (see [`Watch::interrupter`], [`Watch::set_interruptible`]).
    pub fn recv(&mut self, timeout: Option<Duration>) -> Result<Change> {
        // A time that no clock reaches is none.
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(change) = self.watch.next()? {
                self.pace.came(self.watch.written_unix_ns(), change.skipped);
                return Ok(change);
            }
            if self.watch.stop.swap(false, Ordering::AcqRel) {
                return Err(Error::Interrupted);
            }
            let mut left = MAX_SLEEP;
            if let Some(until) = until {
                left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Error::Timeout {
                        what: format!("no change under {}", self.watch.prefix.bytes()),
                        after_ms: rnet_core::ms_ceil(timeout.unwrap_or_default()),
                    });
                }
            }
            let left = left.min(self.watch.sleep_limit());
            if self.pace.wait(&mut self.watch, left) == Woken::Signal && self.interruptible {
                return Err(Error::Interrupted);
            }
        }
    }

    /// The changes, one after the other; waits for each. Ends when the watch does.
    pub fn iter(&mut self) -> Changes<'_> {
        Changes { watch: self }
    }

    /// Calls `callback` for each change, on the node's thread for state, until the returned [`WatchHandle`] is dropped.
    ///
    /// The callbacks of a node share that thread: one that takes long delays the others, and skips what was overwritten meanwhile.
    /// A callback that panics is not called again.
    pub fn on(self, mut callback: impl FnMut(Change) + Send + 'static) -> WatchHandle {
        self.on_result(move |result| {
            if let Ok(change) = result {
                callback(change);
            }
        })
    }

    /// As [`Watch::on`], but also called with each error.
    pub fn on_result(self, callback: impl FnMut(Result<Change>) + Send + 'static) -> WatchHandle {
        WatchHandle::start(self, callback)
    }

    /// Whether a signal ends a wait with `Interrupted`; not, unless asked for.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.interruptible = yes;
    }

    /// A handle with which other threads can end this watch's waits.
    pub fn interrupter(&self) -> WatchInterrupter {
        WatchInterrupter {
            stop: self.watch.stop.clone(),
            inner: self.watch.interrupter.clone(),
            birth: self.watch.shared.birth(),
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("prefix", &self.watch.prefix.bytes()).finish()
    }
}

/// The changes of a [`Watch`]; made by [`Watch::iter`].
#[derive(Debug)]
pub struct Changes<'a> {
    watch: &'a mut Watch,
}

impl Iterator for Changes<'_> {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        match self.watch.recv(None) {
            Err(Error::Closed { .. }) => None,
            other => Some(other),
        }
    }
}

/// Ends the waits of one [`Watch`] from any thread; made by [`Watch::interrupter`].
#[derive(Clone)]
pub struct WatchInterrupter {
    stop: Arc<AtomicBool>,
    inner: Arc<Mutex<Interrupter>>,
    birth: rnet_shm::fork::Birth,
}

impl WatchInterrupter {
    /// Has the wait that goes on end with `Interrupted`, or the next one if none does. A wait that finds a change at that moment
    /// returns it.
    pub fn interrupt(&self) {
        if !self.birth.is_parents() {
            self.stop.store(true, Ordering::Release);
            lock(&self.inner).interrupt();
        }
    }
}

impl std::fmt::Debug for WatchInterrupter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchInterrupter").finish_non_exhaustive()
    }
}
