//! Entries of the queue from the topic reader to the writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use rnet::inspect::UnreadPublisher;
use rnet::schema::Schema;
use rnet::{Meta, PlainType, TypeDesc};
use serde::{Serialize, Serializer};

use super::loss::RecordLossCause;
use crate::source::Source;

/// A recorded publisher.
#[derive(Debug)]
pub struct Publisher {
    pub topic: String,
    pub source: Source,
    pub type_desc: TypeDesc,
    /// The protobuf type that it declares, if it could be read.
    pub schema: Option<Schema>,
}

impl Publisher {
    /// The plain type of its messages, if they have one.
    pub fn plain(&self) -> Option<&PlainType> {
        match &self.type_desc {
            TypeDesc::Plain(plain) => Some(plain),
            _ => None,
        }
    }
}

/// A message as it was sent.
#[derive(Debug)]
pub struct ReceivedMessage {
    pub publisher: Arc<Publisher>,
    pub seq: u64,
    pub sent_ns: u64,
    pub received_ns: u64,
    pub meta: Meta,
    pub bytes: Vec<u8>,
}

/// Missing messages, in the format of the recording.
#[derive(Debug, Serialize)]
pub struct MissedMessages {
    pub topic: String,
    pub node: String,
    /// As text, because JSON readers keep only 53 bits of a number.
    #[serde(serialize_with = "as_text")]
    pub publisher: u64,
    pub first_seq: u64,
    pub count: u64,
    pub cause: RecordLossCause,
    #[serde(skip)]
    pub at_ns: u64,
}

fn as_text<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// The current value of a state key.
#[derive(Debug)]
pub struct StateKey {
    pub key: String,
    /// The recorded fields.
    pub fields: serde_json::Map<String, serde_json::Value>,
    pub is_deleted: bool,
    pub at_ns: u64,
}

#[derive(Debug)]
pub enum Item {
    Message(ReceivedMessage),
    Missed(MissedMessages),
    /// A publisher that was seen but cannot be read.
    Unheard(UnreadPublisher),
    Key(StateKey),
    /// A publisher is gone; all its messages were queued before.
    PublisherGone(u64),
    /// The current nodes: a description of each, by name.
    Nodes(BTreeMap<String, String>),
    /// Whether messages are to be recorded now: see `--while`.
    Gate(bool),
}

impl Item {
    /// Size in bytes.
    pub fn len_bytes(&self) -> usize {
        match self {
            Item::Message(received) => received.bytes.len(),
            // JSON text of about twice the value's bytes, plus the map.
            Item::Key(key) => {
                512 + key.fields.values().map(|v| v.as_str().map_or(64, str::len)).sum::<usize>()
            }
            _ => 256,
        }
    }
}
