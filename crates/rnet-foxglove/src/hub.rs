//! State shared by all clients: channels, services, the graph, and subscriptions.
//!
//! One lock guards it. While it is held, frames are only put into queues, and nothing blocks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rnet_access::{Role, User};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::channel_format::ChannelFormat;
use crate::incoming::{Parameter, Subscription};
use crate::outgoing::{self, ConnectionGraph};
use crate::queue::Queue;

/// Maximum number of channels in a frame, so that a new client does not get a frame of many megabytes.
const CHANNELS_PER_FRAME: usize = 100;
/// Maximum number and bytes of messages that a channel keeps for late joiners.
const MAX_LATCHED: usize = 64;
const MAX_LATCHED_LEN_BYTES: usize = 8 << 20;
/// Maximum number of parameters that a client may follow.
const MAX_FOLLOWED: usize = 4096;
/// Maximum number of remembered subscriptions that ended with their channel; the client may still unsubscribe
/// from them.
const MAX_ENDED: usize = 4096;

/// Capabilities of clients that may change something.
pub const CHANGES: [&str; 2] = ["clientPublish", "services"];

/// A connected client.
#[derive(Debug)]
pub struct Client {
    pub id: u64,
    pub user: User,
    pub queue: Queue,
}

#[derive(Debug, Default)]
pub struct Hub {
    state: Mutex<HubState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HubState {
    info: Value,
    channels: BTreeMap<u32, Channel>,
    /// Name and advertisement of each service, by its id.
    services: BTreeMap<u32, (String, Value)>,
    graph: ConnectionGraph,
    clients: BTreeMap<u64, ClientEntry>,
    next_channel: u32,
    next_service: u32,
    /// Whether subscriptions have changed since the last wait.
    is_changed: bool,
    is_shut_down: bool,
    /// Messages dropped from queues of disconnected clients.
    dropped_before: u64,
}

#[derive(Debug)]
struct ClientEntry {
    client: Arc<Client>,
    follows_graph: bool,
    followed_params: BTreeSet<String>,
    /// Subscriptions that ended with their channel: viewers unsubscribe from them too when the channel is
    /// unadvertised.
    ended: BTreeSet<u32>,
}

#[derive(Debug)]
struct Channel {
    topic: String,
    format: ChannelFormat,
    /// The subscribed clients, with their subscription ids.
    subscribers: Vec<(Arc<Client>, u32)>,
    /// Messages kept for late joiners: publisher, time, payload.
    latched: VecDeque<(u64, u64, Vec<u8>)>,
    latched_len: usize,
}

impl Channel {
    fn advertisement(&self, id: u32) -> Value {
        let mut advertisement = self.format.advertisement();
        advertisement["id"] = id.into();
        advertisement["topic"] = self.topic.as_str().into();
        advertisement
    }

    fn retain_latched(&mut self, stays: impl Fn(u64) -> bool) {
        self.latched.retain(|(publisher, ..)| stays(*publisher));
        self.latched_len = self.latched.iter().map(|(.., payload)| payload.len()).sum();
    }

    fn latch(&mut self, publisher: u64, depth: usize, time_ns: u64, payload: &[u8]) {
        self.latched_len += payload.len();
        self.latched.push_back((publisher, time_ns, payload.to_vec()));
        let of_it = self.latched.iter().filter(|message| message.0 == publisher).count();
        let first = self.latched.iter().position(|message| message.0 == publisher);
        if of_it > depth.clamp(1, MAX_LATCHED)
            && let Some(gone) = first.and_then(|at| self.latched.remove(at))
        {
            self.latched_len -= gone.2.len();
        }
        while self.latched.len() > 1
            && (self.latched.len() > MAX_LATCHED || self.latched_len > MAX_LATCHED_LEN_BYTES)
        {
            self.latched_len -= self.latched.pop_front().map_or(0, |gone| gone.2.len());
        }
    }
}

impl Client {
    /// Whether it may publish, call services and set parameters.
    fn may_change(&self) -> bool {
        self.user.check(Role::Operate, "").is_ok()
    }

