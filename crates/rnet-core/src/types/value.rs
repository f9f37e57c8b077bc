//! Converts between bytes of a plain type and JSON values, for `rnet topic echo` and `rnet topic pub`.
//!
//! Not for hot paths: it walks the description and allocates. JSON has no NaN or infinity; they become the
//! strings `"nan"`, `"inf"` and `"-inf"`.

use super::plain_compatibility::join;
use super::{DATA_LEN, FieldType, PlainType, Prim};
use crate::error::{Error, Result};
use crate::limits::MAX_MESSAGE_LEN_BYTES;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The key of the bytes after the header in [`PlainType::encode`].
const DATA_KEY: &str = "_data";

impl PlainType {
    /// The bytes of a message of a compatible type as this type reads them: its first `size` bytes, padded
    /// with zeros if the message is shorter. If the publisher's header is shorter and is followed by data,
    /// pass only the header, because its data is not a field of this type.
    ///
    /// ```
    /// # use rnet_core::PlainType;
    /// let pair = PlainType { name: "Pair".into(), size: 2, align: 1, tail: false, fields: vec![] };
    /// assert_eq!(*pair.fit(&[1, 2, 3]), [1, 2]);
    /// assert_eq!(*pair.fit(&[1]), [1, 0]);
    /// ```
    pub fn fit<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match bytes.get(..self.size) {
            Some(prefix) => Cow::Borrowed(prefix),
            None => {
                let mut filled = vec![0; self.size];
                filled[..bytes.len()].copy_from_slice(bytes);
                Cow::Owned(filled)
            }
        }
    }

    /// Whether a message of this type can have this length, in bytes.
    pub fn accepts_len(&self, len: usize) -> bool {
        if self.tail { len >= self.size } else { len == self.size }
    }

    /// The message as a JSON object, its fields in the order of the description, without padding (`_…`). A
    /// field whose bytes are missing (a message shorter than the type) is `null`. Data after a header is
    /// represented by its length only, as `_data_len`.
    ///
    /// ```
    /// use rnet_core::{Field, FieldType, PlainType, Prim};
    /// let level = PlainType {
    ///     name: "Level".into(),
    ///     size: 4,
    ///     align: 4,
    ///     tail: false,
    ///     fields: vec![Field { name: "volt".into(), offset: 0, ty: FieldType::Prim(Prim::F32) }],
    /// };
    /// let bytes = level.encode(&serde_json::json!({"volt": 24.1}))?;
    /// assert_eq!(level.format(&bytes).to_string(), r#"{"volt":24.1}"#);
    /// # Ok::<(), rnet_core::Error>(())
    /// ```
    pub fn format(&self, bytes: &[u8]) -> Value {
        let shown = self.fields.iter().filter(|field| !field.is_padding());
        let value_of = |field: &super::Field| {
            let slice = bytes.get(field.offset..).and_then(|rest| rest.get(..field.ty.size()));
            slice.map_or(Value::Null, |slice| format_type(&field.ty, slice))
        };
        let mut object: Map<String, Value> =
            shown.map(|field| (field.name.clone(), value_of(field))).collect();
        if self.tail {
            object.insert(DATA_LEN.to_owned(), bytes.len().saturating_sub(self.size).into());
        }
        Value::Object(object)
    }

    /// Encodes a JSON object as the bytes of a message. Omitted fields are zero. An array of `u8` may be
    /// given as text, which is padded with zeros. If data follows the header, `_data` is the array of its
    /// bytes, or `_data_len` the number of zero bytes; the fields that locate the data are not filled in.
    /// Padding (`_…`) stays zero and cannot be given.
    ///
    /// # Errors
    /// [`Error::BadValue`] with the field (`legs[2].force`) and the reason: no such field, not a number, out
    /// of range, an array of another length, more than [`MAX_MESSAGE_LEN_BYTES`] in total.
    pub fn encode(&self, value: &Value) -> Result<Vec<u8>> {
        let part = |name| value.get(name).filter(|_| self.tail);
        let data = part(DATA_KEY).map(data_bytes).transpose()?;
        let said = part(DATA_LEN).map(|len| {
            len.as_u64().ok_or_else(|| {
                value_error(DATA_LEN, format!("{} is not a number of bytes", brief_value(len)))
            })
        });
        let (said, given) = (said.transpose()?, data.as_ref().map(|data| data.len() as u64));
        if let (Some(said), Some(given)) = (said, given)
            && said != given
        {
            return Err(value_error(DATA_LEN, format!("{said}, but {DATA_KEY} has {given} bytes")));
        }
        let data_len = given.or(said).unwrap_or(0);
        let len = u64::try_from(self.size).unwrap_or(u64::MAX).saturating_add(data_len);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > MAX_MESSAGE_LEN_BYTES {
            let why = format!("{len} bytes exceed the limit of {MAX_MESSAGE_LEN_BYTES}");
            return Err(value_error(&self.name, why));
        }
        let mut bytes = vec![0; len];
        if let Some(data) = data {
            bytes[self.size..].copy_from_slice(&data);
        }
        encode_struct(self, value, &mut bytes, "")?;
        Ok(bytes)
    }
}

