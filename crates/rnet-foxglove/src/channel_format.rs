//! Converts messages between topics and clients.
//!
//! Protobuf messages are sent unchanged, with their description. Plain images and clouds become the Foxglove
//! message of the same meaning ([`to_protobuf`]), other plain types become JSON with a JSON schema, and bytes
//! become a JSON object. So viewers can show all of them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rnet::msgs::foxglove::{PointCloud, RawImage};
use rnet::msgs::plain::{HeaderDescription, to_protobuf};
use rnet::schema::{Dynamic, JsonOptions, Schema};
use rnet::{FieldType, Message, MessageType, PlainType, Prim};
use rnet_record::read::Channel;
use serde_json::{Map, Value, json};

pub const PROTOBUF: &str = "protobuf";
pub const JSON: &str = "json";
const JSON_SCHEMA: &str = "jsonschema";
/// Bytes up to this length are also shown as text if they are UTF-8.
const MAX_TEXT_LEN_BYTES: usize = 64 << 10;

/// The message format of a channel, and the conversion from messages of the topic.
#[derive(Clone, Debug)]
pub struct ChannelFormat {
    pub encoding: Cow<'static, str>,
    pub schema_name: String,
    pub schema_encoding: Cow<'static, str>,
    /// Protobuf descriptions in base64; JSON schemas as text.
    pub schema: String,
    conversion: Conversion,
}

#[derive(Clone, Debug)]
enum Conversion {
    Unchanged,
    /// A plain message that becomes protobuf.
    ToProtobuf(PlainType),
    PlainToJson(PlainType),
    BytesToJson,
}

impl PartialEq for ChannelFormat {
    fn eq(&self, other: &ChannelFormat) -> bool {
        (&self.encoding, &self.schema_name, &self.schema)
            == (&other.encoding, &other.schema_name, &other.schema)
    }
}

impl ChannelFormat {
    /// The format for messages of a type. `MessageType::Raw` also represents a type that cannot be read.
    pub fn of(ty: &MessageType) -> ChannelFormat {
        match ty {
            MessageType::Protobuf(schema) => ChannelFormat::protobuf(schema, Conversion::Unchanged),
            MessageType::Plain(plain) => match foxglove_counterpart(plain) {
                Some(schema) => {
                    ChannelFormat::protobuf(&schema, Conversion::ToProtobuf(plain.clone()))
                }
                None => ChannelFormat::json(
                    &plain.name,
                    &json_schema_of(plain),
                    Conversion::PlainToJson(plain.clone()),
                ),
            },
            MessageType::Raw => {
                let schema = json!({
                    "type": "object",
                    "title": "bytes",
                    "properties": {
                        "len": {"type": "integer"},
                        "bytes": {"type": "string", "contentEncoding": "base64"},
                        "text": {"type": "string"},
                    },
                });
                ChannelFormat::json("bytes", &schema, Conversion::BytesToJson)
            }
        }
    }

    fn json(name: &str, schema: &Value, conversion: Conversion) -> ChannelFormat {
        ChannelFormat {
            encoding: JSON.into(),
            schema_name: name.to_owned(),
            schema_encoding: JSON_SCHEMA.into(),
            schema: schema.to_string(),
            conversion,
        }
    }

    fn protobuf(schema: &Schema, conversion: Conversion) -> ChannelFormat {
        ChannelFormat {
            encoding: PROTOBUF.into(),
            schema_name: schema.name().to_owned(),
            schema_encoding: PROTOBUF.into(),
            schema: BASE64.encode(schema.descriptor_set_with_json_names()),
            conversion,
        }
    }

    /// The format of a recorded channel. Messages in encodings of other writers are sent unchanged.
    pub fn of_channel(channel: &Channel) -> ChannelFormat {
        let text = |schema: &rnet_record::read::Schema| match schema.encoding.as_str() {
            // Binary descriptions.
            "protobuf" | "flatbuffer" => BASE64.encode(&schema.data),
            _ => String::from_utf8_lossy(&schema.data).into_owned(),
        };
        let ours = [PROTOBUF, "rnet-plain", "bytes"].contains(&channel.message_encoding.as_str());
        match channel.message_type() {
            Ok(ty) if ours => ChannelFormat::of(&ty),
            _ => {
                let schema = channel.schema.as_deref();
                ChannelFormat {
                    encoding: channel.message_encoding.clone().into(),
                    schema_name: schema.map(|schema| schema.name.clone()).unwrap_or_default(),
                    schema_encoding: schema.map(|s| s.encoding.clone()).unwrap_or_default().into(),
                    schema: schema.map(text).unwrap_or_default(),
                    conversion: Conversion::Unchanged,
                }
            }
        }
    }

