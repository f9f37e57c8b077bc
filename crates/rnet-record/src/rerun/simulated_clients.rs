//! Who stands for the clients that called the node: they ask what was recorded, with the recorded numbers, and hear
//! what the node answers, each by topics of the recorded name.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rnet::inspect::Snapshot;
use rnet::{Lane, Meta, Node, OnFull, Publisher, PublisherOptions, Subscriber, SubscriberOptions};

use super::calls::{CallTopic, CallTopicKind, RecordedCalls, client_of, topic, wants_feedback};
use super::error::RerunError;
use crate::read::{Channel, Message};

/// How long a request or an answer waits for a node that does not read.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Clients without open calls that are kept: of all services of the node, and of each service that it calls.
pub const MAX_CLIENTS: usize = 64;

/// A client: by service and its id.
type Key = (String, u32);

struct SimulatedClient {
    request: Publisher<[u8]>,
    /// Opened with the first control.
    control: Option<Publisher<[u8]>>,
    lane: Lane,
    /// Its ends of answers. What comes there is read as an observer reads it.
    answer_subscribers: Vec<Subscriber<[u8]>>,
    /// Calls that the node has not ended.
    open: usize,
}

/// What was sent to the node.
pub struct SentRequest {
    pub topic: String,
    /// Ends of the client that the node has to find before it answers: topic, and id of the subscription.
    pub unmatched: Vec<(String, u64)>,
}

/// All of them.
#[derive(Default)]
pub struct SimulatedClients {
    of: BTreeMap<Key, SimulatedClient>,
    order: VecDeque<Key>,
    /// The node's servers in this run, by service.
    servers: BTreeMap<String, u32>,
}

impl SimulatedClients {
    /// Finds the servers of the node that were called in the recording.
    ///
    /// # Errors
    /// `NotServed`, `Calls`.
    pub fn find_servers(
        &mut self,
        recorded: &RecordedCalls,
        snapshot: &Snapshot,
        node: &str,
    ) -> Result<(), RerunError> {
        for service in recorded.services() {
            let own = snapshot.subscriptions.iter().filter(|s| s.node == node);
            let servers = own.filter_map(|s| CallTopic::parse(&s.topic));
            let mut servers =
                servers.filter(|of| of.kind == CallTopicKind::Request && of.service == service);
            let Some(server) = servers.next() else {
                let text = format!(
                    "{node} does not serve {service} after its start, but the recording has requests for it"
                );
                return Err(RerunError::failed("not_served", text));
            };
            if servers.next().is_some() {
                let why = format!("requests of {service}, for which the node has several servers");
                return Err(RerunError::unrepeatable_calls(node, &why));
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
        correlation: u64,
        node: &Node,
        limit: Duration,
    ) -> Result<Option<SentRequest>, RerunError> {
        let Some(of) = CallTopic::parse(&message.channel.topic) else { return Ok(None) };
        let Some(server) = self.servers.get(of.service).copied() else { return Ok(None) };
        let key = (of.service.to_owned(), client_of(correlation));
        let name = topic(of.service, server, of.kind.name());
        let is_new = !self.of.contains_key(&key);
        if is_new && of.kind == CallTopicKind::Control {
            // Its request was sent before the first input.
            return Ok(None);
        }
        if is_new {
            self.forget_one();
            let client =
                SimulatedClient::open(node, &key, &name, &message.channel, correlation, limit)?;
            self.of.insert(key.clone(), client);
            self.order.push_back(key.clone());
        }
        let Some(client) = self.of.get_mut(&key) else { return Ok(None) };
        let meta = Meta::default().with_correlation(correlation);
        if of.kind == CallTopicKind::Control {
            client
                .control(node, &name, &message.channel, limit)?
                .send_with(message.data(), meta)?;
        } else {
            client.request.send_with(message.data(), meta)?;
            client.open += 1;
        }
        let answer_subscribers = client.answer_subscribers.iter().filter(|_| is_new);
        let unmatched = answer_subscribers.map(|end| (end.topic().to_owned(), end.id())).collect();
        Ok(Some(SentRequest { topic: name, unmatched }))
    }

    /// The node has answered.
    pub fn note_answer(&mut self, of: &CallTopic<'_>, correlation: u64) {
        let key = (of.service.to_owned(), of.id);
        if let Some(client) = self.of.get_mut(&key) {
            client.open -= usize::from(client.open > 0 && of.kind.ends(correlation));
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

impl SimulatedClient {
    fn open(
        node: &Node,
        (service, client): &Key,
        request_topic: &str,
        channel: &Channel,
        correlation: u64,
        limit: Duration,
    ) -> Result<Self, RerunError> {
        let lane = channel.source().map(|source| source.lane).unwrap_or_default();
        let kinds = [CallTopicKind::Reply, CallTopicKind::Status, CallTopicKind::Feedback];
        let kinds = kinds
            .iter()
            .filter(|kind| **kind != CallTopicKind::Feedback || wants_feedback(correlation));
        let hear = |kind: &CallTopicKind| {
            let options = SubscriberOptions::new().lane(lane).keep_last(1);
            node.subscriber_with::<[u8]>(&topic(service, *client, kind.name()), options)
        };
        let answer_subscribers = kinds.map(hear).collect::<rnet::Result<_>>()?;
        let request = connect_publisher(node, request_topic, channel, lane, limit)?;
        Ok(Self { request, control: None, lane, answer_subscribers, open: 0 })
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
            None => connect_publisher(node, name, channel, self.lane, limit)?,
        };
        Ok(self.control.insert(control))
    }
}

/// A publisher that the node hears.
fn connect_publisher(
    node: &Node,
    name: &str,
    channel: &Channel,
    lane: Lane,
    limit: Duration,
) -> Result<Publisher<[u8]>, RerunError> {
    let options = publisher_options(lane).message_type(channel.message_type()?);
    let publisher = node.publisher_with::<[u8]>(name, options)?;
    wait_for_match(&publisher, &channel.topic, limit)?;
    Ok(publisher)
}

/// Options of publishers of requests and answers.
pub fn publisher_options(lane: Lane) -> PublisherOptions {
    let options = PublisherOptions::new().reliable(OnFull::Detach { stall: STALL_TIMEOUT });
    if lane == Lane::Urgent { options.urgent() } else { options }
}

/// Waits until the node has connected to a publisher; `topic` is the recorded topic.
pub fn wait_for_match(
    publisher: &Publisher<[u8]>,
    topic: &str,
    limit: Duration,
) -> Result<(), RerunError> {
    let met = publisher.wait_for_subscribers(1, Some(limit));
    if let (Err(_), Some(error)) = (&met, publisher.incompatible().first()) {
        return Err(RerunError::incompatible("the node", topic, &error.to_string()));
    }
    Ok(met?)
}
