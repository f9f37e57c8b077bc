//! Bytes to a message, when nobody vouches for the bytes.
//!
//! The bytes are walked once by the type before anything is built: the walk knows where it is, so that an error can name the byte and the
//! field, and it counts what would be built, because a value of two bytes on the wire is tens of bytes in memory.

use crate::Schema;
use crate::error::DecodeError;
use crate::limits::{
    DECODE_VALUES_PER_MESSAGE, MAX_DECODE_DEPTH, MAX_DECODE_LEN_BYTES, MAX_DECODE_NUMBERS,
    MAX_DECODE_VALUES,
};
use crate::wire::{Fault, Reader, Record};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};

/// How much one message may ask of its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Longest message, in bytes.
    pub max_len_bytes: usize,
    /// Deepest nesting of messages, the message itself counted as 1.
    pub max_depth: usize,
    /// Most values: fields, elements, entries. A message in it counts as `DECODE_VALUES_PER_MESSAGE`, and numbers of packed lists not at
    /// all.
    pub max_values: usize,
    /// Most numbers in packed lists.
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

/// What is wrong, before the name of the type is known.
enum Stop {
    Malformed(usize, String),
    Limit(usize, &'static str, usize, usize),
}

impl From<Fault> for Stop {
    fn from((offset, why): Fault) -> Self {
        Self::Malformed(offset, why.to_owned())
    }
}

/// Where it went wrong: the fields from the inside out.
type Scanned = Result<(), (Stop, Vec<String>)>;

pub(crate) fn decode(
    schema: &Schema,
    bytes: &[u8],
    limits: &DecodeLimits,
) -> Result<DynamicMessage, DecodeError> {
    walk(schema, bytes, limits)?;
    DynamicMessage::decode(schema.descriptor().clone(), bytes).map_err(|error| {
        let (type_name, why) = (schema.name().to_owned(), error.to_string());
        DecodeError::Malformed { type_name, offset: 0, field_path: String::new(), why }
    })
}

/// Whether bytes are a message of a type, within limits. Builds nothing: for those who decode by another runtime, which counts no values.
///
/// # Errors
/// [`DecodeError`] names the byte and the field.
pub fn walk(schema: &Schema, bytes: &[u8], limits: &DecodeLimits) -> Result<(), DecodeError> {
    let failed = |stop: Stop, path: Vec<String>| {
        let type_name = schema.name().to_owned();
        let field_path = path.into_iter().rev().collect::<Vec<_>>().join(".");
        match stop {
            Stop::Malformed(offset, why) => {
                DecodeError::Malformed { type_name, offset, field_path, why }
            }
            Stop::Limit(offset, limit_name, limit, found) => {
                DecodeError::Limit { type_name, offset, field_path, limit_name, limit, found }
            }
        }
    };
    if bytes.len() > limits.max_len_bytes {
        let (max, found) = (limits.max_len_bytes, bytes.len());
        return Err(failed(Stop::Limit(0, "max_len_bytes", max, found), Vec::new()));
    }
    let mut scan = Scan { limits, values: 0, numbers: 0 };
    scan.message(schema.descriptor(), Reader::new(bytes, 0), 1)
        .map_err(|(stop, path)| failed(stop, path))
}

struct Scan<'a> {
    limits: &'a DecodeLimits,
    values: usize,
    numbers: usize,
}

