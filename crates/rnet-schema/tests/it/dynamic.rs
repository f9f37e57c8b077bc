//! Messages without generated code: malformed bytes, paths, JSON, text and rows.

use crate::common;
use rnet_schema::reflect::ReflectSchema;

use common::schema;
use proptest::prelude::*;
use rnet_schema::{
    Columns, DecodeError, DecodeLimits, Dynamic, FieldPath, JsonOptions, Schema, TextOptions,
    csv_line, unit_of,
};
use serde_json::{Value, json};

fn robot() -> Schema {
    schema(
        "import \"google/protobuf/timestamp.proto\"; import \"google/protobuf/struct.proto\";
        message M {
          google.protobuf.Timestamp stamp = 1;
          string frame_id = 2;
          repeated Leg legs = 3;
          map<string, Cell> cells = 4;
          map<int32, double> by_id = 5;
          bytes image = 6;
          Mode mode = 7;
          optional double speed = 8; // Speed [m/s]
          int64 count = 9;
          float ratio = 10;
          oneof what { string text = 11; bool flag = 12; }
          M inner = 13;
          google.protobuf.Struct extra = 14;
          repeated Mode modes = 15;
        }
        message Leg { repeated double force = 1; // Force in newtons
          uint32 id = 2; }
        message Cell { double volt = 1; // [V]
        }
        enum Mode { IDLE = 0; WALK = 1; }",
    )
}

fn sample() -> Value {
    json!({
        "stamp": "2026-11-21T12:00:00.500Z", "frameId": "base",
        "legs": [{"force": [1.5, -2.0], "id": 1}, {"force": [], "id": 2}, {"force": ["NaN", "Infinity"]}],
        "cells": {"left": {"volt": 24.1}, "a\"b": {"volt": 3.0}}, "byId": {"-7": 0.5},
        "image": "AAEC", "mode": "WALK", "speed": 0.25, "count": "9007199254740993", "ratio": 0.1,
        "flag": true, "inner": {"frameId": "nested"}, "extra": {"k": [1.0, null, {"x": true}]}, "modes": ["WALK", 7]
    })
}

fn read(value: &Value) -> Dynamic {
    Dynamic::from_json(&robot(), value).unwrap_or_else(|error| panic!("{error}"))
}

fn json_error(value: Value) -> String {
    Dynamic::from_json(&robot(), &value).expect_err("a fault").to_string()
}

#[test]
fn json_round_trips() {
    let message = read(&sample());
    let again = Dynamic::decode(&robot(), &message.encode()).expect("its own bytes");
    let mut json = again.to_json(&JsonOptions::default());
    // Empty fields are not sent.
    let mut expected = sample();
    expected["legs"][1].as_object_mut().expect("a leg").remove("force");
    assert_eq!(json, expected);
    json["frame_id"] = json["frameId"].take();
    json.as_object_mut().expect("an object").remove("frameId");
    assert_eq!(
        read(&json).encode().len(),
        message.encode().len(),
        "names as in the file are accepted too"
    );
}

#[test]
fn json_options_select_names_and_defaults() {
    let message = read(&json!({"count": 5, "mode": "WALK", "image": "AP8=", "frameId": "base"}));
    let options = JsonOptions { proto_names: true, plain_integers: true, defaults: false };
    assert_eq!(
        message.to_json(&options),
        json!({"frame_id": "base", "image": "AP8=", "mode": "WALK", "count": 5})
    );
    let all =
        Dynamic::new(&robot()).to_json(&JsonOptions { defaults: true, ..JsonOptions::default() });
    assert_eq!(all["ratio"], 0.0);
    assert_eq!((&all["legs"], &all["mode"]), (&json!([]), &json!("IDLE")));
    assert!(all.get("speed").is_none(), "an unset field with presence has no default");
}

#[test]
fn time_out_of_range_is_shown_by_its_fields() {
    let stamp = schema(
        "import \"google/protobuf/timestamp.proto\"; message M { google.protobuf.Timestamp t = 1; }",
    );
    // 10^18 seconds: not a valid date.
    let bytes = b"\x0a\x0a\x08\x80\x80\x90\xbb\xba\xd6\xad\xf0\x0d";
    let message = Dynamic::decode(&stamp, bytes).expect("well-formed");
    assert_eq!(
        message.to_json(&JsonOptions::default()),
        json!({"t": {"seconds": "1000000000000000000"}})
    );
}

