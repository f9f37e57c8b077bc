//! Who stands for the clients that called the node: they ask what was recorded, with the recorded numbers, and hear
//! what the node answers, each by topics of the recorded name.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rnet::inspect::Snapshot;
use rnet::{Lane, Meta, Node, OnFull, Publisher, PublisherOptions, Subscriber, SubscriberOptions};

use super::calls::{CallTopic, Kind, Recorded, client_of, topic, wants_feedback};
use super::error::RerunError;
use crate::read::{Channel, Message};

/// How long a request or an answer waits for a node that does not read.
const STALL: Duration = Duration::from_secs(10);
/// Clients without open calls that are kept: of all services of the node, and of each service that it calls.
pub const MAX_CLIENTS: usize = 64;

/// A client: by service and its id.
type Key = (String, u32);

struct Caller {
    request: Publisher<[u8]>,
    /// Opened with the first control.
    control: Option<Publisher<[u8]>>,
    lane: Lane,
    /// Its ends of answers. What comes there is read as an observer reads it.
    ends: Vec<Subscriber<[u8]>>,
    /// Calls that the node has not ended.
    open: usize,
}

/// What was sent to the node.
pub struct Sent {
    pub topic: String,
    /// Ends of the caller that the node has to find before it answers: topic, and id of the subscription.
    pub unmet: Vec<(String, u64)>,
}

/// All of them.
#[derive(Default)]
pub struct Callers {
    of: BTreeMap<Key, Caller>,
    order: VecDeque<Key>,
    /// The node's servers in this run, by service.
    servers: BTreeMap<String, u32>,
}

impl Callers {
    /// Finds the servers of the node that were called in the recording.
    ///
    /// # Errors
    /// `NotServed`, `Calls`.
    pub fn meet(
        &mut self,
        recorded: &Recorded,
        snapshot: &Snapshot,
        node: &str,
    ) -> Result<(), RerunError> {
        for service in recorded.services() {
            let own = snapshot.subscriptions.iter().filter(|s| s.node == node);
            let servers = own.filter_map(|s| CallTopic::parse(&s.topic));
            let mut servers =
                servers.filter(|of| of.kind == Kind::Request && of.service == service);
            let Some(server) = servers.next() else {
                let text = format!(
                    "{node} does not serve {service} after its start, but the recording has requests for it"
                );
                return Err(RerunError::failed("not_served", text));
            };
            if servers.next().is_some() {
                let why = format!("requests of {service}, for which the node has several servers");
                return Err(RerunError::calls(node, &why));
            }
            self.servers.insert(service.to_owned(), server.id);
        }
        Ok(())
    }

    /// A recorded request, or a control, is due.
    ///
    /// # Errors
    /// `Incompatible`; the node does not take it.
    pub fn send(
        &mut self,
        message: &Message,
        word: u64,
        node: &Node,
        limit: Duration,
    ) -> Result<Option<Sent>, RerunError> {
        let Some(of) = CallTopic::parse(&message.channel.topic) else { return Ok(None) };
        let Some(server) = self.servers.get(of.service).copied() else { return Ok(None) };
        let key = (of.service.to_owned(), client_of(word));
        let name = topic(of.service, server, of.kind.name());
        let is_new = !self.of.contains_key(&key);
        if is_new && of.kind == Kind::Control {
            // Its request was sent before the first input.
            return Ok(None);
        }
        if is_new {
            self.forget_one();
            let caller = Caller::open(node, &key, &name, &message.channel, word, limit)?;
            self.of.insert(key.clone(), caller);
            self.order.push_back(key.clone());
        }
        let Some(caller) = self.of.get_mut(&key) else { return Ok(None) };
        let meta = Meta::default().with_correlation(word);
        if of.kind == Kind::Control {
            caller
                .control(node, &name, &message.channel, limit)?
                .send_with(message.data(), meta)?;
        } else {
            caller.request.send_with(message.data(), meta)?;
            caller.open += 1;
        }
        let ends = caller.ends.iter().filter(|_| is_new);
        let unmet = ends.map(|end| (end.topic().to_owned(), end.id())).collect();
        Ok(Some(Sent { topic: name, unmet }))
    }

    /// The node has answered.
    pub fn hear(&mut self, of: &CallTopic<'_>, correlation: u64) {
        let key = (of.service.to_owned(), of.id);
        if let Some(caller) = self.of.get_mut(&key) {
            caller.open -= usize::from(caller.open > 0 && of.kind.ends(correlation));
        }
    }

    /// Lets go of the oldest whose calls have all ended, where there are many.
    fn forget_one(&mut self) {
        if self.order.len() < MAX_CLIENTS {
            return;
        }
        let ended = self.order.iter().position(|key| self.of[key].open == 0);
        if let Some(key) = ended.and_then(|at| self.order.remove(at)) {
            self.of.remove(&key);
        }
    }
}

impl Caller {
    fn open(
        node: &Node,
        (service, client): &Key,
        request_topic: &str,
        channel: &Channel,
        word: u64,
        limit: Duration,
    ) -> Result<Self, RerunError> {
        let lane = channel.source().map(|source| source.lane).unwrap_or_default();
        let kinds = [Kind::Reply, Kind::Status, Kind::Feedback];
        let kinds = kinds.iter().filter(|kind| **kind != Kind::Feedback || wants_feedback(word));
        let hear = |kind: &Kind| {
            let options = SubscriberOptions::new().lane(lane).keep_last(1);
            node.subscriber_with::<[u8]>(&topic(service, *client, kind.name()), options)
        };
        let ends = kinds.map(hear).collect::<rnet::Result<_>>()?;
        let request = connected(node, request_topic, channel, lane, limit)?;
        Ok(Self { request, control: None, lane, ends, open: 0 })
    }

    fn control(
        &mut self,
        node: &Node,
        name: &str,
        channel: &Channel,
        limit: Duration,
    ) -> Result<&mut Publisher<[u8]>, RerunError> {
        let control = match self.control.take() {
            Some(control) => control,
            None => connected(node, name, channel, self.lane, limit)?,
        };
        Ok(self.control.insert(control))
    }
}

/// A publisher that the node hears.
fn connected(
    node: &Node,
    name: &str,
    channel: &Channel,
    lane: Lane,
    limit: Duration,
) -> Result<Publisher<[u8]>, RerunError> {
    let options = options_of(lane).message_type(channel.message_type()?);
    let publisher = node.publisher_with::<[u8]>(name, options)?;
    meet(&publisher, &channel.topic, limit)?;
    Ok(publisher)
}

/// Options of publishers of requests and answers.
pub fn options_of(lane: Lane) -> PublisherOptions {
    let options = PublisherOptions::new().reliable(OnFull::Detach { stall: STALL });
    if lane == Lane::Urgent { options.urgent() } else { options }
}

/// Waits until the node has connected to a publisher; `topic` is the recorded topic.
pub fn meet(publisher: &Publisher<[u8]>, topic: &str, limit: Duration) -> Result<(), RerunError> {
    let met = publisher.wait_for_subscribers(1, Some(limit));
    if let (Err(_), Some(error)) = (&met, publisher.incompatible().first()) {
        return Err(RerunError::incompatible("the node", topic, &error.to_string()));
    }
    Ok(met?)
}
