//! Messages as values: plain types and protobuf, described once, read under the same compatibility rules as
//! topics.

use rnet::msgs::Pose;
use rnet::schema::{self, Schema, compile_text};
use rnet::state::{LastWill, StateMessage, Value};
use rnet::{Dynamic, Error, MessageType, Plain};

use super::refusal;
use crate::common::Net;

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[plain(name = "demo.Gain")]
#[repr(C)]
struct Gain {
    kp: f64,
    ki: f64,
}

/// The type before `ki` was added.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[plain(name = "demo.Gain")]
#[repr(C)]
struct OldGain {
    kp: f64,
}

/// Another type with that name.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[plain(name = "demo.Gain")]
#[repr(C)]
struct OtherGain {
    kp: f32,
    ki: f32,
}

const OLD: &str = "double volt = 1; repeated string cells = 2;";
const NEW: &str = "double voltage = 1; repeated string cells = 2; double ampere = 3;";
const OTHER: &str = "float volt = 1; repeated string cells = 2;";

fn level(fields: &str) -> Schema {
    let text = format!("syntax = \"proto3\"; package demo; message Level {{ {fields} }}");
    compile_text("level.proto", &text).unwrap().schema("demo.Level").unwrap()
}

fn level_of(schema: &Schema, json: &str) -> Dynamic {
    let json = serde_json::from_str(json).unwrap();
    schema::Dynamic::from_json(schema, &json).unwrap().into()
}

#[test]
fn plain_types_are_read_across_versions() {
    let net = Net::new("plain_types_are_read_across_versions");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    assert_eq!(b.get_message::<Gain>("/gain").unwrap(), None);
    let gain = Gain { kp: 1.5, ki: 0.5 };
    a.set_message("/gain", &gain).unwrap();
    assert_eq!(b.get_message::<Gain>("/gain").unwrap(), Some(gain));
    assert_eq!(b.get_message::<OldGain>("/gain").unwrap(), Some(OldGain { kp: 1.5 }));
    let value = b.get("/gain").unwrap().unwrap();
    assert_eq!(
        (value.type_name(), value.type_text()),
        ("demo.Gain", "plain type demo.Gain (16 bytes)".to_owned())
    );
    assert_eq!(value.as_message().unwrap().decode::<Gain>().unwrap(), gain);
    // Written by a node with the old version: new nodes read a zero for the added field.
    b.set_message("/gain", &OldGain { kp: 2.5 }).unwrap();
    assert_eq!(a.get_message::<Gain>("/gain").unwrap(), Some(Gain { kp: 2.5, ki: 0.0 }));
    // Copied as a whole from one key to another.
    a.set("/copy", b.get("/gain").unwrap().unwrap()).unwrap();
    assert_eq!(a.get_message::<OldGain>("/copy").unwrap(), Some(OldGain { kp: 2.5 }));
    let error = a.set_message("/gain", &OtherGain { kp: 1.0, ki: 1.0 }).unwrap_err();
    let Error::StateType { key, holds, given } = &error else { panic!("{error}") };
    assert_eq!((key.as_str(), holds.as_str()), ("/gain", "plain type demo.Gain (8 bytes)"));
    assert!(given.starts_with("plain type demo.Gain (8 bytes) (field `kp`: "), "{given}");
    let error = refusal(a.get_message::<OtherGain>("/gain"));
    assert!(error.contains("field `kp`: written as f64"), "{error}");
    assert!(refusal(a.set("/gain", 1)).contains("/gain holds plain type demo.Gain"));
    assert!(
        refusal(a.get_as::<f64>("/gain")).contains("plain type demo.Gain (8 bytes), not a float")
    );
    a.put("/gain").change_type().set_message(&OtherGain { kp: 1.0, ki: 2.0 }).unwrap();
    assert!(b.get_message::<Gain>("/gain").is_err());
    a.set("/n", 1).unwrap();
    assert!(refusal(a.get_message::<Gain>("/n")).contains("/n holds an integer, not plain type"));
    assert!(refusal(a.set_message("/n", &gain)).contains("/n holds an integer, not plain type"));
}

