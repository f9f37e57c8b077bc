//! What a proxy stores and keeps, without a network.

use std::path::PathBuf;

use rnet::{Node, OnFull, Subscriber};

use super::*;
use crate::link::positions::PositionTable;

const LONG: std::time::Duration = std::time::Duration::from_secs(30);

/// A directory, a node in it, and a publisher with little capacity for its one reader.
fn matched(test: &str) -> (PathBuf, Node, Publisher<[u8]>, Subscriber<[u8]>) {
    let dir = PathBuf::from(format!("/dev/shm/rnet-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let node = Node::builder("/link").domain("t").dir(&dir).state_dir(&dir).open().unwrap();
    let reader = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(1 << 14)
        .open()
        .unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    (dir, node, publisher, reader)
}

/// Delivers the first byte of a large message.
fn begin(proxy: &mut Proxy, seq: u64, total: u64) {
    proxy.add_fragment(&fragment(seq, total, 0, b"x"), 1).unwrap().unwrap();
}

fn fragment(seq: u64, total: u64, offset: u64, bytes: &[u8]) -> Fragment<'_> {
    let (channel, sent_ns, meta, compressed) = (1, 1, Meta::default(), false);
    Fragment { channel, seq, sent_ns, meta, total, offset, bytes, compressed }
}

/// A killed link has no time to store its position, so the position of published messages is stored
/// already.
#[test]
fn position_is_stored_with_each_message_and_gap() {
    let (dir, node, publisher, mut reader) = matched("proxy");
    let host = HostId(7);
    let positions = PositionTable::open(&dir).unwrap();
    let slot = positions.claim(host, 1).slot;
    let mut proxy = Proxy::new(publisher, (host, 1), None, slot, 1 << 20);
    // A process that takes over from one killed at this moment continues here.
    let left = || PositionTable::open(&dir).unwrap().claim(host, 1).next_seq;
    assert_eq!(left(), None);
    proxy.gap(40, 0, LossCause::Link);
    assert_eq!(left(), Some(40));
    // The messages of a frame become visible together, a few at a time; invisible ones are not stored.
    let mut seen = 40;
    for seq in 40..75 {
        proxy.publish(seq, 1, Meta::default(), &[0; 300], None).unwrap();
        while let Some(message) = reader.try_recv().unwrap() {
            seen = message.origin().unwrap().seq + 1;
        }
        assert_eq!(left(), Some(seen));
    }
    assert!(seen > 60, "{seen}");
    proxy.commit();
    assert_eq!(left(), Some(75));
    proxy.gap(75, 25, LossCause::Overrun);
    assert_eq!(left(), Some(100));
    // Messages that wait for capacity were not published.
    let mut seq = 100;
    while !proxy.is_blocked() {
        proxy.publish(seq, 1, Meta::default(), &[0; 1000], None).unwrap();
        seq += 1;
    }
    assert_eq!(left(), Some(seq - 1));
    proxy.gap(seq, 10, LossCause::Link);
    assert_eq!(left(), Some(seq - 1));
    while reader.try_recv().unwrap().is_some() {}
    proxy.retry().unwrap();
    assert_eq!((proxy.is_blocked(), left()), (false, Some(seq + 10)));
    // Large messages; the second is reassembled in memory of the publisher.
    let large = vec![0; 1 << 20];
    for seq in [seq + 10, seq + 11] {
        proxy.add_fragment(&fragment(seq, 1 << 20, 0, &large), 1).unwrap().unwrap();
        assert_eq!((proxy.is_blocked(), left()), (false, Some(seq + 1)));
    }
    proxy.reset_position();
    assert_eq!(left(), None);
    // Its slot belongs to another proxy by now.
    positions.release(proxy.take_slot());
    proxy.publish(500, 1, Meta::default(), b"of a frame being read", None).unwrap();
    assert_eq!(left(), None);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Freed capacity goes to waiting messages before those of a new frame, which would otherwise wait for the
/// lane's thread behind them.
#[test]
fn arriving_frame_publishes_waiting_messages_before_its_own() {
    let (dir, node, publisher, mut reader) = matched("retry");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 20);
    let (mut seq, mut seen, mut now_ns) = (0, Vec::new(), 1_000_000_000);
    for _ in 0..50 {
        while !proxy.is_blocked() {
            proxy.publish(seq, 1, Meta::default(), &[0; 1000], None).unwrap();
            seq += 1;
        }
        while let Some(message) = reader.try_recv().unwrap() {
            seen.push(message.origin().unwrap().seq);
        }
        now_ns += RETRY_INTERVAL_NS;
        assert!(proxy.may_retry(now_ns));
        assert!(
            !proxy.may_retry(now_ns + RETRY_INTERVAL_NS - 1),
            "a full pool takes a while to say so"
        );
        proxy.retry().unwrap();
        assert!(!proxy.is_blocked());
    }
    proxy.commit();
    while let Some(message) = reader.try_recv().unwrap() {
        seen.push(message.origin().unwrap().seq);
    }
    assert_eq!(seen, (0..seq).collect::<Vec<_>>());
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// However often another link begins messages that it does not continue, and whatever it reports as
/// missing.
#[test]
fn dropped_messages_take_no_memory() {
    let (dir, node, publisher, mut reader) = matched("given-up");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 30);
    let mut seq = 0;
    while !proxy.is_blocked() {
        proxy.publish(seq, 1, Meta::default(), &[0; 1000], None).unwrap();
        seq += 1;
    }
    let begun = seq;
    for _ in 0..1000 {
        begin(&mut proxy, seq, 1 << 30);
        proxy.drop_large(seq + 1);
        assert!(
            !proxy.is_expected(seq) && !proxy.is_expected(seq + 1) && proxy.is_expected(seq + 2)
        );
        assert_eq!(proxy.partial_len_bytes(false), 0);
        seq += 2;
        for cause in LossCause::ALL {
            proxy.gap(seq, 1, cause);
            seq += 1;
        }
    }
    assert!(proxy.waiting.len() <= 2, "{}", proxy.waiting.len());
    let mut read = 0;
    while proxy.is_blocked() || read < begun {
        read += u64::from(reader.try_recv().unwrap().is_some());
        proxy.retry().unwrap();
    }
    let lost = proxy.stats.lost;
    assert_eq!(lost.parts().map(|(_, count)| count), [1000, 3000, 1000, 1000]);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A message that arrives in place of the rest ends the incomplete one, which is lost; an earlier number is
/// unexpected.
#[test]
fn number_before_dropped_message_counts_as_repeated() {
    let (dir, node, publisher, mut reader) = matched("before");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 20);
    begin(&mut proxy, 10, 1 << 20);
    for seq in [5, 10] {
        proxy.publish(seq, 1, Meta::default(), b"before", None).unwrap();
    }
    proxy.publish(11, 1, Meta::default(), b"behind", None).unwrap();
    proxy.commit();
    let message = reader.recv_timeout(LONG).unwrap();
    assert_eq!((&*message, message.origin().unwrap().seq), (&b"behind"[..], 11));
    assert!(reader.try_recv().unwrap().is_none());
    assert_eq!(proxy.stats.repeated, 2);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Subscribers read a large message where its fragments were put: it is copied once.
#[test]
fn fragments_use_publisher_memory_and_return_it() {
    const LEN: u64 = 1 << 20;
    let (dir, node, publisher, mut reader) = matched("lent");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 24);
    let send = |proxy: &mut Proxy, seq: u64| {
        for offset in (0..LEN).step_by(1 << 16) {
            let bytes = [(seq + offset / (1 << 16)) as u8; 1 << 16];
            proxy.add_fragment(&fragment(seq, LEN, offset, &bytes), 1).unwrap().unwrap();
        }
    };
    let read = |reader: &mut Subscriber<[u8]>, seq: u64| {
        let message = reader.recv_timeout(LONG).unwrap();
        assert_eq!((message.origin().unwrap().seq, message.len() as u64), (seq, LEN));
        let is_whole = |(at, byte): (usize, &u8)| *byte == (seq + at as u64 / (1 << 16)) as u8;
        assert!(message.iter().enumerate().all(is_whole), "{seq}");
        // The reader releases the message when it looks for the next one.
        assert!(reader.try_recv().unwrap().is_none());
    };
    // While no memory is idle, an announced message gets no loan.
    let memory_bytes = |proxy: &Proxy| proxy.publisher.as_ref().unwrap().memory_bytes();
    let least = memory_bytes(&proxy);
    for seq in 0..100 {
        begin(&mut proxy, seq, LEN);
    }
    assert_eq!(memory_bytes(&proxy), least);
    send(&mut proxy, 100);
    read(&mut reader, 100);
    // However often a message that has begun is dropped, the next one reuses its memory.
    let before = memory_bytes(&proxy);
    for seq in 100..200 {
        begin(&mut proxy, 3 * seq, LEN);
        assert!(proxy.large.loan.is_some());
        match seq % 4 {
            0 => begin(&mut proxy, 3 * seq + 1, 2 * LEN),
            1 => proxy.interrupt(),
            2 => proxy.drop_large(3 * seq + 1),
            _ => begin(&mut proxy, 3 * seq + 1, LEN),
        }
        send(&mut proxy, 3 * seq + 2);
        assert_eq!(proxy.partial_len_bytes(false), 0);
        read(&mut reader, 3 * seq + 2);
    }
    // A message longer than the idle memory gets no loan either.
    for seq in 600..700 {
        begin(&mut proxy, seq, LEN + (seq << 12));
    }
    proxy.interrupt();
    assert_eq!(memory_bytes(&proxy), before);
    let lost = proxy.stats.lost;
    // A complete message without capacity waits and is not lost.
    let last = LEN - (1 << 16);
    for offset in (0..last).step_by(1 << 16) {
        let bytes = [(offset / (1 << 16)) as u8; 1 << 16];
        proxy.add_fragment(&fragment(1024, LEN, offset, &bytes), 1).unwrap().unwrap();
    }
    let mut small = 0;
    while proxy.publisher.as_mut().unwrap().send(b"small").is_ok() {
        small += 1;
    }
    let bytes = [(last / (1 << 16)) as u8; 1 << 16];
    proxy.add_fragment(&fragment(1024, LEN, last, &bytes), 1).unwrap().unwrap();
    assert!(proxy.is_blocked());
    for _ in 0..small {
        assert_eq!(&*reader.recv_timeout(LONG).unwrap(), b"small");
    }
    proxy.retry().unwrap();
    assert!(!proxy.is_blocked());
    read(&mut reader, 1024);
    assert_eq!(proxy.stats.lost, lost);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Until the message is complete, the subscriber may read the previous one and does not count as stalled.
#[test]
fn incomplete_message_evicts_neither_messages_nor_readers() {
    const LEN: u64 = 1 << 20;
    const STALL: std::time::Duration = std::time::Duration::from_millis(20);
    for reliable in [false, true] {
        let dir = PathBuf::from(format!("/dev/shm/rnet-begins-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let node = Node::builder("/link").domain("t").dir(&dir).state_dir(&dir).open().unwrap();
        // At most one of the earlier messages can be kept.
        let reads = node.subscriber::<[u8]>("/t");
        let reads = if reliable { reads.reliable() } else { reads };
        let mut reader = reads.open().unwrap();
        let publisher = node
            .publisher::<[u8]>("/t")
            .reliable(OnFull::Detach { stall: STALL })
            .large_depth(1)
            .pool_limit_bytes(LEN + (1 << 18))
            .open()
            .unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 20);
        let large = vec![0; LEN as usize];
        proxy.add_fragment(&fragment(0, LEN, 0, &large), 1).unwrap().unwrap();
        for seq in 1..10 {
            begin(&mut proxy, seq, LEN);
            std::thread::sleep(STALL / 4); // sleep: for longer than the stall in all
        }
        let message = reader.recv_timeout(LONG).unwrap();
        assert_eq!((message.origin().unwrap().seq, message.len() as u64), (0, LEN));
        assert_eq!(proxy.publisher.as_ref().unwrap().subscribers().len(), 1);
        assert_eq!(reader.lost().overrun, 0);
        drop((proxy, reader, node));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// A peer that drops a large message for a small one does not hold the memory of the large one uncounted.
#[test]
fn small_message_does_not_hold_memory_of_large_one() {
    const LARGE: u64 = 1 << 24;
    let (dir, node, publisher, reader) = matched("held");
    let mut proxy = Proxy::new(publisher, (HostId(7), 1), None, None, 1 << 24);
    let part = vec![7; 1 << 23];
    let add = |proxy: &mut Proxy, seq: u64, total: u64, offset: u64, bytes: &[u8]| {
        proxy.add_fragment(&fragment(seq, total, offset, bytes), 1).unwrap().unwrap();
        proxy.partial_len_bytes(false)
    };
    assert_eq!(add(&mut proxy, 1, LARGE, 0, &part), LARGE);
    let held = add(&mut proxy, 1, LARGE, 1 << 23, &part[1..]);
    assert_eq!(held, LARGE, "no more memory than the whole message takes");
    let held = add(&mut proxy, 2, 2, 0, &[1]);
    assert!(held < 100, "{held}");
    assert_eq!(proxy.stats.lost, loss_counts(LossCause::Link, 1));
    // After a message of the same length, the memory is kept for the next one, and counted meanwhile.
    add(&mut proxy, 3, LARGE, 0, &part);
    proxy.interrupt();
    let held = proxy.partial_len_bytes(false);
    assert!(held >= 1 << 23, "{held}");
    assert_eq!(proxy.partial_len_bytes(true), 0);
    drop((proxy, reader, node));
    std::fs::remove_dir_all(&dir).unwrap();
}
