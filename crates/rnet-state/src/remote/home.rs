//! The home of a host's keys: it answers requests of other hosts for them (docs/design/state-hosts.md).
//!
//! It has two services, one for reads and one for writes, and a feed for each prefix that a replica follows.
//! A feed is a topic on which a watch of the state publishes every change, numbered, and a heartbeat four
//! times a second. The state is opened at the first request, so a host without requests pays only for two
//! services.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::param::list::raw_params;
use crate::param::param_keys::ALL_VALUES;
use crate::prefix::Prefix;
use crate::{Change, Entry, State, WatchHandle};
use rnet_core::{Error, OnFull, Result, key_name};
use rnet_node::sync::lock;
use rnet_shm::os::random::random_u64;

use super::wire;
use crate::msgs::state_ask::Action;
use crate::msgs::{StateAsk, StateChange, StateEntry, StateReply};
use rnet_call::{Service, ServiceBuilder};
use rnet_node::{NodeHandle, Publisher, Timer};

/// Longest interval between two messages of a feed: a replica that receives nothing for longer is behind.
pub const FEED_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
/// A feed ends after this many heartbeats without a subscriber.
const MAX_IDLE_HEARTBEATS: u32 = 40;
/// Maximum number of followed prefixes per host.
pub const MAX_FEEDS: usize = 256;
/// Maximum number of keys of one list or replica.
pub const MAX_FEED_KEYS: usize = 65_536;
/// Maximum total length of the values of one list or replica, in bytes. A single value may be as long as the
/// value limit.
pub const MAX_LEN_BYTES: usize = 64 << 20;
/// Requests that wait while others are answered.
const BACKLOG: usize = 1024;
/// Concurrent writes: one that waits for the disk does not delay those that do not.
const MAX_CONCURRENT_WRITES: usize = 4;