#[test]
fn protobuf_messages_with_and_without_code() {
    let net = Net::new("protobuf_messages_with_and_without_code");
    let (a, b) = (net.node("a").state().unwrap(), net.node("b").state().unwrap());
    let mut pose = Pose::default();
    pose.position.get_or_insert_default().x = 1.5;
    a.set_message("/pose", &pose).unwrap();
    assert_eq!(b.get_message::<Pose>("/pose").unwrap().as_ref(), Some(&pose));
    let generic = b.get_message::<Dynamic>("/pose").unwrap().unwrap();
    assert_eq!(generic.schema().name(), "foxglove.Pose");
    b.set_message("/pose", &generic).unwrap();
    assert_eq!(a.get_message::<Pose>("/pose").unwrap(), Some(pose));
    let (old, new, other) = (level(OLD), level(NEW), level(OTHER));
    a.set_message("/level", &level_of(&old, r#"{"volt": 24.5}"#)).unwrap();
    b.set_message("/level", &level_of(&new, r#"{"voltage": 25.5, "ampere": 2}"#)).unwrap();
    let read = a.get_message::<Dynamic>("/level").unwrap().unwrap();
    assert_eq!(*read.schema(), new, "it is read with the written type");
    let error = refusal(a.set_message("/level", &level_of(&other, r#"{"volt": 1}"#)));
    assert!(error.contains("/level holds protobuf message demo.Level, not"), "{error}");
    assert!(error.contains("float"), "{error}");
    assert!(refusal(a.get_message::<Pose>("/level")).contains("foxglove.Pose"));
    let mut t = a.transaction();
    t.set_message("/level", &level_of(&old, r#"{"volt": 3}"#)).unwrap();
    t.set_message("/other", &level_of(&other, r#"{"volt": 3}"#)).unwrap();
    t.commit().unwrap();
    let changes: Vec<_> = b.list("/").unwrap().iter().map(|e| e.value.type_text()).collect();
    assert_eq!(changes[0], "protobuf message demo.Level");
    assert!(!b.keys("").unwrap().iter().any(|key| key.contains("type")), "types are not keys");
}

#[test]
fn a_message_may_be_a_last_will() {
    let net = Net::new("a_message_may_be_a_last_will");
    let state = net.node("n").state().unwrap();
    let stop = StateMessage::of(&Gain { kp: 0.0, ki: 0.0 }).unwrap();
    state.set_message("/gain", &Gain { kp: 3.0, ki: 0.0 }).unwrap();
    let put = state.put("/gain").last_will(stop.clone());
    put.set_message(&Gain { kp: 1.0, ki: 1.0 }).unwrap();
    let entry = state.entry("/gain").unwrap().unwrap();
    assert_eq!(entry.last_will, Some(LastWill::Becomes(stop.into())));
    let error = refusal(state.put("/g").last_will(1).set_message(&Gain { kp: 1.0, ki: 1.0 }));
    assert!(error.contains("not an integer as its last will"), "{error}");
}

#[test]
fn invalid_message_bytes_are_refused() {
    let net = Net::new("invalid_message_bytes_are_refused");
    let state = net.node("n").state().unwrap();
    let plain = MessageType::Plain(Gain::plain_type());
    for len in [0, 15, 17] {
        let error = refusal(StateMessage::new(plain.clone(), vec![0; len]));
        assert_eq!(
            error,
            format!(
                "bad value for plain type demo.Gain (16 bytes): {len} bytes are not a message of this type"
            )
        );
    }
    let error = refusal(StateMessage::new(MessageType::Raw, vec![]));
    assert!(error.contains("store them as bytes"), "{error}");
    // The reader decodes protobuf, so only the reader gets the error.
    let level = level(OLD);
    let broken = StateMessage::new(MessageType::Protobuf(level), vec![0x09, 1]).unwrap();
    state.set("/level", broken).unwrap();
    assert!(state.get("/level").unwrap().is_some());
    assert!(refusal(state.get_message::<Dynamic>("/level")).starts_with("bad value for /level: "));
    let message = StateMessage::of(&Gain { kp: 1.0, ki: 2.0 }).unwrap();
    assert!(
        refusal(state.set("/l", Value::list([message.clone()]))).contains("cannot hold messages")
    );
    assert!(refusal(state.push("/l", message, 3)).contains("cannot hold messages"));
}
