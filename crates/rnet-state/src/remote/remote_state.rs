//! Reads and writes the state of another host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::param::ParamInfo;
use crate::param::list::collect_params;
use crate::prefix::Prefix;
use crate::{Entry, StateMessage, Value};
use rnet_core::{Error, Result, key_name};
use rnet_node::Message;
use rnet_node::sync::lock;

use super::replica::{Replica, ReplicaShared};
use super::state_endpoint::StateEndpoint;
use super::wire::{self, TypeCache};
use crate::msgs::state_ask::Action;
use crate::msgs::{StateAsk, StateEntry, StateReply};
use rnet_node::NodeHandle;
use rnet_shm::os::clock::boot_ns;

/// Default time limit of a request; see [`RemoteState::with_timeout`].
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of prefixes that one [`RemoteState`] follows.
const MAX_REPLICAS: usize = 64;
/// Maximum number of keys whose last value is cached for when their home is away; the least recently read is
/// evicted.
const MAX_CACHED_KEYS: usize = 1024;
/// Maximum total length of the cached values, in bytes.
const MAX_CACHED_KEYS_LEN_BYTES: usize = 16 << 20;
/// Prefix of the keys of descriptions.
const DESCRIPTIONS: &str = "!";

/// Splits `@host/key` into host and key; `None` for a key of this host.
///
/// ```
/// assert_eq!(rnet::state::split_host("@lab/arm/mode"), Some(("lab", "/arm/mode")));
/// assert_eq!(rnet::state::split_host("/arm/mode"), None);
/// ```
pub fn split_host(key: &str) -> Option<(&str, &str)> {
    let rest = key.strip_prefix('@')?;
    Some(rest.find('/').map_or((rest, "/"), |at| rest.split_at(at)))
}

/// Known state of another host, with its age.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WithAge<T> {
    /// The value.
    pub value: T,
    /// Time since the value was known to be current at its home, including time for which this machine was
    /// suspended.
    pub age: Duration,
    /// Whether the home is away, so the value may have changed there.
    pub is_stale: bool,
}

impl<T> WithAge<T> {
    pub(super) fn new(value: T, known_boot_ns: u64, is_stale: bool) -> WithAge<T> {
        let age = Duration::from_nanos(boot_ns().saturating_sub(known_boot_ns));
        WithAge { value, age, is_stale }
    }

    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> WithAge<U> {
        WithAge { value: map(self.value), age: self.age, is_stale: self.is_stale }
    }
}

/// The state of another host, created by `rnet::Node::state_of`. Cheap to clone; usable from any thread.
///
/// A key belongs to the host that stores it, its *home*. A read asks the home, or a [`Replica`] of it. While
/// the home is not reachable, a read returns the last known value with its age. A write asks the home once
/// and returns when it is applied there; while the home is not reachable it fails with `HomeAway`, which
/// tells whether the write may have been applied.
///
/// ```no_run
/// # fn main() -> rnet::Result<()> {
/// let node = rnet::Node::new("desk")?;
/// let robot = node.state_of("robot")?;
/// let mode = robot.get("/arm/mode")?;
/// println!("{:?}, {} ms old", mode.value, mode.age.as_millis());
/// robot.set("/arm/mode", "idle")?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RemoteState {
    pub(super) shared: Arc<RemoteShared>,
    timeout: Duration,
    stop: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

pub(super) struct RemoteShared {
    pub(super) node: NodeHandle,
    pub(super) host: String,
    pub(super) read: StateEndpoint,
    write: StateEndpoint,
    cache: Mutex<ValueCache>,
    types: Mutex<TypeCache>,
    replicas: Mutex<Vec<Weak<ReplicaShared>>>,
}

/// The values read last.
#[derive(Default)]
struct ValueCache {
    /// Each with its length and the time at which it was current.
    keys: HashMap<String, (Option<Entry>, usize, u64)>,
    len_bytes: usize,
}

impl ValueCache {
    fn insert(&mut self, key: &str, entry: Option<Entry>, len_bytes: usize, known_boot_ns: u64) {
        self.remove(key);
        if len_bytes > MAX_CACHED_KEYS_LEN_BYTES {
            return;
        }
        while self.keys.len() >= MAX_CACHED_KEYS
            || self.len_bytes + len_bytes > MAX_CACHED_KEYS_LEN_BYTES
        {
            let oldest = self.keys.iter().min_by_key(|(_, (.., known))| *known);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.remove(&oldest);
        }
        self.len_bytes += len_bytes;
        self.keys.insert(key.to_owned(), (entry, len_bytes, known_boot_ns));
    }

    fn remove(&mut self, key: &str) {
        if let Some((_, len_bytes, _)) = self.keys.remove(key) {
            self.len_bytes -= len_bytes;
        }
    }
}

