//! Counters that tools read from outside, and leftovers after all nodes are gone.

use crate::common;

use common::{LONG, Net};
use rnet::Error;

#[test]
fn counters_are_read_from_outside() {
    let net = Net::new("counters");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for _ in 0..10 {
        publisher.send(&[1; 100]).unwrap();
    }
    publisher.send(&[2; 100_000]).unwrap();
    for _ in 0..4 {
        subscriber.recv_timeout(LONG).unwrap();
    }
    let seen = net.inspect();
    assert_eq!(seen.nodes.iter().map(|n| &*n.meta.name).collect::<Vec<_>>(), ["/a", "/b"]);
    assert_eq!(seen.topics(), ["/t"]);
    let sent = &seen.publishers[0];
    assert_eq!((sent.sent, sent.bytes, sent.readers), (11, 101_000, 1));
    let taken = &seen.subscriptions[0].channels[0];
    let behind = taken.behind.messages;
    assert_eq!((taken.received, taken.bytes, behind, taken.lost.total()), (4, 400, 7, 0));
    assert_eq!(taken.latency.iter().sum::<u64>(), 4);
    // The counters of a closed publisher are kept.
    for _ in 0..7 {
        subscriber.recv_timeout(LONG).unwrap();
    }
    drop(publisher);
    let none = subscriber.recv_timeout(std::time::Duration::ZERO).map(drop).unwrap_err();
    assert!(matches!(none, Error::Timeout { .. }));
    common::eventually("the channel is closed", || {
        let _ = subscriber.try_recv();
        net.inspect().subscriptions[0].channels.is_empty()
    });
    let past = net.inspect().subscriptions.remove(0).past.unwrap();
    assert_eq!((past.received, past.bytes), (11, 101_000));
}

#[test]
fn observers_read_without_being_counted() {
    let net = Net::new("observer");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let info = net.inspect().publishers.remove(0);
    let mut observer = rnet::inspect::Observer::open(info.path, info.id, false).unwrap();
    let mut bytes = Vec::new();
    for len in [0, 22, 4096, 5000, 1 << 20] {
        publisher.send(&vec![7; len]).unwrap();
        assert!(matches!(observer.poll(&mut bytes), rnet::inspect::Observation::Message(_)));
        assert_eq!(bytes, vec![7; len]);
    }
    assert_eq!(observer.poll(&mut bytes), rnet::inspect::Observation::Nothing);
    assert_eq!((observer.missed().total(), publisher.subscriber_count()), (0, 0));
}

#[test]
fn nothing_is_left_behind() {
    let net = Net::new("left behind");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let on = b.subscriber::<[u8]>("/t").open().unwrap().on(|_| {});
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[0; 100_000]).unwrap();
    let path = a.domain_path().to_owned();
    drop((publisher, on, a, b));
    for folder in ["nodes", "names"] {
        assert_eq!(std::fs::read_dir(path.join(folder)).unwrap().count(), 0, "{folder}");
    }
}
