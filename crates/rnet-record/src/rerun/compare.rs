//! Compares published messages with recorded ones.

mod checks;
mod fields;
mod tolerance;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rnet::MessageType;
use rnet::inspect::ObservedMessage;
use serde::Serialize;
use serde_json::Value;

use super::RerunOptions;
use super::calls::{CallTopic, CallTopicKind, RecordedCalls, is_by};
use super::error::RerunError;
use super::trace::Trace;
use crate::play::OrderedMessages;
use crate::read::{Channel, Message, Recording, Select};
use fields::{decode_to_json, differences, field_at, numbers};
pub use tolerance::{Tolerance, Tolerances};

/// Maximum number of recorded messages that are searched for a key.
const MAX_AHEAD: usize = 1024;
/// Maximum number of fields whose values are kept for a plot.
const MAX_TRACES: usize = 256;

/// A field with different values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Index of the compared recorded message, from 0.
    pub number: u64,
    /// Send time of the recorded message, in ns since 1970 UTC.
    pub at_ns: u64,
    /// Path of the field; empty for the whole message.
    pub field: String,
    /// The recorded value.
    pub recorded: String,
    /// The value of the re-run.
    pub rerun: String,
    /// The difference, if both are numbers.
    pub by: Option<f64>,
    /// The tolerance.
    pub allowed: f64,
}

impl Difference {
    /// Severity: the difference relative to the tolerance, or else relative to the value.
    fn severity(&self) -> (bool, f64) {
        match self.by {
            None => (true, f64::INFINITY),
            Some(by) if self.allowed > 0.0 => (false, by / self.allowed),
            Some(by) => {
                let number = |text: &str| text.parse::<f64>().map_or(0.0, f64::abs);
                let value = number(&self.recorded).max(number(&self.rerun));
                (true, if value > 0.0 { by / value } else { by })
            }
        }
    }

    fn is_worse_than(&self, other: &Self) -> bool {
        self.severity().partial_cmp(&other.severity()) == Some(std::cmp::Ordering::Greater)
    }
}

/// Result of a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TopicResult {
    /// Its name.
    pub topic: String,
    /// Messages compared.
    pub compared: u64,
    /// Compared messages that differ by more than the tolerance.
    pub differing: u64,
    /// Messages recorded, but not published in the re-run.
    pub missing: u64,
    /// Messages published in the re-run, but not recorded.
    pub unrecorded: u64,
    /// Whether unrecorded messages are permitted.
    #[serde(skip)]
    pub allows_unrecorded: bool,
    /// The first difference.
    pub first: Option<Difference>,
    /// The largest difference.
    pub worst: Option<Difference>,
}

impl TopicResult {
    /// Whether there are no differences.
    pub fn is_same(&self) -> bool {
        let is_unrecorded = self.unrecorded > 0 && !self.allows_unrecorded;
        self.differing == 0 && self.missing == 0 && !is_unrecorded
    }
}

struct TopicComparison {
    result: TopicResult,
    /// Recorded messages that were read and not yet paired.
    waiting: VecDeque<(Message, Option<Value>)>,
}

/// The outputs of a node, recorded and new.
pub struct Comparison<'a> {
    options: &'a RerunOptions,
    /// Name of the node in the recording, its recorded topics, and its compared channels.
    node: String,
    topics_of_node: Vec<String>,
    channels: Vec<Arc<Channel>>,
    recorded: OrderedMessages,
    calls: Arc<RecordedCalls>,
    /// Services for the authority of commands: their requests depend on the clock.
    authorities: BTreeSet<String>,
    topics: BTreeMap<String, TopicComparison>,
    types: HashMap<u16, MessageType>,
    /// By publisher, with the topic.
    published_types: HashMap<u64, (String, MessageType)>,
    traces: BTreeMap<(String, String), Trace>,
    /// Send time of the first input. Earlier recorded messages answer other inputs.
    begin_ns: Option<u64>,
}

impl<'a> Comparison<'a> {
    /// Compares the messages that the node of this name published in the recording, and its calls except
    /// those for authority.
    pub fn new(
        recording: &Recording,
        (node, calls): (String, Arc<RecordedCalls>),
        authorities: BTreeSet<String>,
        options: &'a RerunOptions,
    ) -> Self {
        let is_output = |channel: &Channel| {
            is_by(channel, &node) && is_compared(options, &authorities, &channel.topic)
        };
        let is_of_node = |c: &Channel| is_by(c, &node) && !c.topic.starts_with("/_rnet/");
        let of_node: BTreeSet<String> =
            recording.channels().filter(|c| is_of_node(c)).map(|c| c.topic.clone()).collect();
        let channels: Vec<_> = recording.channels().filter(|c| is_output(c)).cloned().collect();
        let topics: BTreeSet<String> = channels.iter().map(|c| label(&c.topic)).collect();
        let excluded_channels: BTreeSet<u16> =
            recording.channels().filter(|c| !is_output(c)).map(|c| c.id).collect();
        let select = Select {
            excluded_channels,
            start_ns: options.start_ns,
            end_ns: options.end_ns,
            ..Select::default()
        };
        let mut comparison = Self {
            options,
            node,
            topics_of_node: of_node.into_iter().collect(),
            channels,
            recorded: OrderedMessages::new(recording, select),
            calls,
            authorities,
            topics: BTreeMap::new(),
            types: HashMap::new(),
            published_types: HashMap::new(),
            traces: BTreeMap::new(),
            begin_ns: None,
        };
        for topic in &topics {
            comparison.topic(topic);
        }
        comparison
    }

