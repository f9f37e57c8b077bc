//! Errors of a re-run before the comparison.

use std::time::Duration;

use crate::play::PlayError;
use crate::read::{ReadError, TypeError};

/// Why a node could not be run again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RerunError {
    /// The node or the recording does not allow a re-run.
    #[error("{text}")]
    Failed {
        /// Stable name of the error.
        code: &'static str,
        /// What failed, and what to do.
        text: String,
    },
    /// The node exceeded a time limit.
    #[error("{text}")]
    TimedOut {
        /// Stable name of the error.
        code: &'static str,
        /// What did not happen, and the limit.
        text: String,
    },
    /// The re-run was interrupted.
    #[error("interrupted")]
    Interrupted,
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
    /// The process of the node cannot be inspected.
    #[error("cannot inspect the process of the node: {0}")]
    Process(#[from] std::io::Error),
    /// The command cannot be started.
    #[error("cannot start {program}: {source}")]
    Command {
        /// The program.
        program: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl RerunError {
    pub(super) fn failed(code: &'static str, text: String) -> Self {
        Self::Failed { code, text }
    }

    /// The node has recorded calls that cannot be repeated.
    pub(super) fn unrepeatable_calls(node: &str, why: &str) -> Self {
        let text = format!(
            "for {node} the recording has {why}, which a re-run cannot repeat; use --without-calls to \
             compare only its other outputs"
        );
        Self::failed("calls", text)
    }

    /// The starting node makes a call that was not recorded.
    pub(super) fn unrecorded_call(service: &str) -> Self {
        let text = format!(
            "the node calls {service} at its start more often than the recording does before the first \
             input: start recording before the node, or use --without-calls"
        );
        Self::failed("unrecorded_call", text)
    }

    /// A subscription of the node is incompatible with a recorded topic.
    pub(super) fn incompatible(node: &str, topic: &str, why: &str) -> Self {
        let text = format!("{node} is not compatible with {topic} as recorded: {why}");
        Self::failed("incompatible", text)
    }

    /// The node did not become idle: `at` describes the input before, `why` its activity.
    pub(super) fn not_idle(node: &str, at: &str, why: &str, limit: Duration) -> Self {
        let text = format!("{node} does not become idle {at}: {why} for {limit:?}");
        Self::TimedOut { code: "restless", text }
    }

    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed { code, .. } | Self::TimedOut { code, .. } => code,
            Self::Interrupted => "interrupted",
            Self::Play(_) => "play",
            Self::Read(_) => "read",
            Self::Type(_) => "type",
            Self::Rnet(error) => error.code(),
            Self::Process(_) => "process",
            Self::Command { .. } => "command",
        }
    }
}
