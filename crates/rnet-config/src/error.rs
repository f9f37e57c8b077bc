//! What is wrong with a setting, for the one who wrote it.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strsim::osa_distance;

/// Where something stands in a file. Line and column count from 1, the column in characters.
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
    /// Where `span` begins in `text`.
    pub fn of(file: &Arc<Path>, text: &str, span: &Range<usize>) -> SourceLocation {
        // The parser may point into a character.
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

/// What is wrong with a setting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {why}{}", file.display(), named(named_by))]
    File {
        /// The file.
        file: PathBuf,
        /// Who named it; `None` for the one in the working directory.
        named_by: Option<&'static str>,
        /// What is wrong.
        why: FileError,
    },
    /// The file is no TOML.
    #[error("{place}: {what}")]
    Syntax {
        /// Where.
        place: SourceLocation,
        /// What the parser says.
        what: String,
    },
    /// A key of the file that there is not.
    #[error("{place}: {key}: unknown key; expected {expected}{}", meant(hint))]
    UnknownKey {
        /// Where.
        place: SourceLocation,
        /// The key, with the tables in which it stands.
        key: String,
        /// The keys that there are.
        expected: String,
        /// The one that was meant.
        hint: Option<&'static str>,
    },
    /// A key that the file lacks.
    #[error("{place}: {key} is missing; expected {expected}")]
    Missing {
        /// Where the table stands that lacks it.
        place: SourceLocation,
        /// The key.
        key: String,
        /// What it would be.
        expected: String,
    },
    /// A value that is not what it must be.
    #[error("{from}: expected {expected}, found {found}{}", meant(hint))]
    Value {
        /// Place and key, or the option or variable.
        from: String,
        /// What was expected.
        expected: String,
        /// What is there.
        found: String,
        /// What was meant.
        hint: Option<&'static str>,
    },
}

impl ConfigError {
    /// A value that is not what it must be, at a place, an option or a variable.
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
    /// The system says so.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A directory, a device or a pipe.
    #[error("is not a file")]
    NotAFile,
    /// It is too long.
    #[error("has more than {0} bytes")]
    TooLong(u64),
    /// It is no text.
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

/// The word that was meant by one that there is not.
pub fn closest(word: &str, words: &[&'static str]) -> Option<&'static str> {
    // Longer than any of ours, and the distance takes time by its length.
    if word.len() > 32 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let near = words.iter().map(|known| (osa_distance(&lower, known), *known)).min()?;
    let most = near.1.len().min(word.len()).div_ceil(3).min(2);
    (near.0 <= most).then_some(near.1)
}

/// Words for a sentence: `"a", "b" or "c"`.
pub fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
