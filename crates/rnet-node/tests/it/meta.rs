//! Metadata of messages, and gaps that a publisher reports.

use crate::common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::inspect::{Observation, Observer};
use rnet::msgs::Image;
use rnet::schema::compile_text;
use rnet::{
    Dynamic, Error, KnownGap, LossCause, LossCounts, Meta, OnFull, Origin, Publisher,
    PublisherBuilder, Subscriber, SubscriberBuilder,
};

const NONE: Duration = Duration::ZERO;
/// Short enough for the log, the longest inline length, and one for the pool.
const LENGTHS: [usize; 5] = [0, 22, 4096, 4097, 100_000];

fn full(seq: u64) -> Meta {
    Meta::default()
        .with_origin(Origin { host: u64::MAX, publisher: 7, seq })
        .with_source_ns(-5)
        .with_correlation(u64::MAX - seq)
}

fn lost(subscriber: &Subscriber<[u8]>) -> LossCounts {
    subscriber.lost()
}

fn link(count: u64) -> LossCounts {
    LossCounts { link: count, ..LossCounts::default() }
}

fn pair(
    net: &Net,
    offers: impl FnOnce(PublisherBuilder<[u8]>) -> PublisherBuilder<[u8]>,
    asks: impl FnOnce(SubscriberBuilder<[u8]>) -> SubscriberBuilder<[u8]>,
) -> (Publisher<[u8]>, Subscriber<[u8]>) {
    let publisher = offers(net.node("a").publisher("/t")).open().unwrap();
    let subscriber = asks(net.node("b").subscriber("/t")).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    (publisher, subscriber)
}

/// Receives until no message is available.
fn drain(subscriber: &mut Subscriber<[u8]>) -> u64 {
    let mut count = 0;
    while subscriber.try_recv().unwrap().is_some() {
        count += 1;
    }
    count
}

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let mut publisher = net.node("child").publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    match role.as_str() {
        "gap in a message" => {
            publisher.send_with(b"last", Meta::default().with_gap(LossCause::Link, 3)).unwrap();
        }
        "gap alone" => publisher.publish_gap(LossCause::Link, 3).unwrap(),
        other => panic!("unknown role: {other}"),
    }
    tell("sent");
    // Until the process is killed.
    let _ = common::orders().recv();
}

#[test]
fn messages_of_every_length_carry_metadata() {
    let net = Net::new("meta lengths");
    let (mut publisher, mut subscriber) = pair(&net, |p| p, |s| s.keep_all());
    let mut kept = Vec::new();
    for (seq, len) in LENGTHS.into_iter().enumerate() {
        let (bytes, meta) = (vec![seq as u8; len], full(seq as u64));
        publisher.send_with(&bytes, meta).unwrap();
        publisher.send(&bytes).unwrap();
        publisher.send_with(&bytes, Meta::default()).unwrap();
        let mut loan = publisher.loan(len).unwrap();
        loan.copy_from_slice(&bytes);
        loan.send_with(meta).map_err(|(_, error)| error).unwrap();
        // Cut to what is used.
        let mut loan = publisher.loan_owned(len + 1).unwrap();
        publisher.loaned(&mut loan)[..len].copy_from_slice(&bytes);
        loan.truncate(len);
        publisher.send_loan_with(loan, meta).map_err(|(_, error)| error).unwrap();
        for expected in [meta, Meta::default(), Meta::default(), meta, meta] {
            let sample = subscriber.recv_timeout(LONG).unwrap();
            assert_eq!(&*sample, &bytes[..]);
            // Metadata must not change the alignment of the content read in place.
            assert!(sample.as_ptr().cast::<u64>().is_aligned());
            assert_eq!(sample.meta(), expected, "{len} bytes");
            assert_eq!(sample.origin(), expected.origin);
            assert_eq!(sample.source_ns(), expected.source_ns);
            assert_eq!(sample.correlation(), expected.correlation);
            kept.push((sample.into_owned(), expected));
        }
    }
    for (sample, expected) in kept {
        assert_eq!(sample.meta(), expected);
    }
    assert_eq!(lost(&subscriber), LossCounts::default());
}

