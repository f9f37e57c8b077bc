//! Descriptor sets of hostile, broken or dying peers: an error with the limit or the fault, never a panic, a
//! hang or unbounded memory.

use crate::common;
use rnet_schema::reflect::ReflectSchema;

use common::schema;
use proptest::prelude::*;
use prost::Message;
use prost_types::descriptor_proto::ReservedRange;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FieldOptions, FileDescriptorProto, FileDescriptorSet, MessageOptions, OneofDescriptorProto,
};
use rnet_schema::{Columns, Rule, Schema, SchemaError, check, limits};

fn file(name: &str, message_type: Vec<DescriptorProto>) -> FileDescriptorProto {
    let (name, syntax) = (Some(name.to_owned()), Some("proto3".to_owned()));
    FileDescriptorProto { name, syntax, message_type, ..Default::default() }
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.to_owned()), field, ..Default::default() }
}

fn field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional as i32),
        r#type: Some(kind as i32),
        ..Default::default()
    }
}

fn of_type(mut field: FieldDescriptorProto, type_name: &str) -> FieldDescriptorProto {
    field.type_name = Some(type_name.to_owned());
    field
}

fn read(files: Vec<FileDescriptorProto>) -> Result<Schema, SchemaError> {
    Schema::from_descriptor_set(&FileDescriptorSet { file: files }.encode_to_vec(), "M")
}

/// The limit that a set exceeds.
fn limit_of(files: Vec<FileDescriptorProto>) -> &'static str {
    match read(files) {
        Err(SchemaError::Limit { limit_name, limit, found, .. }) if found > limit => limit_name,
        other => panic!("expected a limit, found {other:?}"),
    }
}

/// The reason why a set with this message is invalid.
fn fault_of(messages: Vec<DescriptorProto>) -> String {
    match read(vec![file("m.proto", messages)]) {
        Err(error @ SchemaError::Invalid { .. }) => error.to_string(),
        other => panic!("expected it to be invalid, found {other:?}"),
    }
}

