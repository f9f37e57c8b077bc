//! Protobuf messages: types travel with the channel and are compared at the match. Messages that do not
//! decode are counted and skipped.

use crate::common;
use rnet_schema::reflect::ReflectDynamic;

use std::time::Duration;

use common::{LONG, Net, eventually};
use rnet::inspect::Follower;
use rnet::msgs::LaserScan;
use rnet::schema::{self, FieldPath, Schema, compile_text};
use rnet::{Dynamic, Error, MatchEvent, Message, MessageType, OnFull, TypeDesc};

/// As a build script generates it, of the type `OLD`.
#[derive(Clone, PartialEq, rnet::protobuf::prost::Message)]
#[prost(prost_path = "rnet::protobuf::prost")]
struct Level {
    #[prost(double, tag = "1")]
    volt: f64,
    #[prost(string, repeated, tag = "2")]
    cells: Vec<String>,
}

const OLD: &str = r#"syntax = "proto3"; package demo;
// A battery.
message Level { double volt = 1; repeated string cells = 2; }"#;

/// One field added, one renamed.
const NEW: &str = r#"syntax = "proto3"; package demo;
message Level { double voltage = 1; repeated string cells = 2; double ampere = 3; }"#;

/// Another type at the same field number.
const OTHER: &str = r#"syntax = "proto3"; package demo;
message Level { float volt = 1; repeated string cells = 2; }"#;

fn set() -> &'static [u8] {
    static SET: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    SET.get_or_init(|| schema_of(OLD).descriptor_set_with_docs())
}

rnet::protobuf_message!(Level, "demo.Level", set());

#[derive(Clone, Copy, rnet::Plain)]
#[repr(C)]
struct Volt {
    volt: f64,
}

/// A type from a broken build.
#[derive(Clone, PartialEq, rnet::protobuf::prost::Message)]
#[prost(prost_path = "rnet::protobuf::prost")]
struct Broken {}
rnet::protobuf_message!(Broken, "demo.Broken", &[1, 2, 3]);

fn schema_of(text: &str) -> Schema {
    compile_text("level.proto", text).unwrap().schema("demo.Level").unwrap()
}

fn level(volt: f64) -> Level {
    Level { volt, cells: vec!["left".to_owned(), "right".to_owned()] }
}

#[test]
fn message_arrives_unchanged() {
    let net = Net::new("protobuf");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<Level>("/level").open().unwrap();
    let mut subscriber = b.subscriber::<Level>("/level").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    for n in 0..10 {
        publisher.send(&level(f64::from(n))).unwrap();
    }
    let first = subscriber.recv_timeout(LONG).unwrap().into_owned();
    assert_eq!(*first, level(0.0));
    // The kept message is unchanged while the next ones are decoded.
    let second = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!(second.volt, 1.0);
    assert_eq!(first.volt, 0.0);
    assert_eq!(subscriber.latest_timeout(LONG).unwrap().volt, 9.0);
    // Too long for the log: a chunk.
    let long = Level { volt: 2.0, cells: vec!["x".repeat(1000); 100] };
    publisher.send(&long).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), long);
    assert!(publisher.try_send(&level(3.0)).unwrap());
    let mut batch = Vec::new();
    let count = subscriber.recv_batch_timeout(10, LONG, |sample| {
        batch.push(sample.volt);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!((count.unwrap(), batch), (1, vec![3.0]));
}

#[test]
fn every_way_of_receiving_decodes() {
    let net = Net::new("protobuf_ways");
    let node = net.node("a");
    let mut publisher = node
        .publisher::<Level>("/level")
        .reliable(OnFull::Wait(Duration::from_secs(20)))
        .open()
        .unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let subscription = node.subscriber::<Level>("/level").open().unwrap();
    let subscription = subscription.on(move |sample| sender.send(sample.volt).unwrap());
    let mut stream = node.subscriber::<Level>("/level").open().unwrap().into_stream();
    let mut iterated = node.subscriber::<Level>("/level").open().unwrap();
    publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
    publisher.send(&level(1.5)).unwrap();
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), 1.5);
    assert_eq!(common::block_on(stream.recv()).unwrap().volt, 1.5);
    assert_eq!(iterated.iter().next().unwrap().volt, 1.5);
    let mut again = stream.into_source().unwrap();
    publisher.send(&level(2.5)).unwrap();
    assert_eq!(again.recv_timeout(LONG).unwrap().volt, 2.5);
    drop(subscription);
}

