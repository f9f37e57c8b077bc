//! A slow subscriber does not act on stale data, and each skipped message is counted.

use crate::common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{LONG, Net};
use rnet::Backlog;
use rnet::limits::DEFAULT_KEEP_LAST;
use rnet_shm::channel::publisher::CONTROL_AT;
use rnet_shm::ring::MAX_COMMIT_RECORDS;
use rnet_shm::ring::layout::{LogControl, TailLine};

/// A topic at 1 kHz, read at 10 Hz with default options.
#[test]
fn slow_default_subscriber_receives_the_newest_message() {
    const ROUNDS: u64 = 20;
    const PER_ROUND: u64 = 100;
    let net = Net::new("slow default");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let (sent, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                publisher.send(&sent.load(Ordering::Relaxed).to_le_bytes()).unwrap();
                sent.fetch_add(1, Ordering::Release);
                std::thread::sleep(Duration::from_millis(1)); // sleep: a topic of 1 kHz
            }
        });
        for round in 1..=ROUNDS {
            common::eventually("100 more were sent", || {
                sent.load(Ordering::Relaxed) >= round * PER_ROUND
            });
            let before = sent.load(Ordering::Acquire);
            let got = subscriber.recv_timeout(LONG).unwrap().seq();
            let oldest = before - u64::from(DEFAULT_KEEP_LAST);
            assert!(got >= oldest, "the sample is {got} when {before} are sent");
            assert!(subscriber.behind().messages >= u64::from(DEFAULT_KEEP_LAST) - 1);
        }
        done.store(true, Ordering::Relaxed);
    });
    while subscriber.try_recv().unwrap().is_some() {}
    let stats = subscriber.stats().remove(0);
    assert_eq!((stats.lost.total(), stats.behind), (0, Backlog::default()));
    assert_eq!(stats.received + stats.skipped, sent.into_inner());
    assert!(stats.skipped >= (ROUNDS - 1) * (PER_ROUND - u64::from(DEFAULT_KEEP_LAST)) / 2);
}

/// A publisher stores a message's number before it commits the message. If it dies in between, the last
/// committed message is the newest.
#[test]
fn unfinished_commit_loses_no_message() {
    let net = Net::new("unfinished");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    for (keep, ahead) in [(1, 1), (3, 1), (1, MAX_COMMIT_RECORDS), (3, MAX_COMMIT_RECORDS)] {
        let mut subscriber = b.subscriber::<[u8]>("/t").keep_last(keep).open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        for n in 0..9_u8 {
            publisher.send(&[n]).unwrap();
        }
        let path = net.inspect().publishers.remove(0).path;
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let tail = (CONTROL_AT + std::mem::offset_of!(LogControl, tail)) as u64;
        let at = |field: usize| tail + field as u64;
        let word = |at: u64| {
            let mut word = [0; 8];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut word, at).unwrap();
            u64::from_le_bytes(word)
        };
        let write = |at: u64, word: u64| {
            std::os::unix::fs::FileExt::write_all_at(&file, &word.to_le_bytes(), at).unwrap();
        };
        let seq = at(std::mem::offset_of!(TailLine, seq));
        let last = at(std::mem::offset_of!(TailLine, last));
        let before = (word(seq), word(last));
        write(last, word(at(std::mem::offset_of!(TailLine, tail))));
        // One local message, or several of another host that are committed together.
        write(seq, before.0 + ahead);
        for n in 9 - keep as u8..9 {
            assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), [n]);
        }
        assert!(subscriber.try_recv().unwrap().is_none());
        write(seq, before.0);
        write(last, before.1);
        drop(subscriber);
        common::eventually("the subscriber is gone", || publisher.subscriber_count() == 0);
    }
}