#[test]
fn errors_contain_the_limit() {
    let over = |n: usize| 0..=n;
    let files = over(limits::MAX_SCHEMA_FILES).map(|i| file(&format!("{i}.proto"), vec![]));
    assert_eq!(limit_of(files.collect()), "MAX_SCHEMA_FILES");
    let types = over(limits::MAX_SCHEMA_TYPES).map(|i| message(&format!("T{i}"), vec![]));
    assert_eq!(limit_of(vec![file("m.proto", types.collect())]), "MAX_SCHEMA_TYPES");
    let fields =
        over(limits::MAX_SCHEMA_FIELDS).map(|i| field(&format!("f{i}"), i as i32 + 1, Type::Bool));
    assert_eq!(
        limit_of(vec![file("m.proto", vec![message("M", fields.collect())])]),
        "MAX_SCHEMA_FIELDS"
    );
    let value = |i| EnumValueDescriptorProto {
        name: Some(format!("V{i}")),
        number: Some(i as i32),
        options: None,
    };
    let values = over(limits::MAX_SCHEMA_ENUM_VALUES).map(value).collect();
    let mut with_enum = file("m.proto", vec![]);
    with_enum.enum_type =
        vec![EnumDescriptorProto { name: Some("E".into()), value: values, ..Default::default() }];
    assert_eq!(limit_of(vec![with_enum]), "MAX_SCHEMA_ENUM_VALUES");
    let mut reserved = message("M", vec![]);
    reserved.reserved_name = vec![String::new(); limits::MAX_SCHEMA_RECORDS + 1];
    assert_eq!(limit_of(vec![file("m.proto", vec![reserved])]), "MAX_SCHEMA_RECORDS");
    let long = "n".repeat(limits::MAX_SCHEMA_NAME_LEN_BYTES + 1);
    assert_eq!(
        limit_of(vec![file("m.proto", vec![message(&long, vec![])])]),
        "MAX_SCHEMA_NAME_LEN_BYTES"
    );
    let nested = |depth: usize, name: &str| {
        (0..depth).fold(message(name, vec![]), |inner, _| DescriptorProto {
            nested_type: vec![inner],
            ..message(name, vec![])
        })
    };
    let deep = nested(limits::MAX_SCHEMA_NESTING, "N");
    assert_eq!(limit_of(vec![file("m.proto", vec![deep])]), "MAX_SCHEMA_NESTING");
    let wide = nested(3, &"n".repeat(limits::MAX_SCHEMA_FULL_NAME_LEN_BYTES / 3));
    assert_eq!(limit_of(vec![file("m.proto", vec![wide])]), "MAX_SCHEMA_FULL_NAME_LEN_BYTES");
    match Schema::from_descriptor_set(&vec![0; limits::MAX_SCHEMA_LEN_BYTES + 1], "M") {
        Err(SchemaError::Limit { limit_name: "MAX_SCHEMA_LEN_BYTES", .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn set_at_the_limits_is_accepted() {
    let fields = (1..=2000).map(|i| field(&format!("f{i}"), i, Type::Bool)).collect();
    let types = (0..1000).map(|i| message(&format!("T{i}"), vec![]));
    let types = types.chain([message("M", fields)]).collect();
    let taken = read(vec![file("m.proto", types)]).expect("all limits are kept");
    assert_eq!(taken.descriptor().fields().len(), 2000);
}

#[test]
fn comparison_that_exceeds_its_budget_is_rejected() {
    // Each of many long types of the writer is compared with each of many of the reader.
    let set = |stride: usize| {
        const TYPES: usize = 120;
        let mut types: Vec<DescriptorProto> = (0..TYPES)
            .map(|i| {
                let fields = (0..100).map(|n| {
                    let target = format!(".T{}", (i * stride + n) % TYPES);
                    of_type(field(&format!("f{n}"), n as i32 + 1, Type::Message), &target)
                });
                message(&format!("T{i}"), fields.collect())
            })
            .collect();
        types.push(message("M", vec![of_type(field("t", 1, Type::Message), ".T0")]));
        read(vec![file("m.proto", types)]).expect("a valid set")
    };
    let verdict = check(&set(1), &set(2));
    let rules: Vec<Rule> = verdict.changes.iter().map(|change| change.rule).collect();
    assert!(!verdict.compatible);
    assert!(rules.contains(&Rule::Limit), "{rules:?}");
}

/// A chain of thousands of nested types: the path of a change contains all their names.
#[test]
fn reported_path_length_is_limited() {
    const TYPES: usize = 3000;
    let set = |kind: Type| {
        let next = |i: usize| of_type(field("inside", 1, Type::Message), &format!(".T{}", i + 1));
        let mut types: Vec<DescriptorProto> =
            (0..TYPES).map(|i| message(&format!("T{i}"), vec![next(i)])).collect();
        types.push(message(&format!("T{TYPES}"), vec![field("end", 1, kind)]));
        types.push(message("M", vec![of_type(field("first", 1, Type::Message), ".T0")]));
        read(vec![file("m.proto", types)]).expect("a valid set")
    };
    let verdict = check(&set(Type::Double), &set(Type::Float));
    assert!(!verdict.compatible && verdict.changes.len() == 1, "{verdict}");
    let path = &verdict.changes[0].path;
    assert!(path.starts_with("first.inside.inside") && path.ends_with('…'), "{path}");
    assert!(path.len() < limits::MAX_PATH_LEN_BYTES + 8, "{}", path.len());
}

/// A few types with a hundred fields of the next type each: a huge number of paths without a single value.
#[test]
fn column_search_is_limited() {
    let tree = |depth: usize| {
        let fields = |i: usize| {
            let next = format!(".T{}", i + 1);
            (1..=100).map(|n| of_type(field(&format!("f{n}"), n, Type::Message), &next)).collect()
        };
        let mut types: Vec<DescriptorProto> =
            (0..depth).map(|i| message(&format!("T{i}"), fields(i))).collect();
        types.push(message(&format!("T{depth}"), vec![]));
        types.push(message("M", vec![of_type(field("t", 1, Type::Message), ".T0")]));
        read(vec![file("m.proto", types)]).expect("a valid set")
    };
    assert_eq!(Columns::all(&tree(2)).expect("few").header(), Vec::<String>::new());
    let refused = Columns::all(&tree(30)).expect_err("too many").to_string();
    assert!(refused.contains("MAX_COLUMN_FIELDS"), "{refused}");
    // Nesting beyond the decoding limit is one cell.
    let chain: Vec<DescriptorProto> = (0..3000)
        .map(|i| {
            let next = of_type(field("t", 1, Type::Message), &format!(".T{}", i + 1));
            message(&format!("T{i}"), vec![next])
        })
        .chain([message("T3000", vec![field("end", 1, Type::Bool)])])
        .chain([message("M", vec![of_type(field("t", 1, Type::Message), ".T0")])])
        .collect();
    let deep = read(vec![file("m.proto", chain)]).expect("a valid set");
    let header = Columns::all(&deep).expect("one column").header();
    assert_eq!(header, [vec!["t"; limits::MAX_DECODE_DEPTH].join(".")]);
}

/// Structures whose construction takes quadratic time.
#[test]
fn quadratic_checks_are_limited() {
    let reserved = |fields: i32, ranges: i32| {
        let mut with =
            message("M", (1..=fields).map(|i| field(&format!("f{i}"), i, Type::Bool)).collect());
        let range = |i| ReservedRange { start: Some(100_000 + i), end: Some(100_001 + i) };
        with.reserved_range = (0..ranges).map(range).collect();
        vec![file("m.proto", vec![with])]
    };
    assert_eq!(limit_of(reserved(10_000, 10_000)), "MAX_SCHEMA_LOOKUPS");
    read(reserved(10_000, 100)).expect("within the limits");
    let defaults = |fields: i32| {
        let of_enum = |i| FieldDescriptorProto {
            default_value: Some("V9999".to_owned()),
            ..of_type(field(&format!("f{i}"), i, Type::Enum), ".E")
        };
        let mut with = file("m.proto", vec![message("M", (1..=fields).map(of_enum).collect())]);
        with.syntax = None;
        let name = |i| Some(format!("V{i}"));
        let value =
            |i| EnumValueDescriptorProto { name: name(i), number: Some(i), ..Default::default() };
        let value = (0..10_000).map(value).collect();
        with.enum_type =
            vec![EnumDescriptorProto { name: Some("E".into()), value, ..Default::default() }];
        vec![with]
    };
    assert_eq!(limit_of(defaults(5000)), "MAX_SCHEMA_LOOKUPS");
    read(defaults(100)).expect("within the limits");
}

#[test]
fn oneofs_are_sorted() {
    let in_oneof = |name: &str, number, oneof| FieldDescriptorProto {
        oneof_index: Some(oneof),
        ..field(name, number, Type::Bool)
    };
    let optional = FieldDescriptorProto { proto3_optional: Some(true), ..in_oneof("o", 1, 0) };
    let fields = vec![optional, in_oneof("a", 4, 2), in_oneof("b", 2, 1), in_oneof("c", 3, 2)];
    let mut with = message("M", fields);
    let names = ["_o", "second", "third"];
    with.oneof_decl = names
        .map(|name| OneofDescriptorProto { name: Some(name.into()), ..Default::default() })
        .to_vec();
    let read = read(vec![file("m.proto", vec![with])]).expect("a valid set");
    let oneofs = read.descriptor().oneofs();
    let members: Vec<(String, Vec<String>)> = oneofs
        .map(|o| (o.name().to_owned(), o.fields().map(|f| f.name().to_owned()).collect()))
        .collect();
    let right = [("second", vec!["b"]), ("third", vec!["c", "a"]), ("_o", vec!["o"])];
    let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(members, right.map(|(name, fields)| (name.to_owned(), owned(&fields))));
}

#[test]
fn inconsistent_set_is_rejected_with_location() {
    let bad_field = |field: FieldDescriptorProto| fault_of(vec![message("M", vec![field])]);
    let cases = [
        (bad_field(field("a", 0, Type::Bool)), "M.a: 0 is not a field number"),
        (bad_field(field("a", 19_000, Type::Bool)), "19000 is not a field number"),
        (bad_field(field("1a", 1, Type::Bool)), "\"1a\" is not a valid name"),
        (bad_field(field("a", 1, Type::Message)), "M.a: its type name is missing"),
        (bad_field(of_type(field("a", 1, Type::Message), "M")), "does not start with a dot"),
        (bad_field(of_type(field("a", 1, Type::Message), ".No")), "\"No\" is not defined"),
        (bad_field(of_type(field("a", 1, Type::Enum), ".M")), "does not have the kind"),
        (bad_field(of_type(field("a", 1, Type::Bool), ".M")), "cannot have a type name"),
        (bad_field(of_type(field("a", 1, Type::Group), ".M")), "do not exist in proto3"),
        (
            bad_field(FieldDescriptorProto { r#type: Some(99), ..field("a", 1, Type::Bool) }),
            "its type does not exist",
        ),
        (
            bad_field(FieldDescriptorProto { label: Some(9), ..field("a", 1, Type::Bool) }),
            "label is not optional",
        ),
        (
            bad_field(FieldDescriptorProto { oneof_index: Some(7), ..field("a", 1, Type::Bool) }),
            "oneof 7 does not exist",
        ),
        (
            bad_field(FieldDescriptorProto { oneof_index: Some(-1), ..field("a", 1, Type::Bool) }),
            "oneof -1 does not exist",
        ),
        (
            bad_field(FieldDescriptorProto {
                proto3_optional: Some(true),
                ..field("a", 1, Type::Bool)
            }),
            "its own oneof",
        ),
        (
            bad_field(FieldDescriptorProto {
                default_value: Some("1".into()),
                ..field("a", 1, Type::Int32)
            }),
            "cannot have a default",
        ),
        (
            bad_field(FieldDescriptorProto {
                options: Some(FieldOptions { packed: Some(true), ..Default::default() }),
                ..field("a", 1, Type::String)
            }),
            "only repeated numbers",
        ),
        (
            fault_of(vec![message(
                "M",
                vec![field("a", 1, Type::Bool), field("b", 1, Type::Bool)],
            )]),
            "M.b: number 1",
        ),
        (
            fault_of(vec![message(
                "M",
                vec![field("a", 1, Type::Bool), field("a", 2, Type::Bool)],
            )]),
            "two fields",
        ),
        (fault_of(vec![message("M", vec![]), message("M", vec![])]), "M: the set defines it twice"),
        (
            fault_of(vec![DescriptorProto {
                oneof_decl: vec![OneofDescriptorProto { name: Some("a".into()), options: None }],
                ..message("M", vec![field("a", 1, Type::Bool)])
            }]),
            "a field or another oneof has this name",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "expected {expected:?} in {found:?}");
    }
}

#[test]
fn map_entries_are_accepted_in_map_fields_only() {
    let entry = |fields| DescriptorProto {
        options: Some(MessageOptions { map_entry: Some(true), ..Default::default() }),
        ..message("Entry", fields)
    };
    let map = |fields, label: Label| {
        let mut of = of_type(field("m", 1, Type::Message), ".M.Entry");
        of.label = Some(label as i32);
        DescriptorProto { nested_type: vec![entry(fields)], ..message("M", vec![of]) }
    };
    let good = || vec![field("key", 1, Type::String), field("value", 2, Type::Double)];
    let valid = read(vec![file("m.proto", vec![map(good(), Label::Repeated)])]).expect("a map");
    assert!(valid.descriptor().get_field(1).is_some_and(|field| field.is_map()));
    for (fields, label) in [
        (good(), Label::Optional),
        (vec![], Label::Repeated),
        (vec![field("key", 1, Type::Double), field("value", 2, Type::Double)], Label::Repeated),
        (vec![field("value", 2, Type::Double), field("key", 1, Type::String)], Label::Repeated),
        (vec![field("key", 1, Type::String)], Label::Repeated),
    ] {
        let why = fault_of(vec![map(fields, label)]);
        assert!(why.contains("a map entry"), "{why}");
    }
}

#[test]
fn invalid_defaults_are_rejected() {
    let with = |kind, default: &str| {
        let mut proto2 = file(
            "m.proto",
            vec![message(
                "M",
                vec![FieldDescriptorProto {
                    default_value: Some(default.into()),
                    ..field("a", 1, kind)
                }],
            )],
        );
        proto2.syntax = None;
        read(vec![proto2])
    };
    for (kind, default) in [
        (Type::Int32, "2147483648"),
        (Type::Bool, "yes"),
        (Type::Double, ""),
        (Type::Bytes, "\\777"),
        (Type::Bytes, "\\xé"),
        (Type::Bytes, "\\x1"),
        (Type::Bytes, "\\"),
        (Type::Bytes, "é"),
    ] {
        assert!(with(kind, default).is_err(), "{kind:?} accepted {default:?}");
    }
    for (kind, default) in [
        (Type::Int32, "-7"),
        (Type::Double, "inf"),
        (Type::Bytes, "\\377\\x0Fa\\n\\0"),
        (Type::String, "é"),
    ] {
        assert!(
            with(kind, default).is_ok(),
            "{kind:?} rejected {default:?}: {:?}",
            with(kind, default)
        );
    }
}

#[test]
fn missing_and_cyclic_imports_are_reported() {
    let with = |name: &str, imports: &[&str]| FileDescriptorProto {
        dependency: imports.iter().map(|import| (*import).to_owned()).collect(),
        ..file(name, vec![])
    };
    let missing = read(vec![with("a.proto", &["b.proto"])]).expect_err("b is missing").to_string();
    assert!(
        missing.contains("a.proto: it imports \"b.proto\", which is not in the set"),
        "{missing}"
    );
    let cyclic = read(vec![
        with("a.proto", &["b.proto"]),
        with("b.proto", &["c.proto"]),
        with("c.proto", &["b.proto"]),
    ]);
    match cyclic {
        Err(SchemaError::CyclicImport { cycle, .. }) => {
            assert_eq!(cycle, ["b.proto", "c.proto", "b.proto"])
        }
        other => panic!("{other:?}"),
    }
    // The cycle is not in the imports but in the types.
    let mut a =
        file("a.proto", vec![message("M", vec![of_type(field("b", 1, Type::Message), ".B")])]);
    let b = file("b.proto", vec![message("B", vec![of_type(field("m", 1, Type::Message), ".M")])]);
    a.dependency.clear();
    assert!(matches!(read(vec![a, b]), Err(SchemaError::CyclicImport { .. })));
}

#[test]
fn fake_well_known_type_is_rejected() {
    let mut wkt = file(
        "google/protobuf/timestamp.proto",
        vec![message("Timestamp", vec![field("seconds", 1, Type::String)])],
    );
    wkt.package = Some("google.protobuf".into());
    let m = file(
        "m.proto",
        vec![message(
            "M",
            vec![of_type(field("t", 1, Type::Message), ".google.protobuf.Timestamp")],
        )],
    );
    let error = read(vec![wkt, m]).expect_err("no timestamp").to_string();
    assert!(
        error.contains("google.protobuf.Timestamp: it differs from the well-known type"),
        "{error}"
    );
}

#[test]
fn only_required_types_are_kept() {
    let text = "import \"google/protobuf/any.proto\"; import \"google/protobuf/timestamp.proto\"; \
        message Unused { google.protobuf.Any any = 1; } \
        message Around { message In { int32 a = 1; } In gone = 1; } \
        message M { google.protobuf.Timestamp t = 2; Around.In in = 1; }";
    let kept = FileDescriptorSet::decode(schema(text).descriptor_set()).expect("a set");
    let names: Vec<&str> = kept.file.iter().map(FileDescriptorProto::name).collect();
    assert_eq!(names, ["google/protobuf/timestamp.proto", "m.proto"]);
    let m = &kept.file[1];
    assert_eq!(m.dependency, ["google/protobuf/timestamp.proto"]);
    let types: Vec<&str> = m.message_type.iter().map(DescriptorProto::name).collect();
    assert_eq!(types, ["Around", "M"]);
    assert!(m.message_type[0].field.is_empty(), "a shell has no fields");
    assert_eq!(m.message_type[1].field[0].name(), "in");
    assert!(m.source_code_info.is_none());
}

#[test]
fn unknown_type_error_lists_existing_types() {
    let set = schema(
        "message M { message Inner { int32 a = 1; } Inner i = 1; map<string, int32> m = 2; }",
    );
    let error =
        Schema::from_descriptor_set(set.descriptor_set(), "x.Inner").expect_err("no such type");
    assert_eq!(error.to_string(), "unknown message type \"x.Inner\"; known types: M.Inner, M");
}

/// A set that uses all features.
fn rich() -> Vec<u8> {
    let text = "proto2;
        import \"google/protobuf/timestamp.proto\";
        // A comment.
        message M {
          optional int32 a = 1 [default = -5]; // [m/s]
          required bytes b = 2 [default = \"\\001\\xffa\"];
          repeated double c = 3 [packed = true];
          optional group G = 4 { optional string s = 1 [default = \"x\"]; }
          oneof o { string p = 5; E q = 6; }
          map<string, M> r = 7;
          optional E e = 8 [default = TWO];
          optional google.protobuf.Timestamp t = 9;
          message Inner { optional M again = 1; }
          repeated Inner inner = 10;
          reserved 100 to 200; reserved \"old\"; extensions 300 to 400;
        }
        enum E { option allow_alias = true; ONE = 1; TWO = 2; ZWEI = 2; reserved 9; }";
    schema(text).descriptor_set_with_docs()
}

#[test]
fn truncated_set_does_not_panic() {
    let bytes = rich();
    let whole = Schema::from_descriptor_set(&bytes, "M").expect("the whole set");
    assert_eq!(whole.docs().unit("M.a"), Some("m/s"));
    let taken =
        (0..bytes.len()).filter(|&len| Schema::from_descriptor_set(&bytes[..len], "M").is_ok());
    // A set truncated between files may be valid; M is in the last file.
    assert_eq!(taken.count(), 0);
}

#[test]
fn wire_errors_have_the_byte_offset() {
    let at = |bytes: &[u8]| match Schema::from_descriptor_set(bytes, "M") {
        Err(SchemaError::Malformed { offset, why }) => (offset, why),
        other => panic!("{other:?}"),
    };
    assert_eq!(at(b"\x0a\x05\x0a"), (2, "a value is longer than the rest of the message".into()));
    assert_eq!(
        at(b"\x0a\x02\x0a\x7f"),
        (4, "a value is longer than the rest of the message".into())
    );
    assert_eq!(at(b"\x0f"), (1, "wire types 6 and 7 do not exist".into()));
    assert_eq!(
        at(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f").1,
        "a varint is longer than 64 bits"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_set_with_changed_bytes_is_an_error_or_a_type(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..6),
    ) {
        let mut bytes = rich();
        for (at, what, byte) in changes {
            let at = at.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        for name in ["M", "M.Inner", "google.protobuf.Timestamp"] {
            if let Ok(schema) = Schema::from_descriptor_set(&bytes, name) {
                // An accepted set is complete: it can be sent, and equals itself.
                let again = Schema::from_descriptor_set(schema.descriptor_set(), name);
                prop_assert_eq!(again.as_ref(), Ok(&schema));
                prop_assert!(check(&schema, &schema).compatible);
                let message = rnet_schema::Dynamic::new(&schema);
                let _ = message.to_json(&rnet_schema::JsonOptions { defaults: true, ..Default::default() });
                prop_assert!(rnet_schema::Dynamic::decode(&schema, &message.encode()).is_ok());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Schema::from_descriptor_set(&bytes, "M");
    }
}