impl RemoteState {
    /// Opens it; users call `rnet::Node::state_of`.
    ///
    /// # Errors
    /// As `rnet::Node::state_of`.
    #[doc(hidden)]
    pub fn open(node: &NodeHandle, host: &str) -> Result<RemoteState> {
        if host.is_empty() || host.len() > rnet_core::MAX_HOST_LEN_BYTES || host.contains('/') {
            let why = format!(
                "a host name has 1 to {} bytes, without '/'",
                rnet_core::MAX_HOST_LEN_BYTES
            );
            return Err(Error::BadName { what: "host", name: host.to_owned(), why });
        }
        let shared = Arc::new(RemoteShared {
            node: node.clone(),
            host: host.to_owned(),
            read: StateEndpoint::open(node, wire::read_service, host)?,
            write: StateEndpoint::open(node, wire::write_service, host)?,
            cache: Mutex::default(),
            types: Mutex::default(),
            replicas: Mutex::default(),
        });
        Ok(RemoteState { shared, timeout: TIMEOUT, stop: None })
    }
}

impl RemoteShared {
    /// An entry under a prefix, as sent by the home.
    fn entry(&self, entry: StateEntry, under: &Prefix) -> Result<Entry> {
        let entry = lock(&self.types).decode_entry(entry).map_err(|why| self.bad_value(why))?;
        match under.matches(&entry.key) {
            true => Ok(entry),
            false => Err(self.bad_value(format!("{} was not requested", entry.key))),
        }
    }

    pub(super) fn bad_value(&self, why: String) -> Error {
        Error::bad_value(format!("state received from host {}", self.host), why)
    }

    /// The newest entry of a key among the replicas.
    fn in_replica(&self, key: &str) -> Option<WithAge<Option<Entry>>> {
        let replicas = lock(&self.replicas);
        let known =
            replicas.iter().filter_map(Weak::upgrade).filter_map(|one| one.get_with_age(key));
        known.min_by_key(|known| known.age)
    }
}

impl RemoteState {
    /// Sets the time limit of requests, 10 s by default.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> RemoteState {
        self.timeout = timeout;
        self
    }

    /// Interrupts a wait for an answer with `Interrupted` if `stop` returns `true`; it is called 20 times a
    /// second. An interrupted write may have been applied. For bindings that handle Ctrl-C.
    #[doc(hidden)]
    #[must_use]
    pub fn with_stop(mut self, stop: Arc<dyn Fn() -> bool + Send + Sync>) -> RemoteState {
        self.stop = Some(stop);
        self
    }

    fn must_stop(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop())
    }

    /// The host.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    fn ask(&self, action: Action, key: &str) -> Result<StateReply> {
        let mut ask = StateAsk { key: key.to_owned(), ..StateAsk::default() };
        ask.set_action(action);
        self.shared.read.request(&ask, self.timeout, || self.must_stop())
    }

    /// The value of a key; `None` if it is absent.
    ///
    /// # Errors
    /// `HomeAway` if the home is not reachable and the key was never read; `BadName`; errors of the home.
    pub fn get(&self, key: &str) -> Result<WithAge<Option<Value>>> {
        Ok(self.entry(key)?.map(|entry| entry.map(|entry| entry.value)))
    }

    /// The entry of a key: its value and metadata. The revision is one of that host's state.
    ///
    /// # Errors
    /// As [`RemoteState::get`].
    pub fn entry(&self, key: &str) -> Result<WithAge<Option<Entry>>> {
        let (key, shared) = (key_name(key)?, &self.shared);
        let followed = shared.in_replica(&key);
        if let Some(fresh) = followed.as_ref().filter(|known| !known.is_stale) {
            return Ok(fresh.clone());
        }
        // The value was current at some moment after the request.
        let asked_boot_ns = boot_ns();
        match self.ask(Action::Get, &key) {
            Ok(reply) => {
                let sent = reply.entries.into_iter().find(|entry| entry.key == *key);
                let len_bytes = key.len() + sent.as_ref().map_or(0, |sent| sent.value.len());
                let entry = sent.map(|sent| shared.entry(sent, &Prefix::new(&key)?)).transpose()?;
                lock(&shared.cache).insert(&key, entry.clone(), len_bytes, asked_boot_ns);
                Ok(WithAge::new(entry, asked_boot_ns, false))
            }
            Err(error @ Error::HomeAway { .. }) => {
                let cached = lock(&shared.cache).keys.get(&*key).cloned();
                let cached = cached.map(|(entry, _, known)| WithAge::new(entry, known, true));
                cached.into_iter().chain(followed).min_by_key(|known| known.age).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The keys under a prefix at the home, as of one revision, in order.
    ///
    /// # Errors
    /// `HomeAway`; `LimitReached` for more than 65,536 keys or 64 MiB of values; `BadName`.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let under = Prefix::new(prefix)?;
        let entries = self.ask(Action::List, prefix)?.entries;
        let entries = entries.into_iter().map(|entry| self.shared.entry(entry, &under));
        entries.collect()
    }

    /// All parameters of the nodes of that host.
    ///
    /// # Errors
    /// As [`RemoteState::list`].
    pub fn params(&self) -> Result<Vec<ParamInfo>> {
        let entries = self.ask(Action::Params, "/params")?.entries;
        let (about, values): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.key.starts_with(DESCRIPTIONS));
        let about = about.into_iter().map(|e| (e.key, e.revision, e.value)).collect();
        let under = Prefix::new("/params")?;
        let values: Result<Vec<Entry>> =
            values.into_iter().map(|entry| self.shared.entry(entry, &under)).collect();
        Ok(collect_params(about, values?))
    }

    /// A replica of the keys under a prefix, which follows their changes; reads of these keys then need no
    /// request. Returns when it has the current values.
    ///
    /// # Errors
    /// `HomeAway`; `LimitReached` beyond 64 replicas of one `RemoteState`, 256 followed prefixes at the home,
    /// 65,536 keys or 64 MiB of values; `BadName`.
    pub fn mirror(&self, prefix: &str) -> Result<Replica> {
        let mut replicas = lock(&self.shared.replicas);
        replicas.retain(|replica| replica.strong_count() > 0);
        if replicas.len() >= MAX_REPLICAS {
            let what = format!("replicas of state of host {}", self.host());
            let hint = "follow one common prefix".to_owned();
            return Err(Error::limit_reached(what, MAX_REPLICAS, hint));
        }
        let replica = Replica::start(&self.shared, prefix)?;
        replicas.push(Arc::downgrade(replica.shared()));
        drop(replicas);
        replica.wait_until_known(self.timeout, || self.must_stop())?;
        Ok(replica)
    }

    /// Sets a key at its home, and returns the revision of the change once it is applied. The home checks it
    /// as a local write, including the rules of parameters.
    ///
    /// # Errors
    /// `HomeAway`, which tells whether the write may have been applied; errors of the home, as in
    /// [`State::set`](crate::State::set).
    pub fn set(&self, key: &str, value: impl Into<Value>) -> Result<u64> {
        self.put(key).set(value)
    }

    /// Sets a key to a message.
    ///
    /// # Errors
    /// As [`RemoteState::set`].
    pub fn set_message<M: Message>(&self, key: &str, message: &M) -> Result<u64> {
        self.put(key).set(StateMessage::of(message)?)
    }

    /// Sets a key if it has this revision at its home; 0 means that the key is absent.
    ///
    /// # Errors
    /// `Conflict` if the key has another revision; as [`RemoteState::set`].
    pub fn compare_and_set(
        &self,
        key: &str,
        revision: u64,
        value: impl Into<Value>,
    ) -> Result<u64> {
        self.put(key).if_revision(revision).set(value)
    }

    /// Deletes a key; `false` if it did not exist.
    ///
    /// # Errors
    /// As [`RemoteState::set`].
    pub fn delete(&self, key: &str) -> Result<bool> {
        self.put(key).delete()
    }

    /// Writes with options.
    pub fn put<'a>(&'a self, key: &'a str) -> RemotePut<'a> {
        let ask = StateAsk { key: key.to_owned(), ..StateAsk::default() };
        RemotePut { state: self, ask }
    }
}

