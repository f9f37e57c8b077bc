//! Follows topics as an observer: all their publishers, including those that appear later.
//!
//! `rnet topic echo`, `hz` and `bw` use [`Follower`]. It reads the logs, and sleeps ([`Follower::wait`])
//! until a followed publisher sends or endpoints appear or disappear. A publisher that appeared since the
//! last scan is followed from its first message, so a short-lived one is received completely.

mod event;
mod observed;
mod poll_interval;
mod unread;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rnet_core::limits::MAX_INLINE_LEN_BYTES;
use rnet_core::{Durability, Error, PublisherQos, Result, TopicName, TypeDesc};
use rnet_schema::Schema;
use rnet_shm::channel::observe::{MissedCounts, Observation, Observer};
use rnet_shm::channel::received::Stamp;
use rnet_shm::domain::node::{EndpointKind, Entry, incarnation_of};
use rnet_shm::domain::observers::ObserverFile;
use rnet_shm::os::shortage::is_transient;

use super::types::may_be_readable_later;
use super::{Domain, PublisherInfo, publisher_info};

pub use event::FollowEvent;
pub use observed::{Observed, ObservedMessage};
use poll_interval::PollInterval;
pub use unread::{UnreadCause, UnreadPublisher};

/// How often the domain is scanned for new publishers if no notifications arrive.
const SCAN_INTERVAL: Duration = Duration::from_millis(100);
/// How often the domain is scanned despite notifications: a node that dies sends none.
const RARE_SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// Sleep time of an observer that has no slot to be woken by: no domain exists yet, or too many observers
/// exist.
const UNREGISTERED_SLEEP: Duration = Duration::from_millis(1);

/// Messages taken from one publisher before the next publisher's turn.
const TURN_MESSAGES: u32 = 64;

/// Messages polled between two clock reads, so that a flood does not hide a new publisher.
const POLLS_PER_CLOCK: u32 = 256;

/// The publishers to follow.
enum Selection {
    /// The publishers of one topic.
    Topic(TopicName),
    /// The publishers that a predicate accepts.
    Matching(Box<dyn FnMut(&PublisherInfo) -> bool + Send>),
}

struct Channel {
    observer: Observer,
    node: String,
    /// The folder of its node.
    folder: PathBuf,
    schema: Option<Schema>,
    /// The publisher's slot in our observer file.
    slot: Option<usize>,
    gone: bool,
    /// The log is corrupt, so it is not read again.
    corrupt: bool,
    /// The user was notified that the next message cannot be read at the moment.
    short: bool,
    /// Number and send time of the last large message.
    last_large: Option<(u64, u64)>,
}

/// Follows all publishers of one or more topics without joining the domain.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("follow{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// use std::time::Duration;
/// use rnet::inspect::{Domain, Follower};
///
/// let mut angles = node.publisher::<[u8]>("/angles").transient_local(1).open()?;
/// angles.send(b"0.25")?;
/// # let (dir, id) = (std::env::temp_dir(), node.domain().to_owned());
/// let mut follow = Follower::new(Domain::open(Some(&id), Some(dir), None)?, "/angles", true)?;
/// let mut bytes = Vec::new();
/// while follow.poll(&mut bytes)?.is_none() {
///     follow.wait(Duration::from_secs(1)); // sleeps until a publisher sends
/// }
/// assert_eq!(bytes, b"0.25");
/// # drop((angles, follow));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
pub struct Follower {
    domain: Domain,
    selection: Selection,
    /// Whether to read the messages that publishers keep for late joiners.
    history: bool,
    channels: Vec<Channel>,
    /// Publishers that could not be followed, or are not wanted. They are not tried again.
    refused: Vec<u64>,
    /// Publishers that existed before they were selected. Their earlier messages are not read.
    preexisting: BTreeSet<u64>,
    /// Publishers that cannot be followed at the moment and are tried again. Unreadable ones were reported.
    unread: HashMap<u64, UnreadPublisher>,
    last_scan: Option<Instant>,
    /// The file through which publishers find this observer while it sleeps; created at the first wait.
    file: Option<ObserverFile>,
    /// Whether the next poll scans the domain regardless of the clock.
    scan_due: bool,
    polls: u32,
    turn: usize,
    /// Messages left in the turn of the current publisher.
    turn_left: u32,
    poll_interval: PollInterval,
    /// Missed messages of former publishers, and the total already reported.
    missed_before: MissedCounts,
    reported_lost: u64,
    events: Vec<FollowEvent>,
}

