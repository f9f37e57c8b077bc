//! Who stands for the servers that the node calls: it gives the recorded answers, each in its place among the inputs.
//!
//! The n-th request of the node to a service is taken for the n-th recorded one, whatever it asks: that it asks the same
//! is for the comparison. An answer that is due before its request has come waits for it.
//!
//! Requests for the authority of a command depend on the clock, so recorded answers do not fit them: a driver gets
//! authority at once, and keeps it until it gives it back.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use prost::Message as _;
use rnet::msgs::command_request::Action;
use rnet::msgs::{CallStatus, CommandReply, CommandRequest, CommandStatus, call_status::State};
use rnet::{
    Lane, Message as _, MessageType, Meta, Node, Publisher, PublisherOptions, Subscriber,
    SubscriberOptions,
};

use super::callers::{MAX_CLIENTS, meet, options_of};
use super::calls::{
    Asked, CallTopic, Kind, Recorded, authority_of, client_of, feedback_type_topic, topic,
    wants_feedback,
};
use super::error::RerunError;
use crate::play::{Due, InOrder};
use crate::read::{Recording, Select};

/// The id of the server that gives authority over a command.
const AUTHORITY_SERVER: u32 = 1;

/// A request of the node.
#[derive(Clone, Debug)]
pub struct Heard {
    pub service: String,
    pub correlation: u64,
    pub content: Vec<u8>,
}

/// A message to the node: of which kind, and its content.
#[derive(Clone, Debug)]
struct Answer {
    kind: Kind,
    content: Vec<u8>,
}

/// The ends of a client of the node.
struct Out {
    of: BTreeMap<Kind, Publisher<[u8]>>,
    /// Calls that have no end yet.
    open: usize,
}

/// What the receiver of a command has, beside the server of its authority.
struct Authority {
    /// Of the driver that has it.
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
        Answer { kind: Kind::Reply, content: reply.encode_to_vec() }
    }
}

struct Stand {
    asked: Asked,
    /// For the authority of a command.
    authority: Option<Authority>,
    /// By the recorded correlation, its place.
    places: HashMap<u64, usize>,
    /// The correlations of the re-run, by the places of their recorded requests; `None` of one that did not come.
    heard: Vec<Option<u64>>,
    /// Answers whose requests have not come, by the places of these.
    early: BTreeMap<usize, Vec<Answer>>,
    /// Places whose answers were given before the first input.
    given: HashSet<usize>,
    clients: HashMap<u32, Out>,
    order: VecDeque<u32>,
    lane: Lane,
    types: BTreeMap<Kind, MessageType>,
    /// By these the node finds a server. Requests are read as an observer reads them.
    _heard: [Subscriber<[u8]>; 2],
    _shown: Vec<Publisher<[u8]>>,
}

/// All of them, by service.
#[derive(Default)]
pub struct Servers {
    stands: BTreeMap<String, Stand>,
}

impl Servers {
    /// Opens a server for each service that the node called.
    pub fn open(recorded: &Recorded, node: &Node) -> Result<Self, RerunError> {
        let mut stands = BTreeMap::new();
        for (service, asked) in &recorded.asked {
            stands.insert(service.clone(), Stand::open(service, asked, node)?);
        }
        Ok(Self { stands })
    }

    /// Opens a receiver of a command that the node drives, unless there is one.
    pub fn open_command(&mut self, command: &str, node: &Node) -> Result<(), RerunError> {
        let service = authority_of(command);
        if let Entry::Vacant(place) = self.stands.entry(service) {
            let stand = Stand::of_command(command, place.key(), node)?;
            place.insert(stand);
        }
        Ok(())
    }

    /// The services that give authority over commands.
    pub fn authorities(&self) -> BTreeSet<String> {
        let of = self.stands.iter().filter(|(_, stand)| stand.authority.is_some());
        of.map(|(service, _)| service.clone()).collect()
    }

    /// Whether requests on this topic are for one of these.
    pub fn hears(&self, topic: &CallTopic<'_>) -> bool {
        topic.kind == Kind::Request
            && self.stands.get(topic.service).is_some_and(|stand| stand.asked.server == topic.id)
    }

