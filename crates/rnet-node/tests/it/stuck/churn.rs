//! Many endpoints come and go while messages flow: each loss of the remaining ones is counted, and the closed
//! ones leave nothing behind.

use std::time::{Duration, Instant};

use rnet::{Error, Node, OnFull, Subscriber};

use super::{message, number, reader_of};
use crate::common::{Child, LONG, Net, eventually, orders, tell};

/// How long messages flow. Longer than one worker's time slice, short enough for CI.
const WHILE: Duration = Duration::from_secs(3);
/// Messages that are kept for late joiners.
const HISTORY: u32 = 5;
/// One in this many messages is large.
const LARGE_EVERY: u64 = 50;

fn len_of(number: u64) -> usize {
    if number.is_multiple_of(LARGE_EVERY) { 10_000 } else { 100 }
}

/// Files that a node opens on demand, and those of peers that come and go. A leak of one file per endpoint,
/// of hundreds, would exceed it.
const SLACK: usize = 8;

/// Open files of this test's domain; other tests of this process open theirs meanwhile.
fn open_files(net: &Net) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let leads_there = |link: &std::fs::DirEntry| {
        std::fs::read_link(link.path()).is_ok_and(|to| to.starts_with(net.base()))
    };
    let count = links.filter(leads_there).count();
    assert!(count > 0, "this test's own node has open files");
    count
}

/// Maps of files of this test's domain.
fn maps(net: &Net) -> usize {
    // With the slash, so that it is not a prefix of another name.
    let base = format!("{}/", net.base().display());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains(&base)).count()
}

/// Reads until an empty message; each number arrives once, in order, or is counted.
fn reads_all(mut subscriber: Subscriber<[u8]>) -> (u64, rnet::LossCounts) {
    let (mut received, mut next) = (0, None);
    loop {
        let sample = subscriber.recv_timeout(LONG).unwrap();
        if sample.is_empty() {
            break;
        }
        let now = number(&sample);
        assert!(next.is_none_or(|next| now >= next), "{now} after {next:?}");
        next = Some(now + 1);
        received += 1;
    }
    (received, subscriber.lost())
}

/// Number of messages between the expected one and the received one, which must not be older.
fn subscriber_lost(next: Option<u64>, now: u64) -> u64 {
    next.map_or(0, |next| now.checked_sub(next).expect("a message arrived twice"))
}

/// The clock of `Sample::sent_ns`.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Joins and leaves without end, a hundred times a second; each join requests history.
pub(crate) fn joins_and_leaves(net: &Net) {
    let orders = orders();
    let node = net.node("joiners");
    let (files, mut joins, mut most) = (open_files(net), 0_u64, 0);
    let started = Instant::now();
    while orders.try_recv().is_err() {
        let subscriber = node.subscriber::<[u8]>("/t").transient_local().keep_all();
        let subscriber = if joins.is_multiple_of(2) { subscriber.reliable() } else { subscriber };
        let asked_ns = now_ns();
        let mut subscriber = subscriber.open().unwrap();
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        let mut next = None;
        // The history, which is at most the requested depth, and some live messages.
        let mut past = 0;
        for _ in 0..2 * HISTORY {
            let sample = subscriber.recv_timeout(LONG).unwrap();
            let now = number(&sample);
            past += u32::from(sample.sent_ns() < asked_ns);
            let lost = subscriber_lost(next, now);
            assert!(joins % 2 == 1 || lost == 0, "{now} after {next:?}");
            next = Some(now + 1);
        }
        // One more: a message that was stamped, but not yet written, at the time of the request.
        assert!(past <= HISTORY + 1, "{past}");
        let lost = subscriber.lost();
        assert!(joins % 2 == 1 || lost.total() == 0, "{lost:?}");
        drop(subscriber);
        joins += 1;
        most = most.max(maps(net));
        if let Some(early) = (started + Duration::from_millis(10) * joins as u32)
            .checked_duration_since(Instant::now())
        {
            std::thread::sleep(early); // sleep: paces the joins, a hundred a second
        }
    }
    eventually("its files are closed", || open_files(net) <= files + SLACK);
    assert!(most < 100, "{most} maps");
    tell(&format!("{joins}"));
    let _ = orders.recv();
}

