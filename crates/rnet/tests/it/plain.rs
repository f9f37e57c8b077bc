//! Plain types: the struct is the message, and both sides must agree on its layout.

use crate::common;

use common::{LONG, Net};
use rnet::{Error, Field, FieldType, Plain, PlainType, Prim, TypeDesc};

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[repr(C)]
struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[plain(name = "demo.Pose")]
#[repr(C)]
struct Pose {
    stamp_ns: i64,
    at: Vector,
    q: [f32; 4],
}

mod other {
    /// A field at another offset.
    #[derive(Clone, Copy, rnet::Plain)]
    #[plain(name = "demo.Pose")]
    #[repr(C)]
    pub struct Moved {
        pub at: super::Vector,
        pub stamp_ns: i64,
        pub q: [f32; 4],
    }

    /// Another field type.
    #[derive(Clone, Copy, rnet::Plain)]
    #[plain(name = "demo.Pose")]
    #[repr(C)]
    pub struct Retyped {
        pub stamp_ns: u64,
        pub at: super::Vector,
        pub q: [f32; 4],
    }

    /// Another number of elements.
    #[derive(Clone, Copy, rnet::Plain)]
    #[plain(name = "demo.Pose")]
    #[repr(C)]
    pub struct Longer {
        pub stamp_ns: i64,
        pub at: super::Vector,
        pub q: [f32; 6],
    }

    /// Another name.
    #[derive(Clone, Copy, rnet::Plain)]
    #[repr(C)]
    pub struct Pose2 {
        pub stamp_ns: i64,
        pub at: super::Vector,
        pub q: [f32; 4],
    }
}

fn pose(stamp_ns: i64) -> Pose {
    Pose { stamp_ns, at: Vector { x: 1.0, y: -2.0, z: 0.5 }, q: [0.0, 0.0, 0.0, 1.0] }
}

#[test]
fn struct_arrives_unchanged() {
    let net = Net::new("plain");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<Pose>("/pose").open().unwrap();
    let mut subscriber = b.subscriber::<Pose>("/pose").open().unwrap();
    let mut raw = b.subscriber::<[u8]>("/pose").open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    for i in 0..100 {
        publisher.send(&pose(i)).unwrap();
        let sample = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!(*sample, pose(i));
        assert_eq!(sample.at.y, -2.0);
        let bytes = raw.recv_timeout(LONG).unwrap();
        assert_eq!(bytes.len(), size_of::<Pose>());
        assert_eq!(bytes[..8], i.to_le_bytes());
    }
    let kept =
        { publisher.send(&pose(7)).map(|()| subscriber.latest_timeout(LONG).unwrap()).unwrap() };
    drop((publisher, subscriber));
    assert_eq!(*kept, pose(7));
}

