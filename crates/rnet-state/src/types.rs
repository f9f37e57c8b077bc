//! The message types in the state: each is described once, under a separate key.
//!
//! A value contains the number of its type, and `!type/<number>` holds the description. The number is a hash
//! of the description or, if another description already has it, the next free one: equal hashes do not prove
//! equal types.

use std::collections::HashMap;
use std::sync::Mutex;

use rnet_core::{
    Error, Field, MAX_META_LEN_BYTES, MAX_SCHEMA_LEN_BYTES, Result, TypeDesc, fnv1a_64,
};
use rnet_schema::Schema;
use rnet_shm::state::{Record, Region, StoredValue, Write};

use super::encode::kind;
use rnet_node::MessageType;
use rnet_node::sync::lock;
use rnet_node::types::MAX_CACHED_LEN_BYTES;

/// Maximum number of cached types of a node, and of bytes of their descriptions; beyond it the cache is
/// cleared. A built type takes a multiple of its description.
const MAX_CACHED_TYPES: usize = 1024;

/// Maximum number of candidates for the number of one type.
const MAX_NUMBER_TRIES: u64 = 16;

const PLAIN_TYPE: u8 = 1;
const PROTOBUF_TYPE: u8 = 2;

/// The types that a node has used in the state.
#[derive(Default)]
pub(super) struct TypeRegistry {
    known: Mutex<HashMap<u64, KnownType>>,
}

struct KnownType {
    message_type: MessageType,
    len_bytes: usize,
    /// Whether its description is on disk, as far as this node knows.
    durable: bool,
}

fn key_of(number: u64) -> String {
    format!("!type/{number:016x}")
}

impl TypeRegistry {
    fn cache_type(&self, number: u64, message_type: &MessageType, durable: bool) {
        let len_bytes = match message_type {
            MessageType::Raw => 0,
            MessageType::Plain(plain) => plain.fields.len() * size_of::<Field>(),
            MessageType::Protobuf(schema) => schema.descriptor_set().len(),
        };
        let mut known = lock(&self.known);
        let sum = known.values().map(|known| known.len_bytes).sum::<usize>() + len_bytes;
        if known.len() >= MAX_CACHED_TYPES || sum > MAX_CACHED_LEN_BYTES {
            known.clear();
        }
        let message_type = message_type.clone();
        known.insert(number, KnownType { message_type, len_bytes, durable });
    }

    /// The number of a type; its description is in the state on return.
    ///
    /// # Errors
    /// `BadValue` for a type that cannot be described; those of a write.
    pub(super) fn register(
        &self,
        region: &Region,
        message_type: &MessageType,
        durable: bool,
    ) -> Result<u64> {
        let found = lock(&self.known).iter().find_map(|(number, known)| {
            let same = known.message_type == *message_type && (known.durable || !durable);
            same.then_some(*number)
        });
        if let Some(number) = found {
            return Ok(number);
        }
        let description = describe(message_type)?;
        let first = fnv1a_64(&description.identity);
        let mut record = Record::default();
        for number in (0..MAX_NUMBER_TRIES).map(|n| first.wrapping_add(n)) {
            if store_description(region, number, &description, durable, &mut record)? {
                self.cache_type(number, message_type, durable);
                return Ok(number);
            }
        }
        Err(Error::limit_reached(
            format!("types with the same fingerprint as {}", message_type.desc()),
            MAX_NUMBER_TRIES as usize,
            "rename it",
        ))
    }

    /// The type with a number; the error states the reason as text.
    pub(super) fn read(&self, region: &Region, number: u64) -> Result<MessageType, String> {
        if let Some(known) = lock(&self.known).get(&number) {
            return Ok(known.message_type.clone());
        }
        let mut record = Record::default();
        let found = region.get(&key_of(number), &mut record).map_err(|error| error.to_string())?;
        if !found || record.kind != kind::TYPE {
            return Err(format!("its type {number:016x} has no description"));
        }
        let message_type = decode_type(record.value()).map_err(|why| {
            format!("the description of its type {number:016x} is invalid: {why}")
        })?;
        self.cache_type(number, &message_type, record.durable);
        Ok(message_type)
    }
}

/// The description of a type.
struct Description {
    /// The identity of the type.
    identity: Vec<u8>,
    /// The same with the comments, which contain units for tools: this form is stored. Another version of the
    /// same type may have other comments, so they are not part of its identity.
    stored: Vec<u8>,
}