impl Channel {
    /// Time since the previous large message; the average if some messages in between were not seen.
    fn large_every(&mut self, stamp: &Stamp) -> Option<Duration> {
        let (seq, sent_ns) = self.last_large.replace((stamp.seq, stamp.sent_ns))?;
        let since = Duration::from_nanos(stamp.sent_ns.saturating_sub(sent_ns));
        let messages = stamp.seq.saturating_sub(seq).max(1);
        Some(since / u32::try_from(messages).unwrap_or(u32::MAX))
    }

    /// The state of a publisher whose past or future messages cannot be read.
    fn unread(&self) -> UnreadPublisher {
        let topic = &self.observer.meta().topic;
        let hash = TopicName::new(topic).map_or(0, |name| name.hash());
        UnreadPublisher::new(Some(topic.clone()), hash, self.node.clone(), UnreadCause::Unreadable)
    }

    fn observed(&self, stamp: Stamp) -> ObservedMessage<'_> {
        let said = self.observer.meta();
        ObservedMessage {
            stamp,
            meta: self.observer.message_meta(),
            node: &self.node,
            topic: &said.topic,
            type_desc: &said.type_desc,
            qos: &said.qos,
            schema: self.schema.as_ref(),
        }
    }
}

impl Follower {
    /// Follows `topic`, which need not exist yet. With `history`, the messages that transient_local
    /// publishers keep for late joiners come first.
    ///
    /// # Errors
    /// `BadName`.
    pub fn new(domain: Domain, topic: &str, history: bool) -> Result<Follower> {
        Ok(Self::of(domain, Selection::Topic(TopicName::new(topic)?), history))
    }

    /// Follows the publishers of any topic that `takes` accepts, for a recorder. `takes` is called once per
    /// publisher.
    ///
    /// Publishers do not wake such a follower. A wait ends after 5 ms, or sooner if endpoints appear or
    /// disappear, while publishers are new, while logs fill fast, or while large messages follow each other
    /// closely.
    pub fn matching(
        domain: Domain,
        history: bool,
        takes: impl FnMut(&PublisherInfo) -> bool + Send + 'static,
    ) -> Follower {
        Self::of(domain, Selection::Matching(Box::new(takes)), history)
    }

    /// Calls the function of [`Follower::matching`] once more for each publisher that is not followed, for a
    /// caller whose selection has changed. Stops following publishers that `keep` rejects by topic, type and
    /// QoS. A publisher that existed before is followed from here on, plus its messages for late joiners if
    /// history is wanted. This includes one that was followed, was rejected, and is accepted again.
    pub fn reselect(&mut self, mut keep: impl FnMut(&str, &TypeDesc, &PublisherQos) -> bool) {
        for channel in &mut self.channels {
            let said = channel.observer.meta();
            if !keep(&said.topic, &said.type_desc, &said.qos) {
                self.preexisting.insert(channel.observer.publisher());
                self.missed_before.add_all(&channel.observer.missed());
                channel.corrupt = true;
            }
        }
        self.channels.retain(|channel| !channel.corrupt);
        self.preexisting.extend(self.refused.drain(..));
        (self.scan_due, self.polls, self.turn, self.turn_left) = (true, 0, 0, 0);
    }

    fn of(domain: Domain, selection: Selection, history: bool) -> Follower {
        Follower {
            domain,
            selection,
            history,
            channels: Vec::new(),
            refused: Vec::new(),
            preexisting: BTreeSet::new(),
            unread: HashMap::new(),
            last_scan: None,
            file: None,
            scan_due: false,
            polls: 0,
            turn: 0,
            turn_left: 0,
            poll_interval: PollInterval::default(),
            missed_before: MissedCounts::default(),
            reported_lost: 0,
            events: Vec::new(),
        }
    }

    /// The domain, as of the last inspection.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Ids of the followed publishers. A former publisher stays listed until all its messages have been
    /// polled.
    pub fn followed(&self) -> impl Iterator<Item = u64> {
        self.channels.iter().map(|channel| channel.observer.publisher())
    }

    /// How many publishers are followed now.
    pub fn publisher_count(&self) -> usize {
        self.channels.len()
    }

    /// Names of the nodes of the followed publishers, in discovery order.
    pub fn publishers(&self) -> impl Iterator<Item = &str> {
        self.channels.iter().map(|channel| channel.node.as_str())
    }

    /// Publishers that exist, or existed at the last inspection, and could not be followed yet.
    pub fn unread(&self) -> impl Iterator<Item = &UnreadPublisher> {
        self.unread.values()
    }

