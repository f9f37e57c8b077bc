//! Processes die at any instruction; other processes are not affected.

use crate::common;

use std::time::{Duration, Instant};

use common::{Child, LONG, Net, eventually, role, tell, until_error};
use rnet::{Error, MatchEvent, OnFull};

/// Number of large messages in the role `large`.
const LARGE: u8 = 10;

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    let wait = || drop(orders.recv());
    match role.as_str() {
        "node" => {
            let _node = net.node("victim");
            tell("ready");
            wait();
        }
        // Sends numbers without end.
        "flood" => {
            let node = net.node("victim");
            let mut publisher = node
                .publisher::<[u8]>("/t")
                .reliable(OnFull::Wait(Duration::from_secs(60)))
                .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
                .open()
                .unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            for i in 0_u64.. {
                publisher.send(&i.to_le_bytes()).unwrap();
            }
        }
        // Sends a hundred numbers and keeps its publisher open.
        "hundred" => {
            let node = net.node("victim");
            let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
            for i in 0..100_u64 {
                publisher.send(&i.to_le_bytes()).unwrap();
            }
            tell("ready");
            wait();
        }
        // The same, kept for late joiners.
        "kept" => {
            let node = net.node("victim");
            let mut publisher =
                node.publisher::<[u8]>("/kept").transient_local(100).open().unwrap();
            for i in 0..100_u64 {
                publisher.send(&i.to_le_bytes()).unwrap();
            }
            tell("ready");
            wait();
        }
        // Sends large messages to a reliable reader and keeps its publisher open.
        "large" => {
            let node = net.node("victim");
            let mut publisher =
                node.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            for i in 0..LARGE {
                publisher.send(&[i; 100_000]).unwrap();
            }
            tell("ready");
            wait();
        }
        // Reads until the end of the stream, and reports its counts.
        "stopped" => {
            let node = net.node("victim");
            let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
            subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
            let mut next = 0;
            loop {
                match subscriber.recv_timeout(LONG) {
                    Ok(end) if end.is_empty() => break,
                    Ok(sample) => {
                        let number = number(&sample[..8]);
                        assert!(number >= next, "{number} after {next}");
                        next = number + 1;
                        if number == 0 {
                            tell("reading");
                        }
                    }
                    Err(Error::Detached { .. }) => tell("detached"),
                    Err(error) => panic!("{error:?}"),
                }
            }
            let stats = subscriber.stats().remove(0);
            let lost = stats.lost;
            tell(&format!("{} {} {}", stats.received, lost.detached, lost.total()));
            wait();
        }
        // Takes one message, keeps it, and stops reading.
        "holder" | "leaver" => {
            let node = net.node("victim");
            let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
            subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
            tell("ready");
            let held: Vec<_> =
                (0..4).map(|_| subscriber.recv_timeout(LONG).unwrap().into_owned()).collect();
            if role == "leaver" {
                drop(subscriber);
            }
            tell("holding");
            wait();
            drop(held);
        }
        other => panic!("unknown role: {other}"),
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn folders(net: &Net) -> usize {
    std::fs::read_dir(net.base().join(format!("rnet-{}-t/nodes", uid()))).unwrap().count()
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[test]
fn kill_a_publisher_in_mid_stream() {
    let net = Net::new("kill publisher");
    let node = net.node("survivor");
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let (tell, events) = std::sync::mpsc::channel();
    subscriber.on_match(move |event| tell.send(event.clone()).unwrap()).detach();
    let next_event = || events.recv_timeout(LONG).unwrap();
    for _ in 0..5 {
        let mut child = Child::spawn(&net, "flood");
        child.expect("ready");
        assert!(matches!(next_event(), MatchEvent::Matched(peer) if peer.node == "/victim"));
        for i in 0..500 {
            assert_eq!(number(&subscriber.recv_timeout(LONG).unwrap()), i);
        }
        child.kill();
        // All committed messages are received, then the error, and then nothing.
        let (rest, error) = until_error(&mut subscriber);
        for (i, bytes) in (500..).zip(&rest) {
            assert_eq!(number(bytes), i);
        }
        assert!(
            matches!(&error, Error::PeerLost { topic, node } if topic == "/t" && node == "/victim")
        );
        assert!(matches!(next_event(), MatchEvent::Lost(peer) if peer.node == "/victim"));
        assert_eq!(subscriber.publisher_count(), 0);
        assert!(subscriber.try_recv().unwrap().is_none());
        assert_eq!(subscriber.lost().total(), 0);
        // The next node with that name finds its place free and is matched again.
        eventually("the dead node's folder is swept", || folders(&net) == 1);
    }
    let stats = subscriber.stats();
    assert_eq!(stats.len(), 5);
    assert!(stats.iter().all(|s| !s.connected && s.received >= 500));
}

/// A publisher that sends all the time does not hide the loss of another one.
#[test]
fn kill_a_publisher_beside_a_busy_one() {
    let net = Net::new("kill beside busy");
    let node = net.node("survivor");
    let mut busy = node.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "flood");
    // Its reader is best effort, so the publisher never waits.
    child.expect("ready");
    let mut heard_it = false;
    while !heard_it {
        busy.send(&[0]).unwrap();
        heard_it = subscriber.recv_timeout(LONG).unwrap().len() == 8;
    }
    child.kill();
    let mut error = None;
    eventually("the loss is reported although messages are always available", || {
        busy.send(&[0]).unwrap();
        busy.send(&[0]).unwrap();
        error = subscriber.recv_timeout(LONG).map(drop).err();
        error.is_some()
    });
    assert!(matches!(error, Some(Error::PeerLost { .. })), "{error:?}");
    assert_eq!(subscriber.publisher_count(), 1);
}

/// The reader is bound but not admitted: it has no claim to earlier messages.
#[test]
fn kill_a_publisher_before_it_admits() {
    let net = Net::new("kill before admission");
    let node = net.node("survivor");
    let mut child = Child::spawn(&net, "hundred");
    child.expect("ready");
    child.stop();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let short = Duration::from_millis(20);
    assert!(matches!(subscriber.wait_for_publishers_timeout(1, short), Err(Error::Timeout { .. })));
    child.kill();
    let (got, error) = until_error(&mut subscriber);
    assert!(got.is_empty(), "{} messages from before it joined", got.len());
    assert!(matches!(error, Error::PeerLost { .. }));
    assert_eq!(subscriber.lost().total(), 0);
}

#[test]
fn kill_a_reader_that_holds_the_publisher_back() {
    let net = Net::new("kill reader");
    let node = net.node("survivor");
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(Duration::from_secs(50)))
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .pool_limit_bytes(256 << 10)
        .open()
        .unwrap();
    let mut child = Child::spawn(&net, "holder");
    child.expect("ready");
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // The pool has capacity for twelve; then the publisher waits for a reader that never reads.
    let sender = std::thread::spawn(move || {
        for i in 0..50_u8 {
            publisher.send(&[i; 10_000]).unwrap();
        }
        publisher
    });
    child.expect("holding");
    eventually("the publisher waits", || {
        net.inspect().publishers.first().is_some_and(|p| p.full > 0)
    });
    child.kill();
    let mut publisher = sender.join().unwrap();
    eventually("the reader is gone", || publisher.subscriber_count() == 0);
    // The pool has regained all the chunks that the reader held.
    for i in 0..50_u8 {
        publisher.send(&[i; 60_000]).unwrap();
    }
    eventually("the dead node's folder is swept", || folders(&net) == 1);
}

