//! Converts messages to and from JSON: the proto3 mapping (<https://protobuf.dev/programming-guides/json/>),
//! with options.
//!
//! The output equals that of Python's protobuf runtime, including the digits. prost-reflect parses the
//! well-known types (`google.protobuf.Timestamp` and similar); this module walks the enclosing fields, so
//! that an error contains the field path.

mod well_known;

use crate::error::ValueError;
use crate::limits::MAX_DECODE_DEPTH;
use crate::path::{key_text, known_fields, map_key};
use crate::protobuf_compatibility::join;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{
    DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    ReflectMessage, Value,
};
use serde_json::{Map, Value as Json};
use std::collections::HashMap;

/// Options of the output. The default is the exact proto3 mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// Field names as in the `.proto` file (`frame_id`), not `frameId`.
    pub proto_names: bool,
    /// Include unset fields with their default values.
    pub defaults: bool,
    /// Write 64-bit integers as numbers. The mapping uses strings, because JavaScript numbers are less
    /// precise.
    pub plain_integers: bool,
}

/// A type with a special JSON form. The schema checks ensure that a type with such a name is the real one.
pub(crate) fn is_well_known(full_name: &str) -> bool {
    let Some(name) = full_name.strip_prefix("google.protobuf.") else { return false };
    matches!(
        name,
        "Any" | "Timestamp" | "Duration" | "Struct" | "ListValue" | "Value" | "FieldMask" | "Empty"
    ) || matches!(name, "FloatValue" | "DoubleValue" | "Int32Value" | "Int64Value" | "UInt32Value")
        || matches!(name, "UInt64Value" | "BoolValue" | "StringValue" | "BytesValue")
}

/// Number of messages of type `Any` around the current value.
#[derive(Clone, Copy)]
struct AnyDepth(usize);

pub(crate) fn message(message: &DynamicMessage, options: &JsonOptions) -> Json {
    message_within(message, options, AnyDepth(0))
}

/// A value; `kind` is its type, or the type of its elements.
pub(crate) fn value(value: &Value, kind: &Kind, options: &JsonOptions) -> Json {
    value_within(value, kind, options, AnyDepth(0))
}

fn message_within(message: &DynamicMessage, options: &JsonOptions, any: AnyDepth) -> Json {
    if is_well_known(message.descriptor().full_name())
        && let Some(json) = well_known::well_known_json(message, options, any)
    {
        return json;
    }
    // A time out of range, or an Any of an unknown type, has no special form: write its fields.
    Json::Object(object(message, options, any))
}

/// The fields of a message.
fn object(message: &DynamicMessage, options: &JsonOptions, any: AnyDepth) -> Map<String, Json> {
    let mut object = Map::new();
    for field in message.descriptor().fields() {
        let shown = message.has_field(&field) || (options.defaults && !field.supports_presence());
        if shown {
            let name = if options.proto_names { field.name() } else { field.json_name() };
            let json = value_within(&message.get_field(&field), &field.kind(), options, any);
            object.insert(name.to_owned(), json);
        }
    }
    object
}

fn value_within(value: &Value, kind: &Kind, options: &JsonOptions, any: AnyDepth) -> Json {
    let wide =
        |text: String, json: Json| if options.plain_integers { json } else { Json::String(text) };
    match value {
        Value::Bool(v) => Json::from(*v),
        Value::I32(v) => Json::from(*v),
        Value::U32(v) => Json::from(*v),
        Value::I64(v) => wide(v.to_string(), Json::from(*v)),
        Value::U64(v) => wide(v.to_string(), Json::from(*v)),
        Value::F32(v) => float(shortest(*v)),
        Value::F64(v) => float(*v),
        Value::String(v) => Json::from(v.as_str()),
        Value::Bytes(v) => Json::String(STANDARD.encode(v)),
        Value::EnumNumber(number) => enum_value(*number, kind),
        Value::Message(inner) => message_within(inner, options, any),
        Value::List(values) => {
            Json::Array(values.iter().map(|v| value_within(v, kind, options, any)).collect())
        }
        Value::Map(entries) => {
            let inner = value_kind(kind);
            let entries = sorted(entries).into_iter();
            let shown = |(k, v)| (key_text(k), value_within(v, &inner, options, any));
            Json::Object(entries.map(shown).collect())
        }
    }
}

