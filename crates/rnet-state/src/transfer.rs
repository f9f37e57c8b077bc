//! Values in transit to another host and back: kind and bytes as stored in the region, and the description of
//! a message type in place of its number, which is only valid on its own host.

use rnet_core::Result;
use rnet_node::MessageType;

use crate::encode::{self, kind};
use crate::entry::{Entry, Owner};
use crate::message::StateMessage;
use crate::value::Value;

pub use crate::param::list::{collect_params, raw_params as params};
pub use crate::prefix::Prefix;
pub use crate::types::{decode_type, describe_type as describe};

/// The kind of an unreadable value; its bytes contain the reason.
pub const UNREADABLE: u16 = 0;

/// Kind and bytes of a value.
///
/// # Errors
/// Why it cannot be stored, as text.
pub fn pack(value: &Value) -> Result<(u16, Vec<u8>), String> {
    match value {
        Value::Unreadable(why) => Ok((UNREADABLE, why.clone().into_bytes())),
        other => Ok((encode::kind_of(other), encode::encode(other)?.to_vec())),
    }
}

/// Decodes a value from bytes, which may be hostile; a message needs its type.
///
/// # Errors
/// The fault, as text.
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

/// An entry for a key of another host with this value; the caller sets the other attributes.
pub fn remote_entry(key: String, value: Value) -> Entry {
    let owner = Owner { node: String::new(), written_unix_ns: 0 };
    let (expires_boot_ns, last_will) = (None, None);
    let (revision, version, durable) = (0, 0, false);
    Entry { key, value, revision, version, owner, durable, expires_boot_ns, last_will }
}

/// Creates a change as reported by a watch.
pub fn change(
    (key, revision): (String, u64),
    entry: Option<Entry>,
    expired: Option<bool>,
    skipped: Option<u64>,
    initial: bool,
) -> crate::Change {
    crate::Change { key, entry, expired, revision, skipped, initial }
}