rnet_node::debug_by!([] RemoteState, "RemoteState", |this| "host": this.host());

/// A write at another host; made by [`RemoteState::put`]. It is sent once, and never retried automatically.
#[must_use = "nothing is written until set or delete"]
pub struct RemotePut<'a> {
    state: &'a RemoteState,
    ask: StateAsk,
}

impl RemotePut<'_> {
    /// Writes only if the key has this revision at its home; 0 means that the key is absent. Otherwise
    /// `Conflict`.
    pub fn if_revision(mut self, revision: u64) -> Self {
        self.ask.if_revision = Some(revision);
        self
    }

    /// Writes only if the key is absent. Otherwise `Conflict`.
    pub fn if_absent(self) -> Self {
        self.if_revision(0)
    }

    /// Deletes the key if it is not written again within this time, by the home's clock.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ask.ttl_ns = Some(u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX));
        self
    }

    /// Whether the key is stored on the home's disk; the write then returns once it is stored.
    pub fn durable(mut self, yes: bool) -> Self {
        self.ask.durable = Some(yes);
        self
    }

    /// Allows the write to change the type of the key's value.
    pub fn change_type(mut self) -> Self {
        self.ask.change_type = true;
        self
    }

    /// Sets the key; returns the revision of the change at its home.
    ///
    /// # Errors
    /// As [`RemoteState::set`].
    pub fn set(mut self, value: impl Into<Value>) -> Result<u64> {
        self.ask.entry = Some(wire::encode_write(&self.ask.key, &value.into())?);
        self.send(Action::Set)
    }

    /// Deletes the key; `false` if it did not exist.
    ///
    /// # Errors
    /// As [`RemoteState::set`].
    pub fn delete(self) -> Result<bool> {
        Ok(self.send(Action::Delete)? != 0)
    }

    fn send(mut self, action: Action) -> Result<u64> {
        self.ask.key = key_name(&self.ask.key)?.into_owned();
        self.ask.set_action(action);
        let reply = self
            .state
            .shared
            .write
            .request(&self.ask, self.state.timeout, || self.state.must_stop())?;
        Ok(reply.revision)
    }
}
