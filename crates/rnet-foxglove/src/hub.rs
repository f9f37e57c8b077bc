//! What all clients see: channels, services, the graph; and which of them wants what.
//!
//! One lock guards it. Who holds it puts frames into queues and does nothing that waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::queue::Queue;
use crate::say::{self, Graph};
use crate::shape::Shape;
use crate::wire::{Parameter, Subscription};

/// Channels in one frame: a client that joins is not sent one frame of many megabytes.
const CHANNELS_PER_FRAME: usize = 100;
/// What publishers keep for late joiners, of a channel: messages, and bytes.
const MAX_KEPT: usize = 64;
const MAX_KEPT_LEN_BYTES: usize = 8 << 20;
/// Names of parameters that a client follows.
const MAX_FOLLOWED: usize = 4096;
/// Subscriptions that ended with their channel, which a client may still end itself.
const MAX_ENDED: usize = 4096;

/// A client that has come in.
#[derive(Debug)]
pub struct Client {
    pub id: u64,
    pub queue: Queue,
}

#[derive(Debug, Default)]
pub struct Hub {
    all: Mutex<All>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct All {
    info: Value,
    channels: BTreeMap<u32, Channel>,
    /// What each service says, by its number.
    services: BTreeMap<u32, (String, Value)>,
    graph: Graph,
    members: BTreeMap<u64, Member>,
    next_channel: u32,
    next_service: u32,
    /// Subscriptions have changed since somebody waited.
    is_changed: bool,
    is_over: bool,
    /// Messages that gave way in queues of clients that have gone.
    dropped_before: u64,
}

#[derive(Debug)]
struct Member {
    client: Arc<Client>,
    graph: bool,
    params: BTreeSet<String>,
    /// Its subscriptions that ended with their channel: viewers end them as well when they are told that it has gone.
    ended: BTreeSet<u32>,
}

#[derive(Debug)]
struct Channel {
    topic: String,
    shape: Shape,
    /// Who gets its messages, by the numbers of their subscriptions.
    subscribers: Vec<(Arc<Client>, u32)>,
    /// What publishers keep for late joiners: publisher, time, payload.
    kept: VecDeque<(u64, u64, Vec<u8>)>,
    kept_len: usize,
}

impl Channel {
    fn tell(&self, id: u32) -> Value {
        let mut said = self.shape.tell();
        said["id"] = id.into();
        said["topic"] = self.topic.as_str().into();
        said
    }

    fn retain_kept(&mut self, stays: impl Fn(u64) -> bool) {
        self.kept.retain(|(publisher, ..)| stays(*publisher));
        self.kept_len = self.kept.iter().map(|(.., payload)| payload.len()).sum();
    }

    fn keep(&mut self, publisher: u64, depth: usize, time_ns: u64, payload: &[u8]) {
        self.kept_len += payload.len();
        self.kept.push_back((publisher, time_ns, payload.to_vec()));
        let of_it = self.kept.iter().filter(|kept| kept.0 == publisher).count();
        let first = self.kept.iter().position(|kept| kept.0 == publisher);
        if of_it > depth.clamp(1, MAX_KEPT)
            && let Some(gone) = first.and_then(|at| self.kept.remove(at))
        {
            self.kept_len -= gone.2.len();
        }
        while self.kept.len() > 1
            && (self.kept.len() > MAX_KEPT || self.kept_len > MAX_KEPT_LEN_BYTES)
        {
            self.kept_len -= self.kept.pop_front().map_or(0, |gone| gone.2.len());
        }
    }
}

impl All {
    /// Sends something to all.
    fn tell(&self, message: &Message) {
        self.members.values().for_each(|member| member.client.queue.control(message.clone()));
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
        for (_, time_ns, payload) in &channel.kept {
            client.queue.data(say::message(id, *time_ns, payload));
        }
        channel.subscribers.push((client.clone(), id));
        if let Some(member) = self.members.get_mut(&client.id) {
            member.ended.remove(&id);
        }
        Ok(())
    }
}

/// A message for the subscribers of a channel.
pub struct Passed<'a> {
    pub publisher: u64,
    /// ns since 1970.
    pub time_ns: u64,
    pub payload: &'a [u8],
    /// How many the publisher keeps for late joiners.
    pub keeps: usize,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server says of itself, to all and to who comes.
    pub fn set_info(&self, info: Value) {
        let mut all = self.lock();
        if all.info != info {
            all.tell(&say::text(&info));
            all.info = info;
        }
    }

