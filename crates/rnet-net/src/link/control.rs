//! The control thread of a link: which hosts there are, what they have, and what crosses.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rnet::{EndpointEvent, Error, NodeEvent, Result};

use crate::addresses;
use crate::stream::PULSE_NS;
use crate::transport::{HostId, Presence};
use crate::wire::Document;

use super::Shared;
use super::anew;
use super::directory::{Announce, Described, Hello, Joined, Nodes, Refused, from_json, to_json};
use super::event::{Event, OfflineKey};
use super::faults::Faults;
use super::host::{Host, said};
use super::kept::Kept;
use super::known::{EndedPublisher, Known};
use super::lane::Say;
use super::offline::OfflineReaders;
use super::orphans::Orphans;
use super::status::Status;

/// How often hosts are looked after though nothing happens.
const TICK: Duration = Duration::from_millis(100);
/// How often what was refused is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Nodes of robot-net itself, links above all: of no use to other hosts.
const OUR_OWN: &str = "/_rnet/";
/// Hosts that a link talks to.
const MAX_HOSTS: usize = 64;
/// How long a link that is there may take to tell what its host has before this one begins anew with it. A greeting
/// that was said while the other side began a session, or was lost by the network, is said again that way. It doubles
/// each time: over a slow cable, and on a busy machine, a directory takes its time.
const UNTOLD: Duration = Duration::from_secs(4);
const MAX_UNTOLD: Duration = Duration::from_secs(300);
/// So often it is begun anew with a link that was heard before, until the network itself is taken to be at fault.
const MAX_TIMES: u32 = 2;
/// Publishers of hosts that are lost, of which it is known where they had come to.
const MAX_PLACES: usize = 1 << 16;
/// Links that are known to have told what their hosts have.
const MAX_TOLD: usize = 1024;
/// For so long a host is not heard that did not keep to the protocol, or found no room.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a host is met again that says the name of another one, of which it is not known yet whether it lives.
const SAME_NAME: Duration = Duration::from_millis(200);

/// A host that is there and not heard.
struct Paused {
    until: Instant,
    /// What it did, if it is not for want of room.
    why: Option<String>,
}

/// What was tried with a link that is there and is not heard as it should be.
struct Tried {
    /// How long it may take next time to tell what its host has.
    patience: Duration,
    /// How often it was begun anew with.
    times: u32,
}

pub struct Control {
    pub known: Known,
    pub hosts: BTreeMap<HostId, Host>,
    /// The links that the network says are there, by their highest term.
    present: BTreeMap<HostId, u64>,
    /// Those of them that are not heard for a while.
    paused: BTreeMap<HostId, Paused>,
    tried: BTreeMap<HostId, Tried>,
    /// The links that have told what their hosts have, by their term.
    told: BTreeMap<HostId, u64>,
    /// Hosts that say the name of another one, and since when, ns of CLOCK_MONOTONIC.
    contests: BTreeMap<HostId, u64>,
    /// The hosts that are heard, as the others were told last.
    heard: BTreeMap<u64, String>,
    events: mpsc::Receiver<Event>,
    status: Status,
    asked: Instant,
}

impl Control {
    pub fn new(shared: Arc<Shared>, events: mpsc::Receiver<Event>) -> Result<Control> {
        let status = Status::new(&shared)?;
        let known = Known {
            shared,
            local: BTreeMap::new(),
            ended: BTreeMap::new(),
            nodes: BTreeSet::new(),
            types: HashMap::new(),
            types_len_bytes: 0,
            sets: HashMap::new(),
            places: Kept::new(MAX_PLACES),
            orphans: Orphans::default(),
            faults: Faults::default(),
        };
        Ok(Control {
            known,
            hosts: BTreeMap::new(),
            present: BTreeMap::new(),
            paused: BTreeMap::new(),
            tried: BTreeMap::new(),
            told: BTreeMap::new(),
            contests: BTreeMap::new(),
            heard: BTreeMap::new(),
            events,
            status,
            asked: Instant::now(),
        })
    }

