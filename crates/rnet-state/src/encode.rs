//! Encodes and decodes values. docs/design/state-values.md describes every byte.
//!
//! The decoder reads shared memory that any process of the domain may write. It trusts nothing, and the
//! length of the input bounds its allocations.

use std::cmp::Ordering;

use rnet_core::{MAX_VALUE_DEPTH, MAX_VALUE_ITEMS};

use super::Value;

/// The kinds of values, as stored in shared memory and on disk. Their numbers never change.
pub(crate) mod kind {
    pub(crate) const BOOL: u16 = 1;
    pub(crate) const INT: u16 = 2;
    pub(crate) const FLOAT: u16 = 3;
    pub(crate) const STR: u16 = 4;
    pub(crate) const BYTES: u16 = 5;
    pub(crate) const JSON: u16 = 6;
    pub(crate) const LIST: u16 = 7;
    pub(crate) const SET: u16 = 8;
    pub(crate) const MESSAGE: u16 = 9;
    /// The description of a message type; only under keys that start with `!type/`.
    pub(crate) const TYPE: u16 = 10;
}

/// Maximum nesting of JSON: the limit of serde_json.
const MAX_JSON_DEPTH: usize = 127;

/// Length of the header of each item of a list or set: its kind and its length.
const ITEM_HEAD_LEN_BYTES: usize = 5;

/// The name of a kind.
pub(crate) fn kind_text(of: u16) -> &'static str {
    match of {
        kind::BOOL => "a boolean",
        kind::INT => "an integer",
        kind::FLOAT => "a float",
        kind::STR => "a string",
        kind::BYTES => "bytes",
        kind::JSON => "JSON",
        kind::LIST => "a list",
        kind::SET => "a set",
        kind::MESSAGE => "a message",
        kind::TYPE => "the description of a type",
        _ => "a value of a kind unknown to this version",
    }
}

/// The kind of a value; 0 if it cannot be stored.
pub(crate) fn kind_of(value: &Value) -> u16 {
    match value {
        Value::Bool(_) => kind::BOOL,
        Value::Int(_) => kind::INT,
        Value::Float(_) => kind::FLOAT,
        Value::Str(_) => kind::STR,
        Value::Bytes(_) => kind::BYTES,
        Value::Json(_) => kind::JSON,
        Value::List(_) => kind::LIST,
        Value::Set(_) => kind::SET,
        Value::Message(_) => kind::MESSAGE,
        Value::Unreadable(_) => 0,
    }
}

/// The encoded bytes of a value, borrowed if possible.
pub enum Packed<'a> {
    Fixed([u8; 8], usize),
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
}

impl Packed<'_> {
    pub(crate) fn int(value: i64) -> Packed<'static> {
        Packed::Fixed(value.to_le_bytes(), 8)
    }

    pub(crate) fn float(value: f64) -> Packed<'static> {
        Packed::Fixed(value.to_le_bytes(), 8)
    }

    pub(crate) fn bool(value: bool) -> Packed<'static> {
        Packed::Fixed([u8::from(value), 0, 0, 0, 0, 0, 0, 0], 1)
    }
}

impl std::ops::Deref for Packed<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Packed::Fixed(bytes, len) => &bytes[..*len],
            Packed::Borrowed(bytes) => bytes,
            Packed::Owned(bytes) => bytes,
        }
    }
}

/// Encodes a value; the error states why it cannot be stored.
pub(crate) fn encode(value: &Value) -> Result<Packed<'_>, String> {
    Ok(match value {
        Value::Bool(value) => Packed::bool(*value),
        Value::Int(value) => Packed::int(*value),
        Value::Float(value) => Packed::float(*value),
        Value::Str(text) => Packed::Borrowed(text.as_bytes()),
        Value::Bytes(bytes) => Packed::Borrowed(bytes),
        Value::Json(text) => {
            check_json(text)?;
            Packed::Borrowed(text.as_bytes())
        }
        Value::List(_) | Value::Set(_) => {
            let (mut out, mut items) = (Vec::new(), 0);
            encode_items(value, 1, &mut items, &mut out)?;
            Packed::Owned(out)
        }
        Value::Message(message) => Packed::Borrowed(message.bytes()),
        Value::Unreadable(_) => return Err("an unreadable value cannot be written".to_owned()),
    })
}