    pub fn join(&self, client: Arc<Client>) {
        let mut all = self.lock();
        client.queue.control(say::text(&all.info));
        let channels: Vec<Value> =
            all.channels.iter().map(|(id, channel)| channel.tell(*id)).collect();
        for channels in channels.chunks(CHANNELS_PER_FRAME) {
            client.queue.control(say::advertise(channels));
        }
        let services: Vec<Value> = all.services.values().map(|(_, said)| said.clone()).collect();
        if !services.is_empty() {
            client.queue.control(say::advertise_services(&services));
        }
        let (params, ended) = Default::default();
        let member = Member { client: client.clone(), graph: false, params, ended };
        all.members.insert(client.id, member);
        self.note(all);
    }

    pub fn leave(&self, id: u64) {
        let mut all = self.lock();
        if let Some(member) = all.members.remove(&id) {
            all.dropped_before += member.client.queue.dropped();
        }
        for channel in all.channels.values_mut() {
            channel.subscribers.retain(|(client, _)| client.id != id);
        }
        self.note(all);
    }

    /// Wakes who follows topics.
    fn note(&self, mut all: MutexGuard<'_, All>) {
        all.is_changed = true;
        drop(all);
        self.changed.notify_all();
    }

    pub fn end(&self) {
        let mut all = self.lock();
        all.is_over = true;
        all.members
            .values()
            .for_each(|member| member.client.queue.close("the server is shutting down"));
        self.note(all);
    }

    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Sleeps until subscriptions change, for `limit` at most. Whether they have.
    pub fn wait(&self, limit: Duration) -> bool {
        let all = self.lock();
        let waited =
            self.changed.wait_timeout_while(all, limit, |all| !all.is_changed && !all.is_over);
        let (mut all, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut all.is_changed)
    }

    pub fn clients(&self) -> usize {
        self.lock().members.len()
    }

    /// Messages that gave way because clients read too slowly.
    pub fn dropped(&self) -> u64 {
        let all = self.lock();
        all.dropped_before + all.members.values().map(|m| m.client.queue.dropped()).sum::<u64>()
    }

    /// The channel of a topic for messages of this shape, which is made if there is none.
    pub fn channel(&self, topic: &str, shape: &Shape) -> u32 {
        let mut all = self.lock();
        let found = all.channels.iter().find(|(_, c)| c.topic == topic && c.shape == *shape);
        if let Some((id, _)) = found {
            return *id;
        }
        all.next_channel += 1;
        let id = all.next_channel;
        let channel = Channel {
            topic: topic.to_owned(),
            shape: shape.clone(),
            subscribers: Vec::new(),
            kept: VecDeque::new(),
            kept_len: 0,
        };
        let said = say::advertise(&[channel.tell(id)]);
        all.channels.insert(id, channel);
        all.tell(&said);
        id
    }

    /// Only these publishers are left, with their channels. What others kept is kept no more.
    pub fn retain(&self, left: &BTreeMap<u64, u32>) {
        let mut all = self.lock();
        let channels: BTreeSet<u32> = left.values().copied().collect();
        let is_gone = |id: &u32| !channels.contains(id);
        let gone: Vec<u32> = all.channels.keys().copied().filter(is_gone).collect();
        for channel in &gone {
            let ended = all.channels.remove(channel).map(|channel| channel.subscribers);
            for (client, subscription) in ended.unwrap_or_default() {
                let Some(member) = all.members.get_mut(&client.id) else { continue };
                member.ended.insert(subscription);
                if member.ended.len() > MAX_ENDED {
                    member.ended.pop_first();
                }
            }
        }
        all.channels.values_mut().for_each(|c| c.retain_kept(|of| left.contains_key(&of)));
        if !gone.is_empty() {
            all.tell(&say::unadvertise(&gone));
        }
    }

    /// Channels that are to be followed: somebody wants their messages, or anybody is there and they are among
    /// `always`. Of the others nothing is kept: nobody sees to it that it stays the newest.
    pub fn wanted(&self, always: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut all = self.lock();
        let anybody = !all.members.is_empty();
        let mut wanted = BTreeSet::new();
        for (id, channel) in &mut all.channels {
            match !channel.subscribers.is_empty() || anybody && always.contains(id) {
                true => drop(wanted.insert(*id)),
                false => channel.retain_kept(|_| false),
            }
        }
        wanted
    }

    /// Subscribes a client to channels, and sends what publishers keep. Whoever waits for subscriptions sees all of one
    /// request at once. An error for each that fails: there is no such channel, or the number or the channel is in use.
    pub fn subscribe(
        &self,
        client: &Arc<Client>,
        asked: Vec<Subscription>,
    ) -> Vec<Result<(), String>> {
        let mut all = self.lock();
        let done = asked.into_iter().map(|asked| all.subscribe(client, asked)).collect();
        self.note(all);
        done
    }

    /// Forgets what publishers keep: the playing goes on elsewhere.
    pub fn forget_kept(&self) {
        self.lock().channels.values_mut().for_each(|channel| channel.retain_kept(|_| false));
    }

