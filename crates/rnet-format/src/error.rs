//! Why what a user asked for cannot be done.

use rnet::Error;

/// The result of something that a user asked for.
pub type Outcome<T = ()> = Result<T, CommandError>;

/// Why something that a user asked for cannot be done.
#[derive(Debug)]
#[non_exhaustive]
pub enum CommandError {
    /// robot-net returned an error.
    Rnet(Error),
    /// It failed, in words.
    Failed(String),
    /// The given text, name or options are invalid, in words.
    Usage(String),
    /// Something did not happen in time, in words.
    TimedOut(String),
    /// The caller asked it to stop.
    Interrupted,
    /// The output cannot be written.
    Output(std::io::Error),
    /// The error was already reported.
    AlreadyReported,
}

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        match error {
            Error::Timeout { .. } => CommandError::TimedOut(error.to_string()),
            Error::Interrupted => CommandError::Interrupted,
            error => CommandError::Rnet(error),
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> CommandError {
        CommandError::Output(error)
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandError::Rnet(error) => error.fmt(f),
            CommandError::Failed(text)
            | CommandError::Usage(text)
            | CommandError::TimedOut(text) => f.write_str(text),
            CommandError::Interrupted => f.write_str("interrupted"),
            CommandError::Output(error) => write!(f, "cannot write the output: {error}"),
            CommandError::AlreadyReported => f.write_str("failed"),
        }
    }
}

impl std::error::Error for CommandError {}