#[test]
fn typed_messages_and_images_carry_metadata() {
    let net = Net::new("meta typed");
    let (a, b) = (net.node("a"), net.node("b"));
    let text = "syntax = \"proto3\"; message Level { double volt = 1; repeated double cells = 2; }";
    let schema = compile_text("level.proto", text).unwrap().schema("Level").unwrap();
    let mut levels = a.publisher::<Dynamic>("/level").schema(&schema).open().unwrap();
    let mut seen = b.subscriber::<Dynamic>("/level").schema(&schema).open().unwrap();
    levels.wait_for_subscribers_timeout(1, LONG).unwrap();
    // The second large message is encoded in place.
    for (seq, cells) in [1, 60_000, 60_000].into_iter().enumerate() {
        let json = serde_json::json!({ "cells": vec![1.5; cells] });
        let level = Dynamic::from(rnet::schema::Dynamic::from_json(&schema, &json).unwrap());
        levels.send_with(&level, full(seq as u64)).unwrap();
        let sample = seen.recv_timeout(LONG).unwrap();
        assert_eq!((&*sample, sample.meta()), (&level, full(seq as u64)));
    }
    let mut images = a.publisher::<Image>("/image").open().unwrap();
    let mut seen = b.subscriber::<Image>("/image").open().unwrap();
    images.wait_for_subscribers_timeout(1, LONG).unwrap();
    let header = Image::new(64, 48, "mono8").unwrap();
    let mut loan = images.loan_with(&header).unwrap();
    loan.fill(9);
    loan.send_with(full(1)).map_err(|(_, error)| error).unwrap();
    let image = seen.recv_timeout(LONG).unwrap();
    assert_eq!((image.meta(), image.data()), (full(1), &[9; 64 * 48][..]));
}

#[test]
fn gap_is_counted_by_cause_at_its_position() {
    let net = Net::new("gap causes");
    let (mut publisher, mut subscriber) = pair(&net, |p| p, |s| s.keep_all());
    for (at, cause) in LossCause::ALL.into_iter().enumerate() {
        let gap = Meta::default().with_gap(cause, 1 << at);
        publisher.send_with(&[0; 22], gap).unwrap();
        publisher.send_with(&[0; 22], gap).unwrap();
    }
    let first = subscriber.recv_timeout(LONG).unwrap();
    assert_eq!(first.meta().gap, Some(KnownGap { cause: LossCause::Overrun, size: 1 }));
    // Only what precedes the returned message.
    assert_eq!(lost(&subscriber), LossCounts { overrun: 1, ..LossCounts::default() });
    assert_eq!(drain(&mut subscriber), 7);
    let all = LossCounts { overrun: 2, link: 4, restart: 8, detached: 16 };
    assert_eq!((lost(&subscriber), drain(&mut subscriber)), (all, 0));
    assert_eq!(net.inspect().publishers[0].known_lost, all);
    // A later subscriber has no claim to earlier messages.
    let mut late = net.node("late").subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    publisher.send_with(&[0; 22], Meta::default().with_gap(LossCause::Link, 5)).unwrap();
    late.recv_timeout(LONG).unwrap();
    assert_eq!(drain(&mut late), 0);
    assert_eq!(lost(&late), link(5));
}

#[test]
fn a_gap_is_not_lost_with_its_message() {
    let net = Net::new("gap overrun");
    let (mut publisher, mut subscriber) =
        pair(&net, |p| p.log_len_bytes(1 << 14), |s| s.keep_all());
    let mut newest = net.node("newest").subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    for round in 1..=10 {
        for _ in 0..3 {
            publisher.send_with(&[0; 22], Meta::default().with_gap(LossCause::Link, 2)).unwrap();
        }
        for _ in 0..1000 {
            publisher.send(&[1; 1000]).unwrap();
        }
        let received = drain(&mut subscriber);
        let now = lost(&subscriber);
        assert_eq!(now.link, 6 * round, "{now}");
        assert_eq!(now.overrun, 1003 * round - subscriber.stats()[0].received, "{received}");
        // For a reader that takes only the newest, skipped messages are not losses.
        assert_eq!(newest.latest_timeout(LONG).unwrap().len(), 1000);
        assert_eq!(lost(&newest), link(6 * round));
    }
}