#[test]
fn old_and_new_versions_are_compatible() {
    let net = Net::new("protobuf_new");
    let (a, b) = (net.node("a"), net.node("b"));
    let new = schema_of(NEW);
    let mut old_sends = a.publisher::<Level>("/level").open().unwrap();
    let mut new_sends = a.publisher::<Dynamic>("/level").schema(&new).open().unwrap();
    let mut old_hears = b.subscriber::<Level>("/level").open().unwrap();
    let mut new_hears = b.subscriber::<Dynamic>("/level").schema(&new).open().unwrap();
    old_hears.wait_for_publishers_timeout(2, LONG).unwrap();
    new_hears.wait_for_publishers_timeout(2, LONG).unwrap();

    old_sends.send(&level(12.5)).unwrap();
    let field = |path: &str| FieldPath::parse(&new, path).unwrap();
    let number = |message: &Dynamic, path: &str| message.get(&field(path)).unwrap().as_f64();
    let message = new_hears.recv_timeout(LONG).unwrap().into_owned();
    assert_eq!(number(&message, "voltage"), Some(12.5));
    assert_eq!(number(&message, "ampere"), Some(0.0));
    assert_eq!(old_hears.recv_timeout(LONG).unwrap().volt, 12.5);

    let json = serde_json::json!({"voltage": 13.5, "ampere": 2.0, "cells": ["one"]});
    let sent = schema::Dynamic::from_json(&new, &json).unwrap();
    new_sends.send(&sent.into()).unwrap();
    assert_eq!(
        *old_hears.recv_timeout(LONG).unwrap(),
        Level { volt: 13.5, cells: vec!["one".into()] }
    );
    assert_eq!(number(&new_hears.recv_timeout(LONG).unwrap(), "ampere"), Some(2.0));

    // From outside: compatible, with the differences.
    let pairs = net.inspect().compare_types("/level");
    assert_eq!(pairs.len(), 4);
    assert!(pairs.iter().all(|pair| pair.compatible));
    let differing: Vec<_> = pairs.iter().filter(|pair| !pair.changes.is_empty()).collect();
    assert_eq!(differing.len(), 2);
    for pair in differing {
        let rules: Vec<&str> = pair.changes.iter().map(|change| change.rule).collect();
        assert!(rules.contains(&"field.renamed"), "{rules:?}");
        let added = rules.iter().any(|r| ["field.reader_only", "field.writer_only"].contains(r));
        assert!(added, "{rules:?}");
    }
}

#[test]
fn both_sides_report_incompatible_types() {
    let net = Net::new("protobuf_other");
    let (a, b) = (net.node("old"), net.node("other"));
    let other = schema_of(OTHER);
    let publisher = a.publisher::<Level>("/level").open().unwrap();
    let mut subscriber = b.subscriber::<Dynamic>("/level").schema(&other).open().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    subscriber
        .on_match(move |event| {
            if let MatchEvent::Incompatible(error) = event {
                sender.send(error.clone()).unwrap();
            }
        })
        .detach();
    let at_publisher = publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err();
    let at_subscriber = subscriber.wait_for_publishers_timeout(1, LONG).unwrap_err();
    for error in [&at_publisher, &at_subscriber] {
        let Error::IncompatibleType { topic, publisher_node, subscriber_node, detail, .. } = error
        else {
            panic!("{error}");
        };
        assert_eq!((topic.as_str(), publisher_node.as_str()), ("/level", "/old"));
        assert_eq!(subscriber_node, "/other");
        assert_eq!(detail.field_path, "volt");
        assert!(detail.publisher.contains("double"), "{error}");
        assert!(detail.subscriber.contains("float"), "{error}");
    }
    // A compatible publisher is still received, and the other one is not.
    let mut fits = a.publisher::<Dynamic>("/level").schema(&other).open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    let mut unheard = a.publisher::<Level>("/level").open().unwrap();
    unheard.send(&level(1.0)).unwrap();
    fits.send(&Dynamic::new(&other)).unwrap();
    assert_eq!(subscriber.recv_timeout(LONG).unwrap().publisher(), fits.id());
    let error = receiver.recv_timeout(LONG).unwrap();
    assert!(matches!(error, Error::IncompatibleType { .. }), "{error}");
    // A raw subscriber accepts any bytes, and so does an observer.
    let mut raw = b.subscriber::<[u8]>("/level").open().unwrap();
    raw.wait_for_publishers_timeout(3, LONG).unwrap();
    let pairs = net.inspect().compare_types("/level");
    let breaking = pairs.iter().filter(|pair| !pair.compatible).count();
    assert_eq!((pairs.len(), breaking), (3, 2));
}