    /// Sends the server information, with the capabilities of its role.
    fn send_info(&self, info: &Value) {
        let mut info = info.clone();
        if let Some(capabilities) = info.get_mut("capabilities").and_then(Value::as_array_mut) {
            capabilities
                .retain(|of| self.may_change() || CHANGES.iter().all(|change| of != change));
        }
        self.queue.push_control(outgoing::text(&info));
    }
}

impl HubState {
    /// Sends a message to all clients.
    fn broadcast(&self, message: &Message) {
        self.clients.values().for_each(|entry| entry.client.queue.push_control(message.clone()));
    }

    /// Sends a message to the clients that may call services.
    fn broadcast_services(&self, message: &Message) {
        let clients = self.clients.values().map(|entry| &entry.client);
        clients.filter(|client| client.may_change()).for_each(|client| {
            client.queue.push_control(message.clone());
        });
    }

    fn subscribe(&mut self, client: &Arc<Client>, asked: Subscription) -> Result<(), String> {
        let Subscription { id, channel_id } = asked;
        let of_client = |(of, number): &&(Arc<Client>, u32)| of.id == client.id && *number == id;
        if self.channels.values().any(|c| c.subscribers.iter().any(|s| of_client(&s))) {
            return Err(format!("subscription {id} already exists"));
        }
        let Some(channel) = self.channels.get_mut(&channel_id) else {
            return Err(format!("channel {channel_id} does not exist"));
        };
        if channel.subscribers.iter().any(|(of, _)| of.id == client.id) {
            return Err(format!("{} is already subscribed", channel.topic));
        }
        for (_, time_ns, payload) in &channel.latched {
            client.queue.push_data(outgoing::message(id, *time_ns, payload));
        }
        channel.subscribers.push((client.clone(), id));
        if let Some(entry) = self.clients.get_mut(&client.id) {
            entry.ended.remove(&id);
        }
        Ok(())
    }
}

/// A message for the subscribers of a channel.
pub struct TopicMessage<'a> {
    pub publisher: u64,
    /// In ns since 1970.
    pub time_ns: u64,
    pub payload: &'a [u8],
    /// How many messages the publisher keeps for late joiners.
    pub latch_depth: usize,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the server information, and sends it to all current and future clients.
    pub fn set_server_info(&self, info: Value) {
        let mut state = self.lock();
        if state.info != info {
            state.clients.values().for_each(|entry| entry.client.send_info(&info));
            state.info = info;
        }
    }

    pub fn join(&self, client: Arc<Client>) {
        let mut state = self.lock();
        client.send_info(&state.info);
        let channels: Vec<Value> =
            state.channels.iter().map(|(id, channel)| channel.advertisement(*id)).collect();
        for channels in channels.chunks(CHANNELS_PER_FRAME) {
            client.queue.push_control(outgoing::advertise(channels));
        }
        let services: Vec<Value> =
            state.services.values().map(|(_, advertisement)| advertisement.clone()).collect();
        if !services.is_empty() && client.may_change() {
            client.queue.push_control(outgoing::advertise_services(&services));
        }
        let (followed_params, ended) = Default::default();
        let entry =
            ClientEntry { client: client.clone(), follows_graph: false, followed_params, ended };
        state.clients.insert(client.id, entry);
        self.notify_changed(state);
    }

    pub fn leave(&self, id: u64) {
        let mut state = self.lock();
        if let Some(entry) = state.clients.remove(&id) {
            state.dropped_before += entry.client.queue.dropped();
        }
        for channel in state.channels.values_mut() {
            channel.subscribers.retain(|(client, _)| client.id != id);
        }
        self.notify_changed(state);
    }

    /// Wakes the thread that waits for changes.
    fn notify_changed(&self, mut state: MutexGuard<'_, HubState>) {
        state.is_changed = true;
        drop(state);
        self.changed.notify_all();
    }

    pub fn shut_down(&self) {
        let mut state = self.lock();
        state.is_shut_down = true;
        state
            .clients
            .values()
            .for_each(|entry| entry.client.queue.close("the server is shutting down"));
        self.notify_changed(state);
    }

    pub fn is_shut_down(&self) -> bool {
        self.lock().is_shut_down
    }

