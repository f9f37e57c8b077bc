//! Converts a recording into a ROS 2 file.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use rnet::MessageType;
use rnet::schema::Dynamic;
use rnet_schema::reflect::ReflectDynamic;
use serde::Serialize;

use super::counterpart::Counterpart;
use super::qos::{OFFERED_QOS_KEY, format_profile};
use super::{CDR, PROFILE};
use crate::names;
use crate::read::{Channel, Message, Recording, Schema, Select};
use crate::tools::{
    OnProblem, OutputFile, ShouldStop, ToolError, WrittenFile, check_stop, next_readable,
};

/// A topic that is missing in the new file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OmittedTopic {
    /// The topic.
    pub topic: String,
    /// The type of its messages.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Number of omitted messages.
    pub messages: u64,
}

/// A channel of the old file.
struct ConvertedChannel {
    /// The type of its messages, and their counterpart.
    of: Option<(rnet::schema::Schema, Arc<Counterpart>)>,
    new: Arc<Channel>,
    left_out: u64,
}

/// Writes the selected messages as ROS 2 messages in CDR; ROS 2 messages stay unchanged. Returns the omitted
/// topics: messages without a counterpart, and messages that do not match their type.
///
/// # Errors
/// The new file exists or cannot be written; `Interrupted`.
pub fn to_ros2(
    from: &Recording,
    to: &Path,
    select: Select,
    on_problem: OnProblem<'_>,
    stop: ShouldStop,
) -> Result<(WrittenFile, Vec<OmittedTopic>), ToolError> {
    let mut output = OutputFile::create(to, PROFILE, names::LIBRARY, "zstd")?;
    let mut lines: HashMap<u16, ConvertedChannel> = HashMap::new();
    let mut messages = 0;
    let mut reader = from.messages(select);
    while let Some(message) = next_readable(&mut reader, from, on_problem) {
        check_stop(stop)?;
        let line =
            lines.entry(message.channel.id).or_insert_with(|| convert_channel(&message.channel));
        match line.convert(&message) {
            Some(written) => {
                output.message(&written, None)?;
                messages += 1;
            }
            None => line.left_out += 1,
        }
    }
    let written =
        WrittenFile { path: to.to_owned(), messages, len_bytes: output.finish()?, duplicates: 0 };
    let mut left_out: BTreeMap<(String, String), u64> = BTreeMap::new();
    for channel in from.channels() {
        let count = lines.get(&channel.id).map_or(0, |line| line.left_out);
        if count > 0 {
            let of = (channel.topic.clone(), channel.type_name().to_owned());
            *left_out.entry(of).or_default() += count;
        }
    }
    let left_out = left_out.into_iter();
    let left_out = left_out
        .map(|((topic, type_name), messages)| OmittedTopic { topic, type_name, messages })
        .collect();
    Ok((written, left_out))
}

fn convert_channel(channel: &Arc<Channel>) -> ConvertedChannel {
    if channel.message_encoding == CDR {
        return ConvertedChannel { of: None, new: channel.clone(), left_out: 0 };
    }
    let of = match channel.message_type() {
        Ok(MessageType::Protobuf(schema)) => {
            Counterpart::of(schema.name()).map(|of| (schema, Arc::new(of)))
        }
        _ => None,
    };
    let described = of.as_ref().map(|(_, of)| {
        let (name, encoding, data) = of.schema();
        Arc::new(Schema { id: channel.id, name, encoding: encoding.to_owned(), data })
    });
    // Metadata of the publisher is kept; ROS 2 readers ignore unknown keys.
    let mut metadata = channel.metadata.clone();
    if let Ok(source) = channel.source() {
        metadata.entry(OFFERED_QOS_KEY.to_owned()).or_insert_with(|| format_profile(&source));
    }
    let new = Channel::new(channel.id, channel.topic.clone(), CDR.to_owned(), described, metadata);
    ConvertedChannel { of, new: Arc::new(new), left_out: 0 }
}

impl ConvertedChannel {
    /// The converted message; `None` if it cannot be converted.
    fn convert(&self, message: &Message) -> Option<Message> {
        let Some((schema, counterpart)) = &self.of else {
            return (self.new.message_encoding == CDR && self.new.schema.is_some())
                .then(|| message.clone());
        };
        let decoded = Dynamic::decode(schema, message.data()).ok()?;
        Some(message.with(self.new.clone(), counterpart.encode(decoded.message())))
    }
}