    /// A request has come before the first input: gives all its recorded answers at once. The topics of these.
    ///
    /// # Errors
    /// `UnrecordedCall`; those of publishing and of reading.
    pub fn answer_early(
        &mut self,
        recording: &Recording,
        node: &Node,
        heard: &Heard,
        limit: Duration,
    ) -> Result<Vec<String>, RerunError> {
        let Heard { service, correlation, .. } = heard;
        let correlation = *correlation;
        let Some(stand) = self.stands.get_mut(service) else { return Ok(Vec::new()) };
        if stand.authority.is_some() {
            return self.answer(node, heard, limit);
        }
        let place = stand.heard.len();
        let Some(request) = stand.asked.requests.get(place).copied() else {
            return Err(RerunError::unrecorded_call(service));
        };
        stand.hear(node, service, correlation, limit)?;
        stand.given.insert(place);
        let answers = recorded_answers(recording, service, request.correlation)?;
        answers.iter().map(|answer| stand.send(service, correlation, answer)).collect()
    }

    /// Inputs begin: what was asked before is done with.
    ///
    /// # Errors
    /// `UnrecordedCall`: the node has asked more than was recorded of its start.
    pub fn begin(&mut self, first_input_ns: u64) -> Result<(), RerunError> {
        for (service, stand) in self.stands.iter_mut().filter(|(_, of)| of.authority.is_none()) {
            let requests = stand.asked.requests.iter();
            let before = requests.take_while(|request| request.sent_ns < first_input_ns).count();
            if stand.heard.len() > before {
                return Err(RerunError::unrecorded_call(service));
            }
            stand.heard.resize(before, None);
        }
        Ok(())
    }

    /// A request has come. The topics of the answers that waited for it.
    pub fn answer(
        &mut self,
        node: &Node,
        heard: &Heard,
        limit: Duration,
    ) -> Result<Vec<String>, RerunError> {
        let Heard { service, correlation, content } = heard;
        let correlation = *correlation;
        let Some(stand) = self.stands.get_mut(service) else { return Ok(Vec::new()) };
        let place = stand.heard.len();
        stand.hear(node, service, correlation, limit)?;
        if let Some(authority) = &mut stand.authority {
            let answer = authority.answer(content);
            return Ok(vec![stand.send(service, correlation, &answer)?]);
        }
        let answers = match place < stand.asked.requests.len() {
            true => stand.early.remove(&place).unwrap_or_default(),
            false => vec![unrecorded()],
        };
        answers.iter().map(|answer| stand.send(service, correlation, answer)).collect()
    }

    /// A recorded answer is due. Its topic, if it could be given.
    pub fn give(
        &mut self,
        of: &CallTopic<'_>,
        word: u64,
        content: &[u8],
    ) -> Result<Option<String>, RerunError> {
        let Some(stand) = self.stands.get_mut(of.service) else { return Ok(None) };
        let Some(place) = stand.places.get(&word).copied() else { return Ok(None) };
        if stand.given.contains(&place) {
            return Ok(None);
        }
        let answer = Answer { kind: of.kind, content: content.to_vec() };
        match stand.heard.get(place).copied() {
            Some(Some(correlation)) => stand.send(of.service, correlation, &answer).map(Some),
            // The node has not asked this when it started.
            Some(None) => Ok(None),
            None => {
                stand.early.entry(place).or_default().push(answer);
                Ok(None)
            }
        }
    }
}

impl Stand {
    fn of_command(command: &str, service: &str, node: &Node) -> Result<Self, RerunError> {
        let urgent = SubscriberOptions::new().lane(Lane::Urgent).keep_last(1);
        let commands = node.subscriber_with::<[u8]>(command, urgent)?;
        let options = PublisherOptions::new().urgent().transient_local(1);
        let status = node.publisher_with(&rnet::command_status_topic(command), options)?;
        let authority = Authority { number: 0, _commands: commands, _status: status };
        let asked = Asked::by_nobody(AUTHORITY_SERVER);
        let types = BTreeMap::from([(Kind::Reply, CommandReply::message_type()?)]);
        let stand = Self::connect(service, asked, Lane::default(), types, node)?;
        Ok(Self { authority: Some(authority), ..stand })
    }

    fn open(service: &str, asked: &Asked, node: &Node) -> Result<Self, RerunError> {
        let request = &asked.channels[&Kind::Request];
        let lane = request.source().map(|source| source.lane).unwrap_or_default();
        let mut types = BTreeMap::new();
        for (kind, channel) in &asked.channels {
            types.insert(*kind, channel.message_type()?);
        }
        Self::connect(service, asked.clone(), lane, types, node)
    }

