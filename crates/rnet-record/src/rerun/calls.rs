//! The recorded calls of a node: the services that it called or answered, and the messages of these calls.
//!
//! Calls are messages on topics of the library (docs/design/calls.md). The topic names contain ids of servers
//! and clients, which differ in each run, so calls are identified by service and order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr};

use super::error::RerunError;
use crate::names;
use crate::play::{DueMessage, OrderedMessages};
use crate::read::{Channel, Recording, Select};

/// Prefix of the topics of calls.
const ROOT: &str = "/_rnet/call";
/// Type of the requests for the authority of a command, which a driver repeats periodically.
const AUTHORITY_TYPE: &str = "rnet.msgs.CommandRequest";
const AUTHORITY: &str = "/authority";
/// Flag in the number of a call: the caller wants every reply, and the call ends with a status.
const WANTS_DONE: u64 = 1 << 31;
/// Flag in the number of a call: the caller receives feedback.
const WANTS_FEEDBACK: u64 = 1 << 30;

/// The content of a call topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum CallTopicKind {
    Request,
    Control,
    Reply,
    Status,
    Feedback,
}

impl CallTopicKind {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether a message of this kind ends the call with this number.
    pub fn ends(self, number: u64) -> bool {
        self == CallTopicKind::Status || self == CallTopicKind::Reply && number & WANTS_DONE == 0
    }
}

/// A topic of the messages of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTopic<'a> {
    pub service: &'a str,
    /// Id of the server for requests, or of the client for answers.
    pub id: u32,
    pub kind: CallTopicKind,
}

impl<'a> CallTopic<'a> {
    pub fn parse(topic: &'a str) -> Option<Self> {
        let (end, kind) = topic.strip_prefix(ROOT)?.rsplit_once('/')?;
        let (service, end) = end.rsplit_once('/')?;
        let (side, id) = end.split_at_checked(1)?;
        let is_id = id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let id = u32::from_str_radix(id, 16).ok().filter(|_| is_id && !service.is_empty())?;
        let kind = kind.parse().ok()?;
        let of_server = matches!(kind, CallTopicKind::Request | CallTopicKind::Control);
        (side == if of_server { "s" } else { "c" }).then_some(Self { service, id, kind })
    }

    /// Whether it may carry requests for the authority of a command.
    pub fn is_of_authority(&self) -> bool {
        self.kind == CallTopicKind::Request && self.service.ends_with(AUTHORITY)
    }

    /// The displayed name, which is never a valid topic name.
    pub fn label(&self) -> String {
        format!("{} {}", self.service, self.kind.name())
    }
}

/// The topic of a kind of messages of a server or client.
pub fn topic(service: &str, id: u32, kind: &str) -> String {
    let side = match kind {
        "request" | "control" | "type" => 's',
        _ => 'c',
    };
    format!("{ROOT}{service}/{side}{id:08x}/{kind}")
}

/// Topic on which the server of an action publishes the type of its feedback.
pub fn feedback_type_topic(service: &str, server: u32) -> String {
    format!("{ROOT}{service}/s{server:08x}/feedback")
}

/// The client id in a correlation.
pub fn client_of(correlation: u64) -> u32 {
    (correlation >> 32) as u32
}

/// Whether the caller of this call receives feedback.
pub fn wants_feedback(correlation: u64) -> bool {
    correlation & WANTS_FEEDBACK != 0
}

/// Services of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Services that it called, without those for the authority of commands.
    pub made: BTreeSet<String>,
    /// Services that it answered.
    pub answered: BTreeSet<String>,
}

impl Calls {
    /// The services of the node with this name in the recording.
    pub(super) fn of(recording: &Recording, node: &str) -> Self {
        let mut calls = Self::default();
        let driven = driven(recording, node);
        let is_authority = |of: &CallTopic<'_>| {
            of.service.strip_suffix(AUTHORITY).is_some_and(|command| driven.contains(command))
        };
        for channel in recording.channels().filter(|channel| is_by(channel, node)) {
            let Some(topic) = CallTopic::parse(&channel.topic) else { continue };
            if is_authority(&topic) {
                continue;
            }
            let services = match topic.kind {
                CallTopicKind::Request | CallTopicKind::Control => &mut calls.made,
                _ => &mut calls.answered,
            };
            services.insert(topic.service.to_owned());
        }
        calls
    }

    /// Whether it has no calls.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty() && self.answered.is_empty()
    }
}

