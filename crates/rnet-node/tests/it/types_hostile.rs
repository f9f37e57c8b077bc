//! Peers whose protobuf types are lost, corrupt, huge or too many: their peers get an error with the reason,
//! and continue with the others.

use crate::common;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use common::{LONG, Net, eventually};
use rnet::inspect::{FollowEvent, Follower};
use rnet::protobuf::prost::Message as _;
use rnet::protobuf::prost_types::field_descriptor_proto::{Label, Type};
use rnet::protobuf::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};
use rnet::schema::{Schema, compile_text, limits};
use rnet::{Dynamic, Error, MatchEvent, Node, Publisher, Subscriber};

fn schema_of(name: &str, fields: &str) -> Schema {
    let text = format!("syntax = \"proto3\"; message {name} {{ {fields} }}");
    compile_text("demo.proto", &text).unwrap().schema(name).unwrap()
}

fn level() -> Schema {
    schema_of("Level", "double volt = 1;")
}

fn sends(node: &Node, topic: &str, schema: &Schema) -> Publisher<Dynamic> {
    node.publisher(topic)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .schema(schema)
        .open()
        .unwrap()
}

fn hears(node: &Node, topic: &str, schema: &Schema) -> Subscriber<Dynamic> {
    node.subscriber(topic).schema(schema).open().unwrap()
}

/// The file of a type in a node's folder.
fn type_file(net: &Net, node: &str, schema: &Schema) -> PathBuf {
    let folders = std::fs::read_dir(net.inspect_path().join("nodes")).unwrap().flatten();
    let of_node =
        |f: &std::fs::DirEntry| f.file_name().to_string_lossy().starts_with(&format!("{node}@"));
    folders.into_iter().find(of_node).unwrap().path().join(format!("t{}", schema.hash()))
}

/// The header of a type's file, followed by a descriptor set.
fn with_set(head: &[u8], set: &[u8]) -> Vec<u8> {
    let mut bytes = head[..64].to_vec();
    bytes[16..24].copy_from_slice(&(set.len() as u64).to_le_bytes());
    bytes.extend_from_slice(set);
    bytes
}

/// Replaces a type's file, and a word of the error.
type Case = (&'static str, fn(&Path, &[u8]), &'static str);

const CASES: [Case; 10] = [
    ("nothing", |_, _| (), "cannot open"),
    ("an empty file", |path, _| std::fs::write(path, []).unwrap(), "cannot read"),
    ("half a head", |path, honest| std::fs::write(path, &honest[..30]).unwrap(), "cannot read"),
    (
        "last byte missing",
        |p, honest| std::fs::write(p, &honest[..honest.len() - 1]).unwrap(),
        "cannot read",
    ),
    (
        "another type",
        |path, honest| {
            let other = schema_of("Level", "float volt = 1;");
            std::fs::write(path, with_set(honest, other.descriptor_set())).unwrap();
        },
        "does not match the file's name",
    ),
    ("a folder", |path, _| std::fs::create_dir(path).unwrap(), "cannot read"),
    (
        "a FIFO",
        |path, _| {
            let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: the name is NUL-terminated.
            assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        },
        "cannot read",
    ),
    (
        "a link to a valid file",
        |path, honest| {
            let aside = path.with_file_name("aside");
            std::fs::write(&aside, honest).unwrap();
            std::os::unix::fs::symlink(aside, path).unwrap();
        },
        "cannot open",
    ),
    (
        "a link to a system file",
        |path, _| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
        "cannot open",
    ),
    (
        "another layout",
        |path, honest| {
            let mut bytes = honest.to_vec();
            bytes[8] ^= 0xff;
            std::fs::write(path, bytes).unwrap();
        },
        "layout",
    ),
];

fn put(path: &Path, make: fn(&Path, &[u8]), honest: &[u8]) {
    if path.is_dir() {
        std::fs::remove_dir(path).unwrap();
    } else {
        let _ = std::fs::remove_file(path);
    }
    make(path, honest);
}

fn is_unreadable(
    what: &str,
    why: &str,
    side: impl Fn(&rnet::TypeMismatch) -> String,
    error: &Error,
) {
    let Error::IncompatibleType { detail, .. } = error else { panic!("{what}: {error}") };
    let said = side(detail);
    assert!(said.contains("cannot be read") && said.contains(why), "{what}: {error}");
    assert!(!said.contains("root:"), "{what}: {error}");
}

