//! Errors of a user's request.

use rnet::Error;

/// The result of a user's request.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a user's request failed.
#[derive(Debug)]
pub enum Failure {
    /// robot-net returned an error.
    Rnet(Error),
    /// It failed; the text is the reason.
    Failed(String),
    /// The given text, name or options are invalid; the text is the reason.
    Usage(String),
    /// Something did not happen in time; the text says what.
    TimedOut(String),
    /// The caller requested a stop.
    Interrupted,
    /// The output cannot be written.
    Output(std::io::Error),
    /// The error was already reported.
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

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Rnet(error) => error.fmt(f),
            Failure::Failed(text) | Failure::Usage(text) | Failure::TimedOut(text) => {
                f.write_str(text)
            }
            Failure::Interrupted => f.write_str("interrupted"),
            Failure::Output(error) => write!(f, "cannot write the output: {error}"),
            Failure::AlreadyReported => f.write_str("failed"),
        }
    }
}

impl std::error::Error for Failure {}
