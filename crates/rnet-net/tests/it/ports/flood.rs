//! Ten thousand connections to the ports of a link: silent ones, slow ones, and ones that stop in the middle
//! of a conversation or continue it with other bytes.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::{DomainId, OnFull, Publisher, Subscriber};
use rnet_net::zenoh::ZenohNet;

use super::{Host, MAX_GROWTH_BYTES, Random, domain_name, options, record};
use crate::attack::{
    CONNECTIONS, Conversation, descriptors, flood, percentiles, raise_limit, resident,
};
use crate::folder::{LONG, eventually, free_port};
use crate::sinks::{Recorder, presence};

/// The most descriptors that a flood may take: the connections that may be in the handshake of both lanes,
/// and some that are just being closed.
const MAX_DESCRIPTORS: usize = 2 * 1024 + 256;
/// Messages of each measurement, one a millisecond.
const MESSAGES: u64 = 3_000;

/// Sends messages, one a millisecond, and returns how long each took. None may be lost.
fn latencies(publisher: &mut Publisher<[u8]>, subscriber: &mut Subscriber<[u8]>) -> Vec<Duration> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            for number in 1..=MESSAGES {
                publisher
                    .send([number, rnet::now_ns()].map(u64::to_le_bytes).as_flattened())
                    .unwrap();
                let next = Duration::from_millis(number).saturating_sub(begun.elapsed());
                std::thread::sleep(next); // sleep: the rate of the messages
            }
        });
        let took = (1..=MESSAGES).map(|number| {
            let message = subscriber.recv_timeout(LONG).unwrap();
            let word = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
            assert_eq!(word(0), number, "no message is lost");
            Duration::from_nanos(rnet::now_ns() - word(8))
        });
        took.collect()
    })
}

/// The hosts that were connected before lose no message and stay connected; afterwards another host can join.
#[test]
fn ten_thousand_connections_leave_the_sessions_of_hosts_alone() {
    raise_limit();
    let (port, recorder_port) = (free_port(), free_port());
    let mut one = Host::start("one", &format!("listen = [\"tcp/127.0.0.1:{port}\"]"));
    let link = one.link.id();
    let node = one.folder.node();
    let mut subscriber = node.subscriber::<[u8]>("/t").reliable().keep_all().open().unwrap();
    eventually("the link listens", || TcpStream::connect(("127.0.0.1", port + 1)).is_ok());

    // The bytes that a host sends on each lane.
    let said = [record(recorder_port, port), record(recorder_port + 1, port + 1)];
    let (domain, recorder) = (DomainId::new(&domain_name()).unwrap(), Recorder::new());
    let recorded = options(recorder_port);
    let net = ZenohNet::open(&recorded, presence(0x666, 1), &domain, recorder.clone()).unwrap();
    recorder.wait("the link is heard", |events| events.presences.first().map(|_| ()));
    drop(net);
    let said = said.map(|said| said.lock().unwrap().clone());

    let two = Host::start("two", &format!("connect = [\"tcp/127.0.0.1:{port}\"]"));
    let other = two.folder.node();
    let mut publisher = other.publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG)).open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let [p50, p99] = percentiles(latencies(&mut publisher, &mut subscriber));
    println!("without: p50 {p50} µs, p99 {p99} µs");
    let (before, resident_before) = (descriptors(link), resident(link));

    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let next = |number: usize| {
        let said = &said[number % 2];
        let (bytes, step) = match number / 2 % 4 {
            0 => (Vec::new(), 1),
            1 => (said[..1 + random.below(said.len())].to_vec(), said.len()),
            2 => (said.clone(), 1),
            _ => (random.spoil(said), said.len()),
        };
        let to = SocketAddr::from(([127, 0, 0, 1], port + (number % 2) as u16));
        Conversation { to, bytes, step }
    };
    let (is_over, mut most, mut grown) = (AtomicBool::new(false), 0, 0);
    let (opened, took) = std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            let took = latencies(&mut publisher, &mut subscriber);
            is_over.store(true, Ordering::Relaxed);
            took
        });
        let opened = flood(&is_over, next, |_| {
            most = most.max(descriptors(link).saturating_sub(before));
            grown = grown.max(resident(link).saturating_sub(resident_before));
        });
        (opened, measured.join().unwrap())
    });
    let [p50, p99] = percentiles(took);
    println!(
        "{opened} connections: p50 {p50} µs, p99 {p99} µs, {most} descriptors, {} KiB",
        grown >> 10
    );
    assert!(opened >= CONNECTIONS);
    assert!(one.link.try_wait().unwrap().is_none(), "the link lives");
    assert!(most <= MAX_DESCRIPTORS, "{most} descriptors more");
    assert!(grown < MAX_GROWTH_BYTES, "{grown} bytes more");
    assert_eq!(subscriber.lost().total(), 0);
    assert_eq!(subscriber.publisher_count(), 1, "the host was never lost");
    eventually("the descriptors are closed", || descriptors(link) < before + 64);

    let three = Host::start("three", &format!("connect = [\"tcp/127.0.0.1:{port}\"]"));
    let third = three.folder.node();
    let joined = third.publisher::<[u8]>("/t").reliable(OnFull::Wait(LONG)).open().unwrap();
    joined.wait_for_subscribers_timeout(1, LONG).unwrap();
}
