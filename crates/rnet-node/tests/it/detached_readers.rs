//! A reliable reader that makes no progress for too long is evicted. Whatever it was doing at that moment, it
//! is notified once per eviction, counts the messages that it missed, and receives again.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, orders, role, tell};
use rnet::{Error, OnFull, Publisher, Subscriber};

const STALL: Duration = Duration::from_millis(20);
const BURST: u64 = 2000;
/// Concurrent reader processes.
const CROWD: usize = 5;

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = orders();
    match role.as_str() {
        // Subscribes, reads only on request, and reports its counts.
        "reader" => {
            let node = net.node(&format!("reader{}", std::process::id()));
            let mut subscriber = reliable(&node);
            tell("subscribed");
            let mut counts = ReadCounts::default();
            for order in orders {
                let sent = order.parse().unwrap();
                counts.read_until(&mut subscriber, sent);
                let ReadCounts { received, evictions } = counts;
                tell(&format!("{received} {} {evictions}", subscriber.lost().detached));
            }
        }
        // Sends a burst and keeps its publisher open.
        "writer" => {
            let mut publisher = writer(&net.node("victim"));
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            burst(&mut publisher);
            tell("sent");
            let _ = orders.recv();
        }
        other => panic!("unknown role: {other}"),
    }
}

fn reliable(node: &rnet::Node) -> Subscriber<[u8]> {
    node.subscriber("/t").reliable().open().unwrap()
}

fn writer(node: &rnet::Node) -> Publisher<[u8]> {
    node.publisher("/t")
        .reliable(OnFull::Detach { stall: STALL })
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .open()
        .unwrap()
}

/// Enough messages to fill the log several times.
fn burst(publisher: &mut Publisher<[u8]>) {
    for _ in 0..BURST {
        publisher.send(&[1; 100]).unwrap();
    }
}

/// Counts of a reader.
#[derive(Clone, Copy, Default)]
struct ReadCounts {
    received: u64,
    evictions: u64,
}