    /// Runs until the link ends.
    pub fn run(mut self) {
        let mut looked = Instant::now();
        loop {
            let event = self.events.recv_timeout(TICK.saturating_sub(looked.elapsed()));
            match event {
                Ok(Event::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Ok(Event::RoleLost) => {
                    self.known.shared.end("another process is now the link");
                    break;
                }
                Ok(Event::TransportFailed(error)) => {
                    self.known.shared.end(&format!("the network has failed: {error}"));
                    break;
                }
                Ok(event) => self.take(event),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            let passed = looked.elapsed();
            if passed >= TICK {
                looked = Instant::now();
                self.look(passed);
            }
        }
        for host in self.hosts.values() {
            host.end();
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Local(event) => self.local(&event),
            Event::Node(event) => self.local_node(event),
            Event::Up(presence) => self.up(presence),
            Event::Down(presence) => {
                if self.present.get(&presence.host) == Some(&presence.term) {
                    self.present.remove(&presence.host);
                }
                if let Some(host) = self.hosts.get_mut(&presence.host) {
                    host.down(presence.term);
                }
            }
            Event::Said(event, _waits) => self.said(*event),
            Event::Refused(id, why) => self.refuse(id, why),
            event => self.said(event),
        }
    }

    /// The link of another host has said something.
    fn said(&mut self, event: Event) {
        match event {
            Event::Session(id, session) => {
                let Some(host) = self.hosts.get_mut(&id) else { return };
                if host.begin(session) {
                    self.greet(id);
                }
            }
            Event::Document(id, Document::Hello, text) => self.hello(id, &text),
            Event::Document(id, Document::Refused, text) => self.refused(id, &text),
            // By what name the rules are to be asked is not known yet.
            Event::Document(id, of, _) if !self.is_greeted(id) => {
                self.refuse(id, format!("{of:?} before Hello"));
            }
            Event::Document(id, Document::Endpoints, text) => self.announced(id, &text),
            Event::Document(id, Document::Nodes, text) => self.told_of_nodes(id, &text),
            Event::Document(..) => {}
            Event::NeedType(id, hash) => self.give_type(id, hash),
            Event::Type(id, hash, set) => {
                self.with(id, |host, known| host.learn(known, hash, &set))
            }
            Event::Want(id, lane, wanted) => {
                self.with(id, |host, known| host.want(known, lane, wanted));
            }
            Event::Unwant(id, lane, channel) => {
                self.with(id, |host, _| host.unwant(lane, channel));
            }
            Event::Flowing(id, lane, channel, subscription, yes) => {
                self.with(id, |host, known| {
                    host.flowing(known, (lane, channel), subscription, yes);
                });
            }
            Event::Asked(id, endpoint) => self.with(id, |host, known| host.asked(known, endpoint)),
            Event::ChannelEnded(id, lane, channel) => {
                self.with(id, |host, _| host.channel_ended(lane, channel));
            }
            Event::Offline(key) => self.offline(key),
            Event::Fault(error) => self.known.fault(&error),
            Event::Lasting(error, true) => self.known.faults.add_lasting(&error),
            Event::Lasting(error, false) => self.known.faults.end_lasting(&error),
            _ => {}
        }
    }

    fn is_greeted(&self, id: HostId) -> bool {
        self.hosts.get(&id).is_none_or(Host::is_greeted)
    }

    /// A host has not kept to the protocol. What it had is lost, and it begins anew after a pause.
    fn refuse(&mut self, id: HostId, why: String) {
        let Some(host) = self.hosts.remove(&id) else { return };
        let what = format!("data from host {}", host.name());
        self.status.lose(&self.known, id, &host, format!("this host disconnected it: {why}"));
        host.lose(&mut self.known);
        self.pause(id, Some(why.clone()));
        self.known.fault(&Error::BadValue { what, why });
    }

    /// Another host has not gone on with this one.
    fn refused(&mut self, id: HostId, text: &[u8]) {
        let Some(host) = self.hosts.get(&id) else { return };
        let what = format!("data from this host to {}", host.name());
        match from_json::<Refused>("refusal from another host", text) {
            Ok(Refused { text: why }) => self.known.fault(&Error::BadValue { what, why }),
            Err(error) => self.known.fault(&error),
        }
    }

    fn with(&mut self, id: HostId, act: impl FnOnce(&mut Host, &mut Known)) {
        if let Some(host) = self.hosts.get_mut(&id) {
            act(host, &mut self.known);
        }
    }

    fn up(&mut self, presence: Presence) {
        if presence.host == self.known.shared.presence.host {
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
        self.begin(presence, None);
    }

    /// Begins with a host if there is room, else later.
    fn begin(&mut self, presence: Presence, refused: Option<String>) {
        if self.hosts.len() >= MAX_HOSTS {
            let what = "hosts of a domain".to_owned();
            let hint = "give each robot its own domain (RNET_DOMAIN)".to_owned();
            self.known.fault(&Error::LimitReached { what, limit: MAX_HOSTS, hint });
            self.pause(presence.host, refused);
            return;
        }
        let Some(transport) = self.known.shared.transport() else { return };
        let host = Host::new(&self.known.shared, presence, &transport, refused);
        self.hosts.insert(presence.host, host);
    }

    fn pause(&mut self, id: HostId, why: Option<String>) {
        self.paused.insert(id, Paused { until: Instant::now() + PAUSE, why });
    }

    /// Whether a host that says who it is may have its name now: not while another host has it of which it is unknown
    /// whether it lives. A host that was restarted as a container is has another id, and may be back before the one
    /// that was there before is lost.
    fn settle_name(&mut self, id: HostId, hello: &Hello) -> bool {
        let is_greeted = self.hosts.get(&id).is_none_or(Host::is_greeted);
        let Some(name) = said(&hello.host).filter(|_| !is_greeted) else { return true };
        let since_ns = *self.contests.entry(id).or_insert_with(rnet::now_ns);
        let others = self.hosts.iter().filter(|(other, _)| **other != id);
        let before = others.filter(|(_, host)| host.may_be_replaced(&name, since_ns));
        let before = before.map(|(other, host)| (*other, host.is_replaced_by(hello))).next();
        if let Some((before, is_over)) = before {
            if !is_over {
                if let Some(host) = self.hosts.remove(&id) {
                    host.lose(&mut self.known);
                }
                let until = Instant::now() + SAME_NAME;
                self.paused.insert(id, Paused { until, why: None });
                return false;
            }
            self.begin_anew(before);
        }
        self.contests.remove(&id);
        let before = self.status.succeed(id, &name, |other| self.hosts.contains_key(other));
        if let Some(before) = before {
            // It does not come back.
            self.known.shared.offline.drop_all(|(host, _)| *host == before);
        }
        true
    }

    /// Begins again with those whose pause is over, if they are still there.
    fn resume(&mut self) {
        let now = Instant::now();
        let over = self.paused.iter().filter(|(_, paused)| paused.until <= now);
        for host in over.map(|(id, _)| *id).collect::<Vec<_>>() {
            let why = self.paused.remove(&host).and_then(|paused| paused.why);
            if let Some(term) = self.present.get(&host).copied() {
                self.begin(Presence { host, term }, why);
            }
        }
    }

    /// Says who we are, and all that there is.
    fn greet(&mut self, id: HostId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let shared = &self.known.shared;
        let wall = rnet::wall_offset();
        let hello = Hello {
            release: rnet::VERSION.to_owned(),
            host: shared.name.clone(),
            domain: shared.domain.clone(),
            wall_offset_ns: wall.offset_ns,
            wall_uncertainty_ns: wall.uncertainty_ns,
            pulse_ms: PULSE_NS / 1_000_000,
            addresses: addresses::of_this_host().iter().map(ToString::to_string).collect(),
            listen: shared.config.listen.iter().map(ToString::to_string).collect(),
            boot: rnet::boot_id(),
        };
        host.say(Say::Document(Document::Hello, to_json(&hello)));
        if let Some(text) = host.refused.take() {
            host.say(Say::Document(Document::Refused, to_json(&Refused { text })));
        }
    }

    fn hello(&mut self, id: HostId, text: &[u8]) {
        let hello: Hello = match from_json("greeting of a link", text) {
            Ok(hello) => hello,
            Err(error) => return self.known.fault(&error),
        };
        if !self.settle_name(id, &hello) {
            return;
        }
        let taken: Vec<String> =
            self.hosts.iter().filter(|(other, _)| **other != id).map(|(_, h)| h.name()).collect();
        let Control { known, hosts, .. } = self;
        let Some(host) = hosts.get_mut(&id).filter(|host| !host.is_overfull()) else { return };
        host.greeted(known, hello, &taken);
        let said = host.said();
        let (there, owed) = (known.local.values(), known.ended.iter());
        let owed: Vec<(&u64, _)> = owed.filter(|(id, _)| host.is_owed(known, **id)).collect();
        let ended = owed.iter().map(|(_, ended)| ended.describe());
        let opened =
            there.filter(|e| known.crosses(e, said)).map(|e| Described::of(e)).chain(ended);
        for announce in Announce::all(opened, Some(known.withheld(said))) {
            host.say(Say::Document(Document::Endpoints, to_json(&announce)));
        }
        let owed: Vec<u64> = owed.iter().map(|(id, _)| **id).collect();
        owed.into_iter().for_each(|id| host.await_end(id));
        let joined = known.nodes.iter().map(|name| Joined { name: name.clone() }).collect();
        let nodes =
            Nodes { all: true, joined, hosts: Some(self.heard.clone()), ..Nodes::default() };
        host.say(Say::Document(Document::Nodes, to_json(&nodes)));
    }

    fn told_of_nodes(&mut self, id: HostId, text: &[u8]) {
        match from_json::<Nodes>("nodes of another host", text) {
            Ok(nodes) => self.with(id, |host, known| host.told_of_nodes(known, nodes)),
            Err(error) => self.known.fault(&error),
        }
    }

    /// Tells all hosts which ones are heard, if these are others than before.
    fn tell_heard(&mut self) {
        let heard = self.hosts.iter().filter(|(_, host)| host.is_heard());
        let heard = heard.map(|(id, host)| (id.0, host.said().to_owned())).collect();
        if self.heard == heard {
            return;
        }
        let text = to_json(&Nodes { hosts: Some(heard.clone()), ..Nodes::default() });
        self.heard = heard;
        for host in self.hosts.values().filter(|host| host.is_greeted()) {
            host.say(Say::Document(Document::Nodes, text.clone()));
        }
    }

    /// A node of this host has come or gone.
    fn local_node(&mut self, event: NodeEvent) {
        let mut nodes = Nodes::default();
        if event.is_remote() || event.node().starts_with(OUR_OWN) {
            return;
        }
        match event {
            NodeEvent::Joined(name) => {
                if !self.known.nodes.insert(name.clone()) {
                    return;
                }
                nodes.joined.push(Joined { name });
            }
            NodeEvent::Left(name) if self.known.nodes.remove(&name) => nodes.left.push(name),
            NodeEvent::Died(name) if self.known.nodes.remove(&name) => nodes.died.push(name),
            _ => return,
        }
        let text = to_json(&nodes);
        for host in self.hosts.values().filter(|host| host.is_greeted()) {
            host.say(Say::Document(Document::Nodes, text.clone()));
        }
    }

    fn announced(&mut self, id: HostId, text: &[u8]) {
        match from_json::<Announce>("endpoints of another host", text) {
            Ok(announce) => self.with(id, |host, known| host.announced(known, announce)),
            Err(error) => self.known.fault(&error),
        }
    }

    fn give_type(&mut self, id: HostId, hash: u128) {
        let Some(host) = self.hosts.get(&id).filter(|host| !host.is_overfull()) else { return };
        if let Some(set) = self.known.type_set(hash) {
            host.say(Say::Document(Document::Type(hash), set));
        }
    }

    /// An endpoint of this host has come or gone.
    fn local(&mut self, event: &EndpointEvent) {
        let endpoint = event.endpoint();
        if endpoint.proxy.is_some() || endpoint.node == self.known.shared.node.name() {
            return;
        }
        let mut announce = Announce::default();
        match event {
            EndpointEvent::Opened(_) => {
                self.known.local.insert(endpoint.id, endpoint.clone());
                announce.opened.push(Described::of(endpoint));
            }
            EndpointEvent::Closed(_) => announce.closed.push(endpoint.id),
            EndpointEvent::Lost(_) => announce.lost.push(endpoint.id),
            _ => return,
        }
        let is_gone = announce.opened.is_empty();
        if is_gone {
            self.known.local.remove(&endpoint.id);
            if self.known.shared.offline.has_any(endpoint.id) {
                let died = !announce.lost.is_empty();
                let ended = EndedPublisher { endpoint: endpoint.clone(), died };
                self.known.ended.insert(endpoint.id, ended);
            }
        }
        let text = to_json(&announce);
        for host in self.hosts.values_mut().filter(|host| host.is_greeted()) {
            if is_gone && host.is_owed(&self.known, endpoint.id) {
                host.end_later(&self.known, endpoint.id);
                continue;
            }
            let text = match self.known.crosses(endpoint, host.said()) {
                true => text.clone(),
                false => {
                    let withheld = Some(self.known.withheld(host.said()));
                    to_json(&Announce { withheld, ..Announce::default() })
                }
            };
            host.say(Say::Document(Document::Endpoints, text));
        }
        if is_gone {
            return self.hosts.values_mut().for_each(|host| host.left(endpoint.id));
        }
        // Its quality of service decides how it is served.
        for host in self.hosts.values_mut() {
            host.look_again(&mut self.known, &endpoint.topic);
        }
    }

    /// The reader that a host wants again can be had, or there is none.
    fn offline(&mut self, key: OfflineKey) {
        let reader = self.known.shared.offline.found(key);
        let unwanted = match self.hosts.get_mut(&key.0) {
            Some(host) => host.want_again(&mut self.known, key.1, reader),
            None => reader,
        };
        if let Some(reader) = unwanted {
            OfflineReaders::add(&self.known.shared, key, reader);
        }
    }

    /// Forgets what a host has, and begins with it again if its link is there: the network may still have its connection,
    /// which is all that tells when it is heard again.
    fn begin_anew(&mut self, id: HostId) {
        if let Some(host) = self.hosts.remove(&id) {
            self.status.lose(&self.known, id, &host, host.why_lost().to_owned());
            host.lose(&mut self.known);
        }
        if let Some(term) = self.present.get(&id).copied() {
            self.up(Presence { host: id, term });
        }
    }

    /// Begins anew with links that are there and tell nothing, or of which one lane is silent.
    fn look_after_unheard(&mut self) {
        let Control { hosts, present, tried, told, .. } = self;
        for (id, host) in hosts.iter().filter(|(_, host)| host.has_announced()) {
            if told.len() < MAX_TOLD || told.contains_key(id) {
                told.insert(*id, host.presence.term);
            }
        }
        tried
            .retain(|id, _| present.contains_key(id) && !hosts.get(id).is_some_and(Host::is_heard));
        let limit = |id: &HostId| tried.get(id).map_or(UNTOLD, |tried| tried.patience);
        let late =
            hosts.iter().filter(|(id, host)| host.untold() >= limit(id) || host.is_half_heard());
        for id in late.map(|(id, _)| *id).collect::<Vec<_>>() {
            let tried = self.tried.entry(id).or_insert(Tried { patience: UNTOLD, times: 0 });
            tried.patience = (2 * tried.patience).min(MAX_UNTOLD);
            tried.times += 1;
            // One that was never heard may not be able to speak: then it would be no better with another network.
            let was_heard =
                self.told.get(&id).is_some_and(|term| self.present.get(&id) == Some(term));
            let shared = &self.known.shared;
            if tried.times == MAX_TIMES
                && was_heard
                && anew::may_begin(shared.node.domain_path(), rnet::boot_ns())
            {
                let name = self.hosts.get(&id).map_or_else(|| id.to_string(), Host::name);
                shared
                    .end_network(format!("host {name} is visible, but its messages do not arrive"));
            }
            self.begin_anew(id);
        }
    }

    fn look(&mut self, passed: Duration) {
        let shared = &self.known.shared;
        // Once for all that are silent: a cable that is cut silences many.
        let connections = OnceCell::new();
        let ask = || shared.transport().map(|network| network.connections()).unwrap_or_default();
        for host in self.hosts.values_mut() {
            host.listen(passed, || connections.get_or_init(ask).as_slice());
        }
        let lost: Vec<HostId> =
            self.hosts.iter().filter(|(_, host)| host.is_lost()).map(|(id, _)| *id).collect();
        for id in lost {
            self.begin_anew(id);
            self.with(id, |host, _| host.miss());
        }
        self.look_after_unheard();
        let heard = self.hosts.iter().filter(|(_, host)| host.is_heard()).map(|(id, _)| *id);
        let heard = heard.chain([self.known.shared.presence.host]).collect();
        self.hosts.values_mut().for_each(|host| host.note_heard(&heard));
        let overfull: Vec<HostId> =
            self.hosts.iter().filter(|(_, host)| host.is_overfull()).map(|(id, _)| *id).collect();
        for id in overfull {
            self.refuse(id, "it requests more data than it reads".to_owned());
        }
        self.resume();
        if self.asked.elapsed() >= ASK_AGAIN {
            self.asked = Instant::now();
            self.hosts.values_mut().for_each(|host| host.ask_again(&mut self.known));
            self.hosts.values_mut().for_each(|host| host.look_after_ending(&self.known));
            let offline = &self.known.shared.offline;
            self.known.ended.retain(|id, _| offline.has_any(*id));
            self.tell_heard();
        }
        self.hosts.values_mut().for_each(|host| host.drained(&mut self.known));
        self.contests.retain(|id, _| self.present.contains_key(id));
        self.known.look_after_orphans();
        self.known.faults.forget(Instant::now());
        let Control { paused, present, .. } = self;
        let is_refused = |id: &HostId| {
            present.contains_key(id) && paused.get(id).is_some_and(|paused| paused.why.is_some())
        };
        self.status.look(&self.known, &self.hosts, is_refused);
    }
}
