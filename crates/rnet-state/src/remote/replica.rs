//! A replica of the keys under a prefix of another host.
//!
//! A thread requests the keys and subscribes to the topic of their changes, and applies these in the order of
//! their numbers. If the order breaks (a missing number, another feed, a silence longer than the heartbeat
//! allows, bytes that are not a change), it fetches the keys again and reports the differences as changes.
//! While the home is away, the keys keep their values and their age grows.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::prefix::Prefix;
use crate::{Change, Entry, Value};
use rnet_core::{Error, Result};
use rnet_node::options::deadline;
use rnet_node::sync::{lock, wait};

use super::home::{FEED_HEARTBEAT_INTERVAL, MAX_FEED_KEYS, check_limits};
use super::remote_state::{RemoteShared, WithAge};
use super::state_endpoint::CHECK_INTERVAL;
use super::wire::TypeCache;
use crate::msgs::state_ask::Action;
use crate::msgs::{StateAsk, StateChange, StateEntry};
use rnet_node::{Interrupter, Subscriber};
use rnet_shm::os::clock::boot_ns;

/// A replica that receives nothing for this long counts as behind, and requests the keys again.
const FEED_TIMEOUT: Duration = FEED_HEARTBEAT_INTERVAL.saturating_mul(4);
/// Delay before the next request to a home that was away or has refused.
const RETRY_INTERVAL: Duration = FEED_HEARTBEAT_INTERVAL;
/// Time limit of a request for the keys.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A copy of another host's keys under a prefix, kept up to date; created by
/// [`RemoteState::mirror`](super::RemoteState::mirror). Its thread stops when the replica is dropped.
///
/// It also reports changes, as a [`Watch`](crate::Watch) does: from the first call of [`Replica::recv`],
/// first the current values, then the newest value of each changed key.
pub struct Replica {
    shared: Arc<ReplicaShared>,
    thread: Option<JoinHandle<()>>,
}

pub(super) struct ReplicaShared {
    remote: Arc<RemoteShared>,
    prefix: String,
    matcher: Prefix,
    state: Mutex<ReplicaState>,
    changed: Condvar,
    closed: AtomicBool,
    /// Interrupts the wait of the thread.
    interrupter: Mutex<Option<Interrupter>>,
}

#[derive(Default)]
struct ReplicaState {
    keys: BTreeMap<String, (Entry, usize)>,
    len_bytes: usize,
    revision: u64,
    /// When the keys were last known to be current; `None`: never.
    known_boot_ns: Option<u64>,
    is_stale: bool,
    /// Why the home does not send changes.
    error: Option<Error>,
    /// Created at the first call of [`Replica::recv`].
    queue: Option<ChangeQueue>,
}

/// Changes not received yet: one per key.
#[derive(Default)]
struct ChangeQueue {
    changes: HashMap<String, Change>,
    order: VecDeque<String>,
}

impl ChangeQueue {
    fn add(&mut self, mut change: Change) {
        if let Some(before) = self.changes.remove(&change.key) {
            let skipped = |(a, b): (u64, u64)| a.saturating_add(b).saturating_add(1);
            change.skipped = before.skipped.zip(change.skipped).map(skipped);
            change.initial = before.initial;
        } else {
            self.order.push_back(change.key.clone());
        }
        self.changes.insert(change.key.clone(), change);
    }

    fn next(&mut self) -> Option<Change> {
        let key = self.order.pop_front()?;
        self.changes.remove(&key)
    }
}

impl ReplicaState {
    fn queue_change(&mut self, change: Change) {
        if let Some(queue) = &mut self.queue {
            queue.add(change);
        }
    }

    fn put(&mut self, entry: Entry, len_bytes: usize, skipped: Option<u64>) {
        let (key, revision) = (entry.key.clone(), entry.revision);
        self.queue_change(Change {
            key: key.clone(),
            entry: Some(entry.clone()),
            expired: Some(false),
            revision,
            skipped,
            initial: false,
        });
        self.len_bytes += len_bytes;
        if let Some((_, before)) = self.keys.insert(key, (entry, len_bytes)) {
            self.len_bytes -= before;
        }
    }

