//! Failures of commands, and their exit codes.

use std::io::{ErrorKind, Write};

use rnet::Error;
use rnet_format::CommandError;
use rnet_record::tools::ToolError;

use crate::style::PROBLEM;
use rnet_format::text::escape_controls;

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// The library returned an error.
    Rnet(Error),
    /// The command failed, with the reason.
    Failed(String),
    /// The command line is contradictory in a way that the parser cannot detect.
    Usage(String),
    /// A wait timed out.
    TimedOut(String),
    /// Ctrl-C, or SIGTERM.
    Interrupted,
    /// stdout is not writable.
    Output(std::io::Error),
    /// Everything was already reported.
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
    /// The exit codes are part of the command line's contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            // `rnet topic echo /t | head`: the reader has read enough.
            Failure::Output(e) if e.kind() == ErrorKind::BrokenPipe => 0,
            // The parser checks names; an invalid one that arrives here came from the environment.
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

    /// The message.
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

    /// Prints it on stderr: as a line, or as a JSON document.
    pub fn print(&self, json: bool) {
        match self {
            Failure::AlreadyReported | Failure::Interrupted => return,
            Failure::Output(e) if e.kind() == ErrorKind::BrokenPipe => return,
            _ => {}
        }
        let message = self.message();
        // If this fails, no output is left to report it on.
        let _ = if json {
            let document = serde_json::json!({"error": {"code": self.code(), "message": message}});
            writeln!(std::io::stderr(), "{document}")
        } else {
            // It may contain text from another node, such as the error of a handler.
            let lines: Vec<_> = message.split('\n').map(escape_controls).collect();
            writeln!(anstream::stderr(), "{PROBLEM}rnet:{PROBLEM:#} {}", lines.join("\n"))
        };
    }
}