    /// Sets the time of the recording at which inputs begin.
    pub fn begin(&mut self, at_ns: u64) {
        self.begin_ns.get_or_insert(at_ns);
    }

    fn topic(&mut self, topic: &str) -> &mut TopicComparison {
        // A label of calls contains a space.
        let allows_unrecorded = self.options.key.is_some() && !topic.contains(' ');
        self.topics.entry(topic.to_owned()).or_insert_with(|| TopicComparison {
            result: TopicResult {
                topic: topic.to_owned(),
                allows_unrecorded,
                ..TopicResult::default()
            },
            waiting: VecDeque::new(),
        })
    }

    /// Reads recorded messages up to the next one of `topic`; of any topic if it is `None`.
    fn read(&mut self, topic: Option<&str>) -> Result<bool, RerunError> {
        while let Some(due) = self.recorded.next() {
            let due = due?;
            let correlation = due.meta.correlation;
            if self.begin_ns.is_some_and(|begin| due.at_ns < begin) {
                continue;
            }
            let channel = due.message.channel.clone();
            let (of, call) = (label(&channel.topic), CallTopic::parse(&channel.topic));
            let key = match (&self.options.key, call) {
                (_, Some(call)) if call.kind == CallTopicKind::Request => None,
                (_, Some(_)) if !self.is_received(correlation) => continue,
                (_, Some(_)) => correlation.map(Value::from),
                (Some(field), None) => field_at(&self.value_of(&due.message)?, field),
                (None, None) => None,
            };
            self.topic(&of).waiting.push_back((due.message, key));
            if topic.is_none_or(|topic| topic == of) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the node received the request with this correlation, in the recording and in the re-run.
    fn is_received(&self, correlation: Option<u64>) -> bool {
        let sent_ns =
            correlation.and_then(|correlation| self.calls.requests.get(&correlation).copied());
        let begin = self.begin_ns.max(self.options.start_ns).unwrap_or(0);
        sent_ns.is_some_and(|sent_ns| sent_ns >= begin)
    }

    /// The recorded message to compare with a new one: the next one with this key, or without a key the next
    /// one. If the messages are `in_order`, those before it are missing. Concurrent servers answer in any
    /// order.
    fn take_recorded(
        &mut self,
        topic: &str,
        key: Option<&Value>,
        in_order: bool,
    ) -> Result<Option<Message>, RerunError> {
        let mut at = 0;
        while at < self.topic(topic).waiting.len() || at < MAX_AHEAD && self.read(Some(topic))? {
            let of = self.topic(topic);
            if key.is_none() || of.waiting[at].1.as_ref() == key {
                if in_order {
                    of.result.missing += of.waiting.drain(..at).len() as u64;
                    at = 0;
                }
                return Ok(of.waiting.remove(at).map(|(message, _)| message));
            }
            at += 1;
        }
        Ok(None)
    }

    fn value_of(&mut self, message: &Message) -> Result<Value, RerunError> {
        let id = message.channel.id;
        if let std::collections::hash_map::Entry::Vacant(entry) = self.types.entry(id) {
            entry.insert(message.channel.message_type()?);
        }
        Ok(decode_to_json(&self.types[&id], message.data()))
    }

    fn published_value(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8]) -> Value {
        decode_to_json(self.published_type(observed), bytes)
    }

    fn published_type(&mut self, observed: &ObservedMessage<'_>) -> &MessageType {
        let of = self.published_types.entry(observed.stamp.publisher).or_insert_with(|| {
            let ty = match observed.schema {
                Some(schema) => schema.clone().into(),
                // An invalid description of a plain type is treated as bytes.
                None => {
                    MessageType::try_from(observed.type_desc.clone()).unwrap_or(MessageType::Raw)
                }
            };
            (observed.topic.to_owned(), ty)
        });
        &of.1
    }

    /// Compares a message that the node has published.
    pub fn add(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8]) -> Result<(), RerunError> {
        if !is_compared(self.options, &self.authorities, observed.topic) {
            return Ok(());
        }
        self.published_type(observed);
        let topic = &label(observed.topic);
        let call = CallTopic::parse(observed.topic);
        let key = match (&self.options.key, call) {
            (Some(field), None) => field_at(&self.published_value(observed, bytes), field),
            _ => None,
        };
        let partner = match (call, observed.meta.correlation) {
            (Some(call), Some(correlation)) if call.kind != CallTopicKind::Request => {
                self.take_recorded(topic, Some(&Value::from(correlation)), false)?
            }
            (None, _) if self.options.key.is_some() && key.is_none() => None,
            _ => self.take_recorded(topic, key.as_ref(), true)?,
        };
        let Some(recorded) = partner else {
            self.topic(topic).result.unrecorded += 1;
            return Ok(());
        };
        let at_ns = recorded.publish_ns();
        let is_equal = recorded.data() == bytes;
        let mut found = Vec::new();
        if !is_equal || self.options.trace {
            let (before, now) = (self.value_of(&recorded)?, self.published_value(observed, bytes));
            if self.options.trace {
                self.trace(topic, at_ns, &before, &now);
            }
            if !is_equal {
                let mut tolerances = self.options.tolerances.clone();
                if observed.topic == rnet::LOG_TOPIC {
                    // A log line contains the time at which it was logged.
                    tolerances.set("timestamp", Tolerance::Ignored);
                }
                found = differences(&before, &now, &tolerances);
            }
        }
        let result = &mut self.topic(topic).result;
        let number = result.compared;
        result.compared += 1;
        result.differing += u64::from(!found.is_empty());
        for difference in found {
            let difference = Difference { number, at_ns, ..difference };
            if result.first.is_none() {
                result.first = Some(difference.clone());
            }
            if result.worst.as_ref().is_none_or(|worst| difference.is_worse_than(worst)) {
                result.worst = Some(difference);
            }
        }
        Ok(())
    }