/// One file describes all types with a hash: types with different reserved fields, which affect
/// compatibility, have two.
#[test]
fn both_sides_know_what_each_endpoint_reserves() {
    let net = Net::new("protobuf_reserved");
    let (a, b) = (net.node("a"), net.node("b"));
    let of = |values: &str| {
        let text = format!(
            "syntax = \"proto3\"; package demo; enum E {{ X = 0; Y = 1; {values} }} message Level {{ E e = 1; }}"
        );
        schema_of(&text)
    };
    let (plain, reserving) = (of(""), of("reserved 2;"));
    let _first = b.subscriber::<Dynamic>("/first").schema(&plain).open().unwrap();
    let mut subscriber = b.subscriber::<Dynamic>("/level").schema(&reserving).open().unwrap();
    let publisher = a.publisher::<Dynamic>("/level").schema(&of("Z = 2;")).open().unwrap();
    for error in [
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap_err(),
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err(),
    ] {
        let Error::IncompatibleType { detail, .. } = &error else { panic!("{error}") };
        assert_eq!(detail.field_path, "e:Z", "{error}");
    }
}

#[test]
fn other_kinds_of_types_do_not_fit() {
    let net = Net::new("protobuf_kinds");
    let node = net.node("a");
    let refused = |error: Error| {
        assert!(matches!(error, Error::IncompatibleType { .. }), "{error}");
        error.to_string()
    };
    let raw = node.publisher::<[u8]>("/raw").open().unwrap();
    let mut level = node.subscriber::<Level>("/raw").open().unwrap();
    let text = refused(level.wait_for_publishers_timeout(1, LONG).unwrap_err());
    assert!(text.contains("raw bytes") && text.contains("demo.Level"), "{text}");
    refused(raw.wait_for_subscribers_timeout(1, LONG).unwrap_err());

    // An unrelated message type.
    let text = r#"syntax = "proto3"; package demo; message Charge { double volt = 1; }"#;
    let charge = compile_text("charge.proto", text).unwrap().schema("demo.Charge").unwrap();
    let _level = node.publisher::<Level>("/two").open().unwrap();
    let mut charges = node.subscriber::<Dynamic>("/two").schema(&charge).open().unwrap();
    let text = refused(charges.wait_for_publishers_timeout(1, LONG).unwrap_err());
    assert!(text.contains("demo.Level") && text.contains("demo.Charge"), "{text}");
}

#[test]
fn undecodable_messages_are_counted_and_skipped() {
    let net = Net::new("protobuf_malformed");
    let (a, b) = (net.node("a"), net.node("b"));
    // A publisher of bytes may declare any type.
    let mut publisher = a.publisher::<[u8]>("/level").schema(&schema_of(OLD)).open().unwrap();
    let mut subscriber = b.subscriber::<Level>("/level").open().unwrap();
    let mut dynamic = b.subscriber::<Dynamic>("/level").schema(&schema_of(NEW)).open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    let good = rnet::protobuf::prost::Message::encode_to_vec(&level(1.0));
    let truncated = &good[..good.len() - 1];
    // A string of 2 GB in a message of a few bytes.
    let long = [0x12, 0xff, 0xff, 0xff, 0xff, 0x07, b'x'];
    let not_text = [0x12, 2, 0xff, 0xfe];
    let wrong_wire_type = [0x08, 1];
    for bad in [truncated, &long, &not_text, &wrong_wire_type] {
        publisher.send(bad).unwrap();
        publisher.send(&good).unwrap();
    }
    for _ in 0..4 {
        for error in
            [subscriber.recv_timeout(LONG).unwrap_err(), dynamic.recv_timeout(LONG).unwrap_err()]
        {
            let Error::Malformed { topic, publisher_node, why } = error else { panic!("{error}") };
            assert_eq!((topic.as_str(), publisher_node.as_str()), ("/level", "/a"));
            assert!(why.contains("demo.Level at byte"), "{why}");
        }
        assert_eq!(subscriber.recv_timeout(LONG).unwrap().volt, 1.0);
        dynamic.recv_timeout(LONG).unwrap();
    }
    let stats = subscriber.stats();
    assert_eq!((stats[0].received, stats[0].malformed, stats[0].lost.total()), (8, 4, 0));
    let seen = net.inspect();
    let of_level = seen.subscriptions.iter().filter(|s| s.topic == "/level");
    assert!(of_level.clone().all(|s| s.channels[0].malformed == 4));
    // The count survives the publisher.
    drop(publisher);
    eventually("the publisher is gone", || {
        let _ = subscriber.try_recv();
        subscriber.stats().iter().all(|s| !s.connected)
    });
    assert_eq!(subscriber.stats().iter().map(|s| s.malformed).sum::<u64>(), 4);
}

