//! `rnet type list|show|check|diff`.

use crate::util;

use std::path::PathBuf;

use serde_json::{Value, json};
use util::{Pose, TestEnv};

const OLD: &str = r#"syntax = "proto3";
package robot;
import "foxglove/Vector3.proto";
// A leg of a robot. It has a foot.
message Leg {
  // What it does.
  enum Mode {
    // Nothing.
    IDLE = 0;
    WALK = 1;
    RUN = 2;
  }
  message Foot { bool contact = 1; }
  reserved 20 to 22, 30;
  reserved "legacy";
  double force = 1; // Unit: N
  optional Mode mode = 2;
  map<string, Foot> feet = 3;
  oneof what { string text = 4; int32 code = 5; }
  // Velocity of the foot. Unit: m/s
  foxglove.Vector3 velocity = 6;
  repeated int32 unpacked = 7 [packed = false];
  string note = 8;
}
"#;

fn write(env: &TestEnv, name: &str, text: &str) -> PathBuf {
    let path = env.dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// The old file, and the new one with these replacements.
fn versions(env: &TestEnv, changes: &[(&str, &str)]) -> (String, String) {
    let mut new = OLD.to_owned();
    for (from, to) in changes {
        assert!(new.contains(from), "{from}");
        new = new.replace(from, to);
    }
    let path = |name, text: &str| write(env, name, text).to_str().unwrap().to_owned();
    (path("old/robot.proto", OLD), path("new/robot.proto", &new))
}

#[test]
fn list_shows_built_in_types_with_descriptions() {
    let env = TestEnv::new();
    let all = rnet!(env, "type", "list").ok();
    assert_eq!(all.lines().count(), 85);
    assert!(all.contains("\nfoxglove.LaserScan "), "{all}");
    assert!(all.lines().all(|line| line.ends_with('.')), "{all}");
    let some = rnet!(env, "type", "list", "BATTERY").ok();
    assert_eq!(some, "rnet.msgs.BatteryState  A battery.\n");
    let json = rnet!(env, "type", "list", "batterystate", "--json").json();
    let battery = &json["types"][0];
    assert_eq!(battery["name"], "rnet.msgs.BatteryState");
    assert_eq!(battery["import"], "rnet/msgs/BatteryState.proto");
    assert_eq!(battery["hash"].as_str().unwrap().len(), 32);
    assert_eq!(rnet!(env, "type", "list", "no such thing").ok(), "");
}

#[test]
fn the_built_in_plain_types_are_known_with_what_their_fields_mean() {
    let env = TestEnv::new();
    let listed = rnet!(env, "type", "list", "read in place").ok();
    let kinds: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    let names = ["rnet.msgs.Image", "rnet.msgs.PointCloud", "rnet.msgs.Tensor"];
    assert_eq!(kinds, names.map(|name| vec![name, "(plain)"]));
    let json = rnet!(env, "type", "list", "rnet.msgs.tensor", "--json").json();
    assert_eq!(
        (&json["types"][0]["kind"], json["types"].as_array().unwrap().len()),
        (&json!("plain"), 1)
    );
    let shown = rnet!(env, "type", "show", "Image").ok();
    assert!(
        shown
            .starts_with("plain type rnet.msgs.Image: 192 bytes, aligned to 8, followed by data\n"),
        "{shown}"
    );
    assert!(shown.contains("   96  width: u32         // pixels in a row\n"), "{shown}");
    let shown = rnet!(env, "type", "show", "rnet.msgs.PointCloud").ok();
    assert!(shown.contains("     192  name: u8[32]  "), "{shown}");
    assert!(shown.contains("// foxglove.PackedElementField.NumericType, 1 to 8\n"), "{shown}");
    let said = rnet!(env, "type", "show", "PointCloud").fails(1);
    assert!(said.contains("2 types: foxglove.PointCloud, rnet.msgs.PointCloud"), "{said}");
    let said = rnet!(env, "type", "show", "Tensor", "--descriptor-set", "-").fails(1);
    assert!(said.contains("plain type"), "{said}");
}

#[test]
fn list_has_the_types_of_files_and_of_topics() {
    let env = TestEnv::new();
    let path = write(&env, "protos/robot.proto", OLD);
    let (file, folder) = (path.to_str().unwrap(), path.parent().unwrap().to_str().unwrap());
    for given in [file, folder] {
        let listed = rnet!(env, "type", "list", "--proto", given).ok();
        assert_eq!(listed, "robot.Leg  A leg of a robot.\n");
    }
    rnet!(env, "type", "list", "-I", folder).fails(2);
    let node = env.node("a");
    let _poses = node.publisher::<Pose>("/pose").open().unwrap();
    let _more = node.subscriber::<Pose>("/goal").open().unwrap();
    let _bytes = node.publisher::<[u8]>("/bytes").open().unwrap();
    assert_eq!(rnet!(env, "type", "list", "--in-use").ok(), "Pose  /goal, /pose\n");
    assert_eq!(rnet!(env, "type", "list", "--domain", "other").ok(), "");
    let json = rnet!(env, "type", "list", "--in-use", "--json").json();
    assert_eq!(json["types"][0]["kind"], "plain");
    assert_eq!(json["types"][0]["topics"], json!(["/goal", "/pose"]));
}

#[test]
fn show_prints_a_file_that_compiles_to_the_same_type() {
    let env = TestEnv::new();
    let path = write(&env, "robot.proto", OLD);
    let show =
        |path: &PathBuf| rnet!(env, "type", "show", "Leg", "--proto", path.to_str().unwrap()).ok();
    let text = show(&path);
    for part in [
        "syntax = \"proto3\";\npackage robot;\nimport \"foxglove/Vector3.proto\";\n",
        "// A leg of a robot. It has a foot.\nmessage Leg {\n",
        "  // What it does.\n  enum Mode {\n    // Nothing.\n    IDLE = 0;\n",
        "  reserved 20 to 22, 30;\n  reserved \"legacy\";\n",
        "  double force = 1;  // Unit: N\n",
        "  optional Mode mode = 2;\n",
        "  map<string, Foot> feet = 3;\n",
        "  oneof what {\n    string text = 4;\n    int32 code = 5;\n  }\n",
        "  // Velocity of the foot.\n  foxglove.Vector3 velocity = 6;  // Unit: m/s\n",
        "  repeated int32 unpacked = 7 [packed = false];\n",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert!(!text.contains("message Vector3"), "{text}");
    // The printed text compiles to the same type, including its hash and comments.
    let again = write(&env, "again.proto", &text);
    assert_eq!(show(&again), text);
    for built_in in ["rnet.msgs.BatteryState", "foxglove.CameraCalibration", "Imu"] {
        let text = rnet!(env, "type", "show", built_in).ok();
        let copy = write(&env, "copy.proto", &text);
        let copied = rnet!(env, "type", "show", built_in, "--proto", copy.to_str().unwrap()).ok();
        assert_eq!(copied, text);
    }
}

#[test]
fn show_qualifies_ambiguous_names() {
    let env = TestEnv::new();
    let text = r#"syntax = "proto2";
package a;
message Pose { required double x = 1 [default = -inf]; }
message Outer {
  message Pose { optional string s = 1 [default = "a\"b"]; }
  message a { optional int32 i = 1; }
  optional Pose inner = 1;
  optional .a.Pose outer = 2;
  optional .a.Outer.a third = 4;
  optional group Part = 3 { optional bytes raw = 1 [default = "\001"]; }
}
"#;
    let path = write(&env, "names.proto", text);
    let args = ["type", "show", "Outer", "--all", "--proto"];
    let show = |path: &PathBuf| env.run(&[&args[..], &[path.to_str().unwrap()]].concat()).ok();
    let text = show(&path);
    for part in [
        "  optional Pose inner = 1;\n  optional .a.Pose outer = 2;\n",
        "  optional a third = 4;\n",
        "  optional group Part = 3 {\n    optional bytes raw = 1 [default = \"\\001\"];\n  }\n",
        "required double x = 1 [default = -inf];",
        "optional string s = 1 [default = \"a\\\"b\"];",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert_eq!(show(&write(&env, "again.proto", &text)), text);
}

#[test]
fn show_all_has_what_the_type_needs() {
    let env = TestEnv::new();
    let all = rnet!(env, "type", "show", "PoseInFrame", "--all").ok();
    for part in
        ["message PoseInFrame {", "message Pose {", "message Quaternion {", "message Vector3 {"]
    {
        assert_eq!(all.matches(part).count(), 1, "{part}:\n{all}");
    }
    let json = rnet!(env, "type", "show", "rnet.msgs.Imu", "--json", "--all").json();
    assert_eq!((&json["name"], &json["kind"]), (&json!("rnet.msgs.Imu"), &json!("protobuf")));
    let proto = json["proto"].as_str().unwrap();
    let turning = "// Turning about each axis.\n  foxglove.Vector3 angular_velocity";
    assert!(proto.contains(turning) && proto.contains("// Unit: rad/s"), "{proto}");
    assert!(proto.contains("message Vector3 {"), "{proto}");
    let text = rnet!(env, "type", "show", "BatteryState").ok();
    assert!(text.contains("// It is being charged.") && text.contains("enum Status {"), "{text}");
}

#[test]
fn show_finds_short_names_and_helps_with_others() {
    let env = TestEnv::new();
    for name in ["LaserScan", "foxglove/LaserScan", "rnet.msgs.LaserScan"] {
        let text = rnet!(env, "type", "show", name).ok();
        assert!(text.starts_with("// foxglove.LaserScan, hash "), "{text}");
    }
    let said = rnet!(env, "type", "show", "JointState").fails(1);
    assert!(said.contains("foxglove.JointState, rnet.msgs.JointState"), "{said}");
    let said = rnet!(env, "type", "show", "LaserScn").fails(1);
    assert!(said.contains("did you mean foxglove.LaserScan?"), "{said}");
    rnet!(env, "type", "show").fails(2);
}

#[test]
fn show_knows_plain_types_and_the_types_of_topics() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _poses = node.publisher::<Pose>("/pose").open().unwrap();
    let _bytes = node.publisher::<[u8]>("/bytes").open().unwrap();
    let layout = "plain type Pose: 40 bytes, aligned to 8\n     0  x: f64\n     8  q: f32[4]\n    24  legs: struct Leg (8 bytes)[2]\n";
    let shown = rnet!(env, "type", "show", "--topic", "/pose").ok();
    assert!(shown.starts_with(layout), "{shown}");
    // A built-in type precedes a topic's type of the same name; a type that only a topic has is still found.
    assert!(rnet!(env, "type", "show", "Pose").ok().contains("message Pose {"));
    let said = rnet!(env, "type", "show", "--topic", "/bytes").fails(1);
    assert!(said.contains("raw bytes"), "{said}");
    let said = rnet!(env, "type", "show", "--topic", "/pos").fails(1);
    assert!(said.contains("did you mean /pose?"), "{said}");
    let json = rnet!(env, "type", "show", "--topic", "/pose", "--json").json();
    assert_eq!(json["size"], 40);
}

#[test]
fn a_descriptor_set_is_written_and_read_back() {
    let env = TestEnv::new();
    let (old, new) = versions(&env, &[("double force", "float force")]);
    let set = env.dir.join("leg.binpb");
    let set = set.to_str().unwrap();
    rnet!(env, "type", "show", "Leg", "--proto", old, "--descriptor-set", set).ok();
    let from_set = rnet!(env, "type", "show", "Leg", "--proto", set).ok();
    assert_eq!(from_set, rnet!(env, "type", "show", "Leg", "--proto", old).ok());
    rnet!(env, "type", "check", set, old, "--type", "Leg").ok();
    rnet!(env, "type", "check", set, new, "--type", "Leg").fails(1);
    let said =
        rnet!(env, "type", "show", "Leg", "--proto", old, "--descriptor-set", "/nonexistent/x")
            .fails(1);
    assert!(said.contains("/nonexistent/x"), "{said}");
}

#[test]
fn check_lists_compatible_changes() {
    let env = TestEnv::new();
    let (old, new) = versions(
        &env,
        &[
            ("double force = 1;", "double load = 1; double torque = 9;"),
            ("  string note = 8;\n", ""),
        ],
    );
    assert_eq!(
        rnet!(env, "type", "check", old, old).ok(),
        "robot.Leg: no change\nrobot.Leg.Foot: no change\n"
    );
    let text = rnet!(env, "type", "check", old, new).ok();
    assert_eq!(
        text,
        "robot.Leg: compatible\n  \
         old writes, new reads: compatible\n    \
         note field.renamed `load`: writer has double force = 1, reader has double load = 1\n    \
         note field.writer_only `note`: writer has string note = 8, reader has nothing\n    \
         note field.reader_only `torque`: writer has nothing, reader has double torque = 9\n  \
         new writes, old reads: compatible\n    \
         note field.renamed `force`: writer has double load = 1, reader has double force = 1\n    \
         note field.writer_only `torque`: writer has double torque = 9, reader has nothing\n    \
         note field.reader_only `note`: writer has nothing, reader has string note = 8\n  \
         warning field.not_reserved `note`: string note = 8 -> its number and name are not reserved\n\
         robot.Leg.Foot: no change\n"
    );
    let json = rnet!(env, "type", "check", old, new, "--json").json();
    assert_eq!((&json["compatible"], &json["direction"]), (&json!(true), &json!("both")));
    assert_eq!(json["types"][0]["old_writes"]["changes"][0]["rule"], "field.renamed");
    assert_eq!(json["types"][0]["warnings"][0]["what"], "field.not_reserved");
}

#[test]
fn check_fails_if_one_side_cannot_read_the_other() {
    let env = TestEnv::new();
    let (old, new) = versions(&env, &[("double force", "float force")]);
    let ran = rnet!(env, "type", "check", old, new);
    assert!(ran.stdout.contains("robot.Leg: INCOMPATIBLE"), "{ran:#?}");
    let change =
        "breaking field.type `force`: writer has double force = 1, reader has float force = 1";
    assert!(ran.stdout.contains(change), "{ran:#?}");
    assert_eq!(ran.fails(1), "2 types compared, 1 incompatible\n");
    let ran = rnet!(env, "type", "check", old, new, "--json");
    assert_eq!((ran.code, &ran.json()["compatible"]), (Some(1), &json!(false)));
    // The unchanged types are still compatible.
    rnet!(env, "type", "check", old, new, "--type", "Leg.Foot").ok();
}

#[test]
fn check_of_one_direction_ignores_the_other() {
    let env = TestEnv::new();
    let closed = |values: &str| {
        format!(
            "syntax = \"proto2\"; enum E {{ A = 0; {values} }} message M {{ optional E e = 1; }}"
        )
    };
    let old = write(&env, "old/m.proto", &closed(""));
    let new = write(&env, "new/m.proto", &closed("B = 1;"));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    // An old reader with a closed enum drops the new writer's value.
    rnet!(env, "type", "check", old, new).fails(1);
    rnet!(env, "type", "check", old, new, "--direction", "new-writes").fails(1);
    let text = rnet!(env, "type", "check", old, new, "--direction", "old-writes").ok();
    assert!(!text.contains("new writes"), "{text}");
    rnet!(env, "type", "check", old, new, "--direction", "sideways").fails(2);
}

#[test]
fn a_type_that_is_gone_is_a_break_and_its_new_name_is_guessed() {
    let env = TestEnv::new();
    let (old, new) = versions(&env, &[("message Leg ", "message Limb ")]);
    let ran = rnet!(env, "type", "check", old, new);
    assert!(ran.stdout.contains("robot.Leg: REMOVED; robot.Limb has the same fields"), "{ran:#?}");
    assert!(ran.stdout.contains("robot.Limb: added"), "{ran:#?}");
    assert!(ran.fails(1).contains("0 types compared, 0 incompatible, 1 removed"));
    rnet!(env, "type", "diff", old, new).fails(1);
    // No writer has it any more.
    rnet!(env, "type", "check", old, new, "--direction", "new-writes").ok();
    // A removed nested type is reported where it was used.
    let (old, new) = versions(
        &env,
        &[("  message Foot { bool contact = 1; }\n", ""), ("  map<string, Foot> feet = 3;\n", "")],
    );
    let text = rnet!(env, "type", "check", old, new).ok();
    assert!(text.contains("robot.Leg.Foot: removed\n"), "{text}");
}

#[test]
fn diff_is_stricter() {
    let env = TestEnv::new();
    let (old, new) =
        versions(&env, &[("    RUN = 2;\n", ""), ("string note = 8", "int32 old = 20")]);
    let new = std::fs::read_to_string(&new).unwrap().replace("20 to 22", "21 to 22");
    let new = write(&env, "new/robot.proto", &new);
    let new = new.to_str().unwrap();
    let checked = rnet!(env, "type", "check", old, new).ok();
    assert!(
        checked.contains("warning enum.value_removed `mode:RUN`: RUN = 2 was removed"),
        "{checked}"
    );
    let ran = rnet!(env, "type", "diff", old, new);
    assert!(ran.stdout.contains("BREAKING enum.value_removed `mode:RUN`: - RUN = 2"), "{ran:#?}");
    assert!(ran.stdout.contains("BREAKING field.reserved_reused `old`"), "{ran:#?}");
    assert!(ran.stdout.contains("warning  field.not_reserved `note`"), "{ran:#?}");
    ran.fails(1);
    let json = rnet!(env, "type", "diff", old, new, "--json").json();
    assert_eq!(json["compatible"], false);
    assert_eq!(json["types"][0]["lines"][0]["severity"], "breaking");
    assert_eq!(rnet!(env, "type", "diff", old, old).ok(), "");
}

/// Anyone with the extension's number may send any content under it.
#[test]
fn a_field_in_the_range_of_extensions_is_named() {
    let env = TestEnv::new();
    let text = "syntax = \"proto2\"; message M { optional int32 x = 1; extensions 100 to 200, 300 to max; }";
    write(&env, "old.proto", text);
    write(
        &env,
        "new.proto",
        &text.replace("extensions 100 to 200", "optional int32 y = 150; extensions 9"),
    );
    let (old, new) = (env.dir.join("old.proto"), env.dir.join("new.proto"));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let text = rnet!(env, "type", "show", "M", "--proto", old).ok();
    assert!(text.contains("  extensions 100 to 200, 300 to max;\n"), "{text}");
    let text = rnet!(env, "type", "check", old, new).stdout;
    assert!(text.contains("field.extension `y`") && !text.contains("reader_only"), "{text}");
}

#[test]
fn folders_are_compared_type_by_type_wherever_the_types_stand() {
    let env = TestEnv::new();
    let part = "syntax = \"proto3\"; package p; message Part { double x = 1; }";
    let whole = "syntax = \"proto3\"; package p; import \"parts/part.proto\"; message Whole { Part part = 1; }";
    write(&env, "old/parts/part.proto", part);
    write(&env, "old/whole.proto", whole);
    write(&env, "old/.hidden/bad.proto", "no proto");
    // Another file, another folder: the type is the same.
    write(&env, "new/bits/bit.proto", part);
    write(&env, "new/whole.proto", &whole.replace("parts/part", "bits/bit"));
    let (old, new) = (env.dir.join("old"), env.dir.join("new"));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let text = rnet!(env, "type", "check", old, new).ok();
    assert_eq!(text, "p.Part: no change\np.Whole: no change\n");
    // A type with two conflicting definitions is ambiguous.
    write(&env, "new/other.proto", &part.replace("double", "float"));
    let said = rnet!(env, "type", "check", old, new).fails(1);
    assert!(
        said.contains("p.Part is defined differently") && said.contains("other.proto"),
        "{said}"
    );
    for command in [&["list"][..], &["show", "Part"], &["show", "p.Part"]] {
        let said = env.run(&[&["type"], command, &["--proto", new]].concat()).fails(1);
        assert!(
            said.contains("p.Part is defined differently") && said.contains("other.proto"),
            "{said}"
        );
    }
    rnet!(env, "type", "list", "--proto", old).ok();
    let empty = env.dir.join("empty");
    std::fs::create_dir(&empty).unwrap();
    let said = rnet!(env, "type", "check", old, empty.to_str().unwrap()).fails(1);
    assert!(said.contains("no .proto file in"), "{said}");
}

#[test]
fn bad_files_are_named_with_the_place() {
    let env = TestEnv::new();
    let (old, _) = versions(&env, &[]);
    let mut faults = Vec::new();
    let mut fault = |name: &str, text: &[u8], code: i32, parts: &[&str]| {
        let path = env.dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        faults.push((path, code, parts.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()));
    };
    fault("bad/a.proto", b"syntax = \"proto3\";\nmessage {", 1, &["bad/a.proto:2:9: "]);
    fault(
        "bad/b.proto",
        b"syntax = \"proto3\";\n\nimport \"parts/none.proto\";",
        1,
        &["bad/b.proto:3:1: import \"parts/none.proto\" is not found; looked in ", "/bad"],
    );
    fault(
        "bad/c.proto",
        b"syntax = \"proto3\";\nimport \"c.proto\";",
        1,
        &["bad/c.proto:2:1: cyclic import: c.proto -> c.proto"],
    );
    fault(
        "bad/d.proto",
        b"syntax = \"proto3\";\nmessage M { Nowhere x = 1; }",
        1,
        &["bad/d.proto:2:13: ", "Nowhere"],
    );
    fault("bad/e.proto", b"syntax = \"proto3\";", 1, &["bad/e.proto defines no message type"]);
    fault("bad/f.proto", b"\xff\xfe", 1, &["bad/f.proto", "UTF-8"]);
    fault("bad/g.binpb", b"\x0a\x05\x0a", 1, &["bad/g.binpb", "malformed at byte 2"]);
    // A descriptor set that is far too large is refused, and the error names the limit.
    fault(
        "bad/h.bin",
        &vec![0; (1 << 20) + 1],
        1,
        &["bad/h.bin", "MAX_SCHEMA_LEN_BYTES = 1048576"],
    );
    fault("bad/i.bin", &b"\x0a\x00".repeat(300), 1, &["bad/i.bin", "MAX_SCHEMA_FILES = 256"]);
    fault("bad/j.txt", b"", 2, &["bad/j.txt", "is not a .proto file"]);
    for (path, code, parts) in faults {
        let path = path.to_str().unwrap();
        for args in [["check", &old, path], ["check", path, &old], ["diff", &old, path]] {
            let said = env.run(&[&["type"], &args[..]].concat()).fails(code);
            for part in &parts {
                assert!(said.contains(part), "{part} is not in {said}");
            }
        }
    }
    let said = rnet!(env, "type", "check", old, "/nonexistent/robot.proto").fails(1);
    assert!(said.contains("cannot read /nonexistent/robot.proto"), "{said}");
    let said = rnet!(env, "type", "check", old, old, "--type", "Lag").fails(1);
    assert!(said.contains("is named Lag; did you mean robot.Leg?"), "{said}");
    let said = rnet!(env, "--json", "type", "check", old, "/nonexistent/x").fails(1);
    let error: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(error["error"]["code"], "failed");
}

#[test]
fn imports_are_looked_for_in_the_include_folders() {
    let env = TestEnv::new();
    let common = write(
        &env,
        "common/units/volt.proto",
        "syntax = \"proto3\"; message Volt { double v = 1; }",
    );
    let include = common.parent().unwrap().parent().unwrap().to_str().unwrap();
    let path = write(
        &env,
        "robot/level.proto",
        "syntax = \"proto3\"; import \"units/volt.proto\"; message Level { Volt volt = 1; }",
    );
    let path = path.to_str().unwrap();
    let said = rnet!(env, "type", "check", path, path).fails(1);
    assert!(said.contains("level.proto:1:20: import \"units/volt.proto\" is not found"), "{said}");
    rnet!(env, "type", "check", path, path, "-I", include).ok();
    // An imported type is compared on request.
    let text = rnet!(env, "type", "check", path, path, "-I", include, "--type", "Volt").ok();
    assert_eq!(text, "Volt: no change\n");
    let text = rnet!(env, "type", "show", "Volt", "--proto", path, "-I", include).ok();
    assert!(text.contains("double v = 1;"), "{text}");
}
