//! Watches: notification of changes.
//!
//! A watch starts with a snapshot, reports the current values, and then follows the journal of the region
//! from the revision of the snapshot on. For each key it stores the version that it reported last, from which
//! it counts missed values. If the watch falls behind the journal, it takes another snapshot and reports the
//! differences. The newest value of each key is therefore always reported, and a slow watch takes no memory
//! of other processes.
//!
//! While the watch keeps up with the journal, it sees every deletion, so the count is exact. Of a missed part
//! of the journal, it knows only that the number of changes did not exceed the number of positions. A key
//! with more writes since its creation was therefore not created in that part, and its count is exact, too;
//! the count of other keys is reported as unknown.
//!
//! **Expiry.** Readers treat a key as absent at its expiry time, whether or not a process deletes it. The
//! watch then deletes it, so that all watches see the deletion in the journal, at one revision. If it cannot
//! delete it immediately (no memory, a transaction that waits for the disk), it reports the deletion to its
//! own user and remembers the expired key as gone.

mod changes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rnet_core::{Error, Lane, Result, Wait};
use rnet_shm::os::bell::{Bells, MAX_SLEEP, Waiter, WakeReason};
use rnet_shm::os::fork::ProcessOwned;
use rnet_shm::os::{clock, cpu};
use rnet_shm::state::{Follower, NextChange, Record};

use super::entry::Change;
use super::prefix::Prefix;
use super::shared::StateShared;
use super::state::State;
pub use changes::Changes;
use rnet_node::Interrupter;
use rnet_node::core::{NodeCore, NodeState};
use rnet_node::interrupt::WaitControl;
use rnet_node::options::deadline;
use rnet_node::typed::{TryReceive, Waitable};
use rnet_node::wait_loop::WaitStrategy;
use rnet_node::wait_set_member::WaitSetMember;
use rnet_node::wait_source::WaitSource;

/// Number of changes between two checks of expiry times; they are also checked when idle.
const CHANGES_PER_EXPIRY_CHECK: u64 = 32;

/// A change with a higher apparent latency, in ns, is timed by its arrival, because the clocks differ.
const MAX_LATENCY_NS: u64 = 1_000_000_000;

/// Stored state of a reported key.
#[derive(Clone, Copy, Debug)]
struct SeenKey {
    revision: u64,
    version: u64,
    expires_boot_ns: u64,
    /// It was reported as deleted, or never reported: it has expired and was not deleted yet.
    is_gone: bool,
}

impl SeenKey {
    fn of(record: &Record, is_gone: bool) -> SeenKey {
        let Record { revision, version, expires_boot_ns, .. } = *record;
        SeenKey { revision, version, expires_boot_ns, is_gone }
    }
}

fn is_expired(expires_boot_ns: u64, now: u64) -> bool {
    expires_boot_ns != 0 && expires_boot_ns <= now
}

/// A watch without its node, for use in a dispatch thread.
pub(super) struct WatchCore {
    pub(super) shared: Arc<StateShared>,
    pub(super) prefix: Prefix,
    follower: ProcessOwned<Follower>,
    /// Changes to report before any others; at most one per key.
    queue: VecDeque<QueuedChange>,
    seen: BTreeMap<Box<str>, SeenKey>,
    /// Expiry times of the keys.
    expiries: BTreeSet<(u64, Box<str>)>,
    /// Revision of the last snapshot.
    snapshot_revision: u64,
    /// The highest reported revision.
    last_revision: u64,
    record: Record,
    /// Write time of the last reported change, ns since 1970.
    written_unix_ns: u64,
    /// Number of reported changes, including skipped ones.
    change_count: u64,
    poll_count: u64,
    /// The bell of a thread that waits with the watch itself.
    bell: u64,
    /// The bell of the thread that waits now.
    waiting: Arc<WaitControl>,
    /// The lane of the dispatch thread for callbacks and tasks.
    pub(super) lane: Lane,
}

enum QueuedChange {
    /// Was returned before, and is reported again.
    PutBack(Box<Change>),
    Present {
        record: Box<Record>,
        initial: bool,
        skipped: Option<u64>,
    },
    Gone {
        key: Box<str>,
        revision: u64,
        expired: Option<bool>,
        skipped: Option<u64>,
        /// The expired value that still exists.
        remnant: Option<SeenKey>,
    },
}