impl std::fmt::Display for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [("its calls of", &self.made), ("its answers to", &self.answered)];
        let words = words.iter().filter(|(_, services)| !services.is_empty());
        let words = words.map(|(words, services)| {
            format!("{words} {}", services.iter().cloned().collect::<Vec<_>>().join(", "))
        });
        f.write_str(&words.collect::<Vec<_>>().join(" and "))
    }
}

/// A recorded request of the node.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub correlation: u64,
    /// Send time, in ns since 1970 UTC.
    pub sent_ns: u64,
}

/// A service that the node called.
#[derive(Clone, Debug)]
pub struct CalledService {
    /// The first of its servers.
    pub server: u32,
    /// In the order of sending, of all clients of the node.
    pub requests: Vec<Request>,
    /// The clients of the requests.
    clients: BTreeSet<u32>,
    /// A channel of the requests, and one for each kind of answer.
    pub channels: BTreeMap<CallTopicKind, Arc<Channel>>,
}

impl CalledService {
    /// A service without recorded requests.
    pub fn without_requests(server: u32) -> Self {
        Self { server, requests: Vec::new(), clients: BTreeSet::new(), channels: BTreeMap::new() }
    }
}

/// The calls of a node in a recording.
#[derive(Clone, Debug, Default)]
pub struct RecordedCalls {
    /// By service.
    pub asked: BTreeMap<String, CalledService>,
    /// Servers of the node, by service and id.
    pub served: BTreeSet<(String, u32)>,
    /// Send times of the requests to the node by correlation, in ns since 1970 UTC.
    pub requests: HashMap<u64, u64>,
}

impl RecordedCalls {
    /// Reads the calls of the node with this name in the recording; `calls` are its services.
    ///
    /// # Errors
    /// `Calls`: the calls cannot be repeated as recorded. The file cannot be read.
    pub fn read(recording: &Recording, node: &str, calls: &Calls) -> Result<Self, RerunError> {
        if calls.is_empty() {
            return Ok(Self::default());
        }
        let refuse = |why: String| RerunError::unrepeatable_calls(node, &why);
        let of_call = |channel: &&Arc<Channel>| CallTopic::parse(&channel.topic).is_some();
        let topics = recording.channels().filter(of_call).map(|channel| channel.topic.clone());
        let select = Select { topics: topics.collect(), ..Select::default() };
        let mut last = HashMap::<u16, u32>::new();
        // By service and correlation: whether the node answered; and all requests, with their channels.
        let (mut answered, mut requests) = (HashMap::<(String, u64), bool>::new(), Vec::new());
        let mut answers = BTreeMap::<(String, CallTopicKind), Vec<Arc<Channel>>>::new();
        for due in OrderedMessages::new(recording, select) {
            let DueMessage { message, meta, .. } = due?;
            let channel = &message.channel;
            let Some(topic) = CallTopic::parse(&channel.topic) else { continue };
            let is_own = is_by(channel, node);
            let before = last.insert(channel.id, message.sequence());
            let is_whole = before.is_none_or(|seq| seq.wrapping_add(1) == message.sequence());
            let Some(correlation) = meta.correlation else { continue };
            let service = topic.service.to_owned();
            let is_meant =
                calls.made.contains(topic.service) || calls.answered.contains(topic.service);
            if !is_whole && is_meant {
                return Err(refuse(format!("calls of {service} with missing messages")));
            }
            match topic.kind {
                CallTopicKind::Request => {
                    requests.push((
                        service,
                        topic.id,
                        correlation,
                        message.publish_ns(),
                        channel.clone(),
                    ));
                }
                CallTopicKind::Control => {}
                kind => {
                    *answered.entry((service.clone(), correlation)).or_default() |= is_own;
                    let of = answers.entry((service, kind)).or_default();
                    if !of.iter().any(|known| known.id == channel.id) {
                        of.push(channel.clone());
                    }
                }
            }
        }
        let mut recorded = Self::default();
        let mut known = BTreeSet::new();
        for (service, server, correlation, sent_ns, channel) in &requests {
            let is_meant = calls.made.contains(service) || calls.answered.contains(service);
            if is_meant && !known.insert((service, correlation)) {
                return Err(refuse(format!(
                    "calls of {service} that moved from one server to another"
                )));
            }
            if answered.get(&(service.clone(), *correlation)) == Some(&true) {
                if channel.type_name() == AUTHORITY_TYPE {
                    return Err(refuse(authority(service)));
                }
                recorded.served.insert((service.clone(), *server));
            }
            recorded.requests.insert(*correlation, *sent_ns);
        }
        for (service, server, correlation, sent_ns, channel) in requests {
            // The node itself answers its calls to its own services.
            if !is_by(&channel, node) || recorded.served.contains(&(service.clone(), server)) {
                continue;
            }
            if channel.type_name() == AUTHORITY_TYPE {
                continue;
            }
            let asked = recorded.asked.entry(service.clone()).or_insert_with(|| CalledService {
                channels: BTreeMap::from([(CallTopicKind::Request, channel.clone())]),
                ..CalledService::without_requests(server)
            });
            asked.clients.insert(client_of(correlation));
            asked.requests.push(Request { correlation, sent_ns });
        }
        for ((service, kind), of) in answers {
            let Some(asked) = recorded.asked.get_mut(&service) else { continue };
            let theirs = of.into_iter().find(|channel| !is_by(channel, node));
            if let Some(channel) = theirs {
                asked.channels.insert(kind, channel);
            }
        }
        Ok(recorded)
    }

