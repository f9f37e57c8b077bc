//! Reading of a peer's protobuf types and messages: descriptor sets of any bytes, real ones with changes,
//! messages of any bytes.

#![no_main]

use std::sync::OnceLock;

use rnet_fuzz::Input;
use rnet_schema::prost_reflect::prost::Message;
use rnet_schema::prost_reflect::prost_types::{DescriptorProto, FileDescriptorSet};
use rnet_schema::{
    Columns, DecodeLimits, Dynamic, FieldPath, JsonOptions, Schema, check, compile_text, diff,
    limits,
};

/// Built-in messages that together have each kind of field.
const TYPES: [(&str, &str); 6] = [
    ("rnet/msgs/JointState.proto", "rnet.msgs.JointState"),
    ("rnet/msgs/Diagnostic.proto", "rnet.msgs.Diagnostic"),
    ("rnet/msgs/BatteryState.proto", "rnet.msgs.BatteryState"),
    ("foxglove/SceneUpdate.proto", "foxglove.SceneUpdate"),
    ("foxglove/PointCloud.proto", "foxglove.PointCloud"),
    ("foxglove/Log.proto", "foxglove.Log"),
];

/// Proto2, with features that the built-in ones lack: groups, maps, oneofs, defaults, reservations,
/// recursion.
const ODD: &str = r#"syntax = "proto2"; message Odd {
  required int32 a = 1; optional group G = 2 { repeated Odd odd = 1; } map<string, Odd> m = 3;
  oneof one { sint64 s = 4; bytes b = 5; E e = 6; } repeated fixed32 f = 7 [packed = true];
  optional double d = 8 [default = nan]; optional E h = 9 [default = B]; reserved 20 to 30, 40; reserved "x";
  enum E { option allow_alias = true; A = 0; B = 1; C = 1; reserved 5; } }"#;

fn schemas() -> &'static [Schema] {
    static ALL: OnceLock<Vec<Schema>> = OnceLock::new();
    ALL.get_or_init(|| {
        let imports = TYPES.map(|(file, _)| format!("import \"{file}\";")).concat();
        let built_in =
            compile_text("all.proto", &format!("syntax = \"proto3\"; {imports}")).unwrap();
        let odd = compile_text("odd.proto", ODD).unwrap().schema("Odd").unwrap();
        TYPES.iter().map(|(_, name)| built_in.schema(name).unwrap()).chain([odd]).collect()
    })
}

/// Operations on a valid schema.
fn use_schema(schema: &Schema, others: &[Schema], message: &[u8]) {
    let again = Schema::from_descriptor_set(schema.descriptor_set(), schema.name()).unwrap();
    assert_eq!((&again, again.hash()), (schema, schema.hash()), "the canonical form differs");
    let with_docs = schema.descriptor_set_with_docs();
    if with_docs.len() <= limits::MAX_SCHEMA_LEN_BYTES {
        assert_eq!(Schema::from_descriptor_set(&with_docs, schema.name()).unwrap(), *schema);
    }
    assert!(check(schema, &again).changes.is_empty(), "a type differs from itself");
    for other in others {
        for verdict in [check(schema, other), check(other, schema)] {
            assert_eq!(verdict.compatible, verdict.first_breaking().is_none());
            let _ = verdict.to_string();
        }
        let _ = diff(other, schema);
    }
    let columns = Columns::all(schema);
    let limits = DecodeLimits { max_values: 1 << 16, ..DecodeLimits::default() };
    let Ok(decoded) = Dynamic::decode_within(schema, message, &limits) else { return };
    let bytes = decoded.encode();
    let twice = Dynamic::decode(schema, &bytes).expect("what was encoded is a message");
    // The entries of a map come in any order.
    assert_eq!(twice.encode().len(), bytes.len(), "a message changes when it is read and written");
    let json = decoded.to_json(&JsonOptions::default());
    let _ = (Dynamic::from_json(schema, &json), decoded.to_text());
    if let Ok(columns) = columns {
        let row = columns.row(&decoded);
        assert_eq!(row.len(), columns.header().len());
        for name in columns.header() {
            let path = FieldPath::parse(schema, &name).expect("a column is a path");
            let _ = decoded.get_json(&path, &JsonOptions::default());
        }
    }
}

