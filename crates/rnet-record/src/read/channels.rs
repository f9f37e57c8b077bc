//! Channels and schemas of a file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use mcap::records::{self, Record};
use rnet::{MessageType, TypeDesc};

use super::error::{Problem, ReadError};
use crate::ros2::{self, CdrType};
use crate::{Source, SourceError, TypeKind, names};

/// The message type that a file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its id in the file.
    pub id: u16,
    /// Name of the type.
    pub name: String,
    /// How `data` describes the type: `protobuf`, `rnet-plain`, `ros2msg`, `jsonschema`, …
    pub encoding: String,
    /// The description.
    pub data: Vec<u8>,
}

/// A channel: the messages of one publisher in recordings of robot-net, of one topic in other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its id in the file.
    pub id: u16,
    /// Its topic.
    pub topic: String,
    /// How its messages are encoded: `protobuf`, `rnet-plain`, `bytes`, `cdr`, `json`, …
    pub message_encoding: String,
    /// The schema of its messages.
    pub schema: Option<Arc<Schema>>,
    /// Further metadata in the file.
    pub metadata: BTreeMap<String, String>,
    /// The ROS 2 type, computed on first use.
    cdr: CachedCdr,
}

/// A cached value derived from a channel; not part of its identity.
#[derive(Clone, Debug, Default)]
struct CachedCdr(OnceLock<Result<Arc<CdrType>, String>>);

impl PartialEq for CachedCdr {
    fn eq(&self, _: &CachedCdr) -> bool {
        true
    }
}

impl Eq for CachedCdr {}

/// Why the messages of a channel have no readable type.
#[derive(Debug, thiserror::Error)]
#[error("the type of {topic} cannot be read: {why}")]
pub struct TypeError {
    /// Topic of the channel.
    pub topic: String,
    /// The reason.
    pub why: String,
}

impl Channel {
    pub(crate) fn new(
        id: u16,
        topic: String,
        message_encoding: String,
        schema: Option<Arc<Schema>>,
        metadata: BTreeMap<String, String>,
    ) -> Channel {
        Channel { id, topic, message_encoding, schema, metadata, cdr: CachedCdr::default() }
    }

    /// The ROS 2 type of a channel.
    fn cdr(&self) -> Option<&Result<Arc<CdrType>, String>> {
        let schema = self.schema.as_ref().filter(|schema| {
            self.message_encoding == ros2::CDR && schema.encoding == ros2::ROS2MSG
        })?;
        Some(self.cdr.0.get_or_init(|| {
            let text = std::str::from_utf8(&schema.data).map_err(|error| error.to_string())?;
            CdrType::new(&schema.name, text).map(Arc::new)
        }))
    }

