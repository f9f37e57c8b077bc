//! Messages older than their publisher's lifespan are not delivered. They count as expired, not as lost or
//! skipped.

use crate::common;

use std::time::Duration;

use common::{Child, LONG, Net, orders, role, tell};
use rnet::{OnFull, PublisherStats, Subscriber};

const LIFESPAN: Duration = Duration::from_millis(50);

/// Waits until everything sent so far has expired.
fn expire() {
    std::thread::sleep(LIFESPAN + Duration::from_millis(10)); // sleep: messages get old
}

fn stats(subscriber: &Subscriber<[u8]>) -> PublisherStats {
    subscriber.stats().remove(0)
}

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    if role().is_none() {
        return;
    }
    let net = Net::of_parent();
    let node = net.node("reader");
    let mut subscriber = node.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    tell("ready");
    for sent in orders() {
        let sent: u64 = sent.parse().unwrap();
        while stats(&subscriber).received + stats(&subscriber).expired < sent {
            let _ = subscriber.try_recv().unwrap();
        }
        let s = stats(&subscriber);
        tell(&format!("{} {} {} {}", s.received, s.expired, s.skipped, s.lost.total()));
    }
}

#[test]
fn resumed_reader_receives_no_expired_message() {
    let net = Net::new("lifespan stopped");
    let node = net.node("writer");
    let mut publisher = node.publisher::<[u8]>("/t").lifespan(LIFESPAN).open().unwrap();
    let mut reader = Child::spawn(&net, "reader");
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    reader.expect("ready");
    reader.stop();
    for i in 0..100_u64 {
        publisher.send(&i.to_le_bytes()).unwrap();
    }
    expire();
    publisher.send(b"news").unwrap();
    reader.resume();
    reader.say("101");
    let subscriber = reader.hear();
    // On a busy machine the new message may have expired too: it is received or expired, and none is skipped
    // or lost.
    assert!(["1 100 0 0", "0 101 0 0"].contains(&subscriber.as_str()), "{subscriber}");
    reader.finish();
}

#[test]
fn every_form_of_receiving_skips_expired_messages() {
    let net = Net::new("lifespan forms");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a
        .publisher::<[u8]>("/t")
        .lifespan(LIFESPAN)
        .reliable(OnFull::Refuse)
        .large_depth(4)
        .open()
        .unwrap();
    let mut slow = b.subscriber::<[u8]>("/t").open().unwrap();
    let mut newest = b.subscriber::<[u8]>("/t").open().unwrap();
    let mut all = b.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(3, LONG).unwrap();
    let image = vec![7_u8; 100_000];
    for _ in 0..3 {
        publisher.send(b"small").unwrap();
        publisher.send(&image).unwrap();
    }
    // One sample is held; those copied with it expire before they are requested.
    let first = slow.recv_timeout(LONG).map(|sample| sample.len());
    expire();
    assert!(slow.try_recv().unwrap().is_none());
    assert!(newest.latest_timeout(Duration::ZERO).is_err());
    assert!(all.try_recv().unwrap().is_none());
    for (subscriber, received) in [(&slow, u64::from(first.is_ok())), (&newest, 0), (&all, 0)] {
        let s = stats(subscriber);
        assert_eq!((s.received, s.expired), (received, 6 - received), "{s:?}");
        assert_eq!((s.skipped, s.lost.total(), s.behind.messages), (0, 0, 0), "{s:?}");
    }
    // The tools report the same.
    let snapshot = net.inspect();
    let channels = snapshot.subscriptions.iter().flat_map(|s| &s.channels);
    assert!(channels.map(|c| c.expired).sum::<u64>() >= 17);
}

#[test]
fn messages_lost_before_an_expired_one_count_as_expired() {
    let net = Net::new("lifespan overrun");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a
        .publisher::<[u8]>("/t")
        .lifespan(LIFESPAN)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .open()
        .unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for _ in 0..1000 {
        publisher.send(&[0; 1000]).unwrap();
    }
    expire();
    assert!(subscriber.try_recv().unwrap().is_none());
    let s = stats(&subscriber);
    assert_eq!((s.expired, s.skipped, s.lost.total()), (1000, 0, 0), "{s:?}");
}

#[test]
fn late_joiners_get_no_history_that_has_expired() {
    let net = Net::new("lifespan history");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher =
        a.publisher::<[u8]>("/t").lifespan(LIFESPAN).transient_local(5).open().unwrap();
    for _ in 0..5 {
        publisher.send(b"old").unwrap();
    }
    expire();
    let mut late = b.subscriber::<[u8]>("/t").transient_local().keep_all().open().unwrap();
    late.wait_for_publishers_timeout(1, LONG).unwrap();
    assert!(late.try_recv().unwrap().is_none());
    let s = stats(&late);
    assert_eq!((s.expired, s.skipped, s.lost.total()), (5, 0, 0), "{s:?}");
}
