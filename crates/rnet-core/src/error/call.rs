//! Types and texts for the errors of calls.

use strum::IntoStaticStr;

use crate::types::TypeMismatch;

/// Prefix of the topics that carry calls.
const ROOT: &str = "/_rnet/call";

/// The part of a call whose type differs between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum CallPart {
    /// The request, the goal of an action, or the job of a work queue.
    Request,
    /// The reply, or the result of an action.
    Reply,
    /// The feedback of an action.
    Feedback,
}

impl CallPart {
    /// The service and the part of a call that `topic` carries; `None` for any other topic.
    pub fn of_topic(topic: &str) -> Option<(&str, CallPart)> {
        let (service, part) = CallPart::split_topic(topic)?;
        let part = match part {
            "request" => CallPart::Request,
            "reply" => CallPart::Reply,
            "feedback" => CallPart::Feedback,
            _ => return None,
        };
        Some((service, part))
    }

    /// The service of a topic of calls, and the topic's last part: `request`, `control`, `type`, `reply`,
    /// `feedback` or `status`.
    #[doc(hidden)]
    pub fn split_topic(topic: &str) -> Option<(&str, &str)> {
        let (endpoint, part) = topic.strip_prefix(ROOT)?.rsplit_once('/')?;
        let (service, _id) = endpoint.rsplit_once('/')?;
        (!service.is_empty()).then_some((service, part))
    }
}

/// The text of `Error::IncompatibleType`.
pub(super) fn incompatible_text(
    topic: &str,
    part: Option<CallPart>,
    (publisher_node, subscriber_node): (&str, &str),
    detail: &TypeMismatch,
) -> String {
    let Some(part) = part else {
        return format!(
            "incompatible types on {topic}: {detail} (publisher {publisher_node}, subscriber {subscriber_node}); give \
             both sides matching types, or rename the topic"
        );
    };
    let (detail, client, server) = match part {
        CallPart::Request => (detail.between("client", "server"), publisher_node, subscriber_node),
        _ => (detail.between("server", "client"), subscriber_node, publisher_node),
    };
    let part: &str = part.into();
    format!(
        "incompatible types for calls of {topic}: {part}: {detail} (client {client}, server {server}); give client and \
         server matching types, or rename the service"
    )
}

/// The error that a service handler reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The type of the handler's error; `panic` for a panic.
    pub kind: String,
    /// The text of the error.
    pub text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

impl std::error::Error for Failure {}

/// Why a call was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum CancelReason {
    /// The caller cancelled it.
    Caller,
    /// The caller's node exited.
    CallerGone,
    /// The call timed out.
    TimedOut,
    /// A newer goal of the action replaced it.
    Preempted,
    /// The server is closing.
    ServerClosing,
    /// Another node cancelled all goals of the action.
    Operator,
    /// This version does not know the server's reason.
    Unknown,
}

impl CancelReason {
    /// A stable snake_case name, for bindings and JSON output.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::fmt::Display for CancelReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Caller => "by its caller",
            Self::CallerGone => "because its caller is gone",
            Self::TimedOut => "because it timed out",
            Self::Preempted => "for a newer goal",
            Self::ServerClosing => "because its server is closing",
            Self::Operator => "by an operator",
            Self::Unknown => "for an unknown reason",
        })
    }
}

/// Where the errors of a handler are logged. A host, such as `@lab`, has no single node.
pub(super) fn log_text(node: &str) -> String {
    match node.contains('/') {
        true => format!("see rnet log --node {node}"),
        false => format!("see rnet log --node '{node}/**'"),
    }
}

/// The remedy of a driver without authority. A driver that was refused does not exist.
pub(super) fn authority_text(had_authority: bool) -> &'static str {
    match had_authority {
        true => "take it again (Driver.retake), or take it with a higher priority",
        false => "try again later, or take it with a higher priority",
    }
}

/// Why a server refused a call, and what to do.
pub(super) fn busy_text(backlog: &u32, running: &str) -> String {
    if running.is_empty() {
        format!(
            "{backlog} calls already wait there; call again later, or give it a longer backlog or more handlers"
        )
    } else {
        format!(
            "it runs a goal of {running}, and at most {backlog} more can wait; send again later, or use the queue or replace policy"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_topics_of_calls() {
        let of = |part: &str| format!("/_rnet/call/arm/plan/s0000002a/{part}");
        for (part, named) in [
            ("request", CallPart::Request),
            ("reply", CallPart::Reply),
            ("feedback", CallPart::Feedback),
        ] {
            assert_eq!(CallPart::of_topic(&of(part)), Some(("/arm/plan", named)));
        }
        for other in ["/plan/request", "/_rnet/call/s0000002a/request", &of("status")] {
            assert_eq!(CallPart::of_topic(other), None, "{other}");
        }
    }
}
