//! Protobuf types of robot-net: compiled at run time, compared where they meet, decoded without their code.
//!
//! - [`compile_file`], [`Sources`]: `.proto` files to [`Compiled`], without protoc;
//! - [`Schema`]: one message type and what it needs, in a canonical form that travels with a channel; [`limits`] for sets that come
//!   from elsewhere;

mod builtin;
mod canonical;
mod compile;
mod docs;
mod error;
pub mod limits;
mod scan;
mod schema;
mod wire;

pub use builtin::builtin_files;
pub use compile::{Compiled, Sources, compile_file, compile_text};
pub use docs::{Docs, unit_of};
pub use error::{DecodeError, Place, SchemaError, ValueError};
pub use prost_reflect;
pub use schema::{Schema, SchemaHash};