#[test]
fn json_faults_name_the_field() {
    let cases = [
        (
            json!({"legs": [{}, {"force": [1, "x"]}]}),
            "field `legs[1].force[1]`: expected double, found \"x\"",
        ),
        (
            json!({"inner": {"inner": {"nope": 1}}}),
            "field `inner.inner.nope`: no such field; M has stamp,",
        ),
        (
            json!({"mode": "RUN"}),
            "field `mode`: expected enum Mode (one of IDLE, WALK), found \"RUN\"",
        ),
        (
            json!({"cells": {"left": {"volt": []}}}),
            "field `cells[\"left\"].volt`: expected double, found []",
        ),
        (json!({"byId": {"x": 1.0}}), "field `byId[\"x\"]`: the key is not of type int32"),
        (json!({"legs": {}}), "field `legs`: expected a list […], found {}"),
        (json!({"inner": 3}), "field `inner`: expected an object {…} for M, found 3"),
        (json!({"image": "§"}), "field `image`: expected bytes"),
        (json!({"text": "a", "flag": true}), "field `flag`: it excludes text"),
        (json!({"legs": [null]}), "field `legs[0]`"),
        (json!({"modes": ["WALK", null]}), "field `modes[1]`: expected enum Mode"),
        (json!({"modes": "WALK"}), "field `modes`: expected a list […], found \"WALK\""),
        (json!({"byId": {"1": null}}), "field `byId[\"1\"]`: map values cannot be null"),
        (json!({"frameId": "a", "frame_id": "b"}), "field `frame_id`: the field is given twice"),
        (
            json!({"stamp": "yesterday"}),
            "field `stamp`: it is not a valid google.protobuf.Timestamp",
        ),
        (json!([]), "expected an object {…} for M, found []"),
    ];
    for (value, expected) in cases {
        let found = json_error(value);
        assert!(found.contains(expected), "expected {expected:?} in {found:?}");
    }
    let deep = (0..100).fold(json!({}), |inner, _| json!({"inner": inner}));
    assert!(json_error(deep).contains("MAX_DECODE_DEPTH"));
}

#[test]
fn paths_select_values() {
    let message = read(&sample());
    let get = |path: &str| {
        let path = FieldPath::parse(&robot(), path).unwrap_or_else(|error| panic!("{error}"));
        message.get_json(&path, &JsonOptions::default())
    };
    assert_eq!(get("legs[0].force[1]"), Some(json!(-2.0)));
    assert_eq!(get("legs[2].force"), Some(json!(["NaN", "Infinity"])));
    assert_eq!(get("cells[\"left\"].volt"), Some(json!(24.1)));
    assert_eq!(get("cells[left].volt"), Some(json!(24.1)));
    assert_eq!(get("cells[\"a\\\"b\"]"), Some(json!({"volt": 3.0})));
    assert_eq!(get("byId[-7]"), Some(json!(0.5)));
    assert_eq!(get("by_id"), Some(json!({"-7": 0.5})));
    assert_eq!(get("stamp.seconds"), Some(json!("1795262400")));
    assert_eq!(get("inner.frame_id"), Some(json!("nested")));
    assert_eq!(get("inner.inner.inner.speed"), Some(json!(0.0)));
    assert_eq!(get("modes[0]"), Some(json!("WALK")));
    assert_eq!(get("legs[3].id"), None);
    assert_eq!(get("cells[right].volt"), None);
}

#[test]
fn invalid_paths_list_existing_fields() {
    let cases = [
        ("", "no such field; M has stamp"),
        ("legs.id", "field `legs`: it has many values; select one, such as legs[0]"),
        ("legs[0].speed", "field `legs[0].speed`: no such field; Leg has force, id"),
        ("frame_id.x", "it is a single value and has no fields"),
        ("frame_id[0]", "neither a list nor a map"),
        ("legs[x]", "an index is a number"),
        ("legs[-1]", "an index is a number"),
        ("legs[0", "has no `]`"),
        ("legs[0]x", "expected a `.` or the end"),
        ("by_id[a]", "the keys of this map are int32"),
        ("legs[0].", "no such field"),
        ("legs[\"0\"]", "an index is a number"),
    ];
    for (path, expected) in cases {
        let found = FieldPath::parse(&robot(), path).expect_err(path).to_string();
        assert!(found.contains(expected), "{path}: expected {expected:?} in {found:?}");
    }
    assert!(FieldPath::parse(&robot(), &"a".repeat(5000)).is_err());
}

