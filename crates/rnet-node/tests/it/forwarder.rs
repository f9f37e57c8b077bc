//! Subscriptions of a link between hosts: forwarders, which are not counted, and passive ones, which receive
//! nothing.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::bridge::{BridgeSubscriber, BridgeSubscriberBuilder, ProxySubscription};
use rnet::{
    EndpointEvent, Error, MatchEvent, Node, OnFull, Proxy, Publisher, Subscriber, SubscriberBuilder,
};

fn map() -> Proxy {
    Proxy::new("robot2", "/map", 9).unwrap()
}

fn forwarder(
    link: &Node,
    publisher: &Publisher<[u8]>,
    asks: impl FnOnce(SubscriberBuilder<[u8]>) -> SubscriberBuilder<[u8]>,
    from: Option<u64>,
) -> Subscriber<[u8]> {
    let forwarder = asks(link.subscriber(publisher.topic())).proxy(map(), 1);
    let mut forwarder = forwarder.forwarder(publisher.id(), from).open().unwrap();
    forwarder.wait_for_publishers_timeout(1, LONG).unwrap();
    forwarder
}

fn passive(link: &Node, topic: &str, ends: u32) -> Subscriber<[u8]> {
    link.subscriber(topic).keep_all().proxy(map(), ends).passive().open().unwrap()
}

/// Small or large, depending on its number.
fn message(seq: u64) -> Vec<u8> {
    vec![seq as u8; if seq.is_multiple_of(3) { 20_000 } else { 100 }]
}

/// Expects the messages of a number range, and no others.
fn expect(subscriber: &mut Subscriber<[u8]>, from: u64, to: u64) {
    for seq in from..to {
        let sample = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!(sample.seq(), seq);
        assert_eq!(&*sample, message(seq));
    }
    assert!(subscriber.try_recv().unwrap().is_none());
}

type Asks = fn(SubscriberBuilder<[u8]>) -> SubscriberBuilder<[u8]>;

fn keep_all(subscriber: SubscriberBuilder<[u8]>) -> SubscriberBuilder<[u8]> {
    subscriber.keep_all()
}

fn reliable(subscriber: SubscriberBuilder<[u8]>) -> SubscriberBuilder<[u8]> {
    subscriber.reliable()
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let link = net.node("link");
    if let Some(publisher) = role.strip_prefix("link of ") {
        let id = publisher.parse().unwrap();
        let mut forwarder = link
            .subscriber::<[u8]>("/t")
            .reliable()
            .proxy(map(), 1)
            .forwarder(id, Some(0))
            .open()
            .unwrap();
        let passive = passive(&link, "/t", 3);
        passive.admit_to(id).unwrap();
        forwarder.wait_for_publishers_timeout(1, LONG).unwrap();
        expect(&mut forwarder, 0, 3);
        tell("reads");
        drop(common::orders().recv());
        return;
    }
    let mut publisher = link.publisher::<[u8]>("/t").open().unwrap();
    (0..10).for_each(|seq| publisher.send(&message(seq)).unwrap());
    tell(&publisher.id().to_string());
    drop(common::orders().recv());
}

#[test]
fn a_forwarder_begins_with_the_message_that_it_names() {
    let net = Net::new("forwarder from");
    let (node, link) = (net.node("node"), net.node("link"));
    for is_reliable in [false, true] {
        let publisher = node.publisher::<[u8]>("/t").large_depth(20);
        let (publisher, asks): (_, Asks) = match is_reliable {
            true => (publisher.reliable(OnFull::Refuse), reliable),
            false => (publisher, keep_all),
        };
        let mut publisher = publisher.open().unwrap();
        // Large messages that each reader has read are discarded at once.
        let behind = asks(node.subscriber("/t")).open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        (0..20).for_each(|seq| publisher.send(&message(seq)).unwrap());
        // A number of the future, however far ahead, selects the next message.
        let cases = [0, 1, 9, 19, 20, 21, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX].map(Some);
        let mut forwarders: Vec<_> = cases
            .into_iter()
            .chain([None])
            .map(|from| {
                let begin = from.unwrap_or(20).min(20);
                (forwarder(&link, &publisher, asks, from), begin)
            })
            .collect();
        assert_eq!(publisher.subscriber_count(), 1);
        drop(behind);
        (20..25).for_each(|seq| publisher.send(&message(seq)).unwrap());
        for (forwarder, begin) in &mut forwarders {
            expect(forwarder, *begin, 25);
            assert_eq!(forwarder.lost().total(), 0);
        }
    }
}

