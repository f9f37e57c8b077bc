//! `.proto` files at run time: the search path, and actionable errors.

use prost::Message;
use rnet_schema::reflect::ReflectSchema;
use rnet_schema::{
    CompiledProtos, Schema, SchemaError, SourceLocation, Sources, builtin_files, compile_file,
    compile_text, limits,
};
use std::fs;
use std::path::PathBuf;

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rnet-schema-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder in the folder of temporary files");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("inside of the folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover temporary folder must not hide the test result.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn none() -> &'static [PathBuf] {
    &[]
}

fn place(error: SchemaError) -> (SourceLocation, String) {
    match error {
        SchemaError::Proto { place, message } => (place, message),
        other => panic!("expected a place in a file, found {other}"),
    }
}

fn at(line: usize, column: usize) -> SourceLocation {
    SourceLocation { file: "m.proto".into(), line, column }
}

#[test]
fn imports_are_found_in_own_folder_include_folders_and_built_in() {
    let folder = Folder::new("found");
    let main = folder.write(
        "own/robot.proto",
        "syntax = \"proto3\"; package demo;
         import \"part.proto\"; import \"lib/unit.proto\";
         import \"rnet/msgs/JointState.proto\"; import \"google/protobuf/duration.proto\";
         message Robot { Part part = 1; lib.Unit unit = 2; rnet.msgs.JointState joints = 3; google.protobuf.Duration up = 4; }",
    );
    folder.write(
        "own/part.proto",
        "syntax = \"proto3\"; package demo; message Part { int32 a = 1; }",
    );
    folder.write(
        "include/lib/unit.proto",
        "syntax = \"proto3\"; package lib; message Unit { int32 a = 1; }",
    );
    // The file in the importing file's folder takes precedence.
    folder.write("include/part.proto", "this is not a proto file");
    let compiled = compile_file(&main, &[folder.0.join("include")]).expect("all imports exist");
    assert_eq!(compiled.messages(), ["demo.Robot"]);
    let robot = compiled.schema("Robot").expect("a unique short name");
    assert_eq!(robot.name(), "demo.Robot");
    assert_eq!(robot.docs().unit("rnet.msgs.JointState.velocity"), Some("rad/s or m/s"));
    assert_eq!(Schema::from_descriptor_set(robot.descriptor_set(), "demo.Robot"), Ok(robot));
}

#[test]
fn file_name_is_relative_to_its_include_folder() {
    let folder = Folder::new("named");
    let a = folder
        .write("a/x.proto", "syntax = \"proto3\"; import \"b/y.proto\"; message X { Y y = 1; }");
    folder.write("b/y.proto", "syntax = \"proto3\"; message Y { int32 a = 1; }");
    let x = compile_file(&a, &[&folder.0]).expect("b/y.proto is in the include folder");
    let same = Sources::default()
        .text("b/y.proto", "syntax = \"proto3\"; message Y { int32 a = 1; }")
        .compile_text(
            "other.proto",
            "syntax = \"proto3\"; import \"b/y.proto\"; message X { Y y = 1; }",
        )
        .expect("texts work like files");
    // The location of a file is not part of a type.
    assert_eq!(x.schema("X"), same.schema("X"));
}

#[test]
fn error_has_file_line_column_and_expectation() {
    let text = "syntax = \"proto3\";\nmessage M {\n  double é = 1;\n}";
    assert_eq!(place(compile_text("m.proto", text).err().expect("no name")).0, at(3, 10));
    let (found, why) = place(
        compile_text("m.proto", "syntax = \"proto3\";\nmessage M {\n  double x 1;\n}")
            .err()
            .expect("no ="),
    );
    assert_eq!(found, at(3, 12));
    assert!(why.contains("expected '='"), "{why}");
    let (found, why) =
        place(compile_text("m.proto", "syntax = \"proto3\";\nmessage M {").err().expect("no }"));
    assert_eq!(found, at(2, 12));
    assert!(why.contains("end of file"), "{why}");
}

#[test]
fn undefined_type_is_reported_at_its_use() {
    let text = "syntax = \"proto3\";\nmessage M {\n  Pose pose = 1;\n}";
    let error = compile_text("m.proto", text).err().expect("no Pose");
    assert_eq!(error.to_string(), "m.proto:3:3: name 'Pose' is not defined");
    let twice = "syntax = \"proto3\";\nmessage M {\n  double x = 1;\n  double y = 1;\n}";
    let (found, why) = place(compile_text("m.proto", twice).err().expect("1 twice"));
    assert_eq!((found.line, why.contains("'1'")), (4, true), "{why}");
}

