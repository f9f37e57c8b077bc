use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

mod rules;

fn prim(name: &str) -> FieldType {
    FieldType::Prim(Prim::from_name(name).unwrap())
}

fn array(of: FieldType, len: u32) -> FieldType {
    FieldType::Array { of: Box::new(of), len }
}

fn field(name: &str, offset: usize, ty: FieldType) -> Field {
    Field { name: name.into(), offset, ty }
}

fn plain(name: &str, size: usize, align: usize, fields: Vec<Field>) -> PlainType {
    PlainType { name: name.into(), size, align, tail: false, fields }
}

fn pose() -> PlainType {
    plain(
        "Pose",
        16,
        8,
        vec![
            field("x", 0, prim("f64")),
            field("y", 8, prim("f32")),
            field("_pad", 12, array(prim("u8"), 4)),
        ],
    )
}

fn robot() -> PlainType {
    let fields = vec![
        field("stamp_ns", 0, prim("i64")),
        field("pose", 8, FieldType::Struct(pose())),
        field("legs", 24, array(FieldType::Struct(pose()), 2)),
        field("grid", 56, array(array(prim("u16"), 2), 2)),
    ];
    plain("Robot", 64, 8, fields)
}

fn refused(json: &str) -> String {
    let error = TypeDesc::from_json(json).unwrap_err();
    assert_eq!(error.code(), "bad_value");
    error.to_string()
}

/// The message for a plain type with this size, alignment and field list.
fn refused_plain(size: usize, align: usize, fields: &str) -> String {
    refused(&format!(
        r#"{{"kind":"plain","name":"T","size":{size},"align":{align},"fields":[{fields}]}}"#
    ))
}

