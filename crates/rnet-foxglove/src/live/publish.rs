//! Publishes messages of clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet::inspect::{CallType, Snapshot};
use rnet::{Lane, MessageType, OnFull, Publisher};

use super::{LiveBackend, RESERVED, lock};
use crate::channel_format::{self, JSON, PROTOBUF};
use crate::incoming::ClientChannel;

/// How long a subscriber may make no progress before it is detached.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);

type ByChannel = BTreeMap<(u64, u32), Arc<Mutex<ClientPublisher>>>;

/// By client and its channel.
#[derive(Default)]
pub struct ClientPublishers(Mutex<ByChannel>);

struct ClientPublisher {
    publisher: Publisher<[u8]>,
    ty: MessageType,
    encoding: String,
}

impl ClientPublishers {
    pub fn open(
        &self,
        live: &LiveBackend,
        client: u64,
        channel: &ClientChannel,
    ) -> Result<(), String> {
        let ClientChannel { topic, encoding, .. } = channel;
        if ![PROTOBUF, JSON].contains(&encoding.as_str()) {
            return Err(format!("unknown encoding {encoding:.40?}; use protobuf or json"));
        }
        if topic.starts_with(RESERVED) {
            return Err("topics below /_rnet are reserved for robot-net".to_owned());
        }
        let domain = live.options.location.domain().map_err(|error| error.to_string());
        let snapshot = domain?.topic_snapshot(topic).map_err(|error| error.to_string())?;
        let ty = type_of(&snapshot, channel)?;
        let lanes = snapshot.publishers.iter().map(|p| p.qos.lane);
        let lane = lanes.chain(snapshot.subscriptions.iter().filter_map(|s| s.qos.lane)).next();
        let publisher = live.node()?.publisher::<[u8]>(topic).message_type(ty.clone());
        let publisher = publisher.reliable(OnFull::Detach { stall: STALL_TIMEOUT });
        let urgent = lane == Some(Lane::Urgent);
        let publisher = if urgent { publisher.urgent() } else { publisher };
        let publisher = publisher.transient_local(1).open();
        let publisher = publisher.map_err(|error| error.to_string())?;
        let opened = ClientPublisher { publisher, ty, encoding: encoding.clone() };
        lock(&self.0).insert((client, channel.id), Arc::new(Mutex::new(opened)));
        Ok(())
    }

    pub fn close(&self, client: u64, channel: u32) {
        // Dropped after the lock is released.
        let closed = lock(&self.0).remove(&(client, channel));
        drop(closed);
    }

    pub fn publish(&self, client: u64, channel: u32, data: &[u8]) -> Result<(), String> {
        let found = lock(&self.0).get(&(client, channel)).cloned();
        let found = found.ok_or_else(|| format!("the channel {channel} is not open"))?;
        let mut opened = lock(&found);
        let wrong =
            |why: String, topic: &str| format!("the message for {topic} was not sent: {why}");
        let bytes = channel_format::decode_from_client(&opened.ty, &opened.encoding, data)
            .map_err(|why| wrong(why, opened.publisher.topic()))?;
        opened.publisher.send(&bytes).map(drop).map_err(|error| error.to_string())
    }
}

/// The type of the messages: as the client describes it, as the topic has it, or built in.
fn type_of(snapshot: &Snapshot, channel: &ClientChannel) -> Result<MessageType, String> {
    let ClientChannel { schema_name, schema, schema_encoding, encoding, topic, .. } = channel;
    let described = match (schema_encoding, schema) {
        (Some(encoding), Some(schema)) => {
            channel_format::parse_client_schema(schema_name, encoding, schema)?
        }
        _ => None,
    };
    let publishers = snapshot.publishers.iter().map(|p| (&p.type_desc, &p.schema));
    let subscribers = snapshot.subscriptions.iter().map(|s| (&s.type_desc, &s.schema));
    let types = publishers
        .chain(subscribers)
        .filter_map(|(desc, schema)| CallType { desc, schema: schema.as_ref() }.message_type());
    let endpoint_types: Vec<MessageType> = types.collect();
    let typed = endpoint_types.iter().find(|ty| !matches!(ty, MessageType::Raw));
    if let Some(ty) = typed {
        let desc = ty.desc();
        let name = desc.name().unwrap_or_default();
        if schema_name.is_empty() || schema_name == name {
            return Ok(described.unwrap_or_else(|| ty.clone()));
        }
        return Err(format!(
            "messages of {topic} have the type {name}, but the client sends {schema_name:.80}"
        ));
    }
    if let Some(ty) = described.or_else(|| channel_format::built_in_type(schema_name)) {
        return Ok(ty);
    }
    if encoding == JSON
        && (!endpoint_types.is_empty() || ["", "bytes"].contains(&schema_name.as_str()))
    {
        return Ok(MessageType::Raw);
    }
    Err(format!(
        "unknown type {schema_name:.80?}: the client does not describe it, {topic} does not have it, and it \
         is not built in"
    ))
}
