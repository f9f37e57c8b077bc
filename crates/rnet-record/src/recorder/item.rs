//! What goes from who follows to who writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rnet::inspect::UnreadPublisher;
use rnet::schema::Schema;
use rnet::{Meta, PlainType, TypeDesc};
use serde::{Serialize, Serializer};

use super::loss::RecordLossCause;
use crate::source::Source;

/// A publisher that is recorded.
#[derive(Debug)]
pub struct Publisher {
    pub topic: String,
    pub source: Source,
    pub type_desc: TypeDesc,
    /// The protobuf type that it names, if that could be read.
    pub schema: Option<Schema>,
}

impl Publisher {
    /// The plain type of its messages.
    pub fn plain(&self) -> Option<&PlainType> {
        match &self.type_desc {
            TypeDesc::Plain(plain) => Some(plain),
            _ => None,
        }
    }
}

/// A message, as it was sent.
#[derive(Debug)]
pub struct ReceivedMessage {
    pub publisher: Arc<Publisher>,
    pub seq: u64,
    pub sent_ns: u64,
    pub received_ns: u64,
    pub meta: Meta,
    pub bytes: Vec<u8>,
}

/// Missing messages, in the form of the recording.
#[derive(Debug, Serialize)]
pub struct MissedMessages {
    pub topic: String,
    pub node: String,
    /// As text: readers of JSON keep 53 bits of a number.
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

/// A key of the state as it is now.
#[derive(Debug)]
pub struct StateKey {
    pub key: String,
    /// What is written of it.
    pub fields: serde_json::Map<String, serde_json::Value>,
    pub is_deleted: bool,
    pub at_ns: u64,
}

#[derive(Debug)]
pub enum Item {
    Message(ReceivedMessage),
    Missed(MissedMessages),
    /// A publisher that was seen and is not heard.
    Unheard(UnreadPublisher),
    Key(StateKey),
    /// A publisher is gone, and all that it sent was put before.
    PublisherGone(u64),
    /// The nodes that are there now: what is told of each, by name.
    Nodes(BTreeMap<String, String>),
    /// Whether messages are wanted now: see `--while`.
    Gate(bool),
}

impl Item {
    /// Bytes that it holds.
    pub fn len_bytes(&self) -> usize {
        match self {
            Item::Message(received) => received.bytes.len(),
            // Text of about twice its bytes, once as a map.
            Item::Key(key) => {
                512 + key.fields.values().map(|v| v.as_str().map_or(64, str::len)).sum::<usize>()
            }
            _ => 256,
        }
    }
}
