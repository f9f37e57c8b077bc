//! Tables of fixed size: the readers of a publisher, the publishers of a subscriber. Each endpoint without a
//! slot gets an error, and a slot once one is free.

use rnet::limits::{MAX_PUBLISHERS_PER_SUBSCRIPTION, MAX_READERS_PER_CHANNEL};
use rnet::{Publisher, Subscriber};

use super::{is_limit, refused};
use crate::common::{Child, LONG, Net, orders, tell};

/// Number of excess readers; more than a publisher can name at a time.
const TOO_MANY: usize = 40;

pub(crate) fn publisher_of_a_crowd(net: &Net) {
    let orders = orders();
    let node = net.node("crowd");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    tell("ready");
    for order in orders {
        publisher.wait_for_subscribers(MAX_READERS_PER_CHANNEL).unwrap_or(());
        publisher.send(order.as_bytes()).unwrap();
    }
}

#[test]
fn more_readers_than_slots_at_once() {
    let net = Net::new("readers at once");
    let mut child = Child::spawn(&net, "crowd");
    child.expect("ready");
    // It sees them all in one scan.
    child.stop();
    let node = net.node("readers");
    let mut waiting: Vec<Subscriber<[u8]>> = (0..MAX_READERS_PER_CHANNEL + TOO_MANY)
        .map(|_| node.subscriber("/t").open().unwrap())
        .collect();
    child.resume();
    let (mut served, mut others) = (Vec::new(), Vec::new());
    for mut subscriber in waiting.drain(..) {
        match subscriber.wait_for_publishers_timeout(1, LONG) {
            Ok(()) => served.push(subscriber),
            Err(error) => {
                is_limit(&error, &["512 readers of /t at /crowd", "once another closes"]);
                others.push(subscriber);
            }
        }
    }
    assert_eq!((served.len(), others.len()), (MAX_READERS_PER_CHANNEL, TOO_MANY));
    // The error is reported once; from then on they wait.
    assert!(others.iter_mut().all(|s| s.try_recv().unwrap().is_none()));
    child.say("first");
    for subscriber in &mut served {
        assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"first");
    }
    served.truncate(MAX_READERS_PER_CHANNEL - TOO_MANY);
    for subscriber in &mut others {
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    }
    child.say("second");
    for subscriber in others.iter_mut().chain(&mut served) {
        assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"second");
        assert_eq!(subscriber.lost().total(), 0);
    }
    child.finish();
}

#[test]
fn more_publishers_than_a_subscriber_may_merge() {
    let net = Net::new("publishers");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    let mut publishers: Vec<Publisher<[u8]>> = (0..MAX_PUBLISHERS_PER_SUBSCRIPTION)
        .map(|_| a.publisher("/t").log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES).open().unwrap())
        .collect();
    subscriber.wait_for_publishers_timeout(MAX_PUBLISHERS_PER_SUBSCRIPTION, LONG).unwrap();
    let mut last =
        a.publisher::<[u8]>("/t").log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES).open().unwrap();
    let error =
        refused(subscriber.wait_for_publishers_timeout(MAX_PUBLISHERS_PER_SUBSCRIPTION + 1, LONG));
    is_limit(&error, &["256 publishers of /t at one subscriber"]);
    publishers[0].send(b"old").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"old");
    drop(publishers.pop());
    // The subscriber reuses the page of the closed publisher for the waiting one.
    crate::common::eventually("the last publisher is followed", || {
        assert!(subscriber.try_recv().unwrap().is_none());
        last.subscriber_count() == 1
    });
    last.send(b"new").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"new");
    assert_eq!(subscriber.lost().total(), 0);
}
