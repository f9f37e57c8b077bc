//! Publishers that come and go while a subscriber does not look.

use crate::common;

use std::collections::HashMap;

use common::{LONG, Net, eventually};
use rnet::limits::MAX_PUBLISHERS_PER_SUBSCRIPTION;
use rnet::{
    Error, LossCounts, Node, OnFull, Publisher, PublisherOptions, PublisherStats, Subscriber,
    SubscriberOptions,
};

/// More than a subscriber may follow at a time.
const PUBLISHERS: usize = 400;
/// What each of them sends.
const EACH: u64 = 3;

fn publisher(node: &Node, reliable: bool) -> Publisher<[u8]> {
    let options = PublisherOptions::new().log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES);
    let options = if reliable { options.reliable(OnFull::Refuse) } else { options };
    node.publisher_with("/t", options).unwrap()
}

fn subscriber(node: &Node, reliable: bool) -> Subscriber<[u8]> {
    let options = SubscriberOptions::new();
    let options = if reliable { options.reliable() } else { options };
    node.subscriber_with("/t", options).unwrap()
}

/// One after the other, each of which is served and sends.
fn come_and_go(node: &Node, reliable: bool, count: usize) {
    for _ in 0..count {
        let mut publisher = publisher(node, reliable);
        publisher.wait_for_subscribers(1, LONG).unwrap();
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
fn a_subscriber_that_does_not_look_refuses_none_that_come_one_by_one() {
    for reliable in [false, true] {
        let net = Net::new(&format!("unread {reliable}"));
        let (a, b) = (net.node("a"), net.node("b"));
        let mut subscriber = subscriber(&b, reliable);
        come_and_go(&a, reliable, PUBLISHERS);
        eventually("the last one has left", || {
            subscriber.stats().iter().filter(|s| s.connected).count() == 0
        });
        // What is there is read in the order in which each sent it, and what is not is counted.
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
        // Tools see the same, and the next one is served like the first.
        let past = net.inspect().subscriptions.remove(0).past.unwrap();
        assert_eq!((past.received, past.lost), (received, lost));
        come_and_go(&a, reliable, 1);
        assert_eq!(subscriber.recv(LONG).unwrap().seq(), 0);
    }
}

/// Publishers that say nothing leave nothing to read, and no trace but their statistics.
#[test]
fn one_that_left_nothing_to_read_frees_its_place() {
    let net = Net::new("silent");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut subscriber = subscriber(&b, false);
    for _ in 0..3 {
        publisher(&a, false).wait_for_subscribers(1, LONG).unwrap();
        eventually("it is forgotten", || net.inspect().subscriptions[0].channels.is_empty());
    }
    assert!(subscriber.try_recv().unwrap().is_none());
    assert_eq!(subscriber.stats().len(), 3);
}

/// A user who looks now and then follows fewer than come: the backlog is of those that have left.
#[test]
fn a_subscriber_that_looks_seldom_follows_all_that_live() {
    let net = Net::new("seldom");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut subscriber = subscriber(&b, false);
    let mut looks = 0;
    for _ in 0..PUBLISHERS {
        come_and_go(&a, false, 1);
        looks += u64::from(subscriber.try_recv().unwrap().is_some());
    }
    let mut living = publisher(&a, false);
    living.wait_for_subscribers(1, LONG).unwrap();
    living.send(b"here").unwrap();
    while subscriber.try_recv().unwrap().is_some() {}
    let (received, skipped, lost) = sums(&subscriber.stats());
    assert!(looks > 0 && received > looks);
    assert_eq!((skipped, lost.total()), (0, lost.restart));
    assert_eq!(received + lost.restart, PUBLISHERS as u64 * EACH + 1);
}

/// A callback that hangs does not look either.
#[test]
fn a_callback_that_hangs_refuses_none_that_come_one_by_one() {
    let net = Net::new("hanging");
    let (a, b) = (net.node("a"), net.node("b"));
    let (entered, is_in) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let subscription = subscriber(&b, false).on(move |_| {
        let _ = entered.send(());
        let _ = may_go_on.recv();
    });
    come_and_go(&a, false, 1);
    is_in.recv_timeout(LONG.unwrap()).unwrap();
    come_and_go(&a, false, PUBLISHERS - 1);
    drop(go_on);
    eventually("each message is received or counted", || {
        let (received, skipped, lost) = sums(&subscription.stats());
        received + skipped + lost.restart == PUBLISHERS as u64 * EACH
    });
}

/// The limit holds for publishers that live: the one too many is refused by name.
#[test]
fn one_too_many_that_live_is_refused() {
    let net = Net::new("too many");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut subscriber = subscriber(&b, false);
    come_and_go(&a, false, 10);
    let mut living: Vec<_> =
        (0..MAX_PUBLISHERS_PER_SUBSCRIPTION).map(|_| publisher(&a, false)).collect();
    subscriber.wait_for_publishers(MAX_PUBLISHERS_PER_SUBSCRIPTION, LONG).unwrap();
    let one_more = publisher(&a, false);
    let refused = subscriber.wait_for_publishers(MAX_PUBLISHERS_PER_SUBSCRIPTION + 1, LONG);
    assert!(matches!(refused, Err(Error::LimitReached { .. })), "{refused:?}");
    drop(living.pop());
    // Without a look of the subscriber's.
    one_more.wait_for_subscribers(1, LONG).unwrap();
    drop(living);
}
