//! Recordings to read and to play.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use rnet_record::mcap::records::MessageHeader;
use rnet_record::mcap::{WriteOptions, Writer};
use rnet_record::{Source, TypeKind, names};

use super::TestEnv;

pub const POSE: &str = r#"{"kind":"plain","name":"Pose","size":8,"align":8,"fields":[{"name":"x","offset":0,"type":"f64"}]}"#;
pub const START_NS: u64 = 1_790_000_000_000_000_000;

/// A recording of one second: `/arm/pose` at 10 Hz without message 4, and `/raw` once.
pub fn recording(env: &TestEnv, name: &str) -> PathBuf {
    let options = WriteOptions::new().profile(names::PROFILE).library(names::LIBRARY);
    let options = options.chunk_size(Some(256));
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let schema = writer.add_schema("Pose", names::PLAIN, POSE.as_bytes()).unwrap();
    let source = Source {
        node: "/arm".into(),
        host: "robot1".into(),
        publisher: 7,
        kind: TypeKind::Plain,
        type_name: "Pose".into(),
        ..Source::default()
    };
    let pose =
        writer.add_channel(schema, "/arm/pose", names::PLAIN, &source.to_metadata()).unwrap();
    let raw = writer.add_channel(0, "/raw", names::BYTES, &Default::default()).unwrap();
    let mut write = |channel_id, sequence: u32, at_ms: u64, data: &[u8]| {
        let log_time = START_NS + at_ms * 1_000_000;
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, data).unwrap();
    };
    for n in (0..=10).filter(|n| *n != 4) {
        write(pose, n, u64::from(n) * 100, &f64::from(n).to_le_bytes());
    }
    write(raw, 0, 1000, b"hello");
    writer.finish().unwrap();
    let path = env.dir.join(name);
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    path
}

/// A recording of 10 s in several chunks: `/slow` at 0.5 Hz, `/late` at 100 Hz in the second 5, `/once` once.
pub fn late_start(env: &TestEnv, name: &str) -> PathBuf {
    let options = WriteOptions::new().profile(names::PROFILE).library(names::LIBRARY);
    let options = options.chunk_size(Some(512));
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let mut add = |topic| writer.add_channel(0, topic, names::BYTES, &Default::default()).unwrap();
    let (slow, late, once) = (add("/slow"), add("/late"), add("/once"));
    let mut messages: Vec<(u64, u16)> = (0..6).map(|n| (n * 2000, slow)).collect();
    messages.extend((0..100).map(|n| (5000 + n * 10, late)));
    messages.push((7000, once));
    messages.sort_unstable();
    for (n, (at_ms, channel_id)) in messages.into_iter().enumerate() {
        let (sequence, log_time) = (n as u32, START_NS + at_ms * 1_000_000);
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, b"a message").unwrap();
    }
    writer.finish().unwrap();
    let path = env.dir.join(name);
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    path
}