/// The value type of a map whose entries have the type `kind`.
pub(crate) fn value_kind(kind: &Kind) -> Kind {
    let entry = kind.as_message().filter(|message| message.is_map_entry());
    entry.map_or_else(|| kind.clone(), |entry| entry.map_entry_value_field().kind())
}

fn enum_value(number: i32, kind: &Kind) -> Json {
    let Some(of) = kind.as_enum() else { return Json::from(number) };
    match of.get_value(number) {
        _ if of.full_name() == "google.protobuf.NullValue" => Json::Null,
        Some(known) => Json::from(known.name()),
        None => Json::from(number),
    }
}

/// The shortest decimal, with at least six digits, that parses to this number: 0.1 for 0.1_f32.
fn shortest(v: f32) -> f64 {
    let rounded = |digits: usize| format!("{v:.digits$e}").parse::<f64>().unwrap_or(v.into());
    // One digit precedes the point. Nine digits suffice for every number.
    let same = |decimal: &f64| *decimal as f32 == v;
    (5..8).map(rounded).find(same).unwrap_or_else(|| rounded(8))
}

/// The entries of a map ordered by key: equal messages have equal texts.
pub(crate) fn sorted(entries: &HashMap<MapKey, Value>) -> Vec<(&MapKey, &Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|a, b| a.0.cmp(b.0));
    entries
}

fn float(v: f64) -> Json {
    let word = match v {
        v if v.is_nan() => "NaN",
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => return Json::from(v),
    };
    Json::from(word)
}

fn error(path: &str, why: impl Into<String>) -> ValueError {
    ValueError { path: path.to_owned(), why: why.into() }
}

pub(crate) fn read(
    descriptor: &MessageDescriptor,
    json: &Json,
) -> Result<DynamicMessage, ValueError> {
    read_message(descriptor, json, "", 1)
}

fn read_message(
    descriptor: &MessageDescriptor,
    json: &Json,
    path: &str,
    depth: usize,
) -> Result<DynamicMessage, ValueError> {
    if depth > MAX_DECODE_DEPTH {
        let why =
            format!("messages are nested more than MAX_DECODE_DEPTH = {MAX_DECODE_DEPTH} deep");
        return Err(error(path, why));
    }
    if is_well_known(descriptor.full_name()) {
        return deserialize(descriptor, json).map_err(|e| {
            error(path, format!("it is not a valid {}: {e}", descriptor.full_name()))
        });
    }
    let Json::Object(object) = json else {
        let why = format!(
            "expected an object {{…}} for {}, found {}",
            descriptor.full_name(),
            brief(json)
        );
        return Err(error(path, why));
    };
    let mut message = DynamicMessage::new(descriptor.clone());
    for (name, json) in object {
        let at = join(path, name);
        let field = descriptor.get_field_by_name(name);
        let field = field.or_else(|| descriptor.get_field_by_json_name(name));
        let field = field
            .ok_or_else(|| error(&at, format!("no such field; {}", known_fields(descriptor))))?;
        if message.has_field(&field) {
            return Err(error(&at, "the field is given twice"));
        }
        if let Some(other) = field
            .containing_oneof()
            .and_then(|oneof| oneof.fields().find(|f| *f != field && message.has_field(f)))
        {
            return Err(error(&at, format!("it excludes {}, which is also set", other.name())));
        }
        if let Some(value) = read_field(&field, json, &at, depth)? {
            message.set_field(&field, value);
        }
    }
    Ok(message)
}

