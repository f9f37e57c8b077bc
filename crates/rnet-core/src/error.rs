//! The error type of robot-net.
//!
//! A message states what failed, on which topic and node, which limit or which two types are involved, and
//! what to do. Rust programs match on the variant; other languages use [`Error::code`].

mod call;
mod constructors;
mod os;
mod text;

use crate::types::TypeMismatch;
pub use call::{CallPart, CancelReason, Failure};
use call::{authority_text, busy_text, incompatible_text, log_text};
pub use os::OsError;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use strum::{IntoStaticStr, VariantNames};
use text::{conflict_text, home_text, lost_text, on_topic, pid_text, where_text};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of robot-net. Expected outcomes on a hot path (no message, no subscriber) are not errors.
///
/// ```
/// let error = rnet_core::TopicName::new("/scan data").unwrap_err();
/// assert_eq!(error.code(), "bad_name");
/// println!("{error}"); // contains the position of the character, and the remedy
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// The name of a topic, node, domain or key is invalid.
    #[error("bad {what} name {name:?}: {why}; choose another name")]
    BadName {
        /// `"topic"`, `"node"`, `"domain"` or `"key"`.
        what: &'static str,
        /// The name as given (cut when very long).
        name: String,
        /// The fault and the position of the character.
        why: String,
    },
    /// The message exceeds the limit of the topic or of robot-net. Nothing was sent.
    #[error(
        "message of {len} bytes on {topic} is too large: the limit is {limit} bytes; send it in parts or raise the limit"
    )]
    MessageTooLarge {
        /// The topic.
        topic: String,
        /// Length of the message, in bytes.
        len: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Publisher and subscriber describe the messages of a topic differently. Both get this error, and no
    /// messages are delivered between the two.
    #[error("{}", incompatible_text(.topic, *.part, (.publisher_node, .subscriber_node), .detail))]
    IncompatibleType {
        /// The topic; for a call, the service.
        topic: String,
        /// The message of a call that differs; `None` for a topic.
        part: Option<CallPart>,
        /// Node of the publisher.
        publisher_node: String,
        /// Node of the subscriber.
        subscriber_node: String,
        /// The first difference.
        #[source]
        detail: Box<TypeMismatch>,
    },
    /// The subscriber requests more than the publisher offers. Both get this error.
    #[error(
        "quality of service on {topic} does not match (publisher {publisher_node}, subscriber {subscriber_node}): {why}"
    )]
    IncompatibleQos {
        /// The topic.
        topic: String,
        /// Node of the publisher.
        publisher_node: String,
        /// Node of the subscriber.
        subscriber_node: String,
        /// Which of the two must change, and how.
        why: String,
    },
    /// A reliable reader has not made progress and the publisher does not wait, or its wait has expired. The
    /// message was not sent; the caller keeps it.
    #[error(
        "{topic} is full: the reliable subscriber in {reader_node} has not read yet; send again later, or use on_full wait or detach"
    )]
    Full {
        /// The topic.
        topic: Arc<str>,
        /// Node of the slowest reader.
        reader_node: Arc<str>,
    },
    /// An operation did not complete in time.
    #[error(
        "timed out after {after_ms} ms waiting for {what}{}; wait longer, or run `rnet doctor` to find the cause",
        where_text(what, topic)
    )]
    Timeout {
        /// The topic; empty if the wait is not for a single topic.
        topic: Arc<str>,
        /// What was waited for.
        what: Cow<'static, str>,
        /// Duration of the wait, in milliseconds.
        after_ms: u64,
    },
    /// A reliable writer detached this subscriber because it made no progress for too long.
    #[error(
        "{publisher_node} detached this subscriber of {topic}: it read nothing for more than {stall_ms} ms; the messages sent since count as lost (detached); receive more often, or set a longer stall at the publisher"
    )]
    Detached {
        /// The topic.
        topic: String,
        /// Node of the publisher that detached the subscriber.
        publisher_node: String,
        /// The publisher's stall limit, in milliseconds.
        stall_ms: u64,
    },
    /// The process of a peer exited without closing its node, or the host of a peer cannot be reached.
    #[error("{}", lost_text(.node, .topic))]
    PeerLost {
        /// The topic.
        topic: String,
        /// The node; `@host/name` for one of another host.
        node: String,
    },
    /// Shared memory for a message is not available. Messages already sent are not lost.
    #[error(
        "out of shared memory on {topic}: {needed_bytes} bytes needed, the limit is {limit_bytes} bytes: {why}"
    )]
    OutOfMemory {
        /// The topic.
        topic: String,
        /// Requested length, in bytes.
        needed_bytes: u64,
        /// The limit that was exceeded, in bytes.
        limit_bytes: u64,
        /// Which limit it is (the publisher's pool, the file system), and what to do.
        why: String,
    },
    /// A named limit of [`crate::limits`] is reached.
    #[error("limit reached: {limit} {what}; {hint}")]
    LimitReached {
        /// The limited things, in words that follow a number: `"nodes in domain 0"`.
        what: String,
        /// The limit.
        limit: usize,
        /// What to do.
        hint: String,
    },
    /// A subscriber already holds the maximum number of samples.
    #[error(
        "this subscriber of {topic} already holds {limit} samples; drop some before receiving more, or copy the data to keep it"
    )]
    TooManyPins {
        /// The topic.
        topic: String,
        /// Maximum number of samples.
        limit: usize,
    },
    /// Another live node of the domain has this name.
    #[error("node {node} already exists in this domain{}; choose another name or stop that process", pid_text(.pid))]
    NameTaken {
        /// The name.
        node: String,
        /// Process id of the other node, if known.
        pid: Option<u32>,
    },
    /// The user may not access a file or directory of the domain.
    #[error("no permission for {}: {why}", .path.display())]
    NoPermission {
        /// The file or directory.
        path: PathBuf,
        /// The owner, and what to do.
        why: String,
    },
    /// Another version of robot-net created a file in shared memory.
    #[error("{} has layout version {found}, this process uses {ours}: run the same robot-net version in all processes of a domain; once the processes that use the file have exited, the next start replaces it", .path.display())]
    LayoutVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this process.
        ours: u32,
    },
    /// A peer's shared memory contains data that no correct peer writes. The channel is closed; other
    /// channels continue.
    #[error(
        "{topic} from {publisher_node} is corrupt: {what}; the channel is closed, other publishers continue; restart that process"
    )]
    Corrupt {
        /// The topic.
        topic: String,
        /// Node of the publisher that owns the memory.
        publisher_node: String,
        /// The invalid data.
        what: String,
    },
    /// One message could not be decoded: its bytes do not match the type of its publisher. It is counted as
    /// malformed. Other messages are not affected.
    #[error(
        "a message on {topic} from {publisher_node} is malformed: {why}; it is skipped; check the data that its publisher sends"
    )]
    Malformed {
        /// The topic.
        topic: String,
        /// Node of the publisher.
        publisher_node: String,
        /// The fault; if known, with the byte offset and the field.
        why: String,
    },
    /// The node, publisher or subscriber was closed.
    #[error("{what} is closed; open another")]
    Closed {
        /// What was closed.
        what: String,
    },
    /// A wait was interrupted by a signal or by another thread, or returned so that the caller can check for
    /// signals.
    #[error("interrupted; wait again to continue")]
    Interrupted,
    /// Contradictory or invalid quality-of-service settings.
    #[error("bad quality of service{}: {why}", on_topic(.topic))]
    BadQos {
        /// The topic; empty while it is not known (see [`Error::with_topic`]).
        topic: String,
        /// The setting, the fault, and the allowed values.
        why: String,
    },
    /// A value does not match its type or is out of range.
    #[error("bad value for {what}: {why}")]
    BadValue {
        /// The value: a field path, an option, a setting.
        what: String,
        /// The fault and the allowed values.
        why: String,
    },
    /// A key of the state was written since it was read. Nothing was changed.
    #[error("conflict at {key}: {}; read it again and retry", conflict_text(*.expected, *.found))]
    Conflict {
        /// The key.
        key: String,
        /// The expected revision; 0 if the key had to be absent.
        expected: u64,
        /// The current revision; 0 if the key is absent.
        found: u64,
    },
    /// A key of the state holds values of another type. Nothing was changed.
    #[error(
        "{key} holds {holds}, not {given}; use that type, or allow the change with change_type"
    )]
    StateType {
        /// The key.
        key: String,
        /// The type of its value, in words: `"an integer"`, `"a protobuf message foxglove.Pose"`.
        holds: String,
        /// The given or requested type, in words.
        given: String,
    },
    /// State could not be written to disk. The state in memory is unchanged.
    #[error("cannot store state in {}: {why}", .path.display())]
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// The cause (disk full, read-only), and what to do.
        why: String,
    },
    /// The server exited before it answered a call. The call may or may not have run.
    #[error(
        "the server of {topic} in {node} on host {host} was lost before it answered: it exited or closed the service; the call may or may not have run; call again once the server is back"
    )]
    ServerLost {
        /// The service.
        topic: String,
        /// Node of the server.
        node: String,
        /// Host of the server.
        host: String,
    },
    /// The home host of a key of the state does not answer.
    #[error(
        "{key} has its home on host {host}, which is not reachable: {why}; {}", home_text(*.may_hold)
    )]
    HomeAway {
        /// The key or prefix.
        key: String,
        /// The home host.
        host: String,
        /// The observed fault of that host.
        why: String,
        /// Whether a write was already sent. It may then take effect there, now or later.
        may_hold: bool,
    },
    /// The handler of a service failed or panicked.
    #[error("{topic} failed in {node}: {failure}; {}", log_text(.node))]
    CallFailed {
        /// The service.
        topic: String,
        /// Node of the server.
        node: String,
        /// The error of the handler.
        #[source]
        failure: Box<Failure>,
    },
    /// The queue of a service is full, or an action runs another goal. The call was not started.
    #[error("the server of {topic} in {node} is busy: {}", busy_text(.backlog, .running))]
    Refused {
        /// The service.
        topic: String,
        /// Node of the last server that refused.
        node: String,
        /// Capacity of the server's queue, in calls.
        backlog: u32,
        /// The node whose goal is running; empty for a service.
        running: String,
    },
    /// A driver lacks authority over a command: it was refused, or its authority ended.
    #[error("no authority over {topic}: {why}; {}", authority_text(*.had_authority))]
    NotInForce {
        /// The topic of the command.
        topic: String,
        /// The current holder, or why the authority ended.
        why: String,
        /// Whether the driver has had authority before.
        had_authority: bool,
    },
    /// A command topic already has a receiver. A command topic supports one receiver only.
    #[error("{topic} already has a receiver, in {node}; close that one, or receive another topic")]
    ReceiverExists {
        /// The topic of the command.
        topic: String,
        /// Node of the receiver.
        node: String,
    },
    /// A call was cancelled.
    #[error("the call of {topic} was cancelled {reason}; call again if you still need it")]
    Cancelled {
        /// The service.
        topic: String,
        /// The reason.
        reason: CancelReason,
    },
    /// Messages of a server were lost in transit. The answer to this call may be among them.
    #[error(
        "{lost} answers of the server of {topic} in {node} were lost in transit, and the answer to this call may be among them; the call may or may not have run; call again if running it twice is safe"
    )]
    CallLost {
        /// The service.
        topic: String,
        /// Node of the server.
        node: String,
        /// Number of lost messages.
        lost: u64,
    },
    /// A system call failed.
    #[error("{doing} {}: {source}; check the file and its directory", .path.display())]
    Io {
        /// The failed operation, in the form `"cannot open"`.
        doing: String,
        /// The file.
        path: PathBuf,
        /// The failure of the system.
        source: OsError,
    },
}