#[test]
fn corrupt_type_file_is_reported_on_both_sides() {
    let net = Net::new("types_anything");
    let (peer, victim, honest) = (net.node("peer"), net.node("victim"), net.node("honest"));
    let level = level();
    let (lost_publisher, mut lost_subscriber) =
        (sends(&peer, "/up", &level), hears(&peer, "/down", &level));
    let path = type_file(&net, "peer", &level);
    let right = std::fs::read(&path).unwrap();
    for (what, make, why) in CASES {
        put(&path, make, &right);
        let mut subscriber = hears(&victim, "/up", &level);
        let publisher = sends(&victim, "/down", &level);
        let reader = subscriber.wait_for_publishers_timeout(1, LONG).unwrap_err();
        is_unreadable(what, why, |detail| detail.publisher.clone(), &reader);
        let reader = publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err();
        is_unreadable(what, why, |detail| detail.subscriber.clone(), &reader);
        // The peer considers itself intact, and finds out by itself.
        let reader = lost_publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err();
        is_unreadable(what, why, |detail| detail.publisher.clone(), &reader);
        let reader = lost_subscriber.wait_for_publishers_timeout(1, LONG).unwrap_err();
        is_unreadable(what, why, |detail| detail.subscriber.clone(), &reader);
        // An intact peer is still received.
        let mut well = sends(&honest, "/up", &level);
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        well.wait_for_subscribers_timeout(1, LONG).unwrap();
        well.send(&Dynamic::new(&level)).unwrap();
        assert_eq!(subscriber.recv_timeout(LONG).unwrap().publisher(), well.id(), "{what}");
        // Tools name the node.
        let problems = net.inspect().problems;
        assert!(
            problems.len() == 2 && problems.iter().all(|p| p.contains("/peer")),
            "{problems:?}"
        );
    }
    put(&path, |path, right| std::fs::write(path, right).unwrap(), &right);
    hears(&victim, "/up", &level).wait_for_publishers_timeout(1, LONG).unwrap();
    sends(&victim, "/down", &level).wait_for_subscribers_timeout(1, LONG).unwrap();
}

/// A matched peer continues, and its node still leaves nothing behind.
#[test]
fn type_lost_after_the_match_affects_no_one() {
    let net = Net::new("types_lost");
    let (peer, victim) = (net.node("peer"), net.node("victim"));
    let level = level();
    let mut publisher = sends(&peer, "/up", &level);
    let mut subscriber = hears(&victim, "/up", &level);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let path = type_file(&net, "peer", &level);
    std::fs::remove_file(&path).unwrap();
    publisher.send(&Dynamic::new(&level)).unwrap();
    subscriber.recv_timeout(LONG).unwrap();
    std::fs::create_dir_all(path.join("in the way")).unwrap();
    drop((publisher, peer));
    assert!(!path.parent().unwrap().exists());
}

#[test]
fn an_observer_follows_the_bytes_of_a_type_that_it_cannot_read() {
    for (what, make, why) in CASES {
        let net = Net::new("types_followed");
        let (peer, level) = (net.node("peer"), level());
        let mut publisher = sends(&peer, "/up", &level);
        let path = type_file(&net, "peer", &level);
        let right = std::fs::read(&path).unwrap();
        put(&path, make, &right);
        let mut follow = Follower::new(net.domain(), "/up", false).unwrap();
        let mut bytes = Vec::new();
        assert!(follow.poll(&mut bytes).unwrap().is_none());
        publisher.send(&Dynamic::new(&level)).unwrap();
        eventually("its message arrives", || {
            follow.poll(&mut bytes).unwrap().is_some_and(|received| received.schema.is_none())
        });
        let events = follow.take_events();
        let [FollowEvent::Untyped(node, said), FollowEvent::Joined(_)] = &*events else {
            panic!("{what}: {events:?}");
        };
        assert!(node == "/peer" && said.contains(why), "{what}: {said}");
    }
}

