//! A recording as a file that ROS 2 reads.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use rnet::MessageType;
use rnet::schema::Dynamic;

use super::counterpart::Counterpart;
use super::qos::{OFFERED_QOS_KEY, profile};
use super::{CDR, PROFILE};
use crate::names;
use crate::read::{Channel, Message, Recording, Schema, Select};
use crate::tools::{Output, Stop, Tell, ToolError, Written, goes_on, whole};

/// What is not in the new file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The topic.
    pub topic: String,
    /// The type of its messages.
    pub type_name: String,
    /// How many there were.
    pub messages: u64,
}

/// A channel of the old file.
struct Line {
    /// The type of its messages, and what they become.
    of: Option<(rnet::schema::Schema, Arc<Counterpart>)>,
    new: Arc<Channel>,
    left_out: u64,
}

/// Writes the messages that are chosen as messages of ROS 2, in CDR. Those of ROS 2 stay as they are. Says what has no
/// counterpart, and is left out; and so is what is none of its type.
///
/// # Errors
/// The new file exists or cannot be written; `Interrupted`.
pub fn to_ros2(
    from: &Recording,
    to: &Path,
    select: Select,
    tell: Tell<'_>,
    stop: Stop,
) -> Result<(Written, Vec<LeftOut>), ToolError> {
    let mut output = Output::create(to, PROFILE, names::LIBRARY, "zstd")?;
    let mut lines: HashMap<u16, Line> = HashMap::new();
    let mut messages = 0;
    let mut reader = from.messages(select);
    while let Some(message) = whole(&mut reader, from, tell) {
        goes_on(stop)?;
        let line = lines.entry(message.channel.id).or_insert_with(|| line(&message.channel));
        match line.written(&message) {
            Some(written) => {
                output.message(&written, None)?;
                messages += 1;
            }
            None => line.left_out += 1,
        }
    }
    let written =
        Written { path: to.to_owned(), messages, len_bytes: output.finish()?, doubles: 0 };
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
        .map(|((topic, type_name), messages)| LeftOut { topic, type_name, messages })
        .collect();
    Ok((written, left_out))
}

fn line(channel: &Arc<Channel>) -> Line {
    if channel.message_encoding == CDR {
        return Line { of: None, new: channel.clone(), left_out: 0 };
    }
    let of = match channel.message_type() {
        Ok(MessageType::Protobuf(schema)) => {
            Counterpart::of(schema.name()).map(|of| (schema, Arc::new(of)))
        }
        _ => None,
    };
    let described = of.as_ref().map(|(_, of)| {
        let (name, encoding, data) = of.described();
        Arc::new(Schema { id: channel.id, name, encoding: encoding.to_owned(), data })
    });
    // Who publishes is kept; ROS 2 readers pass over what they do not know.
    let mut metadata = channel.metadata.clone();
    if let Ok(source) = channel.source() {
        metadata.entry(OFFERED_QOS_KEY.to_owned()).or_insert_with(|| profile(&source));
    }
    let new = Channel::new(channel.id, channel.topic.clone(), CDR.to_owned(), described, metadata);
    Line { of, new: Arc::new(new), left_out: 0 }
}

impl Line {
    /// The message as it is written; `None` if it cannot be.
    fn written(&self, message: &Message) -> Option<Message> {
        let Some((schema, counterpart)) = &self.of else {
            return (self.new.message_encoding == CDR && self.new.schema.is_some())
                .then(|| message.clone());
        };
        let decoded = Dynamic::decode(schema, message.data()).ok()?;
        Some(message.with(self.new.clone(), counterpart.encode(decoded.message())))
    }
}