    /// Waits until subscriptions change, for at most `limit`. Returns whether they did.
    pub fn wait_for_change(&self, limit: Duration) -> bool {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, limit, |state| !state.is_changed && !state.is_shut_down);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.is_changed)
    }

    pub fn client_count(&self) -> usize {
        self.lock().clients.len()
    }

    /// Messages that were dropped because clients read too slowly.
    pub fn dropped(&self) -> u64 {
        let state = self.lock();
        state.dropped_before + state.clients.values().map(|m| m.client.queue.dropped()).sum::<u64>()
    }

    /// The channel of a topic for messages of this format; created if it does not exist.
    pub fn get_or_create_channel(&self, topic: &str, format: &ChannelFormat) -> u32 {
        let mut state = self.lock();
        let found = state.channels.iter().find(|(_, c)| c.topic == topic && c.format == *format);
        if let Some((id, _)) = found {
            return *id;
        }
        state.next_channel += 1;
        let id = state.next_channel;
        let channel = Channel {
            topic: topic.to_owned(),
            format: format.clone(),
            subscribers: Vec::new(),
            latched: VecDeque::new(),
            latched_len: 0,
        };
        let advertisement = outgoing::advertise(&[channel.advertisement(id)]);
        state.channels.insert(id, channel);
        state.broadcast(&advertisement);
        id
    }

    /// Keeps only these publishers with their channels. Drops the messages kept for others.
    pub fn retain_publishers(&self, left: &BTreeMap<u64, u32>) {
        let mut state = self.lock();
        let channels: BTreeSet<u32> = left.values().copied().collect();
        let is_gone = |id: &u32| !channels.contains(id);
        let gone: Vec<u32> = state.channels.keys().copied().filter(is_gone).collect();
        for channel in &gone {
            let ended = state.channels.remove(channel).map(|channel| channel.subscribers);
            for (client, subscription) in ended.unwrap_or_default() {
                let Some(entry) = state.clients.get_mut(&client.id) else { continue };
                entry.ended.insert(subscription);
                if entry.ended.len() > MAX_ENDED {
                    entry.ended.pop_first();
                }
            }
        }
        state.channels.values_mut().for_each(|c| c.retain_latched(|of| left.contains_key(&of)));
        if !gone.is_empty() {
            state.broadcast(&outgoing::unadvertise(&gone));
        }
    }

    /// The channels to follow: those with subscribers, and those in `always` if any client is connected.
    /// Drops the kept messages of the others, because they would become stale.
    pub fn channels_to_follow(&self, always: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut state = self.lock();
        let anybody = !state.clients.is_empty();
        let mut wanted = BTreeSet::new();
        for (id, channel) in &mut state.channels {
            match !channel.subscribers.is_empty() || anybody && always.contains(id) {
                true => drop(wanted.insert(*id)),
                false => channel.retain_latched(|_| false),
            }
        }
        wanted
    }

    /// Subscribes a client to channels, and sends the messages kept for late joiners. All subscriptions of a
    /// request become visible at once. Returns an error for each that fails: the channel does not exist, or
    /// the id or the channel is in use.
    pub fn subscribe(
        &self,
        client: &Arc<Client>,
        asked: Vec<Subscription>,
    ) -> Vec<Result<(), String>> {
        let mut state = self.lock();
        let done = asked.into_iter().map(|asked| state.subscribe(client, asked)).collect();
        self.notify_changed(state);
        done
    }

    /// Drops the messages kept for late joiners, after a seek.
    pub fn clear_latched(&self) {
        self.lock().channels.values_mut().for_each(|channel| channel.retain_latched(|_| false));
    }

    /// # Errors
    /// The subscription does not exist.
    pub fn unsubscribe(&self, client: &Client, subscription: u32) -> Result<(), String> {
        let mut state = self.lock();
        for channel in state.channels.values_mut() {
            let is_it = |(of, id): &(Arc<Client>, u32)| of.id == client.id && *id == subscription;
            if let Some(at) = channel.subscribers.iter().position(is_it) {
                channel.subscribers.swap_remove(at);
                self.notify_changed(state);
                return Ok(());
            }
        }
        let entry = state.clients.get_mut(&client.id);
        match entry.is_some_and(|entry| entry.ended.remove(&subscription)) {
            true => Ok(()),
            false => Err(format!("subscription {subscription} does not exist")),
        }
    }

    /// Sends a message to the subscribers of its channel.
    pub fn send_message(&self, channel: u32, message: &TopicMessage<'_>) {
        let mut state = self.lock();
        let Some(channel) = state.channels.get_mut(&channel) else { return };
        for (client, subscription) in &channel.subscribers {
            client.queue.push_data(outgoing::message(
                *subscription,
                message.time_ns,
                message.payload,
            ));
        }
        if message.latch_depth > 0 {
            channel.latch(message.publisher, message.latch_depth, message.time_ns, message.payload);
        }
    }

    /// Sends a message to all clients.
    pub fn broadcast(&self, message: &Message) {
        self.lock().broadcast(message);
    }

    /// Sends the time to all clients.
    pub fn broadcast_time(&self, now_ns: u64) {
        let (state, frame) = (self.lock(), outgoing::time(now_ns));
        state.clients.values().for_each(|entry| entry.client.queue.push_time(frame.clone()));
    }

    /// Sets the current services: names, and advertisements without their ids.
    pub fn set_services(&self, now: &BTreeMap<String, Value>) {
        let mut state = self.lock();
        let is_there = |(name, advertisement): (&String, &Value)| {
            now.get(name).is_some_and(|now| {
                ["type", "request", "response"].iter().all(|key| now[key] == advertisement[key])
            })
        };
        let gone = state
            .services
            .iter()
            .filter(|(_, (name, advertisement))| !is_there((name, advertisement)));
        let gone: Vec<u32> = gone.map(|(id, _)| *id).collect();
        gone.iter().for_each(|id| drop(state.services.remove(id)));
        let known: BTreeSet<String> =
            state.services.values().map(|(name, _)| name.clone()).collect();
        let mut new = Vec::new();
        for (name, advertisement) in now.iter().filter(|(name, _)| !known.contains(*name)) {
            state.next_service += 1;
            let (id, mut advertisement) = (state.next_service, advertisement.clone());
            advertisement["id"] = id.into();
            advertisement["name"] = name.as_str().into();
            new.push(advertisement.clone());
            state.services.insert(id, (name.clone(), advertisement));
        }
        if !gone.is_empty() {
            state.broadcast_services(&outgoing::unadvertise_services(&gone));
        }
        if !new.is_empty() {
            state.broadcast_services(&outgoing::advertise_services(&new));
        }
    }

    pub fn service_name(&self, id: u32) -> Option<String> {
        self.lock().services.get(&id).map(|(name, _)| name.clone())
    }

    pub fn set_graph(&self, graph: ConnectionGraph) {
        let mut state = self.lock();
        let Some(frame) = graph.update_since(&state.graph) else { return };
        for entry in state.clients.values().filter(|entry| entry.follows_graph) {
            entry.client.queue.push_control(frame.clone());
        }
        state.graph = graph;
    }

    /// Starts or stops sending the graph to a client.
    pub fn follow_graph(&self, client: &Client, follow: bool) {
        let mut state = self.lock();
        let whole = state.graph.update_since(&ConnectionGraph::default()).unwrap_or_else(|| {
            outgoing::text(&json!({
                "op": "connectionGraphUpdate", "publishedTopics": [], "subscribedTopics": [],
                "advertisedServices": [], "removedTopics": [], "removedServices": [],
            }))
        });
        let Some(entry) = state.clients.get_mut(&client.id) else { return };
        if follow && !entry.follows_graph {
            entry.client.queue.push_control(whole);
        }
        entry.follows_graph = follow;
    }

    /// Starts or stops sending parameters to a client.
    ///
    /// # Errors
    /// The client follows too many parameters.
    pub fn follow_parameters(
        &self,
        client: &Client,
        names: Vec<String>,
        follow: bool,
    ) -> Result<(), String> {
        let mut state = self.lock();
        let Some(entry) = state.clients.get_mut(&client.id) else { return Ok(()) };
        if !follow {
            entry.followed_params.retain(|followed| !names.contains(followed));
            return Ok(());
        }
        if entry.followed_params.len() + names.len() > MAX_FOLLOWED {
            return Err(format!("a client can subscribe to at most {MAX_FOLLOWED} parameters"));
        }
        entry.followed_params.extend(names);
        Ok(())
    }

    /// Sends a parameter to the clients that follow it.
    pub fn notify_parameter(&self, parameter: &Parameter) {
        let state = self.lock();
        for entry in state.clients.values().filter(|m| m.followed_params.contains(&parameter.name))
        {
            let frame = outgoing::parameter_values(std::slice::from_ref(parameter), None);
            entry.client.queue.push_control(frame);
        }
    }
}