#[test]
fn a_table_has_the_same_columns_for_every_message() {
    let columns = Columns::all(&robot()).expect("few columns");
    assert_eq!(
        columns.header(),
        [
            "stamp", "frame_id", "legs", "cells", "by_id", "image", "mode", "speed", "count",
            "ratio", "text", "flag", "inner", "extra", "modes"
        ]
    );
    let row = columns.row(&read(
        &json!({"frameId": "a,\"b\"", "legs": [{"id": 1}], "mode": "WALK", "count": "5"}),
    ));
    assert_eq!(
        row,
        [
            "",
            "a,\"b\"",
            "[{\"force\":[],\"id\":1}]",
            "{}",
            "{}",
            "",
            "WALK",
            "",
            "5",
            "0.0",
            "",
            "",
            "",
            "",
            "[]"
        ]
    );
    assert_eq!(
        csv_line(row[1..3].iter().map(String::as_str)),
        "\"a,\"\"b\"\"\",\"[{\"\"force\"\":[],\"\"id\"\":1}]\""
    );
    let flat = schema(
        "message P { double x = 1; double y = 2; } message M { P a = 1; P b = 2; bool ok = 3; }",
    );
    let columns = Columns::all(&flat).expect("few columns");
    assert_eq!(columns.header(), ["a.x", "a.y", "b.x", "b.y", "ok"]);
    let message = Dynamic::from_json(&flat, &json!({"b": {"y": 2.5}})).expect("valid");
    assert_eq!(columns.row(&message), ["", "", "0.0", "2.5", "false"]);
    let chosen = Columns::within([&FieldPath::parse(&robot(), "legs[0].id").expect("a path")])
        .expect("few columns");
    assert_eq!(chosen.row(&read(&sample())), ["1"]);
    assert_eq!(chosen.row(&Dynamic::new(&robot())), [""]);
}

#[test]
fn text_has_units_and_cannot_control_a_terminal() {
    let message = read(&json!({
        "stamp": "2026-11-21T12:00:00Z", "frameId": "\u{1b}[2J\u{9b}", "legs": [{"force": [1.5, 2.5], "id": 3}],
        "cells": {"left": {"volt": 24.1}}, "image": "AAEC", "mode": "WALK", "speed": 0.25, "ratio": "NaN"
    }));
    assert_eq!(
        message.to_text(),
        "stamp: 2026-11-21T12:00:00Z\nframe_id: \"\\u001b[2J\\u009b\"\nlegs:\n  -\n    force: [1.5, 2.5]  # N\n    id: 3\n\
         cells:\n  \"left\":\n    volt: 24.1  # V\nimage: \"000102\"  # 3 bytes\nmode: WALK\nspeed: 0.25  # m/s\ncount: 0\n\
         ratio: .nan\n"
    );
    let long =
        Dynamic::from_json(&robot(), &json!({"modes": vec![1; 1000], "image": "A".repeat(40)}));
    let long = long.expect("valid").to_text();
    assert!(long.contains(", ...]  # 968 more\n"), "{long}");
    assert!(long.contains(&format!("image: \"{}...\"  # 30 bytes\n", "00".repeat(16))), "{long}");
}

/// YAML 1.1 reads `NO` as false, and many parsers implement it.
#[test]
fn yaml_keywords_are_quoted() {
    let m = schema(
        "import \"google/protobuf/wrappers.proto\"; import \"google/protobuf/duration.proto\";
        enum E { NO = 0; NORTH = 1; Null = 2; }
        message M { E e = 1; repeated E many = 2; bool on = 3; google.protobuf.StringValue text = 4; google.protobuf.Duration off = 5; }",
    );
    let message =
        json!({"many": ["NO", "NORTH", "Null"], "on": true, "text": "1e3", "off": "1.5s"});
    let message = Dynamic::from_json(&m, &message).expect("valid");
    assert_eq!(
        message.to_text(),
        "e: \"NO\"\nmany: [\"NO\", NORTH, \"Null\"]\n\"on\": true\ntext: \"1e3\"\n\"off\": 1.500s\n"
    );
}

#[test]
fn text_is_truncated_by_options() {
    let legs = json!([{"id": 1, "force": [1, 2, 3]}, {"id": 2}, {"id": 3}]);
    let message = read(&json!({"legs": legs, "cells": {"a": {}, "b": {"volt": 1}}}));
    let options = TextOptions { max_elements: 1, max_bytes: 0 };
    assert_eq!(
        message.to_text_with(&options),
        "frame_id: \"\"\nlegs:\n  -\n    force: [1.0, ...]  # 2 more, N\n    id: 1\n  # ... 2 more\ncells:\n  \"a\":\n    volt: 0.0  # V\n  \
         # ... 1 more\nimage: \"\"  # 0 bytes\nmode: IDLE\ncount: 0\nratio: 0.0\n"
    );
}

