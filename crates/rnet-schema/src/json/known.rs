//! The types that the JSON mapping of proto3 treats by their name, in the form that Python's protobuf runtime gives them.
//!
//! A value without such a form has none here either: a time out of range, a NaN in a `Value`, an `Any` of a type that is
//! not known.

use super::{Any, JsonOptions, is_well_known, object, sorted, value_within};
use crate::limits::MAX_DECODE_DEPTH;
use crate::path::key_text;
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value};
use serde_json::{Map, Value as Json};
use std::collections::HashMap;

const MAX_DURATION_S: u64 = 315_576_000_000;
/// 0001-01-01 and the last second of 9999.
const TIMESTAMP_S: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const NANOS_PER_S: u32 = 1_000_000_000;
const S_PER_DAY: i64 = 86_400;

/// The form of a message of a well-known type; `None` if its value has none.
pub(super) fn form(message: &DynamicMessage, options: &JsonOptions, any: Any) -> Option<Json> {
    let descriptor = message.descriptor();
    match descriptor.name() {
        "Any" => any_form(message, options, any),
        "Timestamp" => timestamp(message).map(Json::String),
        "Duration" => duration(message).map(Json::String),
        "FieldMask" => field_mask(message).map(Json::String),
        "Empty" => Some(Json::Object(Map::new())),
        "Struct" => struct_form(message),
        "ListValue" => list_form(message),
        "Value" => value_form(message),
        // The wrappers.
        _ => {
            let field = descriptor.get_field_by_name("value")?;
            Some(value_within(&message.get_field(&field), &field.kind(), options, any))
        }
    }
}

/// Seconds and nanoseconds of a time.
fn parts(message: &DynamicMessage) -> Option<(i64, i32)> {
    let seconds = message.get_field_by_name("seconds")?.as_i64()?;
    Some((seconds, message.get_field_by_name("nanos")?.as_i32()?))
}

/// The decimals of a second: none, 3, 6 or 9 of them.
fn fraction(nanos: u32) -> String {
    match nanos {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    }
}

fn duration(message: &DynamicMessage) -> Option<String> {
    let (seconds, nanos) = parts(message)?;
    let signs_differ = seconds.signum() * i64::from(nanos.signum()) < 0;
    let (whole, part) = (seconds.unsigned_abs(), nanos.unsigned_abs());
    if whole > MAX_DURATION_S || part >= NANOS_PER_S || signs_differ {
        return None;
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    Some(format!("{sign}{whole}{}s", fraction(part)))
}

fn timestamp(message: &DynamicMessage) -> Option<String> {
    let (seconds, nanos) = parts(message)?;
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < NANOS_PER_S)?;
    if !TIMESTAMP_S.contains(&seconds) {
        return None;
    }
    let (year, month, day) = date(seconds.div_euclid(S_PER_DAY));
    let second = seconds.rem_euclid(S_PER_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = fraction(nanos);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// Year, month and day of a day that is counted from 1970-01-01, in the Gregorian calendar.
fn date(day: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is the last of one; 400 of them have 146,097 days.
    const DAYS_400: i64 = 146_097;
    // From 0000-03-01 to 1970-01-01.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(DAYS_400), day.rem_euclid(DAYS_400));
    let year = (day - day / 1_460 + day / 36_524 - day / (DAYS_400 - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // The months from March on have 31, 30, 31, 30, 31 days, again and again.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + next, month, day)
}

fn field_mask(message: &DynamicMessage) -> Option<String> {
    let paths = message.get_field_by_name("paths")?;
    let paths = paths.as_list()?.iter().map(|path| camel_case(path.as_str()?));
    Some(paths.collect::<Option<Vec<String>>>()?.join(","))
}

/// `a_b.c` as `aB.c`; `None` for a name that would not be the same when it is read back.
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

fn struct_form(message: &DynamicMessage) -> Option<Json> {
    let fields = message.get_field_by_name("fields")?;
    let entries: &HashMap<MapKey, Value> = fields.as_map()?;
    let form =
        |(key, value): (&MapKey, &Value)| Some((key_text(key), value_form(value.as_message()?)?));
    sorted(entries).into_iter().map(form).collect::<Option<Map<String, Json>>>().map(Json::Object)
}

fn list_form(message: &DynamicMessage) -> Option<Json> {
    let values = message.get_field_by_name("values")?;
    let forms = values.as_list()?.iter().map(|value| value_form(value.as_message()?));
    forms.collect::<Option<Vec<Json>>>().map(Json::Array)
}

fn value_form(message: &DynamicMessage) -> Option<Json> {
    let Some((field, value)) = message.fields().next() else { return Some(Json::Null) };
    match (field.name(), value) {
        ("null_value", _) => Some(Json::Null),
        ("bool_value", Value::Bool(yes)) => Some(Json::from(*yes)),
        // It would be read back as a string.
        ("number_value", Value::F64(number)) => number.is_finite().then(|| Json::from(*number)),
        ("string_value", Value::String(text)) => Some(Json::from(text.as_str())),
        ("struct_value", Value::Message(inner)) => struct_form(inner),
        ("list_value", Value::Message(inner)) => list_form(inner),
        _ => None,
    }
}

fn any_form(message: &DynamicMessage, options: &JsonOptions, any: Any) -> Option<Json> {
    if message.fields().next().is_none() {
        return Some(Json::Object(Map::new()));
    }
    // Its bytes are not walked by the decoder, so what is packed in what is packed is counted here.
    let inside = Any(any.0 + 1);
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
    // Empty has the form of any message without fields.
    if is_well_known(name) && name != "google.protobuf.Empty" {
        fields.insert("value".to_owned(), form(&inner, options, inside)?);
    } else {
        fields.append(&mut object(&inner, options, inside));
    }
    Some(Json::Object(fields))
}
