//! The JSON forms of the well-known types, as Python's protobuf runtime writes them.
//!
//! Some values have no such form: a time out of range, a NaN in a `Value`, an `Any` of an unknown type.

use super::{AnyDepth, JsonOptions, is_well_known, object, value_within};
use crate::limits::MAX_DECODE_DEPTH;
use prost_reflect::{DynamicMessage, ReflectMessage, SerializeOptions};
use serde_json::value::Serializer;
use serde_json::{Map, Value as Json};

/// The JSON form of a message of a well-known type; `None` if its value has none.
pub(super) fn well_known_json(
    message: &DynamicMessage,
    options: &JsonOptions,
    any: AnyDepth,
) -> Option<Json> {
    let descriptor = message.descriptor();
    match descriptor.name() {
        "Any" => any_json(message, options, any),
        // prost-reflect would write a different time.
        "Timestamp" | "Duration" if !is_normal(message) => None,
        "FieldMask" => field_mask(message).map(Json::String),
        "Timestamp" | "Duration" | "Empty" | "Struct" | "ListValue" | "Value" => {
            // The options do not affect these types.
            message.serialize_with_options(Serializer, &SerializeOptions::new()).ok()
        }
        // The wrapper types.
        _ => {
            let field = descriptor.get_field_by_name("value")?;
            Some(value_within(&message.get_field(&field), &field.kind(), options, any))
        }
    }
}

/// Whether the nanoseconds are in range: less than a second, and not negative, or for a duration with the
/// sign of its seconds.
fn is_normal(time: &DynamicMessage) -> bool {
    let [seconds, nanos] = ["seconds", "nanos"].map(|name| time.get_field_by_name(name));
    let seconds = seconds.and_then(|value| value.as_i64()).unwrap_or_default();
    let nanos = i64::from(nanos.and_then(|value| value.as_i32()).unwrap_or_default());
    let sign = if time.descriptor().name() == "Duration" { seconds.signum() } else { 1 };
    nanos.abs() < 1_000_000_000 && sign * nanos.signum() >= 0
}

fn field_mask(message: &DynamicMessage) -> Option<String> {
    let paths = message.get_field_by_name("paths")?;
    let paths = paths.as_list()?.iter().map(|path| camel_case(path.as_str()?));
    Some(paths.collect::<Option<Vec<String>>>()?.join(","))
}

/// `a_b.c` as `aB.c`; `None` for a name that does not convert back.
fn camel_case(path: &str) -> Option<String> {
    let mut out = String::with_capacity(path.len());
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '_' => out.extend(chars.next().filter(|next| next.is_lowercase())?.to_uppercase()),
            c if c.is_uppercase() => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

fn any_json(message: &DynamicMessage, options: &JsonOptions, any: AnyDepth) -> Option<Json> {
    if message.fields().next().is_none() {
        return Some(Json::Object(Map::new()));
    }
    // The decoder does not walk its bytes, so nested Any messages are counted here.
    let inside = AnyDepth(any.0 + 1);
    if inside.0 > MAX_DECODE_DEPTH {
        return None;
    }
    let url = message.get_field_by_name("type_url")?;
    let url = url.as_str()?;
    let name = url.rsplit('/').next()?;
    let descriptor = message.descriptor().parent_pool().get_message_by_name(name)?;
    let bytes = message.get_field_by_name("value")?;
    let inner = DynamicMessage::decode(descriptor, bytes.as_bytes()?.clone()).ok()?;
    let mut fields = Map::from_iter([("@type".to_owned(), Json::from(url))]);
    // Empty has the form of a message without fields.
    if is_well_known(name) && name != "google.protobuf.Empty" {
        fields.insert("value".to_owned(), well_known_json(&inner, options, inside)?);
    } else {
        fields.append(&mut object(&inner, options, inside));
    }
    Some(Json::Object(fields))
}