    fn connect(
        service: &str,
        asked: Asked,
        lane: Lane,
        mut types: BTreeMap<Kind, MessageType>,
        node: &Node,
    ) -> Result<Self, RerunError> {
        types.insert(Kind::Status, CallStatus::message_type()?);
        let options = || SubscriberOptions::new().lane(lane).keep_last(1);
        let hear = |kind: Kind| {
            let name = topic(service, asked.server, kind.name());
            node.subscriber_with::<[u8]>(&name, options())
        };
        // The types of answers, for a node that has to look them up.
        let mut shown = Vec::new();
        let show = |name: &str, ty: &MessageType| {
            node.publisher_with::<[u8]>(name, options_of(lane).message_type(ty.clone()))
        };
        if let Some(ty) = types.get(&Kind::Reply) {
            shown.push(show(&topic(service, asked.server, "type"), ty)?);
        }
        if let Some(ty) = types.get(&Kind::Feedback) {
            shown.push(show(&feedback_type_topic(service, asked.server), ty)?);
        }
        let heard = [hear(Kind::Control)?, hear(Kind::Request)?];
        let places = asked.requests.iter().enumerate().map(|(at, r)| (r.correlation, at)).collect();
        Ok(Self {
            asked,
            authority: None,
            places,
            heard: Vec::new(),
            early: BTreeMap::new(),
            given: HashSet::new(),
            clients: HashMap::new(),
            order: VecDeque::new(),
            lane,
            types,
            _heard: heard,
            _shown: shown,
        })
    }

    /// Takes a request for the next recorded one, and connects with its client.
    fn hear(
        &mut self,
        node: &Node,
        service: &str,
        correlation: u64,
        limit: Duration,
    ) -> Result<(), RerunError> {
        self.heard.push(Some(correlation));
        let client = client_of(correlation);
        if let Some(out) = self.clients.get_mut(&client) {
            out.open += 1;
            return Ok(());
        }
        let mut of = BTreeMap::new();
        let is_wanted = |kind: Kind| match kind {
            Kind::Reply | Kind::Status => true,
            Kind::Feedback => wants_feedback(correlation),
            Kind::Request | Kind::Control => false,
        };
        for (kind, ty) in self.types.iter().filter(|(kind, _)| is_wanted(**kind)) {
            let options = options_of(self.lane).message_type(ty.clone());
            let name = topic(service, client, kind.name());
            of.insert(*kind, node.publisher_with::<[u8]>(&name, options)?);
        }
        for publisher in of.values() {
            meet(publisher, publisher.topic(), limit)?;
        }
        self.clients.insert(client, Out { of, open: 1 });
        self.order.push_back(client);
        while self.order.len() > MAX_CLIENTS {
            let ended = self.order.iter().position(|id| self.clients[id].open == 0);
            let Some(client) = ended.and_then(|at| self.order.remove(at)) else { break };
            self.clients.remove(&client);
        }
        Ok(())
    }

    /// Sends an answer; on which topic.
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

/// The end of a call that the recording has no answer to.
fn unrecorded() -> Answer {
    let text = "the recording has no such call".to_owned();
    let mut status = CallStatus { code: "unrecorded".to_owned(), text, ..Default::default() };
    status.set_state(State::Failed);
    Answer { kind: Kind::Status, content: status.encode_to_vec() }
}

/// All that the recording has in answer to a request.
fn recorded_answers(
    recording: &Recording,
    service: &str,
    correlation: u64,
) -> Result<Vec<Answer>, RerunError> {
    let kinds = [Kind::Reply, Kind::Status, Kind::Feedback];
    let client = client_of(correlation);
    let topics = kinds.map(|kind| topic(service, client, kind.name())).into();
    let mut answers = Vec::new();
    for due in InOrder::new(recording, Select { topics, ..Select::default() }) {
        let Due { message, meta, .. } = due?;
        let of = CallTopic::parse(&message.channel.topic);
        if let (Some(of), true) = (of, meta.correlation == Some(correlation)) {
            answers.push(Answer { kind: of.kind, content: message.data().to_vec() });
        }
    }
    Ok(answers)
}
