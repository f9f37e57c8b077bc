//! Serves a live domain.
//!
//! The thread `rnet-foxglove` takes snapshots of the domain several times a second, for topics, services and
//! the graph. It observes subscribed publishers without slowing them. A node is opened on first use, for
//! publishing, calls, parameters and messages of other hosts.

mod calls;
mod graph;
mod params;
mod publish;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prost::Message as _;
use rnet::inspect::{
    CallType, Domain, Follower, Location, NormalPriority, Observed, PriorityChange, Snapshot,
    lower_priority,
};
use rnet::msgs::Clock;
use rnet::schema::Schema;
use rnet::{Durability, MessageType, Node, PublisherQos, Subscription, TypeDesc};
use rnet_access::EventCallback;
use serde_json::{Value, json};

use crate::backend::Backend;
use crate::channel_format::{ChannelFormat, describe_call_type};
use crate::hub::{CHANGES, Hub, TopicMessage};
use crate::incoming::{ClientChannel, Parameter};
use crate::outgoing;
use calls::ServiceClients;
use params::ParamWatch;
use publish::ClientPublishers;

/// Interval between two snapshots of the domain.
const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
/// Interval after a failed snapshot, for example without free descriptors: opening the domain again costs
/// more than a snapshot.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Messages that are forwarded at once, before clients and the domain are checked again.
const MAX_FORWARDED_AT_ONCE: u32 = 4096;
/// Interval between two times of `/clock` sent to clients.
const CLOCK_INTERVAL: Duration = Duration::from_millis(20);
/// Prefix of the topics of robot-net itself.
const RESERVED: &str = "/_rnet/";
const CLOCK: &str = "/clock";

/// Options of a live backend.
#[derive(Clone)]
pub struct LiveOptions {
    pub location: Location,
    /// Also show topics of robot-net itself.
    pub include_internal: bool,
}

