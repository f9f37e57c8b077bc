//! Failures of commands, and their exit codes.

use std::io::{ErrorKind, Write};

use rnet::Error;
pub use rnet_format::{Failure, Outcome};

use crate::style::PROBLEM;
use rnet_format::text::escape_controls;

/// The exit codes are part of the command line's contract.
pub fn exit_code(failure: &Failure) -> u8 {
    match failure {
        // `rnet topic echo /t | head`: the reader has read enough.
        Failure::Output(e) if e.kind() == ErrorKind::BrokenPipe => 0,
        // The parser checks names; an invalid one that arrives here came from the environment.
        Failure::Rnet(Error::BadName { .. }) | Failure::Usage(_) => 2,
        Failure::Rnet(_) | Failure::Failed(_) | Failure::Output(_) | Failure::AlreadyReported => 1,
        Failure::TimedOut(_) => 124,
        Failure::Interrupted => 130,
    }
}

fn code(failure: &Failure) -> &'static str {
    match failure {
        Failure::Rnet(error) => error.code(),
        Failure::Failed(_) | Failure::AlreadyReported => "failed",
        Failure::Usage(_) => "usage",
        Failure::TimedOut(_) => "timeout",
        Failure::Interrupted => "interrupted",
        Failure::Output(_) => "output",
    }
}

/// The message, with the option of this program that helps.
fn message(failure: &Failure) -> String {
    match failure {
        Failure::Rnet(Error::StateType { key, holds, given }) => format!(
            "{key} holds {holds}, not {given}; use that type, or change the key's type with rnet state set \
             --change-type"
        ),
        failure => failure.to_string(),
    }
}

/// The failure of a command that this build leaves out.
#[cfg(not(all(feature = "keys", feature = "web")))]
pub fn not_built_in(command: &str) -> Outcome {
    Err(Failure::Failed(format!(
        "this build of rnet, made by `make demo`, does not include {command}; `make build` makes a complete \
         one, target/release/rnet"
    )))
}

/// Prints it on stderr: as a line, or as a JSON document.
pub fn print(failure: &Failure, json: bool) {
    match failure {
        Failure::AlreadyReported | Failure::Interrupted => return,
        Failure::Output(e) if e.kind() == ErrorKind::BrokenPipe => return,
        _ => {}
    }
    let message = message(failure);
    // If this fails, no output is left to report it on.
    let _ = if json {
        let document = serde_json::json!({"error": {"code": code(failure), "message": message}});
        writeln!(std::io::stderr(), "{document}")
    } else {
        // It may contain text from another node, such as the error of a handler.
        let lines: Vec<_> = message.split('\n').map(escape_controls).collect();
        writeln!(anstream::stderr(), "{PROBLEM}rnet:{PROBLEM:#} {}", lines.join("\n"))
    };
}
