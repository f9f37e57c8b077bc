//! The types of messages in the state: each is described once, under a key of its own.
//!
//! A value names its type by a number, and `!type/<number>` holds the description. The number is a hash of the
//! description, or, where that one is taken by another description, the next that is free: equal hashes prove nothing.

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

/// Types that a node remembers, and bytes of their descriptions; then it begins anew. What a type takes when it is built is a
/// multiple of its description.
const MAX_CACHED_TYPES: usize = 1024;

/// How many numbers are tried for one type.
const MAX_NUMBER_TRIES: u64 = 16;

const PLAIN: u8 = 1;
const PROTOBUF: u8 = 2;

/// The types that a node has met in the state.
#[derive(Default)]
pub(super) struct TypeRegistry {
    known: Mutex<HashMap<u64, KnownType>>,
}

struct KnownType {
    message_type: MessageType,
    len_bytes: usize,
    /// Whether its description is kept on disk, as far as this node knows.
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

    /// The number of a type, whose description is in the state afterwards.
    ///
    /// # Errors
    /// `BadValue` for a type that cannot be described; those of writing.
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

    /// The type of a number; in words why there is none.
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
    /// What makes it the type that it is.
    identity: Vec<u8>,
    /// The same with the comments, which tell tools the units: what is kept. Another version of the same type may have
    /// others, so they make no difference.
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

/// Puts a description under its number; `false` if another one stands there.
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
    // Twice, because another node may put it there in between.
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
            let plain = [&[PLAIN], json.as_bytes()].concat();
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
            let of = |set: &[u8]| [&[PROTOBUF], &name_len.to_le_bytes()[..], name, set].concat();
            let with_docs = schema.descriptor_set_with_docs();
            // A type is more than its comments.
            let stored = if with_docs.len() <= MAX_SCHEMA_LEN_BYTES { &with_docs } else { set };
            Ok(Description { identity: of(set), stored: of(stored) })
        }
    }
}

/// The description of a type, with the comments of a protobuf one.
///
/// # Errors
/// `BadValue` for a type that cannot be described.
pub fn describe_type(message_type: &MessageType) -> Result<Vec<u8>> {
    describe(message_type).map(|description| description.stored)
}

/// The type of a description, which may be hostile.
///
/// # Errors
/// In words, why it is none.
pub fn decode_type(description: &[u8]) -> Result<MessageType, String> {
    let cut = || "it is truncated".to_owned();
    let (form, rest) = description.split_first().ok_or_else(cut)?;
    match *form {
        PLAIN => {
            let json = super::encode::text(rest)?;
            match TypeDesc::from_json(json).map_err(|error| error.to_string())? {
                TypeDesc::Plain(plain) => Ok(MessageType::Plain(plain)),
                other => Err(format!("it describes {other} as a plain type")),
            }
        }
        PROTOBUF => {
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
