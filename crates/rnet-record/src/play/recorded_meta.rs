//! Metadata of messages, as stored in a recording.

use std::collections::HashMap;

use rnet::{LossCause, Meta, Origin};
use serde_json::Value;

use crate::names;
use crate::read::Message;

/// Host id of an origin that is known from a recording only. No host has this id.
const RECORDED_HOST: u64 = 0;
/// Maximum number of metadata records whose message has not followed yet. Each directly precedes its message.
const MAX_PENDING_META: usize = 1024;

/// By publisher and the low 32 bits of the sequence number.
#[derive(Default)]
pub struct RecordedMeta {
    by_message: HashMap<(u64, u32), Meta>,
}

impl RecordedMeta {
    /// Stores a message of [`names::META_TOPIC`]. Ignores an invalid one.
    pub fn insert(&mut self, text: &[u8]) {
        let Ok(value) = serde_json::from_slice::<Value>(text) else { return };
        let Some(publisher) = id(&value["publisher"]) else { return };
        let Some(seq) = value["seq"].as_u64() else { return };
        let mut meta = Meta::default();
        let origin = &value["origin"];
        if let (Some(host), Some(publisher), Some(seq)) =
            (id(&origin["host"]), id(&origin["publisher"]), origin["seq"].as_u64())
        {
            meta.origin = Some(Origin { host, publisher, seq });
        }
        meta.source_ns = value["source_ns"].as_i64();
        meta.correlation = id(&value["correlation"]);
        let gap = &value["gap"];
        if let (Some(cause), Some(size)) =
            (gap["cause"].as_str().and_then(cause), gap["size"].as_u64())
        {
            meta = meta.with_gap(cause, size);
        }
        if self.by_message.len() >= MAX_PENDING_META {
            self.by_message.clear();
        }
        self.by_message.insert((publisher, seq as u32), meta);
    }

    /// The metadata that a played message carries.
    pub fn take(&mut self, message: &Message) -> Meta {
        let channel = &message.channel;
        let publisher = channel.metadata.get(names::PUBLISHER_KEY).and_then(|id| id.parse().ok());
        let publisher: u64 = publisher.unwrap_or(u64::from(channel.id));
        let mut meta = self.by_message.remove(&(publisher, message.sequence())).unwrap_or_default();
        let seq = u64::from(message.sequence());
        meta.origin = meta.origin.or(Some(Origin { host: RECORDED_HOST, publisher, seq }));
        meta.source_ns = meta.source_ns.or(i64::try_from(message.publish_ns()).ok());
        meta
    }
}

/// Ids are text, because JSON readers keep only 53 bits of a number.
fn id(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

fn cause(name: &str) -> Option<LossCause> {
    LossCause::ALL.into_iter().find(|cause| cause.name() == name)
}