/// One change of a valid set.
fn change(set: &mut FileDescriptorSet, input: &mut Input<'_>) {
    let at = |input: &mut Input<'_>, len: usize| input.byte() as usize % len.max(1);
    let file = at(input, set.file.len());
    let Some(file) = set.file.get_mut(file) else { return };
    let message = at(input, file.message_type.len());
    let Some(message) = file.message_type.get_mut(message) else { return };
    match input.byte() % 14 {
        0 => {
            file.syntax =
                [None, Some("proto2".to_owned()), Some("proto3".to_owned())][at(input, 3)].clone()
        }
        1 => file.package = Some("p".repeat(input.short() as usize % 300)),
        2 => file.dependency.push(["m.proto", "", "foxglove/Color.proto"][at(input, 3)].to_owned()),
        3 => message.name = Some("N".repeat(input.byte() as usize)),
        4 => {
            let copy = message.clone();
            message.nested_type.push(copy);
        }
        5 => message.nested_type.push(DescriptorProto::default()),
        6 => {
            let range = message.reserved_range.first().copied().unwrap_or_default();
            message.reserved_range.push(range);
            let range = message.reserved_range.last_mut().unwrap();
            (range.start, range.end) = (Some(input.word(1) as i32), Some(input.word(2) as i32));
        }
        7 => message.options.get_or_insert_default().map_entry = Some(true),
        8 => {
            if let Some(value) = message.enum_type.first_mut().and_then(|e| e.value.first_mut()) {
                value.number = Some(input.word(0) as i32);
            }
        }
        choice => {
            let field = at(input, message.field.len());
            let oneofs = message.oneof_decl.len();
            let Some(field) = message.field.get_mut(field) else { return };
            match choice {
                9 => field.number = Some(input.word(field.number() as u64) as i32),
                10 => field.r#type = Some(i32::from(input.byte() % 20)),
                11 => field.label = Some(i32::from(input.byte() % 5)),
                12 => {
                    field.type_name = Some(
                        [".Odd", ".Odd.G", ".Odd.E", ".foxglove.Color", ".", "Odd"][at(input, 6)]
                            .to_owned(),
                    );
                }
                _ => match input.byte() % 4 {
                    0 => field.oneof_index = Some(at(input, oneofs + 1) as i32),
                    1 => field.proto3_optional = Some(true),
                    2 => {
                        field.default_value =
                            Some(String::from_utf8_lossy(input.rest()).into_owned())
                    }
                    _ => field.json_name = Some("j".repeat(input.byte() as usize)),
                },
            }
        }
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let all = schemas();
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let chosen = &all[usize::from(choice >> 2) % all.len()];
    match choice % 4 {
        // Any bytes as a set.
        0 => {
            let set = input.rest();
            for name in ["Odd", "M"] {
                if let Ok(schema) = Schema::from_descriptor_set(set, name) {
                    use_schema(&schema, &all[6..], &[]);
                }
            }
        }
        // A real set with changed bytes.
        1 => {
            let mut set = chosen.descriptor_set_with_docs();
            for _ in 0..1 + input.byte() % 8 {
                let at = input.short() as usize % set.len();
                set[at] = input.byte();
            }
            if input.byte() == 0 {
                set.truncate(input.short() as usize);
            }
            if let Ok(schema) = Schema::from_descriptor_set(&set, chosen.name()) {
                use_schema(&schema, std::slice::from_ref(chosen), input.rest());
            }
        }
        // A real set with changed parts.
        2 => {
            let mut set = FileDescriptorSet::decode(chosen.descriptor_set()).unwrap();
            for _ in 0..1 + input.byte() % 6 {
                change(&mut set, &mut input);
            }
            if let Ok(schema) = Schema::from_descriptor_set(&set.encode_to_vec(), chosen.name()) {
                use_schema(&schema, std::slice::from_ref(chosen), input.rest());
            }
        }
        // Any bytes as a message.
        _ => use_schema(chosen, &[], input.rest()),
    }
});
