//! An urgent message never queues behind a bulk message.

use crate::common;

use std::sync::mpsc;

use common::{LONG, Net};
use rnet::{Error, Lane, MatchEvent};

#[test]
fn a_bulk_callback_that_blocks_delays_no_urgent_one() {
    let net = Net::new("lanes");
    let node = net.node("robot");
    let other = net.node("other");
    let mut stop = other.publisher::<[u8]>("/stop").urgent().open().unwrap();
    let mut scan = other.publisher::<[u8]>("/scan").open().unwrap();

    let (entered, bulk_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let on_scan = node.subscriber::<[u8]>("/scan").open().unwrap().on(move |_| {
        entered.send(()).unwrap();
        // Blocks until the test of the urgent lane is finished.
        let _ = released.recv();
    });
    let (stopped, receiver) = mpsc::channel();
    let on_stop = node.subscriber::<[u8]>("/stop").open().unwrap().on(move |sample| {
        stopped.send(sample.seq()).unwrap();
    });
    stop.wait_for_subscribers_timeout(1, LONG).unwrap();
    scan.wait_for_subscribers_timeout(1, LONG).unwrap();

    scan.send(b"scan").unwrap();
    bulk_entered.recv_timeout(LONG).unwrap();
    for seq in 0..100 {
        stop.send(b"stop").unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(seq));
    }
    // Meanwhile, another urgent topic can be joined.
    let (stopped, receiver) = mpsc::channel();
    let on_fault = node.subscriber::<[u8]>("/fault").open().unwrap().on(move |sample| {
        stopped.send(sample.seq()).unwrap();
    });
    let mut fault = other.publisher::<[u8]>("/fault").urgent().open().unwrap();
    fault.wait_for_subscribers_timeout(1, LONG).unwrap();
    fault.send(b"fault").unwrap();
    assert_eq!(receiver.recv_timeout(LONG), Ok(0));

    scan.send(b"scan").unwrap();
    drop(release);
    bulk_entered.recv_timeout(LONG).unwrap();
    drop((on_scan, on_stop, on_fault));
}

/// The subscriber exists first and does not know the lane; the first message does not decide it.
#[test]
fn callback_takes_the_lane_of_the_first_publisher() {
    let net = Net::new("first publisher");
    let node = net.node("robot");
    let other = net.node("other");
    for round in 0..50 {
        let topic = format!("/t{round}");
        let (tell, thread) = mpsc::channel();
        let on = node.subscriber::<[u8]>(&topic).open().unwrap().on(move |_| {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            tell.send(name).unwrap();
        });
        let publisher = other.publisher::<[u8]>(&topic).transient_local(1);
        let urgent = round % 2 == 0;
        let publisher = if urgent { publisher.urgent() } else { publisher };
        let mut publisher = publisher.open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        publisher.send(b"").unwrap();
        let name = thread.recv_timeout(LONG).unwrap();
        assert_eq!(name, if urgent { "rnet-urgent" } else { "rnet-bulk" });
        drop(on);
    }
}

#[test]
fn subscriber_can_require_a_lane() {
    let net = Net::new("insist");
    let node = net.node("robot");
    let publisher = node.publisher::<[u8]>("/stop").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/stop").lane(Lane::Urgent).open().unwrap();
    for error in [
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap_err(),
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap_err(),
        publisher.incompatible().remove(0),
    ] {
        assert!(matches!(error, Error::IncompatibleQos { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("/stop") && text.contains("urgent lane"), "{text}");
    }
}

#[test]
fn two_lanes_on_one_topic_are_a_named_error() {
    let net = Net::new("conflict");
    let node = net.node("robot");
    let mut bulk = node.publisher::<[u8]>("/stop").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/stop").open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    let (tell, events) = mpsc::channel();
    subscriber.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let other = net.node("other");
    let _urgent = other.publisher::<[u8]>("/stop").urgent().open().unwrap();
    let error = subscriber.recv_timeout(LONG).unwrap_err();
    assert!(matches!(error, Error::IncompatibleQos { .. }), "{error:?}");
    let text = error.to_string();
    for part in ["/stop", "/other", "/robot", "one lane per topic"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(events.recv_timeout(LONG), Ok(MatchEvent::Incompatible(error)));
    // The first publisher is not affected.
    bulk.send(b"still here").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"still here");
}

#[test]
fn panicking_callback_ends_no_other() {
    let net = Net::new("panic");
    let node = net.node("robot");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let (tell, receiver) = mpsc::channel();
    let bad = tell.clone();
    let _bad = node.subscriber::<[u8]>("/t").open().unwrap().on(move |_| {
        bad.send("bad").unwrap();
        panic!("this panic is part of the test");
    });
    let _good =
        node.subscriber::<[u8]>("/t").open().unwrap().on(move |_| tell.send("good").unwrap());
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    for _ in 0..3 {
        publisher.send(b"").unwrap();
    }
    let words: Vec<_> = (0..4).map(|_| receiver.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(words.iter().filter(|w| **w == "bad").count(), 1, "{words:?}");
}

#[test]
fn dropping_the_subscription_ends_the_calls() {
    let net = Net::new("drop");
    let node = net.node("robot");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let (tell, receiver) = mpsc::channel();
    let subscription =
        node.subscriber::<[u8]>("/t").open().unwrap().on(move |_| tell.send(()).unwrap());
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"").unwrap();
    receiver.recv_timeout(LONG).unwrap();
    drop(subscription);
    // The callback and its captures are dropped.
    assert_eq!(receiver.recv(), Err(mpsc::RecvError));
    assert_eq!(publisher.subscriber_count(), 0);
}