    /// Messages missed so far, by cause: the observer was too slow.
    pub fn missed(&self) -> MissedCounts {
        let mut all = self.missed_before;
        self.channels.iter().for_each(|channel| all.add_all(&channel.observer.missed()));
        all
    }

    /// Messages missed since the last call.
    pub fn take_lost(&mut self) -> u64 {
        let all = self.missed().total();
        all - std::mem::replace(&mut self.reported_lost, all)
    }

    /// Sleeps until messages may be available, until `limit` has passed, or until a signal arrives. It slows
    /// no publisher: see docs/design/observers.md.
    pub fn wait(&mut self, limit: Duration) {
        let polls = matches!(self.selection, Selection::Matching(_));
        // Without notifications, an observer sees at its next scan that its slot is gone.
        let is_registered = self.file.as_ref().is_some_and(|file| polls || file.exists());
        if !is_registered && !self.register() {
            std::thread::sleep(limit.min(UNREGISTERED_SLEEP));
            return;
        }
        if polls {
            let pause = limit.min(self.poll_interval.next());
            if let Some(file) = &mut self.file {
                file.sleep_between_scans(pause);
            }
            // The next poll checks for endpoint changes and reads the clock.
            self.polls = 0;
            return;
        }
        let Some(file) = &mut self.file else { return };
        let since = self.last_scan.map_or(RARE_SCAN_INTERVAL, |at| at.elapsed());
        let limit = limit.min(RARE_SCAN_INTERVAL.saturating_sub(since));
        let channels = &self.channels;
        file.sleep(
            limit,
            || channels.iter().any(|channel| channel.observer.needs_barrier()),
            || channels.iter().any(|channel| channel.observer.is_ready()),
        );
        // The next poll reads the clock.
        self.polls = 0;
    }

    /// Sets the status text of this observer, at most 64 KiB, and replaces the previous one.
    /// [`observer_statuses`](super::observer_statuses) reads it; it is removed with this follower. `false` if
    /// it cannot be stored: no domain exists, there are too many observers, or no space is left.
    pub fn set_status(&mut self, text: &str) -> bool {
        if self.file.is_none() && !self.register() {
            return false;
        }
        self.file.as_ref().is_some_and(|file| file.publish_status(text).is_ok())
    }

