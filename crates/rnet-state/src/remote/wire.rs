//! The wire format between the home of a key and its readers: converts entries and errors to messages and
//! back.
//!
//! Data from another host is not trusted: keys, kinds, lengths and types are checked as they are read.

use std::collections::HashMap;

use crate::encode::{self, kind};
use crate::message::StateMessage;
use crate::types::{decode_type, describe_type};
use crate::{Entry, Owner, Value};
use rnet_core::{Error, Failure, Result, fnv1a_64, key_name};

use crate::msgs::{StateEntry, state_reply::Refusal};
use rnet_node::MessageType;
use rnet_shm::os::clock::boot_ns;

/// The kind of an unreadable value; its bytes contain the reason.
const UNREADABLE_KIND: u16 = 0;
/// Maximum number of cached types of one home; beyond it they are requested again.
const MAX_TYPES: usize = 1024;

/// The service and topic names of a host. Host names may contain characters that topic names may not, so the
/// name contains a hash. If two hosts have the same hash, both receive the request, and each answers only to
/// its own name.
pub fn read_service(host: &str) -> String {
    format!("{}/read", root(host))
}

/// As [`read_service`], for writes: configuration rules distinguish the two.
pub fn write_service(host: &str) -> String {
    format!("{}/write", root(host))
}

/// The topic of the changes of a feed, for one group of readers.
pub fn feed_topic(host: &str, readers: u64, feed: u64) -> String {
    format!("{}/r{readers:016x}/f{feed:016x}", root(host))
}

const STATE_ROOT: &str = "/_rnet/state/h";

fn root(host: &str) -> String {
    format!("{STATE_ROOT}{:016x}", StateTopic::hash_host(host))
}

/// What a name of the state between hosts is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateTopic {
    /// The service for reads of a home, given by the hash of its host's name.
    Read(u64),
    /// The service for writes of a home.
    Write(u64),
    /// A feed of a home, and the number of the readers for which it is.
    Feed(u64, u64),
}

impl StateTopic {
    /// Reads the name of a service or topic; `None` for any other name.
    pub fn parse(name: &str) -> Option<StateTopic> {
        let (host, end) = name.strip_prefix(STATE_ROOT)?.split_once('/')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16);
        let host = number(host)?;
        match end {
            "read" => Some(StateTopic::Read(host)),
            "write" => Some(StateTopic::Write(host)),
            _ => {
                let (readers, feed) = end.strip_prefix('r')?.split_once("/f")?;
                number(feed)?;
                Some(StateTopic::Feed(host, number(readers)?))
            }
        }
    }

    /// The hash of a host's name in these names.
    pub fn hash_host(host: &str) -> u64 {
        fnv1a_64(host.as_bytes())
    }
}

/// The number of a type at its home, and its description for receivers that do not know it.
///
/// # Errors
/// `BadValue` for a type that cannot be described.
fn describe(value: &Value) -> Result<(u64, Vec<u8>)> {
    let Some(message) = value.as_message() else { return Ok((0, Vec::new())) };
    let description = describe_type(message.message_type())?;
    Ok((message.type_id().unwrap_or_else(|| fnv1a_64(&description)), description))
}