    fn remove(
        &mut self,
        key: &str,
        (revision, expired, skipped): (u64, Option<bool>, Option<u64>),
    ) {
        if let Some((_, before)) = self.keys.remove(key) {
            self.len_bytes -= before;
        }
        let (key, entry, initial) = (key.to_owned(), None, false);
        self.queue_change(Change { key, entry, expired, revision, skipped, initial });
    }
}

/// The next step of the thread.
enum NextStep {
    /// Fetch the keys again.
    Refetch,
    /// Retry after a pause, because the home is away or refuses.
    RetryLater,
}

impl Replica {
    pub(super) fn start(remote: &Arc<RemoteShared>, prefix: &str) -> Result<Replica> {
        let shared = Arc::new(ReplicaShared {
            remote: remote.clone(),
            prefix: prefix.to_owned(),
            matcher: Prefix::new(prefix)?,
            state: Mutex::default(),
            changed: Condvar::new(),
            closed: AtomicBool::new(false),
            interrupter: Mutex::default(),
        });
        let of_thread = shared.clone();
        let thread = rnet_shm::os::thread::spawn("rnet-replica", move || of_thread.run())?;
        Ok(Replica { shared, thread: Some(thread) })
    }

    pub(super) fn shared(&self) -> &Arc<ReplicaShared> {
        &self.shared
    }

    /// Waits for the current keys; `Interrupted` once `stop` returns `true`.
    pub(super) fn wait_until_known(&self, limit: Duration, stop: impl Fn() -> bool) -> Result<()> {
        let begun = Instant::now();
        let unknown =
            |state: &mut ReplicaState| state.known_boot_ns.is_none() && state.error.is_none();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let state = lock(&self.shared.state);
            let (state, _) = self
                .shared
                .changed
                .wait_timeout_while(state, left.min(CHECK_INTERVAL), unknown)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            match (&state.error, state.known_boot_ns) {
                (_, Some(_)) => return Ok(()),
                (Some(error), None) => return Err(error.clone()),
                (None, None) if left.is_zero() => {
                    return Err(self.shared.timeout("its keys", limit));
                }
                (None, None) => {}
            }
            // Without the lock: it may run code of the user that reads the state.
            drop(state);
            if stop() {
                return Err(Error::Interrupted);
            }
        }
    }

    /// The prefix.
    pub fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    /// The value of a key; `None` if it is absent.
    ///
    /// # Errors
    /// `BadName`; `BadValue` for a key that is not under the prefix.
    pub fn get(&self, key: &str) -> Result<WithAge<Option<Value>>> {
        Ok(self.entry(key)?.map(|entry| entry.map(|entry| entry.value)))
    }

    /// The entry of a key: its value and metadata.
    ///
    /// # Errors
    /// As [`Replica::get`].
    pub fn entry(&self, key: &str) -> Result<WithAge<Option<Entry>>> {
        let key = rnet_core::key_name(key)?;
        self.shared.get_with_age(&key).ok_or_else(|| {
            Error::bad_value(
                format!("key {key}"),
                format!("this replica covers {}", self.shared.prefix),
            )
        })
    }

    /// All keys, in order.
    pub fn list(&self) -> WithAge<Vec<Entry>> {
        let state = lock(&self.shared.state);
        let entries = state.keys.values().map(|(entry, _)| entry.clone()).collect();
        WithAge::new(entries, state.known_boot_ns.unwrap_or_default(), state.is_stale)
    }

    /// Time since the keys were known to be current at their home: at most a fraction of a second while the
    /// home is reachable.
    pub fn age(&self) -> Duration {
        let known = lock(&self.shared.state).known_boot_ns.unwrap_or_default();
        Duration::from_nanos(boot_ns().saturating_sub(known))
    }

    /// Whether the home is away.
    pub fn is_stale(&self) -> bool {
        lock(&self.shared.state).is_stale
    }

    /// Waits for the next change.
    ///
    /// # Errors
    /// `LimitReached` if changes of more than 65,536 keys wait: the next call starts again with the current
    /// values.
    pub fn recv(&self) -> Result<Change> {
        self.wait_for_change(None)
    }

    /// As [`Replica::recv`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Replica::recv`].
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Change> {
        self.wait_for_change(Some(timeout))
    }

    fn wait_for_change(&self, timeout: Option<Duration>) -> Result<Change> {
        let until = deadline(timeout);
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(change) = next(&mut state)? {
                return Ok(change);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Err(self.shared.timeout("a change", timeout.unwrap_or_default()));
            }
            state = wait(&self.shared.changed, state, until);
        }
    }

    /// The next pending change, if any.
    ///
    /// # Errors
    /// As [`Replica::recv`].
    pub fn try_recv(&self) -> Result<Option<Change>> {
        next(&mut lock(&self.shared.state))
    }
}

