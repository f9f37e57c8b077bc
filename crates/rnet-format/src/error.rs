//! Errors of what people write and of what is shown to them.

/// The result of reading or showing a value or a type.
pub type Outcome<T = ()> = Result<T, FormatError>;

/// Why something cannot be read or shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// The value or type does not allow it, in words.
    Failed(String),
    /// The given text or name is invalid, in words.
    Usage(String),
    /// The output cannot be written.
    Output(std::io::Error),
}

impl From<std::io::Error> for FormatError {
    fn from(error: std::io::Error) -> FormatError {
        FormatError::Output(error)
    }
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FormatError::Failed(text) | FormatError::Usage(text) => f.write_str(text),
            FormatError::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

impl std::error::Error for FormatError {}