/// A value for a write.
///
/// # Errors
/// `BadValue` for a value that cannot be written.
pub fn encode_write(key: &str, value: &Value) -> Result<StateEntry> {
    let bad = |why| Error::bad_value(format!("value of {key}"), why);
    let bytes = encode::encode(value).map_err(bad)?.to_vec();
    let (r#type, type_description) = describe(value)?;
    let kind = u32::from(encode::kind_of(value));
    Ok(StateEntry { kind, value: bytes, r#type, type_description, ..StateEntry::default() })
}

/// Encodes an entry. Omits the description of its type if `is_known` returns `true` for the type's number.
pub fn encode_entry(entry: &Entry, mut is_known: impl FnMut(u64) -> bool) -> StateEntry {
    let known = entry.value.as_message().and_then(StateMessage::type_id);
    let packed = match (&entry.value, known.filter(|number| is_known(*number))) {
        (Value::Unreadable(why), _) => Err(why.clone()),
        (value, None) => encode_write(&entry.key, value).map_err(|error| error.to_string()),
        (value, Some(r#type)) => encode::encode(value).map(|bytes| StateEntry {
            kind: u32::from(kind::MESSAGE),
            value: bytes.to_vec(),
            r#type,
            ..StateEntry::default()
        }),
    };
    let unreadable = |why: String| StateEntry {
        kind: u32::from(UNREADABLE_KIND),
        value: why.into_bytes(),
        ..StateEntry::default()
    };
    let ttl_left = entry.ttl_left();
    StateEntry {
        key: entry.key.clone(),
        revision: entry.revision,
        version: entry.version,
        node: entry.owner.node.clone(),
        written_unix_ns: entry.owner.written_unix_ns,
        durable: entry.durable,
        ttl_left_ns: ttl_left.map(|left| u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)),
        ..packed.unwrap_or_else(unreadable)
    }
}

/// The types of a home, by their numbers there.
#[derive(Default)]
pub struct TypeCache(HashMap<u64, MessageType>);

impl TypeCache {
    /// The value of an entry.
    ///
    /// # Errors
    /// A text that says what is wrong with it.
    pub fn decode_value(&mut self, entry: &StateEntry) -> Result<Value, String> {
        let kind = u16::try_from(entry.kind).map_err(|_| format!("of kind {}", entry.kind))?;
        if !entry.type_description.is_empty() {
            let known = decode_type(&entry.type_description)?;
            if self.0.len() >= MAX_TYPES {
                self.0.clear();
            }
            self.0.insert(entry.r#type, known);
        }
        let bytes = &entry.value;
        match (kind, self.0.get(&entry.r#type)) {
            (UNREADABLE_KIND, _) => {
                Ok(Value::Unreadable(String::from_utf8_lossy(bytes).into_owned()))
            }
            (kind::MESSAGE, Some(known)) => {
                let message = StateMessage::new(known.clone(), bytes.clone());
                message.map(Value::Message).map_err(|error| error.to_string())
            }
            (kind::MESSAGE, None) => Err("a message without its type".to_owned()),
            _ => encode::decode(kind, bytes),
        }
    }

    /// Decodes an entry that another host sent.
    ///
    /// # Errors
    /// A text that says what is wrong with it.
    pub fn decode_entry(&mut self, entry: StateEntry) -> Result<Entry, String> {
        let key = key_name(&entry.key).map_err(|error| error.to_string())?.into_owned();
        let value = self.decode_value(&entry).map_err(|why| format!("{key}: {why}"))?;
        Ok(Entry {
            key,
            value,
            revision: entry.revision,
            version: entry.version,
            owner: Owner { node: entry.node, written_unix_ns: entry.written_unix_ns },
            durable: entry.durable,
            expires_boot_ns: entry.ttl_left_ns.map(|left| boot_ns().saturating_add(left)),
            last_will: None,
        })
    }
}

/// Encodes an error of the home for the requester.
pub fn encode_error(error: &Error) -> Refusal {
    let text = error.to_string();
    let (words, numbers) = match error {
        Error::Conflict { key, expected, found } => (vec![key], vec![*expected, *found]),
        Error::StateType { key, holds, given } => (vec![key, holds, given], vec![]),
        Error::BadValue { what, why } => (vec![what, why], vec![]),
        Error::LimitReached { what, limit, hint } => (vec![what, hint], vec![*limit as u64]),
        _ => (vec![&text], vec![]),
    };
    let words = words.into_iter().cloned().collect();
    Refusal { code: error.code().to_owned(), words, numbers }
}

/// Decodes an error that a home returned; errors that the requester did not cause become a `CallFailed` that
/// names the host.
pub fn decode_error(service: &str, host: &str, refusal: &Refusal) -> Error {
    let mut words = refusal.words.iter().cloned();
    let mut word = || words.next().unwrap_or_default();
    let number = |at: usize| refusal.numbers.get(at).copied().unwrap_or_default();
    match &*refusal.code {
        "conflict" => Error::Conflict { key: word(), expected: number(0), found: number(1) },
        "state_type" => Error::StateType { key: word(), holds: word(), given: word() },
        "bad_value" => Error::bad_value(word(), word()),
        "limit_reached" => Error::limit_reached(
            format!("{} on host {host}", word()),
            usize::try_from(number(0)).unwrap_or(usize::MAX),
            word(),
        ),
        code => {
            let failure = Box::new(Failure { kind: code.to_owned(), text: word() });
            Error::CallFailed { topic: service.to_owned(), node: format!("@{host}"), failure }
        }
    }
}
