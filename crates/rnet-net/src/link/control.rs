//! The control thread of a link: it tracks the hosts, their endpoints, and the channels between them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rnet::{EndpointEvent, Error, NodeEvent, Result};

use crate::addresses;
use crate::stream::PULSE_NS;
use crate::transport::{HostId, Presence};
use crate::wire::Document;

use super::LinkContext;
use super::announcements::{
    Announcement, EndpointDescription, Hello, JoinedNode, Nodes, Refusal, from_json, to_json,
};
use super::control_state::{ControlState, EndedPublisher};
use super::event::{Event, OfflineKey};
use super::host::Host;
use super::kept_for_reconnect::OfflineReaders;
use super::lane::OutboxEntry;
use super::lost_host_proxies::Orphans;
use super::problems::Problems;
use super::reopen_limit;
use super::resume_points::ResumePoints;
use super::status::Status;

mod identities;

/// Period of the checks that run without an event.
const TICK: Duration = Duration::from_millis(100);
/// Period at which refused requests are repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Nodes of robot-net itself, mainly links. Other hosts have no use for them.
const INTERNAL_PREFIX: &str = "/_rnet/";
/// The most hosts that a link connects to.
const MAX_HOSTS: usize = 64;
/// Time that a present link has to announce its endpoints before this link restarts the session. A restart
/// repeats a greeting that was sent while the other side began a session, or that the network lost. The
/// time doubles with each retry: a directory takes longer over a slow cable and on a busy machine.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(300);
/// Session retries with a link that was heard before. After these, the link treats the network itself as
/// faulty.
const MAX_SESSION_RETRIES: u32 = 2;
/// The most publishers of lost hosts whose resume points are kept.
const MAX_RESUME_POINTS: usize = 1 << 16;
/// The most links recorded as having announced their endpoints.
const MAX_ANNOUNCED_HOSTS: usize = 1024;
/// Pause for a host that violated the protocol or that exceeded the host limit.
const PAUSE_TIME: Duration = Duration::from_secs(1);

/// A present host that is ignored for a while.
struct PausedHost {
    until: Instant,
    /// The protocol violation; `None` if the host limit was reached.
    why: Option<String>,
}

/// The retries with a present link that is not heard as it should be.
struct SessionRetries {
    /// Time that its next announcement may take.
    timeout: Duration,
    /// Number of session restarts.
    count: u32,
}

pub struct Control {
    pub state: ControlState,
    pub hosts: BTreeMap<HostId, Host>,
    /// The links that the network reports as present, by their highest term.
    present: BTreeMap<HostId, u64>,
    /// The present links that are ignored for a while.
    paused: BTreeMap<HostId, PausedHost>,
    retries: BTreeMap<HostId, SessionRetries>,
    /// The links that have announced their endpoints, by their term.
    announced: BTreeMap<HostId, u64>,
    /// Hosts that claim the name of another host, and since when, in ns of CLOCK_MONOTONIC.
    name_conflicts: BTreeMap<HostId, u64>,
    /// The connected hosts as last reported to the other hosts.
    reported_hosts: BTreeMap<u64, String>,
    events: mpsc::Receiver<Event>,
    status: Status,
    retried_at: Instant,
}

impl Control {
    pub fn new(shared: Arc<LinkContext>, events: mpsc::Receiver<Event>) -> Result<Control> {
        let status = Status::new(&shared)?;
        let state = ControlState {
            shared,
            local: BTreeMap::new(),
            ended: BTreeMap::new(),
            nodes: BTreeSet::new(),
            types: HashMap::new(),
            types_len_bytes: 0,
            sets: HashMap::new(),
            resume_points: ResumePoints::new(MAX_RESUME_POINTS),
            orphans: Orphans::default(),
            problems: Problems::default(),
            certificate: None,
        };
        Ok(Control {
            state,
            hosts: BTreeMap::new(),
            present: BTreeMap::new(),
            paused: BTreeMap::new(),
            retries: BTreeMap::new(),
            announced: BTreeMap::new(),
            name_conflicts: BTreeMap::new(),
            reported_hosts: BTreeMap::new(),
            events,
            status,
            retried_at: Instant::now(),
        })
    }