fn next(state: &mut ReplicaState) -> Result<Option<Change>> {
    let ReplicaState { queue, keys, .. } = state;
    let queue = queue.get_or_insert_with(|| {
        let mut first = ChangeQueue::default();
        for (entry, _) in keys.values() {
            first.add(Change {
                key: entry.key.clone(),
                entry: Some(entry.clone()),
                expired: Some(false),
                revision: entry.revision,
                skipped: Some(0),
                initial: true,
            });
        }
        first
    });
    if queue.order.len() > MAX_FEED_KEYS {
        state.queue = None;
        let what = "unread changed keys of another host".to_owned();
        let hint = "read them sooner; all keys are delivered again".to_owned();
        return Err(Error::limit_reached(what, MAX_FEED_KEYS, hint));
    }
    Ok(queue.next())
}

impl Drop for Replica {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.shared.remote.node.core.state.fork_guard().is_from_parent() {
            std::mem::forget(thread);
            return;
        }
        self.shared.closed.store(true, Ordering::SeqCst);
        if let Some(interrupter) = &*lock(&self.shared.interrupter) {
            interrupter.interrupt();
        }
        drop(lock(&self.shared.state));
        self.shared.changed.notify_all();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

rnet_node::debug_by!(
    [] Replica, "Replica", |this| "host": this.shared.remote.host, "prefix": this.prefix()
);

impl ReplicaShared {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn timeout(&self, what: &str, after: Duration) -> Error {
        let what = format!("{what} under {:?} of host {}", self.prefix, self.remote.host);
        Error::timeout("", what, after)
    }

    /// The known value of a key; `None` for a key outside this replica's prefix, or before the first fetch.
    pub(super) fn get_with_age(&self, key: &str) -> Option<WithAge<Option<Entry>>> {
        if !self.matcher.matches(key) {
            return None;
        }
        let state = lock(&self.state);
        let entry = state.keys.get(key).map(|(entry, _)| entry.clone());
        state.known_boot_ns.map(|known| WithAge::new(entry, known, state.is_stale))
    }

    fn run(&self) {
        let mut feed = None;
        while !self.is_closed() {
            let next = self.follow_feed(&mut feed);
            if let Err(error) = &next {
                let mut state = lock(&self.state);
                state.is_stale = true;
                state.error = Some(error.clone());
                drop(state);
                self.changed.notify_all();
            }
            if !matches!(next, Ok(NextStep::Refetch)) {
                let state = lock(&self.state);
                let go_on = |_: &mut ReplicaState| !self.is_closed();
                let _ = self.changed.wait_timeout_while(state, RETRY_INTERVAL, go_on);
            }
        }
    }

    /// Fetches the keys, and applies their changes as long as these are in order. The subscription to a feed
    /// is reused at the next fetch.
    fn follow_feed(
        &self,
        feed: &mut Option<(String, Subscriber<StateChange>)>,
    ) -> Result<NextStep> {
        let mut ask = StateAsk { key: self.prefix.clone(), ..StateAsk::default() };
        ask.set_action(Action::Follow);
        let asked_boot_ns = boot_ns();
        let reply = self.remote.read.request(&ask, FETCH_TIMEOUT, || self.is_closed())?;
        let mut types = TypeCache::default();
        self.replace_keys(reply.entries, reply.revision, asked_boot_ns, &mut types)?;
        if feed.as_ref().is_none_or(|(topic, _)| *topic != reply.topic) {
            *feed = None;
            let subscriber = self.remote.node.subscriber(&reply.topic);
            let subscriber = subscriber.reliable().transient_local().open()?;
            *feed = Some((reply.topic.clone(), subscriber));
        }
        let Some((_, changes)) = feed else { return Ok(NextStep::RetryLater) };
        *lock(&self.interrupter) = Some(changes.interrupter());
        let mut seq = reply.seq;
        while !self.is_closed() {
            let change = match changes.recv_timeout(FEED_TIMEOUT) {
                Ok(sample) => sample.into_message(),
                Err(Error::Interrupted) => continue,
                Err(Error::Malformed { .. }) => return Ok(NextStep::Refetch),
                Err(Error::Timeout { .. } | Error::PeerLost { .. }) => {
                    lock(&self.state).is_stale = true;
                    return Ok(NextStep::Refetch);
                }
                Err(error) => return Err(error),
            };
            if change.feed != reply.feed || change.seq < seq {
                // Sent before the keys were requested.
                continue;
            }
            let is_next = change.seq == seq + u64::from(change.entry.is_some());
            if !is_next {
                // A change that the fetched keys already contain has no effect.
                if change.seq == seq {
                    continue;
                }
                return Ok(NextStep::Refetch);
            }
            seq = change.seq;
            let skipped = change.skipped;
            if !self.apply_change(change.entry, skipped, &mut types) {
                return Ok(NextStep::Refetch);
            }
        }
        Ok(NextStep::RetryLater)
    }

