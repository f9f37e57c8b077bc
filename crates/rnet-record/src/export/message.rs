//! A message of a recording with its type.

use std::collections::HashMap;

use rnet::MessageType;
use rnet::schema::Dynamic;
use rnet_format::Outcome;
use rnet_format::text::escape_controls;
use rnet_format::value::Message;
use rnet_format::value::hex::hex;
use serde_json::{Value, json};

use crate::{names, read};

/// Types by id of the channel; `None` of one that cannot be read.
pub struct ChannelTypes {
    types: HashMap<u16, Option<MessageType>>,
    on_unreadable: fn(&str),
}

impl ChannelTypes {
    /// No types yet; `on_unreadable` is called for each channel whose type cannot be read.
    pub fn new(on_unreadable: fn(&str)) -> ChannelTypes {
        ChannelTypes { types: HashMap::new(), on_unreadable }
    }

    /// The type of a channel; `None` of one that cannot be read, which is told.
    pub fn of(&mut self, channel: &read::Channel) -> Option<&MessageType> {
        let on_unreadable = self.on_unreadable;
        let ty = self.types.entry(channel.id).or_insert_with(|| {
            let ty = channel.message_type();
            if let Err(error) = &ty {
                let error = error.to_string();
                on_unreadable(&format!(
                    "{}; its messages are printed as bytes",
                    escape_controls(&error)
                ));
            }
            ty.ok()
        });
        ty.as_ref()
    }

    /// A message by the type of its channel.
    ///
    /// # Errors
    /// In words, why it is not of its type.
    pub fn decode<'a>(&'a mut self, message: &'a read::Message) -> Result<Message<'a>, String> {
        let bytes = message.data();
        Ok(match self.of(&message.channel) {
            Some(MessageType::Protobuf(schema)) => {
                let decoded = Dynamic::decode(schema, &message.content()?);
                Message::Protobuf(decoded.map_err(|error| error.to_string())?, None)
            }
            Some(MessageType::Plain(plain)) => Message::Plain(plain, bytes, None),
            _ => Message::Raw(bytes),
        })
    }

    /// The same; what is not of its type is bytes.
    pub fn decode_or_raw<'a>(&'a mut self, message: &'a read::Message) -> Message<'a> {
        self.decode(message).unwrap_or(Message::Raw(message.data()))
    }
}

/// A message that is JSON as it is.
pub fn json_text(message: &read::Message) -> Option<Value> {
    match message.channel.message_encoding == names::JSON {
        true => serde_json::from_slice(message.data()).ok(),
        false => None,
    }
}

/// A message as JSON, with its topic, node, times and type.
///
/// # Errors
/// It cannot be shown.
pub fn document(message: &read::Message, shown: &Message<'_>) -> Outcome<Value> {
    let channel = &message.channel;
    let of = |key: &str| channel.metadata.get(key).map(String::as_str);
    let mut line = json!({
        "topic": channel.topic,
        "node": of(names::NODE_KEY),
        "publisher": of(names::PUBLISHER_KEY),
        "seq": message.sequence(),
        "sent_ns": message.publish_ns(),
        "received_ns": message.log_ns(),
        "type": channel.type_name(),
        "len": message.data().len(),
    });
    match (json_text(message), shown) {
        (Some(value), _) => line["data"] = value,
        (None, Message::Raw(bytes)) => line["hex"] = hex(bytes).into(),
        (None, typed) => line["data"] = typed.json()?,
    }
    Ok(line)
}
