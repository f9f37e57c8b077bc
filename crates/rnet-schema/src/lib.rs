//! Protobuf types of robot-net: compiled at run time, compared between publisher and subscriber, decoded
//! without generated code.
//!
//! - [`compile_file`], [`Sources`]: `.proto` files to [`CompiledProtos`], without protoc;
//! - [`Schema`]: one message type and its dependencies, in a canonical form that is sent with a channel;
//!   [`limits`] apply to received sets;
//! - [`check`]: whether a reader of one type understands a writer of another, by the rules of [`Rule`];
//!   [`diff`] for authors of changes;
//! - [`Dynamic`]: a message without generated code, by [`FieldPath`], as JSON, as text, and as a row of
//!   [`Columns`];
//! - [`NumberReader`]: extracts one number from each of many messages.
#![forbid(unsafe_code)]

mod builtin;
mod canonical;
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
mod protobuf_compatibility;
pub mod reflect;
mod rules;
mod scan;
mod schema;
mod table;
mod text;
mod wire;

pub use builtin::builtin_files;
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
pub use protobuf_compatibility::{Change, Verdict, check};
pub use rules::{Rule, Severity};
pub use schema::{Schema, SchemaHash};
pub use table::{Columns, csv_line};
pub use text::{TextOptions, quoted as text_quoted};
