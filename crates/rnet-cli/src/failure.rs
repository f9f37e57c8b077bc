//! How a command ends when it does not end well, and the exit code of each.

use std::io::{ErrorKind, Write};

use rnet::Error;
use rnet_format::CommandError;
use rnet_record::tools::ToolError;

use crate::style::PROBLEM;
use rnet_format::text::escape_controls;

/// What a command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// The library said no.
    Rnet(Error),
    /// The command cannot be done, in words.
    Failed(String),
    /// The command line contradicts itself in a way that the parser cannot know.
    Usage(String),
    /// What was waited for did not come.
    TimedOut(String),
    /// Ctrl-C, or SIGTERM.
    Interrupted,
    /// stdout cannot be written.
    Output(std::io::Error),
    /// All has been said.
    AlreadyReported,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Timeout { .. } => Failure::TimedOut(error.to_string()),
            Error::Interrupted => Failure::Interrupted,
            error => Failure::Rnet(error),
        }
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Failure {
        match error {
            CommandError::Rnet(error) => error.into(),
            CommandError::Usage(text) => Failure::Usage(text),
            CommandError::TimedOut(text) => Failure::TimedOut(text),
            CommandError::Interrupted => Failure::Interrupted,
            CommandError::Output(error) => Failure::Output(error),
            CommandError::AlreadyReported => Failure::AlreadyReported,
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Failure {
        match error {
            ToolError::Interrupted => Failure::Interrupted,
            ToolError::Value(error) => error.into(),
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl Failure {
    /// The contract of the command line.
    pub fn exit_code(&self) -> u8 {
        match self {
            // `rnet topic echo /t | head`: the reader has all it wanted.
            Failure::Output(e) if e.kind() == ErrorKind::BrokenPipe => 0,
            // Names are checked by the parser; one that arrives here came from the environment.
            Failure::Rnet(Error::BadName { .. }) | Failure::Usage(_) => 2,
            Failure::Rnet(_)
            | Failure::Failed(_)
            | Failure::Output(_)
            | Failure::AlreadyReported => 1,
            Failure::TimedOut(_) => 124,
            Failure::Interrupted => 130,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Failure::Rnet(error) => error.code(),
            Failure::Failed(_) | Failure::AlreadyReported => "failed",
            Failure::Usage(_) => "usage",
            Failure::TimedOut(_) => "timeout",
            Failure::Interrupted => "interrupted",
            Failure::Output(_) => "output",
        }
    }

    /// It in words.
    pub fn message(&self) -> String {
        match self {
            Failure::Output(e) => format!("cannot write the output: {e}"),
            Failure::Rnet(Error::StateType { key, holds, given }) => format!(
                "{key} holds {holds}, not {given}; use that type, or change the key's type with rnet state set \
                 --change-type"
            ),
            Failure::Rnet(error) => error.to_string(),
            Failure::Failed(text) | Failure::Usage(text) | Failure::TimedOut(text) => text.clone(),
            Failure::AlreadyReported => "failed".to_owned(),
            Failure::Interrupted => "interrupted".to_owned(),
        }
    }

    /// Says it on stderr: a line, or a JSON document.
    pub fn print(&self, json: bool) {
        match self {
            Failure::AlreadyReported | Failure::Interrupted => return,
            Failure::Output(e) if e.kind() == ErrorKind::BrokenPipe => return,
            _ => {}
        }
        let message = self.message();
        // Nobody is left to be told if this fails.
        let _ = if json {
            let document = serde_json::json!({"error": {"code": self.code(), "message": message}});
            writeln!(std::io::stderr(), "{document}")
        } else {
            // What another node has said may be in it, such as the error of a handler.
            let lines: Vec<_> = message.split('\n').map(escape_controls).collect();
            writeln!(anstream::stderr(), "{PROBLEM}rnet:{PROBLEM:#} {}", lines.join("\n"))
        };
    }
}