/// The same text as `Display`, because a program whose `main` returns this error prints the `Debug` form.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Error {
    /// A stable snake_case name of the variant, for bindings and JSON output.
    ///
    /// ```
    /// assert_eq!(rnet_core::Error::Interrupted.code(), "interrupted");
    /// ```
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// The topic of the error, if it has one.
    pub fn topic(&self) -> Option<&str> {
        match self {
            _ if self.names_a_file() => None,
            Self::Full { topic, .. } | Self::Timeout { topic, .. } => Some(&**topic),
            Self::MessageTooLarge { topic, .. }
            | Self::IncompatibleType { topic, .. }
            | Self::IncompatibleQos { topic, .. }
            | Self::Detached { topic, .. }
            | Self::PeerLost { topic, .. }
            | Self::OutOfMemory { topic, .. }
            | Self::TooManyPins { topic, .. }
            | Self::Corrupt { topic, .. }
            | Self::Malformed { topic, .. }
            | Self::BadQos { topic, .. }
            | Self::ServerLost { topic, .. }
            | Self::CallFailed { topic, .. }
            | Self::Refused { topic, .. }
            | Self::Cancelled { topic, .. }
            | Self::CallLost { topic, .. }
            | Self::NotInForce { topic, .. }
            | Self::ReceiverExists { topic, .. }
            | Self::BadName { what: "topic", name: topic, .. } => Some(topic.as_str()),
            _ => None,
        }
        .filter(|topic| !topic.is_empty())
    }

    /// The node of the error: the peer that caused it, the publisher's node if publisher and subscriber are
    /// incompatible, or the node whose name is invalid or taken.
    pub fn node(&self) -> Option<&str> {
        match self {
            _ if self.names_a_file() => None,
            Self::Full { reader_node, .. } => Some(&**reader_node),
            Self::IncompatibleType { publisher_node: node, .. }
            | Self::IncompatibleQos { publisher_node: node, .. }
            | Self::Detached { publisher_node: node, .. }
            | Self::PeerLost { node, .. }
            | Self::ServerLost { node, .. }
            | Self::CallFailed { node, .. }
            | Self::Refused { node, .. }
            | Self::CallLost { node, .. }
            | Self::ReceiverExists { node, .. }
            | Self::NameTaken { node, .. }
            | Self::Corrupt { publisher_node: node, .. }
            | Self::Malformed { publisher_node: node, .. }
            | Self::BadName { what: "node", name: node, .. } => Some(node.as_str()),
            _ => None,
        }
    }

    /// Whether this is `Corrupt` for the state or another file. It then contains a path in place of a node.
    fn names_a_file(&self) -> bool {
        matches!(self, Self::Corrupt { topic, publisher_node, .. }
            if !topic.starts_with('/') || !publisher_node.starts_with('/'))
    }

    /// Every value that [`code`](Self::code) can return. Bindings use it to check that they cover all of
    /// them.
    pub const CODES: &'static [&'static str] = Self::VARIANTS;

    /// Creates an [`Error::Io`] from the standard library's error. `doing` has the form `"cannot open"`.
    pub fn io(doing: impl Into<String>, path: impl Into<PathBuf>, source: &std::io::Error) -> Self {
        Self::Io { doing: doing.into(), path: path.into(), source: source.into() }
    }

    /// Sets the topic of an [`Error::BadQos`] from `validate`, which does not know the topic. Returns other
    /// errors unchanged.
    #[must_use]
    pub fn with_topic(self, topic: &str) -> Self {
        match self {
            Self::BadQos { topic: unknown, why } if unknown.is_empty() => {
                Self::BadQos { topic: topic.to_owned(), why }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn one_of_each() -> Vec<Error> {
        let (topic, node) = (String::from("/t"), String::from("/n"));
        let detail = TypeMismatch {
            field_path: "x".into(),
            publisher: "f64 at 8".into(),
            subscriber: "f32 at 8".into(),
        };
        let t = || topic.clone();
        let n = || node.clone();
        let s = || "so".to_owned();
        vec![
            Error::BadName { what: "topic", name: t(), why: s() },
            Error::MessageTooLarge { topic: t(), len: 9, limit: 8 },
            Error::IncompatibleType {
                topic: t(),
                part: None,
                publisher_node: n(),
                subscriber_node: n(),
                detail: Box::new(detail),
            },
            Error::IncompatibleQos {
                topic: t(),
                publisher_node: n(),
                subscriber_node: n(),
                why: s(),
            },
            Error::Full { topic: t().into(), reader_node: n().into() },
            Error::Timeout { topic: t().into(), what: "a message".into(), after_ms: 5 },
            Error::Detached { topic: t(), publisher_node: n(), stall_ms: 5 },
            Error::PeerLost { topic: t(), node: n() },
            Error::OutOfMemory { topic: t(), needed_bytes: 5, limit_bytes: 4, why: s() },
            Error::LimitReached { what: "nodes".into(), limit: 5, hint: s() },
            Error::TooManyPins { topic: t(), limit: 64 },
            Error::NameTaken { node: n(), pid: Some(7) },
            Error::NoPermission { path: "/x".into(), why: s() },
            Error::LayoutVersion { path: "/x".into(), found: 1, ours: 2 },
            Error::Corrupt { topic: t(), publisher_node: n(), what: s() },
            Error::Malformed { topic: t(), publisher_node: n(), why: s() },
            Error::Closed { what: s() },
            Error::Interrupted,
            Error::BadQos { topic: t(), why: s() },
            Error::BadValue { what: s(), why: s() },
            Error::Conflict { key: "/k".into(), expected: 3, found: 5 },
            Error::StateType { key: "/k".into(), holds: s(), given: s() },
            Error::Storage { path: "/x".into(), why: s() },
            Error::ServerLost { topic: t(), node: n(), host: "lab".into() },
            Error::HomeAway { key: "/k".into(), host: "lab".into(), why: s(), may_hold: false },
            Error::CallFailed {
                topic: t(),
                node: n(),
                failure: Box::new(Failure { kind: "panic".into(), text: s() }),
            },
            Error::Refused { topic: t(), node: n(), backlog: 64, running: String::new() },
            Error::NotInForce { topic: t(), why: s(), had_authority: true },
            Error::ReceiverExists { topic: t(), node: n() },
            Error::Cancelled { topic: t(), reason: CancelReason::Caller },
            Error::CallLost { topic: t(), node: n(), lost: 2 },
            Error::io("cannot open", "/x", &std::io::Error::from_raw_os_error(2)),
        ]
    }

    #[test]
    fn codes_are_all_listed_once_in_snake_case() {
        let codes: Vec<_> = one_of_each().iter().map(Error::code).collect();
        assert_eq!(codes, Error::CODES);
        assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len());
        assert!(codes.iter().all(|c| c.chars().all(|c| c.is_ascii_lowercase() || c == '_')));
    }

    #[test]
    fn messages_contain_topic_node_and_remedy() {
        for error in one_of_each() {
            let text = error.to_string();
            assert!(!text.contains('\n') && !text.is_empty());
            // An error with a topic or a node contains its name, and the accessors return it.
            assert_eq!(error.topic().is_some(), text.contains("/t"), "{text}");
            assert_eq!(error.node().is_some(), text.contains("/n"), "{text}");
            // The remedy is the last part of the text.
            assert!(text.contains("; ") || text.ends_with(": so"), "{text}");
            // The `Debug` form, which is printed if `main` returns the error.
            assert_eq!(format!("{error:?}"), text);
        }
        for (topic, publisher_node) in [("state", "/dev/shm/x/state"), ("/dev/shm/x/s1", "a peer")]
        {
            let (topic, publisher_node) = (topic.into(), publisher_node.into());
            let of_a_file = Error::Corrupt { topic, publisher_node, what: "so".into() };
            assert_eq!((of_a_file.topic(), of_a_file.node()), (None, None));
        }
        let text = |e: &Error| e.to_string();
        let all = one_of_each();
        assert_eq!(
            text(all.last().unwrap()),
            "cannot open /x: entity not found (os error 2); check the file and its directory"
        );
        assert!(text(&all[11]).contains("(process 7)"));
        assert_eq!(
            text(&Error::NameTaken { node: "/n".into(), pid: None }).matches("process").count(),
            1
        );
    }

    #[test]
    fn with_topic_sets_only_an_empty_topic() {
        let error = Error::BadQos { topic: String::new(), why: "w".into() };
        assert_eq!(error.to_string(), "bad quality of service: w");
        assert_eq!(
            error.with_topic("/a").with_topic("/b").to_string(),
            "bad quality of service on /a: w"
        );
    }

    #[test]
    fn errors_stay_small() {
        // Every `Result` in robot-net contains an `Error`.
        assert!(size_of::<Error>() <= 96, "{}", size_of::<Error>());
    }
}
