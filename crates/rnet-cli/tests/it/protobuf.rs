//! `rnet topic echo|pub|info` and `rnet doctor` with protobuf messages without generated code.

use crate::util;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rnet::schema::{Dynamic, Schema, compile_text};
use rnet::{Node, Publisher, Subscriber};
use serde_json::{Value, json};
use util::{BackgroundPublisher, TEST_TIMEOUT, TestEnv};

const TEXT: &str = r#"syntax = "proto3"; package robot;
import "foxglove/Vector3.proto";
message Leg {
  enum Mode { IDLE = 0; WALK = 1; }
  message Cell { double volt = 1; } // no unit here
  double force = 1; // Unit: N
  Mode mode = 2;
  map<string, Cell> cells = 3;
  repeated double position = 4; // Unit: rad
  bytes image = 5;
  // Unit: m/s
  foxglove.Vector3 velocity = 6;
  string name = 7;
  repeated Cell spare = 8;
  optional uint64 big = 9;
}"#;

fn schema_of(text: &str) -> Schema {
    compile_text("leg.proto", text).unwrap().schema("robot.Leg").unwrap()
}

fn leg() -> Schema {
    schema_of(TEXT)
}

fn bytes_of(schema: &Schema, value: &Value) -> Box<[u8]> {
    Dynamic::from_json(schema, value).unwrap().encode().into()
}

fn sample() -> Value {
    json!({
        "force": 1.5, "mode": "WALK", "cells": {"a.b": {"volt": 24.1}}, "position": [0.5, "NaN"],
        "image": "AAECAwQFBgcICQoLDA0ODxAR", "velocity": {"x": 0.25}, "name": "x,\u{1b}[2J",
        "spare": [{"volt": 1.0}, {}], "big": "9007199254740993"
    })
}

fn open_publisher(node: &Node, topic: &str, schema: &Schema) -> Publisher<[u8]> {
    node.publisher(topic).schema(schema).open().unwrap()
}

fn open_subscriber(node: &Node, topic: &str, schema: &Schema) -> Subscriber<[u8]> {
    node.subscriber(topic).schema(schema).open().unwrap()
}

/// Returns the next message as JSON.
fn receive_value(subscriber: &mut Subscriber<[u8]>, schema: &Schema) -> Value {
    let message = subscriber.recv_timeout(TEST_TIMEOUT).unwrap();
    Dynamic::decode(schema, &message).unwrap().to_json(&Default::default())
}

#[test]
fn echo_prints_by_field_with_units() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump = BackgroundPublisher::start(
        open_publisher(&node, "/leg", &leg()),
        bytes_of(&leg(), &sample()),
    );
    let echo = |args: &[&str]| env.run(&[&["topic", "echo", "/leg", "--once"], args].concat());
    assert_eq!(
        echo(&[]).ok(),
        "force: 1.5  # N\nmode: WALK\ncells:\n  \"a.b\":\n    volt: 24.1\nposition: [0.5, .nan]  # rad\n\
         image: \"000102030405060708090a0b0c0d0e0f...\"  # 18 bytes\n\
         velocity:\n  x: 0.25  # m/s\n  y: 0.0  # m/s\n  z: 0.0  # m/s\nname: \"x,\\u001b[2J\"\n\
         spare:\n  -\n    volt: 1.0\n  -\n    volt: 0.0\nbig: 9007199254740993\n---\n"
    );
    assert!(echo(&["-f"]).ok().contains("0e0f1011\"  # 18 bytes\n"));
    assert!(
        echo(&["--truncate-length", "1"]).ok().contains("position: [0.5, ...]  # 1 more, rad\n")
    );
    assert!(echo(&["--raw"]).ok().starts_with("00000000  09 00 00 00 00 00 00 f8 "));
    assert!(echo(&["--info"]).ok().contains(" from /a, "));
    for (path, shown) in [
        ("force", "1.5  # N\n"),
        ("velocity.x", "0.25  # m/s\n"),
        ("position[1]", ".nan  # rad\n"),
        ("position[7]", "null\n"),
        ("cells[\"a.b\"].volt", "24.1\n"),
        ("spare[0]", "volt: 1.0\n"),
        ("mode", "WALK\n"),
    ] {
        assert_eq!(echo(&["--field", path]).ok(), format!("{shown}---\n"), "{path}");
    }
    let said = echo(&["--field", "velocity.w"]).fails(1);
    assert!(said.contains("`velocity.w`: no such field; foxglove.Vector3 has x, y, z"), "{said}");
    let said = echo(&["--field", "position.x"]).fails(1);
    assert!(said.contains("select one"), "{said}");
}