    fn trace(&mut self, topic: &str, at_ns: u64, before: &Value, now: &Value) {
        for (field, recorded, rerun) in numbers(before, now) {
            let key = (topic.to_owned(), field);
            if self.traces.len() >= MAX_TRACES && !self.traces.contains_key(&key) {
                continue;
            }
            let (topic, field) = key.clone();
            let new = || Trace { topic, field, points: Vec::new() };
            self.traces.entry(key).or_insert_with(new).add(at_ns, recorded, rerun);
        }
    }

    /// Whether any message was published, and the topics with missing messages.
    pub fn outstanding(&mut self) -> Result<(bool, Vec<String>), RerunError> {
        let is_any = self.topics.values().any(|t| t.result.compared + t.result.unrecorded > 0);
        let names: Vec<String> = self.topics.keys().cloned().collect();
        let mut owed = Vec::new();
        for topic in names {
            let is_owed = !self.topics[&topic].waiting.is_empty() || self.read(Some(&topic))?;
            if is_owed {
                owed.push(topic);
            }
        }
        Ok((is_any, owed))
    }

    /// The results of all topics, and the values of the worst field. An empty comparison is an error.
    pub fn end(mut self) -> Result<(Vec<TopicResult>, Option<Trace>), RerunError> {
        let names: Vec<String> = self.topics.keys().cloned().collect();
        for topic in names {
            while self.read(Some(&topic))? {
                let of = self.topic(&topic);
                of.result.missing += of.waiting.drain(..).len() as u64;
            }
        }
        let topics = std::mem::take(&mut self.topics).into_values();
        let results: Vec<TopicResult> = topics
            .map(|mut topic| {
                topic.result.missing += topic.waiting.len() as u64;
                topic.result
            })
            .collect();
        self.check_compared(&results)?;
        self.check_fields(&results)?;
        let mut worst: Option<(&TopicResult, &Difference)> = None;
        for result in &results {
            let Some(one) = result.worst.as_ref().filter(|one| one.by.is_some()) else { continue };
            if worst.is_none_or(|(_, other)| one.is_worse_than(other)) {
                worst = Some((result, one));
            }
        }
        let key = worst.map(|(result, one)| (result.topic.clone(), one.field.clone()));
        // Without differences, any field will do.
        let trace = match key {
            Some(key) => self.traces.remove(&key),
            None => self.traces.pop_first().map(|(_, trace)| trace),
        };
        Ok((results, trace))
    }
}

/// Whether a topic is compared: topics of the node and of its calls.
fn is_compared(options: &RerunOptions, authorities: &BTreeSet<String>, topic: &str) -> bool {
    let call = CallTopic::parse(topic).filter(|_| !options.without_calls);
    if call.is_some_and(|call| authorities.contains(call.service)) {
        return false;
    }
    let is_named = |name: &str| options.outputs.iter().any(|output| output == name);
    match (call, options.outputs.is_empty()) {
        (Some(call), true) => call.kind != CallTopicKind::Control,
        (Some(call), false) => call.kind != CallTopicKind::Control && is_named(call.service),
        (None, true) => !topic.starts_with("/_rnet/"),
        (None, false) => is_named(topic),
    }
}

/// The displayed name of a topic. Names of call topics contain ids, which differ in each run.
fn label(topic: &str) -> String {
    CallTopic::parse(topic).map_or_else(|| topic.to_owned(), |call| call.label())
}
