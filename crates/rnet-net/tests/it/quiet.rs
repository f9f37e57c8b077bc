//! A stream to a silent peer keeps its frames: frames that wait in the network would delay other hosts
//! (docs/design/wire.md, section 2).

use rnet::{Lane, Meta, OnFull};
use rnet_net::stream::{Accept, Frame, Limits, PULSE_NS, QUIET_NS, Stream};
use rnet_net::wire::{Data, Header, Item, Items};

use crate::common::LONG;
use crate::hosts::Hosts;

const MS: u64 = 1_000_000;
/// How long Zenoh keeps a silent connection.
const LEASE_NS: u64 = 1200 * MS;

/// Gives a frame to the other side; returns the messages that are read from it.
fn give(frame: &Frame, to: &mut Stream, now_ns: u64) -> Vec<u64> {
    let (header, items) = Header::decode(frame).unwrap();
    if to.accept(now_ns, &header) != Accept::New {
        return Vec::new();
    }
    let seq = |item| match item {
        Ok(Item::Data(data)) => data.seq,
        other => panic!("{other:?}"),
    };
    Items::new(items).map(seq).collect()
}

/// Two streams that have met, at 1 s.
fn meet(lane: Lane) -> (Stream, Stream, u64) {
    let [mut a, mut b] = [1, 2].map(|term| Stream::new(term, Limits::of(lane)));
    let mut now_ns = 1000 * MS;
    while a.peer_term().is_none() || b.peer_term().is_none() {
        for _ in 0..2 {
            (a, b) = (b, a);
            while let Some(frame) = a.poll(now_ns) {
                give(&frame, &mut b, now_ns);
            }
        }
        now_ns += MS;
    }
    (a, b, now_ns)
}

/// Returns whether there was capacity for it.
fn push(stream: &mut Stream, seq: u64, now_ns: u64) -> bool {
    let meta = Meta::default();
    let (channel, payload, compressed) = (1, &[7; 100][..], false);
    let data = Data { channel, seq, sent_ns: now_ns, meta, payload, compressed };
    let pushed = stream.push(&Item::Data(data)).is_ok();
    stream.flush();
    pushed
}

#[test]
fn quiet_peer_gets_one_frame_per_lease_and_all_once_it_is_heard() {
    for lane in [Lane::Urgent, Lane::Bulk] {
        let (mut a, mut b, begun_ns) = meet(lane);
        let (mut now_ns, mut seq, mut left, mut read) = (begun_ns, 0, Vec::new(), Vec::new());
        // Its cable is cut: frames stay in the network, and none arrive.
        while now_ns < begun_ns + QUIET_NS + LEASE_NS {
            seq += u64::from(push(&mut a, seq, now_ns));
            // Like a lane without other data to send.
            if left.last().is_none_or(|(at_ns, _)| now_ns - at_ns >= PULSE_NS) {
                a.request_ack();
            }
            while let Some(frame) = a.poll(now_ns) {
                left.push((now_ns, frame));
            }
            now_ns += MS;
        }
        let late = left.iter().filter(|(at_ns, _)| *at_ns >= begun_ns + QUIET_NS).count();
        assert!((1..=2).contains(&late), "{late} frames left on the {lane:?} lane");
        assert!(a.wake_at().unwrap() >= now_ns, "it does not stay awake");

        // The network delivers its frames, and all the kept ones follow in order.
        let mut arrived: Vec<Frame> = left.into_iter().map(|(_, frame)| frame).collect();
        let end_ns = now_ns + 1000 * MS;
        while now_ns < end_ns && read.len() < seq as usize {
            for frame in arrived.drain(..) {
                read.extend(give(&frame, &mut b, now_ns));
            }
            b.request_ack();
            while let Some(frame) = b.poll(now_ns) {
                give(&frame, &mut a, now_ns);
            }
            while let Some(frame) = a.poll(now_ns) {
                arrived.push(frame);
            }
            now_ns += MS;
        }
        assert!(read.into_iter().eq(0..seq), "each message once, in order");
    }
}

/// A link that was stopped itself finds all peers quiet, and announces itself at once.
#[test]
fn stopped_link_announces_itself_at_once() {
    let (mut a, mut b, begun_ns) = meet(Lane::Urgent);
    let now_ns = begun_ns + 10 * QUIET_NS;
    a.request_ack();
    let frame = a.poll(now_ns).expect("one frame");
    assert!(a.poll(now_ns).is_none());
    give(&frame, &mut b, now_ns);
    b.request_ack();
    let answer = b.poll(now_ns).expect("an answer");
    give(&answer, &mut a, now_ns);
    assert!(push(&mut a, 0, now_ns));
    assert!(a.poll(now_ns).is_some(), "it is not quiet any more");
}

/// After a connection has ended, the next one transfers the lost frames: neither side waits for the other
/// to send first.
#[test]
fn reconnected_peer_is_not_quiet() {
    let (mut a, _, begun_ns) = meet(Lane::Urgent);
    let now_ns = begun_ns + QUIET_NS;
    assert!(push(&mut a, 0, now_ns));
    assert!(a.poll(now_ns).is_some());
    assert!(push(&mut a, 1, now_ns));
    assert!(a.poll(now_ns).is_none());
    a.note_heard(now_ns + MS);
    assert!(a.poll(now_ns + MS).is_some());
}

/// A link of an earlier release is silent while it has nothing to send.
#[test]
fn peer_without_pulses_is_not_quiet() {
    let (mut a, _, begun_ns) = meet(Lane::Urgent);
    a.expect_pulses(false);
    let now_ns = begun_ns + 10 * QUIET_NS;
    for seq in 0..3 {
        assert!(push(&mut a, seq, now_ns));
        assert!(a.poll(now_ns).is_some());
    }
}

/// While one of five hosts is silent, the others continue to communicate; it receives everything once it is
/// heard.
#[test]
fn quiet_host_delays_no_other_host() {
    const HOSTS: usize = 5;
    let hosts = Hosts::patient("one of many is quiet", HOSTS);
    let nodes: Vec<_> = (0..HOSTS).map(|host| hosts.node(host, &format!("n{host}"))).collect();
    let mut publisher =
        nodes[0].publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG)).urgent().open().unwrap();
    let open = |node: &rnet::Node| node.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let mut subscribers: Vec<_> = nodes[1..].iter().map(open).collect();
    publisher.wait_for_subscribers_timeout(HOSTS - 1, LONG).unwrap();
    let quiet = HOSTS - 1;
    for other in 0..quiet {
        hosts.cut(other, quiet);
    }
    let numbers = 0..500_u64;
    for number in numbers.clone() {
        publisher.send(&number.to_le_bytes()).unwrap();
        for subscriber in &mut subscribers[..quiet - 1] {
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), number.to_le_bytes());
        }
    }
    for other in 0..quiet {
        hosts.heal(other, quiet);
    }
    for number in numbers {
        assert_eq!(*subscribers[quiet - 1].recv_timeout(LONG).unwrap(), number.to_le_bytes());
    }
    assert!(subscribers.iter().all(|subscriber| subscriber.lost().total() == 0));
}
