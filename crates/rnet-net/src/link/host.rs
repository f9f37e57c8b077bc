//! Another host: its endpoints, their proxies on this host, and the channels between both.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rnet::bridge::{BridgePublisherBuilder, BridgeSubscriberBuilder};
use rnet::trace::node_of;
use rnet::{
    EndpointQos, Error, Lane, MatchEvent, PublisherQos, Reliability, Result, Subscriber, limits,
};
use rnet_keys::HostCertificate;

use crate::stream::{Limits, Stream};
use crate::transport::{Presence, Transport};
use crate::wire::{Item, Subscribe};

mod address;
mod closing;
mod crossing;
mod denied;
mod liveness;
mod name;
mod pending_ends;
mod retry_queue;
mod traffic;
pub use name::sanitize_name;
mod nodes;
mod reported_hosts;
mod requested_publishers;
mod types;

use address::HostAddresses;
use liveness::HostLiveness;
use pending_ends::PendingEnd;
use retry_queue::RetryQueue;
pub use traffic::{HoldReason, TrafficCounts};

use super::LinkContext;
use super::announcements::{Announcement, EndpointDescription, Hello, Qos, RemoteEndpoint};
use super::control_state::ControlState;
use super::event::Event;
use super::lane::{LaneSender, LaneState, OutboxEntry};
use super::lock::lock;
use super::proxy::{CREDIT_LEN_BYTES, Proxy};

/// Time to wait for the subscriptions that read a publisher before its host was lost.
const REJOIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The most endpoints accepted from one host.
const MAX_ENDPOINTS: usize = 1 << 16;

/// The most hosts accepted in the report of another host.
const MAX_REPORTED_HOSTS: usize = 64;

/// A publisher there, and its proxy here.
struct RemotePublisher {
    remote: RemoteEndpoint,
    proxy: Arc<Mutex<Proxy>>,
    channel: Option<u32>,
    /// Whether the channel was requested as reliable.
    reliable: bool,
    /// Whether messages flow, so that subscriptions may be admitted.
    is_delivering: bool,
    /// The publisher is gone there (lost if `true`), and its channel has not ended yet.
    leaving: Option<bool>,
    /// Its channel has ended there, and some of its messages wait for capacity here.
    over: bool,
    /// It ended there while some of its messages waited; `true` if its process died.
    ended: Option<bool>,
    /// It was lost here before, together with its host, and its last will was published.
    was_lost: bool,
    opened: Instant,
}

/// A channel that the other host requested from this one.
struct GrantedChannel {
    wanted: Subscribe,
    /// Subscriptions there that receive what it carries.
    served: BTreeSet<u64>,
}

pub struct Host {
    shared: Arc<LinkContext>,
    pub presence: Presence,
    pub hello: Option<Hello>,
    /// Its name on this host, different from the name of every other host.
    name: String,
    /// The name that it declares; the rules use it.
    declared_name: String,
    pub lanes: [Arc<LaneState>; 2],
    session: Option<u64>,
    liveness: HostLiveness,
    addresses: HostAddresses,
    /// The longest silence before it counts as lost.
    lost_after: Duration,
    publishers: BTreeMap<u64, RemotePublisher>,
    subscriptions: BTreeMap<u64, (RemoteEndpoint, Subscriber<[u8]>)>,
    nodes: nodes::HostNodes,
    reported_hosts: reported_hosts::ReportedHosts,
    /// Its certificate, if keys secure the network.
    certificate: Option<Arc<HostCertificate>>,
    /// Its endpoints that a rule of this host or its rights do not allow.
    denied: BTreeMap<u64, denied::DeniedEndpoint>,
    /// Number of its endpoints that its rights did not allow.
    pub refused_endpoints: u64,
    /// Endpoints that exceeded a limit of this host.
    retry_queue: RetryQueue,
    /// Number of its topics that its rules withhold from this host.
    withheld: u64,
    /// Endpoints whose type was requested.
    unresolved_types: types::UnresolvedTypes,
    /// Bytes of the types that it has sent.
    types_len_bytes: usize,
    /// The violation for which it was paused, until it is reported to the host.
    pub refused: Option<String>,
    /// Whether it has announced its endpoints in this session.
    announced: bool,
    /// The announced endpoints of a list that continues in the next document, and the nodes of the open
    /// ones.
    partial_announcement: Option<(BTreeSet<u64>, BTreeSet<u64>)>,
    granted: HashMap<(Lane, u32), GrantedChannel>,
    /// Publishers that it was given in this session.
    granted_publishers: BTreeSet<u64>,
    /// Ended publishers that are announced to it as present.
    pending_ends: BTreeMap<u64, PendingEnd>,
    /// Repeated requests for publishers whose readers are still being handed over.
    pending_wants: HashMap<(Lane, u32), Subscribe>,
    /// Subscriptions there that were reported as served before they were announced, and their channels.
    early_deliveries: BTreeSet<(u64, usize, u32)>,
    next_channel: u32,
}

