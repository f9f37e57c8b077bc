//! Forwarding between hosts: messages with the stamp of another host, and sends that never wait.

use crate::common;

use std::time::Duration;

use common::{LONG, Net, eventually};
use rnet::bridge::{BridgeLoan, BridgePublisher, BridgePublisherBuilder};
use rnet::{Error, LossCause, Meta, Node, OnFull, Origin, Proxy, Publisher, PublisherBuilder};

/// One short enough for the log, and one for the pool.
const LENGTHS: [usize; 2] = [22, 100_000];
/// The shortest log.
const LOG_LEN_BYTES: u64 = 16 << 10;
const SECOND_NS: u64 = 1_000_000_000;

fn arm() -> Proxy {
    Proxy::new("robot2", "/arm", 7).unwrap()
}

fn of(seq: u64) -> Meta {
    Meta::default().with_origin(Origin { host: 3, publisher: 7, seq })
}

fn proxy(link: &Node) -> PublisherBuilder<[u8]> {
    link.publisher("/t").proxy(arm())
}

#[test]
fn a_forwarded_message_has_the_stamp_of_its_host() {
    let net = Net::new("forwarded stamps");
    let (link, node) = (net.node("link"), net.node("node"));
    let mut publisher = proxy(&link).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for (seq, len) in LENGTHS.into_iter().enumerate() {
        let (bytes, first) = (vec![seq as u8; len], 4 * seq as u64);
        let sent_ns = rnet::now_ns() - SECOND_NS;
        publisher.forward(&bytes, of(first), sent_ns).unwrap();
        let mut loan = publisher.loan(len).unwrap();
        loan.copy_from_slice(&bytes);
        loan.forward(of(first + 1), sent_ns).map_err(|(_, error)| error).unwrap();
        let mut loan = publisher.loan_owned(len).unwrap();
        publisher.loaned(&mut loan).copy_from_slice(&bytes);
        publisher.forward_loan(loan, of(first + 2), sent_ns).map_err(|(_, error)| error).unwrap();
        for seq in first..first + 3 {
            let sample = subscriber.recv_timeout(LONG).unwrap();
            assert_eq!((&*sample, sample.meta(), sample.sent_ns()), (&bytes[..], of(seq), sent_ns));
            assert!(sample.latency() >= Duration::from_secs(1));
        }
        // A stamp in the future counts as sent now.
        publisher.forward(&bytes, of(first + 3), u64::MAX).unwrap();
        let sent_ns = subscriber.recv_timeout(LONG).unwrap().sent_ns();
        assert!(sent_ns <= rnet::now_ns());
    }
    // Between them are messages of the own host.
    publisher.send_with(b"own", of(9)).unwrap();
    publisher.send(b"own").unwrap();
    publisher.forward(b"old", of(10), 1).unwrap();
    let stamps = [(); 3].map(|()| subscriber.recv_timeout(LONG).unwrap().sent_ns());
    assert!(stamps[0] > SECOND_NS && stamps[1] >= stamps[0] && stamps[2] == 1, "{stamps:?}");
    assert!(net.inspect().subscriptions[0].channels[0].max_latency_ns >= SECOND_NS);
}

/// A log with forwarded and other messages that grows, fills up, and shrinks again.
#[test]
fn forwarded_messages_fill_a_log_like_others() {
    let net = Net::new("forwarded many");
    let (link, node) = (net.node("link"), net.node("node"));
    let mut publisher = proxy(&link).reliable(OnFull::Detach { stall: LONG }).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut next = 0;
    for round in 0..500_u64 {
        for at in 0..100 {
            let seq = round * 100 + at;
            let len = (seq * 37 % 4000) as usize;
            let mut bytes = vec![seq as u8; 8 + len];
            bytes[..8].copy_from_slice(&seq.to_le_bytes());
            match seq % 3 {
                0 => publisher.send(&bytes).unwrap(),
                1 => publisher.forward(&bytes, of(seq), seq).unwrap(),
                _ => publisher.forward_uncommitted(&bytes, of(seq), seq).unwrap(),
            }
        }
        publisher.commit();
        while let Some(sample) = subscriber.try_recv().unwrap() {
            let seq = u64::from_le_bytes(sample[..8].try_into().unwrap());
            assert_eq!((seq, sample.len()), (next, 8 + (seq * 37 % 4000) as usize));
            assert!(sample[8..].iter().all(|byte| *byte == seq as u8));
            assert!(seq % 3 == 0 || sample.sent_ns() == seq);
            next += 1;
        }
    }
    assert_eq!(next, 50_000);
}

