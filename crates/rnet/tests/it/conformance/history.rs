//! Which unread messages a subscriber keeps, in each form of receiving.

use rnet::limits::DEFAULT_KEEP_LAST;
use rnet::{Backlog, History, OnFull, PublisherQos, SubscriberQos};

use super::actor::{Form, Outcome, Step};
use super::delivery::{asks_reliable, is_message, keeps_all, reliable};
use super::transport::{Handle, Transport};

const TAG: u64 = 0x01d;
/// More than a subscriber keeps, and fewer than the shortest log holds.
const UNREAD: u64 = 100;

fn pair(
    net: &mut impl Transport,
    form: Form,
    offer: PublisherQos,
    ask: SubscriberQos,
) -> (Handle, Handle) {
    let topic = format!("/history/{form:?}").to_lowercase();
    let name = |who: &str| format!("{who}_{form:?}").to_lowercase();
    let mut writer = net.actor(&name("writer"));
    let mut reader = net.actor(&name("reader"));
    writer.publish(&topic, offer);
    reader.subscribe(&topic, ask);
    writer.wait_for_subscribers(1);
    reader.wait_for_publishers(1);
    (writer, reader)
}

/// After `UNREAD` unread messages, exactly the last `kept` are received.
fn keeps_the_last(net: &mut impl Transport, offer: PublisherQos, ask: SubscriberQos, kept: u64) {
    for form in Form::ALL {
        let (mut writer, mut reader) = pair(net, form, offer.clone(), ask.clone());
        // The other four messages are copied out of the log with the first.
        writer.send(TAG, 0, 5, 22);
        net.settle();
        let first = 5 - kept.min(5);
        is_message(&reader.receive(1)[0], TAG, first, 22);
        writer.send(TAG, 5, UNREAD, 22);
        net.settle();
        let count = kept.min(UNREAD + 4 - first);
        let step = Step::ReceiveBy { form, count: count as usize };
        let Outcome::Taken { got, skipped, lost, behind } = reader.act(step) else {
            panic!("{form:?}: nothing was taken");
        };
        assert_eq!(got.len() as u64, count, "{form:?}");
        for (index, got) in (UNREAD + 5 - count..).zip(&got) {
            is_message(got, TAG, index, 22);
        }
        let passed_over = UNREAD + 5 - 1 - count;
        assert_eq!(
            (skipped, lost.total(), behind),
            (passed_over, 0, Backlog::default()),
            "{form:?}"
        );
    }
}

pub fn the_default_keeps_the_last_ten(net: &mut impl Transport) {
    let kept = u64::from(DEFAULT_KEEP_LAST);
    keeps_the_last(net, PublisherQos::default(), SubscriberQos::default(), kept);
}

pub fn keep_all_skips_nothing(net: &mut impl Transport) {
    keeps_the_last(net, PublisherQos::default(), keeps_all(), u64::MAX);
}

pub fn reliable_subscribers_keep_all(net: &mut impl Transport) {
    keeps_the_last(net, reliable(OnFull::Refuse), asks_reliable(), u64::MAX);
}

pub fn reliable_subscribers_may_keep_the_last(net: &mut impl Transport) {
    let ask = SubscriberQos { history: History::KeepLast(2), ..asks_reliable() };
    keeps_the_last(net, reliable(OnFull::Refuse), ask, 2);
}

/// Sends large messages in groups small enough that each arrives before its reader's memory limit.
fn send_in_tens(net: &mut impl Transport, writer: &mut Handle, from: u64, count: u64, len: usize) {
    for from in (from..from + count).step_by(10) {
        writer.send(TAG, from, 10, len);
        net.settle();
    }
}