/// A valid descriptor set with the maximum number of fields, each with a unique name.
fn huge(prefix: &str) -> Schema {
    let field = |n: usize| FieldDescriptorProto {
        name: Some(format!("{prefix}{n}")),
        // The numbers from 19000 to 19999 are reserved.
        number: Some(if n < 18_000 { n as i32 + 1 } else { n as i32 + 4000 }),
        label: Some(Label::Optional as i32),
        r#type: Some(Type::Int32 as i32),
        ..Default::default()
    };
    let message = DescriptorProto {
        name: Some("Huge".to_owned()),
        field: (0..limits::MAX_SCHEMA_FIELDS).map(field).collect(),
        ..Default::default()
    };
    let file = FileDescriptorProto {
        name: Some("huge.proto".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: vec![message],
        ..Default::default()
    };
    Schema::from_descriptor_set(&FileDescriptorSet { file: vec![file] }.encode_to_vec(), "Huge")
        .unwrap()
}

/// The duration is printed and not asserted, because tests have no time limits here. See it with
/// `--nocapture`; only a release build is meaningful.
#[test]
fn types_as_large_as_they_may_be_are_compared() {
    let net = Net::new("types_huge");
    let (a, b) = (net.node("a"), net.node("b"));
    let (ours, theirs) = (huge("a"), huge("b"));
    let publisher = sends(&a, "/huge", &ours);
    let began = Instant::now();
    // All fields are renamed: compatible, with one difference per field.
    let mut subscriber = hears(&b, "/huge", &theirs);
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    eprintln!("matched types of {} fields in {:?}", limits::MAX_SCHEMA_FIELDS, began.elapsed());
    let compared = net.inspect().compare_types("/huge");
    assert!(compared.len() == 1 && compared[0].compatible && !compared[0].changes.is_empty());
}

/// A node with a thousand publishers of a thousand types, few of which are valid: each is reported once, and
/// an honest node is matched beside them.
#[test]
fn a_thousand_types_of_one_node() {
    const TYPES: usize = 1000;
    let net = Net::new("types_thousand");
    let (peer, victim, honest) = (net.node("peer"), net.node("victim"), net.node("honest"));
    let level = level();
    let mut subscriber = hears(&victim, "/up", &level);
    let (reported, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (refused, matched) = (reported.clone(), received.clone());
    subscriber
        .on_match(move |event| {
            let count = if matches!(event, MatchEvent::Matched(_)) { &matched } else { &refused };
            count.fetch_add(1, Ordering::Relaxed);
        })
        .detach();
    let mut publishers = Vec::new();
    for n in 0..TYPES {
        let schema = schema_of("Level", &format!("float volt{n} = 1;"));
        if !n.is_multiple_of(10) {
            // Its file is written once, and later endpoints refer to it.
            drop(sends(&peer, "/aside", &schema));
            let path = type_file(&net, "peer", &schema);
            let right = std::fs::read(&path).unwrap();
            put(&path, CASES[n % CASES.len()].1, &right);
        }
        publishers.push(sends(&peer, "/up", &schema));
    }
    let mut well = sends(&honest, "/up", &level);
    well.wait_for_subscribers_timeout(1, LONG).unwrap();
    eventually("each is reported", || reported.load(Ordering::Relaxed) >= TYPES);
    well.send(&Dynamic::new(&level)).unwrap();
    // Some of the notifications must arrive first.
    eventually("the honest publisher's message arrives", || {
        subscriber.try_recv().is_ok_and(|got| got.is_some_and(|got| got.publisher() == well.id()))
    });
    let counted = || [&reported, &received].map(|count| count.load(Ordering::Relaxed));
    eventually("its match is reported", || counted()[1] == 1);
    assert_eq!(counted(), [TYPES, 1]);
    // A tool does not read them all, and reports so.
    let snapshot = net.inspect();
    // Including that of /log, which has a line about the incompatible subscriber.
    assert_eq!(snapshot.publishers.len(), TYPES + 2);
    let unread =
        snapshot.unread.iter().filter(|why| why.contains("bytes of types in one inspection"));
    assert!(unread.count() > TYPES / 2);
    let compared = snapshot.compare_types("/up");
    assert!(compared.iter().all(|c| c.compared || (c.compatible && c.changes.is_empty())));
    assert!(compared.iter().any(|c| !c.compared));
    let of_topic = net.domain().topic_snapshot("/aside").unwrap();
    assert!(of_topic.problems.is_empty(), "{:?}", of_topic.problems);
}