impl WatchCore {
    fn open(shared: &Arc<StateShared>, prefix: Prefix) -> Result<WatchCore> {
        let (revision, mut records) = shared.records_with_expired(&prefix)?;
        let now = shared.now();
        records.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        let follower = ProcessOwned::new(shared.follow(revision)?);
        let mut seen = BTreeMap::new();
        let mut queue = VecDeque::new();
        for record in records {
            if is_expired(record.expires_boot_ns, now) {
                seen.insert(record.key().into(), SeenKey::of(&record, true));
            } else {
                let (record, initial, skipped) = (Box::new(record), true, Some(0));
                queue.push_back(QueuedChange::Present { record, initial, skipped });
            }
        }
        let bells = shared.own().bells();
        let bell = bells.allocate();
        Ok(WatchCore {
            shared: shared.clone(),
            prefix,
            follower,
            queue,
            seen,
            expiries: BTreeSet::new(),
            snapshot_revision: revision,
            last_revision: revision,
            record: Record::default(),
            written_unix_ns: 0,
            change_count: 0,
            poll_count: 0,
            bell,
            waiting: Arc::new(WaitControl::new(bells.clone(), bell, shared.fork_guard())),
            lane: Lane::Bulk,
        })
    }

    /// The next pending change, if any.
    pub(super) fn next(&mut self) -> Result<Option<Change>> {
        self.shared.check_fork()?;
        self.poll_count = self.poll_count.wrapping_add(1);
        if self.poll_count.is_multiple_of(CHANGES_PER_EXPIRY_CHECK) {
            self.expire_keys();
        }
        loop {
            match self.queue.pop_front() {
                Some(QueuedChange::PutBack(change)) => return Ok(Some(*change)),
                Some(QueuedChange::Present { record, initial, skipped }) => {
                    return Ok(Some(self.report(&record, initial, skipped)));
                }
                Some(QueuedChange::Gone { key, revision, expired, skipped, remnant }) => {
                    self.forget(&key);
                    let name = key.clone().into();
                    if let Some(remnant) = remnant {
                        self.seen.insert(key, remnant);
                    }
                    self.last_revision = self.last_revision.max(revision);
                    let (key, entry, revision, initial) = (name, None, self.last_revision, false);
                    return Ok(Some(Change { key, entry, expired, revision, skipped, initial }));
                }
                None => {}
            }
            let mut record = std::mem::take(&mut self.record);
            let next = self.follower.next(self.prefix.bytes(), &mut record);
            let is_new = next == NextChange::Change && self.is_new(&record);
            let change = is_new.then(|| {
                let skipped = self.skipped(&record);
                self.report(&record, false, skipped)
            });
            self.record = record;
            match (next, change) {
                (_, Some(change)) => return Ok(Some(change)),
                (NextChange::Change, None) => {}
                (NextChange::Nothing, None) if self.expire_keys() => {}
                (NextChange::Nothing, None) => return Ok(None),
                (NextChange::Overrun, None) => self.catch_up()?,
            }
        }
    }

    /// Takes back the change that [`WatchCore::next`] returned last; it is returned again.
    pub(super) fn put_back(&mut self, change: Change) {
        self.queue.push_front(QueuedChange::PutBack(Box::new(change)));
    }

    /// Whether to report a change from the journal. Otherwise it is only stored.
    fn is_new(&mut self, record: &Record) -> bool {
        let key = record.key();
        if !self.prefix.matches(key) {
            return false;
        }
        let Some(seen) = self.seen.get(key) else { return true };
        if record.revision <= seen.revision {
            return false;
        }
        // It was reported as deleted on expiry, and now it is really deleted.
        let known = seen.is_gone && record.deleted && record.version == seen.version + 1;
        if known {
            self.forget(key);
        }
        !known
    }

    /// Number of values of a key before this one that were missed, if the journal showed every deletion.
    fn skipped(&self, record: &Record) -> Option<u64> {
        let before = match self.seen.get(record.key()) {
            Some(seen) => seen.version,
            // More writes than changes: it was loaded from disk with its version.
            None if record.version > record.revision.saturating_sub(self.snapshot_revision) => {
                return None;
            }
            None => 0,
        };
        record.version.checked_sub(before)?.checked_sub(1)
    }

    /// The same for a key in a snapshot, if no change up to revision `known` was missed. The key may have
    /// been deleted and created again, unless the number of changes excludes that.
    fn skipped_in_snapshot(&self, record: &Record, known: u64) -> Option<u64> {
        // The deletion and all writes since.
        let may_be_new = record.version < record.revision.saturating_sub(known);
        if may_be_new { None } else { self.skipped(record) }
    }