fn read_field(
    field: &FieldDescriptor,
    json: &Json,
    at: &str,
    depth: usize,
) -> Result<Option<Value>, ValueError> {
    let null_is_value = matches!(field.kind(), Kind::Message(m) if m.full_name() == "google.protobuf.Value")
        || matches!(field.kind(), Kind::Enum(e) if e.full_name() == "google.protobuf.NullValue");
    if json.is_null() && !(null_is_value && !field.is_list() && !field.is_map()) {
        return Ok(None);
    }
    if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
        return read_map(&entry, json, at, depth).map(Some);
    }
    if !field.is_list() {
        return read_single(field, json, at, depth).map(Some);
    }
    let Json::Array(elements) = json else {
        return Err(error(at, format!("expected a list […], found {}", brief(json))));
    };
    let read = |(i, json)| read_single(field, json, &format!("{at}[{i}]"), depth);
    elements.iter().enumerate().map(read).collect::<Result<_, _>>().map(|l| Some(Value::List(l)))
}

fn read_map(
    entry: &MessageDescriptor,
    json: &Json,
    at: &str,
    depth: usize,
) -> Result<Value, ValueError> {
    let Json::Object(object) = json else {
        return Err(error(
            at,
            format!("expected an object {{…}} for a map, found {}", brief(json)),
        ));
    };
    let (key_kind, value_field) =
        (entry.map_entry_key_field().kind(), entry.map_entry_value_field());
    let mut map = HashMap::with_capacity(object.len());
    for (name, json) in object {
        let at = format!("{at}[{name:?}]");
        let key = map_key(name, &key_kind).ok_or_else(|| {
            error(&at, format!("the key is not of type {key_kind:?}").to_lowercase())
        })?;
        let value = read_field(&value_field, json, &at, depth)?;
        map.insert(key, value.ok_or_else(|| error(&at, "map values cannot be null"))?);
    }
    Ok(Value::Map(map))
}

/// Parses the value of a field, or one element of its list.
fn read_single(
    field: &FieldDescriptor,
    json: &Json,
    at: &str,
    depth: usize,
) -> Result<Value, ValueError> {
    if let Kind::Message(message) = field.kind() {
        return read_message(&message, json, at, depth + 1).map(Value::Message);
    }
    // prost-reflect parses a value only as a field of a message.
    let value = if field.is_list() { Json::Array(vec![json.clone()]) } else { json.clone() };
    let one = Json::Object(Map::from_iter([(field.name().to_owned(), value)]));
    let wrong = |why: String| {
        let known = match field.kind() {
            Kind::Enum(e) => {
                let names: Vec<String> = e.values().take(16).map(|v| v.name().to_owned()).collect();
                format!(" (one of {})", names.join(", "))
            }
            Kind::Bool => " (true or false)".to_owned(),
            _ => String::new(),
        };
        let expected = crate::protobuf_compatibility::type_text(field);
        error(at, format!("expected {expected}{known}, found {}{why}", brief(json)))
    };
    let mut message =
        deserialize(field.parent_message(), &one).map_err(|e| wrong(format!(": {e}")))?;
    match message.take_field(field) {
        Some(Value::List(mut one)) => one.pop().ok_or_else(|| wrong(String::new())),
        value => Ok(value.unwrap_or_else(|| Value::default_value_for_field(field))),
    }
}

fn deserialize(
    descriptor: &MessageDescriptor,
    json: &Json,
) -> Result<DynamicMessage, serde_json::Error> {
    DynamicMessage::deserialize_with_options(descriptor.clone(), json, &DeserializeOptions::new())
}

/// A value for an error text, truncated if long.
fn brief(json: &Json) -> String {
    const MAX_SHOWN: usize = 40;
    let text = json.to_string();
    if text.chars().count() <= MAX_SHOWN {
        return text;
    }
    text.chars().take(MAX_SHOWN).chain(['…']).collect()
}
