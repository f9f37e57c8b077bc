//! `SubscriberBuilder::on_any`: each topic that matches a pattern, as bytes with their type.

use crate::common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::{AnySubscription, Error, OnFull, Result, Sample, SubscriberBuilder};

#[derive(Clone, Copy, Debug, rnet::Plain)]
#[repr(C)]
struct Level {
    volt: f64,
}

/// Topic, node, type and bytes of a message, or its error.
type ReceivedMessage = Result<(String, String, String, Vec<u8>)>;

fn to_received(message: Result<Sample<'_, [u8]>>) -> ReceivedMessage {
    let said = |s: &Sample<'_, [u8]>| {
        let (topic, node) = (s.topic().to_owned(), s.node().to_owned());
        (topic, node, s.type_desc().to_string(), s.bytes().to_vec())
    };
    message.map(|sample| said(&sample))
}

fn listen(
    subscriber: SubscriberBuilder<[u8]>,
) -> (AnySubscription, mpsc::Receiver<ReceivedMessage>) {
    let (tell, receiver) = mpsc::channel();
    let tell = Mutex::new(tell);
    let any = subscriber.on_any(move |message| {
        let _ = tell.lock().unwrap().send(to_received(message));
    });
    (any.unwrap(), receiver)
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(_role) = role() else { return };
    let net = Net::of_parent();
    let node = net.node("victim");
    let mut publisher = node.publisher::<[u8]>("/robot/pose").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"alive").unwrap();
    tell("sent");
    drop(common::orders().recv());
}

#[test]
fn matching_topics_are_received_with_their_types() {
    let net = Net::new("subscribe any");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut old = a.publisher::<[u8]>("/cam/left/raw").open().unwrap();
    let mut other = a.publisher::<[u8]>("/cam/raw").open().unwrap();
    let (any, receiver) = listen(b.subscriber("cam/*/raw"));
    assert_eq!(any.pattern(), "/cam/*/raw");
    old.wait_for_subscribers_timeout(1, LONG).unwrap();
    old.send(b"old").unwrap();
    let next = || receiver.recv_timeout(LONG).unwrap().unwrap();
    let is = |topic: &str, kind: &str, bytes: &[u8]| {
        (topic.to_owned(), "/a".to_owned(), kind.to_owned(), bytes.to_vec())
    };
    assert_eq!(next(), is("/cam/left/raw", "raw bytes", b"old"));
    // A topic on the other lane with another kind of type, and a second publisher of a known topic.
    let mut urgent = a.publisher::<Level>("/cam/right/raw").urgent().open().unwrap();
    urgent.wait_for_subscribers_timeout(1, LONG).unwrap();
    urgent.send(&Level { volt: 1.5 }).unwrap();
    let (topic, _, kind, bytes) = next();
    assert_eq!((topic.as_str(), bytes.as_slice()), ("/cam/right/raw", &1.5_f64.to_le_bytes()[..]));
    assert!(kind.contains("Level"), "{kind}");
    let mut second = b.publisher::<[u8]>("/cam/left/raw").open().unwrap();
    second.wait_for_subscribers_timeout(1, LONG).unwrap();
    second.send(b"second").unwrap();
    assert_eq!(next().1, "/b");
    assert_eq!(any.topics(), ["/cam/left/raw", "/cam/right/raw"]);
    let received: u64 = any.stats().values().flatten().map(|stats| stats.received).sum();
    assert_eq!(received, 3);
    other.send(b"outside the pattern").unwrap();
    assert_eq!(other.subscriber_count(), 0);
    drop(any);
    eventually("the subscriptions end", || old.subscriber_count() == 0);
    assert!(receiver.recv_timeout(LONG).is_err(), "the callback is gone");
}

#[test]
fn a_protobuf_message_comes_with_its_schema() {
    let net = Net::new("subscribe any schema");
    let (a, b) = (net.node("a"), net.node("b"));
    let (tell, receiver) = mpsc::channel();
    let tell = Mutex::new(tell);
    let _any = b
        .subscriber::<[u8]>("/**")
        .on_any(move |message| {
            let sample = message.unwrap();
            let schema = sample.schema().unwrap().unwrap();
            let shown = rnet::schema::Dynamic::decode(&schema, sample.bytes()).unwrap();
            tell.lock().unwrap().send((schema.name().to_owned(), format!("{shown:?}"))).unwrap();
        })
        .unwrap();
    let mut joints = a.publisher::<rnet::msgs::JointState>("/joints").open().unwrap();
    joints.wait_for_subscribers_timeout(1, LONG).unwrap();
    joints
        .send(&rnet::msgs::JointState { names: vec!["elbow".to_owned()], ..Default::default() })
        .unwrap();
    let (name, shown) = receiver.recv_timeout(LONG).unwrap();
    assert!(name.ends_with("JointState") && shown.contains("elbow"), "{name} {shown}");
}