    /// The fields of an advertisement.
    pub fn advertisement(&self) -> Value {
        json!({
            "encoding": self.encoding,
            "schemaName": self.schema_name,
            "schemaEncoding": self.schema_encoding,
            "schema": self.schema,
        })
    }

    /// Converts a message of the topic for clients.
    ///
    /// # Errors
    /// The message does not match its type.
    pub fn payload<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let json = |value: Value| Ok(Cow::Owned(value.to_string().into_bytes()));
        match &self.conversion {
            Conversion::Unchanged => Ok(Cow::Borrowed(bytes)),
            Conversion::ToProtobuf(plain) => match to_protobuf(&plain.name, bytes) {
                Ok(Some((_, converted))) => Ok(Cow::Owned(converted)),
                Ok(None) => Err(format!("{} has no corresponding Foxglove message", plain.name)),
                Err(error) => Err(error.to_string()),
            },
            Conversion::PlainToJson(plain) => json(plain.format(bytes)),
            Conversion::BytesToJson => {
                let mut said = json!({"len": bytes.len(), "bytes": BASE64.encode(bytes)});
                let text = std::str::from_utf8(bytes).ok();
                if let Some(text) = text.filter(|text| text.len() <= MAX_TEXT_LEN_BYTES) {
                    said["text"] = text.into();
                }
                json(said)
            }
        }
    }
}

/// The Foxglove message of the same meaning as a plain type.
fn foxglove_counterpart(plain: &PlainType) -> Option<Schema> {
    let ty = match plain.name.as_str() {
        "rnet.msgs.Image" => RawImage::message_type(),
        "rnet.msgs.PointCloud" => PointCloud::message_type(),
        _ => return None,
    };
    ty.ok()?.schema().cloned()
}

/// The JSON schema of a plain type; it describes the output of [`PlainType::format`].
fn json_schema_of(plain: &PlainType) -> Value {
    let fields = plain.fields.iter().filter(|field| !field.is_padding());
    let mut properties: Map<String, Value> =
        fields.map(|field| (field.name.clone(), json_schema_of_field(&field.ty))).collect();
    if plain.tail {
        properties.insert("_data_len".to_owned(), json!({"type": "integer"}));
    }
    json!({"type": "object", "title": plain.name, "properties": properties})
}

fn json_schema_of_field(ty: &FieldType) -> Value {
    match ty {
        FieldType::Prim(Prim::Bool) => json!({"type": "boolean"}),
        FieldType::Prim(Prim::F32 | Prim::F64) => json!({"type": "number"}),
        FieldType::Prim(_) => json!({"type": "integer"}),
        FieldType::Struct(plain) => json_schema_of(plain),
        FieldType::Array { of, .. } => json!({"type": "array", "items": json_schema_of_field(of)}),
    }
}

/// Converts a client's data to a message of a type.
///
/// # Errors
/// The data does not match the type; the encoding is neither `protobuf` nor `json`, or does not support the
/// type.
pub fn decode_from_client(
    ty: &MessageType,
    encoding: &str,
    data: &[u8],
) -> Result<Vec<u8>, String> {
    let value = || -> Result<Value, String> {
        serde_json::from_slice(data).map_err(|error| format!("it is not valid JSON: {error}"))
    };
    match (ty, encoding) {
        (MessageType::Raw, _) => Ok(data.to_vec()),
        (MessageType::Protobuf(schema), PROTOBUF) => match Dynamic::decode(schema, data) {
            Ok(_) => Ok(data.to_vec()),
            Err(error) => Err(format!("it is not a valid {}: {error}", schema.name())),
        },
        (MessageType::Protobuf(schema), JSON) => match Dynamic::from_json(schema, &value()?) {
            Ok(message) => Ok(message.encode()),
            Err(error) => Err(format!("it is not a valid {}: {error}", schema.name())),
        },
        (MessageType::Plain(plain), JSON) => {
            let wrong = |error: rnet::Error| format!("it is not a valid {}: {error}", plain.name);
            let bytes = plain.encode(&value()?).map_err(wrong)?;
            if let Some(described) = HeaderDescription::find(plain) {
                described.check(&bytes).map_err(wrong)?;
            }
            Ok(bytes)
        }
        (ty, encoding) => Err(format!(
            "{encoding:.40?} is not an encoding of {}; use json{}",
            ty.desc(),
            if ty.schema().is_some() { " or protobuf" } else { "" }
        )),
    }
}

/// Encodes a message of a type for a client that requested this encoding.
///
/// # Errors
/// The message does not match the type.
pub fn encode_for_client(
    ty: &MessageType,
    encoding: &str,
    bytes: &[u8],
) -> Result<Vec<u8>, String> {
    match (ty, encoding) {
        (MessageType::Protobuf(schema), JSON) => {
            let message = Dynamic::decode(schema, bytes)
                .map_err(|error| format!("the reply is not a valid {}: {error}", schema.name()))?;
            let options =
                JsonOptions { proto_names: true, defaults: true, ..JsonOptions::default() };
            Ok(message.to_json(&options).to_string().into_bytes())
        }
        (MessageType::Plain(plain), _) => Ok(plain.format(bytes).to_string().into_bytes()),
        _ => Ok(bytes.to_vec()),
    }
}