/// A recording of `/mixed`, whose second message has a different field than the first.
pub fn mixed(env: &TestEnv, name: &str) -> PathBuf {
    let options = WriteOptions::new().profile(names::PROFILE).library(names::LIBRARY);
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    for (n, text) in [POSE.to_owned(), POSE.replace("\"x\"", "\"y\"")].iter().enumerate() {
        let schema = writer.add_schema("Pose", names::PLAIN, text.as_bytes()).unwrap();
        let of = [(names::KIND_KEY.to_owned(), "plain".to_owned())].into();
        let channel_id = writer.add_channel(schema, "/mixed", names::PLAIN, &of).unwrap();
        let (sequence, log_time) = (n as u32, START_NS + n as u64);
        let header = MessageHeader { channel_id, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, &1f64.to_le_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let path = env.dir.join(name);
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    path
}

/// A recording of two `rnet.msgs.JointState` on `/joints`; the second is empty.
pub fn joints(env: &TestEnv, name: &str) -> PathBuf {
    use prost::Message as _;
    use rnet::msgs::JointState;
    let rnet::MessageType::Protobuf(schema) =
        <JointState as rnet::Message>::message_type().unwrap()
    else {
        panic!("it is protobuf")
    };
    let options = WriteOptions::new().profile(names::PROFILE).library(names::LIBRARY);
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let described = schema.descriptor_set();
    let id = writer.add_schema(schema.name(), names::PROTOBUF, described).unwrap();
    let joints = writer.add_channel(id, "/joints", names::PROTOBUF, &Default::default()).unwrap();
    let full = JointState {
        timestamp: Some(rnet::msgs::timestamp_now()),
        names: vec!["a".into(), "b".into()],
        position: vec![1.5, 2.5],
        ..Default::default()
    };
    for (n, message) in [full, JointState::default()].iter().enumerate() {
        let (sequence, log_time) = (n as u32, START_NS + n as u64);
        let header =
            MessageHeader { channel_id: joints, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, &message.encode_to_vec()).unwrap();
    }
    writer.finish().unwrap();
    let path = env.dir.join(name);
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    path
}

/// A recording of this many messages of 1 KiB on `/many`, 1 ms apart; each begins with its number, a `u32`.
pub fn kibibytes(path: &Path, count: u32) {
    let options = WriteOptions::new().profile(names::PROFILE).library(names::LIBRARY);
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let many = writer.add_channel(0, "/many", names::BYTES, &Default::default()).unwrap();
    let mut data = [0; 1024];
    for sequence in 0..count {
        let log_time = START_NS + u64::from(sequence) * 1_000_000;
        data[..4].copy_from_slice(&sequence.to_le_bytes());
        let header = MessageHeader { channel_id: many, sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, &data).unwrap();
    }
    writer.finish().unwrap();
    std::fs::write(path, writer.into_inner().into_inner()).unwrap();
}

/// A recording of `/grip`: a message of an older version of its type, one that is not of its type, and one of
/// a newer version, whose field `temp` is between the others.
pub fn grips(env: &TestEnv, name: &str) -> PathBuf {
    use rnet::schema::{Dynamic, compile_text};
    let schema = |fields: &str| {
        let text = format!(
            r#"syntax = "proto3"; package robot; message Finger {{ double angle = 1; }} message Grip {{ {fields} }}"#
        );
        compile_text("grip.proto", &text).unwrap().schema("robot.Grip").unwrap()
    };
    let old = schema("string name = 1; double width = 2; repeated Finger fingers = 3;");
    let new =
        schema("string name = 1; double temp = 4; double width = 2; repeated Finger fingers = 3;");
    let options = WriteOptions::new().profile(names::PROFILE).library(names::LIBRARY);
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let mut channel = |schema: &rnet::schema::Schema, node: &str| {
        let id = writer.add_schema("robot.Grip", names::PROTOBUF, schema.descriptor_set()).unwrap();
        let of = [(names::NODE_KEY.to_owned(), node.to_owned())].into();
        writer.add_channel(id, "/grip", names::PROTOBUF, &of).unwrap()
    };
    let ids = [channel(&old, "/old"), channel(&new, "/new")];
    let message = |schema, json| Dynamic::from_json(schema, &json).unwrap().encode();
    let fingers = serde_json::json!([{"angle": 0.0}, {"angle": 1.5}]);
    let messages = [
        (0, message(&old, serde_json::json!({"name": "a", "width": 0.1, "fingers": fingers}))),
        (0, vec![10, 1, 0xff]),
        (1, message(&new, serde_json::json!({"name": "b", "width": 0.2, "temp": 40.0}))),
    ];
    for (n, (of, data)) in messages.iter().enumerate() {
        let (sequence, log_time) = (n as u32, START_NS + n as u64);
        let header =
            MessageHeader { channel_id: ids[*of], sequence, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, data).unwrap();
    }
    writer.finish().unwrap();
    let path = env.dir.join(name);
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    path
}

/// A recording of one message on each of these topics.
pub fn topics(env: &TestEnv, name: &str, topics: &[&str]) -> PathBuf {
    let mut writer = Writer::new(Cursor::new(Vec::new())).unwrap();
    for (n, topic) in topics.iter().enumerate() {
        let channel_id = writer.add_channel(0, topic, "", &Default::default()).unwrap();
        let log_time = START_NS + n as u64;
        let header = MessageHeader { channel_id, sequence: 0, log_time, publish_time: log_time };
        writer.write_to_known_channel(&header, topic.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    let path = env.dir.join(name);
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    path
}