    /// # Errors
    /// There is no such subscription.
    pub fn unsubscribe(&self, client: &Client, subscription: u32) -> Result<(), String> {
        let mut all = self.lock();
        for channel in all.channels.values_mut() {
            let is_it = |(of, id): &(Arc<Client>, u32)| of.id == client.id && *id == subscription;
            if let Some(at) = channel.subscribers.iter().position(is_it) {
                channel.subscribers.swap_remove(at);
                self.note(all);
                return Ok(());
            }
        }
        let member = all.members.get_mut(&client.id);
        match member.is_some_and(|member| member.ended.remove(&subscription)) {
            true => Ok(()),
            false => Err(format!("subscription {subscription} does not exist")),
        }
    }

    /// Sends a message to those that want it.
    pub fn message(&self, channel: u32, passed: &Passed<'_>) {
        let mut all = self.lock();
        let Some(channel) = all.channels.get_mut(&channel) else { return };
        for (client, subscription) in &channel.subscribers {
            client.queue.data(say::message(*subscription, passed.time_ns, passed.payload));
        }
        if passed.keeps > 0 {
            channel.keep(passed.publisher, passed.keeps, passed.time_ns, passed.payload);
        }
    }

    /// Sends something to all.
    pub fn broadcast(&self, message: &Message) {
        self.lock().tell(message);
    }

    /// Tells all what time it is.
    pub fn time(&self, now_ns: u64) {
        let (all, said) = (self.lock(), say::time(now_ns));
        all.members.values().for_each(|member| member.client.queue.time(said.clone()));
    }

    /// The services that there are now: names, and what each says but its number.
    pub fn set_services(&self, now: &BTreeMap<String, Value>) {
        let mut all = self.lock();
        let is_there = |(name, said): (&String, &Value)| {
            now.get(name).is_some_and(|now| {
                ["type", "request", "response"].iter().all(|key| now[key] == said[key])
            })
        };
        let gone = all.services.iter().filter(|(_, (name, said))| !is_there((name, said)));
        let gone: Vec<u32> = gone.map(|(id, _)| *id).collect();
        gone.iter().for_each(|id| drop(all.services.remove(id)));
        let known: BTreeSet<String> = all.services.values().map(|(name, _)| name.clone()).collect();
        let mut new = Vec::new();
        for (name, said) in now.iter().filter(|(name, _)| !known.contains(*name)) {
            all.next_service += 1;
            let (id, mut said) = (all.next_service, said.clone());
            said["id"] = id.into();
            said["name"] = name.as_str().into();
            new.push(said.clone());
            all.services.insert(id, (name.clone(), said));
        }
        if !gone.is_empty() {
            all.tell(&say::unadvertise_services(&gone));
        }
        if !new.is_empty() {
            all.tell(&say::advertise_services(&new));
        }
    }

    pub fn service(&self, id: u32) -> Option<String> {
        self.lock().services.get(&id).map(|(name, _)| name.clone())
    }

    pub fn set_graph(&self, graph: Graph) {
        let mut all = self.lock();
        let Some(said) = graph.since(&all.graph) else { return };
        for member in all.members.values().filter(|member| member.graph) {
            member.client.queue.control(said.clone());
        }
        all.graph = graph;
    }

    /// Begins or ends to tell a client of the graph.
    pub fn follow_graph(&self, client: &Client, follow: bool) {
        let mut all = self.lock();
        let whole = all.graph.since(&Graph::default()).unwrap_or_else(|| {
            say::text(&json!({
                "op": "connectionGraphUpdate", "publishedTopics": [], "subscribedTopics": [],
                "advertisedServices": [], "removedTopics": [], "removedServices": [],
            }))
        });
        let Some(member) = all.members.get_mut(&client.id) else { return };
        if follow && !member.graph {
            member.client.queue.control(whole);
        }
        member.graph = follow;
    }

    /// Begins or ends to tell a client of parameters.
    ///
    /// # Errors
    /// They are too many.
    pub fn follow_parameters(
        &self,
        client: &Client,
        names: Vec<String>,
        follow: bool,
    ) -> Result<(), String> {
        let mut all = self.lock();
        let Some(member) = all.members.get_mut(&client.id) else { return Ok(()) };
        if !follow {
            member.params.retain(|followed| !names.contains(followed));
            return Ok(());
        }
        if member.params.len() + names.len() > MAX_FOLLOWED {
            return Err(format!("a client can subscribe to at most {MAX_FOLLOWED} parameters"));
        }
        member.params.extend(names);
        Ok(())
    }

    /// Tells who follows a parameter what it is now.
    pub fn parameter(&self, parameter: &Parameter) {
        let all = self.lock();
        for member in all.members.values().filter(|m| m.params.contains(&parameter.name)) {
            let said = say::parameter_values(std::slice::from_ref(parameter), None);
            member.client.queue.control(said);
        }
    }
}
