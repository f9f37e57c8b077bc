//! What can be wrong with a schema, with a message, with a path or with JSON. The texts are for the person who has to act.

use std::fmt;

/// A place in a `.proto` file; lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as it was requested.
    pub file: String,
    /// Line, from 1; 0 when it is not known.
    pub line: usize,
    /// Column in characters, from 1; 0 when it is not known.
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
    /// A `.proto` file does not parse, or uses something that is not defined.
    #[error("{place}: {message}")]
    Proto {
        /// Where.
        place: SourceLocation,
        /// What is wrong there.
        message: String,
    },
    /// A file cannot be read, or is no text.
    #[error("cannot read {path}: {why}; correct the path or the file")]
    Read {
        /// The path.
        path: String,
        /// What the system said.
        why: String,
    },
    /// An import is in none of the folders and not built in.
    #[error(
        "{place}: import {name:?} is not found; looked in {}, and among the built-in files; add an include directory or correct the name",
        looked_in.join(", ")
    )]
    MissingImport {
        /// The import statement.
        place: SourceLocation,
        /// What it asks for.
        name: String,
        /// The folders, in the order of the search.
        looked_in: Vec<String>,
    },
    /// Files import each other in a circle.
    #[error("{place}: cyclic import: {}; move the shared definitions into a separate file", cycle.join(" -> "))]
    CyclicImport {
        /// The import statement that closes the circle; without a line when it came as a descriptor set.
        place: SourceLocation,
        /// The files, the first again at the end.
        cycle: Vec<String>,
    },
    /// There is no message type of this name.
    #[error("unknown message type {name:?}{}", known_list(known))]
    UnknownType {
        /// The name asked for.
        name: String,
        /// Names that exist, a few.
        known: Vec<String>,
    },
    /// A named limit is exceeded.
    #[error("{what}: {found} exceeds {limit_name} = {limit}; split it")]
    Limit {
        /// What is too large, and where.
        what: String,
        /// The name of the constant in [`crate::limits`].
        limit_name: &'static str,
        /// Its value.
        limit: usize,
        /// What was found; counting stops soon after the limit.
        found: usize,
    },
    /// The bytes are no descriptor set.
    #[error("descriptor set is malformed at byte {offset}: {why}; compile it again")]
    Malformed {
        /// Where, from the start of the set.
        offset: usize,
        /// What is wrong.
        why: String,
    },
    /// The descriptor set contradicts itself.
    #[error("descriptor set is not valid: {at}: {why}; compile it again")]
    Invalid {
        /// The file, type or field.
        at: String,
        /// What is wrong.
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
    /// The bytes break the wire format, or the type's use of it.
    #[error("malformed {type_name} at byte {offset}{}: {why}", in_field(field_path))]
    Malformed {
        /// Full name of the type.
        type_name: String,
        /// Offset from the start of the message.
        offset: usize,
        /// The field, from the outside in; empty at the top.
        field_path: String,
        /// What is wrong.
        why: String,
    },
    /// A named limit is exceeded.
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
        /// What was found.
        found: usize,
    },
}

impl DecodeError {
    /// The same error inside a field of this name.
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

/// Why a value cannot be named, or made of JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", at_field(path))]
pub struct ValueError {
    /// The field, from the outside in: `legs[2].force`; empty when the whole is meant.
    pub path: String,
    /// The fault, and the expected value.
    pub why: String,
}

fn at_field(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("field `{path}`: ") }
}
