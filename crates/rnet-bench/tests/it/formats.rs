//! The format of topologies: its meaning, and the errors of invalid files.

use rnet_bench::topology::{Error, Topology};
use std::path::Path;

fn toml(text: &str) -> Result<Topology, Error> {
    Topology::from_toml(text, Path::new("robot.toml"))
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

#[test]
fn types_have_lengths() {
    let robot = toml(TOML).expect("right");
    let image = &robot.nodes[0].publishes[0];
    assert_eq!((image.len_bytes, image.period_ms), (5024, 40.0));
    assert_eq!(robot.nodes[0].publishes[1].period_ms, 12.5);
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
fn refused(good: &str, cases: &[(&str, &str, &str)]) {
    toml(good).expect("the text without a mistake is right");
    for (from, to, words) in cases {
        assert!(good.contains(from), "{from}");
        let why = match toml(&good.replacen(from, to, 1)) {
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

/// Invalid text does not crash a reader: each prefix of a valid text, and each with one byte changed.
#[test]
fn broken_texts_give_errors_and_no_panics() {
    for cut in 0..TOML.len() {
        let _ = toml(&TOML[..cut]);
        for byte in [b'"', b'}', b'-', b'9', b'\n', 0] {
            let mut bytes = TOML.as_bytes().to_vec();
            bytes[cut] = byte;
            let _ = toml(std::str::from_utf8(&bytes).expect("ASCII"));
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
