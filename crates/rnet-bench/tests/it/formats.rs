//! Both formats: their meaning, and the errors of invalid files.

use rnet_bench::topology::{Error, Topology};
use std::path::Path;

fn toml(text: &str) -> Result<Topology, Error> {
    Topology::from_toml(text, Path::new("robot.toml"))
}

fn json(text: &str) -> Result<Topology, Error> {
    Topology::from_irobot_json(text, Path::new("robot.json"))
}

const TOML: &str = r#"
name = "robot"
source = "made up"
[[node]]
name = "camera"
publishes = [
    { topic = "image", type = "stamped_vector", size = 5000, period_ms = 40 },
    { topic = "state", type = "stamped3_float32", period_ms = 12.5 },
]
[[node]]
name = "planner"
subscribes = ["state", "image"]
"#;

const JSON: &str = r#"{"nodes": [
    {"node_name": "camera", "executor_id": 1, "publishers": [
        {"topic_name": "image", "msg_type": "stamped_vector", "msg_size": 5000, "freq_hz": 25,
         "period_ms": 1, "msg_pass_by": "unique_ptr", "qos_reliability": "best_effort"},
        {"topic_name": "state", "msg_type": "irobot_interfaces_plugin::stamped3_float32",
         "period_ms": 12.5}]},
    {"node_name": "planner", "subscribers": [
        {"topic_name": "state", "msg_type": "stamped3_float32", "qos_depth": 10},
        {"topic_name": "/image", "msg_type": "stamped_vector"}]}
]}"#;

#[test]
fn both_formats_give_the_same_topology() {
    let (ours, theirs) = (toml(TOML).expect("right"), json(JSON).expect("right"));
    assert_eq!((&ours.name, &ours.nodes), (&theirs.name, &theirs.nodes));
    let image = &ours.nodes[0].publishes[0];
    assert_eq!((image.len_bytes, image.period_ms), (5024, 40.0));
    assert_eq!(ours.nodes[0].publishes[1].period_ms, 12.5);
    assert!(theirs.source.contains("robot.json"), "{}", theirs.source);
}

#[test]
fn node_with_number_becomes_several_nodes() {
    let robot = json(
        r#"{"nodes": [
            {"node_name": "talker", "number": 2, "node_namespace": "/arm", "publishers": [
                {"topic_name": "angle", "msg_type": "stamped_int64", "period_ms": 1},
                {"topic_name": "/all", "msg_type": "stamped_int64", "period_ms": 1},
                {"topic_name": "~/own", "msg_type": "stamped_int64", "period_ms": 1}]},
            {"node_name": "listener", "subscribers": [
                {"topic_name": "arm_2/angle", "msg_type": "stamped_int64"},
                {"topic_name": "all", "msg_type": "stamped_int64"}]}
        ]}"#,
    )
    .expect("right");
    let names: Vec<_> = robot.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["arm_1__talker_1", "arm_2__talker_2", "listener"]);
    assert_eq!(robot.topics().len(), 5);
    assert_eq!(robot.publishers_of("all").count(), 2);
    assert_eq!(robot.nodes[1].publishes[2].topic, "arm_2__talker_2__own");
    assert_eq!(robot.nodes[2].subscribes, ["arm_2__angle", "all"]);
}

#[test]
fn services_and_actions_are_left_out_by_name() {
    let robot = json(
        r#"{"nodes": [{"node_name": "a",
            "publishers": [{"topic_name": "t", "msg_type": "stamped10b", "period_ms": 1}],
            "clients": [{"service_name": "s", "srv_type": "stamped10b", "freq_hz": 10}],
            "action_servers": [{"action_name": "s", "action_type": "stamped1mb"}]}]}"#,
    )
    .expect("right");
    assert_eq!(robot.left_out, ["service clients of node a: 1", "action servers of node a: 1"]);
    let none = json(r#"{"nodes": [{"node_name": "a", "servers": [{"service_name": "s"}]}]}"#);
    let why = none.expect_err("nothing is left").to_string();
    assert!(why.contains("has a publisher (omitted: services of node a: 1)"), "{why}");
}

#[test]
fn length_may_replace_type() {
    let robot = toml(
        "name='n'\nsource='s'\n[[node]]\nname='a'\npublishes=[{topic='t',bytes=64,period_ms=5}]",
    )
    .expect("right");
    let publish = &robot.nodes[0].publishes[0];
    assert_eq!((publish.len_bytes, publish.msg_type.as_str()), (64, "bytes"));
}

/// Each changed text is rejected, and the error names the file, the error and its location.
fn refused(read: fn(&str) -> Result<Topology, Error>, good: &str, cases: &[(&str, &str, &str)]) {
    read(good).expect("the text without a mistake is right");
    for (from, to, words) in cases {
        assert!(good.contains(from), "{from}");
        let why = match read(&good.replacen(from, to, 1)) {
            Err(error) => error.to_string(),
            Ok(topology) => panic!("{from} -> {to} was taken: {topology:?}"),
        };
        assert!(why.starts_with("topology robot."), "{why}");
        for word in words.split('|') {
            assert!(why.contains(word), "{from} -> {to}: {word:?} is not in\n{why}");
        }
    }
}

#[test]
fn topic_is_one_word_with_or_without_slashes() {
    let slashes = TOML.replace("\"image\"", "\"/Arm/image\"").replace("[\"state\"", "[\"/state\"");
    let robot = toml(&slashes).expect("right");
    assert_eq!(robot.nodes[1].subscribes, ["state", "Arm__image"]);
    assert_eq!(robot.topics(), ["Arm__image", "state"]);
}

