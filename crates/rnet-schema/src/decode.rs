//! Decodes untrusted bytes to a message.
//!
//! A validation pass walks the bytes by type before anything is built. It knows its position, so that an
//! error contains the byte and the field, and it counts the values, because a value of two bytes on the wire
//! takes tens of bytes in memory.

use crate::Schema;
use crate::error::DecodeError;
use crate::limits::{
    DECODE_VALUES_PER_MESSAGE, MAX_DECODE_DEPTH, MAX_DECODE_LEN_BYTES, MAX_DECODE_NUMBERS,
    MAX_DECODE_VALUES,
};
use crate::wire::{Fault, Reader, WireKind, WireValue, packed};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};

/// Limits for decoding one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum length of the message, in bytes.
    pub max_len_bytes: usize,
    /// Maximum nesting of messages; the message itself counts as 1.
    pub max_depth: usize,
    /// Maximum number of values: fields, elements, entries. A nested message counts as
    /// `DECODE_VALUES_PER_MESSAGE`; numbers of packed lists do not count.
    pub max_values: usize,
    /// Maximum number of numbers in packed lists.
    pub max_numbers: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            max_len_bytes: MAX_DECODE_LEN_BYTES,
            max_depth: MAX_DECODE_DEPTH,
            max_values: MAX_DECODE_VALUES,
            max_numbers: MAX_DECODE_NUMBERS,
        }
    }
}

pub(crate) fn decode(
    schema: &Schema,
    bytes: &[u8],
    limits: &DecodeLimits,
) -> Result<DynamicMessage, DecodeError> {
    validate(schema, bytes, limits)?;
    DynamicMessage::decode(schema.descriptor().clone(), bytes).map_err(|error| {
        let (type_name, why) = (schema.name().to_owned(), error.to_string());
        DecodeError::Malformed { type_name, offset: 0, field_path: String::new(), why }
    })
}

/// Checks that bytes are a message of a type, within limits, without building it. For callers that decode
/// with another runtime, which does not limit the number of values.
///
/// # Errors
/// [`DecodeError`] with the byte and the field.
pub fn validate(schema: &Schema, bytes: &[u8], limits: &DecodeLimits) -> Result<(), DecodeError> {
    let mut validator = Validator { type_name: schema.name(), limits, values: 0, numbers: 0 };
    if bytes.len() > limits.max_len_bytes {
        return Err(validator.limit_error(0, "max_len_bytes", limits.max_len_bytes, bytes.len()));
    }
    validator.message(schema.descriptor(), Reader::new((bytes, 0)), 1)
}

struct Validator<'a> {
    type_name: &'a str,
    limits: &'a DecodeLimits,
    values: usize,
    numbers: usize,
}

/// While returning, each field prepends its name to the error's path.
type Validated = Result<(), DecodeError>;

impl Validator<'_> {
    fn malformed(&self, (offset, why): Fault) -> DecodeError {
        let (type_name, field_path) = (self.type_name.to_owned(), String::new());
        DecodeError::Malformed { type_name, offset, field_path, why }
    }

    fn limit_error(
        &self,
        offset: usize,
        limit_name: &'static str,
        limit: usize,
        found: usize,
    ) -> DecodeError {
        let (type_name, field_path) = (self.type_name.to_owned(), String::new());
        DecodeError::Limit { type_name, offset, field_path, limit_name, limit, found }
    }

    fn message(
        &mut self,
        desc: &MessageDescriptor,
        mut reader: Reader<'_>,
        depth: usize,
    ) -> Validated {
        if depth > self.limits.max_depth {
            return Err(self.limit_error(
                reader.offset(),
                "max_depth",
                self.limits.max_depth,
                depth,
            ));
        }
        while let Some(record) = reader.next_record().map_err(|fault| self.malformed(fault))? {
            let offset = reader.record_offset();
            let field = desc.get_field(record.number);
            let is_message = field.as_ref().is_some_and(|f| matches!(f.kind(), Kind::Message(_)));
            self.values += if is_message { DECODE_VALUES_PER_MESSAGE } else { 1 };
            if self.values > self.limits.max_values {
                return Err(self.limit_error(
                    offset,
                    "max_values",
                    self.limits.max_values,
                    self.values,
                ));
            }
            // A field of a newer type is preserved.
            let Some(field) = field else { continue };
            let scanned = self.field(&field, record.value, offset, depth);
            scanned.map_err(|error| error.within(field.name()))?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &FieldDescriptor,
        value: WireValue<'_>,
        at: usize,
        depth: usize,
    ) -> Validated {
        let kind = field.kind();
        match (value, &kind) {
            (WireValue::Group(body), Kind::Message(inner)) if field.is_group() => {
                self.message(inner, Reader::new(body), depth + 1)
            }
            (WireValue::Bytes(body), Kind::Message(inner)) if !field.is_group() => {
                self.message(inner, Reader::new(body), depth + 1)
            }
            (WireValue::Bytes((body, offset)), Kind::String) => match std::str::from_utf8(body) {
                Ok(_) => Ok(()),
                Err(error) => {
                    let why = "a string is not UTF-8".to_owned();
                    Err(self.malformed((offset + error.valid_up_to(), why)))
                }
            },
            (WireValue::Bytes(_), Kind::Bytes) => Ok(()),
            (WireValue::Bytes(body), _) if field.is_list() && wire(&kind) != WireKind::Len => {
                let counted = packed(wire(&kind), body, None);
                let (count, _) = counted.map_err(|fault| self.malformed(fault))?;
                self.numbers += count;
                match self.numbers > self.limits.max_numbers {
                    true => {
                        let limit = self.limits.max_numbers;
                        Err(self.limit_error(body.1, "max_numbers", limit, self.numbers))
                    }
                    false => Ok(()),
                }
            }
            (WireValue::Varint(_), _) if wire(&kind) == WireKind::Varint => Ok(()),
            (WireValue::Fixed32(_), _) if wire(&kind) == WireKind::Fixed32 => Ok(()),
            (WireValue::Fixed64(_), _) if wire(&kind) == WireKind::Fixed64 => Ok(()),
            _ => {
                let found = value.wire_type();
                let why = format!(
                    "the type declares {}, but the bytes contain {found}",
                    crate::protobuf_compatibility::field_text(field)
                );
                Err(self.malformed((at, why)))
            }
        }
    }
}

/// The wire type of a kind of field.
pub(crate) fn wire(kind: &Kind) -> WireKind {
    match kind {
        Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => WireKind::Fixed32,
        Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => WireKind::Fixed64,
        Kind::String | Kind::Bytes | Kind::Message(_) => WireKind::Len,
        _ => WireKind::Varint,
    }
}