#[test]
fn invalid_options_are_refused_and_incompatible_topics_reported() {
    let net = Net::new("subscribe any errors");
    let (a, b) = (net.node("a"), net.node("b"));
    for pattern in ["", "/a*", "/a b", "/a/"] {
        let refused = b.subscriber::<[u8]>(pattern).on_any(|_| ()).unwrap_err();
        assert!(matches!(&refused, Error::BadName { name, .. } if name == pattern), "{refused}");
    }
    assert!(matches!(
        b.subscriber::<[u8]>("/**").keep_last(0).on_any(|_| ()),
        Err(Error::BadQos { .. })
    ));
    let (_any, receiver) = listen(b.subscriber("/**").reliable());
    let _best_effort = a.publisher::<[u8]>("/plain").open().unwrap();
    // The publisher's node reports the mismatch on /log, which mismatches as well.
    let is_of_log = |received: &ReceivedMessage| matches!(received, Err(Error::IncompatibleQos { topic, .. }) if topic == "/log");
    let received = std::iter::repeat_with(|| receiver.recv_timeout(LONG).unwrap());
    let mut received = received.filter(|received| !is_of_log(received));
    let error = received.next().unwrap().unwrap_err();
    assert!(matches!(&error, Error::IncompatibleQos { topic, .. } if topic == "/plain"), "{error}");
    let mut fits = a.publisher::<[u8]>("/fits").reliable(OnFull::Refuse).open().unwrap();
    fits.wait_for_subscribers_timeout(1, LONG).unwrap();
    fits.send(b"fits").unwrap();
    assert_eq!(received.next().unwrap().unwrap().3, b"fits");
}

#[test]
fn topic_continues_after_its_publisher_died() {
    let net = Net::new("subscribe any death");
    let (any, receiver) = listen(net.node("b").subscriber("/robot/**"));
    for _ in 0..2 {
        let mut child = Child::spawn(&net, "sends");
        child.expect("sent");
        assert_eq!(receiver.recv_timeout(LONG).unwrap().unwrap().3, b"alive");
        child.kill();
        let error = receiver.recv_timeout(LONG).unwrap().unwrap_err();
        assert!(matches!(error, Error::PeerLost { .. }), "{error}");
    }
    assert_eq!(any.topics(), ["/robot/pose"]);
}

#[test]
fn many_topics_lose_nothing() {
    let net = Net::new("subscribe any many");
    let (sender, receiver) = (net.node("sender"), net.node("receiver"));
    let (any, inbox) = listen(receiver.subscriber("/**").reliable());
    let mut publishers: Vec<_> = (0..100)
        .map(|i| {
            sender.publisher::<[u8]>(&format!("/t{i}")).reliable(OnFull::Wait(LONG)).open().unwrap()
        })
        .collect();
    for publisher in &mut publishers {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
    for number in 0..10_u8 {
        publishers.iter_mut().for_each(|publisher| publisher.send(&[number]).unwrap());
    }
    let mut got: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for _ in 0..1000 {
        let (topic, _, _, bytes) = inbox.recv_timeout(LONG).unwrap().unwrap();
        got.entry(topic).or_default().extend(bytes);
    }
    assert_eq!(got.len(), 100);
    assert!(got.values().all(|numbers| *numbers == (0..10).collect::<Vec<u8>>()), "{got:?}");
    assert_eq!(any.topics().len(), 100);
}

#[test]
fn subscription_can_be_dropped_in_its_callback() {
    let net = Net::new("subscribe any dropped");
    let (a, b) = (net.node("a"), net.node("b"));
    let held: Arc<Mutex<Option<AnySubscription>>> = Arc::default();
    let (own, captured) = (held.clone(), Arc::new(()));
    let gone = Arc::downgrade(&captured);
    let (tell, receiver) = mpsc::channel();
    let tell = Mutex::new(tell);
    let mut slot = held.lock().unwrap();
    let any = b.subscriber::<[u8]>("/**").on_any(move |message| {
        let _captured = &captured;
        drop(own.lock().unwrap().take());
        tell.lock().unwrap().send(to_received(message)).unwrap();
    });
    *slot = Some(any.unwrap());
    drop(slot);
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"one").unwrap();
    assert_eq!(receiver.recv_timeout(LONG).unwrap().unwrap().3, b"one");
    eventually("the callback's captures are dropped", || gone.upgrade().is_none());
    eventually("the subscription ends", || publisher.subscriber_count() == 0);
    assert!(receiver.recv_timeout(LONG).is_err());
}
