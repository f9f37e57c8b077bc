//! Simulates the servers that the node calls: sends each recorded answer at its place among the inputs.
//!
//! The n-th request of the node to a service is paired with the n-th recorded one, whatever its content; the
//! comparison checks the content. An answer that is due before its request waits for it.
//!
//! Requests for the authority of a command depend on the clock, so recorded answers do not match them: a
//! driver gets authority at once, and keeps it until it releases it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use prost::Message as _;
use rnet::msgs::command_request::Action;
use rnet::msgs::{CallStatus, CommandReply, CommandRequest, CommandStatus, call_status::State};
use rnet::{Lane, Message as _, MessageType, Meta, Node, Publisher, Subscriber};

use super::calls::{
    CallTopic, CallTopicKind, CalledService, RecordedCalls, authority_of, client_of,
    feedback_type_topic, topic, wants_feedback,
};
use super::error::RerunError;
use super::simulated_clients::{MAX_CLIENTS, publisher_qos, wait_for_match};
use crate::play::{DueMessage, OrderedMessages};
use crate::read::{Recording, Select};

/// Id of the server for the authority of a command.
const AUTHORITY_SERVER: u32 = 1;

/// A request of the node.
#[derive(Clone, Debug)]
pub struct NodeRequest {
    pub service: String,
    pub correlation: u64,
    pub content: Vec<u8>,
}

/// A message to the node: its kind and its content.
#[derive(Clone, Debug)]
struct Answer {
    kind: CallTopicKind,
    content: Vec<u8>,
}

/// The publishers to a client of the node.
struct ClientEndpoints {
    of: BTreeMap<CallTopicKind, Publisher<[u8]>>,
    /// Calls that have not ended.
    open: usize,
}

/// Endpoints of the receiver of a command, in addition to the authority server.
struct Authority {
    /// Number of the driver that has authority.
    number: u64,
    _commands: Subscriber<[u8]>,
    _status: Publisher<CommandStatus>,
}

impl Authority {
    fn answer(&mut self, request: &[u8]) -> Answer {
        let request = CommandRequest::decode(request).unwrap_or_default();
        self.number += u64::from(request.action() == Action::Take);
        let granted = request.action() == Action::Take || request.number == self.number;
        let (number, priority) = (self.number, request.priority);
        let reply = CommandReply { granted, number, priority, ..CommandReply::default() };
        Answer { kind: CallTopicKind::Reply, content: reply.encode_to_vec() }
    }
}

struct SimulatedServer {
    asked: CalledService,
    /// For the authority of a command.
    authority: Option<Authority>,
    /// The index of each recorded request, by its correlation.
    request_index: HashMap<u64, usize>,
    /// The correlations of the re-run, by index of the recorded request; `None` if the node did not send it
    /// at its start.
    received: Vec<Option<u64>>,
    /// Answers whose requests have not arrived, by index of the request.
    early_answers: BTreeMap<usize, Vec<Answer>>,
    /// Indexes of requests that were answered before the first input.
    answered_early: HashSet<usize>,
    clients: HashMap<u32, ClientEndpoints>,
    order: VecDeque<u32>,
    lane: Lane,
    types: BTreeMap<CallTopicKind, MessageType>,
    /// Endpoints by which the node finds a server. The requests are read as an observer.
    _request_subscribers: [Subscriber<[u8]>; 2],
    _type_publishers: Vec<Publisher<[u8]>>,
}

/// All simulated servers, by service.
#[derive(Default)]
pub struct SimulatedServers {
    servers: BTreeMap<String, SimulatedServer>,
}

impl SimulatedServers {
    /// Opens a server for each service that the node called.
    pub fn open(recorded: &RecordedCalls, node: &Node) -> Result<Self, RerunError> {
        let mut servers = BTreeMap::new();
        for (service, asked) in &recorded.asked {
            servers.insert(service.clone(), SimulatedServer::open(service, asked, node)?);
        }
        Ok(Self { servers })
    }

    /// Opens a receiver of a command that the node drives, unless it exists.
    pub fn open_command(&mut self, command: &str, node: &Node) -> Result<(), RerunError> {
        let service = authority_of(command);
        if let Entry::Vacant(place) = self.servers.entry(service) {
            let server = SimulatedServer::of_command(command, place.key(), node)?;
            place.insert(server);
        }
        Ok(())
    }

    /// The services for the authority of commands.
    pub fn authorities(&self) -> BTreeSet<String> {
        let of = self.servers.iter().filter(|(_, server)| server.authority.is_some());
        of.map(|(service, _)| service.clone()).collect()
    }

    /// Whether requests on this topic are for one of these servers.
    pub fn serves(&self, topic: &CallTopic<'_>) -> bool {
        topic.kind == CallTopicKind::Request
            && self.servers.get(topic.service).is_some_and(|server| server.asked.server == topic.id)
    }

