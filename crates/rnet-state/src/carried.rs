//! Values on their way to another host and back: kind and bytes as they stand in the region, and the
//! description of a type in place of its number, which only its own host knows.

use rnet_core::Result;
use rnet_node::MessageType;

use crate::encode::{self, kind};
use crate::entry::{Entry, Owner};
use crate::message::StateMessage;
use crate::value::Value;

pub use crate::param::list::{collect as collect_params, raw as params};
pub use crate::prefix::Prefix;
pub use crate::types::{describe_told as describe, understand};

/// The kind of what cannot be read; its bytes say why.
pub const UNREADABLE: u16 = 0;

/// Kind and bytes of a value.
///
/// # Errors
/// In words, why it cannot be written.
pub fn pack(value: &Value) -> Result<(u16, Vec<u8>), String> {
    match value {
        Value::Unreadable(why) => Ok((UNREADABLE, why.clone().into_bytes())),
        other => Ok((encode::kind_of(other), encode::encode(other)?.to_vec())),
    }
}

/// The value of these bytes, which may be hostile; of a message with its type.
///
/// # Errors
/// In words, what is wrong with them.
pub fn unpack(of: u16, message_type: Option<&MessageType>, bytes: &[u8]) -> Result<Value, String> {
    match (of, message_type) {
        (UNREADABLE, _) => Ok(Value::Unreadable(String::from_utf8_lossy(bytes).into_owned())),
        (kind::MESSAGE, Some(known)) => {
            let message = StateMessage::new(known.clone(), bytes.to_vec());
            message.map(Value::Message).map_err(|error| error.to_string())
        }
        (kind::MESSAGE, None) => Err("a message without its type".to_owned()),
        (of, _) => encode::decode(of, bytes),
    }
}

/// What is told of a key of another host, beside its value.
pub struct Told {
    /// The key.
    pub key: String,
    /// As [`Entry::revision`], of the state of that host.
    pub revision: u64,
    /// As [`Entry::version`].
    pub version: u64,
    /// The node that wrote it, as that host calls it.
    pub node: String,
    /// As [`Owner::written_unix_ns`].
    pub written_unix_ns: u64,
    /// As [`Entry::durable`].
    pub durable: bool,
    /// How long it is there yet, in ns.
    pub ttl_left_ns: Option<u64>,
}

impl Told {
    /// The key with this value.
    pub fn entry(self, value: Value) -> Entry {
        let ends = |left| rnet_shm::clock::boot_ns().saturating_add(left);
        Entry {
            key: self.key,
            value,
            revision: self.revision,
            version: self.version,
            owner: Owner { node: self.node, written_unix_ns: self.written_unix_ns },
            durable: self.durable,
            expires_boot_ns: self.ttl_left_ns.map(ends),
            last_will: None,
        }
    }
}

/// A change, as a watch tells it.
pub fn change(
    (key, revision): (String, u64),
    entry: Option<Entry>,
    expired: Option<bool>,
    skipped: Option<u64>,
    initial: bool,
) -> crate::Change {
    crate::Change { key, entry, expired, revision, skipped, initial }
}
