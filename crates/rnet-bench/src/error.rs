//! Errors of the benchmarks and of the demo.

use rnet::Error;

/// The result of a step of a benchmark.
pub type Outcome<T = ()> = Result<T, BenchError>;

/// Why a benchmark, the demo or one of their workers ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum BenchError {
    /// robot-net returned an error.
    Rnet(Error),
    /// A worker, the machine or a check failed, in words.
    Failed(String),
    /// The options contradict each other or the machine, in words.
    Usage(String),
    /// A worker did not do something in time, in words.
    TimedOut(String),
    /// The caller asked the run to stop.
    Interrupted,
    /// The output cannot be written.
    Output(std::io::Error),
    /// A worker has already reported its error to the command.
    AlreadyReported,
}

impl From<Error> for BenchError {
    fn from(error: Error) -> BenchError {
        match error {
            Error::Timeout { .. } => BenchError::TimedOut(error.to_string()),
            Error::Interrupted => BenchError::Interrupted,
            error => BenchError::Rnet(error),
        }
    }
}

impl From<std::io::Error> for BenchError {
    fn from(error: std::io::Error) -> BenchError {
        BenchError::Output(error)
    }
}

impl std::fmt::Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BenchError::Rnet(error) => error.fmt(f),
            BenchError::Failed(text) | BenchError::Usage(text) | BenchError::TimedOut(text) => {
                f.write_str(text)
            }
            BenchError::Interrupted => f.write_str("interrupted"),
            BenchError::Output(error) => write!(f, "cannot write the output: {error}"),
            BenchError::AlreadyReported => f.write_str("failed"),
        }
    }
}

impl std::error::Error for BenchError {}