    fn report(&mut self, record: &Record, initial: bool, skipped: Option<u64>) -> Change {
        let key = record.key();
        self.written_unix_ns = record.written_unix_ns;
        self.change_count = self.change_count.wrapping_add(1).wrapping_add(skipped.unwrap_or(0));
        self.last_revision = self.last_revision.max(record.revision);
        self.forget(key);
        if !record.deleted {
            self.seen.insert(key.into(), SeenKey::of(record, false));
            if record.expires_boot_ns != 0 {
                self.expiries.insert((record.expires_boot_ns, key.into()));
            }
        }
        Change {
            key: key.to_owned(),
            entry: (!record.deleted).then(|| self.shared.entry_or_unreadable(record)),
            expired: Some(record.deleted && record.expired),
            revision: record.revision,
            skipped,
            initial,
        }
    }

    fn forget(&mut self, key: &str) {
        if let Some((key, seen)) = self.seen.remove_entry(key) {
            self.expiries.remove(&(seen.expires_boot_ns, key));
        }
    }

    /// Compares the current state with the reported one, because the watch fell behind the journal.
    fn catch_up(&mut self) -> Result<()> {
        let known = self.follower.known();
        let (revision, mut records) = self.shared.records_with_expired(&self.prefix)?;
        let now = self.shared.now();
        self.follower.resume_after(revision);
        records.sort_unstable_by_key(|record| record.revision);
        let mut gone: BTreeMap<Box<str>, SeenKey> = self.seen.clone();
        let (mut queue, mut over) = (VecDeque::new(), Vec::new());
        for record in records {
            let seen = gone.remove(record.key());
            // Already reported; `expire_keys` reports its expiry.
            if seen.is_some_and(|seen| seen.revision >= record.revision) {
                continue;
            }
            let skipped = self.skipped_in_snapshot(&record, known);
            if is_expired(record.expires_boot_ns, now) {
                let (key, remnant) = (record.key().into(), Some(SeenKey::of(&record, true)));
                // This value was missed, too.
                let skipped = skipped.map(|skipped| skipped + 1);
                over.push(QueuedChange::Gone {
                    key,
                    revision,
                    expired: Some(true),
                    skipped,
                    remnant,
                });
            } else {
                queue.push_back(QueuedChange::Present {
                    record: Box::new(record),
                    initial: false,
                    skipped,
                });
            }
        }
        self.snapshot_revision = revision;
        // The deletion revisions are unknown. The keys are absent as of the snapshot and therefore reported
        // last.
        queue.extend(over);
        for (key, seen) in gone {
            if seen.is_gone {
                self.forget(&key);
            } else {
                let (expired, skipped, remnant) = (None, None, None);
                queue.push_back(QueuedChange::Gone { key, revision, expired, skipped, remnant });
            }
        }
        self.queue = queue;
        Ok(())
    }

    /// Deletes expired keys, so that the journal reports them once to all watches; reports those that cannot
    /// be deleted now. Returns whether any key had expired.
    fn expire_keys(&mut self) -> bool {
        let mut any = false;
        if self.expiries.is_empty() {
            return false;
        }
        let now = self.shared.now();
        while self.expiries.first().is_some_and(|(at, _)| *at <= now) {
            any = true;
            let Some((_, key)) = self.expiries.pop_first() else { break };
            let Some(seen) = self.seen.get(&key).copied().filter(|seen| !seen.is_gone) else {
                continue;
            };
            // If unknown, report it: a missed dead-man switch is worse than a duplicate.
            if self.shared.is_expired_unreported(&key, seen.revision).unwrap_or(true) {
                let remnant = Some(SeenKey { is_gone: true, ..seen });
                let (revision, expired, skipped) = (seen.revision, Some(true), Some(0));
                self.queue.push_back(QueuedChange::Gone {
                    key,
                    revision,
                    expired,
                    skipped,
                    remnant,
                });
            }
        }
        any
    }

    /// Write time of the last reported change by the clock of messages, and the number of reported changes.
    pub(super) fn last_arrival(&self) -> (u64, u64) {
        let latency_ns = clock::unix_ns().saturating_sub(self.written_unix_ns);
        let latency_ns = if latency_ns > MAX_LATENCY_NS { 0 } else { latency_ns };
        (clock::now_ns().saturating_sub(latency_ns), self.change_count)
    }