fn encode_items(
    value: &Value,
    depth: usize,
    items: &mut usize,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let (values, is_set) = match value {
        Value::List(values) => (values, false),
        Value::Set(values) => (values, true),
        _ => return Err("only lists and sets have items".to_owned()),
    };
    if depth > MAX_VALUE_DEPTH {
        return Err(format!("it is more than {MAX_VALUE_DEPTH} levels deep"));
    }
    *items += values.len();
    if *items > MAX_VALUE_ITEMS {
        return Err(format!("it has more than {MAX_VALUE_ITEMS} items; use keys, or bytes"));
    }
    // MAX_VALUE_ITEMS fits into 32 bits.
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    let mut before: Option<&Value> = None;
    for item in values {
        if is_set {
            check_member(item)?;
            if before.is_some_and(|before| order(before, item).is_ge()) {
                return Err("the members of the set are not in order; use Value::set".to_owned());
            }
            before = Some(item);
        }
        append_item(item, depth, items, out)?;
    }
    Ok(())
}

/// Appends an item of a list at this depth, with its header.
fn append_item(
    item: &Value,
    depth: usize,
    items: &mut usize,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let head = out.len();
    out.extend_from_slice(&[0; ITEM_HEAD_LEN_BYTES]);
    match item {
        Value::List(_) | Value::Set(_) => encode_items(item, depth + 1, items, out)?,
        Value::Message(_) => {
            return Err("a list cannot hold messages; store each under its own key".to_owned());
        }
        other => out.extend_from_slice(&encode(other)?),
    }
    let len = out.len() - head - ITEM_HEAD_LEN_BYTES;
    let Ok(len) = u32::try_from(len) else { return Err("it is longer than 4 GiB".to_owned()) };
    // The kinds of values are small numbers.
    out[head] = kind_of(item) as u8;
    out[head + 1..head + ITEM_HEAD_LEN_BYTES].copy_from_slice(&len.to_le_bytes());
    Ok(())
}

/// Whether a value may be a member of a set.
pub(crate) fn check_member(value: &Value) -> Result<(), String> {
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Bytes(_) => {
            Ok(())
        }
        other => Err(format!(
            "a set can hold booleans, numbers, strings and bytes; this is {}",
            other.type_text()
        )),
    }
}

/// The order of values in a set: any total order.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (a, b) => kind_of(a).cmp(&kind_of(b)),
    }
}

/// Decodes a value, except for messages, which need their type; the error states the fault.
pub(crate) fn decode(of: u16, bytes: &[u8]) -> Result<Value, String> {
    match of {
        kind::BOOL => boolean(bytes).map(Value::Bool),
        kind::INT => Ok(Value::Int(i64::from_le_bytes(eight_bytes(of, bytes)?))),
        kind::FLOAT => Ok(Value::Float(f64::from_le_bytes(eight_bytes(of, bytes)?))),
        kind::STR => text(bytes).map(|text| Value::Str(text.to_owned())),
        kind::BYTES => Ok(Value::Bytes(bytes.to_vec())),
        kind::JSON => {
            let text = text(bytes)?;
            check_json(text)?;
            Ok(Value::Json(text.to_owned()))
        }
        kind::LIST | kind::SET => {
            let mut items = 0;
            decode_items(of, bytes, 1, &mut items)
        }
        other => Err(format!("it is {}", kind_text(other))),
    }
}

#[inline]
pub(crate) fn boolean(bytes: &[u8]) -> Result<bool, String> {
    match bytes {
        [byte @ (0 | 1)] => Ok(*byte == 1),
        _ => Err(wrong_len(kind::BOOL, bytes.len())),
    }
}

#[inline]
pub(crate) fn eight_bytes(of: u16, bytes: &[u8]) -> Result<[u8; 8], String> {
    bytes.try_into().map_err(|_| wrong_len(of, bytes.len()))
}