    /// Answers a request that arrives before the first input with all its recorded answers at once. Returns
    /// their topics.
    ///
    /// # Errors
    /// `UnrecordedCall`; those of publishing and of reading.
    pub fn answer_early(
        &mut self,
        recording: &Recording,
        node: &Node,
        received_request: &NodeRequest,
        limit: Duration,
    ) -> Result<Vec<String>, RerunError> {
        let NodeRequest { service, correlation, .. } = received_request;
        let correlation = *correlation;
        let Some(server) = self.servers.get_mut(service) else { return Ok(Vec::new()) };
        if server.authority.is_some() {
            return self.answer(node, received_request, limit);
        }
        let place = server.received.len();
        let Some(request) = server.asked.requests.get(place).copied() else {
            return Err(RerunError::unrecorded_call(service));
        };
        server.add_request(node, service, correlation, limit)?;
        server.answered_early.insert(place);
        let answers = recorded_answers(recording, service, request.correlation)?;
        answers.iter().map(|answer| server.send(service, correlation, answer)).collect()
    }

    /// Inputs begin; requests of the start are completed.
    ///
    /// # Errors
    /// `UnrecordedCall`: the node has made more requests at its start than were recorded.
    pub fn begin(&mut self, first_input_ns: u64) -> Result<(), RerunError> {
        for (service, server) in self.servers.iter_mut().filter(|(_, of)| of.authority.is_none()) {
            let requests = server.asked.requests.iter();
            let before = requests.take_while(|request| request.sent_ns < first_input_ns).count();
            if server.received.len() > before {
                return Err(RerunError::unrecorded_call(service));
            }
            server.received.resize(before, None);
        }
        Ok(())
    }

    /// Handles a request, and sends the answers that waited for it. Returns their topics.
    pub fn answer(
        &mut self,
        node: &Node,
        received_request: &NodeRequest,
        limit: Duration,
    ) -> Result<Vec<String>, RerunError> {
        let NodeRequest { service, correlation, content } = received_request;
        let correlation = *correlation;
        let Some(server) = self.servers.get_mut(service) else { return Ok(Vec::new()) };
        let place = server.received.len();
        server.add_request(node, service, correlation, limit)?;
        if let Some(authority) = &mut server.authority {
            let answer = authority.answer(content);
            return Ok(vec![server.send(service, correlation, &answer)?]);
        }
        let answers = match place < server.asked.requests.len() {
            true => server.early_answers.remove(&place).unwrap_or_default(),
            false => vec![unrecorded()],
        };
        answers.iter().map(|answer| server.send(service, correlation, answer)).collect()
    }

    /// Sends a recorded answer that is due. Returns its topic, if it could be sent.
    pub fn deliver(
        &mut self,
        of: &CallTopic<'_>,
        correlation: u64,
        content: &[u8],
    ) -> Result<Option<String>, RerunError> {
        let Some(server) = self.servers.get_mut(of.service) else { return Ok(None) };
        let Some(place) = server.request_index.get(&correlation).copied() else { return Ok(None) };
        if server.answered_early.contains(&place) {
            return Ok(None);
        }
        let answer = Answer { kind: of.kind, content: content.to_vec() };
        match server.received.get(place).copied() {
            Some(Some(correlation)) => server.send(of.service, correlation, &answer).map(Some),
            // The node did not send this request at its start.
            Some(None) => Ok(None),
            None => {
                server.early_answers.entry(place).or_default().push(answer);
                Ok(None)
            }
        }
    }
}

impl SimulatedServer {
    fn of_command(command: &str, service: &str, node: &Node) -> Result<Self, RerunError> {
        let commands = node.subscriber::<[u8]>(command).lane(Lane::Urgent).keep_last(1).open()?;
        let status = node
            .publisher(&rnet::command_status_topic(command))
            .urgent()
            .transient_local(1)
            .open()?;
        let authority = Authority { number: 0, _commands: commands, _status: status };
        let asked = CalledService::without_requests(AUTHORITY_SERVER);
        let types = BTreeMap::from([(CallTopicKind::Reply, CommandReply::message_type()?)]);
        let server = Self::connect(service, asked, Lane::default(), types, node)?;
        Ok(Self { authority: Some(authority), ..server })
    }

    fn open(service: &str, asked: &CalledService, node: &Node) -> Result<Self, RerunError> {
        let request = &asked.channels[&CallTopicKind::Request];
        let lane = request.source().map(|source| source.lane).unwrap_or_default();
        let mut types = BTreeMap::new();
        for (kind, channel) in &asked.channels {
            types.insert(*kind, channel.message_type()?);
        }
        Self::connect(service, asked.clone(), lane, types, node)
    }