/// A publisher with an older version of the type, without this field, joins: its messages are skipped and
/// reported.
#[test]
fn a_field_is_shown_of_those_publishers_that_have_it() {
    let env = TestEnv::new();
    let new = leg();
    let old = schema_of(r#"syntax = "proto3"; package robot; message Leg { double force = 1; }"#);
    let (old_node, new_node) = (env.node("/old"), env.node("/new"));
    let bytes = bytes_of(&new, &json!({"name": "left"}));
    let _new = BackgroundPublisher::start(open_publisher(&new_node, "/leg", &new), bytes);
    let mut echo = env.spawn(&["topic", "echo", "/leg", "--field", "name"]);
    echo.wait_for_stdout("left");
    let bytes = bytes_of(&old, &json!({"force": 1.5}));
    let _old = BackgroundPublisher::start(open_publisher(&old_node, "/leg", &old), bytes);
    echo.wait_for_stderr("messages of /old are not shown");
    echo.wait_for_stdout("left");
    // Also if the older version arrives first, but not if no publisher has the field.
    let mut echo = env.spawn(&["topic", "echo", "/leg", "--field", "name"]);
    echo.wait_for_stdout("left");
    let none = env.run(&["topic", "echo", "/leg", "--field", "nmae"]).fails(1);
    assert!(none.contains("no such field"), "{none}");
}

#[test]
fn echo_makes_tables_and_json() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _pump = BackgroundPublisher::start(
        open_publisher(&node, "/leg", &leg()),
        bytes_of(&leg(), &sample()),
    );
    let echo = |args: &[&str]| env.run(&[&["topic", "echo", "/leg", "--once"], args].concat());
    assert_eq!(
        echo(&["--csv", "--header"]).ok(),
        "force,mode,cells,position,image,velocity.x,velocity.y,velocity.z,name,spare,big\n\
         1.5,WALK,\"{\"\"a.b\"\":{\"\"volt\"\":24.1}}\",\"[0.5,\"\"NaN\"\"]\",AAECAwQFBgcICQoLDA0ODxAR,0.25,0.0,0.0,\
         \"x,\u{1b}[2J\",\"[{\"\"volt\"\":1.0},{\"\"volt\"\":0.0}]\",9007199254740993\n"
    );
    assert!(!echo(&["--csv"]).ok().contains("force"));
    assert_eq!(
        echo(&["--csv", "--header", "--field", "velocity"]).ok(),
        "velocity.x,velocity.y,velocity.z\n0.25,0.0,0.0\n"
    );
    assert_eq!(
        echo(&["--csv", "--header", "--field", "position"]).ok(),
        "position[0],position[1]\n0.5,NaN\n"
    );
    assert_eq!(echo(&["--csv", "--field", "force"]).ok(), "1.5\n");
    echo(&["--header"]).fails(2);
    let line = &echo(&["--json"]).json_lines()[0];
    assert_eq!(line["type"], "robot.Leg");
    let data = &line["data"];
    assert_eq!((&data["mode"], &data["big"]), (&json!("WALK"), &json!(9007199254740993_u64)));
    assert_eq!(data["velocity"], json!({"x": 0.25, "y": 0.0, "z": 0.0}));
    let field = echo(&["--json", "--field", "position"]).json_lines();
    assert_eq!(field[0]["data"], json!([0.5, "NaN"]));
}