/// Samples that outlived their subscriber are released when their process dies.
#[test]
fn kill_a_node_that_had_unsubscribed_and_held_samples() {
    let net = Net::new("kill holder");
    let node = net.node("survivor");
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(Duration::from_secs(50)))
        .pool_limit_bytes(100 << 10)
        .open()
        .unwrap();
    for _ in 0..3 {
        let mut child = Child::spawn(&net, "leaver");
        child.expect("ready");
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        for i in 0..4_u8 {
            publisher.send(&[i; 10_000]).unwrap();
        }
        child.expect("holding");
        eventually("it has unsubscribed", || publisher.subscriber_count() == 0);
        // Four of the five chunks that fit are still pinned.
        let error = publisher.send(&[0; 60_000]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
        child.kill();
        eventually("its pins are released", || publisher.send(&[0; 60_000]).is_ok());
    }
}

#[test]
fn a_name_is_taken_while_its_node_lives_and_free_when_it_is_killed() {
    let net = Net::new("names");
    let mut child = Child::spawn(&net, "node");
    child.expect("ready");
    let error = net.builder("victim").open().unwrap_err();
    assert_eq!(error, Error::NameTaken { node: "/victim".to_owned(), pid: Some(child.pid()) });
    assert!(error.to_string().contains(&child.pid().to_string()));
    child.kill();
    // The name is free at once: no detection or sweep is needed first.
    let victim = net.node("victim");
    let error = net.builder("/victim").open().unwrap_err();
    assert_eq!(
        error,
        Error::NameTaken { node: "/victim".to_owned(), pid: Some(std::process::id()) }
    );
    drop(victim);
    drop(net.node("victim"));
    assert_eq!(folders(&net), 0, "the dead node's folder is swept as well");
}

#[test]
fn nodes_get_events_of_each_other() {
    use rnet::NodeEvent::{Died, Joined, Left};
    let net = Net::new("node events");
    let node = net.node("survivor");
    let (tell, events) = std::sync::mpsc::channel();
    node.on_node(move |event| tell.send(event.clone()).unwrap()).detach();
    let mut child = Child::spawn(&net, "node");
    child.expect("ready");
    let next = || events.recv_timeout(LONG).unwrap();
    assert_eq!(next(), Joined("/victim".to_owned()));
    child.kill();
    assert_eq!(next(), Died("/victim".to_owned()));
    let guest = net.node("guest");
    assert_eq!(next(), Joined("/guest".to_owned()));
    drop(guest);
    assert_eq!(next(), Left("/guest".to_owned()));
    // A process that exits without closing its node counts as dead.
    let mut child = Child::spawn(&net, "node");
    child.expect("ready");
    assert_eq!(next(), Joined("/victim".to_owned()));
    child.finish();
    assert_eq!(next(), Died("/victim".to_owned()));
}

