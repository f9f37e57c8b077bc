//! Publishers and subscribers match in any order.

use std::time::{Duration, Instant};

use rnet::{Durability, PublisherQos, SubscriberQos};

use super::actor::{Form, Outcome, Step};
use super::delivery::{is_message, keeps_all};
use super::transport::Transport;

const TOPIC: &str = "/meeting/point";
const TAG: u64 = 0x1090;

pub fn either_may_start_first(net: &mut impl Transport) {
    for round in 0..3 {
        let topic = format!("{TOPIC}{round}");
        let mut writer = net.actor(&format!("writer{round}"));
        let mut reader = net.actor(&format!("reader{round}"));
        let publish = |w: &mut super::transport::Handle| w.publish(&topic, PublisherQos::default());
        let subscribe =
            |r: &mut super::transport::Handle| r.subscribe(&topic, SubscriberQos::default());
        match round {
            0 => (publish(&mut writer), subscribe(&mut reader)),
            1 => (subscribe(&mut reader), publish(&mut writer)),
            _ => {
                // Both wait before the other exists.
                publish(&mut writer);
                writer.post(Step::WaitSubscribers { n: 1, timeout_ms: 30_000 });
                subscribe(&mut reader);
                (assert_eq!(writer.answer(), Outcome::Done), ())
            }
        };
        reader.wait_for_publishers(1);
        writer.wait_for_subscribers(1);
        assert_eq!(writer.act(Step::Count), Outcome::Count(1));
        assert_eq!(reader.act(Step::Count), Outcome::Count(1));
        writer.send(TAG, 0, 1, 22);
        is_message(&reader.receive(1)[0], TAG, 0, 22);
    }
}

pub fn matches_are_reported(net: &mut impl Transport) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    let (w, r) = (net.node_name("writer"), net.node_name("reader"));
    writer.publish(TOPIC, PublisherQos::default());
    writer.done(Step::Watch);
    reader.subscribe(TOPIC, SubscriberQos::default());
    writer.wait_for_subscribers(1);
    reader.done(Step::CloseEndpoints);
    let subscriber = writer.act(Step::Events { at_least: 2 });
    assert_eq!(subscriber, Outcome::Events(vec![format!("matched {r}"), format!("unmatched {r}")]));
    writer.done(Step::CloseEndpoints);

    // On another topic: the reader may not have noticed yet that the first publisher is gone.
    let back = format!("{TOPIC}/back");
    reader.subscribe(&back, SubscriberQos::default());
    reader.done(Step::Watch);
    writer.publish(&back, PublisherQos::default());
    reader.wait_for_publishers(1);
    writer.done(Step::CloseEndpoints);
    let subscriber = reader.act(Step::Events { at_least: 2 });
    assert_eq!(subscriber, Outcome::Events(vec![format!("matched {w}"), format!("unmatched {w}")]));
}

pub fn waits_end_in_time(net: &mut impl Transport) {
    let mut writer = net.actor("writer");
    let mut reader = net.actor("reader");
    writer.publish(TOPIC, PublisherQos::default());
    reader.subscribe("/elsewhere", SubscriberQos::default());
    let timeout_ms = 60;
    for step in [
        Step::WaitSubscribers { n: 1, timeout_ms },
        Step::WaitPublishers { n: 1, timeout_ms },
        Step::Receive { count: 1, timeout_ms, hold: false },
        Step::Latest { timeout_ms },
    ] {
        let sends = matches!(step, Step::WaitSubscribers { .. });
        let who = if sends { &mut writer } else { &mut reader };
        let begun = Instant::now();
        assert_eq!(who.fails(step), ("timeout".to_owned(), 0));
        assert!(begun.elapsed() >= Duration::from_millis(timeout_ms));
    }
}

/// A subscription with a callback and a stream count publishers and receive match events like a subscriber.
pub fn a_callback_and_a_stream_know_their_publishers(net: &mut impl Transport) {
    for form in [Form::Callback, Form::Stream] {
        let name = |who: &str| format!("{who}_{form:?}").to_lowercase();
        let topic = format!("{TOPIC}/{form:?}").to_lowercase();
        let mut reader = net.actor(&name("reader"));
        reader.subscribe(&topic, SubscriberQos::default());
        reader.done(Step::Become { form });
        assert_eq!(reader.act(Step::Count), Outcome::Count(0));
        if form == Form::Callback {
            let (code, _) = reader.fails(Step::WaitPublishers { n: 1, timeout_ms: 0 });
            assert_eq!(code, "timeout");
        }
        let mut writer = net.actor(&name("writer"));
        writer.publish(&topic, PublisherQos::default());
        writer.wait_for_subscribers(1);
        let w = net.node_name(&name("writer"));
        if form == Form::Callback {
            reader.wait_for_publishers(1);
        }
        let subscriber = reader.act(Step::Events { at_least: 1 });
        assert_eq!(subscriber, Outcome::Events(vec![format!("matched {w}")]));
        assert_eq!(reader.act(Step::Count), Outcome::Count(1));
        writer.send(TAG, 0, 1, 22);
        writer.done(Step::CloseEndpoints);
        let subscriber = reader.act(Step::Events { at_least: 2 });
        assert_eq!(
            subscriber,
            Outcome::Events(vec![format!("matched {w}"), format!("unmatched {w}")])
        );
        while reader.act(Step::Count) != Outcome::Count(0) {}
    }
}

pub fn late_joiners_get_the_last_small_messages(net: &mut impl Transport) {
    late(net, 22, 5);
    late(net, 22, 1);
}

pub fn late_joiners_get_the_last_large_messages(net: &mut impl Transport) {
    late(net, 10_000, 5);
    // More than `large_depth`, which applies to subscribers that are already matched.
    late(net, 10_000, 12);
}

fn late(net: &mut impl Transport, len: usize, depth: u32) {
    let topic = format!("{TOPIC}/l{len}/d{depth}");
    let name = |who: &str| format!("{who}_{len}_{depth}");
    let mut writer = net.actor(&name("writer"));
    writer.publish(
        &topic,
        PublisherQos { durability: Durability::TransientLocal { depth }, ..Default::default() },
    );
    let asks = SubscriberQos { transient_local: true, ..keeps_all() };
    // Fewer than the depth: all of them.
    writer.send(TAG, 0, 1, len);
    let mut early = net.actor(&name("early"));
    early.subscribe(&topic, asks.clone());
    is_message(&early.receive(1)[0], TAG, 0, len);

    writer.send(TAG, 1, 29, len);
    // A dropped loan does not evict a kept message.
    writer.done(Step::LoanAndDrop { len });
    let mut late = net.actor(&name("late"));
    late.subscribe(&topic, asks);
    let mut volatile = net.actor(&name("volatile"));
    volatile.subscribe(&topic, SubscriberQos::default());
    let first = 30 - u64::from(depth);
    for (index, got) in (first..).zip(late.receive(depth as usize)) {
        is_message(&got, TAG, index, len);
    }
    net.settle();
    assert!(late.got(Step::TryReceive).is_empty(), "at most the last {depth}");
    writer.wait_for_subscribers(3);
    volatile.wait_for_publishers(1);
    writer.send(TAG, 30, 1, len);
    is_message(&late.receive(1)[0], TAG, 30, len);
    is_message(&volatile.receive(1)[0], TAG, 30, len);
}