#[test]
fn echo_shows_each_publisher_by_its_own_type() {
    let env = TestEnv::new();
    let (a, b) = (env.node("a"), env.node("b"));
    let newer = schema_of(&TEXT.replace("double force = 1;", "double load = 1; bool hot = 20;"));
    let value = json!({"force": 1});
    let _old =
        BackgroundPublisher::start(open_publisher(&a, "/leg", &leg()), bytes_of(&leg(), &value));
    let _new = BackgroundPublisher::start(
        open_publisher(&b, "/leg", &newer),
        bytes_of(&newer, &json!({"hot": true})),
    );
    let mut echo = env.spawn(&["topic", "echo", "/leg", "--csv", "--header"]);
    echo.wait_for_stdout("force,mode");
    echo.wait_for_stdout("load,mode");
    echo.wait_for_stdout("force,mode");
}

/// Publishes messages of which every second one is invalid.
fn publish_malformed(env: &TestEnv) -> impl Drop {
    struct Stop(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            let _ = self.1.take().unwrap().join();
        }
    }
    let node = env.node("bad");
    let mut publisher = open_publisher(&node, "/leg", &leg());
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let good = bytes_of(&leg(), &json!({"force": 2}));
    let thread = std::thread::spawn(move || {
        let _node = node;
        while !stopped.load(Ordering::Relaxed) {
            publisher.send(&good).unwrap();
            // A velocity whose x has one byte of eight.
            publisher.send(&[0x32, 0x02, 0x09, 0x00]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1)); // sleep: the period of the stream
        }
    });
    Stop(stop, Some(thread))
}

#[test]
fn messages_that_do_not_decode_are_reported_counted_and_skipped() {
    let env = TestEnv::new();
    let _stream = publish_malformed(&env);
    let ran = rnet!(env, "topic", "echo", "/leg", "--csv", "--field", "force", "--count", "5");
    assert_eq!(ran.stdout, "2.0\n".repeat(5));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("cannot decode message "), "{ran:#?}");
    assert!(
        ran.stderr.contains(" from /bad: malformed robot.Leg at byte 3 (field `velocity`): "),
        "{ran:#?}"
    );
    let counted = ran.stderr.lines().last().unwrap();
    assert!(counted.ends_with("could not be decoded"), "{ran:#?}");
    let words: Vec<&str> = counted.split(' ').collect();
    let (bad, all): (u64, u64) = (words[0].parse().unwrap(), words[3].parse().unwrap());
    // One between each two valid messages, possibly one before or after them.
    assert!(bad >= 4 && all == bad + 5, "{counted}");
    // They can still be shown as raw bytes.
    let raw = rnet!(env, "topic", "echo", "/leg", "--raw", "--count", "4").ok();
    assert!(raw.contains("00000000  32 02 09 00 "), "{raw}");
}

