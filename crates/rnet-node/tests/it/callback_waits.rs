//! A subscription with a callback supports the same queries and waits as a subscriber. A blocking send can be
//! interrupted.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{LONG, Net, eventually};
use rnet::limits::MIN_LOG_LEN_BYTES;
use rnet::{Error, OnFull, Wait, WaitSet};

#[test]
fn callback_wait_for_publishers_reports_an_incompatible_one() {
    let net = Net::new("callback refused");
    let (a, b) = (net.node("a"), net.node("b"));
    let subscription = b.subscriber::<[u8]>("/t").reliable().open().unwrap().on(|_| {});
    let _wrong = a.publisher::<[u8]>("/t").open().unwrap();
    let error = subscription.wait_for_publishers_timeout(1, LONG).unwrap_err();
    assert!(matches!(error, Error::IncompatibleQos { .. }), "{error:?}");
    // Once; then it waits for a compatible publisher.
    let nothing = subscription.wait_for_publishers_timeout(1, Duration::from_millis(10));
    assert!(matches!(nothing, Err(Error::Timeout { .. })), "{nothing:?}");
    let publisher = a.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    subscription.wait_for_publishers_timeout(1, LONG).unwrap();
    assert_eq!((subscription.publisher_count(), publisher.subscriber_count()), (1, 1));
    // The same for a publisher that existed before the callback was set.
    let second = b.subscriber::<[u8]>("/t").reliable().open().unwrap().on(|_| {});
    let error = second.wait_for_publishers_timeout(2, LONG).unwrap_err();
    assert!(matches!(error, Error::IncompatibleQos { .. }), "{error:?}");
    drop(second);
    drop(publisher);
    eventually("the publisher is gone", || subscription.publisher_count() == 0);
}

/// The wait would block the thread that it depends on.
#[test]
fn a_callback_that_waits_for_publishers_of_its_own_lane_is_refused() {
    let net = Net::new("waits for itself");
    let node = net.node("both");
    let other = node.subscriber::<[u8]>("/other").open().unwrap().on(|_| {});
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut other_publisher = Some(node.publisher::<[u8]>("/other").open().unwrap());
    other.wait_for_publishers_timeout(1, LONG).unwrap();
    let (tell, receiver) = mpsc::channel();
    let _calls = node.subscriber::<[u8]>("/t").open().unwrap().on(move |_| {
        tell.send(other.wait_for_publishers_timeout(1, LONG)).unwrap();
        tell.send(other.wait_for_publishers_timeout(2, LONG)).unwrap();
    });
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"x").unwrap();
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), Ok(()));
    let refused = receiver.recv_timeout(LONG).unwrap();
    assert!(matches!(refused, Err(Error::BadValue { .. })), "{refused:?}");
    drop(other_publisher.take());
}

/// The interrupt may come before, during or after the start of the wait: the wait ends in each case, and
/// nothing was sent.
#[test]
fn blocked_send_ends_when_another_thread_interrupts() {
    let net = Net::new("interrupted send");
    let (a, b) = (net.node("a"), net.node("b"));
    for (topic, on_full) in
        [("/waits", OnFull::Wait(LONG)), ("/detaches", OnFull::Detach { stall: LONG })]
    {
        let publisher = a.publisher::<[u8]>(topic).reliable(on_full);
        let publisher = publisher.log_len_bytes(MIN_LOG_LEN_BYTES).pool_limit_bytes(100 << 10);
        let mut publisher = publisher.open().unwrap();
        let mut subscriber = b.subscriber::<[u8]>(topic).reliable().open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        // Small messages fill the log, large ones the pool.
        for len in [1000, 10_000] {
            let interrupter = publisher.interrupter();
            // Requested in advance, so that the first send without capacity ends.
            interrupter.interrupt();
            while publisher.send(&vec![1; len]).is_ok() {}
            let sent = publisher.sent();
            for _ in 0..3 {
                std::thread::scope(|scope| {
                    scope.spawn(|| interrupter.interrupt());
                    assert_eq!(publisher.send(&vec![2; len]), Err(Error::Interrupted));
                });
            }
            let full = || {
                let all = net.inspect().publishers;
                all.into_iter().find(|p| p.topic == topic).map_or(0, |p| p.full)
            };
            let before = full();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    eventually("the send waits", || full() > before);
                    interrupter.interrupt();
                });
                assert_eq!(publisher.send(&vec![2; len]), Err(Error::Interrupted));
            });
            assert_eq!(publisher.sent(), sent);
            while subscriber.try_recv().unwrap().is_some() {}
            assert_eq!(subscriber.lost().total(), 0);
            publisher.send(b"goes on").unwrap();
            assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"goes on");
        }
    }
}

/// The subscriber's publishers signal another node's event files, so such a wait would miss its messages.
#[test]
fn a_wait_set_refuses_subscribers_of_another_node() {
    let net = Net::new("other node's");
    let (a, b) = (net.node("a"), net.node("b"));
    let (mut ours, mut theirs) =
        (a.subscriber::<[u8]>("/t").open().unwrap(), b.subscriber::<[u8]>("/t").open().unwrap());
    let mut set = WaitSet::new(&a);
    let error = set.wait_timeout(&mut [&mut ours, &mut theirs], LONG).unwrap_err();
    let Error::BadValue { what, why } = &error else { panic!("{error:?}") };
    assert!(what.contains("/t") && why.contains("/b") && why.contains("/a"), "{error}");
    // Both remain unchanged.
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    publisher.send(b"x").unwrap();
    assert!(set.wait_timeout(&mut [&mut ours], LONG).unwrap());
    assert_eq!(&*theirs.recv_timeout(LONG).unwrap(), b"x");
}

/// A sleeping wait set is woken whichever side has the barrier: the send rate of the publisher decides the
/// side.
#[test]
fn wait_set_is_woken_by_frequent_and_rare_publishers() {
    const MESSAGES: u32 = 5000;
    let net = Net::new("barrier of a wait set");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").reliable().wait(Wait::Block).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let sender = std::thread::spawn(move || {
        for n in 0..MESSAGES {
            publisher.send(&n.to_le_bytes()).unwrap();
            if n % 1000 == 0 {
                std::thread::sleep(Duration::from_millis(2)); // sleep: makes it a rare publisher
            }
        }
        publisher
    });
    let mut set = WaitSet::new(&b);
    let mut next = 0;
    while next < MESSAGES {
        assert!(set.wait_timeout(&mut [&mut subscriber], LONG).unwrap());
        while let Some(sample) = subscriber.try_recv().unwrap() {
            assert_eq!(*sample, next.to_le_bytes());
            next += 1;
        }
    }
    let late = net.inspect().subscriptions.remove(0).channels.remove(0).late_wakes;
    assert_eq!(late, 0, "a wake-up was lost");
    drop(sender.join().unwrap());
}