#[test]
fn json_form_matches_documentation() {
    let desc = TypeDesc::Plain(plain(
        "T",
        24,
        8,
        vec![field("a", 0, array(prim("f32"), 2)), field("p", 8, FieldType::Struct(pose()))],
    ));
    let json = concat!(
        r#"{"kind":"plain","name":"T","size":24,"align":8,"fields":[{"name":"a","offset":0,"type":{"array":{"of":"f32","len":2}}},"#,
        r#"{"name":"p","offset":8,"type":{"struct":{"name":"Pose","size":16,"align":8,"fields":[{"name":"x","offset":0,"type":"f64"},"#,
        r#"{"name":"y","offset":8,"type":"f32"},{"name":"_pad","offset":12,"type":{"array":{"of":"u8","len":4}}}]}}}]}"#
    );
    assert_eq!(desc.to_json(), json);
    assert_eq!(TypeDesc::from_json(json).unwrap(), desc);
    assert_eq!(TypeDesc::Raw.to_json(), r#"{"kind":"raw"}"#);
    assert_eq!(TypeDesc::from_json(r#"{"kind":"raw"}"#).unwrap(), TypeDesc::Raw);
    assert_eq!(robot().fields[3].ty.to_string(), "u16[2][2]");
}

#[test]
fn unknown_kind_is_readable_by_raw_subscribers_only() {
    let json = r#"{"kind":"flatbuffer","name":"Pose","fields":7}"#;
    let later = TypeDesc::from_json(json).unwrap();
    assert_eq!((&later, later.name()), (&TypeDesc::Unknown, Some("unknown")));
    assert_eq!(later.to_string(), "a type of an unknown kind");
    compatible(&later, &TypeDesc::Raw).unwrap();
    // Two unknown types may be of different kinds.
    for (publisher, subscriber) in
        [(&later, &later), (&TypeDesc::Raw, &later), (&later, &robot().into())]
    {
        compatible(publisher, subscriber).unwrap_err();
    }
}

#[test]
fn hostile_json_is_refused_with_a_reason() {
    assert!(refused("").contains("EOF"));
    assert!(refused(r#"{"kind":7}"#).contains("variant identifier"));
    assert!(refused(r#"{"name":"other"}"#).contains("kind"));
    assert!(refused(&" ".repeat(MAX_META_LEN_BYTES + 1)).contains("65537 bytes"));
    assert!(refused(&"[".repeat(60_000)).contains("bad value"));
    assert!(
        refused_plain(8, 8, r#"{"name":"a","offset":0,"type":"float"}"#)
            .contains("\"float\"; known types: u8")
    );
    assert!(
        refused_plain(8, 8, r#"{"name":"a","offset":0,"type":{"list":1}}"#)
            .contains("expected `array` or `struct`")
    );
    let two = r#"{"name":"a","offset":0,"type":{"array":{"of":"u8","len":1},"list":1}}"#;
    assert!(refused_plain(8, 8, two).contains("expected"));
    assert!(refused_plain(8, 8, r#"{"name":"a","offset":-1,"type":"u8"}"#).contains("-1"));
    assert!(
        refused_plain(8, 8, r#"{"name":"a","offset":8,"type":"u8"}"#)
            .contains("field `a`: 1 bytes at offset 8")
    );
    assert!(
        refused_plain(8, 8, r#"{"name":"a","offset":18446744073709551615,"type":"u8"}"#)
            .contains("field `a`")
    );
    let both = r#"{"name":"b","offset":4,"type":"u32"},{"name":"a","offset":0,"type":"f64"}"#;
    assert!(refused_plain(8, 8, both).contains("field `b`: it overlaps field `a`"));
    let twice = r#"{"name":"a","offset":4,"type":"u32"},{"name":"a","offset":0,"type":"u32"}"#;
    assert!(refused_plain(8, 8, twice).contains("two fields"));
    assert!(
        refused_plain(8, 8, r#"{"name":"","offset":0,"type":"u8"}"#).contains("this one has 0")
    );
    assert!(
        refused_plain(8, 8, r#"{"name":"a\u001b[31m","offset":0,"type":"u8"}"#)
            .contains("not allowed")
    );
    assert!(refused_plain(8, 8, r#"{"name":"a.b","offset":0,"type":"u8"}"#).contains("'.'"));
    assert!(refused_plain(2 << 30, 8, "").contains("size is"));
    assert!(refused_plain(9, 8, "").contains("not a multiple"));
    for align in [0, 3, 16] {
        assert!(refused_plain(48, align, "").contains("must be 1, 2, 4 or 8"));
    }
    for nothing in [
        r#"{"array":{"of":"u8","len":0}}"#,
        r#"{"struct":{"name":"E","size":0,"align":1,"fields":[]}}"#,
    ] {
        assert!(
            refused_plain(8, 8, &format!(r#"{{"name":"a","offset":0,"type":{nothing}}}"#))
                .contains("no size")
        );
    }
}

#[test]
fn depth_and_number_of_fields_are_bounded() {
    // The struct itself is one level.
    let nested = |arrays: usize| {
        let ty = (0..arrays).fold(prim("u8"), |ty, _| array(ty, 1));
        plain("T", 1, 1, vec![field("a", 0, ty)])
    };
    nested(MAX_TYPE_DEPTH - 2).validate().unwrap();
    assert!(nested(MAX_TYPE_DEPTH - 1).validate().unwrap_err().to_string().contains("16 deep"));
    assert!(nested(1000).validate().is_err());

    let many = |n: usize| {
        plain("T", n, 1, (0..n).map(|i| field(&format!("f{i}"), i, prim("u8"))).collect())
    };
    many(MAX_TYPE_FIELDS).validate().unwrap();
    assert!(many(MAX_TYPE_FIELDS + 1).validate().is_err());
    // Fields of nested structs count too: 64 structs of 64 fields, and the 64 fields that contain them.
    let nested =
        (0..64).map(|i| field(&format!("s{i}"), i * 64, FieldType::Struct(many(64)))).collect();
    assert!(
        plain("T", 4096, 1, nested)
            .validate()
            .unwrap_err()
            .to_string()
            .contains("4096 fields in total")
    );
}

#[test]
fn raw_subscriber_reads_everything_and_raw_publisher_serves_only_raw() {
    let robot = TypeDesc::from(robot());
    compatible(&robot, &TypeDesc::Raw).unwrap();
    compatible(&TypeDesc::Raw, &TypeDesc::Raw).unwrap();
    compatible(&robot, &robot).unwrap();
    let text = compatible(&TypeDesc::Raw, &robot).unwrap_err().to_string();
    assert_eq!(text, "publisher has raw bytes, subscriber has plain type Robot (64 bytes)");
}

/// The message when the subscriber's type is `robot` changed by `change`, and the one for the opposite roles.
fn differs(change: impl FnOnce(&mut PlainType)) -> (String, String) {
    let (ours, mut theirs) = (TypeDesc::from(robot()), robot());
    change(&mut theirs);
    let theirs = TypeDesc::from(theirs);
    let forth = compatible(&ours, &theirs).unwrap_err().to_string();
    (forth, compatible(&theirs, &ours).unwrap_err().to_string())
}

fn inner(ty: &mut FieldType) -> &mut PlainType {
    match ty {
        FieldType::Struct(plain) => plain,
        FieldType::Array { of, .. } => inner(of),
        FieldType::Prim(_) => unreachable!(),
    }
}

#[test]
fn mismatches_name_field_and_both_types() {
    let (forth, back) = differs(|t| inner(&mut t.fields[1].ty).fields[1].ty = prim("u32"));
    assert_eq!(forth, "field `pose.y`: publisher has f32 at 16, subscriber has u32 at 16");
    assert_eq!(back, "field `pose.y`: publisher has u32 at 16, subscriber has f32 at 16");
    let (forth, _) = differs(|t| inner(&mut t.fields[2].ty).fields[1].offset = 12);
    assert_eq!(forth, "field `legs[].y`: publisher has f32 at 32, subscriber has f32 at 36");
    let (forth, back) = differs(|t| t.fields[0] = field("time_ns", 0, prim("u64")));
    assert_eq!(
        forth,
        "field `stamp_ns`: publisher has i64 at 0, subscriber has `time_ns`, u64 at 0"
    );
    assert_eq!(
        back,
        "field `time_ns`: publisher has u64 at 0, subscriber has `stamp_ns`, i64 at 0"
    );
    let (_, back) = differs(|t| t.fields[3] = field("cells", 58, prim("u16")));
    assert_eq!(
        back,
        "field `grid`: publisher has `cells`, u16 at 58, subscriber has u16[2][2] at 56"
    );
    let (forth, _) = differs(|t| t.fields[3].ty = array(array(prim("u16"), 3), 2));
    assert_eq!(
        forth,
        "field `grid`: publisher has u16[2][2] at 56, subscriber has u16[2][3] at 56"
    );
    let (forth, _) = differs(|t| inner(&mut t.fields[1].ty).name = "Point".into());
    assert!(
        forth.contains("struct Pose (16 bytes) at 8, subscriber has struct Point (16 bytes) at 8"),
        "{forth}"
    );
    let (forth, _) = differs(|t| t.name = "Other".into());
    assert_eq!(
        forth,
        "publisher has plain type Robot (64 bytes), subscriber has plain type Other (64 bytes)"
    );
    let (forth, back) = differs(|t| t.tail = true);
    assert_eq!(
        forth,
        "publisher has plain type Robot (64 bytes), subscriber has plain type Robot (64 bytes and data)"
    );
    assert!(back.starts_with("publisher has plain type Robot (64 bytes and data), "), "{back}");
}

#[test]
fn a_field_where_the_publisher_has_padding_is_refused_with_the_reason() {
    let mut old = robot();
    old.fields.pop();
    let why = compatible(&old.into(), &robot().into()).unwrap_err().to_string();
    assert_eq!(
        why,
        "field `grid`: publisher has padding there that may not be zero, subscriber has u16[2][2] at 56"
    );
}

#[test]
fn padding_and_order_of_fields_do_not_matter() {
    let mut theirs = robot();
    inner(&mut theirs.fields[1].ty).fields.pop();
    inner(&mut theirs.fields[2].ty).fields[2].name = "_reserved".into();
    theirs.fields.reverse();
    compatible(&robot().into(), &theirs.clone().into()).unwrap();
    compatible(&theirs.into(), &robot().into()).unwrap();
}

#[test]
fn values_keep_their_order_and_round_trip() {
    let value = json!({
        "stamp_ns": i64::MIN,
        "pose": {"x": -0.5, "y": 0.1},
        "legs": [{"x": "nan", "y": "inf"}, {"x": "-inf", "y": 3.0}],
        "grid": [[1, 2], [3, 65535]],
    });
    let bytes = robot().encode(&value).unwrap();
    assert_eq!(bytes.len(), 64);
    assert_eq!(&bytes[8..16], (-0.5_f64).to_le_bytes());
    assert_eq!(&bytes[62..64], [255, 255]);
    // Compares text, because maps compare without order.
    assert_eq!(robot().format(&bytes).to_string(), value.to_string());
}

#[test]
fn missing_fields_are_zero_and_missing_bytes_are_null() {
    assert_eq!(robot().encode(&json!({})).unwrap(), vec![0; 64]);
    let value = robot().format(&[0; 60]);
    assert_eq!(value["legs"][1], json!({"x": 0.0, "y": 0.0}));
    assert_eq!(value["grid"], Value::Null);
    assert_eq!(robot().format(&[])["stamp_ns"], Value::Null);
}

#[test]
fn data_after_header_is_described_by_its_length() {
    let mut image = pose();
    image.tail = true;
    image.validate().unwrap();
    let json = TypeDesc::from(image.clone()).to_json();
    assert!(json.starts_with(r#"{"kind":"plain","name":"Pose","size":16,"align":8,"tail":true,"#));
    assert_eq!(TypeDesc::from_json(&json).unwrap(), image.clone().into());
    let value = json!({"x": 1.0, "y": 0.5, "_data_len": 100});
    let bytes = image.encode(&value).unwrap();
    assert_eq!((bytes.len(), &bytes[16..]), (116, &[0; 100][..]));
    assert_eq!(image.format(&bytes), value);
    assert_eq!(image.format(&bytes[..11]), json!({"x": 1.0, "y": null, "_data_len": 0}));
    assert_eq!(image.encode(&json!({})).unwrap().len(), 16);
    for (len, with, without) in [(15, false, false), (16, true, true), (17, true, false)] {
        assert_eq!((image.accepts_len(len), pose().accepts_len(len)), (with, without));
    }
    let why = |value: Value| image.encode(&value).unwrap_err().to_string();
    assert!(
        why(json!({"_data_len": "all"})).contains("field `_data_len`: \"all\" is not a number")
    );
    assert!(why(json!({"_data_len": u64::MAX})).contains("exceed the limit of 1073741824"));
    assert!(pose().encode(&json!({"_data_len": 1})).is_err());

    let inside = plain("T", 16, 8, vec![field("p", 0, FieldType::Struct(image.clone()))]);
    assert!(inside.validate().unwrap_err().to_string().contains("field `p`: data must follow"));
    image.fields[2].name = "_data_len".into();
    assert!(image.validate().unwrap_err().to_string().contains("field `_data_len`"));
}

#[test]
fn shorter_messages_are_zero_extended_and_longer_ones_cut() {
    let bytes: Vec<u8> = (1..=64).collect();
    assert!(matches!(pose().fit(&bytes), std::borrow::Cow::Borrowed(cut) if cut == &bytes[..16]));
    assert_eq!(*pose().fit(&bytes[..10]), [&bytes[..10], &[0; 6]].concat());
    assert_eq!(*pose().fit(&[]), [0; 16]);
}

#[test]
fn values_of_wrong_type_are_rejected_with_path() {
    let why = |value: Value| robot().encode(&value).unwrap_err().to_string();
    assert!(
        why(json!([1])).contains(
            "message: an array of 1 is not an object; Robot has the fields stamp_ns, pose"
        )
    );
    assert!(why(json!({"speed": 1})).contains("field `speed`: no such field"));
    // Reserved padding must stay zero.
    assert!(
        why(json!({"pose": {"_pad": [1, 0, 0, 0]}}))
            .contains("field `pose._pad`: no such field; Pose has the fields x, y")
    );
    assert!(
        why(json!({"pose": {"z": 1}}))
            .contains("field `pose.z`: no such field; Pose has the fields x, y")
    );
    assert!(why(json!({"pose": 1})).contains("field `pose`: 1 is not an object"));
    assert!(why(json!({"legs": [{}]})).contains("field `legs`: 1 elements"));
    assert!(
        why(json!({"legs": [{}, {"y": 1e39}]}))
            .contains("field `legs[1].y`: 1e+39 is outside the range of f32")
    );
    assert!(
        why(json!({"legs": [{}, {"y": "much"}]}))
            .contains("field `legs[1].y`: \"much\" is not a number")
    );
    assert!(
        why(json!({"grid": [[0, 0], [0, 65536]]}))
            .contains("field `grid[1][1]`: 65536 is not an integer from 0 to 65535 (u16)")
    );
    assert!(why(json!({"grid": [[0, 0], [0, -1]]})).contains("-1 is not"));
    assert!(why(json!({"stamp_ns": 1.5})).contains("1.5 is not an integer"));
    assert!(why(json!({"stamp_ns": u64::MAX})).contains("stamp_ns"));
}

#[test]
fn booleans_read_any_byte() {
    let t = plain("T", 2, 1, vec![field("on", 0, prim("bool")), field("off", 1, prim("bool"))]);
    assert_eq!(t.format(&[7, 0]), json!({"on": true, "off": false}));
    assert_eq!(t.encode(&json!({"on": true})).unwrap(), [1, 0]);
    assert!(
        t.encode(&json!({"on": 1})).unwrap_err().to_string().contains("neither true nor false")
    );
}

#[test]
fn unchecked_descriptions_do_not_panic() {
    let wild = plain(
        "T",
        8,
        0,
        vec![
            field("far", usize::MAX, prim("u64")),
            field("huge", 0, array(array(prim("u64"), u32::MAX), u32::MAX)),
            field("empty", 0, array(FieldType::Struct(plain("E", 0, 1, vec![])), u32::MAX)),
            field(
                "inside",
                0,
                FieldType::Struct(plain("I", 4, 1, vec![field("out", 2, prim("u32"))])),
            ),
        ],
    );
    assert!(wild.validate().is_err());
    let value = wild.format(&[1; 8]);
    assert_eq!(value, json!({"far": null, "huge": null, "empty": [], "inside": {"out": null}}));
    assert!(wild.encode(&json!({"far": 1})).is_err());
    assert!(wild.encode(&json!({"inside": {"out": 1}})).is_err());
    assert!(plain("T", usize::MAX, 1, vec![]).encode(&json!({})).is_err());
    let _ = compatible(&wild.clone().into(), &robot().into());
    compatible(&wild.clone().into(), &wild.into()).unwrap();
}

/// Types as created by the derive: packed fields, so that any sequence of field types is valid.
fn any_type() -> impl Strategy<Value = PlainType> {
    let leaf = prop::sample::select(Prim::ALL.to_vec()).prop_map(FieldType::Prim);
    let tree = leaf.prop_recursive(3, 24, 4, |inside| {
        prop_oneof![
            (inside.clone(), 1_u32..4).prop_map(|(of, len)| array(of, len)),
            prop::collection::vec(inside, 1..4).prop_map(|types| FieldType::Struct(packed(types))),
        ]
    });
    prop::collection::vec(tree, 0..5).prop_map(packed)
}

fn packed(types: Vec<FieldType>) -> PlainType {
    let mut size = 0;
    let mut fields = Vec::new();
    for (i, ty) in types.into_iter().enumerate() {
        let offset = size;
        size += ty.size();
        fields.push(field(&format!("f{i}"), offset, ty));
    }
    plain("P", size, 1, fields)
}

proptest! {
    #[test]
    fn descriptions_round_trip(t in any_type()) {
        t.validate().unwrap();
        let desc = TypeDesc::from(t);
        prop_assert_eq!(TypeDesc::from_json(&desc.to_json()).unwrap(), desc.clone());
        prop_assert!(compatible(&desc, &desc).is_ok());
    }

    #[test]
    fn different_types_are_detected(a in any_type(), b in any_type()) {
        let same = a == b;
        prop_assert_eq!(compare(&a.into(), &b.into()).is_empty(), same);
    }

    #[test]
    fn bytes_round_trip_through_json(t in any_type(), seed in any::<u64>()) {
        // Booleans and NaN may lose their exact bytes, so compare after one round trip.
        let bytes: Vec<u8> = (0..t.size as u64).map(|i| (seed.wrapping_mul(i * 2 + 1) >> 32) as u8).collect();
        let once = t.encode(&t.format(&bytes)).unwrap();
        let twice = t.encode(&serde_json::from_str(&t.format(&once).to_string()).unwrap()).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn every_float_survives(bits32 in any::<u32>(), bits64 in any::<u64>()) {
        let (narrow, wide) = (f32::from_bits(bits32), f64::from_bits(bits64));
        prop_assume!(!narrow.is_nan() && !wide.is_nan());
        let t = plain("T", 12, 4, vec![field("n", 0, prim("f32")), field("w", 4, prim("f64"))]);
        let bytes = [&narrow.to_le_bytes()[..], &wide.to_le_bytes()[..]].concat();
        let text = t.format(&bytes).to_string();
        prop_assert_eq!(t.encode(&serde_json::from_str(&text).unwrap()).unwrap(), bytes);
    }

    #[test]
    fn damaged_json_never_panics(t in any_type(), at in any::<prop::sample::Index>(), byte in 32_u8..127, cut in any::<bool>()) {
        let mut json = TypeDesc::from(t).to_json().into_bytes();
        let at = at.index(json.len());
        if cut { json.truncate(at) } else { json[at] = byte }
        if let Ok(TypeDesc::Plain(t)) = TypeDesc::from_json(std::str::from_utf8(&json).unwrap()) {
            t.validate().unwrap();
            t.format(&vec![0xa5; t.size]);
        }
    }
}
