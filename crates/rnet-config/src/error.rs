//! Errors of settings, for their author.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strsim::osa_distance;

/// A position in a file. Line and column start at 1, the column in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file.
    pub file: Arc<Path>,
    /// The line.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
}

impl SourceLocation {
    /// The position of the start of `span` in `text`.
    pub fn of(file: &Arc<Path>, text: &str, span: &Range<usize>) -> SourceLocation {
        // The parser may point into the middle of a character.
        let start = (0..=span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let before = &text[..start.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        SourceLocation {
            file: file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// An error in a setting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {why}{}", file.display(), named(named_by))]
    File {
        /// The file.
        file: PathBuf,
        /// The option or variable with its path; `None` for the file in the working directory.
        named_by: Option<&'static str>,
        /// The fault.
        why: FileError,
    },
    /// The file is not valid TOML.
    #[error("{place}: {what}")]
    Syntax {
        /// The position.
        place: SourceLocation,
        /// The parser's message.
        what: String,
    },
    /// The file has an unknown key.
    #[error("{place}: {key}: unknown key; expected {expected}{}", meant(hint))]
    UnknownKey {
        /// The position.
        place: SourceLocation,
        /// The key, with its enclosing tables.
        key: String,
        /// The existing keys.
        expected: String,
        /// The key that was probably meant.
        hint: Option<&'static str>,
    },
    /// A required key is missing.
    #[error("{place}: {key} is missing; expected {expected}")]
    Missing {
        /// The position of its table.
        place: SourceLocation,
        /// The key.
        key: String,
        /// The expected value.
        expected: String,
    },
    /// A value is invalid.
    #[error("{from}: expected {expected}, found {found}{}", meant(hint))]
    Value {
        /// Position and key, or the option or variable.
        from: String,
        /// What was expected.
        expected: String,
        /// The actual value.
        found: String,
        /// The value that was probably meant.
        hint: Option<&'static str>,
    },
}

impl ConfigError {
    /// An invalid value at a position, in an option or in a variable.
    pub fn value(
        from: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> ConfigError {
        let (from, expected, found) = (from.into(), expected.into(), found.into());
        ConfigError::Value { from, expected, found, hint: None }
    }
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system reports an error.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is a directory, a device or a pipe.
    #[error("is not a file")]
    NotAFile,
    /// It is too long.
    #[error("has more than {0} bytes")]
    TooLong(u64),
    /// It is not text.
    #[error("line {line} is not UTF-8")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
    },
}

fn named(by: &Option<&'static str>) -> String {
    by.map_or_else(String::new, |by| format!(" (named by {by})"))
}

fn meant(hint: &Option<&'static str>) -> String {
    hint.map_or_else(String::new, |hint| format!("; did you mean {hint:?}?"))
}

/// The existing word that is most similar to an unknown one.
pub fn closest(word: &str, words: &[&'static str]) -> Option<&'static str> {
    // Longer than all existing words; the time for the distance grows with the length.
    if word.len() > 32 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let near = words.iter().map(|known| (osa_distance(&lower, known), *known)).min()?;
    let most = near.1.len().min(word.len()).div_ceil(3).min(2);
    (near.0 <= most).then_some(near.1)
}

/// A list of words for a sentence: `"a", "b" or "c"`.
pub fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