/// Messages that the log lost before the subscriber read are not counted as lost if it would have skipped
/// them.
pub fn lapped_messages_that_would_be_skipped_are_not_lost(net: &mut impl Transport) {
    let offer = super::delivery::short_log();
    for (form, len) in [(Form::Recv, 60), (Form::TryRecv, 5000)] {
        let (mut writer, mut reader) = pair(net, form, offer.clone(), SubscriberQos::default());
        // The count overruns the log with small messages, and the pool with large ones.
        let (count, kept) = (600, u64::from(DEFAULT_KEEP_LAST));
        send_in_tens(net, &mut writer, 0, count, len);
        let step = Step::ReceiveBy { form, count: kept as usize };
        let Outcome::Taken { got, skipped, lost, .. } = reader.act(step) else {
            panic!("{form:?}: nothing was taken");
        };
        for (index, got) in (count - kept..).zip(&got) {
            is_message(got, TAG, index, len);
        }
        assert_eq!((skipped, lost.total()), (count - kept, 0), "{form:?}");
    }
}

/// The newest message of one publisher is returned; those of the others are skipped, not received.
pub fn latest_of_several_publishers_skips_the_others(net: &mut impl Transport) {
    const TOPIC: &str = "/history/several";
    const WRITERS: u64 = 3;
    let mut reader = net.actor("reader");
    reader.subscribe(TOPIC, keeps_all());
    let mut writers: Vec<_> = (0..WRITERS).map(|i| net.actor(&format!("writer{i}"))).collect();
    for writer in &mut writers {
        writer.publish(TOPIC, PublisherQos::default());
        writer.wait_for_subscribers(1);
    }
    reader.wait_for_publishers(WRITERS as usize);
    let mut sent = 0;
    for round in 0..4 {
        // Large messages in every other round: their memory must be released as well.
        let len = if round % 2 == 0 { 22 } else { 10_000 };
        for (tag, writer) in (0..).zip(&mut writers) {
            writer.send(tag, 2 * round, 2, len);
            sent += 2;
            net.settle();
            net.let_clocks_pass();
        }
        let newest = reader.got(Step::Latest { timeout_ms: 30_000 });
        is_message(&newest[0], WRITERS - 1, 2 * round + 1, len);
        assert!(reader.got(Step::TryReceive).is_empty(), "all older messages are skipped");
    }
    // One more message, so that the tally is not empty.
    writers[0].send(0, 8, 1, 22);
    reader.post(Step::MessageCounts { accounted: sent + 1, pause_us: 0 });
    let tally = reader.tally();
    assert_eq!((tally.received, tally.skipped, tally.lost.total()), (5, sent - 4, 0));
}

/// The backlog is known before the subscriber reads, while it reads, and afterwards.
pub fn subscriber_reports_its_backlog(net: &mut impl Transport) {
    for len in [22, 10_000] {
        let topic = format!("/history/behind{len}");
        let mut writer = net.actor(&format!("writer{len}"));
        let mut reader = net.actor(&format!("reader{len}"));
        writer.publish(&topic, PublisherQos::default());
        reader.subscribe(&topic, SubscriberQos::default());
        writer.wait_for_subscribers(1);
        let behind = |reader: &mut Handle| match reader.act(Step::Backlog) {
            Outcome::Backlog { own, seen } => {
                assert_eq!(own.messages, seen.messages, "as seen by the tools");
                assert_eq!(own.age_ns > 0, own.messages > 0);
                assert_eq!(seen.age_ns > 0, seen.messages > 0);
                // The tools took their snapshot later.
                assert!(seen.age_ns >= own.age_ns);
                own
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(behind(&mut reader), Backlog::default());
        writer.send(TAG, 0, 4, len);
        net.settle();
        let first = behind(&mut reader);
        assert_eq!(first.messages, 4);
        for left in (0..4).rev() {
            is_message(&reader.receive(1)[0], TAG, 3 - left, len);
            assert_eq!(behind(&mut reader).messages, left);
        }
        // Messages that will be skipped count as not received.
        send_in_tens(net, &mut writer, 4, 20, len);
        assert_eq!(behind(&mut reader).messages, 20);
        is_message(&reader.receive(1)[0], TAG, 14, len);
        assert_eq!(behind(&mut reader).messages, 9);
        is_message(&reader.got(Step::Latest { timeout_ms: 0 })[0], TAG, 23, len);
        assert_eq!(behind(&mut reader), Backlog::default());
    }
}
