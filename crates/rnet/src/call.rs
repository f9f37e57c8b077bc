//! Services and actions: calls, which are messages on topics below `/_rnet/call` (docs/design/calls.md).

mod action;
mod arrivals;
mod book;
mod bytes;
mod client;
mod desk;
mod goal;
mod inbox;
mod intake;
mod line;
mod locked;
mod losses;
mod numbers;
mod open;
mod open_call;
mod peer;
mod pending;
mod queue;
mod servers;
mod service;
mod service_stats;
mod settings;

use rnet_core::{CancelReason, Error, Result, TopicName};

use crate::Node;
use crate::msgs::call_status::Reason;

pub use action::{ActionBuilder, ActionContext, Policy};
pub use book::ClientStats;
pub(crate) use bytes::Bytes;
pub use bytes::Received;
pub use client::{CallOptions, Client};
pub use goal::{ActionClient, Goal};
pub(crate) use line::Servers;
pub use pending::Pending;
pub use queue::{
    Job, JobContext, PullBuilder, Puller, PushBuilder, PushStats, Pusher, Undelivered,
};
pub use service::{CallContext, HandlerError, Responder, Service, ServiceBuilder};
pub use service_stats::ServiceStats;

/// Longest name of a service, in bytes: room is left for what its topics have beside it.
const MAX_SERVICE_LEN_BYTES: usize = 200;
/// Calls that a client has at one server at a time.
const MAX_IN_FLIGHT: usize = 1024;
const ROOT: &str = "/_rnet/call";

/// In the number of a call: its caller wants every reply, and to be told of the last. Else it wants one.
const WANTS_DONE: u32 = 1 << 31;
/// In the number of a call: its caller hears feedback.
const WANTS_FEEDBACK: u32 = 1 << 30;
const WANTS: u32 = WANTS_DONE | WANTS_FEEDBACK;
/// In the number of a call: it is a job that another worker had.
const REDELIVERED: u32 = 1 << 29;
/// What a number says beside which call it is.
const FLAGS: u32 = WANTS | REDELIVERED;

/// Why a call is cancelled, as it travels.
fn reason_to_wire(reason: CancelReason) -> Reason {
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

fn reason_of_wire(reason: Reason) -> CancelReason {
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

/// The name in the domain of what the node's program calls a service.
pub(crate) fn service_name(node: &Node, name: &str) -> Result<TopicName> {
    let named = node.core().state.topic(name)?;
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
type Key = (String, u32);

/// Which call a message is of: its word `correlation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallId {
    client: u32,
    number: u32,
}

impl CallId {
    fn of(word: u64) -> CallId {
        CallId { client: (word >> 32) as u32, number: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.client) << 32 | u64::from(self.number)
    }
}

/// The topics of a server or of a client.
pub(crate) struct Topics(String);

impl Topics {
    fn of_server(service: &str, id: u32) -> Topics {
        Topics(format!("{ROOT}{service}/s{id:08x}"))
    }

    fn of_client(service: &str, id: u32) -> Topics {
        Topics(format!("{ROOT}{service}/c{id:08x}"))
    }

    /// Those of the server whose requests come on this topic, and the name of its service.
    pub(crate) fn of_server_at(topic: &str) -> Option<(&str, Topics)> {
        let own = topic.strip_suffix("/request")?;
        let (service, id) = own.strip_prefix(ROOT)?.rsplit_once("/s")?;
        let is_id = id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit());
        (is_id && !service.is_empty()).then(|| (service, Topics(own.to_owned())))
    }

    /// Those of the server whose requests come on this topic, if it is one of the service.
    fn of_request(service: &str, topic: &str) -> Option<Topics> {
        let (of, topics) = Topics::of_server_at(topic)?;
        (of == service).then_some(topics)
    }

    /// Where a publisher that sends nothing says of which type replies are.
    pub(crate) fn reply_type(&self) -> String {
        format!("{}/type", self.0)
    }

    fn request(&self) -> String {
        format!("{}/request", self.0)
    }

    fn control(&self) -> String {
        format!("{}/control", self.0)
    }

    fn reply(&self) -> String {
        format!("{}/reply", self.0)
    }

    /// Of a client, where it hears feedback; of a server of an action, where a publisher that sends nothing says of
    /// which type feedback is.
    pub(crate) fn feedback(&self) -> String {
        format!("{}/feedback", self.0)
    }

    fn status(&self) -> String {
        format!("{}/status", self.0)
    }
}
