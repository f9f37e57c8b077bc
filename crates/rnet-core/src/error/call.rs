//! What the errors of calls carry.

use strum::IntoStaticStr;

/// What the handler of a service said when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The type of its error; `panic` for a panic.
    pub kind: String,
    /// Its text.
    pub text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

/// Why a call was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum CancelReason {
    /// Its caller has cancelled it.
    Caller,
    /// The node of its caller is gone.
    CallerGone,
    /// Its time was over.
    TimedOut,
    /// A newer goal of the action has taken its place.
    Preempted,
    /// Its server closes.
    ServerClosing,
    /// Somebody else has ended all goals of the action.
    Operator,
    /// The server has said none that is known here.
    Unknown,
}

impl CancelReason {
    /// A stable name, in snake_case, for bindings and JSON output.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::fmt::Display for CancelReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Caller => "by its caller",
            Self::CallerGone => "because its caller is gone",
            Self::TimedOut => "because its time was over",
            Self::Preempted => "for a newer goal",
            Self::ServerClosing => "because its server closes",
            Self::Operator => "by an operator",
            Self::Unknown => "for a reason that is not known here",
        })
    }
}

/// Why a server has refused a call, and what to do.
pub(super) fn busy_text(backlog: &u32, running: &str) -> String {
    if running.is_empty() {
        format!(
            "{backlog} calls wait there already; call again later, or give it a longer backlog or more handlers"
        )
    } else {
        format!(
            "it runs a goal of {running}, and {backlog} more may wait; send again later, or give it the policy queue or replace"
        )
    }
}
