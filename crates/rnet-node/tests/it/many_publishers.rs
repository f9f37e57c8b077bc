//! Publishers that come and go while a subscriber does not read.

use crate::common;

use std::collections::HashMap;

use common::{LONG, Net, eventually};
use rnet::limits::MAX_PUBLISHERS_PER_SUBSCRIPTION;
use rnet::{Error, LossCounts, Node, OnFull, Publisher, PublisherStats, Subscriber};

/// More than a subscriber can follow at once.
const PUBLISHERS: usize = 400;
/// Messages that each of them sends.
const EACH: u64 = 3;

fn publisher(node: &Node, reliable: bool) -> Publisher<[u8]> {
    let publisher = node.publisher("/t").log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES);
    let publisher = if reliable { publisher.reliable(OnFull::Refuse) } else { publisher };
    publisher.open().unwrap()
}

fn subscriber(node: &Node, reliable: bool) -> Subscriber<[u8]> {
    let subscriber = node.subscriber("/t");
    let subscriber = if reliable { subscriber.reliable() } else { subscriber };
    subscriber.open().unwrap()
}

/// Opens publishers one after the other; each is matched, sends and closes.
fn come_and_go(node: &Node, reliable: bool, count: usize) {
    for _ in 0..count {
        let mut publisher = publisher(node, reliable);
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        (0..EACH).for_each(|n| publisher.send(&n.to_le_bytes()).unwrap());
    }
}

fn sums(stats: &[PublisherStats]) -> (u64, u64, LossCounts) {
    let mut lost = LossCounts::default();
    stats.iter().for_each(|s| lost.add(&s.lost));
    let (received, skipped) = stats
        .iter()
        .map(|s| (s.received, s.skipped))
        .fold((0, 0), |(received, skipped), s| (received + s.0, skipped + s.1));
    (received, skipped, lost)
}

#[test]
fn idle_subscriber_accepts_successive_publishers() {
    for reliable in [false, true] {
        let net = Net::new(&format!("unread {reliable}"));
        let (a, b) = (net.node("a"), net.node("b"));
        let mut subscriber = subscriber(&b, reliable);
        come_and_go(&a, reliable, PUBLISHERS);
        eventually("the last publisher is gone", || {
            subscriber.stats().iter().filter(|s| s.connected).count() == 0
        });
        // Available messages are read in each publisher's order, and missing ones are counted.
        let mut next: HashMap<u64, u64> = HashMap::new();
        while let Some(sample) = subscriber.try_recv().unwrap() {
            let next = next.entry(sample.publisher()).or_default();
            assert_eq!((sample.seq(), &*sample), (*next, &next.to_le_bytes()[..]));
            *next += 1;
        }
        let (received, skipped, lost) = sums(&subscriber.stats());
        assert_eq!(received, MAX_PUBLISHERS_PER_SUBSCRIPTION as u64 * EACH);
        assert_eq!((skipped, lost.total()), (0, lost.restart), "reliable {reliable}: {lost:?}");
        assert_eq!(received + lost.restart, PUBLISHERS as u64 * EACH, "reliable {reliable}");
        // Tools see the same, and the next publisher is served like the first.
        let past = net.inspect().subscriptions.remove(0).past.unwrap();
        assert_eq!((past.received, past.lost), (received, lost));
        come_and_go(&a, reliable, 1);
        assert_eq!(subscriber.recv_timeout(LONG).unwrap().seq(), 0);
    }
}

/// Publishers without messages leave nothing to read, and only their statistics.
#[test]
fn closed_publisher_without_unread_messages_frees_its_slot() {
    let net = Net::new("silent");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut subscriber = subscriber(&b, false);
    for _ in 0..3 {
        publisher(&a, false).wait_for_subscribers_timeout(1, LONG).unwrap();
        eventually("the publisher is removed", || {
            net.inspect().subscriptions[0].channels.is_empty()
        });
    }
    assert!(subscriber.try_recv().unwrap().is_none());
    assert_eq!(subscriber.stats().len(), 3);
}

/// A subscriber that reads rarely has fewer live publishers than slots: the backlog belongs to closed ones.
#[test]
fn rarely_reading_subscriber_follows_all_live_publishers() {
    let net = Net::new("seldom");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut subscriber = subscriber(&b, false);
    let mut reads = 0;
    for _ in 0..PUBLISHERS {
        come_and_go(&a, false, 1);
        reads += u64::from(subscriber.try_recv().unwrap().is_some());
    }
    let mut living = publisher(&a, false);
    living.wait_for_subscribers_timeout(1, LONG).unwrap();
    living.send(b"here").unwrap();
    while subscriber.try_recv().unwrap().is_some() {}
    let (received, skipped, lost) = sums(&subscriber.stats());
    assert!(reads > 0 && received > reads);
    assert_eq!((skipped, lost.total()), (0, lost.restart));
    assert_eq!(received + lost.restart, PUBLISHERS as u64 * EACH + 1);
}

/// A callback that blocks does not read either.
#[test]
fn blocked_callback_accepts_successive_publishers() {
    let net = Net::new("hanging");
    let (a, b) = (net.node("a"), net.node("b"));
    let (entered, is_in) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let subscription = subscriber(&b, false).on(move |_| {
        let _ = entered.send(());
        let _ = may_go_on.recv();
    });
    come_and_go(&a, false, 1);
    is_in.recv_timeout(LONG).unwrap();
    come_and_go(&a, false, PUBLISHERS - 1);
    drop(go_on);
    eventually("each message is received or counted", || {
        let (received, skipped, lost) = sums(&subscription.stats());
        received + skipped + lost.restart == PUBLISHERS as u64 * EACH
    });
}

/// The limit applies to live publishers: the error of the excess one names the limit.
#[test]
fn excess_live_publisher_is_refused() {
    let net = Net::new("too many");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut subscriber = subscriber(&b, false);
    come_and_go(&a, false, 10);
    let mut living: Vec<_> =
        (0..MAX_PUBLISHERS_PER_SUBSCRIPTION).map(|_| publisher(&a, false)).collect();
    subscriber.wait_for_publishers_timeout(MAX_PUBLISHERS_PER_SUBSCRIPTION, LONG).unwrap();
    let one_more = publisher(&a, false);
    let refused = subscriber.wait_for_publishers_timeout(MAX_PUBLISHERS_PER_SUBSCRIPTION + 1, LONG);
    assert!(matches!(refused, Err(Error::LimitReached { .. })), "{refused:?}");
    drop(living.pop());
    // Without a read by the subscriber.
    one_more.wait_for_subscribers_timeout(1, LONG).unwrap();
    drop(living);
}
