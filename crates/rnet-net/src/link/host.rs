//! Another host: what it has, what stands for it here, and what crosses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rnet::trace::node_of;
use rnet::{
    EndpointQos, Error, Lane, MatchEvent, PublisherOptions, PublisherQos, Reliability, Result,
    Subscriber, SubscriberOptions, limits,
};

use crate::config::Direction;
use crate::stream::{Limits, Stream};
use crate::transport::{Presence, Transport};
use crate::wire::{Item, Want};

mod address;
mod crossing;
mod ending;
mod heard;
mod later;
mod leaving;
mod name;
pub use name::said;
mod nodes;
mod others;
mod owner;
mod types;

use address::Addresses;
pub use crossing::{Counts, Reason};
use ending::Ending;
use heard::Heard;
use later::Later;

use super::Shared;
use super::directory::{Announce, Described, Hello, Qos, Remote};
use super::event::Event;
use super::known::Known;
use super::lane::{LaneState, Say, Sending};
use super::lock::lock;
use super::proxy::{CREDIT_LEN_BYTES, Proxy};

/// For how long those are waited for that have read a publisher before its host was lost.
const GRACE: Duration = Duration::from_millis(500);
/// Endpoints of one host that are believed.
const MAX_ENDPOINTS: usize = 1 << 16;

/// Hosts of which another host tells that are believed.
const MAX_OTHERS: usize = 64;

/// A publisher there, and its proxy here.
struct RemotePublisher {
    remote: Remote,
    proxy: Arc<Mutex<Proxy>>,
    channel: Option<u32>,
    /// Whether the channel was asked for with reliability.
    reliable: bool,
    /// Whether messages flow, so that subscriptions may be admitted.
    flows: bool,
    /// It is gone there, lost if `true`, and its channel has not ended yet.
    leaving: Option<bool>,
    /// Its channel has ended there, and something of it waits for room here.
    over: bool,
    /// It has ended there while something of it waited, by the death of its process if `true`.
    ended: Option<bool>,
    /// It was lost here with its host before, which has left its last will.
    was_lost: bool,
    opened: Instant,
}

/// A channel that the other host wants of us.
struct Given {
    wanted: Want,
    /// Subscriptions there that get what it carries.
    served: BTreeSet<u64>,
}

pub struct Host {
    shared: Arc<Shared>,
    pub presence: Presence,
    pub hello: Option<Hello>,
    /// What it is called here: another name than each other host has.
    name: String,
    /// What it calls itself: the rules go by that.
    said: String,
    pub lanes: [Arc<LaneState>; 2],
    session: Option<u64>,
    heard: Heard,
    addresses: Addresses,
    /// For how long it may be silent.
    lost_after: Duration,
    publishers: BTreeMap<u64, RemotePublisher>,
    subscriptions: BTreeMap<u64, (Remote, Subscriber<[u8]>)>,
    nodes: nodes::HostNodes,
    others: others::Others,
    /// Topics of publishers that a rule of this host keeps out.
    denied: BTreeMap<u64, String>,
    /// Endpoints for which there was no room here.
    later: Later,
    /// How many of its topics its rules keep from this host.
    withheld: u64,
    /// Endpoints whose type was asked for.
    unknown: types::Unknown,
    /// Bytes of the types that it has told of.
    types_len_bytes: usize,
    /// What it did that it was not heard for a while, before it is told.
    pub refused: Option<String>,
    /// Whether it has told of its endpoints in this session.
    announced: bool,
    /// Those of which it has told, while it goes on with them in the next document, and the nodes of those that are there.
    told: Option<(BTreeSet<u64>, BTreeSet<u64>)>,
    given: HashMap<(Lane, u32), Given>,
    /// Publishers that it was given in this session.
    given_once: BTreeSet<u64>,
    /// Publishers that have ended, and are there for it.
    ending: BTreeMap<u64, Ending>,
    /// What it wants again of the time before, whose reader is handed over.
    pending_wants: HashMap<(Lane, u32), Want>,
    /// Subscriptions there that are served before they are known, and by which channels.
    early: BTreeSet<(u64, usize, u32)>,
    next_channel: u32,
}

pub const LANES: [Lane; 2] = [Lane::Bulk, Lane::Urgent];

fn place(lane: Lane) -> usize {
    usize::from(lane == Lane::Urgent)
}