    /// Replaces all keys, and reports the differences.
    fn replace_keys(
        &self,
        entries: Vec<StateEntry>,
        revision: u64,
        known_boot_ns: u64,
        types: &mut TypeCache,
    ) -> Result<()> {
        let mut now = BTreeMap::new();
        let mut sum_bytes = 0;
        for entry in entries {
            let len_bytes = entry.key.len() + entry.value.len();
            sum_bytes += len_bytes;
            check_limits(&self.prefix, now.len() + 1, sum_bytes)?;
            let entry = types.decode_entry(entry).map_err(|why| self.remote.bad_value(why))?;
            if !self.matcher.matches(&entry.key) {
                return Err(self
                    .remote
                    .bad_value(format!("{} is not under {}", entry.key, self.prefix)));
            }
            now.insert(entry.key.clone(), (entry, len_bytes));
        }
        let mut state = lock(&self.state);
        let gone: Vec<String> =
            state.keys.keys().filter(|key| !now.contains_key(*key)).cloned().collect();
        for key in gone {
            state.remove(&key, (revision, None, None));
        }
        let first = state.known_boot_ns.is_none();
        for (key, (entry, len_bytes)) in now {
            let same = |(before, _): &(Entry, usize)| {
                (before.revision, before.version, &before.value)
                    == (entry.revision, entry.version, &entry.value)
            };
            if !state.keys.get(&key).is_some_and(same) {
                state.put(entry, len_bytes, first.then_some(0));
            }
        }
        state.revision = revision;
        state.known_boot_ns = Some(known_boot_ns);
        (state.is_stale, state.error) = (false, None);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Applies a change if it is valid; returns whether it was.
    fn apply_change(
        &self,
        sent: Option<StateEntry>,
        skipped: Option<u64>,
        types: &mut TypeCache,
    ) -> bool {
        let sent = match sent {
            None => None,
            Some(sent) if sent.deleted => Some((sent.key, (sent.revision, sent.expired), None)),
            Some(sent) => {
                let len_bytes = sent.key.len() + sent.value.len();
                let Ok(entry) = types.decode_entry(sent) else { return false };
                let at = (entry.key.clone(), (entry.revision, None));
                Some((at.0, at.1, Some((entry, len_bytes))))
            }
        };
        let mut state = lock(&self.state);
        if let Some((key, (revision, expired), entry)) = sent {
            if !self.matcher.matches(&key) {
                return false;
            }
            let before = state.keys.get(&key).map(|(entry, _)| entry.revision);
            match (entry, before) {
                // The fetched keys already contained it.
                (Some(_), Some(before)) if revision <= before => {}
                (None, Some(before)) if revision < before => {}
                (_, None) if revision <= state.revision => {}
                (None, _) => state.remove(&key, (revision, expired, skipped)),
                (Some((entry, len_bytes)), _) => {
                    let keys = state.keys.len() + 1;
                    if check_limits(&self.prefix, keys, state.len_bytes + len_bytes).is_err() {
                        // The home names the error when it is asked.
                        return false;
                    }
                    state.put(entry, len_bytes, skipped);
                }
            }
        }
        state.known_boot_ns = Some(boot_ns());
        state.is_stale = false;
        drop(state);
        self.changed.notify_all();
        true
    }
}
