//! Batch receive, and interruption of waits from another thread.

use crate::common;

use std::ops::ControlFlow;
use std::time::Duration;

use common::{LONG, Net};
use rnet::{Error, OnFull, WaitSet};

const NOW: Duration = Duration::ZERO;

#[test]
fn batch_takes_available_messages_and_resumes_after_them() {
    let net = Net::new("batch");
    let node = net.node("both");
    let mut publisher = node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    for n in 0..10_u8 {
        publisher.send(&[n]).unwrap();
    }
    // Long messages between short ones.
    publisher.send(&[10; 100_000]).unwrap();
    let mut seen = Vec::new();
    let count = subscriber.recv_batch_timeout(4, LONG, |sample| {
        seen.push((sample.seq(), sample[0]));
        ControlFlow::Continue(())
    });
    assert_eq!(count, Ok(4));
    let count = subscriber.recv_batch_timeout(100, LONG, |sample| {
        seen.push((sample.seq(), sample[0]));
        if sample[0] == 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(count, Ok(3));
    let mut kept = Vec::new();
    let count = subscriber.recv_batch_timeout(100, LONG, |sample| {
        seen.push((sample.seq(), sample[0]));
        kept.push(sample.into_owned());
        ControlFlow::Continue(())
    });
    assert_eq!(count, Ok(4));
    assert_eq!(seen, (0..11).map(|n| (n, n as u8)).collect::<Vec<_>>());
    assert_eq!((kept[3].len(), kept[0][0]), (100_000, 7));
    let none = subscriber.recv_batch_timeout(1, NOW, |_| ControlFlow::Continue(()));
    assert!(matches!(none, Err(Error::Timeout { .. })));
    assert_eq!(subscriber.recv_batch(0, |_| ControlFlow::Continue(())), Ok(0));
}

#[test]
fn an_error_behind_messages_comes_with_the_next_batch() {
    let net = Net::new("batch_error");
    let (sender, receiver) = (net.node("sender"), net.node("receiver"));
    let mut subscriber = receiver.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let mut publisher = sender.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    publisher.send(b"first").unwrap();
    // A publisher whose QoS is incompatible produces an error.
    let _poor = sender.publisher::<[u8]>("/t").open().unwrap();
    while subscriber.wait_for_publishers_timeout(2, Duration::from_millis(1)).is_err_and(|error| {
        let reported = matches!(error, Error::IncompatibleQos { .. });
        assert!(reported || matches!(error, Error::Timeout { .. }));
        !reported
    }) {}
    let _poorer = sender.publisher::<[u8]>("/t").open().unwrap();
    let mut taken = 0;
    let error = loop {
        match subscriber.recv_batch_timeout(10, LONG, |_| ControlFlow::Continue(())) {
            Ok(count) => taken += count,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::IncompatibleQos { .. }));
    assert_eq!(taken, 1);
}

#[test]
fn wait_ends_when_another_thread_interrupts() {
    let net = Net::new("interrupter");
    let node = net.node("both");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    for wait in [rnet::Wait::Adaptive, rnet::Wait::Spin, rnet::Wait::Block] {
        let mut subscriber = node.subscriber::<[u8]>("/t").wait(wait).open().unwrap();
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        let interrupter = subscriber.interrupter();
        std::thread::scope(|scope| {
            // The interrupt may come before, during or after the start of the wait: it ends the wait in each
            // case.
            scope.spawn(|| interrupter.interrupt());
            assert_eq!(subscriber.recv().err(), Some(Error::Interrupted));
        });
        interrupter.interrupt();
        assert_eq!(subscriber.latest().err(), Some(Error::Interrupted));
        interrupter.interrupt();
        let more = subscriber.wait_for_publishers(2);
        assert_eq!(more.err(), Some(Error::Interrupted));
        let mut set = WaitSet::new(&node);
        std::thread::scope(|scope| {
            scope.spawn(|| interrupter.interrupt());
            assert_eq!(set.wait(&mut [&mut subscriber]), Err(Error::Interrupted));
        });
        // An available message is returned first; the next wait is interrupted.
        interrupter.interrupt();
        publisher.send(b"x").unwrap();
        assert_eq!(&*subscriber.recv().unwrap(), b"x");
        assert_eq!(subscriber.recv().err(), Some(Error::Interrupted));
        let timed_out = subscriber.recv_timeout(NOW).err();
        assert!(matches!(timed_out, Some(Error::Timeout { .. })));
    }
}

#[test]
fn matches_can_be_awaited_without_the_publisher() {
    let net = Net::new("match_changes");
    let node = net.node("both");
    let publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let changes = publisher.match_changes();
    let seen = changes.count();
    changes.wait(seen, Duration::from_millis(1)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            node.subscriber::<[u8]>("/t").open().unwrap().wait_for_publishers_timeout(1, LONG)
        });
        while changes.count() == seen {
            changes.wait(seen, Duration::from_secs(30)).unwrap();
        }
    });
}

#[test]
fn try_send_reports_that_it_would_wait() {
    let net = Net::new("try_send");
    let node = net.node("both");
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .log_len_bytes(16_384)
        .open()
        .unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    assert_eq!(publisher.try_send(&[0; 100_000]), Ok(false));
    let mut sent = 0;
    while publisher.try_send(&[7; 1000]).unwrap() {
        sent += 1;
    }
    assert!((1..17).contains(&sent));
    assert_eq!(publisher.sent(), sent);
    let mut received = 0;
    while subscriber.recv_timeout(NOW).is_ok() {
        received += 1;
    }
    assert_eq!(received, sent);
    assert_eq!(publisher.try_send(&[8; 1000]), Ok(true));
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), [8; 1000]);
}
