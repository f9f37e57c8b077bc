//! The one error type of the plane.
//!
//! A message is written for the person who reads it on a terminal at two in the morning: what failed, on which topic and
//! node, which limit or which two types, and what to do. Programs match on the variant, or on [`Error::code`] where
//! they are not written in Rust.

mod call;
mod constructors;
mod text;

use crate::types::TypeMismatch;
pub use call::{CallPart, CancelReason, Failure};
use call::{busy_text, incompatible_text};
use std::path::PathBuf;
use strum::{IntoStaticStr, VariantNames};
use text::{conflict_text, home_text, on_topic, os_text, pid_text};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of robot-net. Expected outcomes on a hot path (no message, no subscriber) are not errors.
///
/// ```
/// let error = rnet_core::TopicName::new("/scan data").unwrap_err();
/// assert_eq!(error.code(), "bad_name");
/// println!("{error}"); // says which character, and what to do
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// The name of a topic, node, domain or key breaks the rules.
    #[error("bad {what} name {name:?}: {why}; choose another name")]
    BadName {
        /// `"topic"`, `"node"`, `"domain"` or `"key"`.
        what: &'static str,
        /// The name as given (cut when very long).
        name: String,
        /// What is wrong, at which character.
        why: String,
    },
    /// A message is longer than the topic or robot-net allows. Nothing was sent.
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
    /// Publisher and subscriber describe the messages of a topic differently. Both sides get this error, and nothing is
    /// delivered between the two.
    #[error("{}", incompatible_text(.topic, *.part, (.publisher_node, .subscriber_node), .detail))]
    IncompatibleType {
        /// The topic; of a call the service.
        topic: String,
        /// Which message of a call it is about; `None` for that of a topic.
        part: Option<CallPart>,
        /// Node of the publisher.
        publisher_node: String,
        /// Node of the subscriber.
        subscriber_node: String,
        /// The first difference.
        detail: Box<TypeMismatch>,
    },
    /// The subscriber asks for more than the publisher offers. Both sides get this error.
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
        /// Which of both must change, and how.
        why: String,
    },
    /// A reliable reader holds the writer back and the publisher chose not to wait (or waited long enough). The message
    /// was not sent and is still the caller's.
    #[error(
        "{topic} is full: the reliable subscriber in {reader_node} has not read yet; send again later, or use on_full wait or detach"
    )]
    Full {
        /// The topic.
        topic: String,
        /// Node of the slowest reader.
        reader_node: String,
    },
    /// What was waited for did not happen in time.
    #[error(
        "timed out after {after_ms} ms waiting for {what}; wait longer, or run `rnet doctor` to find the cause"
    )]
    Timeout {
        /// The topic; empty where the wait was for no single topic.
        topic: String,
        /// What was waited for.
        what: String,
        /// How long, in milliseconds.
        after_ms: u64,
    },
    /// A reliable writer went on without this subscriber because it stood still for too long.
    #[error(
        "{publisher_node} detached this subscriber of {topic}: it read nothing for more than {stall_ms} ms; the messages sent since count as lost (detached); receive more often, or set a longer stall at the publisher"
    )]
    Detached {
        /// The topic.
        topic: String,
        /// Node of the publisher that went on.
        publisher_node: String,
        /// The publisher's stall limit, in milliseconds.
        stall_ms: u64,
    },
    /// The process of a peer ended without saying goodbye.
    #[error("{node} is gone (its process exited); {topic} continues without it; restart it")]
    PeerLost {
        /// The topic.
        topic: String,
        /// The node that is gone.
        node: String,
    },
    /// Shared memory for a message cannot be had. Nothing already sent is lost.
    #[error(
        "out of shared memory on {topic}: {needed_bytes} bytes needed, the limit is {limit_bytes} bytes: {why}"
    )]
    OutOfMemory {
        /// The topic.
        topic: String,
        /// What was asked for, in bytes.
        needed_bytes: u64,
        /// The limit that stands in the way, in bytes.
        limit_bytes: u64,
        /// Which limit it is (the publisher's pool, the file system), and what to do.
        why: String,
    },
    /// A named limit of [`crate::limits`] is reached.
    #[error("limit reached: {limit} {what}; {hint}")]
    LimitReached {
        /// What there may be no more of, in words that follow a number: `"nodes in domain 0"`.
        what: String,
        /// The limit.
        limit: usize,
        /// What to do.
        hint: String,
    },
    /// A subscriber holds as many samples as it may.
    #[error(
        "this subscriber of {topic} already holds {limit} samples; drop some before receiving more, or copy the data to keep it"
    )]
    TooManyPins {
        /// The topic.
        topic: String,
        /// How many it may hold.
        limit: usize,
    },
    /// Another live node of the domain has this name.
    #[error("node {node} already exists in this domain{}; choose another name or stop that process", pid_text(.pid))]
    NameTaken {
        /// The name.
        node: String,
        /// Process id of its holder, where it could be read.
        pid: Option<u32>,
    },
    /// A file or directory of the domain may not be used by this user.
    #[error("no permission for {}: {why}", .path.display())]
    NoPermission {
        /// The file or directory.
        path: PathBuf,
        /// Whose it is, and what to do.
        why: String,
    },
    /// A file in shared memory was laid out by another version of robot-net.
    #[error("{} has layout version {found}, this process uses {ours}: run the same robot-net version in all processes of a domain; once the processes that use the file have exited, the next start replaces it", .path.display())]
    LayoutVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this process.
        ours: u32,
    },
    /// A peer's shared memory holds what no correct peer writes. The channel is given up; nothing else is touched.
    #[error(
        "{topic} from {publisher_node} is corrupt: {what}; the channel is closed, other publishers continue; restart that process"
    )]
    Corrupt {
        /// The topic.
        topic: String,
        /// Node of the publisher that owns the memory.
        publisher_node: String,
        /// What was found.
        what: String,
    },
    /// One message could not be decoded: its bytes are none of the type that its publisher named. It is counted as malformed;
    /// the messages before and behind it are not concerned.
    #[error(
        "a message on {topic} from {publisher_node} is malformed: {why}; it is skipped; check the data that its publisher sends"
    )]
    Malformed {
        /// The topic.
        topic: String,
        /// Node of the publisher.
        publisher_node: String,
        /// What is wrong, at which byte and in which field where that is known.
        why: String,
    },
    /// The node, publisher or subscriber was closed.
    #[error("{what} is closed; open another")]
    Closed {
        /// What was closed.
        what: String,
    },
    /// A wait was ended from outside (a signal, or another thread), or is to be gone on with after a look for signals.
    #[error("interrupted; wait again to continue")]
    Interrupted,
    /// Quality-of-service settings that make no sense in themselves.
    #[error("bad quality of service{}: {why}", on_topic(.topic))]
    BadQos {
        /// The topic; empty while it is not known (see [`Error::with_topic`]).
        topic: String,
        /// Which setting, what is wrong, what is allowed.
        why: String,
    },
    /// A value does not fit its type or its range.
    #[error("bad value for {what}: {why}")]
    BadValue {
        /// The value: a field path, an option, a setting.
        what: String,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// A key of the state was written since it was looked at. Nothing was changed.
    #[error("conflict at {key}: {}; read it again and retry", conflict_text(*.expected, *.found))]
    Conflict {
        /// The key.
        key: String,
        /// The revision that it had to have; 0: it had to be absent.
        expected: u64,
        /// The revision that it has; 0: it is absent.
        found: u64,
    },
    /// A key of the state holds values of another type. Nothing was changed.
    #[error(
        "{key} holds {holds}, not {given}; use that type, or allow the change with change_type"
    )]
    StateType {
        /// The key.
        key: String,
        /// What it holds, in words: `"an integer"`, `"a protobuf message foxglove.Pose"`.
        holds: String,
        /// What was given or asked for, in words.
        given: String,
    },
    /// State could not be put on disk. In memory nothing was changed.
    #[error("cannot store state in {}: {why}", .path.display())]
    Storage {
        /// The file or directory.
        path: PathBuf,
        /// What stands in the way (disk full, read-only), and what to do.
        why: String,
    },
    /// The server that had a call has gone before it answered. Whether it has done what was asked is not known.
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
    /// The host at which a key of the state is at home does not answer.
    #[error(
        "{key} has its home on host {host}, which is not reachable: {why}; {}", home_text(*.may_hold)
    )]
    HomeAway {
        /// The key, or the prefix.
        key: String,
        /// Its home.
        host: String,
        /// What was seen of that host.
        why: String,
        /// Whether it was a write that had left: it may hold there, now or later, or not.
        may_hold: bool,
    },
    /// The handler of a service failed or panicked.
    #[error("{topic} failed in {node}: {failure}; see the log of that node")]
    CallFailed {
        /// The service.
        topic: String,
        /// Node of the server.
        node: String,
        /// What the handler said.
        failure: Box<Failure>,
    },
    /// A service has as many calls waiting as it takes, or an action has a goal. The call was not begun.
    #[error("the server of {topic} in {node} is busy: {}", busy_text(.backlog, .running))]
    Refused {
        /// The service.
        topic: String,
        /// Node of the server that refused last.
        node: String,
        /// Calls that may wait there.
        backlog: u32,
        /// The node whose goal runs there; empty where it is no action.
        running: String,
    },
    /// A driver has no authority over a command: it was refused, or has ended.
    #[error(
        "no authority over {topic}: {why}; take it again (Driver.retake), or take it with a higher priority"
    )]
    NotInForce {
        /// The topic of the command.
        topic: String,
        /// Who has it, or why it has ended.
        why: String,
    },
    /// A command topic has a receiver already. It obeys one driver, so there may be no second one.
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
        /// Why.
        reason: CancelReason,
    },
    /// A message of a server was lost on its way here, which may have been the answer of this call.
    #[error(
        "{lost} answers of the server of {topic} in {node} were lost in transit, and the answer to this call may be among them; the call may or may not have run; call again if running it twice is safe"
    )]
    CallLost {
        /// The service.
        topic: String,
        /// Node of the server.
        node: String,
        /// Messages that were lost.
        lost: u64,
    },
    /// The operating system said no.
    #[error("{doing} {}: {source_kind}{}; check the file and its directory", .path.display(), os_text(.os))]
    Io {
        /// What was being done, in the form `"cannot open"`.
        doing: String,
        /// On which file.
        path: PathBuf,
        /// The kind of failure.
        source_kind: std::io::ErrorKind,
        /// The system's error number, where there is one.
        os: Option<i32>,
    },
}