#[test]
fn forwarder_begins_with_the_oldest_message_if_its_own_was_discarded() {
    let net = Net::new("forwarder oldest");
    let (node, link) = (net.node("node"), net.node("link"));
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(16 << 10)
        .open()
        .unwrap();
    (0..1000).for_each(|_| publisher.send(&[7; 100]).unwrap());
    for asks in [keep_all as Asks, reliable] {
        let mut forwarder = forwarder(&link, &publisher, asks, Some(3));
        let first = forwarder.recv_timeout(LONG).unwrap().seq();
        // 120 bytes each; a part of the log may have been reclaimed in advance.
        assert!((1000 - (16 << 10) / 120..900).contains(&first), "{first}");
        for seq in first + 1..1000 {
            assert_eq!(forwarder.recv_timeout(LONG).unwrap().seq(), seq);
        }
        assert_eq!(forwarder.lost().total(), 0);
    }
}

/// It begins while the publisher sends as fast as it can and wraps around its log: a reliable forwarder
/// misses nothing after its first message.
#[test]
fn forwarder_begins_while_messages_flow() {
    let net = Net::new("forwarder flight");
    let (node, link) = (net.node("node"), net.node("link"));
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(LONG))
        .log_len_bytes(16 << 10)
        .open()
        .unwrap();
    let id = publisher.id();
    let (stop, stopped) = mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            publisher.send(&[7; 500]).unwrap();
        }
    });
    for _ in 0..50 {
        let forwarder = link.subscriber::<[u8]>("/t").reliable();
        let mut forwarder = forwarder.forwarder(id, Some(1)).open().unwrap();
        let first = forwarder.recv_timeout(LONG).unwrap().seq();
        for seq in first + 1..first + 200 {
            assert_eq!(forwarder.recv_timeout(LONG).unwrap().seq(), seq);
        }
    }
    drop(stop);
    sender.join().unwrap();
}

#[test]
fn forwarder_is_not_counted_as_a_subscription() {
    let net = Net::new("forwarder hidden");
    let (node, link) = (net.node("node"), net.node("link"));
    let (tell, events) = mpsc::channel();
    let _watch = node.on_endpoint(move |event| tell.send(event.clone()).unwrap()).unwrap();
    let mut publisher =
        node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).transient_local(3).open().unwrap();
    let mut other =
        node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).transient_local(3).open().unwrap();
    let (tell, matches) = mpsc::channel();
    publisher.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    (0..9).for_each(|seq| publisher.send(&message(seq)).unwrap());
    other.send(b"of another").unwrap();
    let mut forwarder =
        forwarder(&link, &publisher, |subscriber| subscriber.reliable().transient_local(), None);
    expect(&mut forwarder, 6, 9);
    assert_eq!((publisher.subscriber_count(), publisher.subscribers().len()), (0, 0));
    assert!(publisher.wait_for_subscribers_timeout(1, Duration::ZERO).is_err());
    let snapshot = net.inspect();
    assert!(snapshot.subscriptions.is_empty() && snapshot.remote.is_empty());
    assert!(snapshot.nodes.iter().all(|node| node.subscribes.is_empty()));
    assert_eq!(snapshot.subscription_count("/t"), 0);
    assert!(snapshot.publishers.iter().all(|p| p.readers == 0));
    let [shown] = &snapshot.forwarders[..] else { panic!("{snapshot:?}") };
    assert_eq!((shown.node.as_str(), shown.forwards), ("@robot2/map", Some(publisher.id())));
    // An incompatible type or QoS of a forwarder concerns the link, not users.
    let bad = link.subscriber::<[u8]>("/t").deadline(Duration::from_secs(1));
    let mut bad = bad.forwarder(publisher.id(), None).open().unwrap();
    assert!(matches!(bad.recv_timeout(LONG), Err(Error::IncompatibleQos { .. })));
    drop((forwarder, bad));
    let mark = node.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    assert!(publisher.incompatible().is_empty());
    let MatchEvent::Matched(first) = matches.recv_timeout(LONG).unwrap() else { panic!() };
    assert_eq!(first.id, mark.id(), "the first reported match");
    let reported = [(); 3].map(|()| events.recv_timeout(LONG).unwrap());
    let ids = reported.map(|event| match event {
        EndpointEvent::Opened(endpoint) => endpoint.id,
        other => panic!("{other:?}"),
    });
    assert_eq!(ids, [publisher.id(), other.id(), mark.id()]);
}

