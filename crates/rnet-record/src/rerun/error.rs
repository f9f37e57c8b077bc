//! What a re-run can fail with, before there is anything to compare.

use std::time::Duration;

use crate::play::PlayError;
use crate::read::{ReadError, TypeError};

/// Why a node could not be run again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RerunError {
    /// No node has joined the domain in time.
    #[error(
        "no node has joined the domain of the re-run in {0:?}; a node that names its domain in its code never does"
    )]
    NotJoined(Duration),
    /// More than one node has joined.
    #[error("{0} have joined; a re-run is of one node: say which with --name")]
    Several(String),
    /// The node published nothing that was recorded.
    #[error(
        "{node} published nothing in the recording; {known}; --name says as which it was recorded"
    )]
    NotRecorded {
        /// Name of the node.
        node: String,
        /// Names of those that did.
        known: String,
    },
    /// The node had to do with calls that cannot be made again.
    #[error(
        "of {node} the recording has {why}; a re-run cannot make that again. --without-calls runs it without calls, and \
         compares what else it publishes"
    )]
    Calls {
        /// Name of the node.
        node: String,
        /// Which, and why not.
        why: String,
    },
    /// The node serves no more what was recorded.
    #[error("{node} does not serve {service}, whose requests were recorded, when it has started")]
    NotServed {
        /// Name of the node.
        node: String,
        /// Name of the service.
        service: String,
    },
    /// The node calls at its start what was not recorded of its start.
    #[error(
        "the node calls {service} at its start more often than the recording has it before the first input: record it \
         from before the node starts, or run it --without-calls"
    )]
    UnrecordedCall {
        /// Name of the service.
        service: String,
    },
    /// The node subscribes to nothing that was recorded.
    #[error(
        "{node} subscribes to {topics}, of which the recording has nothing; there is nothing to feed it"
    )]
    NoInputs {
        /// Name of the node.
        node: String,
        /// What it subscribes to.
        topics: String,
    },
    /// A topic that the node was to get was not recorded.
    #[error("the recording has no {topic} that the node could get; it has {known}")]
    NoInput {
        /// The topic.
        topic: String,
        /// Topics that it has.
        known: String,
    },
    /// No message for the node.
    #[error(
        "the recording has no message of {topics} {when}; it lasts {seconds:.3} s, and there is nothing to feed {node}"
    )]
    NoMessages {
        /// Name of the node.
        node: String,
        /// What it subscribes to.
        topics: String,
        /// In which part of the recording.
        when: String,
        /// Length of the recording.
        seconds: f64,
    },
    /// Nothing of the node was compared.
    #[error(
        "nothing was compared of {topics}: {node} published nothing there after its first input, neither when it was \
         recorded nor now; in the recording it publishes on {known}"
    )]
    NothingCompared {
        /// Name of the node.
        node: String,
        /// What was to be compared.
        topics: String,
        /// Topics that it publishes on in the recording.
        known: String,
    },
    /// An option names a field that no message has.
    #[error("{by} {field}: messages of {topics} have no field {field:?}")]
    NoField {
        /// The field.
        field: String,
        /// The option of `rnet rerun`.
        by: &'static str,
        /// Topics that are compared.
        topics: String,
    },
    /// The node has not subscribed to what it was to get.
    #[error("{node} has not subscribed to {topic} in {limit:?}")]
    NotSubscribed {
        /// Name of the node.
        node: String,
        /// The topic.
        topic: String,
        /// How long that was waited for.
        limit: Duration,
    },
    /// A subscription of the node cannot read what was recorded.
    #[error("{node} cannot take {topic} as it was recorded: {why}")]
    Incompatible {
        /// Name of the node.
        node: String,
        /// The topic.
        topic: String,
        /// Why not.
        why: String,
    },
    /// The node has subscribed to a recorded topic when messages had passed.
    #[error(
        "{node} has subscribed to {topic} after its start, and missed what was before; name it with --input"
    )]
    Late {
        /// Name of the node.
        node: String,
        /// The topic.
        topic: String,
    },
    /// The process has ended.
    #[error("{node} has died {at}: {how}")]
    Died {
        /// Name of the node.
        node: String,
        /// After which input.
        at: String,
        /// How it ended.
        how: String,
    },
    /// The node has not come to rest.
    #[error("{node} does not rest {at}: {why} for {limit:?}")]
    Restless {
        /// Name of the node.
        node: String,
        /// After which input.
        at: String,
        /// What it does instead.
        why: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// Nothing came.
    #[error(
        "{node} never answers: it got {inputs} messages and published nothing on {topics} for {limit:?}"
    )]
    NoAnswer {
        /// Name of the node.
        node: String,
        /// How many it got.
        inputs: u64,
        /// Where something was due.
        topics: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// Outputs passed unseen.
    #[error(
        "{count} messages of {topic} passed unseen: the node publishes more for one input than its log holds"
    )]
    Lost {
        /// The topic.
        topic: String,
        /// How many.
        count: u64,
    },
    /// A message could not be published.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A type of the file cannot be read.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The domain failed.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// The system failed.
    #[error("cannot look at the process of the node: {0}")]
    Process(#[from] std::io::Error),
    /// The command cannot be run.
    #[error("cannot start {program}: {source}")]
    Command {
        /// Which.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
}

impl RerunError {
    /// Its name, the same for good.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJoined(_) => "not_joined",
            Self::Several(_) => "several_nodes",
            Self::NotRecorded { .. } => "not_recorded",
            Self::Calls { .. } => "calls",
            Self::NotServed { .. } => "not_served",
            Self::UnrecordedCall { .. } => "unrecorded_call",
            Self::NoInputs { .. } => "no_inputs",
            Self::NoInput { .. } => "no_input",
            Self::NoMessages { .. } => "no_messages",
            Self::NothingCompared { .. } => "nothing_compared",
            Self::NoField { .. } => "no_field",
            Self::NotSubscribed { .. } => "not_subscribed",
            Self::Incompatible { .. } => "incompatible",
            Self::Late { .. } => "late_subscription",
            Self::Died { .. } => "died",
            Self::Restless { .. } => "restless",
            Self::NoAnswer { .. } => "no_answer",
            Self::Interrupted => "interrupted",
            Self::Lost { .. } => "lost",
            Self::Play(_) => "play",
            Self::Read(_) => "read",
            Self::Type(_) => "type",
            Self::Rnet(error) => error.code(),
            Self::Process(_) => "process",
            Self::Command { .. } => "command",
        }
    }

    /// Whether a time limit has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::NotJoined(_)
                | Self::NotSubscribed { .. }
                | Self::Restless { .. }
                | Self::NoAnswer { .. }
        )
    }
}