/// Messages of one commit become visible together, and no later than messages sent after them.
#[test]
fn forwarded_messages_become_visible_at_commit() {
    let net = Net::new("forwarded along");
    let (link, node) = (net.node("link"), net.node("node"));
    let waits = OnFull::Detach { stall: LONG };
    let mut publisher = proxy(&link).reliable(waits).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let seq_of = |meta: Meta| meta.origin.map(|from| from.seq);
    let mut come = |count: usize| {
        let seqs: Vec<_> =
            (0..count).map(|_| seq_of(subscriber.recv_timeout(LONG).unwrap().meta())).collect();
        assert!(subscriber.try_recv().unwrap().is_none());
        seqs
    };
    let along = |publisher: &mut Publisher<[u8]>, seq| {
        publisher.forward_uncommitted(b"some bytes", of(seq), SECOND_NS).unwrap();
    };
    along(&mut publisher, 0);
    along(&mut publisher, 1);
    assert_eq!(come(0), []);
    publisher.commit();
    publisher.commit();
    assert_eq!(come(2), [Some(0), Some(1)]);
    along(&mut publisher, 2);
    publisher.send(b"own").unwrap();
    // It does not revoke messages sent since.
    publisher.commit();
    assert_eq!(come(2), [Some(2), None]);
    along(&mut publisher, 3);
    publisher.forward_uncommitted(&[7; 100_000], of(4), SECOND_NS).unwrap();
    assert_eq!(come(2), [Some(3), Some(4)]);
    along(&mut publisher, 5);
    publisher.publish_gap(LossCause::Link, 3).unwrap();
    assert_eq!(come(1), [Some(5)]);
    assert_eq!(subscriber.lost().link, 3);
    // A reader does not wait for the end of a large group.
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    (0..100).for_each(|seq| along(&mut publisher, seq));
    assert_eq!(subscriber.recv_timeout(LONG).unwrap().meta(), of(0));
}

#[test]
fn lifespan_counts_from_the_stamp() {
    let net = Net::new("forwarded lifespan");
    let (link, node) = (net.node("link"), net.node("node"));
    let mut publisher = proxy(&link).lifespan(Duration::from_secs(30)).open().unwrap();
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let old_ns = rnet::now_ns() - 100 * SECOND_NS;
    publisher.forward(b"old", of(0), old_ns).unwrap();
    publisher.forward(b"old", of(1), old_ns).unwrap();
    publisher.forward(b"new", of(2), rnet::now_ns()).unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"new");
    publisher.forward(b"old", of(3), old_ns).unwrap();
    assert!(subscriber.try_recv().unwrap().is_none());
    let stats = subscriber.stats().remove(0);
    assert_eq!((stats.expired, stats.received, stats.lost.total()), (3, 1, 0));
}

#[test]
fn the_newest_of_two_publishers_is_the_one_that_was_sent_last() {
    let net = Net::new("forwarded latest");
    let (link, node) = (net.node("link"), net.node("node"));
    let (mut remote, mut own) =
        (proxy(&link).open().unwrap(), node.publisher::<[u8]>("/t").open().unwrap());
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    subscriber.wait_for_publishers_timeout(2, LONG).unwrap();
    let before_ns = rnet::now_ns();
    own.send(b"own").unwrap();
    remote.forward(b"remote", of(0), before_ns).unwrap();
    assert_eq!(&*subscriber.latest_timeout(LONG).unwrap(), b"own");
}