/// The same text as `Display`: it is what a program whose `main` returns this error prints.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Error {
    /// A stable name for the variant, in snake_case, for bindings and JSON output.
    ///
    /// ```
    /// assert_eq!(rnet_core::Error::Interrupted.code(), "interrupted");
    /// ```
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// The topic that the error is about.
    pub fn topic(&self) -> Option<&str> {
        match self {
            _ if self.names_a_file() => None,
            Self::MessageTooLarge { topic, .. }
            | Self::IncompatibleType { topic, .. }
            | Self::IncompatibleQos { topic, .. }
            | Self::Full { topic, .. }
            | Self::Timeout { topic, .. }
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

    /// The node that the error is about: the peer that caused it, the publisher's node if publisher and subscriber are
    /// incompatible, or the node whose name is invalid or taken.
    pub fn node(&self) -> Option<&str> {
        match self {
            _ if self.names_a_file() => None,
            Self::IncompatibleType { publisher_node: node, .. }
            | Self::IncompatibleQos { publisher_node: node, .. }
            | Self::Full { reader_node: node, .. }
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

    /// Whether it is `Corrupt` of the state or another file: then it names a path where others name a node.
    fn names_a_file(&self) -> bool {
        matches!(self, Self::Corrupt { topic, publisher_node, .. }
            if !topic.starts_with('/') || !publisher_node.starts_with('/'))
    }

    /// Every value that [`code`](Self::code) can return, so that bindings can check that they mirror all of them.
    pub const CODES: &'static [&'static str] = Self::VARIANTS;

    /// An [`Error::Io`] from the standard library's error. `doing` reads `"cannot open"`.
    pub fn io(doing: impl Into<String>, path: impl Into<PathBuf>, source: &std::io::Error) -> Self {
        Self::Io {
            doing: doing.into(),
            path: path.into(),
            source_kind: source.kind(),
            os: source.raw_os_error(),
        }
    }

    /// Names the topic in an error that was raised before it was known ([`Error::BadQos`] from `validate`); any other
    /// error is returned as it is.
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
            Error::Full { topic: t(), reader_node: n() },
            Error::Timeout { topic: t(), what: format!("a message on {topic}"), after_ms: 5 },
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
            Error::NotInForce { topic: t(), why: s() },
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
    fn messages_name_what_one_needs() {
        for error in one_of_each() {
            let text = error.to_string();
            assert!(!text.contains('\n') && !text.is_empty());
            // What names a topic or a node says which, and what says one names it.
            assert_eq!(error.topic().is_some(), text.contains("/t"), "{text}");
            assert_eq!(error.node().is_some(), text.contains("/n"), "{text}");
            // What is to be done comes last: in the words of the variant, or of whoever said what is wrong.
            assert!(text.contains("; ") || text.ends_with(": so"), "{text}");
            // What a program prints whose `main` returns it.
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
    fn a_topic_is_filled_in_once() {
        let error = Error::BadQos { topic: String::new(), why: "w".into() };
        assert_eq!(error.to_string(), "bad quality of service: w");
        assert_eq!(
            error.with_topic("/a").with_topic("/b").to_string(),
            "bad quality of service on /a: w"
        );
    }

    #[test]
    fn errors_stay_small() {
        // Every Result of the plane carries one.
        assert!(size_of::<Error>() <= 96, "{}", size_of::<Error>());
    }
}
