//! The newest message of a topic, as JSON.

use std::time::Instant;

use rnet::inspect::ObservedMessage;
use rnet::schema::JsonOptions;
use rnet::{MessageType, Meta};
use rnet_format::value::{
    ReadableFormat, json_options, message_to_json_with, meta_json, readable, units,
};
use rnet_schema::reflect::ReflectSchema;
use serde_json::{Value as Json, json};

use super::sink::{RateLimiter, TopicSink, type_of};
use crate::outbox::Output;
use crate::wire::MAX_MESSAGE_JSON_LEN_BYTES;

/// Maximum length of a decoded message: larger types have their own subscriptions.
const MAX_DECODED_LEN_BYTES: usize = 1 << 20;
/// Maximum number of raw bytes shown.
const MAX_RAW_LEN_BYTES: usize = 1024;
/// Maximum number of fields that may be written with default values.
const MAX_DEFAULTS: usize = 500_000;
/// Limits for list elements and text characters of a message that is too long: the first limit that fits is
/// used.
const CUT_LIMITS: [usize; 3] = [256, 32, 4];

/// Largest integer that JavaScript represents exactly.
const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;

pub struct MessagesSink {
    output: Output,
    rate_limiter: RateLimiter,
    /// The newest message, sent when it is due.
    newest: Option<LatestMessage>,
    is_sent: bool,
}

struct LatestMessage {
    publisher: u64,
    node: String,
    type_name: String,
    ty: Result<MessageType, String>,
    /// Units of its fields, by path.
    units: Json,
    /// The largest number of fields of a message type in its schema.
    max_fields: usize,
    seq: u64,
    sent_s: f64,
    meta: Meta,
    len: usize,
    /// The whole message, unless it is large.
    bytes: Vec<u8>,
}

impl LatestMessage {
    fn new(observed: &ObservedMessage<'_>) -> LatestMessage {
        let ty = type_of(observed);
        let max_fields = match &ty {
            Ok(MessageType::Protobuf(schema)) => {
                let all = schema.descriptor().parent_pool().all_messages();
                all.map(|message| message.fields().len()).max().unwrap_or(0)
            }
            _ => 0,
        };
        LatestMessage {
            publisher: observed.stamp.publisher,
            node: observed.node.to_owned(),
            units: ty.as_ref().map_or(Json::Null, |ty| json!(units(ty))),
            type_name: observed.type_desc.name().unwrap_or("raw").to_owned(),
            ty,
            max_fields,
            seq: 0,
            sent_s: 0.0,
            meta: observed.meta,
            len: 0,
            bytes: Vec::new(),
        }
    }

    /// Without default values if there could be too many: two bytes can encode a nested message with
    /// thousands of fields.
    fn options(&self) -> JsonOptions {
        let defaults = self.bytes.len() / 2 * self.max_fields <= MAX_DEFAULTS;
        JsonOptions { defaults, ..json_options() }
    }

    /// The message as JSON, with text fields of plain types as strings.
    fn json(&self, ty: &MessageType) -> Result<Json, String> {
        match ty {
            MessageType::Plain(plain) if plain.accepts_len(self.bytes.len()) => {
                let writing = ReadableFormat { text: str::to_owned, time: Json::from };
                Ok(readable(plain, &self.bytes, writing))
            }
            ty => message_to_json_with(ty, &self.bytes, &self.options()),
        }
    }

    fn head(&self) -> Json {
        let mut head = json!({
            "node": self.node,
            "seq": self.seq,
            "sent_s": self.sent_s,
            "type": self.type_name,
            "len": self.len,
        });
        if let Some(meta) = meta_json(&self.meta) {
            head["meta"] = exact_integers(meta.into());
        }
        head
    }
}

impl MessagesSink {
    pub fn new(output: Output, hz: f64) -> MessagesSink {
        let (rate_limiter, newest, is_sent) = (RateLimiter::new(hz), None, true);
        MessagesSink { output, rate_limiter, newest, is_sent }
    }

    fn send(&mut self, newest: &LatestMessage) {
        let mut data = newest.head();
        let shown = match &newest.ty {
            Ok(MessageType::Raw) => {
                let shown = newest.bytes.len().min(MAX_RAW_LEN_BYTES);
                let hex = newest.bytes[..shown].iter().map(|byte| format!("{byte:02x}"));
                data["hex"] = hex.collect::<String>().into();
                if shown < newest.len {
                    data["truncated"] = true.into();
                }
                Ok(())
            }
            Ok(_) if newest.len > newest.bytes.len() => {
                data["truncated"] = true.into();
                data["json"] = Json::Null;
                Ok(())
            }
            Ok(ty) => newest.json(ty).map(|json| {
                let (json, is_cut) = cut_to_fit(exact_integers(json));
                data["json"] = json;
                data["units"] = newest.units.clone();
                if is_cut {
                    data["truncated"] = true.into();
                }
            }),
            Err(why) => Err(why.clone()),
        };
        match shown {
            Ok(()) => {
                self.output.clear_error();
                self.output.replace(data.to_string());
            }
            Err(why) => self.output.error_once(format!("{}: {why}", newest.node)),
        }
    }
}