#[test]
fn components_inherit_the_unit_of_their_field() {
    let text = r#"import "foxglove/Vector3.proto";
        message M {
          foxglove.Vector3 velocity = 1; // Unit: m/s
          repeated foxglove.Vector3 forces = 2; // Unit: N
          map<string, foxglove.Vector3> by_name = 3; // Unit: T
          foxglove.Vector3 bare = 4;
          double share = 5; // Unit: 1
        }"#;
    let m = schema(text);
    let message =
        json!({"velocity": {"x": 1}, "forces": [{"z": 2}], "byName": {"a": {}}, "bare": {}});
    let message = Dynamic::from_json(&m, &message).expect("valid");
    let xyz = |indent: &str, x: f64, z: f64, unit: &str| {
        format!("{indent}x: {x:?}{unit}\n{indent}y: 0.0{unit}\n{indent}z: {z:?}{unit}\n")
    };
    let expected = [
        "velocity:\n".to_owned() + &xyz("  ", 1.0, 0.0, "  # m/s"),
        "forces:\n  -\n".to_owned() + &xyz("    ", 0.0, 2.0, "  # N"),
        "by_name:\n  \"a\":\n".to_owned() + &xyz("    ", 0.0, 0.0, "  # T"),
        "bare:\n".to_owned() + &xyz("  ", 0.0, 0.0, ""),
        "share: 0.0\n".to_owned(),
    ];
    assert_eq!(message.to_text(), expected.concat());
    let at = |path: &str| {
        let path = FieldPath::parse(&m, path).expect("a path");
        let unit = path.unit(m.docs()).map(str::to_owned);
        (message.get_text(&path, &TextOptions::default()), unit)
    };
    assert_eq!(at("velocity.x"), (Some("1.0  # m/s\n".into()), Some("m/s".into())));
    assert_eq!(at("forces[0].z"), (Some("2.0  # N\n".into()), Some("N".into())));
    assert_eq!(at("velocity"), (Some(xyz("", 1.0, 0.0, "  # m/s")), Some("m/s".into())));
    assert_eq!(at("by_name[\"a\"].y").1, Some("T".into()));
    // Units come from a peer and are printed on a terminal.
    assert_eq!((unit_of("Unit: \u{1b}[2J"), unit_of("[\u{9b}2J]")), (None, None));
    for turning in ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}'] {
        assert_eq!(unit_of(&format!("Unit: {turning}s/m")), None, "{turning:?}");
        assert_eq!(unit_of(&format!("[{turning}s/m]")), None, "{turning:?}");
    }
    assert_eq!((at("bare.x").1, at("share").1, at("forces[1].z").0), (None, None, None));
}

#[test]
fn rows_of_one_field() {
    let header = |path: &str| {
        let path = FieldPath::parse(&robot(), path).expect("a path");
        Columns::within([&path]).expect("few columns").header()
    };
    assert_eq!(header("legs[1]"), ["legs[1].force", "legs[1].id"]);
    assert_eq!(header("legs"), ["legs"]);
    assert_eq!(header("cells[\"left\"]"), ["cells[\"left\"].volt"]);
    assert_eq!(header("stamp"), ["stamp"]);
    assert_eq!(header("speed"), ["speed"]);
    let path = FieldPath::parse(&robot(), "legs[0]").expect("a path");
    let columns = Columns::within([&path]).expect("few columns");
    assert_eq!(columns.row(&read(&sample())), ["[1.5,-2.0]", "1"]);
    assert_eq!(columns.row(&Dynamic::new(&robot())), ["", ""]);
}

#[test]
fn unknown_fields_of_newer_messages_are_preserved() {
    let old = schema("message M { double x = 1; }");
    let new = schema("message M { double x = 1; string note = 2; }");
    let bytes =
        Dynamic::from_json(&new, &json!({"x": 1.5, "note": "hello"})).expect("valid").encode();
    let passed = Dynamic::decode(&old, &bytes).expect("compatible types");
    assert!(passed.to_text().contains("# and 1 value of unknown fields"), "{}", passed.to_text());
    let back = Dynamic::decode(&new, &passed.encode()).expect("unchanged");
    assert_eq!(back.to_json(&JsonOptions::default()), json!({"x": 1.5, "note": "hello"}));
}

fn malformed(schema: &Schema, bytes: &[u8]) -> (usize, String, String) {
    match Dynamic::decode(schema, bytes) {
        Err(DecodeError::Malformed { offset, field_path, why, .. }) => (offset, field_path, why),
        other => panic!("expected malformed, found {other:?}"),
    }
}

