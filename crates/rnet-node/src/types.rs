//! Types of a topic's messages: the type of an endpoint, and the types of peers.

use std::collections::HashMap;
use std::path::Path;

use rnet_core::{Error, MAX_SCHEMA_LEN_BYTES, PlainType, ProtobufType, Result, TypeDesc};
use rnet_schema::Schema;
use rnet_schema::reflect::ReflectSchema;
use rnet_shm::domain::node::OwnNode;
use rnet_shm::domain::types;

use crate::Message;

/// The type of an endpoint's messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MessageType {
    /// Bytes without a description.
    #[default]
    Raw,
    /// A struct of a fixed layout.
    Plain(PlainType),
    /// A protobuf message.
    Protobuf(Schema),
}

impl MessageType {
    /// The description for peers.
    pub fn desc(&self) -> TypeDesc {
        match self {
            MessageType::Raw => TypeDesc::Raw,
            MessageType::Plain(plain) => TypeDesc::Plain(plain.clone()),
            MessageType::Protobuf(schema) => TypeDesc::Protobuf(ProtobufType {
                name: schema.name().to_owned(),
                schema: schema.hash().to_string(),
            }),
        }
    }

    /// The protobuf type, if it is one.
    pub fn schema(&self) -> Option<&Schema> {
        match self {
            MessageType::Protobuf(schema) => Some(schema),
            MessageType::Raw | MessageType::Plain(_) => None,
        }
    }

    /// Fixed length of every message, in bytes; `None` if the length varies.
    pub(crate) fn fixed_len(&self) -> Option<usize> {
        match self {
            MessageType::Plain(plain) if !plain.tail => Some(plain.size),
            MessageType::Plain(_) | MessageType::Raw | MessageType::Protobuf(_) => None,
        }
    }

    /// Writes the description for peers; call it before an endpoint of `topic` names the type.
    pub(crate) fn write_description(&self, node: &OwnNode, topic: &str) -> Result<()> {
        let MessageType::Protobuf(schema) = self else { return Ok(()) };
        let kept = node.write_type(&schema.hash().to_string(), || {
            let with_docs = schema.descriptor_set_with_docs();
            // If the comments do not fit, the type is written without them.
            let fits = with_docs.len() <= MAX_SCHEMA_LEN_BYTES;
            let set = if fits { with_docs } else { schema.descriptor_set().to_vec() };
            // A type that peers would reject is rejected here, where the user can fix it.
            match Schema::from_descriptor_set(&set, schema.name()) {
                Ok(_) => Ok(set),
                Err(why) => Err(Error::bad_value(
                    format!("type {} of {topic}", schema.name()),
                    why.to_string(),
                )),
            }
        });
        kept.map_err(|error| match error {
            Error::OutOfMemory { needed_bytes, limit_bytes, why, .. } => {
                Error::OutOfMemory { topic: topic.to_owned(), needed_bytes, limit_bytes, why }
            }
            other => other,
        })
    }
}

impl From<PlainType> for MessageType {
    fn from(plain: PlainType) -> Self {
        MessageType::Plain(plain)
    }
}

/// # Errors
/// `BadValue` for a protobuf message, because a description only names it. Also for a type of an unknown
/// kind.
impl TryFrom<TypeDesc> for MessageType {
    type Error = Error;

    fn try_from(desc: TypeDesc) -> Result<Self> {
        match desc {
            TypeDesc::Raw => Ok(MessageType::Raw),
            TypeDesc::Plain(plain) => Ok(MessageType::Plain(plain)),
            TypeDesc::Protobuf(named) => Err(Error::bad_value(
                "type",
                format!("protobuf message {} needs its schema: set it in the options", named.name),
            )),
            TypeDesc::Unknown => Err(Error::bad_value(
                "type",
                "its kind needs a later version of robot-net: update this one",
            )),
        }
    }
}

impl From<Schema> for MessageType {
    fn from(schema: Schema) -> Self {
        MessageType::Protobuf(schema)
    }
}

