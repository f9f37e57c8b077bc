//! What generated code of protobuf messages stands on; not for use by hand.

pub use prost;
pub use prost_types;

use rnet_core::{Error, Result};
use rnet_schema::{Dynamic, Schema};
use std::sync::OnceLock;

/// The type of a generated message, from the descriptor set that was made with it.
///
/// # Errors
/// `BadValue` if the set is not the one that was made with it.
pub fn schema(cell: &'static OnceLock<Schema>, set: &[u8], name: &str) -> Result<Schema> {
    if let Some(schema) = cell.get() {
        return Ok(schema.clone());
    }
    let schema = Schema::from_descriptor_set(set, name)
        .map_err(|e| Error::BadValue { what: format!("type {name}"), why: e.to_string() })?;
    Ok(cell.get_or_init(|| schema).clone())
}

/// Decodes into a message that is used again.
///
/// # Errors
/// What is wrong, with byte and field where they can be told.
#[inline]
pub fn decode<M: prost::Message + Default>(
    bytes: &[u8],
    message: &mut M,
    schema: impl FnOnce() -> Result<Schema>,
) -> std::result::Result<(), String> {
    message.clear();
    message.merge(bytes).map_err(|error| explain(bytes, schema, &error))
}

/// prost says what is wrong, the walk of rnet-schema says where.
#[cold]
fn explain(
    bytes: &[u8],
    schema: impl FnOnce() -> Result<Schema>,
    error: &prost::DecodeError,
) -> String {
    let placed = schema().ok().and_then(|schema| Dynamic::decode(&schema, bytes).err());
    placed.map_or_else(|| error.to_string(), |placed| placed.to_string())
}

/// Makes a prost message of a build script a [`crate::Message`].
///
/// `rnet-build` writes it; `$set` is the type's descriptor set as bytes.
#[macro_export]
macro_rules! protobuf_message {
    ($message:ty, $name:literal, $set:expr) => {
        impl $message {
            /// Full name of the message type.
            pub const FULL_NAME: &'static str = $name;

            /// The message type.
            ///
            /// # Errors
            /// `BadValue` if the code was not made by the build script of this crate.
            pub fn schema() -> $crate::Result<$crate::schema::Schema> {
                static SCHEMA: ::std::sync::OnceLock<$crate::schema::Schema> =
                    ::std::sync::OnceLock::new();
                $crate::protobuf::schema(&SCHEMA, $set, $name)
            }
        }

        impl $crate::Message for $message {
            type Held = Self;

            fn message_type() -> $crate::Result<$crate::MessageType> {
                Self::schema().map($crate::MessageType::Protobuf)
            }
            fn hold(_: &$crate::MessageType) -> Self {
                Self::default()
            }
            #[inline]
            fn as_bytes(&self) -> ::std::option::Option<&[u8]> {
                ::std::option::Option::None
            }
            #[inline]
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                $crate::protobuf::prost::Message::encode_raw(self, out);
            }
            #[inline]
            fn decode(
                bytes: &[u8],
                held: &mut Self,
            ) -> ::std::result::Result<(), ::std::string::String> {
                $crate::protobuf::decode(bytes, held, Self::schema)
            }
            #[inline]
            fn view<'a>(_: &'a [u8], held: &'a Self) -> &'a Self {
                held
            }
            fn keep(held: &mut Self) -> Self {
                ::std::mem::take(held)
            }
        }
    };
}