/// The bytes after a header, from an array of numbers.
fn data_bytes(value: &Value) -> Result<Vec<u8>> {
    let Value::Array(items) = value else {
        return Err(value_error(
            DATA_KEY,
            format!("{} is not an array of bytes", brief_value(value)),
        ));
    };
    let byte = |(index, item): (usize, &Value)| {
        let byte = item.as_u64().and_then(|n| u8::try_from(n).ok());
        byte.ok_or_else(|| {
            value_error(
                &format!("{DATA_KEY}[{index}]"),
                format!("{} is not a byte", brief_value(item)),
            )
        })
    };
    items.iter().enumerate().map(byte).collect()
}

/// `bytes` has the size of `ty`, unless the description is unchecked.
fn format_type(ty: &FieldType, bytes: &[u8]) -> Value {
    match ty {
        FieldType::Prim(prim) => format_prim(*prim, bytes).unwrap_or(Value::Null),
        FieldType::Array { of, .. } => match of.size() {
            0 => Value::Array(Vec::new()),
            size => bytes.chunks_exact(size).map(|element| format_type(of, element)).collect(),
        },
        FieldType::Struct(plain) => plain.format(bytes),
    }
}

fn format_prim(prim: Prim, bytes: &[u8]) -> Option<Value> {
    Some(match prim {
        Prim::U8 => Value::from(*bytes.first()?),
        Prim::Bool => Value::from(*bytes.first()? != 0),
        Prim::I8 => Value::from(i8::from_le_bytes(*bytes.first_chunk()?)),
        Prim::U16 => Value::from(u16::from_le_bytes(*bytes.first_chunk()?)),
        Prim::I16 => Value::from(i16::from_le_bytes(*bytes.first_chunk()?)),
        Prim::U32 => Value::from(u32::from_le_bytes(*bytes.first_chunk()?)),
        Prim::I32 => Value::from(i32::from_le_bytes(*bytes.first_chunk()?)),
        Prim::U64 => Value::from(u64::from_le_bytes(*bytes.first_chunk()?)),
        Prim::I64 => Value::from(i64::from_le_bytes(*bytes.first_chunk()?)),
        Prim::F32 => {
            let v = f32::from_le_bytes(*bytes.first_chunk()?);
            // Converts through the shortest decimal form: 0.1_f32 becomes "0.1", not "0.10000000149011612".
            float_to_json(if v.is_finite() {
                v.to_string().parse().unwrap_or(f64::from(v))
            } else {
                f64::from(v)
            })
        }
        Prim::F64 => float_to_json(f64::from_le_bytes(*bytes.first_chunk()?)),
    })
}

/// A JSON number; non-finite values become `"nan"`, `"inf"` or `"-inf"`.
pub fn float_to_json(v: f64) -> Value {
    if v.is_nan() {
        return Value::from("nan");
    }
    match serde_json::Number::from_f64(v) {
        Some(number) => Value::Number(number),
        None => Value::from(if v > 0.0 { "inf" } else { "-inf" }),
    }
}

fn value_error(path: &str, why: String) -> Error {
    Error::BadValue {
        what: if path.is_empty() { "message".to_owned() } else { format!("field `{path}`") },
        why,
    }
}

/// A short form of a value for messages.
fn brief_value(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::String(s) if s.chars().count() > 40 => {
            format!("{:?}…", s.chars().take(40).collect::<String>())
        }
        other => other.to_string(),
    }
}

fn encode_struct(plain: &PlainType, value: &Value, out: &mut [u8], path: &str) -> Result<()> {
    let Value::Object(object) = value else {
        return Err(value_error(
            path,
            format!("{} is not an object; {} has {}", brief_value(value), plain.name, names(plain)),
        ));
    };
    reject_unknown_fields(plain, object, path)?;
    for field in &plain.fields {
        let Some(value) = object.get(&field.name) else { continue };
        let at = join(path, &field.name);
        let slot = out.get_mut(field.offset..).and_then(|rest| rest.get_mut(..field.ty.size()));
        let slot = slot.ok_or_else(|| {
            value_error(&at, "the type description puts it outside its struct".to_owned())
        })?;
        encode_type(&field.ty, value, slot, &at)?;
    }
    Ok(())
}

fn names(plain: &PlainType) -> String {
    let names: Vec<&str> =
        plain.fields.iter().filter(|f| !f.is_padding()).map(|f| f.name.as_str()).collect();
    if names.is_empty() {
        "no fields".to_owned()
    } else {
        format!("the fields {}", names.join(", "))
    }
}