pub const LANES: [Lane; 2] = [Lane::Bulk, Lane::Urgent];

fn lane_index(lane: Lane) -> usize {
    usize::from(lane == Lane::Urgent)
}

impl Host {
    /// A host whose link is present; its lanes begin to send.
    pub fn new(
        shared: &Arc<LinkContext>,
        presence: Presence,
        transport: &Arc<dyn Transport>,
        refused: Option<String>,
    ) -> Host {
        let session = shared.next_session();
        let lanes = LANES.map(|lane| {
            let stream = Stream::new(session, Limits::of(lane));
            let (state, set) = LaneState::new(&shared.node, lane, presence.host, stream);
            shared.add_lane(state.clone());
            let sending = LaneSender {
                state: state.clone(),
                set,
                transport: transport.clone(),
                events: shared.events.clone(),
                holds_role: shared.holds_role.clone(),
                first_channel: 0,
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
            declared_name: presence.host.to_string(),
            lanes,
            session: None,
            liveness: HostLiveness::default(),
            addresses: HostAddresses::default(),
            lost_after: shared.config.lost_after,
            publishers: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            nodes: nodes::HostNodes::default(),
            reported_hosts: reported_hosts::ReportedHosts::default(),
            certificate: None,
            denied: BTreeMap::new(),
            refused_endpoints: 0,
            retry_queue: RetryQueue::default(),
            withheld: 0,
            unresolved_types: types::UnresolvedTypes::default(),
            types_len_bytes: 0,
            refused,
            announced: false,
            partial_announcement: None,
            granted: HashMap::new(),
            granted_publishers: BTreeSet::new(),
            pending_ends: BTreeMap::new(),
            pending_wants: HashMap::new(),
            early_deliveries: BTreeSet::new(),
            next_channel: 1,
        }
    }

    /// Whether it knows what this host has.
    pub fn is_greeted(&self) -> bool {
        self.hello.is_some()
    }

    /// Whether the outbox to it has overflowed.
    pub fn is_overflowed(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_overflowed())
    }

    /// Queues an entry on the bulk lane, which carries the directory.
    pub fn enqueue(&self, entry: OutboxEntry) {
        self.lanes[lane_index(Lane::Bulk)].enqueue(entry);
    }

    fn lane(&self, lane: Lane) -> &Arc<LaneState> {
        &self.lanes[lane_index(lane)]
    }

    /// Repeats refused requests: there may be capacity now.
    pub fn retry_requests(&mut self, control: &mut ControlState) {
        self.retry_queued(control);
        let refused = self.publishers.iter().filter(|(_, remote)| remote.channel.is_none());
        let refused: Vec<u64> = refused.map(|(id, _)| *id).collect();
        for id in refused {
            self.update_demand(control, id);
        }
    }

    /// Begins a new session of its link: all channels are void. Returns `false` if the session is known or
    /// older than the current one. After a cut that ended no connection, one lane may still deliver frames
    /// of a past session.
    pub fn begin_session(&mut self, session: u64) -> bool {
        if self.session.is_some_and(|known| session <= known) {
            return false;
        }
        self.session = Some(session);
        self.reset_liveness();
        for lane in &self.lanes {
            lane.clear(session);
        }
        for remote in self.publishers.values_mut() {
            (remote.channel, remote.over) = (None, false);
            lock(&remote.proxy).set_channel(None);
        }
        self.revoke_granted();
        self.denied.clear();
        self.retry_queue.clear();
        self.withheld = 0;
        self.unresolved_types = types::UnresolvedTypes::default();
        (self.announced, self.partial_announcement) = (false, None);
        true
    }

    pub fn apply_announcement(&mut self, control: &mut ControlState, announce: Announcement) {
        if announce.all {
            self.partial_announcement = Some(Default::default());
        }
        if let Some((mut here, mut nodes)) = self.partial_announcement.take() {
            here.extend(announce.opened.iter().map(|described| described.id));
            let there = announce.opened.iter().filter(|described| !described.ended);
            nodes.extend(there.map(|described| node_of(described.id)));
            if announce.more && here.len() <= MAX_ENDPOINTS {
                self.partial_announcement = Some((here, nodes));
            } else {
                self.announced = true;
                let known_here = self.publishers.keys().chain(self.subscriptions.keys());
                let gone = known_here.filter(|id| !here.contains(id)).copied().collect::<Vec<_>>();
                // An endpoint does not die without its node: if the node has other endpoints, this one was
                // closed.
                for id in gone {
                    self.endpoint_gone(control, id, !nodes.contains(&node_of(id)));
                }
            }
        }
        self.withheld = announce.withheld.unwrap_or(self.withheld);
        for described in announce.opened {
            self.open_or_queue(control, described);
        }
        for id in announce.closed {
            self.endpoint_gone(control, id, false);
        }
        for id in announce.lost {
            self.endpoint_gone(control, id, true);
        }
    }

    fn open_endpoint(
        &mut self,
        control: &mut ControlState,
        described: EndpointDescription,
    ) -> Result<()> {
        let id = described.id;
        if let Some(denied) = self.check_denied(control, &described) {
            // An earlier session may have allowed it.
            self.endpoint_gone(control, id, false);
            self.deny(control, id, denied);
            return Ok(());
        }
        if let Some(remote) = self.publishers.get_mut(&id) {
            // Its channel was cut before all messages arrived; the rest waits there.
            (remote.leaving, remote.ended) = (None, described.ended.then_some(described.died));
            return Ok(());
        }
        if self.subscriptions.contains_key(&id) {
            return Ok(());
        }
        let known_here = self.publishers.len() + self.subscriptions.len();
        if known_here + self.unresolved_types.len() >= MAX_ENDPOINTS {
            let what = format!("endpoints of host {}", self.name);
            let hint = "the other host has an implausible number; check which program opens them"
                .to_owned();
            return Err(Error::LimitReached { what, limit: MAX_ENDPOINTS, hint });
        }
        let remote = RemoteEndpoint::check(&self.name, &described)?;
        let ended = described.ended.then_some(described.died);
        let schema = match remote.hash() {
            None => None,
            Some(hash) => match control.types.get(hash) {
                Some(schema) => Some(schema.clone()),
                None => {
                    let hash = hash.to_owned();
                    let asked = self.unresolved_types.add(hash.clone(), described);
                    if let (false, Ok(number)) = (asked, u128::from_str_radix(&hash, 16)) {
                        self.enqueue(OutboxEntry::Item(Item::NeedType { hash: number }));
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
                control.close_orphan(key);
                let publisher = control
                    .shared
                    .node
                    .publisher::<[u8]>(&remote.topic)
                    .qos(PublisherQos { reserve_log: false, ..qos })
                    .message_type(message_type)
                    .proxy(remote.proxy.clone())
                    .reserve_will(remote.will)
                    .deferred()
                    .open()?;
                // Claimed only after the proxy exists: if creating it failed, the position stays for the
                // next try.
                let claim = control.shared.positions.claim(self.presence.host, id);
                let expects_all_readers =
                    claim.next_seq.is_some() && !control.resume_points.has(&key);
                let point = control.resume_points.take(&key);
                // If an ended publisher has nothing left to send, only its end was not reported.
                let was_lost = claim.was_lost
                    || point.is_some()
                    || (ended.is_some() && claim.next_seq.is_none());
                let point = point.unwrap_or_default();
                let next_seq = point.next_seq.or(claim.next_seq);
                let (events, host) = (control.shared.events.clone(), self.presence.host);
                publisher
                    .on_match(move |event| {
                        if !matches!(event, MatchEvent::Incompatible(_)) {
                            let _ = events.send(Event::ProxyReadersChanged(host, id));
                        }
                    })
                    .detach();
                let limit = limits::MAX_MESSAGE_LEN_BYTES.min(pool as usize);
                let mut proxy = Proxy::new(publisher, (host, id), next_seq, claim.slot, limit);
                (proxy.previous_readers, proxy.known_lost) = (point.readers, point.known_lost);
                proxy.expects_all_readers = expects_all_readers;
                let proxy = Arc::new(Mutex::new(proxy));
                let (channel, reliable, is_delivering, leaving) = (None, false, false, None);
                let opened = Instant::now();
                let publisher = RemotePublisher {
                    remote,
                    proxy,
                    channel,
                    reliable,
                    is_delivering,
                    leaving,
                    over: false,
                    ended,
                    was_lost,
                    opened,
                };
                self.publishers.insert(id, publisher);
            }
            Qos::Subscriber(qos) => {
                let passive = control
                    .shared
                    .node
                    .subscriber::<[u8]>(&remote.topic)
                    .qos(qos)
                    .message_type(message_type)
                    .proxy(remote.proxy.clone(), 1)
                    .passive()
                    .open()?;
                self.subscriptions.insert(id, (remote, passive));
                self.serve_early(control, id);
            }
        }
        Ok(())
    }

    /// Handles subscriptions of this publisher's proxy that have arrived, have left, or wait to be
    /// admitted.
    pub fn update_demand(&mut self, control: &mut ControlState, id: u64) {
        let Some(remote) = self.publishers.get_mut(&id) else { return };
        let lane = remote.remote.lane();
        let state = &self.lanes[lane_index(lane)];
        let mut proxy = lock(&remote.proxy);
        let (mut asking, served) = proxy.readers();
        // The needs of a subscription are unknown until it is known itself; `update_topic_demand` handles
        // it then.
        asking.retain(|id| control.local.contains_key(id));
        // Subscriptions that have read the publisher before continue where it stopped, so that they count a
        // gap.
        let again: Vec<u64> = asking
            .iter()
            .filter(|id| proxy.expects_all_readers || proxy.previous_readers.contains(id))
            .copied()
            .collect();
        for subscription in &again {
            proxy.admit(*subscription);
        }
        let wanted = !asking.is_empty() || !served.is_empty();
        let is_late = |id: &u64| {
            control.local.contains_key(id) && !asking.contains(id) && !served.contains(id)
        };
        let late = proxy.previous_readers.iter().any(is_late);
        // Waits so that they miss nothing. A stopped reader delays the others no longer than this.
        if late && remote.channel.is_none() && remote.opened.elapsed() < REJOIN_TIMEOUT {
            return;
        }
        let goes_on = late || !again.is_empty() || !served.is_empty();
        let reliable = remote.remote.offers_reliable()
            && asking.union(&served).any(|id| {
                control.local.get(id).is_some_and(|endpoint| {
                    matches!(&endpoint.qos, EndpointQos::Subscriber(qos)
                        if qos.reliability == Reliability::Reliable)
                })
            });
        if let Some(channel) = remote.channel
            && (!wanted || (reliable && !remote.reliable))
        {
            state.enqueue(OutboxEntry::Item(Item::Unsubscribe { channel }));
            lock(&state.channels).remove(&channel);
            (remote.channel, remote.over) = (None, false);
            proxy.set_channel(None);
            if !wanted {
                remote.is_delivering = false;
                proxy.reset_position();
                // Messages kept for late subscribers get stale.
                if remote.remote.history() > 0 && remote.leaving.is_none() {
                    let (ended, died) = (remote.ended.is_some(), remote.ended == Some(true));
                    let described =
                        EndpointDescription { ended, died, ..remote.remote.describe(id) };
                    drop(proxy);
                    self.drop_publisher(control, id, false);
                    if let Err(error) = self.open_endpoint(control, described) {
                        control.report(&error);
                    }
                    return;
                }
            }
        }
        // An owner that has announced its endpoints has received this host's greeting.
        if wanted && remote.channel.is_none() && self.announced && remote.leaving.is_none() {
            let channel = self.next_channel;
            self.next_channel = self.next_channel.wrapping_add(1).max(1);
            remote.channel = Some(channel);
            remote.reliable = reliable;
            proxy.set_channel(Some(channel));
            proxy.expects_all_readers = false;
            if !goes_on {
                proxy.reset_position();
            }
            lock(&state.channels).insert(channel, remote.proxy.clone());
            if proxy.is_blocked() {
                state.note_blocked();
            }
            state.enqueue(OutboxEntry::Item(Item::Subscribe(Subscribe {
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
        if remote.is_delivering {
            for subscription in &asking {
                proxy.admit(*subscription);
            }
            let (come, gone): (Vec<u64>, Vec<u64>) = (
                served.difference(&proxy.admitted).copied().collect(),
                proxy.admitted.difference(&served).copied().collect(),
            );
            let changes =
                come.into_iter().map(|id| (id, true)).chain(gone.into_iter().map(|id| (id, false)));
            for (subscription, active) in changes {
                state.enqueue(OutboxEntry::Item(Item::Delivery { channel, subscription, active }));
            }
            proxy.admitted = served;
        }
    }

    pub fn handle_delivery(
        &mut self,
        control: &mut ControlState,
        (lane, channel): (Lane, u32),
        subscription: u64,
        active: bool,
    ) {
        if subscription == 0 && !active {
            return self.end_channel(control, lane, channel);
        }
        if subscription == 0 {
            let ours = self.publishers.iter_mut().find(|(_, remote)| {
                remote.remote.lane() == lane && remote.channel == Some(channel)
            });
            if let Some((id, remote)) = ours {
                remote.is_delivering = true;
                // A publisher that is present can be lost again.
                remote.was_lost &= remote.ended.is_some();
                lock(&remote.proxy).set_lost(remote.was_lost);
                let id = *id;
                self.update_demand(control, id);
            }
            return;
        }
        self.serve(control, (lane, channel), subscription, active);
    }

    /// Handles a subscription of this host on `topic` that has become known.
    pub fn update_topic_demand(&mut self, control: &mut ControlState, topic: &str) {
        let on: Vec<u64> = self
            .publishers
            .iter()
            .filter(|(_, remote)| remote.remote.topic == topic)
            .map(|(id, _)| *id)
            .collect();
        for id in on {
            self.update_demand(control, id);
        }
    }

    /// Ends the lanes.
    pub fn end(&self) {
        for lane in &self.lanes {
            lane.end();
            self.shared.remove_lane(lane);
        }
    }

    /// Handles the loss of the host: its nodes are lost.
    pub fn lose(mut self, control: &mut ControlState) {
        self.end();
        self.shared.certificates.set(self.name(), None);
        self.nodes.lose();
        for lane in &self.lanes {
            lock(&lane.channels).clear();
        }
        for (id, remote) in std::mem::take(&mut self.publishers) {
            let is_lost = remote.is_lost(true);
            control.add_orphan((self.presence.host, id), remote.proxy, is_lost);
        }
    }
}