#[test]
fn reliable_forwarder_delays_and_is_evicted_under_its_proxy_name() {
    let net = Net::new("forwarder detached");
    let (node, link) = (net.node("node"), net.node("link"));
    let log_len = 16 << 10;
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(log_len)
        .open()
        .unwrap();
    let mut reader = forwarder(&link, &publisher, reliable, Some(0));
    let error = (0..1000).find_map(|_| publisher.send(&[7; 100]).err()).unwrap();
    assert!(matches!(&error, Error::Full { reader_node, .. } if &**reader_node == "@robot2/map"));
    assert_eq!(reader.recv_timeout(LONG).unwrap().seq(), 0);
    drop((reader, publisher));
    let stall = OnFull::Detach { stall: Duration::from_millis(10) };
    let mut publisher =
        node.publisher::<[u8]>("/t").reliable(stall).log_len_bytes(log_len).open().unwrap();
    let mut reader = forwarder(&link, &publisher, reliable, Some(0));
    (0..1000).for_each(|_| publisher.send(&[7; 100]).unwrap());
    let (_, error) = common::until_error(&mut reader);
    assert!(matches!(error, Error::Detached { .. }), "{error}");
    assert_eq!(net.inspect().publishers[0].detached, 1);
    // It asks again by itself, and is served from then on.
    reader.wait_for_publishers_timeout(1, LONG).unwrap();
    let sent = publisher.sent();
    publisher.send(b"more").unwrap();
    let sample = reader.recv_timeout(LONG).unwrap();
    assert_eq!((sample.seq(), &*sample), (sent, &b"more"[..]));
}

#[test]
fn forwarder_receives_from_a_publisher_in_another_process() {
    let net = Net::new("forwarder process");
    let here = net.node("here");
    let mut child = Child::spawn(&net, "publisher");
    let id = child.hear().parse().unwrap();
    let mut forwarder =
        here.subscriber::<[u8]>("/t").keep_all().forwarder(id, Some(8)).open().unwrap();
    for seq in [8, 9] {
        assert_eq!(&*forwarder.recv_timeout(LONG).unwrap(), message(seq));
    }
    child.kill();
    assert!(matches!(forwarder.recv_timeout(LONG), Err(Error::PeerLost { .. })));
}

#[test]
fn killed_link_leaves_nothing_behind() {
    let net = Net::new("link killed");
    let node = net.node("node");
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(16 << 10)
        .large_depth(9)
        .open()
        .unwrap();
    for _ in 0..3 {
        let sent = publisher.sent();
        if sent == 0 {
            (0..3).for_each(|seq| publisher.send(&message(seq)).unwrap());
        }
        let mut child = Child::spawn(&net, &format!("link of {}", publisher.id()));
        child.expect("reads");
        publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
        assert_eq!(publisher.subscriber_count(), 3);
        child.kill();
        eventually("it is no longer counted", || publisher.subscriber_count() == 0);
        let snapshot = net.inspect();
        assert!(snapshot.forwarders.is_empty() && snapshot.subscriptions.is_empty());
        assert!(snapshot.publishers[0].admitted.is_empty());
    }
    // No reader blocks the log.
    (0..1000).for_each(|_| publisher.send(&[7; 100]).unwrap());
}

#[test]
fn many_forwarders_follow_one_publisher() {
    let net = Net::new("many forwarders");
    let (node, link) = (net.node("node"), net.node("link"));
    let mut publisher =
        node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).transient_local(30).open().unwrap();
    (0..30).for_each(|seq| publisher.send(&message(seq)).unwrap());
    let mut forwarders: Vec<_> =
        (0..64).map(|n| forwarder(&link, &publisher, reliable, Some(n % 30))).collect();
    (30..40).for_each(|seq| publisher.send(&message(seq)).unwrap());
    for (n, forwarder) in (0..).zip(&mut forwarders) {
        expect(forwarder, n % 30, 40);
    }
    assert_eq!(publisher.subscriber_count(), 0);
}

#[test]
fn passive_subscription_is_counted_by_publishers_that_admit_it() {
    let net = Net::new("passive counts");
    let (node, link) = (net.node("node"), net.node("link"));
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let other = node.publisher::<[u8]>("/t").open().unwrap();
    let (tell, events) = mpsc::channel();
    publisher.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let next = || events.recv_timeout(LONG).unwrap();
    let mut passive = passive(&link, "/t", 3);
    // Both have processed it once a later subscription is matched.
    let own = node.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    other.wait_for_subscribers_timeout(1, LONG).unwrap();
    assert_eq!((publisher.subscriber_count(), other.subscriber_count()), (1, 1));
    drop(own);
    eventually("the subscription is gone", || publisher.subscriber_count() == 0);
    assert!(matches!(next(), MatchEvent::Matched(_)) && matches!(next(), MatchEvent::Unmatched(_)));
    for _ in 0..3 {
        passive.admit_to(publisher.id()).unwrap();
        passive.admit_to(publisher.id()).unwrap();
        publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
        let MatchEvent::Matched(peer) = next() else { panic!("not matched") };
        assert_eq!((peer.id, peer.node.as_str()), (passive.id(), "@robot2/map"));
        assert_eq!((publisher.subscriber_count(), other.subscriber_count()), (3, 0));
        passive.set_endpoint_count(2).unwrap();
        eventually("it counts as two", || publisher.subscriber_count() == 2);
        assert!(matches!(next(), MatchEvent::Changed(_)));
        passive.set_endpoint_count(3).unwrap();
        eventually("it counts as three", || publisher.subscriber_count() == 3);
        assert!(matches!(next(), MatchEvent::Changed(_)));
        (0..100).for_each(|seq| publisher.send(&message(seq)).unwrap());
        assert!(passive.try_recv().unwrap().is_none());
        let snapshot = net.inspect();
        assert_eq!(snapshot.subscriptions[0].channels[0].behind.messages, 0);
        assert_eq!(snapshot.subscription_count("/t"), 3);
        passive.release_from(publisher.id()).unwrap();
        passive.release_from(publisher.id()).unwrap();
        eventually("the subscription is released", || publisher.subscriber_count() == 0);
        assert!(matches!(next(), MatchEvent::Unmatched(left) if left == peer));
    }
    passive.admit_to(publisher.id()).unwrap();
    publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
    drop(passive);
    eventually("the subscription is gone", || publisher.subscriber_count() == 0);
    let ordinary = link.subscriber::<[u8]>("/t").open().unwrap();
    assert!(matches!(ordinary.admit_to(publisher.id()), Err(Error::BadValue { .. })));
}