    /// Whether a topic carries requests to the node, or their controls.
    pub fn is_served(&self, topic: &CallTopic<'_>) -> bool {
        matches!(topic.kind, CallTopicKind::Request | CallTopicKind::Control)
            && self.served.contains(&(topic.service.to_owned(), topic.id))
    }

    /// Whether a topic carries answers to the node.
    pub fn is_answer(&self, topic: &CallTopic<'_>) -> bool {
        !matches!(topic.kind, CallTopicKind::Request | CallTopicKind::Control)
            && self.asked.get(topic.service).is_some_and(|asked| asked.clients.contains(&topic.id))
    }

    /// The services that the node answered.
    pub fn services(&self) -> BTreeSet<&str> {
        self.served.iter().map(|(service, _)| service.as_str()).collect()
    }
}

fn authority(service: &str) -> String {
    let command = service.strip_suffix(AUTHORITY).unwrap_or(service);
    format!(
        "requests for authority over {command}, which it receives; drivers repeat them at fixed intervals"
    )
}

/// The commands that a node drove in a recording.
pub fn driven(recording: &Recording, node: &str) -> BTreeSet<String> {
    let requests = recording
        .channels()
        .filter(|channel| is_by(channel, node) && channel.type_name() == AUTHORITY_TYPE);
    let services = requests.filter_map(|channel| CallTopic::parse(&channel.topic));
    services.filter_map(|of| of.service.strip_suffix(AUTHORITY).map(str::to_owned)).collect()
}

/// The service for the authority of a command.
pub fn authority_of(command: &str) -> String {
    format!("{command}{AUTHORITY}")
}

/// Whether this node published the channel.
pub fn is_by(channel: &Channel, node: &str) -> bool {
    channel.metadata.get(names::NODE_KEY).is_some_and(|of| of == node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_call_topics() {
        let parsed = CallTopic::parse("/_rnet/call/arm/plan/s0000002a/request").unwrap();
        assert_eq!(
            parsed,
            CallTopic { service: "/arm/plan", id: 42, kind: CallTopicKind::Request }
        );
        assert_eq!(parsed.label(), "/arm/plan request");
        for kind in [
            CallTopicKind::Request,
            CallTopicKind::Control,
            CallTopicKind::Reply,
            CallTopicKind::Status,
            CallTopicKind::Feedback,
        ] {
            let name = topic("/plan", 0xfedc_ba98, kind.name());
            assert_eq!(
                CallTopic::parse(&name),
                Some(CallTopic { service: "/plan", id: 0xfedc_ba98, kind })
            );
        }
        for other in [
            "/plan",
            "/_rnet/call/plan/s0000002a/type",
            "/_rnet/call/plan/s0000002a/feedback",
            "/_rnet/call/s0000002a/request",
            "/_rnet/call/plan/s2a/request",
            "/_rnet/call/plan/x0000002a/reply",
        ] {
            assert_eq!(CallTopic::parse(other), None, "{other}");
        }
    }

    #[test]
    fn call_ends_with_only_reply_or_with_status() {
        assert!(
            CallTopicKind::Reply.ends(7)
                && CallTopicKind::Status.ends(7)
                && CallTopicKind::Status.ends(WANTS_DONE | 7)
        );
        assert!(!CallTopicKind::Reply.ends(WANTS_DONE | 7) && !CallTopicKind::Feedback.ends(7));
    }
}