    /// A message of this channel, encoded as [`Channel::message_type`] describes: unchanged, except that ROS
    /// 2 messages are converted to protobuf.
    ///
    /// # Errors
    /// The reason as text, for ROS 2 only: the data is not CDR, or not of the channel's type.
    pub fn content<'a>(&self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        match self.cdr() {
            Some(Ok(cdr)) => Ok(Cow::Owned(cdr.to_protobuf(data)?)),
            // Its type cannot be read, so it is bytes.
            Some(Err(_)) | None => Ok(Cow::Borrowed(data)),
        }
    }

    /// Its publisher.
    ///
    /// # Errors
    /// Invalid metadata.
    pub fn source(&self) -> Result<Source, SourceError> {
        Source::from_metadata(&self.metadata)
    }

    /// Name of the type of its messages, `raw` without a type.
    pub fn type_name(&self) -> &str {
        match (&self.schema, self.metadata.get(names::TYPE_KEY)) {
            (Some(schema), _) => &schema.name,
            (None, Some(name)) if !name.is_empty() => name,
            _ => "raw",
        }
    }

    /// The recorder itself wrote it: no publisher had this topic.
    pub fn is_reserved(&self) -> bool {
        self.topic.starts_with(names::RESERVED_TOPICS)
    }

    /// The type by which its messages are read. Unknown encodings are bytes.
    ///
    /// # Errors
    /// The description cannot be read; CDR is described in another language than `ros2msg`.
    pub fn message_type(&self) -> Result<MessageType, TypeError> {
        let failed = |why: String| TypeError { topic: self.topic.clone(), why };
        let Some(schema) = &self.schema else { return Ok(MessageType::Raw) };
        match self.cdr() {
            Some(Ok(cdr)) => return Ok(cdr.schema().clone().into()),
            Some(Err(why)) => return Err(failed(why.clone())),
            None => {}
        }
        match (self.message_encoding.as_str(), schema.encoding.as_str()) {
            (names::PROTOBUF, names::PROTOBUF) => {
                let schema = rnet::schema::Schema::from_descriptor_set(&schema.data, &schema.name);
                Ok(schema.map_err(|error| failed(error.to_string()))?.into())
            }
            (names::PLAIN, names::PLAIN) => {
                let text = std::str::from_utf8(&schema.data);
                let text = text.map_err(|error| failed(error.to_string()))?;
                let desc = TypeDesc::from_json(text).map_err(|error| failed(error.to_string()))?;
                MessageType::try_from(desc).map_err(|error| failed(error.to_string()))
            }
            (ros2::CDR, other) => Err(failed(format!(
                "{} is described as {other:?}, but only {:?} is supported; record it with that, as rosbag2 \
                 does for .msg files",
                schema.name,
                ros2::ROS2MSG
            ))),
            _ => Ok(MessageType::Raw),
        }
    }

    /// The kind of the published type, if the file contains it.
    pub fn kind(&self) -> TypeKind {
        match (self.source(), self.message_encoding.as_str()) {
            (Ok(source), _) if self.metadata.contains_key(names::KIND_KEY) => source.kind,
            (_, names::PROTOBUF | ros2::CDR) => TypeKind::Protobuf,
            (_, names::PLAIN) => TypeKind::Plain,
            _ => TypeKind::Bytes,
        }
    }
}

/// All channels and schemas, as far as the file has been read.
#[derive(Clone, Debug, Default)]
pub struct Channels {
    schemas: BTreeMap<u16, Arc<Schema>>,
    channels: BTreeMap<u16, Arc<Channel>>,
}

impl Channels {
    pub fn get(&self, id: u16) -> Option<&Arc<Channel>> {
        self.channels.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.channels.values()
    }

    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.schemas.values()
    }

    /// Adds a Schema or Channel record; ignores other records. The first description of an id is used.
    pub fn add(&mut self, record: Record<'_>, offset: u64) -> Result<(), ReadError> {
        match record {
            Record::Schema { header, data } => {
                let records::SchemaHeader { id, name, encoding } = header;
                if id == 0 {
                    let why = "0 is not a valid schema id".to_owned();
                    let what = super::error::RecordName(records::op::SCHEMA);
                    return Err(ReadError::new(offset, Problem::Record { what, why }));
                }
                let schema = Schema { id, name, encoding, data: data.into_owned() };
                let known = self.schemas.entry(id).or_insert_with(|| Arc::new(schema.clone()));
                check_same(**known == schema, "schema", id, offset)
            }
            Record::Channel(record) => {
                let records::Channel { id, schema_id, topic, message_encoding, metadata } = record;
                let schema = match (schema_id, self.schemas.get(&schema_id)) {
                    (0, _) => None,
                    (_, Some(schema)) => Some(schema.clone()),
                    (schema, None) => {
                        return Err(ReadError::new(
                            offset,
                            Problem::UnknownSchema { topic, schema },
                        ));
                    }
                };
                let channel = Channel::new(id, topic, message_encoding, schema, metadata);
                let known = self.channels.entry(id).or_insert_with(|| Arc::new(channel.clone()));
                check_same(**known == channel, "channel", id, offset)
            }
            _ => Ok(()),
        }
    }
}

fn check_same(same: bool, what: &'static str, id: u16, offset: u64) -> Result<(), ReadError> {
    match same {
        true => Ok(()),
        false => Err(ReadError::new(offset, Problem::Conflict { what, id })),
    }
}
