//! The home of a host's keys: what answers for them to other hosts (docs/design/state-hosts.md).
//!
//! Two services, one to read and one to write, and a feed for each prefix that somebody follows: a topic on which
//! a watch of the state tells every change, numbered, and four times a second that there was none. The state is
//! opened with the first question, so that a host that nobody asks pays for two services.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::{Change, Entry, State, WatchHandle, transfer};
use rnet_core::{Error, OnFull, Result};
use rnet_node::sync::lock;
use rnet_shm::os::random::random_u64;

use super::wire;
use crate::msgs::state_ask::Action;
use crate::msgs::{StateAsk, StateChange, StateEntry, StateReply};
use rnet_call::{Service, ServiceBuilder};
use rnet_node::{NodeHandle, Publisher, PublisherOptions, Timer, TimerOptions};

/// How often a feed says something at least: a replica that hears nothing for longer knows that it is behind.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
/// After so many beats without a subscriber a feed ends.
const MAX_IDLE_HEARTBEATS: u32 = 40;
/// Prefixes of a host that others follow.
pub const MAX_FEEDS: usize = 256;
/// Keys of one list or replica.
pub const MAX_KEYS: usize = 65_536;
/// Bytes of the values of one list or replica, but for a single one, which may be as long as a value is.
pub const MAX_LEN_BYTES: usize = 64 << 20;
/// Questions that wait while others are answered.
const BACKLOG: usize = 1024;
/// Writes at once: one that waits for the disk does not hold up those that do not.
const MAX_CONCURRENT_WRITES: usize = 4;

/// Answers for the keys of this host until it is dropped; made by [`serve`].
#[must_use = "other hosts reach the state of this one as long as this is held"]
pub struct Home {
    _services: [Service; 2],
    _feeds: Arc<Feeds>,
}

/// Answers other hosts for the keys of this host, which they know as `host`. The node's time is to be the host's:
/// in a simulated one that stands, feeds would be silent.
///
/// # Errors
/// As `rnet::Node::service`.
pub fn serve(
    node: &NodeHandle,
    open_state: impl Fn() -> Result<State> + Send + Sync + 'static,
    host: &str,
) -> Result<Home> {
    let feeds = Arc::new_cyclic(|this| Feeds {
        node: node.clone(),
        open_state: Box::new(open_state),
        host: host.to_owned(),
        feeds: Mutex::default(),
        beat: Mutex::default(),
        this: this.clone(),
    });
    let (reading, writing) = (feeds.clone(), feeds.clone());
    let read = ServiceBuilder::<StateAsk, StateReply>::new(node, &wire::read_service(host))
        .backlog(BACKLOG)
        .serve(move |ask| Ok(to_reply(reading.read(ask))))?;
    let write = ServiceBuilder::<StateAsk, StateReply>::new(node, &wire::write_service(host))
        .backlog(BACKLOG)
        .at_once(MAX_CONCURRENT_WRITES)
        .serve(move |ask| Ok(to_reply(writing.write(ask))))?;
    Ok(Home { _services: [read, write], _feeds: feeds })
}

fn to_reply(done: Result<StateReply>) -> StateReply {
    done.unwrap_or_else(|error| StateReply {
        refusal: Some(wire::encode_error(&error)),
        ..StateReply::default()
    })
}

/// What tells the changes below one prefix.
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
    /// Types that were told since somebody has asked last.
    types: HashSet<u64>,
}

impl FeedSender {
    fn send_change(&mut self, change: &Change) {
        // It is in the keys that an asker gets.
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

    /// A message that does not go out leaves its number out: who follows misses it there, and asks anew.
    fn send(&mut self, entry: Option<StateEntry>, skipped: Option<u64>) {
        let change = StateChange { feed: self.number, seq: self.seq, entry, skipped };
        let _ = self.publisher.send(&change);
    }
}

struct Feeds {
    node: NodeHandle,
    open_state: Box<dyn Fn() -> Result<State> + Send + Sync>,
    host: String,
    feeds: Mutex<HashMap<String, Feed>>,
    /// From the first feed on: a home that nobody follows wakes nobody.
    beat: Mutex<Option<Timer>>,
    this: Weak<Feeds>,
}

impl Feeds {
    fn state(&self) -> Result<State> {
        (self.open_state)()
    }

