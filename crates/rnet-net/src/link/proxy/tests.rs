//! What a proxy notes and keeps, without a network.

use std::path::PathBuf;

use rnet::{Node, OnFull, PublisherOptions, Subscriber, SubscriberOptions};

use super::*;
use crate::link::places::Places;

/// A directory, a node in it, and a publisher with little room for its one reader.
fn matched(test: &str) -> (PathBuf, Node, Publisher<[u8]>, Subscriber<[u8]>) {
    let dir = PathBuf::from(format!("/dev/shm/rnet-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let node = Node::builder("/link").domain("t").dir(&dir).state_dir(&dir).open().unwrap();
    let options = PublisherOptions::new().reliable(OnFull::Refuse).log_len_bytes(1 << 14);
    let reader = node.subscriber_with::<[u8]>("/t", SubscriberOptions::new().reliable()).unwrap();
    let publisher = node.publisher_with::<[u8]>("/t", options).unwrap();
    publisher.wait_for_subscribers(1, Some(std::time::Duration::from_secs(30))).unwrap();
    (dir, node, publisher, reader)
}

/// A link that is killed leaves no time to note anything: what it had published is noted already.
#[test]
fn a_place_is_noted_with_each_message_and_gap() {
    let (dir, node, publisher, mut reader) = matched("proxy");
    let host = HostId(7);
    let places = Places::open(&dir).unwrap();
    let slot = places.claim(host, 1).slot;
    let mut proxy = Proxy::new(publisher, (host, 1), None, slot, 1 << 20);
    // Whoever takes over from a process that is killed at this moment goes on from here.
    let left = || Places::open(&dir).unwrap().claim(host, 1).next_seq;
    assert_eq!(left(), None);
    proxy.gap(40, 0, LossCause::Link);
    assert_eq!(left(), Some(40));
    // Those of a frame are seen together, some at a time; what nobody can see is not noted.
    let mut seen = 40;
    for seq in 40..75 {
        proxy.publish(seq, 1, Meta::default(), &[0; 300], None).unwrap();
        while let Some(message) = reader.try_recv().unwrap() {
            seen = message.origin().unwrap().seq + 1;
        }
        assert_eq!(left(), Some(seen));
    }
    assert!(seen > 60, "{seen}");
    proxy.show();
    assert_eq!(left(), Some(75));
    proxy.gap(75, 25, LossCause::Overrun);
    assert_eq!(left(), Some(100));
    // What waits for room was not published.
    let mut seq = 100;
    while !proxy.is_stuck() {
        proxy.publish(seq, 1, Meta::default(), &[0; 1000], None).unwrap();
        seq += 1;
    }
    assert_eq!(left(), Some(seq - 1));
    proxy.gap(seq, 10, LossCause::Link);
    assert_eq!(left(), Some(seq - 1));
    while reader.try_recv().unwrap().is_some() {}
    proxy.retry().unwrap();
    assert_eq!((proxy.is_stuck(), left()), (false, Some(seq + 10)));
    proxy.forget();
    assert_eq!(left(), None);
    // Its slot is another's by now.
    places.release(proxy.take_slot());
    proxy.publish(500, 1, Meta::default(), b"of a frame being read", None).unwrap();
    assert_eq!(left(), None);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Room that has come is used before what a frame brings, which would otherwise wait behind it for the lane's thread.
#[test]
fn what_waits_is_published_as_a_frame_comes_and_before_it() {
    let (dir, node, publisher, mut reader) = matched("retry");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 20);
    let (mut seq, mut seen, mut now_ns) = (0, Vec::new(), 1_000_000_000);
    for _ in 0..50 {
        while !proxy.is_stuck() {
            proxy.publish(seq, 1, Meta::default(), &[0; 1000], None).unwrap();
            seq += 1;
        }
        while let Some(message) = reader.try_recv().unwrap() {
            seen.push(message.origin().unwrap().seq);
        }
        now_ns += RETRY_AGAIN_NS;
        assert!(proxy.may_retry(now_ns));
        assert!(
            !proxy.may_retry(now_ns + RETRY_AGAIN_NS - 1),
            "a full pool takes a while to say so"
        );
        proxy.retry().unwrap();
        assert!(!proxy.is_stuck());
    }
    proxy.show();
    while let Some(message) = reader.try_recv().unwrap() {
        seen.push(message.origin().unwrap().seq);
    }
    assert_eq!(seen, (0..seq).collect::<Vec<_>>());
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// However often another link begins what it does not go on with, and whatever it says is missing.
#[test]
fn what_is_given_up_takes_no_memory() {
    let (dir, node, publisher, mut reader) = matched("given-up");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 30);
    let mut seq = 0;
    while !proxy.is_stuck() {
        proxy.publish(seq, 1, Meta::default(), &[0; 1000], None).unwrap();
        seq += 1;
    }
    let begun = seq;
    for _ in 0..1000 {
        let mut reassembly = proxy.take_reassembly();
        assert_eq!(reassembly.add(seq, 1 << 30, 0, b"x").unwrap().whole, None);
        proxy.put_reassembly(reassembly);
        proxy.give_up(seq + 1);
        assert!(!proxy.expects(seq) && !proxy.expects(seq + 1) && proxy.expects(seq + 2));
        assert_eq!(proxy.partial_len_bytes(false), 0);
        seq += 2;
        for cause in LossCause::ALL {
            proxy.gap(seq, 1, cause);
            seq += 1;
        }
    }
    assert!(proxy.waiting.len() <= 2, "{}", proxy.waiting.len());
    let mut read = 0;
    while proxy.is_stuck() || read < begun {
        read += u64::from(reader.try_recv().unwrap().is_some());
        proxy.retry().unwrap();
    }
    let lost = proxy.arrived.lost;
    assert_eq!(lost.parts().map(|(_, count)| count), [1000, 3000, 1000, 1000]);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// What a message ends that comes in its place is lost; one before that is none that is expected.
#[test]
fn a_number_before_one_that_was_given_up_is_a_repetition() {
    let (dir, node, publisher, mut reader) = matched("before");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 20);
    let mut reassembly = proxy.take_reassembly();
    assert_eq!(reassembly.add(10, 1 << 20, 0, b"x").unwrap().whole, None);
    proxy.put_reassembly(reassembly);
    for seq in [5, 10] {
        proxy.publish(seq, 1, Meta::default(), b"before", None).unwrap();
    }
    proxy.publish(11, 1, Meta::default(), b"behind", None).unwrap();
    proxy.show();
    let message = reader.recv(Some(std::time::Duration::from_secs(30))).unwrap();
    assert_eq!((&*message, message.origin().unwrap().seq), (&b"behind"[..], 11));
    assert!(reader.try_recv().unwrap().is_none());
    assert_eq!(proxy.arrived.repeated, 2);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}
