//! Simulates the clients that called the node: sends the recorded requests with their recorded numbers, and
//! receives the answers, on topics of the recorded names.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rnet::inspect::Snapshot;
use rnet::{Lane, Meta, Node, OnFull, Publisher, PublisherQos, Reliability, Subscriber};

use super::calls::{CallTopic, CallTopicKind, RecordedCalls, client_of, topic, wants_feedback};
use super::error::RerunError;
use crate::read::{Channel, Message};

/// Timeout of a request or an answer to a node that does not read.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of clients without open calls that are kept: for all services of the node, and per service
/// that it calls.
pub const MAX_CLIENTS: usize = 64;

/// A client: its service and its id.
type Key = (String, u32);

struct SimulatedClient {
    request: Publisher<[u8]>,
    /// Opened with the first control message.
    control: Option<Publisher<[u8]>>,
    lane: Lane,
    /// Its subscribers for answers; the answers are read as an observer.
    answer_subscribers: Vec<Subscriber<[u8]>>,
    /// Calls that the node has not finished.
    open: usize,
}

/// A message sent to the node.
pub struct SentRequest {
    pub topic: String,
    /// Endpoints of the client that the node has to find before it answers: topic, and id of the
    /// subscription.
    pub unmatched: Vec<(String, u64)>,
}

/// All simulated clients.
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

    /// Sends a recorded request or control message.
    ///
    /// # Errors
    /// `Incompatible`; the node does not read it.
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

    /// Records that the node has answered.
    pub fn note_answer(&mut self, of: &CallTopic<'_>, correlation: u64) {
        let key = (of.service.to_owned(), of.id);
        if let Some(client) = self.of.get_mut(&key) {
            client.open -= usize::from(client.open > 0 && of.kind.ends(correlation));
        }
    }

    /// Drops the oldest client without open calls, if the limit is reached.
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
        let subscribe = |kind: &CallTopicKind| {
            node.subscriber::<[u8]>(&topic(service, *client, kind.name()))
                .lane(lane)
                .keep_last(1)
                .open()
        };
        let answer_subscribers = kinds.map(subscribe).collect::<rnet::Result<_>>()?;
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

/// Creates a publisher and waits until the node has matched it.
fn connect_publisher(
    node: &Node,
    name: &str,
    channel: &Channel,
    lane: Lane,
    limit: Duration,
) -> Result<Publisher<[u8]>, RerunError> {
    let publisher = node.publisher::<[u8]>(name).qos(publisher_qos(lane));
    let publisher = publisher.message_type(channel.message_type()?).open()?;
    wait_for_match(&publisher, &channel.topic, limit)?;
    Ok(publisher)
}

/// Quality of service of publishers of requests and answers.
pub fn publisher_qos(lane: Lane) -> PublisherQos {
    PublisherQos {
        reliability: Reliability::Reliable,
        on_full: OnFull::Detach { stall: STALL_TIMEOUT },
        lane,
        ..PublisherQos::default()
    }
}

/// Waits until the node has connected to a publisher; `topic` is the recorded topic.
pub fn wait_for_match(
    publisher: &Publisher<[u8]>,
    topic: &str,
    limit: Duration,
) -> Result<(), RerunError> {
    let met = publisher.wait_for_subscribers_timeout(1, limit);
    if let (Err(_), Some(error)) = (&met, publisher.incompatible().first()) {
        return Err(RerunError::incompatible("the node", topic, &error.to_string()));
    }
    Ok(met?)
}
