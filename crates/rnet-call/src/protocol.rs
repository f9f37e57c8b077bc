//! The protocol between callers and servers besides requests and replies (docs/design/calls.md).

use rnet_core::{CancelReason, Error, Result, TopicName};
use rnet_node::NodeHandle;

use crate::msgs::call_status::Reason;

/// Maximum length of a service name, in bytes: its topics add a prefix and a suffix.
pub(crate) const MAX_SERVICE_LEN_BYTES: usize = 200;
/// Maximum number of open calls of a client at one server.
pub(crate) const MAX_IN_FLIGHT: usize = 1024;
pub(crate) const ROOT: &str = "/_rnet/call";

/// Flag in the number of a call: the caller wants every reply, and a notification of the last. Otherwise it
/// wants one.
pub(crate) const WANTS_ALL_REPLIES: u32 = 1 << 31;
/// Flag in the number of a call: the caller receives feedback.
pub(crate) const WANTS_FEEDBACK: u32 = 1 << 30;
pub(crate) const WANTS: u32 = WANTS_ALL_REPLIES | WANTS_FEEDBACK;
/// Flag in the number of a call: it is a job that another worker had.
pub(crate) const REDELIVERED: u32 = 1 << 29;
/// The flags in a call number.
pub(crate) const NUMBER_FLAGS: u32 = WANTS | REDELIVERED;

/// The wire format of a cancel reason.
pub(crate) fn reason_to_wire(reason: CancelReason) -> Reason {
    match reason {
        CancelReason::Caller => Reason::Caller,
        CancelReason::CallerGone => Reason::CallerGone,
        CancelReason::TimedOut => Reason::TimedOut,
        CancelReason::Preempted => Reason::Preempted,
        CancelReason::ServerClosing => Reason::ServerClosing,
        CancelReason::Operator => Reason::Operator,
        _ => Reason::Unspecified,
    }
}

pub(crate) fn reason_from_wire(reason: Reason) -> CancelReason {
    match reason {
        Reason::Caller => CancelReason::Caller,
        Reason::CallerGone => CancelReason::CallerGone,
        Reason::TimedOut => CancelReason::TimedOut,
        Reason::Preempted => CancelReason::Preempted,
        Reason::ServerClosing => CancelReason::ServerClosing,
        Reason::Operator => CancelReason::Operator,
        Reason::Unspecified => CancelReason::Unknown,
    }
}

/// The name of a service in the domain, from the name in the node's program.
#[doc(hidden)]
pub fn service_name(node: &NodeHandle, name: &str) -> Result<TopicName> {
    let named = node.core.state.topic(name)?;
    if named.as_str().len() > MAX_SERVICE_LEN_BYTES {
        let (what, len) = ("topic", named.as_str().len());
        let why = format!(
            "as a service name it is {len} bytes long; at most {MAX_SERVICE_LEN_BYTES} are allowed"
        );
        return Err(Error::BadName { what, name: named.into(), why });
    }
    Ok(named)
}

/// A caller: its node, and the id of its client.
pub(crate) type CallerKey = (String, u32);

/// Identifies the call of a message: its word `correlation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallId {
    pub(crate) client: u32,
    pub(crate) number: u32,
}

impl CallId {
    pub(crate) fn from_correlation(word: u64) -> CallId {
        CallId { client: (word >> 32) as u32, number: word as u32 }
    }

    pub(crate) fn to_correlation(self) -> u64 {
        u64::from(self.client) << 32 | u64::from(self.number)
    }
}

/// The topics of a server or of a client.
#[doc(hidden)]
pub struct CallTopics(String);

impl CallTopics {
    pub(crate) fn of_server(service: &str, id: u32) -> CallTopics {
        CallTopics(format!("{ROOT}{service}/s{id:08x}"))
    }

    pub(crate) fn of_client(service: &str, id: u32) -> CallTopics {
        CallTopics(format!("{ROOT}{service}/c{id:08x}"))
    }

    /// The topics of the server with this request topic, and the name of its service.
    pub fn parse_request_topic(topic: &str) -> Option<(&str, CallTopics)> {
        let own = topic.strip_suffix("/request")?;
        let (service, id) = own.strip_prefix(ROOT)?.rsplit_once("/s")?;
        let is_id = id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit());
        (is_id && !service.is_empty()).then(|| (service, CallTopics(own.to_owned())))
    }

    /// The topics of the server with this request topic, if it serves `service`.
    pub(crate) fn parse_request_topic_of(service: &str, topic: &str) -> Option<CallTopics> {
        let (of, topics) = CallTopics::parse_request_topic(topic)?;
        (of == service).then_some(topics)
    }

    /// The topic on which a publisher that sends nothing declares the type of replies.
    pub fn reply_type(&self) -> String {
        format!("{}/type", self.0)
    }

    pub(crate) fn request(&self) -> String {
        format!("{}/request", self.0)
    }

    pub(crate) fn control(&self) -> String {
        format!("{}/control", self.0)
    }

    pub(crate) fn reply(&self) -> String {
        format!("{}/reply", self.0)
    }

    /// For a client, the topic on which it receives feedback; for a server of an action, the topic on which a
    /// publisher that sends nothing declares the type of feedback.
    pub fn feedback(&self) -> String {
        format!("{}/feedback", self.0)
    }

    pub(crate) fn status(&self) -> String {
        format!("{}/status", self.0)
    }
}
