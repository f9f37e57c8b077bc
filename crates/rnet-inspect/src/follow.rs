//! Following topics unseen: all their publishers, those that come later included.
//!
//! [`Follower`] is what `rnet topic echo`, `hz` and `bw` stand on. It reads the logs, and sleeps
//! ([`Follower::wait`]) until a publisher that it follows sends, or endpoints come or go. A publisher that
//! came since the last look is followed from its first message, so that a short-lived one is heard as a
//! whole.

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

/// How often the domain is looked at for new publishers where nobody tells of them.
const SCAN_INTERVAL: Duration = Duration::from_millis(100);
/// How often it is looked at all the same: a node that dies tells nobody.
const RARE_SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// How long an observer sleeps that nobody can wake: there is no domain yet, or there are too many.
const UNREGISTERED_SLEEP: Duration = Duration::from_millis(1);

/// Messages that one publisher gives before the next has its turn, where many are followed.
const TURN_MESSAGES: u32 = 64;

/// Messages polled between two glances at the clock: a flood must not hide a new publisher.
const POLLS_PER_CLOCK: u32 = 256;

/// Which publishers are followed.
enum Selection {
    /// Those of a topic.
    Topic(TopicName),
    /// Those that a function takes.
    Matching(Box<dyn FnMut(&PublisherInfo) -> bool + Send>),
}

struct Channel {
    observer: Observer,
    node: String,
    /// The folder of its node.
    folder: PathBuf,
    schema: Option<Schema>,
    /// Where our file names the publisher.
    slot: Option<usize>,
    gone: bool,
    /// Its log says nothing that makes sense any more, so it is not asked again.
    corrupt: bool,
    /// The user was told that its next message cannot be read for now.
    short: bool,
    /// Number of its last large message, and when that was sent.
    last_large: Option<(u64, u64)>,
}

/// Follows all publishers of one topic, or of many, without taking part.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("follow{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// use std::time::Duration;
/// use rnet::inspect::{Domain, Follower};
///
/// let mut angles = node.publisher_with::<[u8]>("/angles", rnet::PublisherOptions::new().transient_local(1))?;
/// angles.send(b"0.25")?;
/// # let (dir, id) = (std::env::temp_dir(), node.domain().to_owned());
/// let mut follow = Follower::new(Domain::open(Some(&id), Some(dir), None)?, "/angles", true)?;
/// let mut bytes = Vec::new();
/// while follow.poll(&mut bytes)?.is_none() {
///     follow.wait(Duration::from_secs(1)); // sleeps until somebody sends
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
    /// Whether what publishers keep for late joiners is wanted.
    history: bool,
    channels: Vec<Channel>,
    /// Publishers that could not be followed, or are not wanted; not tried again.
    refused: Vec<u64>,
    /// Publishers that were there before somebody wanted them: of these the past is the past.
    preexisting: BTreeSet<u64>,
    /// Publishers that cannot be followed for now, and are tried again. Of those that are unreadable the user was told.
    unread: HashMap<u64, UnreadPublisher>,
    last_scan: Option<Instant>,
    /// By what publishers find us when we sleep; made at the first wait.
    file: Option<ObserverFile>,
    /// Whether the next poll is to look whatever the clock says.
    scan_due: bool,
    polls: u32,
    turn: usize,
    /// Messages that the publisher whose turn it is may give yet.
    turn_left: u32,
    poll_interval: PollInterval,
    /// What was missed of publishers that are gone, and how much of all was told.
    missed_before: MissedCounts,
    reported_lost: u64,
    events: Vec<FollowEvent>,
}

impl Channel {
    /// How long after the large message before it this one was sent, on the average if some between them were not seen.
    fn large_every(&mut self, stamp: &Stamp) -> Option<Duration> {
        let (seq, sent_ns) = self.last_large.replace((stamp.seq, stamp.sent_ns))?;
        let since = Duration::from_nanos(stamp.sent_ns.saturating_sub(sent_ns));
        let messages = stamp.seq.saturating_sub(seq).max(1);
        Some(since / u32::try_from(messages).unwrap_or(u32::MAX))
    }

    /// What it has sent, or goes on to send, cannot be read.
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
    /// Follows `topic`, which need not exist yet. With `history`, the messages that
    /// transient_local publishers keep for late joiners come first.
    ///
    /// # Errors
    /// `BadName`.
    pub fn new(domain: Domain, topic: &str, history: bool) -> Result<Follower> {
        Ok(Self::of(domain, Selection::Topic(TopicName::new(topic)?), history))
    }

    /// Follows the publishers that `takes` takes, of any topics, for a recorder. It is asked once about each.
    ///
    /// No send rings one that follows so: a wait ends after 5 ms, or sooner where endpoints come or go, while publishers are
    /// new, logs fill fast, or large messages follow each other closely.
    pub fn matching(
        domain: Domain,
        history: bool,
        takes: impl FnMut(&PublisherInfo) -> bool + Send + 'static,
    ) -> Follower {
        Self::of(domain, Selection::Matching(Box::new(takes)), history)
    }

    /// Has the function of [`Follower::matching`] asked once more about each publisher that is not followed, for one whose
    /// wishes have changed, and lets go of those that it is to `keep` no more, by topic, type and what they offer. One
    /// that was there before is followed from here on, with what it keeps for late joiners if history is wanted: also
    /// one that was followed, was not kept, and is taken again.
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

    /// Ids of the followed publishers. A former publisher stays listed until all its messages have been polled.
    pub fn followed(&self) -> impl Iterator<Item = u64> {
        self.channels.iter().map(|channel| channel.observer.publisher())
    }