#[test]
fn missing_import_lists_searched_folders() {
    let folder = Folder::new("missing");
    let main = folder.write("m.proto", "syntax = \"proto3\";\nimport \"no/such.proto\";\n");
    let include = folder.0.join("include");
    let error = compile_file(&main, &[&include]).err().expect("no such file");
    let SchemaError::MissingImport { place, name, looked_in } = &error else { panic!("{error}") };
    assert_eq!((place, name.as_str()), (&at(2, 1), "no/such.proto"));
    assert_eq!(looked_in, &[folder.0.display().to_string(), include.display().to_string()]);
    assert!(error.to_string().contains("add an include directory"), "{error}");
}

#[test]
fn cyclic_import_is_shown_completely() {
    let folder = Folder::new("cyclic");
    let main = folder.write("a.proto", "syntax = \"proto3\";\nimport \"b.proto\";\n");
    folder.write("b.proto", "syntax = \"proto3\";\nimport \"c.proto\";\n");
    folder.write("c.proto", "syntax = \"proto3\";\n\nimport \"a.proto\";\n");
    let error = compile_file(&main, none()).err().expect("a circle").to_string();
    assert!(
        error.starts_with("c.proto:3:1: cyclic import: a.proto -> b.proto -> c.proto -> a.proto"),
        "{error}"
    );
    let own =
        compile_text("m.proto", "syntax = \"proto3\"; import \"m.proto\";").err().expect("itself");
    assert!(matches!(own, SchemaError::CyclicImport { .. }), "{own}");
}

#[test]
fn import_cannot_leave_the_folders() {
    let folder = Folder::new("inside");
    let outside =
        folder.write("outside.proto", "syntax = \"proto3\"; message Out { int32 a = 1; }");
    for name in ["../outside.proto".to_owned(), outside.display().to_string()] {
        let main = folder.write("in/m.proto", &format!("syntax = \"proto3\"; import \"{name}\";"));
        let error = compile_file(&main, none()).err();
        assert!(error.is_some(), "{name} was accepted");
    }
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let folder = Folder::new("read");
    let error =
        compile_file(folder.0.join("no.proto"), none()).err().expect("not there").to_string();
    assert!(error.contains("no.proto: No such file"), "{error}");
    let error = compile_file(&folder.0, none()).err().expect("a folder").to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let binary = folder.0.join("binary.proto");
    fs::write(&binary, b"message \xff").expect("a file");
    let error = compile_file(&binary, none()).err().expect("no text").to_string();
    assert!(error.contains("byte 8 is not UTF-8"), "{error}");
    let long = folder.write("long.proto", &" ".repeat(limits::MAX_PROTO_LEN_BYTES + 5));
    let error = compile_file(&long, none()).err().expect("too long");
    assert!(
        matches!(error, SchemaError::Limit { limit_name: "MAX_PROTO_LEN_BYTES", .. }),
        "{error}"
    );
}

#[test]
fn too_many_files_are_refused_by_name() {
    let count = limits::MAX_SCHEMA_FILES + 1;
    let mut sources = Sources::default();
    for i in 0..count {
        sources = sources.text(format!("f{i}.proto"), "syntax = \"proto3\";");
    }
    let imports: String = (0..count).map(|i| format!("import \"f{i}.proto\";")).collect();
    let error = sources.compile_text("m.proto", &format!("syntax = \"proto3\"; {imports}")).err();
    assert!(
        matches!(error, Some(SchemaError::Limit { limit_name: "MAX_SCHEMA_FILES", .. })),
        "{error:?}"
    );
}

#[test]
fn each_built_in_file_compiles_and_each_of_its_fields_has_a_comment() {
    let mut fields = 0;
    for name in builtin_files() {
        let text = format!("syntax = \"proto3\"; import \"{name}\";");
        let compiled = compile_text("m.proto", &text).unwrap_or_else(|error| panic!("{error}"));
        let own = compiled.all_messages().into_iter().filter(|full| full.starts_with("rnet.msgs."));
        for full in own {
            let schema = compiled.schema(&full).unwrap_or_else(|error| panic!("{error}"));
            for field in schema.descriptor().fields() {
                assert!(
                    schema.docs().get(field.full_name()).is_some(),
                    "{} has no comment",
                    field.full_name()
                );
                fields += 1;
            }
        }
    }
    assert!(fields > 0, "no built-in file was checked");
}