    /// The same for a dispatch thread, for changes reported since `before`.
    pub(super) fn arrivals_since(&self, before: &mut u64) -> Option<(u64, u64)> {
        let (sent_ns, count) =
            if self.change_count == *before { return None } else { self.last_arrival() };
        Some((sent_ns, count.wrapping_sub(std::mem::replace(before, count))))
    }

    pub(super) fn is_from_parent(&self) -> bool {
        self.shared.fork_guard().is_from_parent()
    }

    pub(super) fn set_bell(&self, bell: u64) {
        self.waiting.set_bell(bell);
        self.follower.set_bell(bell);
    }
}

impl WaitSource for WatchCore {
    fn is_ready(&self) -> bool {
        !self.queue.is_empty() || self.follower.has_unread() || self.sleep_limit().is_zero()
    }
    fn must_stop(&self) -> bool {
        self.waiting.must_stop()
    }
    fn take_stop(&self) -> bool {
        self.waiting.take_stop()
    }
    /// Time until the next key expires.
    fn sleep_limit(&self) -> Duration {
        let Some((at, _)) = self.expiries.first() else { return Duration::MAX };
        Duration::from_nanos(at.saturating_sub(self.shared.now()))
    }
    /// From now on, processes that change something ring.
    fn before_sleep(&self) {
        self.follower.before_sleep();
    }
    fn after_sleep(&self, _woken: WakeReason, _limit: Duration) {
        self.follower.after_sleep();
    }
}

/// Reports changes of the keys under a prefix; created by [`State::watch`].
///
/// It first reports the current values ([`Change::initial`]) in key order, then every change in revision
/// order. A slow watch gets the newest value and the number of missed ones ([`Change::skipped`]); changes are
/// not queued for it. A key that was created and deleted while the watch missed it is reported as deleted,
/// with the number of its values. An expired key is reported as deleted at that time ([`Change::expired`]),
/// even if the disk is full. Facts that a very slow watch cannot know are `None`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("watch{}", std::process::id()));
/// # let node = settings.open()?;
/// # let state = rnet_state::State::open(&node, None, None)?;
/// let mut watch = state.watch("/arm")?;
/// state.set("/arm/mode", "idle")?;
/// let change = watch.recv()?;
/// assert_eq!(change.entry.map(|entry| entry.value), Some("idle".into()));
/// # let path = node.state.domain.path().to_owned();
/// # drop((watch, state, node));
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
pub struct Watch {
    pub(super) watch: WatchCore,
    pub(super) core: Arc<NodeCore>,
    interruptible: bool,
    wait_strategy: WaitStrategy,
    waiter: Waiter,
    /// Number of changes that were reported to a dispatch thread.
    reported: u64,
}

impl State {
    /// Reports the current values of the keys under a prefix, and then their changes, in order.
    ///
    /// # Errors
    /// `LimitReached`, `OutOfMemory`.
    pub fn watch(&self, prefix: &str) -> Result<Watch> {
        Watch::open(self, Prefix::new(prefix)?)
    }
}

impl Watch {
    pub(super) fn open(state: &State, prefix: Prefix) -> Result<Watch> {
        let watch = WatchCore::open(&state.shared, prefix)?;
        Ok(Watch::of(watch, state.core.clone()))
    }

    pub(super) fn of(watch: WatchCore, core: Arc<NodeCore>) -> Watch {
        let bells = core.state.own.bells();
        let (wait_strategy, waiter) =
            (WaitStrategy::of(bells), Waiter::at(bells.clone(), watch.bell));
        watch.set_bell(watch.bell);
        Watch { watch, core, interruptible: false, wait_strategy, waiter, reported: 0 }
    }

    /// Uses the urgent dispatch thread for callbacks instead of the bulk one: see [`Watch::on`].
    pub fn urgent(mut self) -> Self {
        self.watch.lane = Lane::Urgent;
        self
    }

    /// The next change, if available.
    pub fn try_recv(&mut self) -> Result<Option<Change>> {
        self.watch.next()
    }

    /// Waits for the next change. It spins for changes that arrive in quick succession or periodically, if
    /// that pays, as for messages.
    ///
    /// # Errors
    /// `Interrupted` (see [`Watch::interrupter`], [`Watch::set_interruptible`]).
    pub fn recv(&mut self) -> Result<Change> {
        self.wait_for_change(None)
    }