impl Description {
    /// Whether these bytes describe the same type.
    fn describes_same_type(&self, stored: &[u8]) -> bool {
        let same = |other: MessageType| {
            describe(&other).is_ok_and(|other| other.identity == self.identity)
        };
        stored == self.stored || decode_type(stored).is_ok_and(same)
    }
}

/// Stores a description under its number; `false` if the number has another description.
fn store_description(
    region: &Region,
    number: u64,
    description: &Description,
    durable: bool,
    record: &mut Record,
) -> Result<bool> {
    let key = key_of(number);
    let bytes = description.stored.as_slice();
    let stored =
        StoredValue { kind: kind::TYPE, type_id: 0, bytes, will: None, expires_boot_ns: 0 };
    // Two attempts, because another node may store it in between.
    for _ in 0..2 {
        let mut expect = 0;
        if region.get(&key, record)? {
            if record.kind != kind::TYPE || !description.describes_same_type(record.value()) {
                return Ok(false);
            }
            if record.durable || !durable {
                return Ok(true);
            }
            expect = record.revision;
        }
        let (value, durable) = (Some(stored), durable.then_some(true));
        let write = Write { key: &key, value, expect: Some(expect), durable };
        match region.commit(&[write], &[], &mut |_, _| Ok(())) {
            Ok(_) => return Ok(true),
            Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn describe(message_type: &MessageType) -> Result<Description> {
    let bad = |why: String| Error::bad_value(message_type.desc().to_string(), why);
    match message_type {
        MessageType::Raw => Err(bad("raw bytes are not a message; store them as bytes".to_owned())),
        MessageType::Plain(plain) => {
            plain.validate()?;
            let json = message_type.desc().to_json();
            if json.len() > MAX_META_LEN_BYTES {
                return Err(bad(format!(
                    "its description is {} bytes long; at most {MAX_META_LEN_BYTES} are allowed",
                    json.len()
                )));
            }
            let plain = [&[PLAIN_TYPE], json.as_bytes()].concat();
            Ok(Description { stored: plain.clone(), identity: plain })
        }
        MessageType::Protobuf(schema) => {
            let (name, set) = (schema.name().as_bytes(), schema.descriptor_set());
            let long = u16::try_from(name.len()).ok().filter(|_| set.len() <= MAX_SCHEMA_LEN_BYTES);
            let Some(name_len) = long else {
                return Err(bad(format!(
                    "its description is {} bytes long; at most {MAX_SCHEMA_LEN_BYTES} are allowed",
                    set.len()
                )));
            };
            let of =
                |set: &[u8]| [&[PROTOBUF_TYPE], &name_len.to_le_bytes()[..], name, set].concat();
            let with_docs = schema.descriptor_set_with_docs();
            // The comments are optional.
            let stored = if with_docs.len() <= MAX_SCHEMA_LEN_BYTES { &with_docs } else { set };
            Ok(Description { identity: of(set), stored: of(stored) })
        }
    }
}

/// The description of a type, for protobuf with comments.
///
/// # Errors
/// `BadValue` for a type that cannot be described.
pub fn describe_type(message_type: &MessageType) -> Result<Vec<u8>> {
    describe(message_type).map(|description| description.stored)
}

/// Decodes a type description, which may be hostile.
///
/// # Errors
/// The fault, as text.
pub fn decode_type(description: &[u8]) -> Result<MessageType, String> {
    let cut = || "it is truncated".to_owned();
    let (form, rest) = description.split_first().ok_or_else(cut)?;
    match *form {
        PLAIN_TYPE => {
            let json = super::encode::text(rest)?;
            match TypeDesc::from_json(json).map_err(|error| error.to_string())? {
                TypeDesc::Plain(plain) => Ok(MessageType::Plain(plain)),
                other => Err(format!("it describes {other} as a plain type")),
            }
        }
        PROTOBUF_TYPE => {
            let (len, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            let len = usize::from(u16::from_le_bytes(*len));
            let (name, set) = rest.split_at_checked(len).ok_or_else(cut)?;
            let name = super::encode::text(name)?;
            Schema::from_descriptor_set(set, name)
                .map(MessageType::Protobuf)
                .map_err(|error| error.to_string())
        }
        other => Err(format!("it has form {other}, which this version does not support")),
    }
}