#[test]
fn latest_counts_gaps_of_a_closed_publisher() {
    let net = Net::new("gap left");
    let (mut publisher, mut subscriber) = pair(&net, |p| p, |s| s);
    publisher.publish_gap(LossCause::Link, 5).unwrap();
    publisher.send(&[0; 3]).unwrap();
    drop(publisher);
    eventually("the publisher is gone", || subscriber.publisher_count() == 0);
    assert_eq!(subscriber.latest_timeout(LONG).unwrap().len(), 3);
    assert_eq!(lost(&subscriber), link(5));
}

#[test]
fn gaps_alone_do_not_delay_a_timeout() {
    let net = Net::new("gap time-out");
    let (mut publisher, mut subscriber) = pair(&net, |p| p, |s| s);
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| subscriber.latest_timeout(Duration::from_millis(300)).map(drop));
        while !waiting.is_finished() {
            publisher.publish_gap(LossCause::Link, 1).unwrap();
        }
        assert_eq!(waiting.join().unwrap().unwrap_err().code(), "timeout");
    });
}

#[test]
fn gap_without_a_message_is_counted_by_sleeping_readers() {
    let net = Net::new("gap alone");
    let (mut publisher, mut subscriber) = pair(&net, |p| p, |s| s);
    let counted = || net.inspect().subscriptions[0].channels[0].lost;
    let reader = std::thread::spawn(move || {
        let len = subscriber.recv_timeout(LONG).unwrap().len();
        (len, lost(&subscriber))
    });
    eventually("the reader sleeps", || net.inspect().subscriptions[0].channels[0].asleep);
    publisher.publish_gap(LossCause::Link, 4).unwrap();
    eventually("the gap is counted", || counted() == link(4));
    publisher.send(&[0; 3]).unwrap();
    assert_eq!(reader.join().unwrap(), (3, link(4)));
}

#[test]
fn gap_of_an_unsent_message_is_not_counted() {
    let net = Net::new("gap refused");
    let offers = |p: PublisherBuilder<_>| p.reliable(OnFull::Refuse).log_len_bytes(1 << 14);
    let (mut publisher, mut subscriber) = pair(&net, offers, |s| s.reliable());
    let gap = Meta::default().with_gap(LossCause::Link, 7);
    while publisher.send(&[0; 1000]).is_ok() {}
    for _ in 0..3 {
        let error = publisher.send_with(&[0; 1000], gap).unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
    }
    drain(&mut subscriber);
    assert_eq!(lost(&subscriber), LossCounts::default());
    publisher.send_with(&[0; 1000], gap).unwrap();
    assert_eq!((drain(&mut subscriber), lost(&subscriber)), (1, link(7)));
}

#[test]
fn evicted_reader_counts_a_gap_once() {
    let net = Net::new("gap detached");
    let stall = OnFull::Detach { stall: Duration::from_millis(10) };
    let offers = |p: PublisherBuilder<_>| p.reliable(stall).log_len_bytes(1 << 14);
    let (mut publisher, mut subscriber) = pair(&net, offers, |s| s.reliable());
    let gap = Meta::default().with_gap(LossCause::Link, 2);
    for _ in 0..100 {
        publisher.send_with(&[0; 1000], gap).unwrap();
    }
    eventually("it is admitted again and has taken the last message", || {
        // The errors on the way are not part of this test.
        while subscriber.try_recv().is_ok_and(|sample| sample.is_some()) {}
        publisher.send(&[0; 1]).unwrap();
        matches!(subscriber.recv_timeout(NONE), Ok(sample) if sample.len() == 1)
    });
    assert_eq!(lost(&subscriber).link, 200);
}