#[test]
fn comments_are_separate_and_exported_on_request() {
    let text = "syntax = \"proto3\";\n// A level.\nmessage M {\n  double volt = 1; // Now [V]\n  // How it is.\n  E e = 2;\n}\nenum E {\n  // All is well.\n  OK = 0;\n}";
    let m = compile_text("m.proto", text).and_then(|c| c.schema("M")).expect("it compiles");
    assert_eq!(m.docs().get("M"), Some("A level."));
    assert_eq!(m.docs().get("E.OK"), Some("All is well."));
    assert_eq!(m.docs().unit("M.volt"), Some("V"));
    let bare = Schema::from_descriptor_set(m.descriptor_set(), "M").expect("a valid set");
    assert!(bare.docs().is_empty());
    let full =
        Schema::from_descriptor_set(&m.descriptor_set_with_docs(), "M").expect("a valid set");
    assert_eq!(full.docs(), m.docs());
    assert_eq!((&bare, bare.hash()), (&full, full.hash()));
}

#[test]
fn exported_set_has_json_names() {
    let text = "syntax = \"proto3\"; message M { double linear_velocity_x = 1; N _n2_o = 2; \
                double x_y = 3 [json_name = \"z\"]; map<string, N> by_name = 4; \
                message N { oneof one_of { bool is_it = 1; } } }";
    let m = compile_text("m.proto", text).and_then(|c| c.schema("M")).expect("it compiles");
    let bytes = m.descriptor_set_with_json_names();
    let set = prost_types::FileDescriptorSet::decode(&*bytes).expect("a set");
    let names = |fields: &[prost_types::FieldDescriptorProto]| {
        fields.iter().map(|field| field.json_name().to_owned()).collect::<Vec<_>>()
    };
    let message = &set.file[0].message_type[0];
    assert_eq!(names(&message.field), ["linearVelocityX", "N2O", "z", "byName"]);
    let nested = |name: &str| message.nested_type.iter().find(|n| n.name() == name);
    assert_eq!(names(&nested("N").expect("there").field), ["isIt"]);
    assert_eq!(names(&nested("ByNameEntry").expect("there").field), ["key", "value"]);
    // The type is equal with and without the JSON names.
    let received = Schema::from_descriptor_set(&bytes, "M").expect("the exported set is valid");
    assert_eq!((received.hash(), received.descriptor_set()), (m.hash(), m.descriptor_set()));
}

#[test]
fn editions_are_refused_by_name() {
    let text = "// A comment.\nedition = \"2023\";\npackage p;\nmessage M { int32 edition = 1; }";
    let (found, why) = place(compile_text("m.proto", text).err().expect("an edition"));
    assert_eq!(found, at(2, 1));
    assert!(why.starts_with("editions are not supported; write syntax = \"proto3\""), "{why}");
    // As protoc writes it: field 12 is the syntax, field 14 the edition.
    let compiled = b"\x0a\x1b\x0a\x07m.proto\x22\x03\x0a\x01M\x62\x08editions\x70\xe8\x07";
    let error =
        CompiledProtos::from_descriptor_set(compiled).err().expect("an edition").to_string();
    assert!(error.contains("m.proto") && error.contains("editions are not supported"), "{error}");
    assert_eq!(Schema::from_descriptor_set(compiled, "M").expect_err("too").to_string(), error);
    // Elsewhere it is an ordinary name.
    let text = "syntax = \"proto3\"; message edition { int32 edition = 1; }";
    assert!(compile_text("m.proto", text).is_ok());
}

/// Recordings and caches contain the hash: it must not change between versions.
#[test]
fn hash_of_a_type_is_stable() {
    let text = "syntax = \"proto3\"; package demo; message Level { double volt = 1; repeated string name = 2; }";
    let level = compile_text("level.proto", text)
        .and_then(|c| c.schema("demo.Level"))
        .expect("it compiles");
    assert_eq!(level.hash().to_string(), "2edd8f9732b7b736bfb8371dd5a2a3e0");
}

/// The verdict on two types depends on their reservations, so one description cannot represent equal types
/// that reserve differently.
#[test]
fn hash_includes_reservations_and_equality_does_not() {
    let of = |body: &str| {
        let text = format!("syntax = \"proto3\"; {body} message M {{ E e = 1; }}");
        compile_text("m.proto", &text).and_then(|c| c.schema("M")).expect("it compiles")
    };
    let plain = of("enum E { X = 0; Y = 1; }");
    for other in ["reserved 2;", "reserved \"Z\";", "reserved 2; reserved \"Z\";"] {
        let other = of(&format!("enum E {{ X = 0; Y = 1; {other} }}"));
        assert_eq!(plain, other);
        assert_ne!(plain.hash(), other.hash());
        // Regardless of how it was sent.
        let there = Schema::from_descriptor_set(other.descriptor_set(), "M").expect("a valid set");
        assert_eq!(there.hash(), other.hash());
    }
    let ordered = [of("enum E { X = 0; reserved 3, 2; }"), of("enum E { X = 0; reserved 2, 3; }")];
    assert_eq!(ordered[0].hash(), ordered[1].hash());
}