#[test]
fn decode_errors_have_byte_and_field() {
    let m = schema(
        "message I { string s = 1; repeated fixed32 f = 2; } message M { I i = 1; repeated I many = 2; double d = 3; }",
    );
    assert_eq!(
        malformed(&m, b"\x0a\x04\x0a\x02a\xff"),
        (5, "i.s".into(), "a string is not UTF-8".into())
    );
    assert_eq!(malformed(&m, b"\x12\x00\x12\x05\x12\x03abc").1, "many.f");
    let (offset, path, why) = malformed(&m, b"\x18\x01");
    assert_eq!((offset, path.as_str()), (0, "d"));
    assert_eq!(why, "the type declares double d = 3, but the bytes contain a varint");
    // A length of two gigabytes without data.
    let (offset, path, why) = malformed(&m, b"\x0a\x06\x0a\xff\xff\xff\xff\x07");
    assert_eq!((offset, path.as_str()), (8, "i"));
    assert!(why.contains("longer than the rest"), "{why}");
    let error = Dynamic::decode(&m, b"\x18\x01").expect_err("no double").to_string();
    assert!(error.starts_with("malformed M at byte 0 (field `d`): "), "{error}");
}

#[test]
fn decode_limits_are_enforced() {
    let m = schema("message M { M next = 1; repeated M many = 2; repeated int32 n = 3; }");
    let limit =
        |bytes: &[u8], limits: &DecodeLimits| match Dynamic::decode_within(&m, bytes, limits) {
            Err(DecodeError::Limit { limit_name, field_path, .. }) => (limit_name, field_path),
            other => panic!("expected a limit, found {other:?}"),
        };
    let nest = |depth: usize| {
        (1..depth).fold(Vec::new(), |inner: Vec<u8>, _| {
            let len = u8::try_from(inner.len()).expect("a short message");
            let long = if len < 0x80 { vec![0x0a, len] } else { vec![0x0a, len | 0x80, 1] };
            [long, inner].concat()
        })
    };
    let limits = DecodeLimits::default();
    assert!(Dynamic::decode(&m, &nest(limits.max_depth)).is_ok());
    assert_eq!(limit(&nest(limits.max_depth + 1), &limits).0, "max_depth");
    let bomb = b"\x12\x00".repeat(1000);
    // Each message counts as eight values.
    let values = |max_values| DecodeLimits { max_values, ..limits };
    assert_eq!(limit(&bomb, &values(7999)).0, "max_values");
    assert!(Dynamic::decode_within(&m, &bomb, &values(8000)).is_ok());
    // Packed numbers count one by one, against a separate limit.
    let packed = [&b"\x1a\xe8\x07"[..], &[0; 1000]].concat();
    let numbers = |max_numbers| DecodeLimits { max_numbers, ..values(1) };
    assert_eq!(limit(&packed, &numbers(999)), ("max_numbers", "n".into()));
    assert!(Dynamic::decode_within(&m, &packed, &numbers(1000)).is_ok());
    assert_eq!(limit(&bomb, &DecodeLimits { max_len_bytes: 1999, ..limits }).0, "max_len_bytes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_are_an_error_or_a_message(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..5),
    ) {
        let (schema, mut bytes) = (robot(), read(&sample()).encode());
        for (at, what, byte) in changes {
            let at = at.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        match Dynamic::decode(&schema, &bytes) {
            Err(DecodeError::Malformed { offset, .. }) => prop_assert!(offset <= bytes.len()),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(message) => {
                let _ = message.to_text();
                let _ = message.to_json(&JsonOptions::default());
                let _ = Columns::all(&schema).expect("few columns").row(&message);
                // prost agrees, and decodes what it has written.
                prop_assert!(Dynamic::decode(&schema, &message.encode()).is_ok());
            }
        }
    }

    /// The validation pass accepts exactly what the decoder accepts.
    #[test]
    fn validation_and_decoder_agree(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..32_u8], 0..40)) {
        let m = schema("message M { M a = 1; repeated sint64 b = 2; fixed32 c = 3; string d = 4; map<int32, M> e = 5; repeated double f = 6; }");
        let walked = Dynamic::decode(&m, &bytes);
        // prost-reflect 0.16 decodes a map entry regardless of its wire type.
        let is_entry = |error: &DecodeError| error.to_string().contains("the type declares map<");
        prop_assume!(!walked.as_ref().is_err_and(is_entry));
        let decoded = rnet_schema::prost_reflect::DynamicMessage::decode(m.descriptor().clone(), &*bytes);
        prop_assert_eq!(walked.is_ok(), decoded.is_ok(), "{:?} {:?}", walked.err(), decoded.err());
    }
}