#[test]
fn a_gap_of_a_publisher_that_is_killed_is_counted() {
    for role in ["gap in a message", "gap alone"] {
        let net = Net::new(role);
        let mut subscriber = net.node("b").subscriber::<[u8]>("/t").open().unwrap();
        let mut child = Child::spawn(&net, role);
        child.expect("sent");
        child.kill();
        loop {
            match subscriber.recv_timeout(LONG) {
                Ok(_) => {}
                Err(Error::PeerLost { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(lost(&subscriber), link(3), "{role}");
    }
}

#[test]
fn observers_see_metadata_and_skip_unknown_extensions() {
    let net = Net::new("meta observed");
    let mut publisher = net.node("a").publisher::<[u8]>("/t").open().unwrap();
    let info = net.inspect().publishers.remove(0);
    let mut observer = Observer::open(info.path, info.id, true).unwrap();
    let mut bytes = Vec::new();
    for (seq, len) in LENGTHS.into_iter().enumerate() {
        let meta = full(seq as u64).with_gap(LossCause::Link, 1);
        for (byte, expected) in [(3, meta), (4, Meta::default())] {
            if byte == 3 {
                publisher.send_with(&vec![byte; len], meta).unwrap();
            } else {
                publisher.send(&vec![byte; len]).unwrap();
            }
            assert!(matches!(observer.poll(&mut bytes), Observation::Message(_)));
            assert_eq!((&bytes, observer.message_meta()), (&vec![byte; len], expected));
        }
    }
    assert_eq!(observer.poll(&mut bytes), Observation::Nothing);
    assert_eq!((observer.message_meta(), observer.missed().total()), (Meta::default(), 0));
    assert_eq!(observer.known_lost(), link(LENGTHS.len() as u64));
}

/// Overwrites the extension words of the message with content `content` in a log: the word `at` bytes before
/// it.
fn spoil(path: &std::path::Path, content: &[u8; 8], at: u64, word: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut all = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut all, 0).unwrap();
    let found = all.chunks_exact(8).rposition(|chunk| chunk == content).unwrap() as u64 * 8;
    file.write_all_at(&word.to_le_bytes(), found - at).unwrap();
}

#[test]
fn contradictory_extensions_are_corrupt_and_unknown_ones_are_skipped() {
    // The message has one extension, a correlation id: its length is 24 bytes before the content, its head
    // 16.
    let long = |len: u64| 3 | len << 32;
    let cases = [
        (24, 8, Some(None)),     // no extension, and 16 more bytes of content
        (24, 32, Some(Some(5))), // the content is another extension of length 0
        (24, 0, None),
        (24, 20, None),
        (24, 40, None),
        (24, 1 << 20, None),
        (24, u64::MAX, None),
        (16, 77 | 8 << 32, Some(None)), // an unknown extension
        (16, long(0), Some(None)), // a correlation id of length 0, and an extension of length 0
        (16, long(9), None),
        (16, long(4096), None),
        (16, u64::MAX, None),
    ];
    for (case, (at, word, expected)) in cases.into_iter().enumerate() {
        let net = Net::new("spoilt words");
        let (mut publisher, mut subscriber) = pair(&net, |p| p, |s| s);
        let mut other = net.node("c").publisher::<[u8]>("/t").open().unwrap();
        other.wait_for_subscribers_timeout(1, LONG).unwrap();
        let info = net.inspect().publishers.into_iter().find(|p| p.node == "/a").unwrap();
        let mut observer = Observer::open(info.path.clone(), info.id, true).unwrap();
        let content = *b"\x01spo\x00\x00\x00\x00";
        publisher.send_with(&content, Meta::default().with_correlation(5)).unwrap();
        spoil(&info.path, &content, at, word);
        let result = subscriber.recv_timeout(LONG).map(|sample| sample.correlation());
        let seen = observer.poll(&mut Vec::new());
        if let Some(expected) = expected {
            assert_eq!(result, Ok(expected), "case {case}");
            assert!(matches!(seen, Observation::Message(_)), "case {case}: {seen:?}");
        } else {
            assert!(matches!(result, Err(Error::Corrupt { .. })), "case {case}: {result:?}");
            assert!(matches!(seen, Observation::Corrupt(_)), "case {case}: {seen:?}");
        }
        // Whatever the error, it affects only this channel.
        other.send(b"sound").unwrap();
        assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"sound");
    }
}