/// Fills a publisher until the first refusal. Returns how many messages were sent.
fn fill(publisher: &mut Publisher<[u8]>, len: usize) -> (u64, Error) {
    let message = vec![7; len];
    for sent in 0..1_000_000 {
        if let Err(error) = publisher.forward(&message, of(sent), 1) {
            return (sent, error);
        }
    }
    panic!("the publisher never became full");
}

#[test]
fn nonblocking_send_is_refused_at_once() {
    let net = Net::new("forwarded full");
    let (link, node) = (net.node("link"), net.node("node"));
    // A wait would exceed the test's time limit.
    let long = Duration::from_secs(3600);
    for on_full in [OnFull::Refuse, OnFull::Wait(long), OnFull::Detach { stall: long }] {
        for len in LENGTHS {
            let mut publisher = proxy(&link)
                .reliable(on_full)
                .log_len_bytes(LOG_LEN_BYTES)
                .large_depth(2)
                .pool_limit_bytes(4 << 20)
                .open()
                .unwrap();
            publisher.set_waiting(false);
            let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            let (sent, error) = fill(&mut publisher, len);
            assert!(matches!(&error, Error::Full { reader_node, .. } if &**reader_node == "/node"));
            assert!(matches!(
                publisher.send_with(&vec![7; len], of(sent)),
                Err(Error::Full { .. })
            ));
            for seq in 0..sent {
                let sample = subscriber.recv_timeout(LONG).unwrap();
                assert_eq!((sample.len(), sample.meta()), (len, of(seq)));
            }
            assert!(subscriber.try_recv().unwrap().is_none());
            publisher.forward(&vec![8; len], of(sent), 1).unwrap();
            assert_eq!(subscriber.recv_timeout(LONG).unwrap().meta(), of(sent));
            assert_eq!(subscriber.lost().total(), 0);
        }
    }
}

/// A loan refused by a full log stays valid, and is sent once the log has capacity.
#[test]
fn a_loan_that_is_refused_is_kept() {
    let net = Net::new("forwarded loan");
    let (link, node) = (net.node("link"), net.node("node"));
    let mut publisher = proxy(&link)
        .reliable(OnFull::Detach { stall: Duration::from_secs(3600) })
        .log_len_bytes(LOG_LEN_BYTES)
        .open()
        .unwrap();
    publisher.set_waiting(false);
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut loan = publisher.loan_owned(100_000).unwrap();
    publisher.loaned(&mut loan).fill(9);
    let (sent, _) = fill(&mut publisher, 22);
    let (loan, error) = publisher.forward_loan(loan, of(sent), 5).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    for _ in 0..sent {
        subscriber.recv_timeout(LONG).unwrap();
    }
    assert!(subscriber.try_recv().unwrap().is_none());
    publisher.forward_loan(loan, of(sent), 5).map_err(|(_, error)| error).unwrap();
    let sample = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!((sample.meta(), sample.sent_ns()), (of(sent), 5));
    assert!(sample.len() == 100_000 && sample.iter().all(|byte| *byte == 9));
}

#[test]
fn nonblocking_send_evicts_stopped_readers() {
    let net = Net::new("forwarded detach");
    let (link, node) = (net.node("link"), net.node("node"));
    for len in LENGTHS {
        let mut publisher = proxy(&link)
            .reliable(OnFull::Detach { stall: Duration::from_millis(20) })
            .log_len_bytes(LOG_LEN_BYTES)
            .large_depth(2)
            .pool_limit_bytes(4 << 20)
            .open()
            .unwrap();
        publisher.set_waiting(false);
        let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        let (sent, error) = fill(&mut publisher, len);
        assert!(matches!(error, Error::Full { .. }), "{error}");
        let message = vec![7; len];
        eventually("the reader is evicted", || publisher.forward(&message, of(sent), 1).is_ok());
        let (_, error) = common::until_error(&mut subscriber);
        assert!(matches!(&error, Error::Detached { publisher_node, .. }
            if publisher_node == "@robot2/arm"));
    }
}