#[test]
fn callback_is_notified_of_undecodable_messages() {
    let net = Net::new("protobuf_callback");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/level").schema(&schema_of(OLD)).open().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let subscription =
        node.subscriber::<Level>("/level").open().unwrap().on_result(move |result| {
            sender.send(result.map(|sample| sample.volt).map_err(|error| error.code())).unwrap();
        });
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[0xff]).unwrap();
    publisher.send(&[]).unwrap();
    let next = || receiver.recv_timeout(LONG).unwrap();
    assert_eq!([next(), next()], [Err("malformed"), Ok(0.0)]);
    assert_eq!(subscription.stats()[0].malformed, 1);
}

#[test]
fn tools_get_the_type_with_its_comments() {
    let net = Net::new("protobuf_tools");
    let node = net.node("a");
    let mut publisher = node.publisher::<Level>("/level").transient_local(1).open().unwrap();
    publisher.send(&level(24.0)).unwrap();
    let snapshot = net.inspect();
    let info = &snapshot.publishers[0];
    let TypeDesc::Protobuf(named) = &info.type_desc else { panic!("{}", info.type_desc) };
    let schema = info.schema.as_ref().unwrap();
    assert_eq!((named.name.as_str(), schema.name()), ("demo.Level", "demo.Level"));
    assert_eq!(*schema, schema_of(OLD));
    assert_eq!(schema.docs().get("demo.Level"), Some("A battery."));
    // Once per node, however many endpoints use it.
    let _more: Vec<_> =
        (0..5).map(|n| node.publisher::<Level>(&format!("/level{n}")).open().unwrap()).collect();
    let folder = std::fs::read_dir(info.path.parent().unwrap()).unwrap();
    let types = folder.filter(|f| f.as_ref().unwrap().file_name().as_encoded_bytes()[0] == b't');
    assert_eq!(types.count(), 1);
    let mut follow = Follower::new(net.domain(), "/level", true).unwrap();
    let mut bytes = Vec::new();
    let received = follow.poll(&mut bytes).unwrap().expect("the kept message");
    let schema = received.schema.unwrap().clone();
    let message = schema::Dynamic::decode(&schema, &bytes).unwrap();
    let volt = FieldPath::parse(&schema, "volt").unwrap();
    assert_eq!(message.get(&volt).unwrap().as_f64(), Some(24.0));
}