#[test]
fn a_passive_subscription_waits_for_the_publisher_that_it_is_to_be_admitted_to() {
    let net = Net::new("passive before");
    let (node, link) = (net.node("node"), net.node("link"));
    let first = node.publisher::<[u8]>("/t").open().unwrap();
    let passive = passive(&link, "/t", 1);
    // Ids of a node are consecutive, even within one process.
    passive.admit_to(first.id() + 1).unwrap();
    passive.admit_to(u64::MAX).unwrap();
    let second = node.publisher::<[u8]>("/t").open().unwrap();
    assert_eq!(second.id(), first.id() + 1);
    second.wait_for_subscribers_timeout(1, LONG).unwrap();
    assert_eq!(first.subscriber_count(), 0);
    // A publisher of its own node as well.
    let own = link.publisher::<[u8]>("/t").open().unwrap();
    passive.admit_to(own.id()).unwrap();
    own.wait_for_subscribers_timeout(1, LONG).unwrap();
    passive.release_from(own.id()).unwrap();
    assert_eq!(own.subscriber_count(), 0);
}

#[test]
fn incompatible_passive_subscription_is_reported_to_both_sides() {
    let net = Net::new("passive misfit");
    let (node, link) = (net.node("node"), net.node("link"));
    let publisher = node.publisher::<rnet::msgs::JointState>("/joints").open().unwrap();
    let level =
        rnet::schema::compile_text("l.proto", "syntax=\"proto3\"; message Level { double v = 1; }");
    let level = level.unwrap().schema("Level").unwrap();
    let mut bad =
        link.subscriber::<[u8]>("/joints").proxy(map(), 1).passive().schema(&level).open().unwrap();
    bad.admit_to(publisher.id()).unwrap();
    let error = publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err();
    let Error::IncompatibleType { subscriber_node, .. } = &error else { panic!("{error}") };
    assert_eq!(subscriber_node, "@robot2/map");
    let error = bad.recv_timeout(LONG).unwrap_err();
    assert!(matches!(error, Error::IncompatibleType { .. }), "{error}");
    let mut bad =
        link.subscriber::<[u8]>("/joints").reliable().proxy(map(), 1).passive().open().unwrap();
    let error = publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err();
    assert!(matches!(error, Error::IncompatibleQos { .. }), "{error}");
    let error = bad.recv_timeout(LONG).unwrap_err();
    assert!(matches!(error, Error::IncompatibleQos { .. }), "{error}");
    assert_eq!(publisher.subscriber_count(), 0);
}

/// A passive subscription requests everything and reads nothing: a publisher that would wait for readers
/// sends as if it did not exist, and keeps neither its log nor its large messages.
#[test]
fn passive_subscription_delays_no_publisher() {
    let net = Net::new("passive holds");
    let (node, link) = (net.node("node"), net.node("link"));
    let publisher = node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).transient_local(2);
    let mut publisher = publisher.pool_limit_bytes(1 << 20).log_len_bytes(1 << 24).open().unwrap();
    let passive = link
        .subscriber::<[u8]>("/t")
        .reliable()
        .transient_local()
        .proxy(map(), 1)
        .passive()
        .open()
        .unwrap();
    passive.admit_to(publisher.id()).unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // More than the log and the pool can hold.
    (0..6000).for_each(|_| publisher.send(&[7; 4000]).unwrap());
    (0..100).for_each(|_| publisher.send(&[7; 100_000]).unwrap());
    let snapshot = net.inspect();
    assert_eq!((snapshot.publishers[0].full, snapshot.publishers[0].refused), (0, 0));
    assert_eq!(snapshot.publishers[0].readers, 1);
}
