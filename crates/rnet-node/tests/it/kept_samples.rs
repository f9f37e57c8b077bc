//! Large messages that readers hold, and how long writers wait for capacity.

use crate::common;

use std::time::{Duration, Instant};

use common::Net;
use rnet::limits::MAX_PINS_PER_READER;
use rnet::{Error, OnFull};

const LEN: usize = 100_000;

#[test]
fn a_reader_that_waits_holds_no_large_message() {
    let net = Net::new("held_wait");
    let node = net.node("a");
    // Capacity for one message.
    let mut publisher = node
        .publisher::<[u8]>("/image")
        .reliable(OnFull::Refuse)
        .pool_limit_bytes(200_000)
        .open()
        .unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/image").reliable().open().unwrap();
    subscriber.wait_for_publishers(1).unwrap();
    publisher.wait_for_subscribers(1).unwrap();
    for round in 0..3 {
        publisher.send(&[round; LEN]).unwrap();
        assert_eq!(subscriber.recv().unwrap()[LEN - 1], round);
        // The next receive finds nothing, and must still release the last message.
        assert!(subscriber.try_recv().unwrap().is_none());
    }
}

#[test]
fn one_sample_can_be_read_while_all_but_one_are_kept() {
    let net = Net::new("held_limit");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/image").reliable(OnFull::Refuse).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/image").reliable().open().unwrap();
    subscriber.wait_for_publishers(1).unwrap();
    publisher.wait_for_subscribers(1).unwrap();
    let mut kept = Vec::new();
    for _ in 1..MAX_PINS_PER_READER {
        publisher.send(&[1; LEN]).unwrap();
        kept.push(subscriber.recv().unwrap().into_owned());
    }
    for round in 0..5 {
        publisher.send(&[round; LEN]).unwrap();
        assert_eq!(subscriber.recv().unwrap()[0], round);
    }
    publisher.send(&[9; LEN]).unwrap();
    kept.push(subscriber.recv().unwrap().into_owned());
    publisher.send(&[10; LEN]).unwrap();
    let refused = subscriber.recv().map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::TooManyPins { .. }), "{refused}");
}

#[test]
fn writer_waits_at_most_its_timeout_and_loses_nothing() {
    let net = Net::new("held_room");
    let node = net.node("a");
    let limit = Duration::from_millis(300);
    let mut publisher =
        node.publisher::<[u8]>("/log").reliable(OnFull::Wait(limit)).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/log").reliable().open().unwrap();
    subscriber.wait_for_publishers(1).unwrap();
    publisher.wait_for_subscribers(1).unwrap();
    let mut sent = 0_u64;
    let error = loop {
        let start = Instant::now();
        match publisher.send(&[0; 1000]) {
            Ok(()) => sent += 1,
            Err(error) => {
                // The parts of a wait must not add up to more than twice the limit. On a loaded machine the
                // time may be longer, so the test prints it and does not assert it.
                println!("gave up after {:?}", start.elapsed());
                break error;
            }
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    // Capacity for one message suffices, although the writer first waits for more.
    for _ in 0..5 {
        assert!(subscriber.try_recv().unwrap().is_some());
    }
    publisher.send(&[0; 1000]).unwrap();
    sent += 1;
    let mut received = 5;
    while subscriber.try_recv().unwrap().is_some() {
        received += 1;
    }
    assert_eq!(received, sent);
}