impl TopicSink for MessagesSink {
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        let is_large = bytes.len() > MAX_DECODED_LEN_BYTES;
        // A large message is copied only when it is due.
        if is_large && !self.rate_limiter.is_due(Instant::now()) {
            return;
        }
        let kept = if is_large { &bytes[..MAX_RAW_LEN_BYTES] } else { bytes };
        let mut newest = match self.newest.take() {
            Some(newest) if newest.publisher == observed.stamp.publisher => newest,
            _ => LatestMessage::new(observed),
        };
        (newest.seq, newest.sent_s, newest.meta) = (observed.stamp.seq, sent_s, observed.meta);
        newest.len = bytes.len();
        newest.bytes.clear();
        newest.bytes.extend_from_slice(kept);
        (self.newest, self.is_sent) = (Some(newest), false);
    }

    fn tick(&mut self, now: Instant, _: f64) {
        if self.is_sent || !self.rate_limiter.take(now) {
            return;
        }
        self.is_sent = true;
        if let Some(newest) = self.newest.take() {
            self.send(&newest);
            self.newest = Some(newest);
        }
    }
}

/// Writes integers that JavaScript would round as strings, as the proto3 JSON mapping does.
fn exact_integers(json: Json) -> Json {
    match json {
        Json::Array(items) => items.into_iter().map(exact_integers).collect(),
        Json::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, exact_integers(value))).collect()
        }
        Json::Number(number) => {
            let size = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
            match size.is_some_and(|size| size > MAX_EXACT_INTEGER) {
                true => number.to_string().into(),
                false => number.into(),
            }
        }
        other => other,
    }
}

/// The message, truncated until it is short enough, and whether it was truncated.
fn cut_to_fit(json: Json) -> (Json, bool) {
    let fits = |json: &Json| json.to_string().len() <= MAX_MESSAGE_JSON_LEN_BYTES;
    if fits(&json) {
        return (json, false);
    }
    for limit in CUT_LIMITS {
        let cut = cut(&json, limit);
        if fits(&cut) {
            return (cut, true);
        }
    }
    (Json::Null, true)
}

fn cut(json: &Json, limit: usize) -> Json {
    match json {
        Json::Array(items) => items.iter().take(limit).map(|item| cut(item, limit)).collect(),
        Json::Object(fields) => {
            let fields = fields.iter().take(limit.max(CUT_LIMITS[0]));
            fields.map(|(name, value)| (name.clone(), cut(value, limit))).collect()
        }
        Json::String(text) if text.len() > limit * 4 => {
            text.chars().take(limit * 4).chain(['…']).collect::<String>().into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_large_integers_as_text() {
        let json = json!({"ns": 1_790_000_000_123_456_789_i64, "x": [9_007_199_254_740_991_i64, -9_007_199_254_740_992_i64, u64::MAX, 1e300]});
        let expected = json!({"ns": "1790000000123456789", "x": [9_007_199_254_740_991_i64, "-9007199254740992", "18446744073709551615", 1e300]});
        assert_eq!(exact_integers(json), expected);
    }

    #[test]
    fn truncates_long_message_until_it_fits() {
        let (same, is_cut) = cut_to_fit(json!({"x": [1, 2, 3]}));
        assert_eq!((same, is_cut), (json!({"x": [1, 2, 3]}), false));
        let long: Vec<f64> = vec![0.123_456_789; 100_000];
        let (json, is_cut) = cut_to_fit(json!({"ranges": long, "text": "x".repeat(100_000)}));
        assert!(is_cut && json.to_string().len() <= MAX_MESSAGE_JSON_LEN_BYTES);
        assert_eq!(json["ranges"].as_array().unwrap().len(), CUT_LIMITS[0]);
        let deep = json!(vec![vec![vec![0.5; 40]; 40]; 40]);
        let (json, is_cut) = cut_to_fit(deep);
        assert!(is_cut && json.to_string().len() <= MAX_MESSAGE_JSON_LEN_BYTES);
    }
}
