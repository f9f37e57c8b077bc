//! The messages of `rnet topic pub`, and their types.

use rnet::MessageType;
use rnet::inspect::Snapshot;
use rnet::limits::MAX_MESSAGE_LEN_BYTES;
use rnet::schema::{Dynamic, is_nested};
use serde_json::Value;

use super::args::PubArgs;
use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use rnet_format::types::Catalog;
use rnet_format::types::find;
use rnet_format::value::hex::from_hex;
use rnet_format::value::message_input;
use rnet_monitor::{message_type, type_name};

const MESSAGE_LIMIT: InputLimit =
    InputLimit::new(MAX_MESSAGE_LEN_BYTES, "a message", "MAX_MESSAGE_LEN_BYTES");

/// A message as given on the command line.
#[derive(Debug)]
pub enum Payload {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file: a message if the type is known, otherwise bytes.
    File(Vec<u8>),
    /// Fields of a type that must be found; with its name, if the user gave one.
    Fields { type_name: Option<String>, value: Value },
}

impl Payload {
    /// Parses the command line, and reads the file that it may name.
    pub fn of(args: &PubArgs) -> Outcome<Payload> {
        let usage = |what: &str| Err(Failure::Usage(what.to_owned()));
        let bytes = match (&args.hex, &args.text) {
            (Some(hex), _) => {
                Some(from_hex(hex).map_err(|e| Failure::Usage(format!("--hex: {e}")))?)
            }
            (None, text) => text.clone().map(String::into_bytes),
        };
        if let Some(bytes) = bytes {
            return match (args.words.is_empty(), args.files.proto.is_empty()) {
                (false, _) => usage("DATA cannot be combined with --hex or --text"),
                (_, false) => usage(
                    "--proto defines the type of DATA; it cannot be combined with --hex or --text",
                ),
                _ => Ok(Payload::Bytes(bytes)),
            };
        }
        let Some(file) = &args.file else {
            return match args.words.as_slice() {
                [] => usage(
                    "nothing to publish: give DATA, such as '{x: 1.0}', or --file, --hex or --text",
                ),
                [raw, data] if raw == "raw" => Ok(Payload::Bytes(data.clone().into_bytes())),
                [name, data] => Ok(Payload::named(Some(name), message_input::fields(data)?)),
                [data, ..] => Ok(Payload::named(None, message_input::fields(data)?)),
            };
        };
        let bytes = input::read(file, &MESSAGE_LIMIT)?;
        match args.words.as_slice() {
            [] if args.raw => Ok(Payload::Bytes(bytes)),
            [] => Ok(Payload::File(bytes)),
            _ if args.raw => usage("--raw sends the bytes of --file unchanged; omit TYPE"),
            [raw] if raw == "raw" => Ok(Payload::Bytes(bytes)),
            [name] => Ok(Payload::named(Some(name), message_input::fields(text_of(&bytes)?)?)),
            _ => usage("DATA cannot be combined with --file"),
        }
    }

    fn named(type_name: Option<&String>, value: Value) -> Payload {
        Payload::Fields { type_name: type_name.cloned(), value }
    }

    /// The bytes, and the type to publish them with. `Ok(None)` if the type is not known yet but may become
    /// known.
    pub fn resolve(
        &self,
        topic: &str,
        snapshot: &Snapshot,
        types: &PayloadTypes,
    ) -> Outcome<Option<(Vec<u8>, MessageType)>> {
        let in_use = message_type(topic, snapshot).map_err(Failure::Failed)?;
        let used = snapshot.topics().contains(&topic);
        match self {
            Payload::Bytes(bytes) => {
                if let (Some(in_use), false) = (&in_use, types.raw) {
                    return Err(raw_bytes_error(topic, in_use));
                }
                resolve_bytes(topic, bytes, in_use).map(Some)
            }
            Payload::File(bytes) if in_use.is_none() && !types.from_files => {
                resolve_bytes(topic, bytes, None).map(Some)
            }
            Payload::File(bytes) => {
                let found = types.choose_type(topic, None, in_use, used)?;
                found
                    .map(|found| encode_fields(&message_input::fields(text_of(bytes)?)?, found))
                    .transpose()
            }
            Payload::Fields { type_name, value } => {
                let found = types.choose_type(topic, type_name.as_deref(), in_use, used)?;
                match (&found, type_name, value) {
                    (None, None, Value::String(word)) => Err(types.not_fields_error(topic, word)),
                    _ => found.map(|found| encode_fields(value, found)).transpose(),
                }
            }
        }
    }
}

/// The message types of the command line.
pub struct PayloadTypes {
    /// From `--proto`, otherwise the built-in types.
    catalog: Catalog,
    from_files: bool,
    /// `--raw`: the bytes are a message of the topic's type.
    raw: bool,
}

impl PayloadTypes {
    pub fn of(args: &PubArgs, payload: &Payload) -> Outcome<PayloadTypes> {
        let catalog = match payload {
            Payload::Bytes(_) => Catalog::default(),
            _ => Catalog::of(&args.files.proto, &args.files.include)?,
        };
        Ok(PayloadTypes { catalog, from_files: !args.files.proto.is_empty(), raw: args.raw })
    }