/// What a request of another host needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateNeed<'a> {
    /// To read a key.
    Read(&'a str),
    /// To read all keys under a prefix, such as `/arm` or `/`.
    ReadAll(&'a str),
    /// To write a key.
    Write(&'a str),
}

/// Decides whether a host, by its name here, may do something. Hosts for which it returns the same number get
/// the same feeds; the number is part of the feed's topic.
pub type StateAccess = Arc<dyn Fn(&str, StateNeed<'_>) -> Result<u64> + Send + Sync>;

/// Answers for the keys of this host until it is dropped; made by [`serve`].
#[must_use = "other hosts reach the state of this one as long as this is held"]
pub struct Home {
    _services: [Service; 2],
    _feeds: Arc<Feeds>,
}

/// Serves the keys of this host, which other hosts know as `host`. The node must use the host's time: with a
/// simulated clock that is stopped, feeds would send nothing. `access` decides about each request of another
/// host.
///
/// # Errors
/// As `rnet::Node::service`.
pub fn serve(
    node: &NodeHandle,
    open_state: impl Fn() -> Result<State> + Send + Sync + 'static,
    host: &str,
    access: Option<StateAccess>,
) -> Result<Home> {
    let feeds = Arc::new_cyclic(|this| Feeds {
        node: node.clone(),
        open_state: Box::new(open_state),
        host: host.to_owned(),
        access,
        feeds: Mutex::default(),
        beat: Mutex::default(),
        this: this.clone(),
    });
    let (reading, writing) = (feeds.clone(), feeds.clone());
    let read = ServiceBuilder::<StateAsk, StateReply>::new(node, &wire::read_service(host))
        .backlog(BACKLOG)
        .serve_any(move |ask, call| Ok(Some(to_reply(reading.read(ask, call.caller())))))?;
    let write = ServiceBuilder::<StateAsk, StateReply>::new(node, &wire::write_service(host))
        .backlog(BACKLOG)
        .at_once(MAX_CONCURRENT_WRITES)
        .serve_any(move |ask, call| Ok(Some(to_reply(writing.write(ask, call.caller())))))?;
    Ok(Home { _services: [read, write], _feeds: feeds })
}

fn to_reply(done: Result<StateReply>) -> StateReply {
    done.unwrap_or_else(|error| StateReply {
        refusal: Some(wire::encode_error(&error)),
        ..StateReply::default()
    })
}

/// Publishes the changes below one prefix.
struct Feed {
    number: u64,
    sender: Arc<Mutex<FeedSender>>,
    idle_heartbeats: u32,
    _watch: WatchHandle,
}

struct FeedSender {
    publisher: Publisher<StateChange>,
    number: u64,
    seq: u64,
    /// Types sent since the last request for the keys.
    types: HashSet<u64>,
}

impl FeedSender {
    fn send_change(&mut self, change: &Change) {
        // The keys in the reply contain it.
        if change.initial {
            return;
        }
        let types = &mut self.types;
        let entry = match &change.entry {
            Some(entry) => wire::encode_entry(entry, |number| !types.insert(number)),
            None => StateEntry {
                key: change.key.clone(),
                revision: change.revision,
                deleted: true,
                expired: change.expired,
                ..StateEntry::default()
            },
        };
        self.seq += 1;
        self.send(Some(entry), change.skipped);
    }

    /// If a message is not sent, its number is skipped: followers detect the gap and request the keys again.
    fn send(&mut self, entry: Option<StateEntry>, skipped: Option<u64>) {
        let change = StateChange { feed: self.number, seq: self.seq, entry, skipped };
        let _ = self.publisher.send(&change);
    }
}

struct Feeds {
    node: NodeHandle,
    open_state: Box<dyn Fn() -> Result<State> + Send + Sync>,
    host: String,
    access: Option<StateAccess>,
    /// By prefix, and the number of the readers.
    feeds: Mutex<HashMap<(String, u64), Feed>>,
    /// Created with the first feed: a home without followers causes no wake-ups.
    beat: Mutex<Option<Timer>>,
    this: Weak<Feeds>,
}

impl Feeds {
    fn state(&self) -> Result<State> {
        (self.open_state)()
    }

    /// Checks a request of this node; the link shows those of other hosts as `@host/node`. Returns the number of
    /// its readers.
    fn check(&self, caller: &str, need: StateNeed<'_>) -> Result<u64> {
        let host = caller.strip_prefix('@').and_then(|rest| rest.split('/').next());
        match (&self.access, host) {
            (Some(access), Some(host)) => access(host, need),
            _ => Ok(0),
        }
    }

    fn read(&self, ask: &StateAsk, caller: &str) -> Result<StateReply> {
        let state = self.state()?;
        let check_all = |prefix: &str| {
            let prefix = Prefix::new(prefix)?;
            self.check(caller, StateNeed::ReadAll(prefix.root()))
        };
        match ask.action() {
            Action::Get => {
                self.check(caller, StateNeed::Read(&key_name(&ask.key)?))?;
                let (revision, entry) = (state.revision(), state.entry(&ask.key)?);
                let entries =
                    entry.iter().map(|entry| wire::encode_entry(entry, |_| false)).collect();
                Ok(StateReply { revision, entries, ..StateReply::default() })
            }
            Action::List => {
                check_all(&ask.key)?;
                list_keys(&state, &ask.key)
            }
            Action::Follow => self.follow(&state, &ask.key, check_all(&ask.key)?),
            Action::Params => {
                check_all(ALL_VALUES)?;
                let (descriptions, values) = raw_params(&state)?;
                let about = |(key, revision, json): (String, u64, Vec<u8>)| StateEntry {
                    key,
                    revision,
                    value: json,
                    ..StateEntry::default()
                };
                let values = values.iter().map(|entry| wire::encode_entry(entry, |_| false));
                let entries = descriptions.into_iter().map(about).chain(values).collect();
                Ok(StateReply { entries, ..StateReply::default() })
            }
            Action::Unspecified | Action::Set | Action::Delete => Err(unknown_action(ask)),
        }
    }

    fn follow(&self, state: &State, prefix: &str, readers: u64) -> Result<StateReply> {
        let key = (prefix.to_owned(), readers);
        let mut feeds = lock(&self.feeds);
        if !feeds.contains_key(&key) {
            if feeds.len() >= MAX_FEEDS {
                return Err(Error::limit_reached(
                    "state prefixes that other hosts follow",
                    MAX_FEEDS,
                    "follow one common prefix",
                ));
            }
            let feed = self.open_feed(state, prefix, readers)?;
            feeds.insert(key.clone(), feed);
        }
        let feed = feeds.get_mut(&key).expect("it was put there");
        feed.idle_heartbeats = 0;
        let (number, sender) = (feed.number, feed.sender.clone());
        drop(feeds);
        // Before the keys are read: later messages describe their types to this requester.
        let seq = {
            let mut sender = lock(&sender);
            sender.types.clear();
            sender.seq
        };
        let topic = wire::feed_topic(&self.host, readers, number);
        let keys = list_keys(state, prefix)?;
        Ok(StateReply { topic, feed: number, seq, ..keys })
    }

    fn open_feed(&self, state: &State, prefix: &str, readers: u64) -> Result<Feed> {
        let number = random_u64();
        // The newest message is kept for late joiners: it carries the feed's position.
        let publisher = self.node.publisher(&wire::feed_topic(&self.host, readers, number));
        let publisher = publisher.reliable(OnFull::Refuse).transient_local(1).open()?;
        let sender = FeedSender { publisher, number, seq: 0, types: HashSet::new() };
        let sender = Arc::new(Mutex::new(sender));
        lock(&sender).send(None, None);
        let feed_sender = sender.clone();
        let watch = state.watch(prefix)?.on(move |change| lock(&feed_sender).send_change(&change));
        let mut beat = lock(&self.beat);
        if beat.is_none() {
            let this = self.this.clone();
            let timer = self.node.timer(FEED_HEARTBEAT_INTERVAL).on(move |_| {
                if let Some(feeds) = this.upgrade() {
                    feeds.heartbeat();
                }
            });
            *beat = Some(timer?);
        }
        drop(beat);
        Ok(Feed { number, sender, idle_heartbeats: 0, _watch: watch })
    }

    fn heartbeat(&self) {
        let mut feeds = lock(&self.feeds);
        let mut over = Vec::new();
        for (key, feed) in feeds.iter_mut() {
            let mut sender = lock(&feed.sender);
            match sender.publisher.subscriber_count() {
                0 => feed.idle_heartbeats += 1,
                _ => {
                    feed.idle_heartbeats = 0;
                    sender.send(None, None);
                }
            }
            if feed.idle_heartbeats > MAX_IDLE_HEARTBEATS {
                over.push(key.clone());
            }
        }
        let over: Vec<Option<Feed>> = over.iter().map(|key| feeds.remove(key)).collect();
        drop(feeds);
        drop(over);
    }

    fn write(&self, ask: &StateAsk, caller: &str) -> Result<StateReply> {
        let state = self.state()?;
        self.check(caller, StateNeed::Write(&key_name(&ask.key)?))?;
        let mut put = state.put(&ask.key);
        if let Some(revision) = ask.if_revision {
            put = put.if_revision(revision);
        }
        match (ask.action(), &ask.entry) {
            (Action::Set, Some(entry)) => {
                let value = wire::TypeCache::default().decode_value(entry);
                let what = || format!("value of {}", ask.key);
                let value = value.map_err(|why| Error::bad_value(what(), why))?;
                if let Some(durable) = ask.durable {
                    put = put.durable(durable);
                }
                if let Some(ttl_ns) = ask.ttl_ns {
                    put = put.ttl(Duration::from_nanos(ttl_ns));
                }
                if ask.change_type {
                    put = put.change_type();
                }
                let revision = put.set(value)?;
                Ok(StateReply { revision, ..StateReply::default() })
            }
            (Action::Delete, _) => {
                let revision = u64::from(put.delete()?);
                Ok(StateReply { revision, ..StateReply::default() })
            }
            _ => Err(unknown_action(ask)),
        }
    }
}

/// The keys under a prefix.
fn list_keys(state: &State, prefix: &str) -> Result<StateReply> {
    let snapshot = state.snapshot(prefix)?;
    let len = |entry: &StateEntry| entry.value.len() + entry.type_description.len();
    let (mut types, mut len_bytes, mut entries) = (HashSet::new(), 0, Vec::new());
    for entry in snapshot.entries.values() {
        let entry: &Entry = entry;
        let entry = wire::encode_entry(entry, |number| !types.insert(number));
        len_bytes += len(&entry);
        entries.push(entry);
        check_limits(prefix, entries.len(), len_bytes)?;
    }
    Ok(StateReply { revision: snapshot.revision, entries, ..StateReply::default() })
}

/// Checks the limits of one transfer to another host.
///
/// # Errors
/// `LimitReached`.
pub fn check_limits(prefix: &str, keys: usize, len_bytes: usize) -> Result<()> {
    let (what, limit) = match () {
        () if keys > MAX_FEED_KEYS => ("keys", MAX_FEED_KEYS),
        () if keys > 1 && len_bytes > MAX_LEN_BYTES => ("bytes", MAX_LEN_BYTES),
        () => return Ok(()),
    };
    let what = format!("{what} under {prefix:?} for another host");
    Err(Error::limit_reached(what, limit, "request a longer prefix"))
}

fn unknown_action(ask: &StateAsk) -> Error {
    let why = format!("it is {}, which this release does not support", ask.action);
    Error::bad_value("action of a state request", why)
}