pub struct LiveBackend {
    options: LiveOptions,
    hub: Arc<Hub>,
    node: Mutex<Option<Arc<Node>>>,
    /// Opens the node with normal priority, although the following thread has a lower one: viewers take part
    /// through this node.
    normal_priority: NormalPriority,
    publishers: ClientPublishers,
    calls: ServiceClients,
    params: ParamWatch,
    /// Subscriptions that make the link forward topics of other hosts.
    remote_subscriptions: Mutex<BTreeMap<String, Subscription>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveBackend {
    pub fn new(options: LiveOptions, hub: Arc<Hub>) -> io::Result<LiveBackend> {
        Ok(LiveBackend {
            options,
            hub,
            node: Mutex::default(),
            normal_priority: NormalPriority::start("rnet-foxglove-n")?,
            publishers: ClientPublishers::default(),
            calls: ServiceClients::default(),
            params: ParamWatch::default(),
            remote_subscriptions: Mutex::default(),
        })
    }

    /// The server's own node, opened on first use.
    fn node(&self) -> Result<Arc<Node>, String> {
        let mut node = lock(&self.node);
        if let Some(node) = &*node {
            return Ok(node.clone());
        }
        let name = format!("/rnet_foxglove_{}", std::process::id());
        let location = &self.options.location;
        let mut builder =
            Node::builder(&name).tool().domain(location.id().as_str()).dir(location.base());
        if let Some(group) = location.group() {
            builder = builder.group(group);
        }
        let opened =
            self.normal_priority.run(move || builder.open()).map_err(|error| error.to_string())?;
        let opened = Arc::new(opened);
        *node = Some(opened.clone());
        Ok(opened)
    }

    /// Sends the server information. `time` is a capability only while a simulated time exists, because a
    /// viewer that sees it waits for that time.
    fn update_server_info(&self, session: &str, has_clock: bool) {
        // The hub omits what the role of a client does not allow.
        let mut capabilities = vec!["connectionGraph", "parameters", "parametersSubscribe"];
        capabilities.extend(CHANGES);
        if has_clock {
            capabilities.push("time");
        }
        let domain = self.options.location.id().as_str();
        self.hub.set_server_info(json!({
            "op": "serverInfo",
            "name": format!("robot-net, domain {domain}"),
            "capabilities": capabilities,
            "supportedEncodings": ["protobuf", "json"],
            "metadata": {"rnet": rnet::VERSION, "domain": domain},
            "sessionId": session,
        }));
    }

    /// Follows the domain until the hub shuts down. While the domain cannot be read, the known publishers are
    /// followed.
    pub fn run(&self, session: &str, on_event: &EventCallback) {
        lower_priority(PriorityChange::Batch);
        let mut view = DomainView {
            live: self,
            domain: None,
            follower: None,
            wanted: Arc::default(),
            channels: BTreeMap::new(),
            clock_sent_at: None,
            session,
        };
        let mut next = Instant::now();
        let mut is_failing = false;
        let mut bytes = Vec::new();
        while !self.hub.is_shut_down() {
            // A follower has its own wait.
            let left = next.saturating_duration_since(Instant::now());
            let pause = if view.follower.is_some() { Duration::ZERO } else { left };
            let is_woken = self.hub.wait_for_change(pause);
            if Instant::now() >= next || is_woken && !is_failing {
                let refreshed = view.refresh();
                if is_failing != refreshed.is_err() {
                    is_failing = !is_failing;
                    self.report_refresh(&refreshed, on_event);
                }
                next = Instant::now() + if is_failing { RETRY_INTERVAL } else { REFRESH_INTERVAL };
            }
            view.forward_messages(&mut bytes, next);
        }
    }

    /// Reports to viewers and to the operator that the domain has become unreadable, or readable again.
    fn report_refresh(&self, refreshed: &rnet::Result<()>, on_event: &EventCallback) {
        let (level, text) = match refreshed {
            Ok(()) => (outgoing::Level::Info, "the domain can be read again".to_owned()),
            Err(error) => {
                let what = "topics, services and the graph are not updated until then";
                (outgoing::Level::Warning, format!("the domain cannot be read: {error}; {what}"))
            }
        };
        self.hub.broadcast(&outgoing::status(level, &text));
        on_event(&text);
    }

    /// Subscribes to messages of other hosts, which cross the network only if a subscriber exists.
    fn subscribe_remote(&self, topics: &BTreeSet<&str>) {
        let mut subscriptions = lock(&self.remote_subscriptions);
        subscriptions.retain(|topic, _| topics.contains(topic.as_str()));
        for topic in topics {
            if !subscriptions.contains_key(*topic)
                && let Ok(node) = self.node()
                && let Ok(subscriber) = node.subscriber::<[u8]>(topic).open()
            {
                // The call may start the node's callback thread.
                let subscription = self.normal_priority.run(move || subscriber.on(|_| {}));
                subscriptions.insert((*topic).to_owned(), subscription);
            }
        }
    }
}

/// Topics, each with a message type.
type TypedTopics = Vec<(String, TypeDesc)>;

/// The channel of a publisher, and the conversion of its messages.
struct PublisherChannel {
    channel: u32,
    format: ChannelFormat,
    is_clock: bool,
    latch_depth: usize,
    /// Whether a malformed message was reported.
    is_error_reported: bool,
}

impl PublisherChannel {
    /// The channel of a publisher; created if its topic has none of this format.
    fn new(
        hub: &Hub,
        topic: &str,
        desc: &TypeDesc,
        schema: Option<&Schema>,
        qos: &PublisherQos,
    ) -> PublisherChannel {
        let ty = CallType { desc, schema }.message_type().unwrap_or(MessageType::Raw);
        let format = ChannelFormat::of(&ty);
        let latch_depth = match qos.durability {
            Durability::TransientLocal { depth } => depth as usize,
            Durability::Volatile => 0,
        };
        let channel = hub.get_or_create_channel(topic, &format);
        let is_clock = topic == CLOCK && format.schema_name == "rnet.msgs.Clock";
        PublisherChannel { channel, format, is_clock, latch_depth, is_error_reported: false }
    }
}

struct DomainView<'a> {
    live: &'a LiveBackend,
    /// `None` after an error, such as another layout or missing permissions; the next refresh opens it again.
    domain: Option<Domain>,
    /// Reads the publishers of wanted topics, if there are any.
    follower: Option<Follower>,
    wanted: Arc<Mutex<TypedTopics>>,
    /// By publisher.
    channels: BTreeMap<u64, PublisherChannel>,
    clock_sent_at: Option<Instant>,
    session: &'a str,
}

