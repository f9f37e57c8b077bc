//! The in-memory network behaves as the tests of the link expect.

use crate::sinks;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rnet::Lane;
use rnet_net::in_memory_transport::{CAPACITY, MemoryLink, MemoryNet};
use rnet_net::{Presence, Transport};
use sinks::{Recorder, numbered, presence};

const LEASE: Duration = Duration::from_millis(100);

fn joined(net: &Arc<MemoryNet>, own: Presence) -> (Arc<MemoryLink>, Arc<Recorder>) {
    let recorder = Recorder::new();
    (net.join(own, recorder.clone()), recorder)
}

#[test]
fn frames_arrive_in_order_on_each_lane_of_three_links() {
    let net = MemoryNet::new();
    let ids = [presence(1, 1), presence(2, 1), presence(3, 7)];
    let links = ids.map(|own| joined(&net, own));
    for other in &ids[1..] {
        links[0].1.wait_presence(*other, true);
    }
    for number in 0..500 {
        for to in &ids[1..] {
            links[0].0.send(Lane::Urgent, to.host, numbered(number).into()).unwrap();
            links[0].0.send(Lane::Bulk, to.host, numbered(number).into()).unwrap();
        }
    }
    for (_, recorder) in &links[1..] {
        for lane in [Lane::Urgent, Lane::Bulk] {
            let numbers = recorder.wait_number(lane, ids[0].host, 499);
            assert_eq!(numbers, (0..500).collect::<Vec<_>>());
        }
    }
}

#[test]
fn leaving_link_is_reported_and_its_successor_appears() {
    let net = MemoryNet::new();
    let (_a, recorder) = joined(&net, presence(1, 1));
    let (b, _) = joined(&net, presence(2, 1));
    recorder.wait_presence(presence(2, 1), true);
    drop(b);
    recorder.wait_presence(presence(2, 1), false);
    let (_b, _) = joined(&net, presence(2, 2));
    recorder.wait_presence(presence(2, 2), true);
    recorder.wait("one notice each", |events| (events.presences.len() == 3).then_some(()));
}

#[test]
fn cut_healed_within_the_lease_loses_nothing() {
    let net = MemoryNet::with_lease(Duration::from_secs(3600));
    let (a, _) = joined(&net, presence(1, 1));
    let (_b, recorder) = joined(&net, presence(2, 1));
    recorder.wait_presence(presence(1, 1), true);
    let (one, other) = (presence(1, 1).host, presence(2, 1).host);
    a.send(Lane::Bulk, other, numbered(0).into()).unwrap();
    recorder.wait_number(Lane::Bulk, one, 0);
    net.cut(one, other);
    for number in 1..10 {
        a.send(Lane::Bulk, other, numbered(number).into()).unwrap();
    }
    net.heal(one, other);
    assert_eq!(recorder.wait_number(Lane::Bulk, one, 9), (0..10).collect::<Vec<_>>());
    recorder.wait("no link reported as gone", |events| (events.presences.len() == 1).then_some(()));
}

#[test]
fn cut_longer_than_the_lease_loses_frames_in_flight_and_notifies_both() {
    for one_way in [false, true] {
        let net = MemoryNet::with_lease(LEASE);
        let (a, recorder_a) = joined(&net, presence(1, 1));
        let (_b, recorder_b) = joined(&net, presence(2, 1));
        recorder_a.wait_presence(presence(2, 1), true);
        recorder_b.wait_presence(presence(1, 1), true);
        let (one, other) = (presence(1, 1).host, presence(2, 1).host);
        let began = Instant::now();
        if one_way {
            net.cut_one_way(one, other);
        } else {
            net.cut(one, other);
        }
        a.send(Lane::Urgent, other, numbered(1).into()).unwrap();
        for (recorder, gone) in [(&recorder_a, presence(2, 1)), (&recorder_b, presence(1, 1))] {
            assert!(recorder.wait_presence(gone, false) >= began + LEASE);
        }
        // Sending to an absent host is not an error, and the frame is not kept.
        a.send(Lane::Urgent, other, numbered(2).into()).unwrap();
        net.heal(one, other);
        recorder_a.wait_presence(presence(2, 1), true);
        a.send(Lane::Urgent, other, numbered(3).into()).unwrap();
        assert_eq!(recorder_b.wait_number(Lane::Urgent, one, 3), [3]);
    }
}

#[test]
fn sender_blocks_during_a_cut_until_the_connection_ends() {
    let net = MemoryNet::with_lease(LEASE);
    let (a, recorder_a) = joined(&net, presence(1, 1));
    let (_b, _) = joined(&net, presence(2, 1));
    recorder_a.wait_presence(presence(2, 1), true);
    let (one, other) = (presence(1, 1).host, presence(2, 1).host);
    let began = Instant::now();
    net.cut(one, other);
    for number in 0..=CAPACITY as u64 {
        a.send(Lane::Bulk, other, numbered(number).into()).unwrap();
    }
    assert!(
        began.elapsed() >= LEASE,
        "the frame beyond the capacity waited for the end of the connection"
    );
}

#[test]
fn reset_loses_frames_in_flight_and_reconnects() {
    let net = MemoryNet::new();
    let (a, recorder_a) = joined(&net, presence(1, 1));
    let (_b, recorder_b) = joined(&net, presence(2, 1));
    recorder_a.wait_presence(presence(2, 1), true);
    recorder_b.wait_presence(presence(1, 1), true);
    let (one, other) = (presence(1, 1).host, presence(2, 1).host);
    net.set_delay(Duration::from_secs(3600));
    a.send(Lane::Bulk, other, numbered(1).into()).unwrap();
    net.reset(one, other);
    net.set_delay(Duration::ZERO);
    recorder_a.wait("gone and back", |events| (events.presences.len() == 3).then_some(()));
    recorder_a.wait_presence(presence(2, 1), true);
    a.send(Lane::Bulk, other, numbered(2).into()).unwrap();
    assert_eq!(recorder_b.wait_number(Lane::Bulk, one, 2), [2]);
}

#[test]
fn delay_holds_each_frame_at_least_that_long() {
    let net = MemoryNet::new();
    let (a, recorder_a) = joined(&net, presence(1, 1));
    let (_b, recorder_b) = joined(&net, presence(2, 1));
    recorder_a.wait_presence(presence(2, 1), true);
    net.set_delay(Duration::from_millis(50));
    let sent = Instant::now();
    a.send(Lane::Urgent, presence(2, 1).host, numbered(1).into()).unwrap();
    recorder_b.wait_number(Lane::Urgent, presence(1, 1).host, 1);
    assert!(sent.elapsed() >= Duration::from_millis(50));
}

#[test]
fn link_can_leave_while_another_thread_sends_to_it() {
    let net = MemoryNet::new();
    let (a, recorder_a) = joined(&net, presence(1, 1));
    let (b, _) = joined(&net, presence(2, 1));
    recorder_a.wait_presence(presence(2, 1), true);
    net.set_delay(Duration::from_secs(3600));
    let sending = Arc::clone(&a);
    let sender = thread::spawn(move || {
        for number in 0..=CAPACITY as u64 {
            sending.send(Lane::Bulk, presence(2, 1).host, numbered(number).into()).unwrap();
        }
    });
    drop(b);
    sender.join().unwrap();
    recorder_a.wait_presence(presence(2, 1), false);
}