/// Both sides report the mismatch in each form of waiting, and the error names the field.
fn mismatch<T: rnet::Message>(words: &[&str]) {
    let net = Net::new("mismatch");
    let (a, b) = (net.node("a"), net.node("b"));
    let publisher = a.publisher::<Pose>("/pose").open().unwrap();
    let mut subscriber = b.subscriber::<T>("/pose").open().unwrap();
    let received = subscriber.recv_timeout(LONG).map(drop).unwrap_err();
    let waited = publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err();
    let mut second = b.subscriber::<T>("/pose").open().unwrap();
    let found = second.wait_for_publishers_timeout(1, LONG).unwrap_err();
    let again = publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err();
    let listed = publisher.incompatible().remove(0);
    for error in [received, waited, found, again, listed] {
        let Error::IncompatibleType { topic, publisher_node, subscriber_node, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!((&**topic, &**publisher_node, &**subscriber_node), ("/pose", "/a", "/b"));
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
    }
    assert_eq!((publisher.subscriber_count(), subscriber.publisher_count()), (0, 0));
    // The error occurs once; a compatible subscriber is served.
    let fits = b.subscriber::<Pose>("/pose").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    drop(fits);
}

/// [`Pose`], one version later: a new last field, and a renamed one.
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[plain(name = "demo.Pose")]
#[repr(C)]
struct Grown {
    stamp_ns: i64,
    position: Vector,
    q: [f32; 4],
    speed: [f64; 3],
}

#[test]
fn old_and_new_nodes_communicate_both_ways() {
    let net = Net::new("grown");
    let (old, new) = (net.node("old"), net.node("new"));
    let mut old_sends = old.publisher::<Pose>("/pose").open().unwrap();
    let mut new_sends = new.publisher::<Grown>("/pose").open().unwrap();
    let mut old_reads = old.subscriber::<Pose>("/pose").open().unwrap();
    let mut new_reads = new.subscriber::<Grown>("/pose").open().unwrap();
    old_sends.wait_for_subscribers_timeout(2, LONG).unwrap();
    new_sends.wait_for_subscribers_timeout(2, LONG).unwrap();
    for i in 0..10 {
        // Alternating, so that zeros are neither left over from before nor read from the following bytes.
        let Pose { stamp_ns, at, q } = pose(i);
        let speed = [i as f64 + 0.5; 3];
        new_sends.send(&Grown { stamp_ns, position: at, q, speed }).unwrap();
        assert_eq!(*old_reads.recv_timeout(LONG).unwrap(), pose(i));
        let grown = new_reads.recv_timeout(LONG).unwrap();
        assert_eq!((grown.stamp_ns, grown.position, grown.speed), (i, at, speed));
        old_sends.send(&pose(-i)).unwrap();
        assert_eq!(*old_reads.recv_timeout(LONG).unwrap(), pose(-i));
        let kept = new_reads.recv_timeout(LONG).unwrap().into_owned();
        assert_eq!(*kept, Grown { stamp_ns: -i, position: at, q, speed: [0.0; 3] });
        assert_eq!(kept.bytes().len(), size_of::<Pose>());
    }
    let pairs = net.inspect().compare_types("/pose");
    assert!(pairs.iter().all(|pair| pair.compatible), "{pairs:#?}");
    let changes = |from: &str, to: &str| -> Vec<String> {
        let ours = |p: &&rnet::inspect::TypeComparison| {
            p.publisher_node.ends_with(from) && p.subscriber_node.ends_with(to)
        };
        let pair = pairs.iter().find(ours).unwrap();
        pair.changes.iter().map(|change| change.to_string()).collect()
    };
    assert_eq!(
        changes("old", "new"),
        [
            "plain.renamed `at`: publisher has struct Vector (24 bytes) at 8, subscriber has `position`, struct Vector (24 bytes) at 8",
            "plain.appended_by_subscriber `speed`: publisher has no such field, subscriber has f64[3] at 48",
        ]
    );
    assert_eq!(changes("new", "old").len(), 2);
    assert!(changes("old", "old").is_empty());
}

#[test]
fn different_field_offset_is_named() {
    mismatch::<other::Moved>(&["`stamp_ns`", "i64 at 0", "i64 at 24"]);
}

#[test]
fn different_field_type_is_named() {
    mismatch::<other::Retyped>(&["`stamp_ns`", "i64 at 0", "u64 at 0"]);
}

#[test]
fn different_array_length_is_named() {
    mismatch::<other::Longer>(&["`q`", "f32[4] at 32", "f32[6] at 32"]);
}

#[test]
fn different_type_name_is_named() {
    mismatch::<other::Pose2>(&["demo.Pose", "Pose2"]);
}

#[test]
fn raw_bytes_do_not_match_a_struct() {
    let net = Net::new("raw to plain");
    let node = net.node("a");
    let publisher = node.publisher::<[u8]>("/pose").open().unwrap();
    let mut subscriber = node.subscriber::<Pose>("/pose").open().unwrap();
    let error = subscriber.recv_timeout(LONG).map(drop).unwrap_err();
    assert!(matches!(error, Error::IncompatibleType { .. }), "{error:?}");
    assert_eq!(publisher.incompatible(), [error]);
}

fn described() -> TypeDesc {
    let field = |name: &str, offset| Field {
        name: name.to_owned(),
        offset,
        ty: FieldType::Prim(Prim::F64),
    };
    let fields = vec![field("x", 0), field("y", 8), field("z", 16)];
    TypeDesc::Plain(PlainType {
        name: "Vector".to_owned(),
        size: 24,
        align: 8,
        tail: false,
        fields,
    })
}

/// As the bindings do: bytes with a description.
#[test]
fn described_bytes_match_a_derived_struct() {
    assert_eq!(described(), TypeDesc::Plain(Vector::plain_type()));
    let net = Net::new("described");
    let node = net.node("a");
    let kind = || rnet::MessageType::try_from(described()).unwrap();
    let mut publisher = node.publisher::<[u8]>("/v").message_type(kind()).open().unwrap();
    let mut derived = node.subscriber::<Vector>("/v").open().unwrap();
    let mut bytes = node.subscriber::<[u8]>("/v").message_type(kind()).open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    let message: Vec<u8> = [1.0_f64, 2.0, 3.0].iter().flat_map(|f| f.to_le_bytes()).collect();
    publisher.send(&message).unwrap();
    assert_eq!(*derived.recv_timeout(LONG).unwrap(), Vector { x: 1.0, y: 2.0, z: 3.0 });
    assert_eq!(*bytes.recv_timeout(LONG).unwrap(), message[..]);

    // Bytes of another length are invalid, however they are sent.
    let is_bad = |error: Error| {
        assert!(matches!(error, Error::BadValue { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("/v") && text.contains("23") && text.contains("24"), "{text}");
    };
    is_bad(publisher.send(&message[..23]).unwrap_err());
    is_bad(publisher.loan(23).map(drop).unwrap_err());
    let mut loan = publisher.loan(24).unwrap();
    loan.copy_from_slice(&message);
    loan.truncate(23);
    let (loan, error) = loan.send().unwrap_err();
    is_bad(error);
    drop(loan);
    let mut loan = publisher.loan_owned(24).unwrap();
    loan.truncate(23);
    let (loan, error) = publisher.send_loan(loan).unwrap_err();
    is_bad(error);
    publisher.drop_loan(loan);
    publisher.send(&message).unwrap();
    assert_eq!(derived.recv_timeout(LONG).unwrap().seq(), 1, "nothing was sent between");
}

/// `Pose` with an appended field.
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
#[plain(name = "demo.Pose")]
#[repr(C)]
struct GrownPose {
    stamp_ns: i64,
    at: Vector,
    q: [f32; 4],
    covariance: [f64; 3],
}

#[test]
fn a_struct_may_grow_at_its_end() {
    let net = Net::new("plain_grown");
    let (old, new) = (net.node("old"), net.node("new"));
    let mut old_sends =
        old.publisher::<Pose>("/pose").reliable(rnet::OnFull::Wait(LONG)).open().unwrap();
    let mut new_sends =
        new.publisher::<GrownPose>("/pose").reliable(rnet::OnFull::Wait(LONG)).open().unwrap();
    let mut old_hears = old.subscriber::<Pose>("/pose").open().unwrap();
    let mut new_hears = new.subscriber::<GrownPose>("/pose").open().unwrap();
    old_hears.wait_for_publishers_timeout(2, LONG).unwrap();
    new_hears.wait_for_publishers_timeout(2, LONG).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let called = new.subscriber::<GrownPose>("/pose").open().unwrap();
    let called = called.on(move |sample| sender.send(*sample).unwrap());
    old_sends.wait_for_subscribers_timeout(3, LONG).unwrap();
    new_sends.wait_for_subscribers_timeout(3, LONG).unwrap();

    let grown = |stamp_ns| {
        let Pose { at, q, .. } = pose(stamp_ns);
        GrownPose { stamp_ns, at, q, covariance: [0.1, 0.2, 0.3] }
    };
    // Alternating, so that the extension of one message does not leak into the next.
    for n in 0..5 {
        new_sends.send(&grown(n)).unwrap();
        let sample = old_hears.recv_timeout(LONG).unwrap();
        assert_eq!((*sample, sample.bytes().len()), (pose(n), size_of::<GrownPose>()));
        assert_eq!(*new_hears.recv_timeout(LONG).unwrap(), grown(n));
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), grown(n));

        old_sends.send(&pose(n)).unwrap();
        assert_eq!(*old_hears.recv_timeout(LONG).unwrap(), pose(n));
        let lengthened = GrownPose { covariance: [0.0; 3], ..grown(n) };
        let kept = new_hears.recv_timeout(LONG).unwrap().into_owned();
        assert_eq!((*kept, kept.bytes().len()), (lengthened, size_of::<Pose>()));
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), lengthened);
    }
    old_sends.send(&pose(7)).unwrap();
    assert_eq!(new_hears.latest_timeout(LONG).unwrap().covariance, [0.0; 3]);
    drop(called);

    let pairs = net.inspect().compare_types("/pose");
    assert!(pairs.iter().all(|pair| pair.compatible));
    let mut rules: Vec<&str> =
        pairs.iter().flat_map(|pair| &pair.changes).map(|change| change.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    assert_eq!(rules, ["plain.appended_by_publisher", "plain.appended_by_subscriber"]);
}