#[cold]
pub(crate) fn wrong_len(of: u16, len: usize) -> String {
    format!("its {len} bytes are not {}", kind_text(of))
}

/// The bytes as text; the error states the fault.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes)
        .map_err(|error| format!("it is not UTF-8 from byte {} on", error.valid_up_to()))
}

fn decode_items(of: u16, bytes: &[u8], depth: usize, items: &mut usize) -> Result<Value, String> {
    if depth > MAX_VALUE_DEPTH {
        return Err(format!("it is more than {MAX_VALUE_DEPTH} levels deep"));
    }
    let mut rest = Items::of(bytes)?;
    *items += rest.remaining;
    if *items > MAX_VALUE_ITEMS {
        return Err(format!("it has more than {MAX_VALUE_ITEMS} items"));
    }
    let mut values: Vec<Value> = Vec::with_capacity(rest.remaining);
    while let Some((item_kind, item)) = rest.next_item()? {
        let value = match item_kind {
            kind::LIST | kind::SET => decode_items(item_kind, item, depth + 1, items)?,
            other => decode(other, item)?,
        };
        if of == kind::SET {
            check_member(&value)?;
            if values.last().is_some_and(|before| order(before, &value).is_ge()) {
                return Err("the members of the set are not in order".to_owned());
            }
        }
        values.push(value);
    }
    Ok(if of == kind::SET { Value::Set(values) } else { Value::List(values) })
}

/// Iterates over the items of an encoded list or set.
pub(super) struct Items<'a> {
    /// Number of remaining items.
    pub(super) remaining: usize,
    pub(super) rest: &'a [u8],
}

impl<'a> Items<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Result<Items<'a>, String> {
        let Some((count, rest)) = bytes.split_first_chunk::<4>() else {
            return Err("it is truncated before its item count".to_owned());
        };
        let remaining = u32::from_le_bytes(*count) as usize;
        // Each item takes at least a header, so the count cannot exceed the length of the input.
        if remaining > rest.len() / ITEM_HEAD_LEN_BYTES {
            return Err(format!("it declares {remaining} items but is too short for them"));
        }
        Ok(Items { remaining, rest })
    }

    /// The kind and bytes of the next item.
    pub(super) fn next_item(&mut self) -> Result<Option<(u16, &'a [u8])>, String> {
        if self.remaining == 0 {
            return match self.rest.len() {
                0 => Ok(None),
                more => Err(format!("{more} bytes follow its last item")),
            };
        }
        let cut = || "it is truncated within an item".to_owned();
        let (head, rest) = self.rest.split_first_chunk::<ITEM_HEAD_LEN_BYTES>().ok_or_else(cut)?;
        let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let (item, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
        (self.remaining, self.rest) = (self.remaining - 1, rest);
        Ok(Some((u16::from(head[0]), item)))
    }
}

/// Appends an item to an encoded list and drops its first items beyond `max`; also returns the number of
/// items.
pub(crate) fn push_item(list: &[u8], item: &Value, max: usize) -> Result<(Vec<u8>, usize), String> {
    let mut items =
        if list.is_empty() { Items { remaining: 0, rest: &[] } } else { Items::of(list)? };
    let keep = items.remaining.min(max - 1);
    while items.remaining > keep {
        items.next_item()?;
    }
    let mut out = Vec::with_capacity(list.len() + 64);
    out.extend_from_slice(&(keep as u32 + 1).to_le_bytes());
    out.extend_from_slice(items.rest);
    append_item(item, 1, &mut 0, &mut out)?;
    Ok((out, keep + 1))
}

/// Checks that a text is JSON within the depth limit of all readers; the error states the fault and its
/// position.
pub(crate) fn check_json(text: &str) -> Result<(), String> {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if deepest > MAX_JSON_DEPTH {
        return Err(format!("the JSON is more than {MAX_JSON_DEPTH} levels deep"));
    }
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map(drop)
        .map_err(|error| format!("it is not JSON: {error}"))
}
