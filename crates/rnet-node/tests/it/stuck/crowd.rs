//! Many stopped reliable readers: a writer that evicts readers waits for one stall timeout, not for one per
//! reader.

use std::time::{Duration, Instant};

use rnet::{Node, OnFull, Publisher, Subscriber};

use super::{message, reader_of, reliable};
use crate::common::{Child, LONG, Net, eventually, orders, tell};

const STALL: Duration = Duration::from_secs(1);
/// A send waits for one stall timeout; the rest is margin for a busy machine.
const LIMIT: Duration = Duration::from_millis(1500);

/// A process with several readers, which all read until it is stopped.
pub(crate) fn reads_with_many(net: &Net) {
    let orders = orders();
    let node = net.node(&format!("crowd{}", std::process::id()));
    let mut readers: Vec<Subscriber<[u8]>> = Vec::new();
    for order in &orders {
        let Ok(more) = order.parse::<usize>() else { break };
        readers.extend((0..more).map(|_| reader_of(&node, "/t")));
        tell("subscribed");
        eventually("each has a message", || {
            readers.iter_mut().all(|reader| {
                while reader.try_recv().unwrap().is_some() {}
                reader.stats().iter().any(|stats| stats.received > 0)
            })
        });
        tell("reading");
    }
}

/// The longest of `count` sends.
fn longest_send(publisher: &mut rnet::Publisher<[u8]>, count: u64, len: usize) -> Duration {
    let sends = (0..count).map(|number| {
        let began = Instant::now();
        publisher.send(&message(number, len)).unwrap();
        began.elapsed()
    });
    sends.max().unwrap_or_default()
}

fn publisher(node: &Node) -> Publisher<[u8]> {
    reliable(node, OnFull::Detach { stall: STALL }).open().unwrap()
}

/// All stop at once, behind small messages in the log or large ones in chunks.
fn stop_at_once(readers: usize) {
    for (len, count) in [(1000, 200), (20_000, 100)] {
        let net = Net::new("many stopped readers");
        let mut publisher = publisher(&net.node("writer"));
        let mut child = Child::spawn(&net, "crowd");
        child.say(&readers.to_string());
        child.expect("subscribed");
        publisher.wait_for_subscribers_timeout(readers, LONG).unwrap();
        publisher.send(&message(0, len)).unwrap();
        child.expect("reading");
        child.stop();
        let longest = longest_send(&mut publisher, count, len);
        assert_eq!(publisher.subscriber_count(), 0);
        assert!(longest <= LIMIT, "{readers} readers, {len} bytes: a send took {longest:?}");
    }
}

#[test]
fn one_reader_stops() {
    stop_at_once(1);
}

#[test]
fn ten_readers_stop_at_once() {
    stop_at_once(10);
}

#[test]
fn sixty_four_readers_stop_at_once() {
    stop_at_once(64);
}

/// Each reader stops at a different message: when the first is evicted, the others have been stopped for as
/// long. No single send waits longer than one stall timeout, and all together wait not much longer.
#[test]
fn readers_stop_one_after_another() {
    let net = Net::new("readers stop one after another");
    let mut publisher = publisher(&net.node("writer"));
    let node = net.node("readers");
    let mut readers: Vec<_> = (0..8).map(|_| reader_of(&node, "/t")).collect();
    publisher.wait_for_subscribers_timeout(readers.len(), LONG).unwrap();
    // Each reads one message less than the previous reader. A message of its own takes a fourteenth of the
    // log.
    for number in 0..readers.len() as u64 {
        publisher.send(&message(number, 1100)).unwrap();
        for reader in &mut readers[number as usize..] {
            while reader.try_recv().unwrap().is_some() {}
        }
    }
    let began = Instant::now();
    let longest = longest_send(&mut publisher, 200, 1100);
    let all = began.elapsed();
    assert_eq!(publisher.subscriber_count(), 0);
    assert!(longest <= LIMIT && all <= 2 * LIMIT, "a send took {longest:?}, all of them {all:?}");
}

/// A reader that continues is not evicted with the others, however many have stopped.
#[test]
fn running_reader_is_not_evicted_with_stopped_ones() {
    let net = Net::new("one reader continues");
    let mut publisher = publisher(&net.node("writer"));
    let node = net.node("readers");
    let stopped: Vec<_> = (0..10).map(|_| reader_of(&node, "/t")).collect();
    let mut reads = reader_of(&node, "/t");
    publisher.wait_for_subscribers_timeout(stopped.len() + 1, LONG).unwrap();
    let writer = std::thread::spawn(move || {
        for number in 0..200 {
            publisher.send(&message(number, 1000)).unwrap();
        }
        publisher.subscriber_count()
    });
    for number in 0..200 {
        assert_eq!(super::number(&reads.recv_timeout(LONG).unwrap()), number);
    }
    assert_eq!(writer.join().unwrap(), 1);
    assert_eq!(reads.lost().total(), 0);
    drop(stopped);
}
