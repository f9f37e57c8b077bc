//! The ways to receive a message, and to build one.

use rnet::{History, PublisherQos, SubscriberQos, limits};

use super::actor::{Outcome, Step};
use super::content::{content, digest};
use super::delivery::{is_message, keeps_all};
use super::transport::{Handle, Transport};

const TOPIC: &str = "/taking";
const TAG: u64 = 0x5eed;

fn pair(net: &mut impl Transport, offer: PublisherQos, ask: SubscriberQos) -> (Handle, Handle) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, offer);
    reader.subscribe(TOPIC, ask);
    writer.wait_for_subscribers(1);
    reader.wait_for_publishers(1);
    (writer, reader)
}

pub fn keep_last_skips_older_messages(net: &mut impl Transport) {
    let ask = SubscriberQos { history: History::KeepLast(3), ..Default::default() };
    let (mut writer, mut reader) = pair(net, PublisherQos::default(), ask);
    for (from, len) in [(0, 22), (1000, 3000)] {
        // In the second case the log holds more than the reader copies at once.
        let count = if len == 22 { 10 } else { 100 };
        let from = from.min(10);
        writer.send(TAG, from, count, len);
        net.settle();
        for (index, got) in (from + count - 3..).zip(reader.receive(3)) {
            is_message(&got, TAG, index, len);
        }
        assert!(reader.got(Step::TryReceive).is_empty());
    }
    reader.post(Step::MessageCounts { accounted: 111, pause_us: 0 });
    writer.send(TAG, 110, 1, 22);
    let tally = reader.tally();
    assert_eq!((tally.received, tally.skipped, tally.lost.total()), (7, 7 + 97, 0));
}

pub fn latest_skips_all_but_the_newest(net: &mut impl Transport) {
    let (mut writer, mut reader) = pair(net, PublisherQos::default(), SubscriberQos::default());
    let mut sent = 0;
    let mut received = 0;
    for len in [22, 5000, 22] {
        writer.send(TAG, sent, 5, len);
        sent += 5;
        net.settle();
        is_message(&reader.got(Step::Latest { timeout_ms: 30_000 })[0], TAG, sent - 1, len);
        received += 1;
    }
    assert_eq!(reader.fails(Step::Latest { timeout_ms: 0 }).0, "timeout");
    // After one message taken in order, with others already copied out of the log.
    writer.send(TAG, sent, 5, 22);
    net.settle();
    is_message(&reader.receive(1)[0], TAG, sent, 22);
    sent += 5;
    received += 2;
    is_message(&reader.got(Step::Latest { timeout_ms: 30_000 })[0], TAG, sent - 1, 22);
    reader.post(Step::MessageCounts { accounted: sent + 1, pause_us: 0 });
    writer.send(TAG, sent, 1, 22);
    let tally = reader.tally();
    assert_eq!(tally.lost.total(), 0, "skipped messages are not lost");
    assert_eq!((tally.received, tally.skipped), (received + 1, sent - received));
}

pub fn a_loan_that_is_dropped_sends_nothing(net: &mut impl Transport) {
    let (mut writer, mut reader) = pair(net, PublisherQos::default(), SubscriberQos::default());
    for (index, len) in [(0, 22), (1, 100_000)] {
        for _ in 0..20 {
            writer.done(Step::LoanAndDrop { len });
        }
        writer.send(TAG, index, 1, len);
        is_message(&reader.receive(1)[0], TAG, index, len);
    }
    assert!(reader.got(Step::TryReceive).is_empty());
}

pub fn a_loan_may_be_cut_short(net: &mut impl Transport) {
    let (mut writer, mut reader) = pair(net, PublisherQos::default(), SubscriberQos::default());
    let cuts = [(22, 22), (22, 7), (22, 0), (100_000, 100_000), (100_000, 9), (100_000, 0)];
    for (index, (len, to)) in (0..).zip(cuts) {
        writer.done(Step::LoanAndTruncate { tag: TAG, index, len, to });
        is_message(&reader.receive(1)[0], TAG, index, to);
    }
}

