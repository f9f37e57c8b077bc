//! Protobuf types of robot-net: compiled at run time, compared where they meet, decoded without their code.
//!
//! - [`compile_file`], [`Sources`]: `.proto` files to [`CompiledProtos`], without protoc;
//! - [`Schema`]: one message type and what it needs, in a canonical form that travels with a channel; [`limits`] for sets that come
//!   from elsewhere;
//! - [`check`]: whether a reader of one type understands a writer of another, by the rules of [`Rule`]; [`diff`] for who changes a type.
//! - [`Dynamic`]: a message without its code, by [`FieldPath`], as JSON, as text, and as a row of [`Columns`];
//! - [`NumberReader`]: one number of each of many messages.

mod builtin;
mod canonical;
mod check;
mod compile;
mod decode;
mod diff;
mod docs;
mod dynamic;
mod error;
mod escape;
mod json;
pub mod limits;
mod name;
mod number;
mod path;
mod rules;
mod scan;
mod schema;
mod table;
mod text;
mod wire;

pub use builtin::builtin_files;
pub use check::{Change, Verdict, check};
pub use compile::{CompiledProtos, Sources, compile_file, compile_text};
pub use decode::{DecodeLimits, validate};
pub use diff::{Diff, DiffLine, diff};
pub use docs::{Docs, INHERITED_UNIT, unit_of};
pub use dynamic::Dynamic;
pub use error::{DecodeError, SchemaError, SourceLocation, ValueError};
pub use json::JsonOptions;
pub use name::{find_types, is_nested};
pub use number::NumberReader;
pub use path::FieldPath;
pub use prost_reflect;
pub use rules::{Rule, Severity};
pub use schema::{Schema, SchemaHash};
pub use table::{Columns, csv_line};
pub use text::{TextOptions, quoted as text_quoted};
