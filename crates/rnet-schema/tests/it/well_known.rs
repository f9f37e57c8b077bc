//! The JSON of well-known types: a table of edge values with the output of Python's protobuf runtime.
//! `python/tests/test_json_agrees.py` compares the same table with the runtime.

use rnet_schema::{Dynamic, JsonOptions, Schema, Sources};
use serde_json::{Value, json};

const TABLE: &str = include_str!("../data/well_known.json");
const TYPES: [&str; 17] = [
    "Any",
    "Timestamp",
    "Duration",
    "Struct",
    "ListValue",
    "Value",
    "FieldMask",
    "Empty",
    "FloatValue",
    "DoubleValue",
    "Int32Value",
    "Int64Value",
    "UInt32Value",
    "UInt64Value",
    "BoolValue",
    "StringValue",
    "BytesValue",
];

/// A message with a field of each type; the number is its index in the list plus 1.
fn schema() -> Schema {
    let mut text = "syntax = \"proto3\";\n".to_owned();
    for file in ["any", "timestamp", "duration", "struct", "field_mask", "empty", "wrappers"] {
        text.push_str(&format!("import \"google/protobuf/{file}.proto\";\n"));
    }
    text.push_str("message M {\n");
    for (number, name) in TYPES.iter().enumerate() {
        text.push_str(&format!("  google.protobuf.{name} f{number} = {};\n", number + 1));
    }
    text.push_str("  google.protobuf.NullValue nothing = 100;\n  float single = 101;\n}\n");
    Sources::default().compile_text("m.proto", &text).unwrap().schema("M").unwrap()
}

fn decode_hex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// The bytes of M with one field, and the field's name.
fn within(name: &str, bytes: &[u8]) -> (Vec<u8>, String) {
    let number = TYPES.iter().position(|one| *one == name).unwrap();
    let mut message = Vec::new();
    for part in [u64::try_from(number + 1).unwrap() << 3 | 2, u64::try_from(bytes.len()).unwrap()] {
        let mut rest = part;
        while rest >= 0x80 {
            message.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        message.push(u8::try_from(rest).unwrap());
    }
    message.extend(bytes);
    (message, format!("f{number}"))
}

#[test]
fn well_known_types_equal_the_output_of_python() {
    let (schema, rows): (Schema, Vec<Value>) = (schema(), serde_json::from_str(TABLE).unwrap());
    assert!(rows.len() > 150);
    for row in rows {
        let name = row["type"].as_str().unwrap();
        let (bytes, field) = within(name, &decode_hex(row["bytes"].as_str().unwrap()));
        let message = Dynamic::decode(&schema, &bytes).unwrap();
        let json = message.to_json(&JsonOptions::default());
        match row.get("json") {
            Some(right) => {
                assert_eq!(json[&field], *right, "{row}");
                if right.is_number() {
                    // Compares text, which distinguishes -0.0 and 0.0.
                    assert_eq!(json[&field].to_string(), right.to_string(), "{row}");
                }
                // The greatest float is rounded up when written, and Python does not parse it back either.
                let greatest = json[&field] == json!(3.4028235e38);
                let read = name != "Any" && name != "FieldMask" && json[&field] != Value::Null;
                if read && !greatest {
                    let back = Dynamic::from_json(&schema, &json).unwrap();
                    assert_eq!(back.to_json(&JsonOptions::default()), json, "{row}");
                }
            }
            // Python raises: a value without a JSON form is shown by its fields, with their signs.
            None => assert!(json[&field].is_object() || json[&field].is_array(), "{row} {json}"),
        }
    }
}

#[test]
fn values_without_json_form_are_shown_by_fields() {
    let shown = |name: &str, hex: &str| {
        let (bytes, field) = within(name, &decode_hex(hex));
        let message = Dynamic::decode(&schema(), &bytes).unwrap();
        message.to_json(&JsonOptions::default())[field].clone()
    };
    // 1 s and -5 ns.
    let nanos = "10fbffffffffffffffff01";
    assert_eq!(shown("Duration", &format!("0801{nanos}")), json!({"seconds": "1", "nanos": -5}));
    assert_eq!(shown("Value", "11000000000000f87f"), json!({"numberValue": "NaN"}));
    assert_eq!(
        shown("Any", "0a09782f6e6f2e53756368"),
        json!({"typeUrl": "x/no.Such"}),
        "a type that is not here"
    );
}

#[test]
fn null_is_written_as_null_and_a_float_by_its_own_digits() {
    let schema = schema();
    // nothing = 1, a number without a name; single = 0.1.
    let message = Dynamic::decode(&schema, b"\xa0\x06\x01\xad\x06\xcd\xcc\xcc\x3d").unwrap();
    assert_eq!(message.to_json(&JsonOptions::default()), json!({"nothing": null, "single": 0.1}));
}

/// Nested Any messages, whose bytes no decoder has validated.
#[test]
fn nesting_of_any_is_limited() {
    let schema = schema();
    let mut inner = Vec::new();
    for _ in 0..2_000 {
        let url = b"x/google.protobuf.Any";
        let mut outer = vec![0x0a, u8::try_from(url.len()).unwrap()];
        outer.extend(url);
        outer.push(0x12);
        let mut rest = inner.len();
        while rest >= 0x80 {
            outer.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        outer.push(u8::try_from(rest).unwrap());
        outer.extend(&inner);
        inner = outer;
    }
    let (bytes, field) = within("Any", &inner);
    let json = Dynamic::decode(&schema, &bytes).unwrap().to_json(&JsonOptions::default());
    assert!(json[&field]["typeUrl"].is_string(), "it has no form");
}
