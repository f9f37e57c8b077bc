//! Each sent message arrives or is counted.

use std::time::Duration;

use rnet::{History, OnFull, PublisherQos, Reliability, SubscriberQos};

use super::actor::{Outcome, ReceivedMessage, Step};
use super::content::{content, digest};
use super::transport::{Handle, Transport};

const TOPIC: &str = "/stream";
const TAG: u64 = 0x7a61;

/// A log short enough to fill quickly.
pub fn short_log() -> PublisherQos {
    PublisherQos { log_len_bytes: rnet::limits::MIN_LOG_LEN_BYTES, ..Default::default() }
}

pub fn reliable(on_full: OnFull) -> PublisherQos {
    PublisherQos { reliability: Reliability::Reliable, on_full, ..short_log() }
}

/// Best effort, keeping each message that the log still has.
pub fn keeps_all() -> SubscriberQos {
    SubscriberQos { history: History::KeepAll, ..Default::default() }
}

pub fn asks_reliable() -> SubscriberQos {
    SubscriberQos { reliability: Reliability::Reliable, ..Default::default() }
}

#[track_caller]
pub fn is_message(got: &ReceivedMessage, tag: u64, index: u64, len: usize) {
    let expected = (index, len, digest(&content(tag, index, len)));
    assert_eq!((got.seq, got.len, got.digest), expected);
}

pub fn all_sizes_arrive_whole_and_in_order(net: &mut impl Transport) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, PublisherQos::default());
    reader.subscribe(TOPIC, keeps_all());
    writer.wait_for_subscribers(1);
    let sizes = [0, 1, 7, 8, 22, 4095, 4096, 4097, 64 << 10, 1 << 20, 16 << 20];
    for (index, len) in (0..).zip(sizes.into_iter().chain(sizes.into_iter().rev())) {
        writer.send(TAG, index, 1, len);
        is_message(&reader.receive(1)[0], TAG, index, len);
    }
    // And without alternating between sending and receiving.
    for round in 0..20 {
        let from = 2 * sizes.len() as u64 + round * 100;
        writer.send(TAG, from, 100, 22);
        for (index, got) in (from..).zip(reader.receive(100)) {
            is_message(&got, TAG, index, 22);
        }
    }
}

pub fn one_of(net: &mut impl Transport, len: usize) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, PublisherQos::default());
    reader.subscribe(TOPIC, SubscriberQos::default());
    writer.wait_for_subscribers(1);
    writer.send(TAG, 0, 1, len);
    is_message(&reader.receive(1)[0], TAG, 0, len);
}

pub fn several_publishers_are_merged_in_order(net: &mut impl Transport) {
    let mut reader = net.actor("reader");
    reader.subscribe(TOPIC, asks_reliable());
    let mut writers: Vec<_> = (0..3).map(|i| net.actor(&format!("writer{i}"))).collect();
    for writer in &mut writers {
        writer.publish(TOPIC, reliable(OnFull::Wait(Duration::from_secs(30))));
        writer.wait_for_subscribers(1);
    }
    reader.wait_for_publishers(3);
    reader.post(Step::MessageCounts { accounted: 3 * 1000, pause_us: 0 });
    for (tag, writer) in (1..).zip(&mut writers) {
        writer.post(Step::Send { tag, from: 0, count: 1000, len: 60 });
    }
    for writer in &mut writers {
        assert_eq!(writer.answer(), Outcome::Done);
    }
    let tally = reader.tally();
    assert_eq!((tally.received, tally.lost.total(), tally.wrong), (3000, 0, 0), "{tally:?}");
}

pub fn overruns_are_counted_exactly(net: &mut impl Transport) {
    overrun(net, short_log(), 5000, 60);
}

pub fn overruns_of_large_messages_are_counted_exactly(net: &mut impl Transport) {
    let qos = PublisherQos { large_depth: 2, ..short_log() };
    overrun(net, qos, 600, 5000);
}

fn overrun(net: &mut impl Transport, qos: PublisherQos, count: u64, len: usize) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, qos);
    reader.subscribe(TOPIC, keeps_all());
    writer.wait_for_subscribers(1);
    reader.wait_for_publishers(1);
    // First with the reader idle, so that an overrun is certain; then concurrently.
    writer.send(TAG, 0, count, len);
    net.settle();
    reader.post(Step::MessageCounts { accounted: count, pause_us: 0 });
    let first = reader.tally();
    assert!(net.overruns(&first.lost) > 0 && first.received > 0, "{first:?}");
    reader.post(Step::MessageCounts { accounted: 2 * count, pause_us: 10 });
    writer.send(TAG, count, count, len);
    let second = reader.tally();
    let (lost, overruns) = (second.lost.total(), net.overruns(&second.lost));
    assert_eq!((second.received + lost, lost), (2 * count, overruns), "{second:?}");
    assert_eq!((first.wrong, second.wrong, second.skipped), (0, 0, 0));
    assert_eq!(second.errors, first.errors);
}