/// Chooses the type of an endpoint: the type of its Rust messages, or, if they leave it open, the given one.
pub fn choose_type<T: Message + ?Sized>(
    topic: &str,
    given: Option<MessageType>,
) -> Result<MessageType> {
    let Some(given) = given else { return T::message_type() };
    if T::accepts(&given) {
        return Ok(given);
    }
    let own = T::message_type()?;
    if own == given {
        return Ok(own);
    }
    Err(Error::bad_value(
        format!("type of {topic}"),
        format!(
            "the options specify {}, but the messages are {}; use a publisher or subscriber of \
             bytes or, for a protobuf type, of Dynamic",
            given.desc(),
            own.desc()
        ),
    ))
}

const _: () = assert!(MAX_SCHEMA_LEN_BYTES == rnet_schema::limits::MAX_SCHEMA_LEN_BYTES);

/// Maximum number of cached bytes of descriptor sets.
pub const MAX_CACHED_LEN_BYTES: usize = 4 << 20;

/// Maximum number of cached parts of types: as many as one type may have. A built part takes at most a
/// kilobyte, and ten bytes on the wire.
const MAX_CACHED_PARTS: usize = 1 << 15;

/// Number of messages, fields, enum values and similar parts that a type needs.
fn count_parts(schema: &Schema) -> usize {
    let pool = schema.descriptor().parent_pool();
    let messages = pool.all_messages().map(|message| {
        let reserved = message.reserved_ranges().count() + message.reserved_names().count();
        1 + message.fields().len() + message.oneofs().len() + reserved
    });
    let enums = pool.all_enums().map(|e| 1 + e.values().len());
    pool.files().len() + messages.sum::<usize>() + enums.sum::<usize>()
}

/// The types of peers. Each type is read from its file at each match, but built only once: it is compared by
/// all its bytes, because a fingerprint proves nothing.
#[derive(Debug, Default)]
pub struct SchemaCache {
    built: HashMap<Box<[u8]>, Schema>,
    len_bytes: usize,
    parts: usize,
}

impl SchemaCache {
    /// Reads the type that an endpoint of the node in `folder` declares.
    ///
    /// # Errors
    /// The errors of reading the file; `Corrupt` if its content is not a type, or is another type.
    pub fn read(&mut self, folder: &Path, named: &ProtobufType) -> Result<Schema> {
        let set = types::read(folder, &named.schema)?;
        let corrupt = |what: String| Error::Corrupt {
            topic: format!("the type {} of", named.name),
            publisher_node: folder.display().to_string(),
            what,
        };
        let schema = match self.built.get(&set[..]).filter(|s| s.name() == named.name) {
            Some(schema) => schema.clone(),
            None => {
                let built = Schema::from_descriptor_set(&set, &named.name);
                let schema = built.map_err(|e| corrupt(e.to_string()))?;
                self.remember(set, &schema);
                schema
            }
        };
        if schema.hash().to_string() != named.schema {
            return Err(corrupt("the type in the file does not match the file's name".to_owned()));
        }
        Ok(schema)
    }

    /// As [`SchemaCache::read`], for any endpoint; `None` if its messages are not protobuf messages.
    ///
    /// # Errors
    /// As [`SchemaCache::read`].
    pub fn read_protobuf(&mut self, folder: &Path, desc: &TypeDesc) -> Result<Option<Schema>> {
        desc.as_protobuf().map(|named| self.read(folder, named)).transpose()
    }

    fn remember(&mut self, set: Vec<u8>, schema: &Schema) {
        let parts = count_parts(schema);
        if self.len_bytes + set.len() > MAX_CACHED_LEN_BYTES
            || self.parts + parts > MAX_CACHED_PARTS
        {
            *self = SchemaCache::default();
        }
        self.len_bytes += set.len();
        self.parts += parts;
        self.built.insert(set.into(), schema.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_is_bounded_by_number_of_built_parts() {
        let mut schemas = SchemaCache::default();
        let mut most = 0;
        for number in 0..20 {
            let fields: String = (1..=3000).map(|n| format!("int32 f{n} = {n};")).collect();
            let text = format!("syntax = \"proto3\"; message M{number} {{ {fields} }}");
            let all = rnet_schema::compile_text("m.proto", &text).unwrap();
            let schema = all.schema(&format!("M{number}")).unwrap();
            schemas.remember(schema.descriptor_set().to_vec(), &schema);
            let fields = schemas.built.values().map(|s| s.descriptor().fields().len());
            most = most.max(fields.sum());
        }
        assert!((3000 * 8..=MAX_CACHED_PARTS).contains(&most), "{most} fields");
    }
}