fn reject_unknown_fields(plain: &PlainType, object: &Map<String, Value>, path: &str) -> Result<()> {
    let known = |key: &str| {
        // Peers rely on zeros in reserved bytes (`plain.reserved_used`), and other padding carries no
        // information.
        (plain.tail && (key == DATA_LEN || key == DATA_KEY))
            || plain.fields.iter().any(|field| field.name == key && !field.is_padding())
    };
    match object.keys().find(|key| !known(key)) {
        Some(key) => Err(value_error(
            &join(path, key),
            format!("no such field; {} has {}", plain.name, names(plain)),
        )),
        None => Ok(()),
    }
}

fn encode_type(ty: &FieldType, value: &Value, out: &mut [u8], path: &str) -> Result<()> {
    match ty {
        FieldType::Prim(prim) => {
            let bytes = encode_prim(*prim, value).map_err(|why| value_error(path, why))?;
            // `out` has the size of the number: `FieldType::size` determined it.
            out.copy_from_slice(&bytes[..out.len()]);
            Ok(())
        }
        FieldType::Array { of, len } => {
            if let (FieldType::Prim(Prim::U8), Value::String(text)) = (&**of, value) {
                return encode_text(text, out).map_err(|why| value_error(path, why));
            }
            let Value::Array(items) = value else {
                return Err(value_error(
                    path,
                    format!("{} is not an array of {len}", brief_value(value)),
                ));
            };
            if items.len() != *len as usize {
                return Err(value_error(
                    path,
                    format!("{} elements, but {ty} has {len}", items.len()),
                ));
            }
            let size = of.size().max(1);
            for (index, (item, slot)) in items.iter().zip(out.chunks_exact_mut(size)).enumerate() {
                encode_type(of, item, slot, &format!("{path}[{index}]"))?;
            }
            Ok(())
        }
        FieldType::Struct(plain) => encode_struct(plain, value, out, path),
    }
}

/// Copies a text without zero bytes; the rest of `out` stays zero.
fn encode_text(text: &str, out: &mut [u8]) -> std::result::Result<(), String> {
    if text.contains('\0') {
        return Err("the text contains a zero byte".to_owned());
    }
    let most = out.len();
    let place = out
        .get_mut(..text.len())
        .ok_or_else(|| format!("the text has {} bytes; at most {most} fit", text.len()))?;
    place.copy_from_slice(text.as_bytes());
    Ok(())
}

/// The bytes of a number, at the start of the returned 8 bytes. In little endian the low bytes come first at
/// any width.
fn encode_prim(prim: Prim, value: &Value) -> std::result::Result<[u8; 8], String> {
    let unsigned = |max: u64| match value.as_u64() {
        Some(v) if v <= max => Ok(v.to_le_bytes()),
        _ => Err(format!(
            "{} is not an integer from 0 to {max} ({})",
            brief_value(value),
            prim.name()
        )),
    };
    let signed = |min: i64, max: i64| match value.as_i64() {
        Some(v) if (min..=max).contains(&v) => Ok(v.to_le_bytes()),
        _ => Err(format!(
            "{} is not an integer from {min} to {max} ({})",
            brief_value(value),
            prim.name()
        )),
    };
    match prim {
        Prim::U8 => unsigned(u8::MAX.into()),
        Prim::U16 => unsigned(u16::MAX.into()),
        Prim::U32 => unsigned(u32::MAX.into()),
        Prim::U64 => unsigned(u64::MAX),
        Prim::I8 => signed(i8::MIN.into(), i8::MAX.into()),
        Prim::I16 => signed(i16::MIN.into(), i16::MAX.into()),
        Prim::I32 => signed(i32::MIN.into(), i32::MAX.into()),
        Prim::I64 => signed(i64::MIN, i64::MAX),
        Prim::Bool => match value {
            Value::Bool(v) => Ok(u64::from(*v).to_le_bytes()),
            _ => Err(format!("{} is neither true nor false", brief_value(value))),
        },
        Prim::F64 => Ok(float_from_json(value)?.to_le_bytes()),
        Prim::F32 => {
            let wide = float_from_json(value)?;
            let narrow = wide as f32;
            if wide.is_finite() && !narrow.is_finite() {
                return Err(format!("{} is outside the range of f32", brief_value(value)));
            }
            Ok(u64::from(narrow.to_bits()).to_le_bytes())
        }
    }
}

/// Parses a float from JSON: a number, or a word of [`float_to_json`] in any case, also with `+` or as
/// `infinity`.
///
/// # Errors
/// A text that describes the given value.
pub fn float_from_json(value: &Value) -> std::result::Result<f64, String> {
    let special = value.as_str().and_then(|s| match s.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "+inf" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    });
    special.or_else(|| value.as_f64()).ok_or_else(|| {
        format!("{} is not a number (or \"nan\", \"inf\", \"-inf\")", brief_value(value))
    })
}