    /// How many publishers are followed now.
    pub fn publisher_count(&self) -> usize {
        self.channels.len()
    }

    /// Names of the nodes of the publishers that are followed now, in the order in which they were found.
    pub fn publishers(&self) -> impl Iterator<Item = &str> {
        self.channels.iter().map(|channel| channel.node.as_str())
    }

    /// Publishers that exist, or existed at the last inspection, and could not be followed yet.
    pub fn unread(&self) -> impl Iterator<Item = &UnreadPublisher> {
        self.unread.values()
    }

    /// Messages that passed unseen so far, by cause: the observer was too slow.
    pub fn missed(&self) -> MissedCounts {
        let mut all = self.missed_before;
        self.channels.iter().for_each(|channel| all.add_all(&channel.observer.missed()));
        all
    }

    /// Messages that passed unseen since the last call.
    pub fn take_lost(&mut self) -> u64 {
        let all = self.missed().total();
        all - std::mem::replace(&mut self.reported_lost, all)
    }

    /// Sleeps until there may be something to poll, for `limit`, or until a signal comes. No publisher
    /// is slowed by it: see docs/design/observers.md.
    pub fn wait(&mut self, limit: Duration) {
        let polls = matches!(self.selection, Selection::Matching(_));
        // One that nobody rings sees at its next look that its place is gone.
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
            // The next poll looks at the bell of endpoints, and at the clock.
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
        // The next poll looks at the clock.
        self.polls = 0;
    }

    /// Tells those who look how it is going, in place of what was told before: a text of 64 KiB at most, which
    /// [`observer_statuses`](super::observer_statuses) reads, and which goes with this. `false` where it has no place: there
    /// is no domain yet, there are too many observers, or no room.
    pub fn set_status(&mut self, text: &str) -> bool {
        if self.file.is_none() && !self.register() {
            return false;
        }
        self.file.as_ref().is_some_and(|file| file.publish_status(text).is_ok())
    }

    /// Takes a place among the observers of the domain, if there is one.
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
        // What came before the nodes knew us is found by a look of our own.
        self.scan_due = true;
        true
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<FollowEvent> {
        std::mem::take(&mut self.events)
    }

    /// The next message of any publisher, in turn; `None` if no message is available. Its bytes replace the content of
    /// `bytes`. Order is kept per publisher.
    ///
    /// # Errors
    /// `NoPermission`, `LayoutVersion`, `Io` for the domain's directory.
    pub fn poll(&mut self, bytes: &mut Vec<u8>) -> Result<Option<ObservedMessage<'_>>> {
        loop {
            match self.next(bytes)? {
                Some((at, Observation::Message(stamp))) => {
                    return Ok(Some(self.channels[at].observed(stamp)));
                }
                // Counted by the observer.
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next message or, in its place, what was missed: as [`Follower::poll`], and each message of a publisher from the
    /// first that is told of is in exactly one of both.
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

    /// What is next, a message or what was missed, and of which publisher.
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
        // Quiet: a good moment to let go of those that have nothing more to say.
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
                // Told once; the next poll tries again.
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
                // Its next message is there, and there was no way to read it until now.
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

    /// Looks at the domain for publishers that have come or gone.
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
        // Numbers of nodes that are gone for good need not be remembered.
        let gone = self.unread.extract_if(|id, _| !here.contains(id));
        self.events.extend(gone.map(|(_, unread_publisher)| FollowEvent::Unread(unread_publisher)));
        let nodes: BTreeSet<u64> = here.iter().map(|id| incarnation_of(*id)).collect();
        self.refused.retain(|id| nodes.contains(&incarnation_of(*id)));
        self.preexisting.retain(|id| here.contains(id));
        let Some(registry) = &self.domain.registry else { return Ok(()) };
        let dir = registry.domain();
        for (entry, path, folder, node) in new {
            // Its topic, and the node for which it stands, once they are known.
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
                // At the first look the past is the past; later, whoever is new was not there
                // at the last look, and everything it sent is news.
                let from_oldest = !is_old || kept > 0;
                let from_seq = if is_old { info.sent.saturating_sub(kept) } else { 0 };
                let mut observer = Observer::open(path, entry.id, from_oldest)?;
                if from_oldest {
                    observer.expect_from(from_seq);
                }
                let schema = match self.domain.schemas.read_protobuf(&folder, &info.type_desc) {
                    Ok(schema) => schema,
                    // Looked at again with the rest; if its node is leaving, it will be gone.
                    Err(error) if may_be_readable_later(&error, dir, &folder) => return Err(error),
                    // Its bytes can be followed all the same.
                    Err(error) => {
                        let event = FollowEvent::Untyped(info.node.clone(), error.to_string());
                        self.events.push(event);
                        None
                    }
                };
                // Of a proxy, the node for which it stands.
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
                    // One that cannot be named there is looked at once a second.
                    if let (Selection::Topic(_), Some(file)) = (&self.selection, &mut self.file) {
                        channel.slot = file.follow(entry.id, &channel.folder).ok();
                    }
                    self.unread.remove(&entry.id);
                    self.poll_interval.publisher_found();
                    self.events.push(FollowEvent::Joined(channel.node.clone()));
                    self.channels.push(channel);
                }
                // Not wanted, or of another topic of the same hash.
                Ok(None) => {
                    self.unread.remove(&entry.id);
                    self.refused.push(entry.id);
                }
                // It closed while we looked. At the first look what it sent is the past.
                Err(Error::Io { source_kind: std::io::ErrorKind::NotFound, .. }) if first => {}
                Err(Error::Io { source_kind: std::io::ErrorKind::NotFound, .. }) => {
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
                        // The user was told.
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
