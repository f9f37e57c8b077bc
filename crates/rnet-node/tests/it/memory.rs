//! Memory follows traffic: the use of a domain with many slow topics, and of one topic after a burst.

use crate::common;

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use common::{LONG, Net, eventually};
use rnet::{OnFull, Publisher, Subscriber};

const NODES: usize = 10;
const TOPICS_PER_NODE: usize = 100;
/// Faster than the 10 Hz that it simulates, so that the test takes seconds. In a log of fixed length whose
/// pages are touched only when written, each publisher would use 48 KB at the end, and its two files 24 KiB
/// more.
const EVERY: Duration = Duration::from_millis(16);
const MESSAGES: usize = 400;
const MESSAGE_LEN: usize = 100;
const LIMIT_BYTES: u64 = 64 << 20;

/// Disk use of the files below a directory, each counted once.
fn bytes_below(dir: &Path) -> u64 {
    fn walk(dir: &Path, seen: &mut HashSet<u64>) -> u64 {
        let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
        let size = |entry: std::fs::DirEntry| {
            let meta = entry.metadata().unwrap();
            match meta.is_dir() {
                true => walk(&entry.path(), seen),
                false if seen.insert(meta.ino()) => meta.blocks() * 512,
                false => 0,
            }
        };
        entries.map(size).sum()
    }
    walk(dir, &mut HashSet::new())
}

/// Resident file memory of this process.
fn rss_of_files() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssShmem:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn thousand_slow_publishers_use_little_memory() {
    let net = Net::for_long("thousand", Duration::from_secs(300));
    let nodes: Vec<_> = (0..NODES).map(|n| net.node(&format!("n{n}"))).collect();
    let topic = |node: usize, number: usize| format!("/n{node}/t{number}");
    let mut publishers: Vec<Publisher<[u8]>> = Vec::new();
    let mut subscribers: Vec<Subscriber<[u8]>> = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        for number in 0..TOPICS_PER_NODE {
            publishers.push(node.publisher(&topic(n, number)).open().unwrap());
            let peer = &nodes[(n + 1) % NODES];
            subscribers.push(peer.subscriber(&topic(n, number)).open().unwrap());
        }
    }
    publishers.iter_mut().for_each(|p| p.wait_for_subscribers_timeout(1, LONG).unwrap());
    let at_first = bytes_below(net.base());
    for message in 0..MESSAGES {
        let round = std::time::Instant::now();
        publishers.iter_mut().for_each(|p| p.send(&[message as u8; MESSAGE_LEN]).unwrap());
        for subscriber in &mut subscribers {
            assert_eq!(subscriber.recv_timeout(LONG).unwrap()[0], message as u8);
        }
        std::thread::sleep(EVERY.saturating_sub(round.elapsed())); // sleep: the publishers' period
    }
    let at_last = bytes_below(net.base());
    println!("first {} KiB, last {} KiB", at_first >> 10, at_last >> 10);
    assert!(at_last <= LIMIT_BYTES, "{at_last} bytes of shared memory");
    // Both sides map each page of a log and of a subscriber's file.
    assert!(rss_of_files() <= 2 * LIMIT_BYTES, "{} bytes mapped", rss_of_files());
}

/// Log length of the only publisher, as tools see it.
fn log_bytes(net: &Net) -> u64 {
    net.inspect().publishers.remove(0).memory_bytes
}

#[test]
fn burst_grows_the_log_which_shrinks_afterwards() {
    let net = Net::new("burst");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").keep_all().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    assert_eq!(log_bytes(&net), 16 << 10);
    // All 512 KiB, before the subscriber reads.
    (0..500).for_each(|n| publisher.send(&[n as u8; 1000]).unwrap());
    assert_eq!(log_bytes(&net), 512 << 10);
    for n in 0..500 {
        assert_eq!(subscriber.recv_timeout(LONG).unwrap()[0], n as u8);
    }
    assert_eq!(subscriber.lost().total(), 0);
    // At 20 KB per second it keeps the last few seconds.
    eventually("the memory of the burst comes back", || {
        std::thread::sleep(Duration::from_millis(50)); // sleep: the publisher's period
        publisher.send(&[7; 1000]).unwrap();
        subscriber.recv_timeout(LONG).unwrap();
        log_bytes(&net) <= 160 << 10
    });
}

/// A reliable subscriber may use the full log length, however rarely its publisher sends.
#[test]
fn slow_reliable_reader_can_use_the_full_log() {
    let net = Net::new("slow");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher =
        a.publisher::<[u8]>("/t").reliable(OnFull::Refuse).log_len_bytes(1 << 20).open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let sent = (0..).take_while(|_| publisher.send(&[1; 1000]).is_ok()).count();
    assert_eq!(sent, (1 << 20) / 1016);
    assert_eq!(log_bytes(&net), 1 << 20);
    (0..sent).for_each(|_| assert!(subscriber.recv_timeout(LONG).is_ok()));
}

/// A reserved log allocates no memory later, and releases none.
#[test]
fn a_reserved_log_has_its_memory_from_the_start() {
    let net = Net::new("reserved");
    let node = net.node("a");
    let mut publisher = node.publisher::<[u8]>("/t").reserve_log().open().unwrap();
    assert_eq!(log_bytes(&net), 512 << 10);
    assert!(bytes_below(net.base()) >= 512 << 10);
    (0..1000).for_each(|_| publisher.send(&[7; 1000]).unwrap());
    assert_eq!(log_bytes(&net), 512 << 10);
}

/// A log with a large limit begins with one block.
#[test]
fn a_log_that_may_get_long_begins_short() {
    let net = Net::new("long");
    let node = net.node("a");
    let _publisher = node.publisher::<[u8]>("/t").log_len_bytes(64 << 20).open().unwrap();
    assert_eq!(log_bytes(&net), 1 << 20);
}

/// The log holds as many messages as late joiners are promised, although the default log is too short for
/// them. A depth that no log can hold is refused by name.
#[test]
fn history_depth_extends_the_log() {
    const DEPTH: u32 = 1000;
    let net = Net::new("history");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").transient_local(DEPTH).open().unwrap();
    (0..3 * DEPTH).for_each(|n| publisher.send(&[n as u8; 4096]).unwrap());
    let mut late = b.subscriber::<[u8]>("/t").transient_local().keep_all().open().unwrap();
    for n in 2 * DEPTH..3 * DEPTH {
        assert_eq!(late.recv_timeout(LONG).unwrap()[0], n as u8);
    }
    let error = a
        .publisher::<[u8]>("/u")
        .transient_local(1_000_000)
        .open()
        .map(drop)
        .unwrap_err()
        .to_string();
    for word in ["/u", "transient_local", "1000000", "bytes", "keep fewer"] {
        assert!(error.contains(word), "{error}");
    }
}