#[test]
fn invalid_toml_is_rejected_with_reason() {
    refused(
        toml,
        TOML,
        &[
            ("stamped3_float32", "stamped3_float16", "node camera|state|\"stamped3_float16\""),
            ("topic = \"state\", ", "", "line|missing field `topic`"),
            ("period_ms = 40", "period_ms = -40", "node camera|image|-40"),
            ("period_ms = 40", "period_ms = 0", "node camera|image|0 ms"),
            ("period_ms = 40", "period_ms = nan", "NaN ms"),
            ("period_ms = 40", "period_ms = inf", "inf ms"),
            ("period_ms = 40", "periodms = 40", "line 7|periodms"),
            ("size = 5000", "size = -1", "line 7"),
            ("size = 5000", "size = 99999999", "image|100000023 bytes"),
            ("size = 5000, ", "", "size must be given for"),
            ("size = 5000", "bytes = 5000", "needs either type or bytes"),
            (
                "\"stamped_vector\", size = 5000",
                "\"stamped10b\", size = 5000",
                "size must be given for",
            ),
            ("[\"state\"", "[\"stat\"", "node planner subscribes to stat, which has no publisher"),
            ("[\"state\"", "[\"/image\"", "node planner subscribes to image twice"),
            ("topic = \"state\"", "topic = \"image\"", "publisher of image: appears twice"),
            ("\"planner\"", "\"camera\"", "the node name camera is used twice"),
            ("\"planner\"", "\"pl nner\"", "\"pl nner\"|letters, digits"),
            ("topic = \"image\"", "topic = \"\"", "name is \"\""),
            ("name = \"robot\"", "name = 5", "line 2"),
            ("name = \"robot\"", "{", "is not in robot-net's TOML format|line 2"),
        ],
    );
    let why = toml("name = 'n'\nsource = 's'").expect_err("nothing in it").to_string();
    assert!(why.contains("has no nodes"), "{why}");
    let two = "name='n'\nsource='s'\n[[node]]\nname='a'\npublishes=[{topic='t',bytes=BYTES,period_ms=5}]\n\
               [[node]]\nname='b'\npublishes=[{topic='t',type='stamped10b',period_ms=5}]";
    let mixed = toml(&two.replace("BYTES", "64")).expect("may have two lengths");
    let why = mixed.check_types().expect_err("two types");
    assert!(why.contains("node b") && why.contains("node a publishes bytes"), "{why}");
    let why = toml(&two.replace("BYTES", "15")).expect_err("too short").to_string();
    assert!(why.contains("15 bytes"), "{why}");
}

#[test]
fn invalid_json_is_rejected_with_reason() {
    refused(
        json,
        JSON,
        &[
            (
                "\"stamped_vector\", \"msg_size\"",
                "\"stamped_vektor\", \"msg_size\"",
                "image|vektor",
            ),
            ("\"node_name\": \"planner\", ", "", "missing field `node_name` at line"),
            ("\"topic_name\": \"image\", ", "", "missing field `topic_name` at line 4"),
            ("\"nodes\"", "\"knots\"", "missing field `nodes`"),
            ("\"period_ms\": 12.5", "\"period_ms\": -12.5", "node camera|state|-12.5 ms"),
            ("\"period_ms\": 12.5", "\"period_ms\": 0", "state|0 ms"),
            ("\"period_ms\": 12.5", "\"x\": 0", "state|needs period_ms or freq_hz"),
            ("\"freq_hz\": 25", "\"freq_hz\": 0", "image|freq_hz is 0"),
            ("\"freq_hz\": 25", "\"freq_hz\": -1", "freq_hz is -1"),
            ("\"msg_size\": 5000", "\"msg_size\": -5", "line 3"),
            ("\"msg_size\": 5000", "\"msg_size\": 18446744073709551615", "unknown message type"),
            (
                "\"state\", \"msg_type\": \"stamped3_float32\"",
                "\"state\", \"msg_type\": \"stamped10b\"",
                "node planner|state as stamped10b|published as stamped3_float32",
            ),
            (
                "\"/image\"",
                "\"/imago\"",
                "node planner subscribes to imago, which has no publisher",
            ),
            ("\"executor_id\": 1", "\"number\": 1000000000", "node camera|1000000000"),
            ("\"executor_id\": 1", "\"number\": -1", "line 2"),
            ("]}", "", "line"),
            ("{\"nodes\"", "nodes", "is not in iRobot's JSON format|line 1"),
        ],
    );
    for (text, words) in [
        ("", "line 1"),
        ("[]", "line 1"),
        (r#"{"nodes": []}"#, "has no nodes"),
        (r#"{"nodes": [{"node_name": "a", "number": 0}]}"#, "has no nodes"),
        (r#"{"nodes": [{"node_name": "a"}]}"#, "no node has a publisher"),
        (r#"{"nodes": {"node_name": "a"}}"#, "line 1"),
    ] {
        let why = json(text).expect_err(text).to_string();
        assert!(why.contains(words), "{text}: {why}");
    }
}

/// Invalid text does not crash a reader: each prefix of a valid text, and each with one byte changed.
#[test]
fn broken_texts_give_errors_and_no_panics() {
    for (read, good) in [(toml as fn(&str) -> _, TOML), (json, JSON)] {
        for cut in 0..good.len() {
            let _ = read(&good[..cut]);
            for byte in [b'"', b'}', b'-', b'9', b'\n', 0] {
                let mut bytes = good.as_bytes().to_vec();
                bytes[cut] = byte;
                let _ = read(std::str::from_utf8(&bytes).expect("ASCII"));
            }
        }
    }
}

#[test]
fn error_names_invalid_topology_file() {
    for path in ["/nonexistent/robot.toml", "Cargo.toml", "src"] {
        let why = Topology::read(Path::new(path)).expect_err(path).to_string();
        assert!(why.starts_with(&format!("topology {path}: ")), "{why}");
    }
}