/// After a publisher closes, its messages can still be read.
#[test]
fn messages_sent_before_closing_are_read_after() {
    let net = Net::new("close");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for i in 0..100_u64 {
        publisher.send(&i.to_le_bytes()).unwrap();
    }
    drop(publisher);
    drop(a);
    for i in 0..100 {
        assert_eq!(number(&subscriber.recv_timeout(LONG).unwrap()), i);
    }
    let short = Duration::from_millis(20);
    assert!(matches!(subscriber.recv_timeout(short), Err(Error::Timeout { .. })));
    assert_eq!(subscriber.publisher_count(), 0);
}

/// As above, for messages in chunks. Their memory belongs to the publisher; its node keeps it until the
/// reliable reader has taken them.
#[test]
fn large_messages_sent_before_closing_are_read_after() {
    let net = Net::new("close large");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").reliable(OnFull::Refuse).open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[5; 100_000]).unwrap();
    drop(publisher);
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [5; 100_000]);
    drop(a);
    assert_eq!(subscriber.lost().total(), 0);
}

/// A stopped process looks alive; only its missing progress reveals it.
#[test]
fn stopped_reliable_reader_is_evicted_and_counts_losses() {
    stop_a_reader(8, 20_000);
}

/// Their memory is reused while the reader still has references to it.
#[test]
fn stopped_reader_of_large_messages_is_evicted() {
    stop_a_reader(10_000, 2000);
}

/// Messages of `len` bytes; `more` of them after the reader was evicted.
fn stop_a_reader(len: usize, more: u64) {
    let message = |number: u64| {
        let mut bytes = vec![0; len];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let net = Net::new("stopped reader");
    let node = net.node("survivor");
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Detach { stall: Duration::from_millis(50) })
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .pool_limit_bytes(256 << 10)
        .open()
        .unwrap();
    let mut child = Child::spawn(&net, "stopped");
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&message(0)).unwrap();
    child.expect("reading");
    child.stop();
    let mut number = 1_u64;
    while publisher.subscriber_count() > 0 {
        publisher.send(&message(number)).unwrap();
        number += 1;
    }
    // The reader no longer delays the publisher, which fills its log several times.
    for number in number..number + more {
        publisher.send(&message(number)).unwrap();
    }
    assert_eq!(net.inspect().publishers[0].detached, 1);
    child.resume();
    child.expect("detached");
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(&[]).unwrap();
    let counts: Vec<u64> = child.hear().split(' ').map(|n| n.parse().unwrap()).collect();
    let [received, detached, lost] = counts[..] else { panic!("{counts:?}") };
    assert_eq!(received + detached, publisher.sent(), "{counts:?}");
    assert!(detached > 0 && lost == detached, "{counts:?}");
}

/// Their memory is removed with the publisher, so some can no longer be read; all are counted.
#[test]
fn unread_large_messages_of_a_killed_publisher_are_counted() {
    for swept_first in [false, true] {
        let net = Net::new("kill large");
        let node = net.node("survivor");
        let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
        let mut child = Child::spawn(&net, "large");
        child.expect("ready");
        for i in 0..3 {
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [i; 100_000]);
        }
        child.kill();
        if swept_first {
            eventually("the dead node's folder is swept", || folders(&net) == 1);
        }
        let (rest, error) = until_error(&mut subscriber);
        assert!(matches!(error, Error::PeerLost { .. }), "{error:?}");
        for (i, bytes) in (3..).zip(&rest) {
            assert_eq!(*bytes, [i; 100_000]);
        }
        let stats = subscriber.stats().remove(0);
        assert_eq!(stats.received, 3 + rest.len() as u64);
        assert_eq!(stats.received + stats.lost.restart, u64::from(LARGE), "{stats:?}");
        assert_eq!(stats.lost.total(), stats.lost.restart, "{stats:?}");
    }
}

/// Prints the latency. The assertion is the order: all sent messages, then the loss, once.
#[test]
fn death_is_reported_after_all_sent_messages() {
    let net = Net::new("news");
    let node = net.node("survivor");
    let mut times = Vec::new();
    for _ in 0..10 {
        let mut subscriber =
            node.subscriber::<[u8]>("/kept").transient_local().keep_all().open().unwrap();
        let mut child = Child::spawn(&net, "kept");
        child.expect("ready");
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        let killed = Instant::now();
        child.kill();
        let (got, error) = until_error(&mut subscriber);
        times.push(killed.elapsed());
        assert_eq!(got.iter().map(|b| number(b)).collect::<Vec<_>>(), Vec::from_iter(0..100));
        assert!(matches!(error, Error::PeerLost { .. }), "{error:?}");
        assert!(subscriber.try_recv().unwrap().is_none());
        eventually("the dead node's folder is swept", || folders(&net) == 1);
    }
    times.sort_unstable();
    eprintln!("from SIGKILL to PeerLost: {times:?}");
}