pub fn receive_without_messages_returns_nothing(net: &mut impl Transport) {
    let (mut writer, mut reader) = pair(net, PublisherQos::default(), SubscriberQos::default());
    assert!(reader.got(Step::TryReceive).is_empty());
    let zero = Step::Receive { count: 1, timeout_ms: 0, hold: false };
    assert_eq!(reader.fails(zero.clone()).0, "timeout");
    writer.send(TAG, 0, 1, 22);
    net.settle();
    // An available message is returned without a wait.
    is_message(&reader.got(zero)[0], TAG, 0, 22);
    writer.send(TAG, 1, 1, 22);
    net.settle();
    is_message(&reader.got(Step::TryReceive)[0], TAG, 1, 22);
    assert!(reader.got(Step::TryReceive).is_empty());
}

pub fn held_samples_are_limited_and_released(net: &mut impl Transport) {
    let limit = limits::MAX_PINS_PER_READER;
    let offer = PublisherQos { large_depth: 2 * limit as u32, ..Default::default() };
    let (mut writer, mut reader) = pair(net, offer, keeps_all());
    let len = 5000;
    writer.send(TAG, 0, limit as u64 + 2, len);
    let held = reader.receive_and_hold(limit);
    let one = Step::Receive { count: 1, timeout_ms: 30_000, hold: true };
    for _ in 0..2 {
        assert_eq!(reader.fails(one.clone()).0, "too_many_pins");
    }
    reader.done(Step::DropHeld { leave: limit - 1 });
    // The message that could not be received before.
    is_message(&reader.got(one.clone())[0], TAG, limit as u64, len);
    assert_eq!(reader.fails(one.clone()).0, "too_many_pins");
    reader.done(Step::DropHeld { leave: 1 });
    is_message(&reader.got(one)[0], TAG, limit as u64 + 1, len);
    let Outcome::Digests(digests) = reader.act(Step::CheckHeld) else { panic!() };
    assert_eq!(digests[0], held[0].digest);
}

pub fn samples_outlive_their_endpoints_and_node(net: &mut impl Transport) {
    let (mut writer, mut reader) = pair(net, PublisherQos::default(), SubscriberQos::default());
    let mut expected = Vec::new();
    for (index, len) in (0..).zip([22, 5000, 100_000, 22, 1 << 20, 4096]) {
        writer.send(TAG, index, 1, len);
        reader.receive_and_hold(1);
        expected.push(digest(&content(TAG, index, len)));
    }
    // While the subscriber is open, then without it, then without its node.
    for step in [None, Some(Step::CloseEndpoints), Some(Step::CloseNode)] {
        step.into_iter().for_each(|step| reader.done(step));
        for len in [22, 5000, 100_000, 1 << 20] {
            writer.send(TAG ^ 1, 0, 20, len);
        }
        assert_eq!(reader.act(Step::CheckHeld), Outcome::Digests(expected.clone()));
    }
    // Even without the publisher.
    writer.done(Step::CloseEndpoints);
    writer.done(Step::CloseNode);
    assert_eq!(reader.act(Step::CheckHeld), Outcome::Digests(expected));
    reader.done(Step::DropHeld { leave: 0 });
}

pub fn oversized_message_is_refused_without_loss(net: &mut impl Transport) {
    let offer = PublisherQos { pool_limit_bytes: 1 << 20, ..Default::default() };
    let (mut writer, mut reader) = pair(net, offer, SubscriberQos::default());
    writer.send(TAG, 0, 5, 50_000);
    let (code, _) = writer.fails(Step::Send { tag: TAG, from: 5, count: 1, len: 2 << 20 });
    assert_eq!(code, "out_of_memory");
    for (index, got) in (0..).zip(reader.receive(5)) {
        is_message(&got, TAG, index, 50_000);
    }
    writer.send(TAG, 5, 1, 50_000);
    is_message(&reader.receive(1)[0], TAG, 5, 50_000);
}
