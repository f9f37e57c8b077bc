//! Units of message fields, from the comment of the field or the suffix of its name.

use std::collections::BTreeMap;

use rnet::schema::{FieldPath, Schema};
use rnet::{FieldType, MessageType, PlainType};
use rnet_schema::prost_reflect::{Kind, MessageDescriptor};
use rnet_schema::reflect::ReflectSchema;

/// Maximum nesting depth of the fields that `units` visits.
const MAX_DEPTH: usize = 6;
/// Maximum number of fields that `units` visits.
const MAX_FIELDS: usize = 2_000;

/// Suffixes of field names, after a `_`. Ambiguous single letters are not included.
const UNIT_BY_SUFFIX: &[(&str, &str)] = &[
    ("ns", "ns"),
    ("us", "µs"),
    ("ms", "ms"),
    ("s", "s"),
    ("sec", "s"),
    ("hz", "Hz"),
    ("mm", "mm"),
    ("cm", "cm"),
    ("m", "m"),
    ("km", "km"),
    ("mps", "m/s"),
    ("mps2", "m/s²"),
    ("rad", "rad"),
    ("radps", "rad/s"),
    ("deg", "°"),
    ("degc", "°C"),
    ("celsius", "°C"),
    ("kg", "kg"),
    ("volt", "V"),
    ("volts", "V"),
    ("ampere", "A"),
    ("amps", "A"),
    ("watt", "W"),
    ("watts", "W"),
    ("newton", "N"),
    ("pa", "Pa"),
    ("px", "px"),
    ("bytes", "B"),
    ("pct", "%"),
    ("percent", "%"),
];

/// The unit of the field at a path such as `linear_acceleration.x`, if it is known.
pub fn unit(ty: &MessageType, path: &str) -> Option<String> {
    let commented = match ty {
        MessageType::Protobuf(schema) => unit_from_comment(schema, path),
        MessageType::Plain(_) => None,
        MessageType::Raw => return None,
    };
    commented.or_else(|| unit_from_name(path).map(str::to_owned))
}

/// All known units by field path. Elements of a list are `[]`: `joints[].position`.
pub fn units(ty: &MessageType) -> BTreeMap<String, String> {
    let mut fields = Vec::new();
    match ty {
        MessageType::Protobuf(schema) => message_paths(schema.descriptor(), "", 0, &mut fields),
        MessageType::Plain(plain) => plain_paths(plain, "", &mut fields),
        MessageType::Raw => {}
    }
    let unit_at = |path: String| {
        let unit = unit(ty, &path.replace("[]", "[0]"))?;
        Some((path, unit))
    };
    fields.into_iter().filter_map(unit_at).collect()
}

fn unit_from_comment(schema: &Schema, path: &str) -> Option<String> {
    let path = FieldPath::parse(schema, path).ok()?;
    path.unit(schema.docs()).map(str::to_owned)
}

fn unit_from_name(path: &str) -> Option<&'static str> {
    let field = path.rsplit('.').next()?;
    let name = field.split('[').next()?;
    let (_, end) = name.rsplit_once('_')?;
    UNIT_BY_SUFFIX.iter().find(|(of, _)| *of == end).map(|(_, unit)| *unit)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn message_paths(of: &MessageDescriptor, path: &str, depth: usize, out: &mut Vec<String>) {
    for field in of.fields().filter(|field| !field.is_map()) {
        if out.len() >= MAX_FIELDS {
            return;
        }
        let list = if field.is_list() { "[]" } else { "" };
        let at = join(path, &format!("{}{list}", field.name()));
        match field.kind() {
            Kind::Message(inner) if depth < MAX_DEPTH => message_paths(&inner, &at, depth + 1, out),
            Kind::Message(_) | Kind::String | Kind::Bytes | Kind::Bool | Kind::Enum(_) => {}
            _ => out.push(at),
        }
    }
}

fn plain_paths(of: &PlainType, path: &str, out: &mut Vec<String>) {
    for field in of.fields.iter().filter(|field| !field.is_padding()) {
        let (mut ty, mut at) = (&field.ty, join(path, &field.name));
        while let FieldType::Array { of, .. } = ty {
            at.push_str("[]");
            ty = of;
        }
        match ty {
            FieldType::Struct(inner) if out.len() < MAX_FIELDS => plain_paths(inner, &at, out),
            FieldType::Prim(_) if out.len() < MAX_FIELDS => out.push(at),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rnet::schema::compile_text;

    use super::*;

    #[test]
    fn reads_units_from_comments_and_names() {
        let text = r#"syntax = "proto3";
            message Vector {
              // Unit: the holder's
              double x = 1; }
            message Robot {
              // Speed in meters per second
              Vector speed = 1;
              repeated Joint joints = 2;
              int64 stamp_ns = 3;
              string name_m = 4;
              Robot inner = 5;
              double plain = 6; }
            message Joint {
              // Angle [rad]
              repeated double angle = 1; }"#;
        let robot = compile_text("robot.proto", text).unwrap().schema("Robot").unwrap();
        let ty = MessageType::from(robot);
        let at = |path| unit(&ty, path);
        assert_eq!(at("speed.x").as_deref(), Some("m/s"));
        assert_eq!(at("joints[3].angle[1]").as_deref(), Some("rad"));
        assert_eq!(at("inner.inner.stamp_ns").as_deref(), Some("ns"));
        assert_eq!((at("plain"), at("none")), (None, None));
        let all = units(&ty);
        assert_eq!(all["speed.x"], "m/s");
        assert_eq!(all["joints[].angle[]"], "rad");
        assert_eq!(all["stamp_ns"], "ns");
        assert!(!all.contains_key("name_m") && !all.contains_key("plain"));
    }

    #[test]
    fn reads_unit_only_from_end_of_name() {
        assert_eq!(unit_from_name("timestamp_ns"), Some("ns"));
        assert_eq!(unit_from_name("legs[2].force_newton[0]"), Some("N"));
        assert_eq!(
            (unit_from_name("s"), unit_from_name("mass"), unit_from_name("ns_of")),
            (None, None, None)
        );
    }
}