    fn connect(
        service: &str,
        asked: CalledService,
        lane: Lane,
        mut types: BTreeMap<CallTopicKind, MessageType>,
        node: &Node,
    ) -> Result<Self, RerunError> {
        types.insert(CallTopicKind::Status, CallStatus::message_type()?);
        let subscribe = |kind: CallTopicKind| {
            let name = topic(service, asked.server, kind.name());
            node.subscriber::<[u8]>(&name).lane(lane).keep_last(1).open()
        };
        // The types of answers, for a node that looks them up.
        let mut shown = Vec::new();
        let show = |name: &str, ty: &MessageType| {
            node.publisher::<[u8]>(name).qos(publisher_qos(lane)).message_type(ty.clone()).open()
        };
        if let Some(ty) = types.get(&CallTopicKind::Reply) {
            shown.push(show(&topic(service, asked.server, "type"), ty)?);
        }
        if let Some(ty) = types.get(&CallTopicKind::Feedback) {
            shown.push(show(&feedback_type_topic(service, asked.server), ty)?);
        }
        let request_subscribers =
            [subscribe(CallTopicKind::Control)?, subscribe(CallTopicKind::Request)?];
        let request_index =
            asked.requests.iter().enumerate().map(|(at, r)| (r.correlation, at)).collect();
        Ok(Self {
            asked,
            authority: None,
            request_index,
            received: Vec::new(),
            early_answers: BTreeMap::new(),
            answered_early: HashSet::new(),
            clients: HashMap::new(),
            order: VecDeque::new(),
            lane,
            types,
            _request_subscribers: request_subscribers,
            _type_publishers: shown,
        })
    }

    /// Pairs a request with the next recorded one, and connects with its client.
    fn add_request(
        &mut self,
        node: &Node,
        service: &str,
        correlation: u64,
        limit: Duration,
    ) -> Result<(), RerunError> {
        self.received.push(Some(correlation));
        let client = client_of(correlation);
        if let Some(out) = self.clients.get_mut(&client) {
            out.open += 1;
            return Ok(());
        }
        let mut of = BTreeMap::new();
        let is_wanted = |kind: CallTopicKind| match kind {
            CallTopicKind::Reply | CallTopicKind::Status => true,
            CallTopicKind::Feedback => wants_feedback(correlation),
            CallTopicKind::Request | CallTopicKind::Control => false,
        };
        for (kind, ty) in self.types.iter().filter(|(kind, _)| is_wanted(**kind)) {
            let name = topic(service, client, kind.name());
            let publisher = node.publisher::<[u8]>(&name).qos(publisher_qos(self.lane));
            of.insert(*kind, publisher.message_type(ty.clone()).open()?);
        }
        for publisher in of.values() {
            wait_for_match(publisher, publisher.topic(), limit)?;
        }
        self.clients.insert(client, ClientEndpoints { of, open: 1 });
        self.order.push_back(client);
        while self.order.len() > MAX_CLIENTS {
            let ended = self.order.iter().position(|id| self.clients[id].open == 0);
            let Some(client) = ended.and_then(|at| self.order.remove(at)) else { break };
            self.clients.remove(&client);
        }
        Ok(())
    }

    /// Sends an answer; returns its topic.
    fn send(
        &mut self,
        service: &str,
        correlation: u64,
        answer: &Answer,
    ) -> Result<String, RerunError> {
        let client = client_of(correlation);
        let name = topic(service, client, answer.kind.name());
        let Some(out) = self.clients.get_mut(&client) else { return Ok(name) };
        if let Some(publisher) = out.of.get_mut(&answer.kind) {
            let meta = Meta::default().with_correlation(correlation);
            publisher.send_with(&answer.content, meta)?;
        }
        out.open -= usize::from(out.open > 0 && answer.kind.ends(correlation));
        Ok(name)
    }
}

/// The end of a call without a recorded answer.
fn unrecorded() -> Answer {
    let text = "the recording has no such call".to_owned();
    let mut status = CallStatus { code: "unrecorded".to_owned(), text, ..Default::default() };
    status.set_state(State::Failed);
    Answer { kind: CallTopicKind::Status, content: status.encode_to_vec() }
}

/// All recorded answers to a request.
fn recorded_answers(
    recording: &Recording,
    service: &str,
    correlation: u64,
) -> Result<Vec<Answer>, RerunError> {
    let kinds = [CallTopicKind::Reply, CallTopicKind::Status, CallTopicKind::Feedback];
    let client = client_of(correlation);
    let topics = kinds.map(|kind| topic(service, client, kind.name())).into();
    let mut answers = Vec::new();
    for due in OrderedMessages::new(recording, Select { topics, ..Select::default() }) {
        let DueMessage { message, meta, .. } = due?;
        let of = CallTopic::parse(&message.channel.topic);
        if let (Some(of), true) = (of, meta.correlation == Some(correlation)) {
            answers.push(Answer { kind: of.kind, content: message.data().to_vec() });
        }
    }
    Ok(answers)
}
