//! Used by the generated code of protobuf messages.

mod reuse;

pub use crate::message::MessageCodec;
pub use prost;
pub use prost_types;
pub use reuse::StringList;

use rnet_core::{Error, Result};
use rnet_schema::limits::{DECODE_VALUES_PER_MESSAGE, MAX_DECODE_NUMBERS, MAX_DECODE_VALUES};
use rnet_schema::{DecodeLimits, Schema};
use std::sync::OnceLock;

/// The type of a generated message, from the descriptor set generated with it.
///
/// # Errors
/// `BadValue` if the set was not generated with it.
pub fn schema(cell: &'static OnceLock<Schema>, set: &[u8], name: &str) -> Result<Schema> {
    if let Some(schema) = cell.get() {
        return Ok(schema.clone());
    }
    let schema = Schema::from_descriptor_set(set, name)
        .map_err(|e| Error::bad_value(format!("type {name}"), e.to_string()))?;
    Ok(cell.get_or_init(|| schema).clone())
}

/// A shorter message cannot exceed the limits: a nested message, which counts most, takes at least two bytes,
/// and a number takes one.
const UNCOUNTED_LEN_BYTES: usize = 2 * (MAX_DECODE_VALUES / DECODE_VALUES_PER_MESSAGE);
const _: () = assert!(UNCOUNTED_LEN_BYTES <= MAX_DECODE_NUMBERS);

/// Decodes into a reused message, including its `lists` of strings.
///
/// # Errors
/// The reason, with byte and field if known. The message is empty then.
#[inline]
pub fn decode<M: prost::Message, const N: usize>(
    bytes: &[u8],
    message: &mut M,
    lists: [StringList<M>; N],
    schema: impl Fn() -> Result<Schema>,
) -> std::result::Result<(), String> {
    if bytes.len() > UNCOUNTED_LEN_BYTES {
        count_values(bytes, &schema)?;
    }
    reuse::decode(bytes, message, lists).map_err(|error| explain(bytes, schema, &error))
}

/// prost does not count values, and two bytes on the wire may be hundreds in memory.
#[cold]
fn count_values(
    bytes: &[u8],
    schema: impl FnOnce() -> Result<Schema>,
) -> std::result::Result<(), String> {
    let schema = schema().map_err(|error| error.to_string())?;
    rnet_schema::validate(&schema, bytes, &DecodeLimits::default())
        .map_err(|error| error.to_string())
}

/// prost reports the error, the walk of rnet-schema reports its position.
#[cold]
fn explain(
    bytes: &[u8],
    schema: impl FnOnce() -> Result<Schema>,
    error: &prost::DecodeError,
) -> String {
    let limits = DecodeLimits::default();
    let placed = schema().ok().and_then(|s| rnet_schema::validate(&s, bytes, &limits).err());
    placed.map_or_else(|| error.to_string(), |placed| placed.to_string())
}

/// Makes a prost message of a build script a [`crate::Message`].
///
/// `rnet-build` generates the call; `$set` is the type's descriptor set as bytes, followed by the name and
/// number of each field that is a list of strings. A message gets no functions of its own, because their
/// names could be those of fields.
#[macro_export]
macro_rules! protobuf_message {
    ($message:ty, $name:literal, $set:expr $(, $list:ident = $tag:literal)* $(,)?) => {
        const _: () = {
            fn schema() -> $crate::Result<$crate::schema::Schema> {
                static SCHEMA: ::std::sync::OnceLock<$crate::schema::Schema> =
                    ::std::sync::OnceLock::new();
                $crate::protobuf::schema(&SCHEMA, $set, $name)
            }

            impl $crate::protobuf::MessageCodec for $message {
                type DecodeBuffer = Self;

                fn static_type() -> $crate::Result<$crate::MessageType> {
                    schema().map($crate::MessageType::Protobuf)
                }
                fn new_buffer(_: &$crate::MessageType) -> Self {
                    <Self as ::std::default::Default>::default()
                }
                #[inline]
                fn as_bytes(&self) -> ::std::option::Option<&[u8]> {
                    ::std::option::Option::None
                }
                #[inline]
                fn encoded_len(&self) -> usize {
                    $crate::protobuf::prost::Message::encoded_len(self)
                }
                #[inline]
                fn encode(&self, out: &mut impl $crate::protobuf::prost::bytes::BufMut) {
                    $crate::protobuf::prost::Message::encode_raw(self, out);
                }
                #[inline]
                fn decode(
                    bytes: &[u8],
                    buffer: &mut Self,
                ) -> ::std::result::Result<(), ::std::string::String> {
                    let lists = [$($crate::protobuf::StringList {
                        tag: $tag,
                        field: |message: &mut $message| &mut message.$list,
                    }),*];
                    $crate::protobuf::decode(bytes, buffer, lists, schema)
                }
                #[inline]
                fn view<'a>(_: &'a [u8], buffer: &'a Self) -> &'a Self {
                    buffer
                }
                fn take_buffer(buffer: &mut Self) -> Self {
                    ::std::mem::take(buffer)
                }
            }
        };
    };
}

/// Inserts the types that the crate's build script generated with `rnet_build::protos`: one module per
/// package.
///
/// ```ignore
/// // proto/robot.proto has `package my.robot;` and a message `Plan`
/// rnet::include_protos!();
/// use my::robot::Plan;
/// ```
///
/// If a package name collides with another name in the crate, use a separate module: `mod protos {
/// rnet::include_protos!(); }`.
#[macro_export]
macro_rules! include_protos {
    () => {
        include!(concat!(env!("OUT_DIR"), "/rnet_protos.rs"));
    };
}