impl Host {
    /// A host whose link is there; its lanes begin to send.
    pub fn new(
        shared: &Arc<Shared>,
        presence: Presence,
        transport: &Arc<dyn Transport>,
        refused: Option<String>,
    ) -> Host {
        let session = shared.next_session();
        let lanes = LANES.map(|lane| {
            let stream = Stream::new(session, Limits::of(lane));
            let (state, set) = LaneState::new(&shared.node, lane, presence.host, stream);
            shared.add_lane(state.clone());
            let sending = Sending {
                state: state.clone(),
                set,
                transport: transport.clone(),
                events: shared.events.clone(),
                holds: shared.holds.clone(),
                first: 0,
                sent_ns: 0,
            };
            shared.spawn(&format!("rnet-link-{lane:?}").to_lowercase(), move || sending.run());
            state
        });
        Host {
            shared: shared.clone(),
            presence,
            hello: None,
            name: presence.host.to_string(),
            said: presence.host.to_string(),
            lanes,
            session: None,
            heard: Heard::default(),
            addresses: Addresses::default(),
            lost_after: shared.config.lost_after,
            publishers: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            nodes: nodes::HostNodes::default(),
            others: others::Others::default(),
            denied: BTreeMap::new(),
            later: Later::default(),
            withheld: 0,
            unknown: types::Unknown::default(),
            types_len_bytes: 0,
            refused,
            announced: false,
            told: None,
            given: HashMap::new(),
            given_once: BTreeSet::new(),
            ending: BTreeMap::new(),
            pending_wants: HashMap::new(),
            early: BTreeSet::new(),
            next_channel: 1,
        }
    }

    /// Whether it knows what this host has.
    pub fn is_greeted(&self) -> bool {
        self.hello.is_some()
    }

