//! Errors of schemas, messages, field paths and JSON.

use std::fmt;

/// A position in a `.proto` file; lines and columns start at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as it was requested.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: usize,
    /// Column in characters, from 1; 0 if unknown.
    pub column: usize,
}

impl fmt::Display for SourceLocation {
    /// `robot.proto:12:3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        Ok(())
    }
}

/// Errors of building a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A `.proto` file has a syntax error, or uses an undefined name.
    #[error("{place}: {message}")]
    Proto {
        /// The position.
        place: SourceLocation,
        /// The fault.
        message: String,
    },
    /// A file cannot be read, or is not text.
    #[error("cannot read {path}: {why}; correct the path or the file")]
    Read {
        /// The path.
        path: String,
        /// The reason of the system.
        why: String,
    },
    /// An import is neither in a searched folder nor built in.
    #[error(
        "{place}: import {name:?} is not found; looked in {}, and among the built-in files; add an include directory or correct the name",
        looked_in.join(", ")
    )]
    MissingImport {
        /// The import statement.
        place: SourceLocation,
        /// The imported name.
        name: String,
        /// The folders, in search order.
        looked_in: Vec<String>,
    },
    /// Files import each other cyclically.
    #[error("{place}: cyclic import: {}; move the shared definitions into a separate file", cycle.join(" -> "))]
    CyclicImport {
        /// The import statement that closes the cycle; without a line for a descriptor set.
        place: SourceLocation,
        /// The files; the first is repeated at the end.
        cycle: Vec<String>,
    },
    /// No message type has this name.
    #[error("unknown message type {name:?}{}", known_list(known))]
    UnknownType {
        /// The requested name.
        name: String,
        /// Some of the existing names.
        known: Vec<String>,
    },
    /// A limit is exceeded.
    #[error("{what}: {found} exceeds {limit_name} = {limit}; split it")]
    Limit {
        /// The limited quantity, and its location.
        what: String,
        /// The name of the constant in [`crate::limits`].
        limit_name: &'static str,
        /// Its value.
        limit: usize,
        /// The actual value; counting stops soon after the limit.
        found: usize,
    },
    /// The bytes are not a descriptor set.
    #[error("descriptor set is malformed at byte {offset}: {why}; compile it again")]
    Malformed {
        /// Offset from the start of the set, in bytes.
        offset: usize,
        /// The fault.
        why: String,
    },
    /// The descriptor set is inconsistent.
    #[error("descriptor set is not valid: {at}: {why}; compile it again")]
    Invalid {
        /// The file, type or field.
        at: String,
        /// The fault.
        why: String,
    },
}

fn known_list(known: &[String]) -> String {
    if known.is_empty() {
        return "; the files define no message types".into();
    }
    format!("; known types: {}", known.join(", "))
}

/// Why bytes are not a message of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes violate the wire format, or do not match the type.
    #[error("malformed {type_name} at byte {offset}{}: {why}", in_field(field_path))]
    Malformed {
        /// Full name of the type.
        type_name: String,
        /// Offset from the start of the message.
        offset: usize,
        /// The field, from the outside in; empty at the top.
        field_path: String,
        /// The fault.
        why: String,
    },
    /// A limit is exceeded.
    #[error(
        "{type_name} at byte {offset}{}: {found} exceeds {limit_name} = {limit}",
        in_field(field_path)
    )]
    Limit {
        /// Full name of the type.
        type_name: String,
        /// Offset from the start of the message.
        offset: usize,
        /// The field, from the outside in; empty at the top.
        field_path: String,
        /// Name of the limit.
        limit_name: &'static str,
        /// Its value.
        limit: usize,
        /// The actual value.
        found: usize,
    },
}

impl DecodeError {
    /// The same error, inside a field with this name.
    pub(crate) fn within(mut self, field: &str) -> Self {
        let (Self::Malformed { field_path, .. } | Self::Limit { field_path, .. }) = &mut self;
        *field_path = match field_path.is_empty() {
            true => field.to_owned(),
            false => format!("{field}.{field_path}"),
        };
        self
    }
}

fn in_field(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" (field `{path}`)") }
}

/// Why a path is invalid, or a value cannot be created from JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", at_field(path))]
pub struct ValueError {
    /// The field, from the outside in: `legs[2].force`; empty for the whole message.
    pub path: String,
    /// The fault, and the expected value.
    pub why: String,
}

fn at_field(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("field `{path}`: ") }
}