    /// Runs until the link exits.
    pub fn run(mut self) {
        let mut looked = Instant::now();
        self.state.certificate = self.state.shared.own_certificate();
        loop {
            let event = self.events.recv_timeout(TICK.saturating_sub(looked.elapsed()));
            match event {
                Ok(Event::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Ok(Event::RoleLost) => {
                    self.state.shared.fail("another process is now the link");
                    break;
                }
                Ok(Event::TransportFailed(error)) => {
                    self.state.shared.fail(&format!("the network has failed: {error}"));
                    break;
                }
                Ok(event) => self.handle_event(event),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let passed = looked.elapsed();
            if passed >= TICK {
                looked = Instant::now();
                self.tick(passed);
            }
        }
        for host in self.hosts.values() {
            host.end();
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::LocalEndpoint(event) => self.handle_local_endpoint(&event),
            Event::LocalNode(event) => self.handle_local_node(event),
            Event::HostUp(presence) => self.host_up(presence),
            Event::HostDown(presence) => {
                if self.present.get(&presence.host) == Some(&presence.term) {
                    self.present.remove(&presence.host);
                }
                if let Some(host) = self.hosts.get_mut(&presence.host) {
                    host.down(presence.term);
                }
            }
            Event::FromPeer(event, _waits) => self.handle_peer_event(*event),
            Event::ProtocolViolation(id, why) => self.disconnect(id, why),
            event => self.handle_peer_event(event),
        }
    }

    /// Handles an event from the link of another host.
    fn handle_peer_event(&mut self, event: Event) {
        match event {
            Event::NewSession(id, session) => {
                let Some(host) = self.hosts.get_mut(&id) else { return };
                if host.begin_session(session) {
                    if self.identify(id) {
                        return self.restart_host(id);
                    }
                    self.send_hello(id);
                }
            }
            Event::Document(id, Document::Hello, text) => self.handle_hello(id, &text),
            Event::Document(id, Document::Refused, text) => self.handle_refusal(id, &text),
            // The host's name is not known yet, and the rules apply by name.
            Event::Document(id, of, _) if !self.is_greeted(id) => {
                self.disconnect(id, format!("{of:?} before Hello"));
            }
            Event::Document(id, Document::Endpoints, text) => self.handle_announcement(id, &text),
            Event::Document(id, Document::Nodes, text) => self.handle_nodes(id, &text),
            Event::Document(..) => {}
            Event::NeedType(id, hash) => self.send_type(id, hash),
            Event::Type(id, hash, set) => {
                self.with_host(id, |host, state| host.resolve_type(state, hash, &set))
            }
            Event::Subscribe(id, lane, wanted) => {
                self.with_host(id, |host, state| host.handle_subscribe(state, lane, wanted));
            }
            Event::Unsubscribe(id, lane, channel) => {
                self.with_host(id, |host, _| host.handle_unsubscribe(lane, channel));
            }
            Event::Delivery(id, lane, channel, subscription, active) => {
                self.with_host(id, |host, state| {
                    host.handle_delivery(state, (lane, channel), subscription, active);
                });
            }
            Event::ProxyReadersChanged(id, endpoint) => {
                self.with_host(id, |host, state| host.update_demand(state, endpoint))
            }
            Event::ChannelEnded(id, lane, channel) => {
                self.with_host(id, |host, _| host.channel_ended(lane, channel));
            }
            Event::OfflineReader(key) => self.handle_offline_reader(key),
            Event::Problem(error) => self.state.report(&error),
            Event::PersistentProblem(error, true) => self.state.problems.add_persistent(&error),
            Event::PersistentProblem(error, false) => self.state.problems.remove_persistent(&error),
            _ => {}
        }
    }

    fn is_greeted(&self, id: HostId) -> bool {
        self.hosts.get(&id).is_none_or(Host::is_greeted)
    }

    /// Disconnects a host that violated the protocol. Its endpoints are removed, and it restarts after a
    /// pause.
    fn disconnect(&mut self, id: HostId, why: String) {
        if let Some(name) = self.expel(id, why.clone()) {
            self.state.report(&Error::BadValue { what: format!("data from host {name}"), why });
        }
    }

    /// Removes a host and ignores it for a while. Returns its name, if it was there.
    fn expel(&mut self, id: HostId, why: String) -> Option<String> {
        let host = self.hosts.remove(&id)?;
        let name = host.name();
        self.status.lose(&self.state, id, &host, format!("this host disconnected it: {why}"));
        host.lose(&mut self.state);
        self.pause(id, Some(why));
        Some(name)
    }

    /// Handles a refusal: another host has disconnected this one.
    fn handle_refusal(&mut self, id: HostId, text: &[u8]) {
        let Some(host) = self.hosts.get(&id) else { return };
        let what = format!("data from this host to {}", host.name());
        match from_json::<Refusal>("refusal from another host", text) {
            Ok(Refusal { text: why }) => self.state.report(&Error::BadValue { what, why }),
            Err(error) => self.state.report(&error),
        }
    }

    fn with_host(&mut self, id: HostId, act: impl FnOnce(&mut Host, &mut ControlState)) {
        if let Some(host) = self.hosts.get_mut(&id) {
            act(host, &mut self.state);
        }
    }

    fn host_up(&mut self, presence: Presence) {
        if presence.host == self.state.shared.presence.host {
            return;
        }
        let term = self.present.entry(presence.host).or_insert(presence.term);
        *term = presence.term.max(*term);
        if let Some(host) = self.hosts.get_mut(&presence.host) {
            return host.up(presence.term);
        }
        if self.paused.contains_key(&presence.host) {
            return;
        }
        self.add_host(presence, None);
    }

    /// Starts a session with a host if the host limit allows it, otherwise pauses the host.
    fn add_host(&mut self, presence: Presence, refused: Option<String>) {
        if self.hosts.len() >= MAX_HOSTS {
            let what = "hosts of a domain".to_owned();
            let hint = "give each robot its own domain (RNET_DOMAIN)".to_owned();
            self.state.report(&Error::LimitReached { what, limit: MAX_HOSTS, hint });
            self.pause(presence.host, refused);
            return;
        }
        let Some(transport) = self.state.shared.transport() else { return };
        let host = Host::new(&self.state.shared, presence, &transport, refused);
        self.hosts.insert(presence.host, host);
    }

    fn pause(&mut self, id: HostId, why: Option<String>) {
        self.paused.insert(id, PausedHost { until: Instant::now() + PAUSE_TIME, why });
    }

    /// Restarts the hosts whose pause is over, if they are still present.
    fn resume_paused(&mut self) {
        let now = Instant::now();
        let over = self.paused.iter().filter(|(_, paused)| paused.until <= now);
        for host in over.map(|(id, _)| *id).collect::<Vec<_>>() {
            let why = self.paused.remove(&host).and_then(|paused| paused.why);
            if let Some(term) = self.present.get(&host).copied() {
                self.add_host(Presence { host, term }, why);
            }
        }
    }

    /// Sends the greeting of this host and everything that it has.
    fn send_hello(&mut self, id: HostId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let shared = &self.state.shared;
        let wall = rnet::wall_offset();
        let hello = Hello {
            release: rnet::VERSION.to_owned(),
            host: shared.name.clone(),
            domain: shared.domain.clone(),
            wall_offset_ns: wall.offset_ns,
            wall_uncertainty_ns: wall.uncertainty_ns,
            pulse_ms: PULSE_NS / 1_000_000,
            addresses: addresses::local_addresses().iter().map(ToString::to_string).collect(),
            listen: shared.config.listen.iter().map(ToString::to_string).collect(),
            boot: rnet::boot_id(),
        };
        host.enqueue(OutboxEntry::Document(Document::Hello, to_json(&hello)));
        if let Some(text) = host.refused.take() {
            host.enqueue(OutboxEntry::Document(Document::Refused, to_json(&Refusal { text })));
        }
    }

    fn handle_hello(&mut self, id: HostId, text: &[u8]) {
        let hello: Hello = match from_json("greeting of a link", text) {
            Ok(hello) => hello,
            Err(error) => return self.state.report(&error),
        };
        if !self.check_identity(id, &hello) || !self.claim_name(id, &hello) {
            return;
        }
        let taken: Vec<String> =
            self.hosts.iter().filter(|(other, _)| **other != id).map(|(_, h)| h.name()).collect();
        let Control { state, hosts, .. } = self;
        let Some(host) = hosts.get_mut(&id).filter(|host| !host.is_overflowed()) else { return };
        host.apply_hello(state, hello, &taken);
        let greeted = &*host;
        let (there, owed) = (state.local.values(), state.ended.iter());
        let owed: Vec<(&u64, _)> = owed
            .filter(|(id, ended)| {
                greeted.awaits_rest_of(state, **id) && greeted.may_see(state, &ended.endpoint)
            })
            .collect();
        let ended = owed.iter().map(|(_, ended)| ended.describe());
        let opened = there
            .filter(|e| greeted.may_see(state, e))
            .map(|e| EndpointDescription::of(e))
            .chain(ended);
        for announce in Announcement::split(opened, Some(state.withheld(greeted.declared_name()))) {
            host.enqueue(OutboxEntry::Document(Document::Endpoints, to_json(&announce)));
        }
        let owed: Vec<u64> = owed.iter().map(|(id, _)| **id).collect();
        owed.into_iter().for_each(|id| host.add_pending_end(id));
        let joined = state.nodes.iter().map(|name| JoinedNode { name: name.clone() }).collect();
        let nodes = Nodes {
            all: true,
            joined,
            hosts: Some(self.reported_hosts.clone()),
            ..Nodes::default()
        };
        host.enqueue(OutboxEntry::Document(Document::Nodes, to_json(&nodes)));
    }

    fn handle_nodes(&mut self, id: HostId, text: &[u8]) {
        match from_json::<Nodes>("nodes of another host", text) {
            Ok(nodes) => self.with_host(id, |host, state| host.apply_nodes(state, nodes)),
            Err(error) => self.state.report(&error),
        }
    }

    /// Sends the list of connected hosts to all hosts if it has changed.
    fn report_heard_hosts(&mut self) {
        let heard = self.hosts.iter().filter(|(_, host)| host.is_heard());
        let heard = heard.map(|(id, host)| (id.0, host.declared_name().to_owned())).collect();
        if self.reported_hosts == heard {
            return;
        }
        let text = to_json(&Nodes { hosts: Some(heard.clone()), ..Nodes::default() });
        self.reported_hosts = heard;
        for host in self.hosts.values().filter(|host| host.is_greeted()) {
            host.enqueue(OutboxEntry::Document(Document::Nodes, text.clone()));
        }
    }

    /// Handles a node of this host that joined or left.
    fn handle_local_node(&mut self, event: NodeEvent) {
        let mut nodes = Nodes::default();
        if event.is_remote() || event.node().starts_with(INTERNAL_PREFIX) {
            return;
        }
        match event {
            NodeEvent::Joined(name) => {
                if !self.state.nodes.insert(name.clone()) {
                    return;
                }
                nodes.joined.push(JoinedNode { name });
            }
            NodeEvent::Left(name) if self.state.nodes.remove(&name) => nodes.left.push(name),
            NodeEvent::Died(name) if self.state.nodes.remove(&name) => nodes.died.push(name),
            _ => return,
        }
        let text = to_json(&nodes);
        for host in self.hosts.values().filter(|host| host.is_greeted()) {
            host.enqueue(OutboxEntry::Document(Document::Nodes, text.clone()));
        }
    }

    fn handle_announcement(&mut self, id: HostId, text: &[u8]) {
        match from_json::<Announcement>("endpoints of another host", text) {
            Ok(announce) => {
                self.with_host(id, |host, state| host.apply_announcement(state, announce))
            }
            Err(error) => self.state.report(&error),
        }
    }

    fn send_type(&mut self, id: HostId, hash: u128) {
        let Some(host) = self.hosts.get(&id).filter(|host| !host.is_overflowed()) else { return };
        if let Some(set) = self.state.type_set(hash) {
            host.enqueue(OutboxEntry::Document(Document::Type(hash), set));
        }
    }

    /// Handles an endpoint of this host that opened or closed.
    fn handle_local_endpoint(&mut self, event: &EndpointEvent) {
        let endpoint = event.endpoint();
        if endpoint.proxy.is_some() || endpoint.node == self.state.shared.node.name() {
            return;
        }
        let mut announce = Announcement::default();
        match event {
            EndpointEvent::Opened(_) => {
                self.state.local.insert(endpoint.id, endpoint.clone());
                announce.opened.push(EndpointDescription::of(endpoint));
            }
            EndpointEvent::Closed(_) => announce.closed.push(endpoint.id),
            EndpointEvent::Lost(_) => announce.lost.push(endpoint.id),
            _ => return,
        }
        let is_gone = announce.opened.is_empty();
        if is_gone {
            self.state.local.remove(&endpoint.id);
            if self.state.shared.offline.has_any(endpoint.id) {
                let died = !announce.lost.is_empty();
                let ended = EndedPublisher { endpoint: endpoint.clone(), died };
                self.state.ended.insert(endpoint.id, ended);
            }
        }
        let text = to_json(&announce);
        for host in self.hosts.values_mut().filter(|host| host.is_greeted()) {
            let crosses = host.may_see(&self.state, endpoint);
            if is_gone && crosses && host.awaits_rest_of(&self.state, endpoint.id) {
                host.announce_ended_publisher(&self.state, endpoint.id);
                continue;
            }
            let text = match crosses {
                true => text.clone(),
                false => {
                    let withheld = Some(self.state.withheld(host.declared_name()));
                    to_json(&Announcement { withheld, ..Announcement::default() })
                }
            };
            host.enqueue(OutboxEntry::Document(Document::Endpoints, text));
        }
        if is_gone {
            return self.hosts.values_mut().for_each(|host| host.publisher_gone(endpoint.id));
        }
        // Its quality of service decides how it is served.
        for host in self.hosts.values_mut() {
            host.update_topic_demand(&mut self.state, &endpoint.topic);
        }
    }

    /// Handles a reader that a host wants back: it is available, or it does not exist.
    fn handle_offline_reader(&mut self, key: OfflineKey) {
        let reader = self.state.shared.offline.found(key);
        let unwanted = match self.hosts.get_mut(&key.0) {
            Some(host) => host.resume_subscribe(&mut self.state, key.1, reader),
            None => reader,
        };
        if let Some(reader) = unwanted {
            OfflineReaders::add(&self.state.shared, key, reader);
        }
    }

    /// Removes a host and its endpoints. Restarts the session if its link is present: the network may still
    /// hold the connection, and then no event reports the host again.
    fn restart_host(&mut self, id: HostId) {
        if let Some(host) = self.hosts.remove(&id) {
            self.status.lose(&self.state, id, &host, host.lost_reason().to_owned());
            host.lose(&mut self.state);
        }
        if let Some(term) = self.present.get(&id).copied() {
            self.host_up(Presence { host: id, term });
        }
    }

    /// Restarts sessions with present links that announce nothing or that have a silent lane.
    fn restart_unheard_hosts(&mut self) {
        let Control { hosts, present, retries, announced, .. } = self;
        for (id, host) in hosts.iter().filter(|(_, host)| host.has_announced()) {
            if announced.len() < MAX_ANNOUNCED_HOSTS || announced.contains_key(id) {
                announced.insert(*id, host.presence.term);
            }
        }
        retries
            .retain(|id, _| present.contains_key(id) && !hosts.get(id).is_some_and(Host::is_heard));
        let limit =
            |id: &HostId| retries.get(id).map_or(ANNOUNCE_TIMEOUT, |retries| retries.timeout);
        let late = hosts
            .iter()
            .filter(|(id, host)| host.unannounced_for() >= limit(id) || host.has_silent_lane());
        for id in late.map(|(id, _)| *id).collect::<Vec<_>>() {
            let retries = self
                .retries
                .entry(id)
                .or_insert(SessionRetries { timeout: ANNOUNCE_TIMEOUT, count: 0 });
            retries.timeout = (2 * retries.timeout).min(MAX_ANNOUNCE_TIMEOUT);
            retries.count += 1;
            // A link that was never heard may be unable to send; another network would not help.
            let was_heard =
                self.announced.get(&id).is_some_and(|term| self.present.get(&id) == Some(term));
            let shared = &self.state.shared;
            if retries.count == MAX_SESSION_RETRIES
                && was_heard
                && reopen_limit::may_reopen(shared.node.domain_path(), rnet::boot_ns())
            {
                let name = self.hosts.get(&id).map_or_else(|| id.to_string(), Host::name);
                shared.fail_network(format!(
                    "host {name} is visible, but its messages do not arrive"
                ));
            }
            self.restart_host(id);
        }
    }

    fn tick(&mut self, passed: Duration) {
        let shared = &self.state.shared;
        // Computed once for all silent hosts: one cut cable silences many.
        let connections = OnceCell::new();
        let ask = || shared.transport().map(|network| network.connections()).unwrap_or_default();
        for host in self.hosts.values_mut() {
            host.check_echoes(passed, || connections.get_or_init(ask).as_slice());
        }
        let lost: Vec<HostId> =
            self.hosts.iter().filter(|(_, host)| host.is_lost()).map(|(id, _)| *id).collect();
        for id in lost {
            self.restart_host(id);
            self.with_host(id, |host, _| host.mark_missed());
        }
        self.restart_unheard_hosts();
        self.restart_hosts_with_other_rights();
        let heard = self.hosts.iter().filter(|(_, host)| host.is_heard()).map(|(id, _)| *id);
        let heard = heard.chain([self.state.shared.presence.host]).collect();
        self.hosts.values_mut().for_each(|host| host.note_heard(&heard));
        let overflowed: Vec<HostId> =
            self.hosts.iter().filter(|(_, host)| host.is_overflowed()).map(|(id, _)| *id).collect();
        for id in overflowed {
            self.disconnect(id, "it requests more data than it reads".to_owned());
        }
        self.resume_paused();
        if self.retried_at.elapsed() >= RETRY_INTERVAL {
            self.retried_at = Instant::now();
            self.hosts.values_mut().for_each(|host| host.retry_requests(&mut self.state));
            self.hosts.values_mut().for_each(|host| host.expire_pending_ends(&self.state));
            let offline = &self.state.shared.offline;
            self.state.ended.retain(|id, _| offline.has_any(*id));
            self.report_heard_hosts();
        }
        self.hosts.values_mut().for_each(|host| host.finish_drained(&mut self.state));
        self.name_conflicts.retain(|id, _| self.present.contains_key(id));
        self.state.check_orphans();
        self.state.problems.expire(Instant::now());
        let Control { paused, present, .. } = self;
        let is_refused = |id: &HostId| {
            present.contains_key(id) && paused.get(id).is_some_and(|paused| paused.why.is_some())
        };
        self.status.publish_if_due(&self.state, &self.hosts, is_refused);
    }
}