    fn read(&self, ask: &StateAsk) -> Result<StateReply> {
        let state = self.state()?;
        match ask.action() {
            Action::Get => {
                let (revision, entry) = (state.revision(), state.entry(&ask.key)?);
                let entries =
                    entry.iter().map(|entry| wire::encode_entry(entry, |_| false)).collect();
                Ok(StateReply { revision, entries, ..StateReply::default() })
            }
            Action::List => list_keys(&state, &ask.key),
            Action::Follow => self.follow(&state, &ask.key),
            Action::Params => {
                let (descriptions, values) = transfer::params(&state)?;
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

    fn follow(&self, state: &State, prefix: &str) -> Result<StateReply> {
        let mut feeds = lock(&self.feeds);
        if !feeds.contains_key(prefix) {
            if feeds.len() >= MAX_FEEDS {
                return Err(Error::limit_reached(
                    "state prefixes that other hosts follow",
                    MAX_FEEDS,
                    "follow one common prefix",
                ));
            }
            let feed = self.open_feed(state, prefix)?;
            feeds.insert(prefix.to_owned(), feed);
        }
        let feed = feeds.get_mut(prefix).expect("it was put there");
        feed.idle_heartbeats = 0;
        let (number, sender) = (feed.number, feed.sender.clone());
        drop(feeds);
        // Before the keys are read: what is told afterwards describes its types to the one who asks now.
        let seq = {
            let mut sender = lock(&sender);
            sender.types.clear();
            sender.seq
        };
        let (topic, keys) = (wire::feed_topic(&self.host, number), list_keys(state, prefix)?);
        Ok(StateReply { topic, feed: number, seq, ..keys })
    }

    fn open_feed(&self, state: &State, prefix: &str) -> Result<Feed> {
        let number = random_u64();
        // The newest one is kept for who comes late: it says how far the feed is.
        let options = PublisherOptions::new().reliable(OnFull::Refuse).transient_local(1);
        let publisher = self.node.publisher(&wire::feed_topic(&self.host, number), options)?;
        let sender = FeedSender { publisher, number, seq: 0, types: HashSet::new() };
        let sender = Arc::new(Mutex::new(sender));
        lock(&sender).send(None, None);
        let feed_sender = sender.clone();
        let watch = state.watch(prefix)?.on(move |change| lock(&feed_sender).send_change(&change));
        let mut beat = lock(&self.beat);
        if beat.is_none() {
            let this = self.this.clone();
            let timer =
                Timer::start(&self.node.core, HEARTBEAT_INTERVAL, TimerOptions::new(), move |_| {
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
        for (prefix, feed) in feeds.iter_mut() {
            let mut sender = lock(&feed.sender);
            match sender.publisher.subscriber_count() {
                0 => feed.idle_heartbeats += 1,
                _ => {
                    feed.idle_heartbeats = 0;
                    sender.send(None, None);
                }
            }
            if feed.idle_heartbeats > MAX_IDLE_HEARTBEATS {
                over.push(prefix.clone());
            }
        }
        let over: Vec<Option<Feed>> = over.iter().map(|prefix| feeds.remove(prefix)).collect();
        drop(feeds);
        drop(over);
    }

    fn write(&self, ask: &StateAsk) -> Result<StateReply> {
        let state = self.state()?;
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

/// Whether as much crosses to another host at a time.
///
/// # Errors
/// `LimitReached`.
pub fn check_limits(prefix: &str, keys: usize, len_bytes: usize) -> Result<()> {
    let (what, limit) = match () {
        () if keys > MAX_KEYS => ("keys", MAX_KEYS),
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