    /// Whether there was no room for what is to be said to it.
    pub fn is_overfull(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_overfull())
    }

    /// Says something on the bulk lane, which has the directory.
    pub fn say(&self, say: Say) {
        self.lanes[place(Lane::Bulk)].say(say);
    }

    fn lane(&self, lane: Lane) -> &Arc<LaneState> {
        &self.lanes[place(lane)]
    }

    /// Asks again for what is wanted and was refused: there may be room by now.
    pub fn ask_again(&mut self, known: &mut Known) {
        self.open_again(known);
        let refused = self.publishers.iter().filter(|(_, remote)| remote.channel.is_none());
        let refused: Vec<u64> = refused.map(|(id, _)| *id).collect();
        for id in refused {
            self.asked(known, id);
        }
    }

    /// Its link has begun a new session: no channel holds any more. `false` if that was known, or a newer one: after
    /// a cut that ended no connection, one lane may still bring frames of a session that is over.
    pub fn begin(&mut self, session: u64) -> bool {
        if self.session.is_some_and(|known| session <= known) {
            return false;
        }
        self.session = Some(session);
        self.heard_anew();
        for lane in &self.lanes {
            lane.clear(session);
        }
        for remote in self.publishers.values_mut() {
            (remote.channel, remote.over) = (None, false);
            lock(&remote.proxy).follow(None);
        }
        self.end_given();
        self.denied.clear();
        self.later.clear();
        self.withheld = 0;
        self.unknown = types::Unknown::default();
        (self.announced, self.told) = (false, None);
        true
    }

    pub fn announced(&mut self, known: &mut Known, announce: Announce) {
        if announce.all {
            self.told = Some(Default::default());
        }
        if let Some((mut here, mut nodes)) = self.told.take() {
            here.extend(announce.opened.iter().map(|described| described.id));
            let there = announce.opened.iter().filter(|described| !described.ended);
            nodes.extend(there.map(|described| node_of(described.id)));
            if announce.more && here.len() <= MAX_ENDPOINTS {
                self.told = Some((here, nodes));
            } else {
                self.announced = true;
                let known_here = self.publishers.keys().chain(self.subscriptions.keys());
                let gone = known_here.filter(|id| !here.contains(id)).copied().collect::<Vec<_>>();
                // An endpoint does not die without its node: where that has others, it was closed.
                for id in gone {
                    self.gone(known, id, !nodes.contains(&node_of(id)));
                }
            }
        }
        self.withheld = announce.withheld.unwrap_or(self.withheld);
        for described in announce.opened {
            self.open(known, described);
        }
        for id in announce.closed {
            self.gone(known, id, false);
        }
        for id in announce.lost {
            self.gone(known, id, true);
        }
    }

    fn opened(&mut self, known: &mut Known, described: Described) -> Result<()> {
        let id = described.id;
        if let Some(remote) = self.publishers.get_mut(&id) {
            // Its channel was cut before all had come, which waits there.
            (remote.leaving, remote.ended) = (None, described.ended.then_some(described.died));
            return Ok(());
        }
        if self.subscriptions.contains_key(&id) {
            return Ok(());
        }
        let known_here = self.publishers.len() + self.subscriptions.len();
        if known_here + self.unknown.len() >= MAX_ENDPOINTS {
            let what = format!("endpoints of host {}", self.name);
            let hint = "the other host has an implausible number; check which program opens them"
                .to_owned();
            return Err(Error::LimitReached { what, limit: MAX_ENDPOINTS, hint });
        }
        let remote = Remote::check(&self.name, &described)?;
        let ended = described.ended.then_some(described.died);
        // What a publisher sends comes in, and what a subscription wants goes out.
        let direction = match &remote.qos {
            Qos::Publisher(_) => Direction::In,
            Qos::Subscriber(_) => Direction::Out,
        };
        if known.shared.config.allows(&remote.topic, direction, &self.said).is_err() {
            if matches!(remote.qos, Qos::Publisher(_)) && self.denied.len() < MAX_ENDPOINTS {
                self.denied.insert(id, remote.topic);
            }
            return Ok(());
        }
        let schema = match remote.hash() {
            None => None,
            Some(hash) => match known.types.get(hash) {
                Some(schema) => Some(schema.clone()),
                None => {
                    let hash = hash.to_owned();
                    let asked = self.unknown.add(hash.clone(), described);
                    if let (false, Ok(number)) = (asked, u128::from_str_radix(&hash, 16)) {
                        self.say(Say::Item(Item::NeedType { hash: number }));
                    }
                    return Ok(());
                }
            },
        };
        let message_type = remote.message_type(schema.as_ref())?;
        match remote.qos.clone() {
            Qos::Publisher(qos) => {
                let key = (self.presence.host, id);
                let pool = qos.pool_limit_bytes;
                known.close_orphan(key);
                let options = PublisherOptions::new()
                    .qos(PublisherQos { reserve_log: false, ..qos })
                    .message_type(message_type)
                    .proxy(remote.proxy.clone())
                    .room_for_will(remote.will)
                    .deferred();
                let publisher = known.shared.node.publisher_with::<[u8]>(&remote.topic, options)?;
                // Not before there is one: where there was no room, its place is there for the next try.
                let claim = known.shared.places.claim(self.presence.host, id);
                let expects_all = claim.next_seq.is_some() && !known.places.has(&key);
                let place = known.places.take(&key);
                // Of one that has ended, and of which nothing is left to come, only the word for that was lost.
                let was_lost = place.is_some() || (ended.is_some() && claim.next_seq.is_none());
                let place = place.unwrap_or_default();
                let next_seq = place.next_seq.or(claim.next_seq);
                let (events, host) = (known.shared.events.clone(), self.presence.host);
                publisher.on_match(move |event| {
                    if !matches!(event, MatchEvent::Incompatible(_)) {
                        let _ = events.send(Event::Asked(host, id));
                    }
                });
                let limit = limits::MAX_MESSAGE_LEN_BYTES.min(pool as usize);
                let mut proxy = Proxy::new(publisher, (host, id), next_seq, claim.slot, limit);
                (proxy.expected, proxy.known_lost) = (place.readers, place.known_lost);
                proxy.expects_all = expects_all;
                let proxy = Arc::new(Mutex::new(proxy));
                let (channel, reliable, flows, leaving) = (None, false, false, None);
                let opened = Instant::now();
                let publisher = RemotePublisher {
                    remote,
                    proxy,
                    channel,
                    reliable,
                    flows,
                    leaving,
                    over: false,
                    ended,
                    was_lost,
                    opened,
                };
                self.publishers.insert(id, publisher);
            }
            Qos::Subscriber(qos) => {
                let options = SubscriberOptions::new()
                    .qos(qos)
                    .message_type(message_type)
                    .proxy(remote.proxy.clone(), 1)
                    .passive();
                let passive = known.shared.node.subscriber_with::<[u8]>(&remote.topic, options)?;
                self.subscriptions.insert(id, (remote, passive));
                self.serve_early(known, id);
            }
        }
        Ok(())
    }

    /// Subscriptions of the proxy of this publisher have come, gone, or wait to be admitted.
    pub fn asked(&mut self, known: &mut Known, id: u64) {
        let Some(remote) = self.publishers.get_mut(&id) else { return };
        let lane = remote.remote.lane();
        let state = &self.lanes[place(lane)];
        let mut proxy = lock(&remote.proxy);
        let (mut asking, served) = proxy.readers();
        // Of one that is not known yet neither are its wishes: it is looked at when it is, in `look_again`.
        asking.retain(|id| known.local.contains_key(id));
        // Those that have read it before go on where it stopped; so a gap is counted by them.
        let again: Vec<u64> = asking
            .iter()
            .filter(|id| proxy.expects_all || proxy.expected.contains(id))
            .copied()
            .collect();
        for subscription in &again {
            proxy.admit(*subscription);
        }
        let wanted = !asking.is_empty() || !served.is_empty();
        let is_late =
            |id: &u64| known.local.contains_key(id) && !asking.contains(id) && !served.contains(id);
        let late = proxy.expected.iter().any(is_late);
        // So that they miss nothing. One that is stopped keeps the others waiting no longer.
        if late && remote.channel.is_none() && remote.opened.elapsed() < GRACE {
            return;
        }
        let goes_on = late || !again.is_empty() || !served.is_empty();
        let reliable = remote.remote.offers_reliable()
            && asking.union(&served).any(|id| {
                known.local.get(id).is_some_and(|endpoint| {
                    matches!(&endpoint.qos, EndpointQos::Subscriber(qos)
                        if qos.reliability == Reliability::Reliable)
                })
            });
        if let Some(channel) = remote.channel
            && (!wanted || (reliable && !remote.reliable))
        {
            state.say(Say::Item(Item::Unwant { channel }));
            lock(&state.channels).remove(&channel);
            (remote.channel, remote.over) = (None, false);
            proxy.follow(None);
            if !wanted {
                remote.flows = false;
                proxy.forget();
                // What it has kept for late joiners gets old.
                if remote.remote.history() > 0 && remote.leaving.is_none() {
                    let (ended, died) = (remote.ended.is_some(), remote.ended == Some(true));
                    let described = Described { ended, died, ..remote.remote.describe(id) };
                    drop(proxy);
                    self.drop_publisher(known, id, false);
                    if let Err(error) = self.opened(known, described) {
                        known.fault(&error);
                    }
                    return;
                }
            }
        }
        // Its owner has heard who we are once it has announced it.
        if wanted && remote.channel.is_none() && self.announced && remote.leaving.is_none() {
            let channel = self.next_channel;
            self.next_channel = self.next_channel.wrapping_add(1).max(1);
            remote.channel = Some(channel);
            remote.reliable = reliable;
            proxy.follow(Some(channel));
            proxy.expects_all = false;
            if !goes_on {
                proxy.forget();
            }
            lock(&state.channels).insert(channel, remote.proxy.clone());
            if proxy.is_stuck() {
                state.note_stuck();
            }
            state.say(Say::Item(Item::Want(Want {
                channel,
                publisher: id,
                from: proxy.next_seq,
                reliable,
                transient_local: remote.remote.history(),
                credit: CREDIT_LEN_BYTES,
                wills: remote.remote.will,
                confirms_end: true,
            })));
        }
        let Some(channel) = remote.channel else { return };
        if remote.flows {
            for subscription in &asking {
                proxy.admit(*subscription);
            }
            let (come, gone): (Vec<u64>, Vec<u64>) = (
                served.difference(&proxy.admitted).copied().collect(),
                proxy.admitted.difference(&served).copied().collect(),
            );
            let changes =
                come.into_iter().map(|id| (id, true)).chain(gone.into_iter().map(|id| (id, false)));
            for (subscription, yes) in changes {
                state.say(Say::Item(Item::Flowing { channel, subscription, yes }));
            }
            proxy.admitted = served;
        }
    }

    pub fn flowing(
        &mut self,
        known: &mut Known,
        (lane, channel): (Lane, u32),
        subscription: u64,
        yes: bool,
    ) {
        if subscription == 0 && !yes {
            return self.ended(known, lane, channel);
        }
        if subscription == 0 {
            let ours = self.publishers.iter_mut().find(|(_, remote)| {
                remote.remote.lane() == lane && remote.channel == Some(channel)
            });
            if let Some((id, remote)) = ours {
                remote.flows = true;
                // One that is there is lost for another time.
                remote.was_lost &= remote.ended.is_some();
                let id = *id;
                self.asked(known, id);
            }
            return;
        }
        self.serve(known, (lane, channel), subscription, yes);
    }

    /// A subscription of this host on `topic` has become known.
    pub fn look_again(&mut self, known: &mut Known, topic: &str) {
        let on: Vec<u64> = self
            .publishers
            .iter()
            .filter(|(_, remote)| remote.remote.topic == topic)
            .map(|(id, _)| *id)
            .collect();
        for id in on {
            self.asked(known, id);
        }
    }

    /// The lanes end.
    pub fn end(&self) {
        for lane in &self.lanes {
            lane.end();
            self.shared.remove_lane(lane);
        }
    }

    /// The host is gone, or nobody hears it: its nodes are lost.
    pub fn lose(mut self, known: &mut Known) {
        self.end();
        self.nodes.lose();
        for lane in &self.lanes {
            lock(&lane.channels).clear();
        }
        for (id, remote) in std::mem::take(&mut self.publishers) {
            let is_lost = remote.is_lost(true);
            known.orphan((self.presence.host, id), remote.proxy, is_lost);
        }
    }
}
