//! Extracts one number from encoded messages without decoding them, for millions of messages.
//!
//! Only the records on the path to the number are parsed; others are skipped by their length. Malformed data
//! elsewhere is therefore not detected and does not prevent the extraction.

use crate::decode::wire;
use crate::error::{DecodeError, ValueError};
use crate::path::{FieldPath, Step};
use crate::protobuf_compatibility::field_text;
use crate::wire::{Fault, Reader, WireKind, WireValue, packed};
use crate::{Dynamic, Schema};
use prost_reflect::{FieldDescriptor, Kind, Value};

/// Extracts the number at a path from messages of one type.
///
/// ```
/// use rnet_schema::{Dynamic, FieldPath, NumberReader, compile_text};
/// let text = r#"syntax = "proto3"; message Leg { repeated double force = 1; } message Robot { repeated Leg legs = 1; }"#;
/// let robot = compile_text("robot.proto", text)?.schema("Robot")?;
/// let force = NumberReader::new(&robot, &FieldPath::parse(&robot, "legs[1].force[0]")?)?;
/// let json = serde_json::json!({"legs": [{}, {"force": [1.5]}]});
/// let bytes = Dynamic::from_json(&robot, &json)?.encode();
/// assert_eq!(force.read(&bytes)?.map(f64::from_bits), Some(1.5));
/// assert_eq!(force.read(b"")?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NumberReader {
    schema: Schema,
    path: FieldPath,
    /// The path to the number; `None` if it contains a map or a group, in which case the message is decoded.
    path_steps: Option<Vec<PathStep>>,
}

/// A field on the path, and the index of its element if it is a list.
#[derive(Clone, Debug)]
struct PathStep {
    field: FieldDescriptor,
    number: u32,
    wire: WireKind,
    index: Option<usize>,
    /// Other fields of the same oneof: a later one replaces this one.
    oneof_siblings: Vec<u32>,
}