impl DomainView<'_> {
    /// Takes a snapshot of the domain.
    fn refresh(&mut self) -> rnet::Result<()> {
        let live = self.live;
        let mut domain = match self.domain.take() {
            Some(domain) => domain,
            None => live.options.location.domain()?,
        };
        let snapshot = domain.snapshot()?;
        self.domain = Some(domain);
        let has_clock = snapshot.publishers.iter().any(|publisher| publisher.topic == CLOCK);
        live.update_server_info(self.session, has_clock);
        self.find_channels(&snapshot);
        live.hub.set_services(&services(&snapshot));
        live.hub.set_graph(graph::from_snapshot(&snapshot, live.options.include_internal));
        let clocks = self.channels.values().filter(|known| known.is_clock);
        let wanted = live.hub.channels_to_follow(&clocks.map(|known| known.channel).collect());
        let takes =
            |id: u64| self.channels.get(&id).is_some_and(|known| wanted.contains(&known.channel));
        let followed: Vec<_> = snapshot.publishers.iter().filter(|p| takes(p.id)).collect();
        let remote = followed.iter().filter(|p| p.via.is_some()).map(|p| p.topic.as_str());
        live.subscribe_remote(&remote.collect());
        let mut topics = TypedTopics::new();
        for publisher in followed {
            let topic = (publisher.topic.clone(), publisher.type_desc.clone());
            if !topics.contains(&topic) {
                topics.push(topic);
            }
        }
        self.follow(topics)
    }

    /// Follows the publishers of these topics, and no others.
    fn follow(&mut self, topics: TypedTopics) -> rnet::Result<()> {
        if *lock(&self.wanted) == topics {
            return Ok(());
        }
        let takes = |topics: &TypedTopics, topic: &str, desc: &TypeDesc| {
            topics.iter().any(|(name, ty)| name == topic && ty == desc)
        };
        match &mut self.follower {
            _ if topics.is_empty() => self.follower = None,
            Some(follower) => follower.reselect(|topic, desc, _| takes(&topics, topic, desc)),
            None => {
                let (domain, wanted) = (self.live.options.location.domain()?, self.wanted.clone());
                self.follower = Some(Follower::matching(domain, true, move |publisher| {
                    takes(&lock(&wanted), &publisher.topic, &publisher.type_desc)
                }));
            }
        }
        *lock(&self.wanted) = topics;
        Ok(())
    }

    /// Creates channels for new publishers, and removes channels without a publisher.
    fn find_channels(&mut self, snapshot: &Snapshot) {
        let live = self.live;
        let shown = |topic: &str| live.options.include_internal || !topic.starts_with(RESERVED);
        let here: BTreeSet<u64> = snapshot.publishers.iter().map(|p| p.id).collect();
        self.channels.retain(|id, _| here.contains(id));
        for p in snapshot.publishers.iter().filter(|p| shown(&p.topic)) {
            // A type that is neither read nor unreadable is read by the next refresh.
            let is_unread = p.schema.is_none() && p.type_error.is_none();
            if matches!(p.type_desc, TypeDesc::Protobuf(_)) && is_unread {
                continue;
            }
            self.channels.entry(p.id).or_insert_with(|| {
                PublisherChannel::new(&live.hub, &p.topic, &p.type_desc, p.schema.as_ref(), &p.qos)
            });
        }
        live.hub.retain_publishers(
            &self.channels.iter().map(|(id, known)| (*id, known.channel)).collect(),
        );
    }

    /// Forwards new messages. Without any, waits until `next`, or until there may be some.
    fn forward_messages(&mut self, bytes: &mut Vec<u8>, next: Instant) {
        let Some(follower) = &mut self.follower else { return };
        let hub = &self.live.hub;
        let offset_ns = rnet::wall_offset().offset_ns;
        let mut left = MAX_FORWARDED_AT_ONCE;
        // If the domain cannot be read, the known publishers are still followed.
        while left > 0
            && let Ok(Some(observed)) = follower.poll_all(bytes)
        {
            left -= 1;
            let Observed::Message(observed) = observed else { continue };
            let (publisher, sent_ns) = (observed.stamp.publisher, observed.stamp.sent_ns);
            // A new publisher of a followed topic may not be in a snapshot yet.
            let known = self.channels.entry(publisher).or_insert_with(|| {
                let (topic, desc, qos) = (observed.topic, observed.type_desc, observed.qos);
                PublisherChannel::new(hub, topic, desc, observed.schema, qos)
            });
            let is_due = self.clock_sent_at.is_none_or(|at| at.elapsed() >= CLOCK_INTERVAL);
            if known.is_clock && is_due {
                self.clock_sent_at = Some(Instant::now());
                let said = Clock::decode(&**bytes).ok().map(|clock| clock.time_ns);
                if let Some(now_ns) = said.and_then(|ns| u64::try_from(ns).ok()) {
                    hub.broadcast_time(now_ns);
                }
            }
            match known.format.payload(bytes) {
                Ok(payload) => {
                    let (time_ns, latch_depth) =
                        (sent_ns.saturating_add_signed(offset_ns), known.latch_depth);
                    let message =
                        TopicMessage { publisher, time_ns, payload: &payload, latch_depth };
                    hub.send_message(known.channel, &message);
                }
                Err(why) if !known.is_error_reported => {
                    known.is_error_reported = true;
                    hub.broadcast(&outgoing::status(outgoing::Level::Warning, &why));
                }
                Err(_) => {}
            }
        }
        follower.take_events();
        let missed = follower.take_lost();
        if missed > 0 {
            let why = format!("the server was too slow and skipped {missed} messages");
            hub.broadcast(&outgoing::status(outgoing::Level::Warning, &why));
        }
        if left > 0 {
            follower.wait(next.saturating_duration_since(Instant::now()));
        }
    }
}

