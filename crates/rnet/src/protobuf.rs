//! What code that `rnet-build` generates needs: prost, so that a user's crate does not name it, and the macro behind each message.

mod reuse;

pub use prost;
pub use prost_types;
#[doc(hidden)]
pub use reuse::{StringList, decode_reusing};

/// A generated message: until the core lands.
#[doc(hidden)]
pub trait ProtobufMessage: prost::Message + Default {
    /// Full name.
    const FULL_NAME: &'static str;
    /// Descriptor set.
    const SET: &'static [u8];
    /// Decodes.
    fn decode_into(held: &mut Self, bytes: &[u8]) -> std::result::Result<(), prost::DecodeError>;
}

/// Makes a prost type a message of `rnet`.
#[macro_export]
macro_rules! protobuf_message {
    ($type:ty, $name:literal, $set:expr $(, $field:ident = $tag:literal)* $(,)?) => {
        impl $crate::protobuf::ProtobufMessage for $type {
            const FULL_NAME: &'static str = $name;
            const SET: &'static [u8] = $set;
            fn decode_into(held: &mut Self, bytes: &[u8]) -> ::core::result::Result<(), $crate::protobuf::prost::DecodeError> {
                $crate::protobuf::decode_reusing(held, bytes, [$($crate::protobuf::StringList { tag: $tag, field: |message: &mut $type| &mut message.$field }),*])
            }
        }
    };
}

/// Puts the types that the crate's build script generated with `rnet_build::protos` here: a module for each package.
///
/// ```ignore
/// // proto/robot.proto has `package my.robot;` and a message `Plan`
/// rnet::include_protos!();
/// use my::robot::Plan;
/// ```
///
/// Where a package begins with the name of something else in the crate, it goes into a module: `mod protos { rnet::include_protos!(); }`.
#[macro_export]
macro_rules! include_protos {
    () => {
        include!(concat!(env!("OUT_DIR"), "/rnet_protos.rs"));
    };
}