#[test]
fn info_and_doctor_count_messages_that_do_not_decode() {
    let env = TestEnv::new();
    let node = env.node("ear");
    let mut ear = node.subscriber::<rnet::Dynamic>("/leg").schema(&leg()).open().unwrap();
    let _stream = publish_malformed(&env);
    let mut malformed = 0;
    while malformed < 2 {
        match ear.recv_timeout(TEST_TIMEOUT) {
            Ok(_) => {}
            Err(rnet::Error::Malformed { .. }) => malformed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let full = rnet!(env, "topic", "info", "/leg", "-v").ok();
    assert!(full.contains("  2 malformed\n"), "{full}");
    let json = rnet!(env, "topic", "info", "/leg", "--json").json();
    assert_eq!(json["subscribers"][0]["channels"][0]["malformed"], 2);
    let ran = rnet!(env, "doctor");
    assert!(ran.stdout.contains("/ear could not decode 2 messages on /leg from /bad"), "{ran:#?}");
    ran.fails(1);
}

#[test]
fn types_are_listed_compared_and_shown() {
    let env = TestEnv::new();
    let (a, b, c) = (env.node("a"), env.node("b"), env.node("c"));
    let newer = schema_of(&TEXT.replace("double force = 1;", "double load = 1; bool hot = 20;"));
    let other = schema_of(&TEXT.replace("double force = 1;", "float force = 1;"));
    let _publisher = open_publisher(&a, "/leg", &leg());
    let _same = open_subscriber(&a, "/leg", &leg());
    let brief = rnet!(env, "topic", "info", "/leg").ok();
    assert_eq!(brief, "Type: robot.Leg\nPublisher count: 1\nSubscription count: 1\n");
    let _newer = open_subscriber(&b, "/leg", &newer);
    let _other = open_subscriber(&c, "/leg", &other);
    assert_eq!(rnet!(env, "topic", "list", "-t").ok(), "/leg [robot.Leg]\n/log [foxglove.Log]\n");
    let brief = rnet!(env, "topic", "info", "/leg").ok();
    let differences = "Type differences:\n  /a -> /b: compatible\n    \
        field.renamed `load`: publisher has double force = 1, subscriber has double load = 1\n    \
        field.reader_only `hot`: publisher has nothing, subscriber has bool hot = 20\n  \
        /a -> /c: INCOMPATIBLE: no messages are delivered\n    \
        breaking field.type `force`: publisher has double force = 1, subscriber has float force = 1\n";
    assert!(brief.ends_with(differences), "{brief}");
    let full = rnet!(env, "topic", "info", "/leg", "-v").ok();
    assert!(full.ends_with(differences), "{full}");
    assert!(full.contains(&format!("Type hash: {}\n", leg().hash())), "{full}");
    let json = rnet!(env, "topic", "info", "/leg", "--json").json();
    let comparisons = json["comparisons"].as_array().unwrap();
    let verdicts: Vec<&Value> = comparisons.iter().map(|c| &c["compatible"]).collect();
    assert_eq!(verdicts, [&json!(true), &json!(true), &json!(false)]);
    assert_eq!(comparisons[2]["changes"][0]["rule"], "field.type");
    let ran = rnet!(env, "doctor", "c", "a");
    assert!(
        ran.stdout.contains("/c does not receive from /a on /leg: the types differ: field `force`"),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("rnet topic info /leg lists all differences"), "{ran:#?}");
    ran.fails(1);
    let ran = rnet!(env, "type", "show", "--topic", "/leg");
    assert!(ran.stdout.contains("double force = 1;  // Unit: N"), "{ran:#?}");
    assert!(ran.stderr.contains(&format!("in use in /c: robot.Leg {}", other.hash())), "{ran:#?}");
    assert_eq!(rnet!(env, "type", "show", "Leg").ok(), ran.stdout);
    let used = rnet!(env, "type", "list", "--in-use", "--json").json();
    let used = used["types"].as_array().unwrap();
    // Including that of /log, which has a line about the incompatible subscriber.
    assert_eq!(used.len(), 4);
    assert!(used.iter().any(|of| of["hash"] == leg().hash().to_string()), "{used:?}");
}

#[test]
fn echo_of_a_misspelt_topic_says_which_may_be_meant() {
    let env = TestEnv::new();
    let node = env.node("a");
    let _publisher = open_publisher(&node, "/joint_states", &leg());
    let mut echo = env.spawn(&["topic", "echo", "/joint_state"]);
    echo.wait_for_stderr(
        "topic /joint_state not found in domain clitest; did you mean /joint_states? (waiting for it)",
    );
}

#[test]
fn pub_takes_the_type_of_the_topic() {
    let env = TestEnv::new();
    let node = env.node("ear");
    let mut ear = open_subscriber(&node, "/leg", &leg());
    for name in [&[][..], &["robot.Leg"], &["Leg"]] {
        let args =
            [&["topic", "pub", "/leg"], name, &[r#"{"force": 2, "mode": "WALK"}"#, "--once"]];
        env.run(&args.concat()).ok();
        assert_eq!(receive_value(&mut ear, &leg()), json!({"force": 2.0, "mode": "WALK"}));
    }
    rnet!(env, "topic", "pub", "/leg", "--raw", "--hex", "1001", "--once").ok();
    assert_eq!(receive_value(&mut ear, &leg()), json!({"mode": "WALK"}));
    let refused = |code: i32, args: &[&str], part: &str| {
        let said = env.run(&[&["topic", "pub", "/leg", "--once"], args].concat()).fails(code);
        assert!(said.contains(part), "{said}");
    };
    refused(2, &[r#"{"velocity": {"w": 1}}"#], "robot.Leg: field `velocity.w`: no such field");
    refused(2, &[r#"{"spare": [{}, {"volt": "x"}]}"#], "field `spare[1].volt`: expected double");
    refused(2, &[r#"{"mode": "RUN"}"#], "one of IDLE, WALK");
    refused(1, &["Imu", "{}"], "of type robot.Leg, not Imu");
    refused(
        1,
        &["--raw", "--hex", "3a7f"],
        "the bytes cannot be decoded as that type: malformed robot.Leg at byte 2",
    );
}

#[test]
fn pub_knows_the_built_in_types() {
    let env = TestEnv::new();
    let imu = compile_text("i.proto", "syntax = \"proto3\"; import \"rnet/msgs/Imu.proto\";");
    let imu = imu.unwrap().schema("rnet.msgs.Imu").unwrap();
    let mut publish = env.spawn(&[
        "topic",
        "pub",
        "/imu",
        "Imu",
        r#"{"frame_id": "imu_link", "angular_velocity": {"z": 1.5}}"#,
        "--rate",
        "200",
        "--json",
    ]);
    let node = env.node("ear");
    let mut ear = open_subscriber(&node, "/imu", &imu);
    for _ in 0..3 {
        let message = receive_value(&mut ear, &imu);
        assert_eq!(message, json!({"frameId": "imu_link", "angularVelocity": {"z": 1.5}}));
    }
    let echoed =
        rnet!(env, "topic", "echo", "/imu", "--once", "--field", "angular_velocity.z").ok();
    assert_eq!(echoed, "1.5  # rad/s\n---\n");
    publish.signal("INT");
    publish.wait_for_exit();
    let report = publish.wait().json();
    assert_eq!(report["type"], "rnet.msgs.Imu");
    let said = rnet!(env, "topic", "pub", "/x", "JointState", "{}", "--once").fails(2);
    assert!(said.contains("foxglove.JointState, rnet.msgs.JointState"), "{said}");
    let said = rnet!(env, "topic", "pub", "/x", "LaserScn", "{}", "--once").fails(2);
    assert!(said.contains("did you mean foxglove.LaserScan?"), "{said}");
}

#[test]
fn pub_takes_types_of_files() {
    let env = TestEnv::new();
    let node = env.node("ear");
    let mut ear = open_subscriber(&node, "/leg", &leg());
    let path = env.dir.join("leg.proto");
    std::fs::write(&path, TEXT).unwrap();
    let path = path.to_str().unwrap();
    for name in [&[][..], &["Leg"]] {
        let args =
            [&["topic", "pub", "/leg", "--proto", path, "--once"], name, &[r#"{"force": 2}"#]];
        env.run(&args.concat()).ok();
        assert_eq!(receive_value(&mut ear, &leg()), json!({"force": 2.0}));
    }
    // Another version of the file does not reach the subscriber, and the doctor reports why.
    std::fs::write(path, TEXT.replace("double force", "float force")).unwrap();
    let said =
        rnet!(env, "topic", "pub", "/leg", "--proto", path, "{}", "--once", "--timeout", "0.1");
    assert!(said.stderr.contains("incompatible types on /leg: field `force`"), "{said:#?}");
    assert_eq!(said.code, Some(1));
    let said = rnet!(env, "topic", "pub", "/leg", "--proto", path, "Lag", "{}", "--once").fails(1);
    assert!(said.contains("is named Lag; did you mean robot.Leg?"), "{said}");
    rnet!(env, "topic", "pub", "/leg", "--proto", path, "--text", "x", "--once").fails(2);
}