    /// Why a named type cannot be resolved without the topic; `None` if it can.
    pub fn why_type_is_unknown(&self, payload: &Payload) -> Option<String> {
        let Payload::Fields { type_name: Some(name), .. } = payload else { return None };
        self.catalog.find(name).err().map(|error| error.to_string())
    }

    /// The error for a single word in place of fields, without a type.
    fn not_fields_error(&self, topic: &str, word: &str) -> Failure {
        Failure::Usage(match self.catalog.find(word) {
            Ok(found) => format!(
                "DATA is missing after the type: rnet topic pub {topic} {word} '{}'",
                message_input::example(&found)
            ),
            Err(_) => format!(
                "DATA is the text {word:?}, but must be the fields of a message, such as '{{x: 1.0}}'; to send \
                 text, use --text"
            ),
        })
    }

    /// The type of a message: from the files, otherwise from the topic, otherwise a built-in one.
    fn choose_type(
        &self,
        topic: &str,
        named: Option<&str>,
        in_use: Option<MessageType>,
        used: bool,
    ) -> Outcome<Option<MessageType>> {
        if self.from_files {
            let found = match (named, &in_use) {
                (Some(name), _) => self.catalog.find(name)?,
                (None, Some(MessageType::Protobuf(schema))) => self.catalog.find(schema.name())?,
                (None, _) => self.only_type()?,
            };
            return Ok(Some(found));
        }
        if let Some(in_use) = in_use {
            check_type_name(topic, named, &in_use)?;
            return Ok(Some(in_use));
        }
        match named.map(|name| self.catalog.find(name)) {
            Some(Ok(found)) => return Ok(Some(found)),
            Some(Err(failure)) if used => return Err(failure),
            _ => {}
        }
        match used {
            true => Err(Failure::Failed(format!(
                "messages on {topic} are raw bytes without fields: use --hex, --text or --file, or give the \
                 type with TYPE or --proto"
            ))),
            false => Ok(None),
        }
    }

    /// The only type of the files.
    fn only_type(&self) -> Outcome<MessageType> {
        let names: Vec<&str> =
            self.catalog.names().filter(|n| !is_nested(n, self.catalog.names())).collect();
        match names.as_slice() {
            [one] => Ok(self.catalog.get(one)?),
            many => Err(Failure::Usage(format!(
                "the files of --proto define {}; give one of the types before DATA",
                if many.is_empty() { "no message".to_owned() } else { many.join(", ") }
            ))),
        }
    }
}

/// Any text is a valid message of most protobuf types, with unknown fields and all others at zero.
fn raw_bytes_error(topic: &str, in_use: &MessageType) -> Failure {
    let desc = in_use.desc();
    let name = type_name(&desc);
    let example = message_input::example(in_use);
    Failure::Failed(format!(
        "messages on {topic} are of type {name}, but --hex, --text and TYPE raw send bytes: give the fields \
         (`rnet topic pub {topic} '{example}'`, or see `rnet type show --topic {topic}`), or add --raw if \
         these bytes are a {name}"
    ))
}

fn resolve_bytes(
    topic: &str,
    bytes: &[u8],
    in_use: Option<MessageType>,
) -> Outcome<(Vec<u8>, MessageType)> {
    match in_use.unwrap_or(MessageType::Raw) {
        // Raw bytes on a typed topic are published with its type, which its subscribers require.
        MessageType::Plain(plain) if !plain.accepts_len(bytes.len()) => {
            Err(Failure::Failed(format!(
                "messages on {topic} are {} of {} bytes{}, but {} bytes were given",
                plain.name,
                plain.size,
                if plain.tail { " or more" } else { "" },
                bytes.len()
            )))
        }
        MessageType::Protobuf(schema) => match Dynamic::decode(&schema, bytes) {
            Ok(_) => Ok((bytes.to_vec(), schema.into())),
            Err(e) => Err(Failure::Failed(format!(
                "messages on {topic} are {}, but the bytes cannot be decoded as that type: {e}",
                schema.name()
            ))),
        },
        other => Ok((bytes.to_vec(), other)),
    }
}

/// The bytes of a last will of the message type: fields, or text for a topic of bytes.
pub fn encode_last_will(data: &str, ty: &MessageType) -> Outcome<Vec<u8>> {
    match ty {
        MessageType::Raw => Ok(data.as_bytes().to_vec()),
        ty => Ok(message_input::encode("--will", ty, &message_input::fields(data)?)?),
    }
}

fn encode_fields(value: &Value, found: MessageType) -> Outcome<(Vec<u8>, MessageType)> {
    Ok((message_input::encode("DATA", &found, value)?, found))
}

fn check_type_name(topic: &str, named: Option<&str>, in_use: &MessageType) -> Outcome {
    let desc = in_use.desc();
    let used = type_name(&desc);
    match named.map(|named| (named, find(named, std::iter::once(used), ""))) {
        Some((named, Err(_))) => {
            Err(Failure::Failed(format!("messages on {topic} are of type {used}, not {named}")))
        }
        _ => Ok(()),
    }
}

fn text_of(bytes: &[u8]) -> Outcome<&str> {
    std::str::from_utf8(bytes).map_err(|_| {
        let what =
            "the content of --file is not valid UTF-8; to send its bytes unchanged, use --raw";
        Failure::Failed(what.to_owned())
    })
}