/// The description of a service's requests or replies.
pub fn describe_call_type(ty: &MessageType) -> Value {
    let format = match ty {
        MessageType::Plain(plain) => {
            ChannelFormat::json(&plain.name, &json_schema_of(plain), Conversion::Unchanged)
        }
        // Requests of bytes are sent as they are, whatever their declared encoding.
        MessageType::Raw => ChannelFormat::json("bytes", &json!({}), Conversion::Unchanged),
        MessageType::Protobuf(_) => ChannelFormat::of(ty),
    };
    format.advertisement()
}

/// The type that a client describes for its own channel.
///
/// # Errors
/// The description is invalid.
pub fn parse_client_schema(
    name: &str,
    encoding: &str,
    schema: &str,
) -> Result<Option<MessageType>, String> {
    if encoding != PROTOBUF || schema.is_empty() {
        return Ok(None);
    }
    let set =
        BASE64.decode(schema).map_err(|error| format!("the schema is not base64: {error}"))?;
    let schema = Schema::from_descriptor_set(&set, name);
    let schema = schema.map_err(|error| format!("the schema of {name:.80} is invalid: {error}"))?;
    Ok(Some(schema.into()))
}

/// The built-in message type of this name.
pub fn built_in_type(name: &str) -> Option<MessageType> {
    let (package, message) = name.rsplit_once('.')?;
    let file = format!("{}/{message}.proto", package.replace('.', "/"));
    let file = rnet::schema::builtin_files().find(|path| *path == file)?;
    let text = format!("syntax = \"proto3\"; import \"{file}\";");
    let compiled = rnet::schema::compile_text("asked.proto", &text).ok()?;
    compiled.schema(name).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnet::msgs::plain::Image;

    #[derive(Clone, Copy, rnet::Plain)]
    #[repr(C)]
    struct Leg {
        force: f64,
        joints: [i16; 4],
    }

    #[test]
    fn converts_plain_message_to_json_with_schema() {
        let ty = <Leg as Message>::message_type().unwrap();
        let format = ChannelFormat::of(&ty);
        let schema: Value = serde_json::from_str(&format.schema).unwrap();
        assert_eq!(schema["properties"]["force"], json!({"type": "number"}));
        assert_eq!(schema["properties"]["joints"]["items"]["type"], "integer");
        let bytes =
            decode_from_client(&ty, JSON, br#"{"force": 1.5, "joints": [1, 2, 3, 4]}"#).unwrap();
        let value: Value = serde_json::from_slice(&format.payload(&bytes).unwrap()).unwrap();
        assert_eq!(value, json!({"force": 1.5, "joints": [1, 2, 3, 4]}));
        let why = decode_from_client(&ty, PROTOBUF, &bytes).unwrap_err();
        assert!(why.contains("not an encoding") && why.contains("json"), "{why}");
        let why = decode_from_client(&ty, JSON, br#"{"froce": 1}"#).unwrap_err();
        assert!(why.contains("froce"), "{why}");
    }

    #[test]
    fn converts_image_to_foxglove_message() {
        let mut message = Image::new(1, 1, "mono8").unwrap().header_bytes().to_vec();
        message.push(9);
        let format =
            ChannelFormat::of(&MessageType::Plain(<Image as rnet::PlainHeader>::header_type()));
        assert_eq!((&*format.encoding, &*format.schema_name), (PROTOBUF, "foxglove.RawImage"));
        let payload = format.payload(&message).unwrap();
        let schema =
            parse_client_schema("foxglove.RawImage", PROTOBUF, &format.schema).unwrap().unwrap();
        assert!(decode_from_client(&schema, PROTOBUF, &payload).is_ok());
        assert!(format.payload(&message[..20]).is_err());
    }

    #[test]
    fn rejects_invalid_client_data() {
        for (name, schema, why) in
            [("a.B", "!", "base64"), ("a.B", "AAAA", "a.B"), ("", "", "")].into_iter().take(2)
        {
            let error = parse_client_schema(name, PROTOBUF, schema).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let ty = built_in_type("foxglove.Vector3").unwrap();
        assert!(decode_from_client(&ty, JSON, br#"{"x": 1, "w": 2}"#).unwrap_err().contains('w'));
        assert!(decode_from_client(&ty, "cdr", b"").unwrap_err().contains("cdr"));
        assert!(built_in_type("foxglove.Nonsense").is_none());
        assert!(built_in_type("Vector3").is_none());
    }
}