    /// Registers as an observer of the domain, if the domain exists.
    fn register(&mut self) -> bool {
        let Some(registry) = &self.domain.registry else { return false };
        self.file = ObserverFile::create(registry.domain()).ok();
        let Some(file) = &mut self.file else { return false };
        if let Selection::Topic(_) = self.selection {
            for channel in &mut self.channels {
                channel.slot = file.follow(channel.observer.publisher(), &channel.folder).ok();
            }
        }
        let peers = registry.peers().iter();
        file.greet(peers.map(|(id, peer)| (peer.node.folder(), *id)));
        // A scan finds messages sent before the nodes knew this observer.
        self.scan_due = true;
        true
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<FollowEvent> {
        std::mem::take(&mut self.events)
    }

    /// The next message of any publisher, in turn; `None` if no message is available. It replaces the content
    /// of `bytes`. Order is kept per publisher.
    ///
    /// # Errors
    /// `NoPermission`, `LayoutVersion`, `Io` for the domain's directory.
    pub fn poll(&mut self, bytes: &mut Vec<u8>) -> Result<Option<ObservedMessage<'_>>> {
        loop {
            match self.next(bytes)? {
                Some((at, Observation::Message(stamp))) => {
                    return Ok(Some(self.channels[at].observed(stamp)));
                }
                // The observer counts these.
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next message or, in its place, the messages that were missed. As [`Follower::poll`], but each
    /// message of a publisher appears exactly once: as a message or as missed.
    ///
    /// # Errors
    /// As [`Follower::poll`].
    pub fn poll_all(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Observed<'_>>> {
        Ok(self.next(bytes)?.and_then(|(at, seen)| {
            let channel = &self.channels[at];
            match seen {
                Observation::Message(stamp) => Some(Observed::Message(channel.observed(stamp))),
                Observation::Missed(missed) => {
                    let (topic, node) = (&*channel.observer.meta().topic, &*channel.node);
                    Some(Observed::Missed { missed, topic, node })
                }
                _ => None,
            }
        }))
    }

    /// The next message or missed messages, and their publisher.
    fn next(&mut self, bytes: &mut Vec<u8>) -> Result<Option<(usize, Observation)>> {
        self.scan_if_due()?;
        let count = self.channels.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            let Some(seen) = self.poll_channel(at, bytes) else { continue };
            if step > 0 || self.turn_left == 0 {
                self.turn_left = match self.selection {
                    Selection::Topic(_) => 1,
                    Selection::Matching(_) => TURN_MESSAGES,
                };
            }
            self.turn_left -= 1;
            self.poll_interval.message_found(self.channels[at].observer.fill());
            if bytes.len() > MAX_INLINE_LEN_BYTES
                && let Observation::Message(stamp) = &seen
            {
                self.poll_interval.large_message_found(self.channels[at].large_every(stamp));
            }
            self.turn = if self.turn_left == 0 { at + 1 } else { at };
            return Ok(Some((at, seen)));
        }
        // Idle: a good moment to remove channels that have nothing more to read.
        self.polls = 0;
        self.drop_finished();
        Ok(None)
    }

    fn poll_channel(&mut self, at: usize, bytes: &mut Vec<u8>) -> Option<Observation> {
        let channel = &mut self.channels[at];
        match channel.observer.poll(bytes) {
            Observation::Message(stamp) => {
                channel.short = false;
                Some(Observation::Message(stamp))
            }
            Observation::Missed(missed) => Some(Observation::Missed(missed)),
            Observation::Nothing => None,
            Observation::Shortage(error) => {
                // Reported once; the next poll tries again.
                if !std::mem::replace(&mut channel.short, true) {
                    let (node, why) = (channel.node.clone(), error.to_string());
                    self.events.push(FollowEvent::Unreadable(node, why));
                }
                None
            }
            Observation::Corrupt(what) => {
                if !std::mem::replace(&mut channel.corrupt, true) {
                    self.refused.push(channel.observer.publisher());
                    let event = FollowEvent::Unreadable(channel.node.clone(), what.to_owned());
                    self.events.extend([event, FollowEvent::Unread(channel.unread())]);
                }
                None
            }
        }
    }

    fn drop_finished(&mut self) {
        let (events, missed, file) = (&mut self.events, &mut self.missed_before, &mut self.file);
        self.channels.retain_mut(|channel| {
            if channel.gone && !channel.corrupt {
                // The next message exists, and could not be read until now.
                events.extend(channel.short.then(|| FollowEvent::Unread(channel.unread())));
                events.push(FollowEvent::Gone(channel.node.clone()));
            }
            let keep = !channel.gone && !channel.corrupt;
            if !keep {
                missed.add_all(&channel.observer.missed());
                if let (Some(file), Some(slot)) = (file.as_mut(), channel.slot) {
                    file.leave(slot);
                }
            }
            keep
        });
    }

    fn scan_if_due(&mut self) -> Result<()> {
        if self.polls > 0 {
            self.polls -= 1;
            return Ok(());
        }
        self.polls = POLLS_PER_CLOCK;
        let told = self.file.as_mut().map(ObserverFile::endpoints_changed);
        let interval = if told.is_some() { RARE_SCAN_INTERVAL } else { SCAN_INTERVAL };
        let due = self.last_scan.is_none_or(|at| at.elapsed() >= interval);
        if due || told == Some(true) || std::mem::take(&mut self.scan_due) {
            self.scan()?;
        }
        Ok(())
    }

    /// Scans the domain for publishers that have appeared or disappeared.
    fn scan(&mut self) -> Result<()> {
        let first = self.last_scan.is_none();
        self.poll_interval.domain_scanned();
        self.last_scan = Some(Instant::now());
        self.file.take_if(|file| !file.exists());
        self.domain.refresh()?;
        let mut here = BTreeSet::new();
        let mut new = Vec::new();
        let mut known: BTreeSet<u64> = self.refused.iter().copied().collect();
        known.extend(self.channels.iter().map(|channel| channel.observer.publisher()));
        let maybe_wanted = |entry: &Entry| match &self.selection {
            Selection::Topic(topic) => entry.topic_hash == topic.hash(),
            Selection::Matching(_) => true,
        };
        for peer in self.domain.registry.iter().flat_map(|r| r.peers().values()) {
            for entry in peer.node.entries() {
                if entry.kind != EndpointKind::Publisher || !maybe_wanted(entry) {
                    continue;
                }
                here.insert(entry.id);
                if !known.contains(&entry.id) {
                    let path = entry.path(peer.node.folder());
                    let folder = peer.node.folder().to_owned();
                    new.push((*entry, path, folder, peer.node.meta().name.clone()));
                }
            }
        }
        for channel in &mut self.channels {
            channel.gone = !here.contains(&channel.observer.publisher());
        }
        // The ids of nodes that are gone need not be kept.
        let gone = self.unread.extract_if(|id, _| !here.contains(id));
        self.events.extend(gone.map(|(_, unread_publisher)| FollowEvent::Unread(unread_publisher)));
        let nodes: BTreeSet<u64> = here.iter().map(|id| incarnation_of(*id)).collect();
        self.refused.retain(|id| nodes.contains(&incarnation_of(*id)));
        self.preexisting.retain(|id| here.contains(id));
        let Some(registry) = &self.domain.registry else { return Ok(()) };
        let dir = registry.domain();
        for (entry, path, folder, node) in new {
            // The topic, and the node that it represents, once they are known.
            let mut said = match &self.selection {
                Selection::Topic(topic) => (Some(topic.as_str().to_owned()), node.clone()),
                Selection::Matching(_) => (None, node.clone()),
            };
            let opened = publisher_info(&entry, &path, &node).and_then(|info| {
                let is_wanted = match &mut self.selection {
                    Selection::Topic(topic) => info.topic == topic.as_str(),
                    Selection::Matching(takes) => takes(&info),
                };
                if !is_wanted {
                    return Ok(None);
                }
                said = (Some(info.topic.clone()), info.node.clone());
                let is_old = first || self.preexisting.contains(&entry.id);
                let kept = match info.qos.durability {
                    Durability::TransientLocal { depth } if is_old && self.history => depth.into(),
                    _ => 0,
                };
                // At the first scan, earlier messages are not read. In later scans, a new publisher did not
                // exist at the previous scan, so all its messages are read.
                let from_oldest = !is_old || kept > 0;
                let from_seq = if is_old { info.sent.saturating_sub(kept) } else { 0 };
                let mut observer = Observer::open(path, entry.id, from_oldest)?;
                if from_oldest {
                    observer.expect_from(from_seq);
                }
                let schema = match self.domain.schemas.read_protobuf(&folder, &info.type_desc) {
                    Ok(schema) => schema,
                    // Tried again with the rest; if its node is leaving, it will be gone.
                    Err(error) if may_be_readable_later(&error, dir, &folder) => return Err(error),
                    // Its bytes can be followed nevertheless.
                    Err(error) => {
                        let event = FollowEvent::Untyped(info.node.clone(), error.to_string());
                        self.events.push(event);
                        None
                    }
                };
                // For a proxy, the node that it represents.
                let (node, gone, corrupt, short) = (info.node, false, false, false);
                let (slot, last_large) = (None, None);
                Ok(Some(Channel {
                    observer,
                    node,
                    folder,
                    schema,
                    slot,
                    gone,
                    corrupt,
                    short,
                    last_large,
                }))
            });
            let unread_publisher =
                |why| UnreadPublisher::new(said.0, entry.topic_hash, said.1, why);
            match opened {
                Ok(Some(mut channel)) => {
                    // A publisher that cannot be listed there is polled once a second.
                    if let (Selection::Topic(_), Some(file)) = (&self.selection, &mut self.file) {
                        channel.slot = file.follow(entry.id, &channel.folder).ok();
                    }
                    self.unread.remove(&entry.id);
                    self.poll_interval.publisher_found();
                    self.events.push(FollowEvent::Joined(channel.node.clone()));
                    self.channels.push(channel);
                }
                // Rejected, or of another topic with the same hash.
                Ok(None) => {
                    self.unread.remove(&entry.id);
                    self.refused.push(entry.id);
                }
                // It closed during the scan. At the first scan, its earlier messages are not read.
                Err(Error::Io {
                    source: rnet_core::OsError { kind: std::io::ErrorKind::NotFound, .. },
                    ..
                }) if first => {}
                Err(Error::Io {
                    source: rnet_core::OsError { kind: std::io::ErrorKind::NotFound, .. },
                    ..
                }) => {
                    let closed = unread_publisher(UnreadCause::Closed);
                    self.unread.entry(entry.id).or_insert(closed);
                }
                Err(error) => {
                    let unread_publisher = unread_publisher(UnreadCause::Unreadable);
                    let mut events = vec![FollowEvent::Unreadable(node, error.to_string())];
                    if !is_transient(&error) {
                        self.refused.push(entry.id);
                        self.unread.remove(&entry.id);
                        events.push(FollowEvent::Unread(unread_publisher));
                    } else if self.unread.insert(entry.id, unread_publisher.clone())
                        == Some(unread_publisher)
                    {
                        // Already reported.
                        continue;
                    }
                    self.events.append(&mut events);
                }
            }
        }
        Ok(())
    }
}

rnet_node::debug_by!([] Follower, "Follower", |this| "publishers": this.channels.len());
