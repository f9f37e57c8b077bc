//! Failures of the operating system.

/// A failure that the operating system reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsError {
    /// Its kind.
    pub kind: std::io::ErrorKind,
    /// Its number, if known.
    pub code: Option<i32>,
}

impl std::fmt::Display for OsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OsError { kind, code } = self;
        match code {
            Some(code) => write!(f, "{kind} (os error {code})"),
            None => write!(f, "{kind}"),
        }
    }
}

impl std::error::Error for OsError {}

impl From<&std::io::Error> for OsError {
    fn from(error: &std::io::Error) -> OsError {
        OsError { kind: error.kind(), code: error.raw_os_error() }
    }
}