/// The services that can be called, with their descriptions. Actions are excluded: their calls are of another
/// kind.
fn services(snapshot: &Snapshot) -> BTreeMap<String, Value> {
    let mut services = BTreeMap::new();
    for server in snapshot.servers() {
        let types = (server.request_type().message_type(), server.reply_type());
        let (Some(request), Some(Some(reply))) = (types.0, types.1.map(|ty| ty.message_type()))
        else {
            continue;
        };
        if server.feedback.is_some() || server.service.starts_with(RESERVED) {
            continue;
        }
        let name = |ty: &MessageType| ty.desc().name().unwrap_or("bytes").to_owned();
        services.entry(server.service.to_owned()).or_insert_with(|| {
            json!({
                "type": name(&request),
                "request": describe_call_type(&request),
                "response": describe_call_type(&reply),
            })
        });
    }
    services
}

impl Backend for LiveBackend {
    fn open_channel(&self, client: u64, channel: &ClientChannel) -> Result<(), String> {
        self.publishers.open(self, client, channel)
    }

    fn close_channel(&self, client: u64, channel: u32) {
        self.publishers.close(client, channel);
    }

    fn publish(&self, client: u64, channel: u32, data: &[u8]) -> Result<(), String> {
        self.publishers.publish(client, channel, data)
    }

    fn call_service(&self, service: &str, encoding: &str, data: &[u8]) -> Result<Vec<u8>, String> {
        self.calls.call(self, service, encoding, data)
    }

    fn get_parameters(&self, names: &[String]) -> Result<Vec<Parameter>, String> {
        params::get(self, names)
    }

    fn set_parameter(&self, parameter: &Parameter) -> Result<(), String> {
        params::set(self, parameter)
    }

    fn follow_parameters(&self) -> Result<(), String> {
        self.params.follow(self)
    }
}