impl ReadCounts {
    /// Takes the available messages.
    fn read(&mut self, subscriber: &mut Subscriber<[u8]>) {
        loop {
            match subscriber.try_recv() {
                Ok(Some(_)) => self.received += 1,
                Ok(None) => return,
                Err(Error::Detached { .. }) => self.evictions += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads until `sent` messages are received or counted as lost.
    fn read_until(&mut self, subscriber: &mut Subscriber<[u8]>, sent: u64) {
        eventually("each message was received or counted", || {
            self.read(subscriber);
            let lost = subscriber.lost();
            assert_eq!(lost.total(), lost.detached);
            assert!(self.received + lost.detached <= sent, "counted twice");
            self.received + lost.detached == sent
        });
    }
}

/// Asserts that the reader receives what is sent now.
fn hears(
    publisher: &mut Publisher<[u8]>,
    subscriber: &mut Subscriber<[u8]>,
    counts: &mut ReadCounts,
) {
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let lost = subscriber.lost();
    for _ in 0..20 {
        publisher.send(&[2]).unwrap();
        subscriber.recv_timeout(LONG).unwrap();
        counts.received += 1;
    }
    assert_eq!(subscriber.lost(), lost);
}

#[test]
fn evicted_before_its_first_read() {
    let net = Net::new("evicted before the first read");
    let mut publisher = writer(&net.node("writer"));
    let mut subscriber = reliable(&net.node("reader"));
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    burst(&mut publisher);
    assert_eq!(publisher.subscriber_count(), 0);
    let mut counts = ReadCounts::default();
    counts.read_until(&mut subscriber, BURST);
    assert_eq!(counts.evictions, 1);
    hears(&mut publisher, &mut subscriber, &mut counts);
}

/// Each burst meets a reader that was notified of the previous eviction and has not read since.
#[test]
fn evicted_repeatedly() {
    let net = Net::new("evicted again");
    let mut publisher = writer(&net.node("writer"));
    let mut subscriber = reliable(&net.node("reader"));
    let mut counts = ReadCounts::default();
    for round in 1..=5 {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        burst(&mut publisher);
        assert_eq!(publisher.subscriber_count(), 0);
        eventually("the reader is notified", || {
            counts.read(&mut subscriber);
            counts.evictions == round
        });
    }
    counts.read_until(&mut subscriber, 5 * BURST);
    assert_eq!(counts.evictions, 5);
    hears(&mut publisher, &mut subscriber, &mut counts);
}

/// The callback of one topic blocks the lane. On it, the reader of another topic is evicted.
#[test]
fn evicted_behind_a_slow_callback() {
    let net = Net::new("evicted behind a callback");
    let mut publisher = writer(&net.node("writer"));
    let mut slow = net.node("slow").publisher::<[u8]>("/slow").open().unwrap();
    let node = net.node("reader");
    let (entered, inside) = mpsc::channel();
    let (go_on, gate) = mpsc::channel::<()>();
    let held = node.subscriber::<[u8]>("/slow").open().unwrap().on(move |_| {
        let _ = entered.send(());
        let _ = gate.recv();
    });
    let (sender, hears) = mpsc::channel();
    let subscription = reliable(&node).on_result(move |result| {
        let _ = sender.send(result.map(|sample| sample.to_vec()));
    });
    slow.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    slow.send(b"hold").unwrap();
    inside.recv_timeout(LONG).unwrap();
    burst(&mut publisher);
    assert_eq!(publisher.subscriber_count(), 0);
    drop(go_on);
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"end").unwrap();
    let (mut received, mut evictions) = (0, 0);
    loop {
        match hears.recv_timeout(LONG).expect("the reader receives again") {
            Ok(sample) => {
                received += 1;
                if sample == b"end" {
                    break;
                }
            }
            Err(Error::Detached { .. }) => evictions += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let lost = subscription.stats().remove(0).lost;
    assert_eq!((received + lost.detached, lost.total(), evictions), (BURST + 1, lost.detached, 1));
    drop(held);
}

/// Processes that subscribe and read later, one after the other, while the writer continues.
#[test]
fn evicted_processes_that_read_later() {
    let net = Net::new("evicted in a crowd");
    let mut publisher = writer(&net.node("writer"));
    let mut readers: Vec<Child> = (0..CROWD).map(|_| Child::spawn(&net, "reader")).collect();
    readers.iter_mut().for_each(|reader| reader.expect("subscribed"));
    publisher.wait_for_subscribers_timeout(CROWD, LONG).unwrap();
    burst(&mut publisher);
    let mut sent = BURST;
    for (before, reader) in readers.iter_mut().enumerate() {
        // The reader is notified and admitted again; the writer does not wait for readers that have not read
        // yet.
        reader.say(&sent.to_string());
        reader.hear();
        publisher.wait_for_subscribers_timeout(before + 1, LONG).unwrap();
        for _ in 0..20 {
            publisher.send(&[2]).unwrap();
            sent += 1;
        }
    }
    for reader in &mut readers {
        reader.say(&sent.to_string());
        let words = reader.hear();
        let counts: Vec<u64> = words.split(' ').map(|n| n.parse().unwrap()).collect();
        let [received, detached, evictions] = counts[..] else { panic!("{words}") };
        assert_eq!((received + detached, evictions), (sent, 1), "{words}");
        assert!(received >= 20, "the reader receives again: {words}");
    }
    assert_eq!(publisher.subscriber_count(), CROWD);
}

/// A closed publisher cannot admit the reader again. The reader is still notified and counts.
fn then_the_publisher_leaves(had_looked: bool) {
    let net = Net::new("evicted and closed");
    let mut publisher = writer(&net.node("writer"));
    let mut subscriber = reliable(&net.node("reader"));
    let mut counts = ReadCounts::default();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut sent = BURST;
    if had_looked {
        publisher.send(&[0]).unwrap();
        subscriber.recv_timeout(LONG).unwrap();
        counts.received += 1;
        sent += 1;
    }
    burst(&mut publisher);
    drop(publisher);
    counts.read_until(&mut subscriber, sent);
    counts.read(&mut subscriber);
    assert_eq!((counts.evictions, subscriber.publisher_count()), (1, 0));
    assert!(counts.received > u64::from(had_looked), "the rest of the log is read");
}

#[test]
fn evicted_and_publisher_closes_before_the_first_read() {
    then_the_publisher_leaves(false);
}

#[test]
fn evicted_and_publisher_closes_while_it_reads() {
    then_the_publisher_leaves(true);
}

/// The reader was notified and has asked again. The publisher closes before or after it admits the reader.
#[test]
fn evicted_and_publisher_closes_during_readmission() {
    let net = Net::new("evicted, asks, closed");
    for _ in 0..20 {
        let mut publisher = writer(&net.node("writer"));
        let mut subscriber = reliable(&net.node("reader"));
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        burst(&mut publisher);
        assert!(matches!(subscriber.recv_timeout(LONG), Err(Error::Detached { .. })));
        let mut counts = ReadCounts { received: 0, evictions: 1 };
        for _ in 0..BURST {
            assert!(publisher.try_send(&[3; 100]).is_ok());
        }
        let sent = publisher.sent();
        drop(publisher);
        counts.read_until(&mut subscriber, sent);
        counts.read(&mut subscriber);
        // A second time if it was admitted and evicted meanwhile.
        assert!(counts.evictions <= 2);
    }
}

#[test]
fn evicted_and_publisher_is_killed() {
    let net = Net::new("evicted and killed");
    let mut child = Child::spawn(&net, "writer");
    let mut subscriber = reliable(&net.node("reader"));
    child.expect("sent");
    child.kill();
    let (mut received, mut evictions) = (0, 0);
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(_) => received += 1,
            Err(Error::Detached { .. }) => evictions += 1,
            Err(Error::PeerLost { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let lost = subscriber.lost();
    assert_eq!((received + lost.detached, lost.total(), evictions), (BURST, lost.detached, 1));
}

/// An evicted reader that unsubscribes releases its slot; other readers are served there.
#[test]
fn evicted_and_unsubscribes() {
    let net = Net::new("evicted and unsubscribed");
    let mut publisher = writer(&net.node("writer"));
    let node = net.node("reader");
    for _ in 0..2 {
        let crowd: Vec<_> =
            (0..rnet::limits::MAX_READERS_PER_CHANNEL).map(|_| reliable(&node)).collect();
        publisher.wait_for_subscribers_timeout(crowd.len(), LONG).unwrap();
        burst(&mut publisher);
        assert_eq!(publisher.subscriber_count(), 0);
    }
    let mut subscriber = reliable(&node);
    let mut counts = ReadCounts::default();
    hears(&mut publisher, &mut subscriber, &mut counts);
}