#[test]
fn a_hostile_description_is_refused_by_name() {
    let net = Net::new("protobuf_hostile");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher = a.publisher::<Level>("/level").open().unwrap();
    let path = net.inspect().publishers[0].path.clone();
    let hash = schema_of(OLD).hash().to_string();
    let file = path.with_file_name(format!("t{hash}"));
    let honest = std::fs::read(&file).unwrap();
    let with_set = |set: &[u8]| {
        let mut bytes = honest[..64].to_vec();
        bytes[16..24].copy_from_slice(&(set.len() as u64).to_le_bytes());
        bytes.extend_from_slice(set);
        bytes
    };
    let other = schema_of(OTHER);
    let lies = [
        ("no set", with_set(&[0xff; 40])),
        ("an empty set", with_set(&[])),
        ("another type", with_set(other.descriptor_set())),
        ("too long", {
            let mut bytes = honest.clone();
            bytes[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
            bytes
        }),
        ("cut short", honest[..70].to_vec()),
        ("not a file of robot-net", b"litter".repeat(20)),
    ];
    for (what, bytes) in lies {
        std::fs::write(&file, bytes).unwrap();
        let mut subscriber = b.subscriber::<Level>("/level").open().unwrap();
        let error = subscriber.wait_for_publishers_timeout(1, LONG).unwrap_err();
        let Error::IncompatibleType { detail, .. } = &error else { panic!("{what}: {error}") };
        assert!(detail.publisher.contains("cannot be read"), "{what}: {error}");
        // None of it is decoded, and tools continue.
        assert!(subscriber.try_recv().unwrap().is_none(), "{what}");
        let snapshot = net.inspect();
        assert!(snapshot.publishers[0].schema.is_none() && !snapshot.problems.is_empty(), "{what}");
        assert!(!snapshot.compare_types("/level")[0].compatible, "{what}");
    }
    std::fs::write(&file, &honest).unwrap();
    let mut subscriber = b.subscriber::<Level>("/level").open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    drop(publisher);
}

/// Decoded messages hold no memory of the publisher.
#[test]
fn any_number_of_large_messages_can_be_kept() {
    let net = Net::new("protobuf_kept");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a
        .publisher::<Level>("/level")
        .reliable(OnFull::Refuse)
        .pool_limit_bytes(500_000)
        .open()
        .unwrap();
    let mut subscriber = b.subscriber::<Level>("/level").reliable().open().unwrap();
    let mut any =
        b.subscriber::<Dynamic>("/level").schema(&schema_of(OLD)).reliable().open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    any.wait_for_publishers_timeout(1, LONG).unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    let cells = vec!["x".repeat(1000); 100];
    let (mut kept, mut kept_any, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..2 * rnet::limits::MAX_PINS_PER_READER {
        let message = Level { volt: n as f64, cells: cells.clone() };
        publisher.send(&message).unwrap();
        let sample = subscriber.recv_timeout(LONG).unwrap();
        assert!(sample.bytes().len() > 100_000);
        if n.is_multiple_of(2) {
            kept.push(sample.into_owned());
        } else {
            taken.push(sample.into_message());
        }
        kept_any.push(any.recv_timeout(LONG).unwrap().into_owned());
    }
    for (n, kept) in kept.into_iter().enumerate() {
        assert_eq!((kept.seq(), kept.volt), (2 * n as u64, (2 * n) as f64));
        assert!(!format!("{kept:?}").is_empty() && kept.into_message().cells == cells);
    }
    assert!(taken.iter().enumerate().all(|(n, message)| message.volt == (2 * n + 1) as f64));
    let volt = FieldPath::parse(&schema_of(OLD), "volt").unwrap();
    let last: Dynamic = kept_any.pop().unwrap().into_message();
    let expected = (2 * rnet::limits::MAX_PINS_PER_READER - 1) as f64;
    assert_eq!(last.get(&volt).and_then(|value| value.as_f64()), Some(expected));
}

#[test]
fn type_is_specified_once() {
    let net = Net::new("protobuf_said");
    let node = net.node("a");
    let why = |result: Result<(), Error>| match result.unwrap_err() {
        Error::BadValue { why, .. } => why,
        other => panic!("{other}"),
    };
    assert!(
        why(node.publisher::<Dynamic>("/x").open().map(drop)).contains("PublisherBuilder::schema")
    );
    let other = schema_of(OTHER);
    let text = why(node.publisher::<Level>("/x").schema(&other).open().map(drop));
    assert!(text.contains("demo.Level"), "{text}");
    // The same type specified twice is not a contradiction.
    node.publisher::<Level>("/x").schema(&schema_of(OLD)).open().unwrap();
    // Dynamic accepts only protobuf types.
    for other in [MessageType::Raw, Volt::message_type().unwrap()] {
        let text =
            why(node.publisher::<Dynamic>("/x").message_type(other.clone()).open().map(drop));
        assert!(text.contains("a protobuf type"), "{text}");
        let text = why(node.subscriber::<Dynamic>("/x").message_type(other).open().map(drop));
        assert!(text.contains("a protobuf type"), "{text}");
    }
    let text = why(node.publisher::<Broken>("/x").schema(&other).open().map(drop));
    assert!(!text.is_empty());
    let plain = MessageType::Protobuf(other).desc();
    assert!(MessageType::try_from(plain).is_err());
}

#[test]
fn a_message_of_another_type_is_not_sent() {
    let net = Net::new("protobuf_strange");
    let (node, old) = (net.node("a"), schema_of(OLD));
    let mut publisher = node.publisher::<Dynamic>("/level").schema(&old).open().unwrap();
    let mut subscriber = node.subscriber::<Level>("/level").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let pose = compile_text("pose.proto", "syntax = \"proto3\"; message Pose { fixed64 id = 1; }");
    let pose = pose.unwrap().schema("Pose").unwrap();
    for (strange, said) in [
        (&pose, "a Pose, but the publisher sends demo.Level"),
        (&schema_of(OTHER), "its demo.Level differs from the publisher's"),
    ] {
        let message = Dynamic::new(strange);
        for sent in [publisher.send(&message).map(|()| true), publisher.try_send(&message)] {
            let error = sent.unwrap_err();
            assert!(matches!(error, Error::BadValue { .. }), "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
    // The same type, compiled again.
    publisher.send(&Dynamic::new(&schema_of(OLD))).unwrap();
    let only = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!((only.seq(), &*only), (0, &Level::default()));
}

#[test]
fn messages_of_different_lengths_follow_each_other() {
    let net = Net::new("protobuf_lengths");
    let node = net.node("a");
    let mut publisher = node.publisher::<Level>("/level").open().unwrap();
    let mut subscriber = node.subscriber::<Level>("/level").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for cells in [1, 1000, 1001, 2, 200, 3000, 0, 999] {
        let sent = Level { volt: f64::from(cells), cells: vec!["x".repeat(999); cells as usize] };
        publisher.send(&sent).unwrap();
        assert!(*subscriber.recv_timeout(LONG).unwrap() == sent, "{cells}");
        assert_eq!(publisher.try_send(&sent).unwrap(), cells < 4, "{cells}");
        if cells < 4 {
            assert!(*subscriber.recv_timeout(LONG).unwrap() == sent, "{cells}");
        }
    }
}

#[test]
fn a_message_of_too_many_values_is_malformed() {
    let net = Net::new("protobuf_values");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/level").schema(&schema_of(OLD)).open().unwrap();
    let mut subscriber = node.subscriber::<Level>("/level").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // Each empty string takes two bytes here, and at least twenty-four in memory.
    let too_many = [0x12, 0].repeat(schema::limits::MAX_DECODE_VALUES + 1);
    publisher.send(&too_many).unwrap();
    publisher.send(&[]).unwrap();
    let error = subscriber.recv_timeout(LONG).unwrap_err().to_string();
    assert!(error.contains("max_values"), "{error}");
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), Level::default());
}

#[test]
fn a_message_of_many_numbers_arrives() {
    let net = Net::new("protobuf_numbers");
    let node = net.node("a");
    let mut publisher = node.publisher::<LaserScan>("/scan").open().unwrap();
    let mut subscriber = node.subscriber::<LaserScan>("/scan").open().unwrap();
    let mut dynamic = node
        .subscriber::<Dynamic>("/scan")
        .schema(LaserScan::message_type().unwrap().schema().unwrap())
        .open()
        .unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    // More than the value limit: packed numbers take no more space in memory than on the wire.
    let ranges = vec![1.5; schema::limits::MAX_DECODE_VALUES + 1];
    let scan = LaserScan { ranges, ..LaserScan::default() };
    publisher.send(&scan).unwrap();
    assert!(*subscriber.recv_timeout(LONG).unwrap() == scan);
    assert!(dynamic.recv_timeout(LONG).unwrap().encode().len() > 8 * scan.ranges.len());
}

#[test]
fn buffer_of_a_long_message_is_not_kept() {
    let net = Net::new("protobuf_kept");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/level").schema(&schema_of(OLD)).open().unwrap();
    let mut subscriber = node.subscriber::<Level>("/level").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[0x12, 0].repeat(1000)).unwrap();
    publisher.send(&[0x12, 0].repeat(100_000)).unwrap();
    publisher.send(&[]).unwrap();
    assert_eq!(subscriber.recv_timeout(LONG).unwrap().cells.len(), 1000);
    assert_eq!(subscriber.recv_timeout(LONG).unwrap().cells.len(), 100_000);
    assert_eq!(subscriber.recv_timeout(LONG).unwrap().cells.capacity(), 0);
}

#[test]
fn a_type_that_peers_would_refuse_is_refused_where_it_is_opened() {
    let net = Net::new("protobuf_own_limits");
    let node = net.node("a");
    let fields: String = (1..=schema::limits::MAX_SCHEMA_FIELDS + 1)
        .map(|n| format!("int32 f{n} = {};", if n < 19000 { n } else { n + 1000 }))
        .collect();
    let text = format!("syntax = \"proto3\"; package demo; message Level {{ {fields} }}");
    // Either the compiler or the endpoint names the limit; no endpoint is announced.
    let compiled = compile_text("level.proto", &text).and_then(|all| all.schema("demo.Level"));
    let why = match compiled {
        Err(error) => error.to_string(),
        Ok(schema) => {
            node.publisher::<Dynamic>("/level").schema(&schema).open().unwrap_err().to_string()
        }
    };
    assert!(why.contains("MAX_SCHEMA_FIELDS"), "{why}");
    assert!(net.inspect().publishers.is_empty());
}