pub fn reliable_waits_for_a_slow_reader(net: &mut impl Transport) {
    reliable_wait(net, reliable(OnFull::Wait(Duration::from_secs(30))), 3000, 60);
}

pub fn reliable_waits_for_a_slow_reader_of_large_messages(net: &mut impl Transport) {
    let on_full = OnFull::Wait(Duration::from_secs(30));
    let qos = PublisherQos { pool_limit_bytes: 200 << 10, large_depth: 2, ..reliable(on_full) };
    reliable_wait(net, qos, 500, 10_000);
}

fn reliable_wait(net: &mut impl Transport, qos: PublisherQos, count: u64, len: usize) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, qos);
    reader.subscribe(TOPIC, asks_reliable());
    writer.wait_for_subscribers(1);
    writer.post(Step::Send { tag: TAG, from: 0, count, len });
    reader.post(Step::MessageCounts { accounted: count, pause_us: 20 });
    let tally = reader.tally();
    assert_eq!(writer.answer(), Outcome::Done);
    assert_eq!((tally.received, tally.lost.total(), tally.wrong), (count, 0, 0), "{tally:?}");
}

pub fn reliable_refuses_and_gives_the_message_back(net: &mut impl Transport) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, reliable(OnFull::Refuse));
    reader.subscribe(TOPIC, asks_reliable());
    writer.wait_for_subscribers(1);
    let mut from = 0;
    // Inline and in chunks; the log holds about four hundred references to chunks.
    for len in [500, 5000, 500] {
        let sent = send_until_refused(net, &mut writer, from, len);
        assert!(sent > 0);
        let full = writer.fails(Step::Send { tag: TAG, from: from + sent, count: 1, len });
        assert_eq!(full, ("full".to_owned(), 0));
        for (index, got) in (from..).zip(reader.receive(sent as usize)) {
            is_message(&got, TAG, index, len);
        }
        from += sent;
        // The reader has read everything, so it must not delay the writer even briefly.
        net.settle();
        writer.send(TAG, from, 1, len);
        is_message(&reader.receive(1)[0], TAG, from, len);
        from += 1;
    }
}

/// Sends until a send is refused with no message in transit. Returns how many were sent.
fn send_until_refused(
    net: &mut impl Transport,
    writer: &mut Handle,
    mut from: u64,
    len: usize,
) -> u64 {
    let begun = from;
    loop {
        let step = Step::LoanUntilRefused { tag: TAG, from, len };
        let Outcome::Refused { sent, intact } = writer.act(step) else {
            panic!("it was not refused");
        };
        assert!(intact);
        if sent == 0 {
            return from - begun;
        }
        from += sent;
        net.settle();
    }
}

pub fn reliable_detaches_a_stopped_reader(net: &mut impl Transport) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, reliable(OnFull::Detach { stall: Duration::from_millis(50) }));
    reader.subscribe(TOPIC, asks_reliable());
    writer.wait_for_subscribers(1);
    writer.send(TAG, 0, 1, 60);
    is_message(&reader.receive(1)[0], TAG, 0, 60);
    // The reader is idle; the writer continues without it.
    let count = 2000 + net.room_len_bytes() / 60;
    writer.send(TAG, 1, count, 60);
    let accounted = 1 + count;
    reader.post(Step::MessageCounts { accounted, pause_us: 0 });
    let tally = reader.tally();
    assert!(
        !tally.errors.is_empty() && tally.errors.iter().all(|code| code == "detached"),
        "{tally:?}"
    );
    assert!(tally.errors.len() == 1 || net.has_others_between(), "notified once: {tally:?}");
    assert_eq!(tally.received + tally.lost.detached, accounted, "{tally:?}");
    assert!(tally.lost.detached > 0 && tally.wrong == 0, "{tally:?}");
    assert_eq!(tally.lost.total(), tally.lost.detached);
    // Afterwards the reader continues.
    reader.wait_for_publishers(1);
    writer.wait_for_subscribers(1);
    writer.send(TAG, accounted, 10, 60);
    for (index, got) in (accounted..).zip(reader.receive(10)) {
        is_message(&got, TAG, index, 60);
    }
}

/// A slow reader makes progress with each message that it takes, not only with each batch.
pub fn slow_reader_with_progress_is_not_detached(net: &mut impl Transport) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, reliable(OnFull::Detach { stall: Duration::from_millis(500) }));
    reader.subscribe(TOPIC, asks_reliable());
    writer.wait_for_subscribers(1);
    // A batch takes this reader two seconds or more.
    writer.post(Step::Send { tag: TAG, from: 0, count: 260, len: 60 });
    reader.post(Step::MessageCounts { accounted: 260, pause_us: 10_000 });
    let tally = reader.tally();
    assert_eq!(writer.answer(), Outcome::Done);
    assert_eq!((tally.received, tally.lost.total()), (260, 0), "{tally:?}");
    assert_eq!(tally.errors, [""; 0]);
}
