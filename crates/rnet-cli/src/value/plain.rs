//! A plain message in YAML, with quoted texts and the date of a time as a comment.

use rnet::PlainType;
use rnet::msgs::timestamp_from_ns;
use rnet::schema::text_quoted;
use rnet_monitor::value::ReadableFormat;
use serde_json::Value;

pub fn readable(plain: &PlainType, bytes: &[u8]) -> Value {
    // YAML ignores the comment: the value is the number.
    let time = |ns: i64| Value::String(format!("{ns}  # {}", timestamp_from_ns(ns)));
    rnet_monitor::value::readable(plain, bytes, ReadableFormat { text: text_quoted, time })
}