impl Scan<'_> {
    fn count(&mut self, values: usize, offset: usize) -> Result<(), Stop> {
        self.values += values;
        if self.values > self.limits.max_values {
            return Err(Stop::Limit(offset, "max_values", self.limits.max_values, self.values));
        }
        Ok(())
    }

    fn count_numbers(&mut self, numbers: usize, offset: usize) -> Result<(), Stop> {
        self.numbers += numbers;
        if self.numbers > self.limits.max_numbers {
            return Err(Stop::Limit(offset, "max_numbers", self.limits.max_numbers, self.numbers));
        }
        Ok(())
    }

    fn message(
        &mut self,
        desc: &MessageDescriptor,
        mut reader: Reader<'_>,
        depth: usize,
    ) -> Scanned {
        let here = |stop| (stop, Vec::new());
        if depth > self.limits.max_depth {
            let stop = Stop::Limit(reader.offset(), "max_depth", self.limits.max_depth, depth);
            return Err(here(stop));
        }
        while let Some(record) = reader.next_record().map_err(|fault| here(fault.into()))? {
            let offset = reader.record_offset();
            let field = desc.get_field(record.number());
            let is_message = field.as_ref().is_some_and(|f| matches!(f.kind(), Kind::Message(_)));
            let values = if is_message { DECODE_VALUES_PER_MESSAGE } else { 1 };
            self.count(values, offset).map_err(here)?;
            // A field of a newer type: kept as it is.
            let Some(field) = field else { continue };
            self.field(&field, record, offset, depth).map_err(|(stop, mut path)| {
                path.push(field.name().to_owned());
                (stop, path)
            })?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &FieldDescriptor,
        record: Record<'_>,
        at: usize,
        depth: usize,
    ) -> Scanned {
        let here = |stop| (stop, Vec::new());
        let kind = field.kind();
        match (record, &kind) {
            (Record::Group { body, offset, .. }, Kind::Message(inner)) if field.is_group() => {
                self.message(inner, Reader::new(body, offset), depth + 1)
            }
            (Record::Bytes { body, offset, .. }, Kind::Message(inner)) if !field.is_group() => {
                self.message(inner, Reader::new(body, offset), depth + 1)
            }
            (Record::Bytes { body, offset, .. }, Kind::String) => match std::str::from_utf8(body) {
                Ok(_) => Ok(()),
                Err(error) => {
                    let why = "a string is not UTF-8".to_owned();
                    Err(here(Stop::Malformed(offset + error.valid_up_to(), why)))
                }
            },
            (Record::Bytes { .. }, Kind::Bytes) => Ok(()),
            (Record::Bytes { body, offset, .. }, _)
                if field.is_list() && wire(&kind) != Wire::Len =>
            {
                self.packed(wire(&kind), body, offset).map_err(here)
            }
            (Record::Varint { .. }, _) if wire(&kind) == Wire::Varint => Ok(()),
            (Record::Fixed32 { .. }, _) if wire(&kind) == Wire::Fixed32 => Ok(()),
            (Record::Fixed64 { .. }, _) if wire(&kind) == Wire::Fixed64 => Ok(()),
            _ => {
                let found = record.wire_type();
                let why = format!(
                    "the type says {}, and the bytes have {found}",
                    crate::check::field_text(field)
                );
                Err(here(Stop::Malformed(at, why)))
            }
        }
    }

    fn packed(&mut self, wire: Wire, body: &[u8], offset: usize) -> Result<(), Stop> {
        let size = match wire {
            Wire::Fixed32 => 4,
            Wire::Fixed64 => 8,
            Wire::Varint | Wire::Len => {
                let mut reader = Reader::new(body, offset);
                let mut values = 0;
                while !reader.is_at_end() {
                    reader.varint()?;
                    values += 1;
                }
                return self.count_numbers(values, offset);
            }
        };
        if !body.len().is_multiple_of(size) {
            let why = format!("{} bytes of packed numbers of {size} bytes each", body.len());
            return Err(Stop::Malformed(offset, why));
        }
        self.count_numbers(body.len() / size, offset)
    }
}

/// How values of a kind stand on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    Varint,
    Fixed32,
    Fixed64,
    Len,
}

pub(crate) fn wire(kind: &Kind) -> Wire {
    match kind {
        Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => Wire::Fixed32,
        Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => Wire::Fixed64,
        Kind::String | Kind::Bytes | Kind::Message(_) => Wire::Len,
        _ => Wire::Varint,
    }
}