    /// As [`Watch::recv`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Watch::recv`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Change> {
        self.wait_for_change(Some(timeout))
    }

    fn wait_for_change(&mut self, timeout: Option<Duration>) -> Result<Change> {
        let until = deadline(timeout);
        loop {
            if let Some(change) = self.watch.next()? {
                let (sent_ns, count) = self.watch.last_arrival();
                self.wait_strategy.record_arrival(sent_ns, count);
                return Ok(change);
            }
            // The watch may have been in a wait set before.
            self.watch.set_bell(self.watch.bell);
            // As for urgent messages: other threads' computations must not delay a change.
            self.wait_strategy.keep_short_slice(cpu::SliceLen::Urgent);
            let each = |look: &mut dyn FnMut(&dyn WaitSource)| look(&self.watch);
            let Watch { waiter, wait_strategy, interruptible, .. } = self;
            if !wait_strategy.wait_until(waiter, Wait::Adaptive, until, *interruptible, each)? {
                return Err(Error::timeout(
                    "",
                    format!("a change under {}", self.watch.prefix.bytes()),
                    timeout.unwrap_or_default(),
                ));
            }
        }
    }

    /// An iterator over the changes that waits for each. It ends with the watch.
    pub fn iter(&mut self) -> Changes<'_> {
        Changes::of(self)
    }

    /// Whether a signal interrupts a wait with `Interrupted`; off by default.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.interruptible = yes;
    }

    /// A handle that other threads can use to interrupt this watch's waits.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::from(&self.watch.waiting)
    }
}

impl WaitSetMember for Watch {
    fn name(&self) -> String {
        format!("changes under {}", self.watch.prefix.bytes())
    }
    fn node(&self) -> Option<&NodeState> {
        Some(&self.core.state)
    }
    fn set_bell(&mut self, _bells: &Arc<Bells>, bell: u64) {
        self.watch.set_bell(bell);
    }
    /// Skips changes of other keys, so that it is ready only if it has a change to report.
    fn refresh(&mut self) {
        // An error occurs again in a call that can return it.
        if let Ok(Some(change)) = self.watch.next() {
            self.watch.put_back(change);
        }
    }
    fn wait_source(&self) -> &dyn WaitSource {
        &self.watch
    }
    fn before_sleep(&self) -> bool {
        // From now on, processes that change something ring the thread, even if it already sleeps. It may
        // sleep beyond the next expiry time.
        self.watch.before_sleep();
        self.watch.is_ready() || self.watch.sleep_limit() < MAX_SLEEP
    }
    fn take_arrival(&mut self) -> Option<(u64, u64)> {
        self.watch.arrivals_since(&mut self.reported)
    }
}

impl Waitable for Watch {}

#[doc(hidden)]
impl TryReceive for Watch {
    type Item = Change;
    fn try_receive(&mut self) -> Result<Option<Change>> {
        self.try_recv()
    }
}

rnet_node::debug_by!([] Watch, "Watch", |this| "prefix": this.watch.prefix.bytes());

#[cfg(test)]
mod tests {
    use rnet_node::NodeSettings;
    use rnet_shm::os::bell::MAX_SLEEP;

    use super::*;

    /// A thread that also waits for other sources treats a sleep of `MAX_SLEEP` as a lost wake-up only if the
    /// sleep was not limited.
    #[test]
    fn only_expiry_times_limit_a_sleep() {
        let base = std::env::temp_dir().join(format!("rnet-sleep-limit-{}", std::process::id()));
        std::fs::create_dir(&base).unwrap();
        let mut settings = NodeSettings::new("n");
        settings.dir = Some(base.clone());
        let node = settings.open().unwrap();
        let state = State::open(&node, None, None).unwrap();
        let mut watch = state.watch("/").unwrap();
        state.set("/k", 1).unwrap();
        watch.try_recv().unwrap().unwrap();
        assert_eq!(watch.watch.sleep_limit(), Duration::MAX);
        state.put("/k").ttl(Duration::from_secs(3600)).set(2).unwrap();
        watch.try_recv().unwrap().unwrap();
        let limit = watch.watch.sleep_limit();
        assert!(MAX_SLEEP < limit && limit <= Duration::from_secs(3600), "{limit:?}");
        drop((watch, state, node));
        std::fs::remove_dir_all(base).unwrap();
    }
}