impl NumberReader {
    /// A reader for this type and path.
    ///
    /// # Errors
    /// The path does not end at a number, a boolean or an enum, or at a whole list of them.
    pub fn new(schema: &Schema, path: &FieldPath) -> Result<Self, ValueError> {
        let refused = |why: String| ValueError { path: path.to_string(), why };
        if let Some(Step::Field(field)) = path.steps().last()
            && (field.is_list() || field.is_map())
        {
            let example = if field.is_list() { "[0]" } else { "[\"key\"]" };
            let name = field.name();
            return Err(refused(format!(
                "it has many values; select one, such as {name}{example}"
            )));
        }
        match path.kind() {
            Kind::Message(message) => Err(refused(crate::path::known_fields(message))),
            Kind::String | Kind::Bytes => {
                let what = if *path.kind() == Kind::Bytes { "bytes" } else { "text" };
                Err(refused(format!("it is {what}, not a number")))
            }
            _ => Ok(Self {
                schema: schema.clone(),
                path: path.clone(),
                path_steps: path_steps(path),
            }),
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        self.path.kind()
    }

    /// The bits of the number: those of an `f64` or `f32`; the two's complement of an integer, in the low
    /// bits of its type's width; 0 or 1 for a boolean; the number of an enum value, as an `i32`. `None` for
    /// an unset field with presence, and for a missing element or entry.
    ///
    /// # Errors
    /// [`DecodeError`] with the byte and the field.
    pub fn read(&self, bytes: &[u8]) -> Result<Option<u64>, DecodeError> {
        let Some(path_steps) = &self.path_steps else { return self.by_decoding(bytes) };
        let mut found = None;
        self.walk(path_steps, Reader::new((bytes, 0)), &mut found).map_err(|(offset, why)| {
            let (type_name, field_path) = (self.schema.name().to_owned(), self.path.to_string());
            DecodeError::Malformed { type_name, offset, field_path, why }
        })?;
        Ok(found)
    }

    /// Walks a message in which `path_steps` lead to the number. Values of earlier parts of the same message
    /// are kept, because parts of a message are merged.
    fn walk(
        &self,
        path_steps: &[PathStep],
        mut reader: Reader<'_>,
        found: &mut Option<u64>,
    ) -> Result<(), Fault> {
        let Some((step, rest)) = path_steps.split_first() else { return Ok(()) };
        if rest.is_empty() && step.index.is_none() && !step.field.supports_presence() {
            *found = found.or(Some(0));
        }
        let mut elements = 0;
        while let Some(record) = reader.next_record()? {
            if record.number != step.number {
                if step.oneof_siblings.contains(&record.number) {
                    *found = None;
                }
                continue;
            }
            let at = reader.record_offset();
            match (record.value, step.wire) {
                (WireValue::Bytes(body), WireKind::Len) => {
                    if step.index.is_none_or(|index| index == elements) {
                        self.walk(rest, Reader::new(body), found)?;
                    }
                    elements += 1;
                }
                (WireValue::Bytes(body), wire) if step.index.is_some() => {
                    let wanted = step.index.and_then(|index| index.checked_sub(elements));
                    let (count, value) = packed(wire, body, wanted)?;
                    *found = value.map(|value| self.bits(value)).or(*found);
                    elements += count;
                }
                (WireValue::Varint(value), WireKind::Varint)
                | (WireValue::Fixed64(value), WireKind::Fixed64) => {
                    self.take(step, &mut elements, value, found);
                }
                (WireValue::Fixed32(value), WireKind::Fixed32) => {
                    self.take(step, &mut elements, value.into(), found);
                }
                (value, _) => {
                    let (said, there) = (field_text(&step.field), value.wire_type());
                    return Err((
                        at,
                        format!("the type declares {said}, but the bytes contain {there}"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn take(&self, step: &PathStep, elements: &mut usize, value: u64, found: &mut Option<u64>) {
        if step.index.is_none_or(|index| index == *elements) {
            *found = Some(self.bits(value));
        }
        *elements += 1;
    }

    /// Converts the wire value to the field type.
    fn bits(&self, value: u64) -> u64 {
        match self.kind() {
            Kind::Sint32 | Kind::Sint64 => (value >> 1) ^ (value & 1).wrapping_neg(),
            Kind::Bool => u64::from(value != 0),
            _ => value,
        }
    }

    fn by_decoding(&self, bytes: &[u8]) -> Result<Option<u64>, DecodeError> {
        let message = Dynamic::decode(&self.schema, bytes)?;
        if !self.path.is_set(message.message()) {
            return Ok(None);
        }
        Ok(message.get(&self.path).and_then(|value| bits_of(&value)))
    }
}

/// The steps of a path; `None` if it contains a map or a group.
fn path_steps(path: &FieldPath) -> Option<Vec<PathStep>> {
    let mut path_steps: Vec<PathStep> = Vec::new();
    for step in path.steps() {
        match step {
            Step::Field(field) if field.is_group() || field.is_map() => return None,
            Step::Field(field) => {
                let number = field.number();
                let oneof = field.containing_oneof();
                let oneof_siblings =
                    oneof.iter().flat_map(|oneof| oneof.fields()).map(|f| f.number());
                let oneof_siblings = oneof_siblings.filter(|sibling| *sibling != number).collect();
                let wire = wire(&field.kind());
                path_steps.push(PathStep {
                    field: field.clone(),
                    number,
                    wire,
                    index: None,
                    oneof_siblings,
                });
            }
            Step::Index(index) => path_steps.last_mut()?.index = Some(*index),
            Step::Key(_) => return None,
        }
    }
    Some(path_steps)
}

/// The bits of a number, as returned by [`NumberReader::read`].
fn bits_of(value: &Value) -> Option<u64> {
    Some(match *value {
        Value::Bool(v) => v.into(),
        Value::I32(v) | Value::EnumNumber(v) => i64::from(v) as u64,
        Value::I64(v) => v as u64,
        Value::U32(v) => v.into(),
        Value::U64(v) => v,
        Value::F32(v) => v.to_bits().into(),
        Value::F64(v) => v.to_bits(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile_text;
    use serde_json::json;

    const TYPES: &str = r#"syntax = "proto3";
        enum Mode { OFF = 0; ON = -1; }
        message Leg { repeated double force = 1; sint32 turns = 2; }
        message All {
          double d = 1; float f = 2; int32 i = 3; int64 l = 4; uint32 u = 5; uint64 v = 6; sint64 z = 7;
          fixed32 x = 8; sfixed64 y = 9; bool b = 10; Mode m = 11; optional double maybe = 12;
          Leg leg = 13; repeated Leg legs = 14; map<string, Leg> by_name = 15; repeated int32 packed = 16;
          repeated int32 apart = 17 [packed = false]; string text = 18;
          oneof one { Leg left = 19; Leg right = 20; }
        }"#;

    fn all() -> Schema {
        compile_text("all.proto", TYPES).unwrap().schema("All").unwrap()
    }

    fn reader(path: &str) -> NumberReader {
        let schema = all();
        NumberReader::new(&schema, &FieldPath::parse(&schema, path).unwrap()).unwrap()
    }

    fn read(path: &str, bytes: &[u8]) -> Option<u64> {
        reader(path).read(bytes).unwrap()
    }

    #[test]
    fn each_kind_equals_the_decoded_value() {
        let message = json!({
            "d": -1.5, "f": 2.5, "i": -3, "l": -4, "u": 4_000_000_000_u32, "v": u64::MAX, "z": -7,
            "x": 8, "y": -9, "b": true, "m": "ON", "maybe": 0.0, "leg": {"force": [1.0, 2.0], "turns": -5},
            "legs": [{"turns": 1}, {"turns": 2, "force": [0.5]}], "by_name": {"a": {"turns": -6}},
            "packed": [10, -20, 30], "apart": [1, -2, 3],
        });
        let bytes = Dynamic::from_json(&all(), &message).unwrap().encode();
        for path in [
            "d",
            "f",
            "i",
            "l",
            "u",
            "v",
            "z",
            "x",
            "y",
            "b",
            "m",
            "maybe",
            "leg.turns",
            "leg.force[1]",
            "legs[0].turns",
            "legs[1].turns",
            "legs[1].force[0]",
            "by_name[\"a\"].turns",
            "packed[0]",
            "packed[1]",
            "packed[2]",
            "apart[0]",
            "apart[1]",
            "apart[2]",
        ] {
            let reader = reader(path);
            let decoded = reader.by_decoding(&bytes).unwrap().unwrap();
            let read = reader.read(&bytes).unwrap().unwrap();
            let low = match reader.kind() {
                Kind::Float
                | Kind::Int32
                | Kind::Sint32
                | Kind::Uint32
                | Kind::Fixed32
                | Kind::Enum(_) => u64::from(u32::MAX),
                _ => u64::MAX,
            };
            assert_eq!(read & low, decoded & low, "{path}");
        }
        assert_eq!(read("z", &bytes).unwrap() as i64, -7);
        assert_eq!(f64::from_bits(read("leg.force[1]", &bytes).unwrap()), 2.0);
    }

    #[test]
    fn unset_field_with_presence_is_none() {
        for path in
            ["maybe", "leg.turns", "legs[0].turns", "by_name[\"a\"].turns", "packed[0]", "apart[0]"]
        {
            assert_eq!(read(path, b""), None, "{path}");
        }
        for path in ["d", "i", "b", "m"] {
            assert_eq!(read(path, b""), Some(0), "{path}");
        }
        let leg = Dynamic::from_json(&all(), &json!({"leg": {}, "packed": [1]})).unwrap().encode();
        assert_eq!(read("leg.turns", &leg), Some(0));
        assert_eq!((read("packed[0]", &leg), read("packed[1]", &leg)), (Some(1), None));
    }

    #[test]
    fn message_parts_are_merged_and_last_oneof_field_wins() {
        let part = |value| Dynamic::from_json(&all(), &value).unwrap().encode();
        let merged = [
            part(json!({"leg": {"turns": 3}, "i": 1})),
            part(json!({"leg": {"force": [1.0]}, "i": 2})),
        ]
        .concat();
        assert_eq!((read("leg.turns", &merged), read("i", &merged)), (Some(3), Some(2)));
        let turned =
            [part(json!({"left": {"turns": 3}})), part(json!({"right": {"turns": 4}}))].concat();
        assert_eq!((read("left.turns", &turned), read("right.turns", &turned)), (None, Some(4)));
    }

    #[test]
    fn non_numbers_are_rejected_with_reason() {
        let schema = all();
        let refused = |path: &str| {
            NumberReader::new(&schema, &FieldPath::parse(&schema, path).unwrap())
                .unwrap_err()
                .to_string()
        };
        assert!(refused("packed").contains("packed[0]"), "{}", refused("packed"));
        assert!(refused("by_name").contains("by_name[\"key\"]"), "{}", refused("by_name"));
        assert!(refused("text").contains("text"), "{}", refused("text"));
        assert!(refused("leg").contains("Leg has force, turns"), "{}", refused("leg"));
        let error = reader("leg.turns").read(&[0x68, 0x01]).unwrap_err().to_string();
        assert!(error.contains("leg.turns") && error.contains("a varint"), "{error}");
        assert!(reader("packed[0]").read(&[0x82, 0x01, 0x05]).is_err());
    }
}