#[test]
fn readers_that_come_and_go() {
    let net = Net::new("joiners");
    let node = net.node("writer");
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .transient_local(HISTORY)
        .open()
        .unwrap();
    let careful = reader_of(&net.node("careful"), "/t");
    let careless = net.node("careless").subscriber::<[u8]>("/t").keep_all().open().unwrap();
    publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
    let files = open_files(&net);
    let readers = [careful, careless].map(|s| std::thread::spawn(move || reads_all(s)));
    let mut child = Child::spawn(&net, "joiners");
    let (started, mut sent) = (Instant::now(), 0_u64);
    while started.elapsed() < WHILE {
        // Ten per millisecond.
        for _ in 0..10 {
            publisher.send(&message(sent, len_of(sent))).unwrap();
            sent += 1;
        }
        std::thread::sleep(Duration::from_millis(1)); // sleep: paces the messages
    }
    child.say("enough");
    // Its last join may wait for messages.
    let joins = loop {
        match child.heard() {
            Some(joins) => break joins,
            None => {
                publisher.send(&message(sent, len_of(sent))).unwrap();
                sent += 1;
                std::thread::sleep(Duration::from_millis(1)); // sleep: paces the messages
            }
        }
    };
    eventually("all readers are gone", || publisher.subscriber_count() == 2);
    // Without traffic it is exactly the requested history.
    let mut late = node.subscriber::<[u8]>("/t").transient_local().reliable().open().unwrap();
    let past: Vec<u64> = (0..HISTORY).map(|_| number(&late.recv_timeout(LONG).unwrap())).collect();
    assert_eq!(past, Vec::from_iter(sent - u64::from(HISTORY)..sent));
    assert!(late.try_recv().unwrap().is_none());
    drop(late);
    publisher.send(&[]).unwrap();
    let [careful, careless] = readers.map(|thread| thread.join().unwrap());
    eprintln!("{joins} joins beside {sent} messages; best_effort lost {:?}", careless.1);
    assert_eq!((careful.0, careful.1.total()), (sent, 0));
    assert_eq!((careless.0 + careless.1.overrun, careless.1.total()), (sent, careless.1.overrun));
    assert!(joins.parse::<u64>().unwrap() > 0);
    child.finish();
    eventually("they leave nothing behind", || {
        net.inspect().publishers[0].readers == 0 && open_files(&net) <= files + SLACK
    });
}

/// Writers that send a few messages and close.
pub(crate) fn writes_and_leaves(net: &Net) {
    let orders = orders();
    let node = net.node("writers");
    let (files, mut writers) = (open_files(net), 0_u64);
    while orders.try_recv().is_err() {
        let mut publisher = node
            .publisher::<[u8]>("/t")
            .reliable(OnFull::Wait(Duration::from_secs(30)))
            .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
            .open()
            .unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        for i in 0..20 {
            publisher.send(&message(i, len_of(i))).unwrap();
        }
        writers += 1;
    }
    eventually("its files are closed", || open_files(net) <= files + SLACK);
    tell(&format!("{writers}"));
    let _ = orders.recv();
}

#[test]
fn writers_that_come_and_go() {
    let net = Net::new("writers");
    let node: Node = net.node("reader");
    let mut subscriber = reader_of(&node, "/t");
    let files = open_files(&net);
    let mut child = Child::spawn(&net, "writers");
    let (started, mut received, mut reported) = (Instant::now(), 0_u64, false);
    let mut expected = None;
    while expected != Some(received) {
        match subscriber.recv_timeout(Duration::from_millis(50)) {
            Ok(_) => received += 1,
            Err(Error::Timeout { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if !reported && started.elapsed() > WHILE {
            child.say("enough");
            reported = true;
        }
        if let Some(writers) = child.heard() {
            expected = Some(20 * writers.parse::<u64>().unwrap());
        }
        assert!(started.elapsed() < Duration::from_secs(50), "{received} of {expected:?}");
    }
    eprintln!("{} writers", received / 20);
    assert_eq!(subscriber.lost().total(), 0);
    eventually("they leave nothing behind", || {
        subscriber.publisher_count() == 0 && open_files(&net) <= files + SLACK
    });
    child.finish();
}
