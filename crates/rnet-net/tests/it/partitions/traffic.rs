//! Publishers that number their messages, and subscribers that check them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rnet::{Error, LossCounts, Node, Publisher, Subscriber};

use rustix::time::{ClockId, clock_gettime};

use crate::random::Random;

/// The interval between two checks for a stop request.
const LOOK: Duration = Duration::from_millis(20);

/// A publisher sends its number and the time, by the common clock.
const HEAD_LEN: usize = 16;

/// The time that all hosts share: in namespaces, their monotonic clocks differ.
pub fn common_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// A publisher, and the thread that sends.
pub struct Talker {
    pub topic: String,
    pub sent: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Talker {
    /// Sends with this publisher, with pauses and lengths from the random numbers.
    pub fn start(
        mut publisher: Publisher<[u8]>,
        topic: String,
        pause_ms: Range<u64>,
        mut random: Random,
    ) -> Talker {
        let pause = random.ms(pause_ms);
        let (sent, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stop) = (Arc::clone(&sent), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                // Some cross in fragments.
                let len = if random.chance(1, 50) { 20_000 } else { random.below(300) };
                let mut message = vec![0; HEAD_LEN + len];
                let number = count.load(Ordering::Relaxed);
                message[..8].copy_from_slice(&number.to_le_bytes());
                message[8..16].copy_from_slice(&common_ns().to_le_bytes());
                publisher.send(&message).unwrap();
                count.store(number + 1, Ordering::Relaxed);
                thread::sleep(pause); // sleep: the rate at which it sends
            }
        });
        Talker { topic, sent, ended, thread: Some(thread) }
    }

    /// Stops it; fails if it has failed.
    pub fn end(mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().expect("the publisher has failed");
    }
}

/// The messages that a subscriber has received.
#[derive(Clone, Debug, Default)]
pub struct ReceiveCounts {
    pub received: u64,
    /// One after the number of the last message.
    pub next: u64,
    /// Its loss counters after that message.
    pub lost: LossCounts,
    pub peer_lost: u64,
    /// The subscriber waits for a message sent after this time; when that message came, by the common
    /// clock.
    pub from_ns: i64,
    pub rejoined_ns: Option<i64>,
    /// The first failure.
    pub wrong: Option<String>,
}

impl ReceiveCounts {
    /// Zero if all messages up to the last are accounted for.
    pub fn balance(&self) -> i64 {
        (self.received + self.lost.total()) as i64 - self.next as i64
    }
}

/// A subscriber, and the thread that receives.
pub struct Listener {
    pub topic: String,
    pub host: usize,
    pub counts: Arc<Mutex<ReceiveCounts>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub fn start(node: &Node, host: usize, topic: String, reliable: bool) -> Listener {
        let subscriber = node.subscriber::<[u8]>(&topic);
        let subscriber = if reliable { subscriber.reliable() } else { subscriber.keep_all() };
        let subscriber = subscriber.open().unwrap();
        let (counts, ended) =
            (Arc::<Mutex<ReceiveCounts>>::default(), Arc::new(AtomicBool::new(false)));
        let (shared, end) = (Arc::clone(&counts), Arc::clone(&ended));
        let thread = thread::spawn(move || listen(subscriber, &shared, &end));
        Listener { topic, host, counts, ended, thread: Some(thread) }
    }

    pub fn counts(&self) -> ReceiveCounts {
        self.counts.lock().unwrap().clone()
    }

    /// Waits from now on for a message that is sent after this moment.
    pub fn wait_from(&self, from_ns: i64) {
        let mut counts = self.counts.lock().unwrap();
        (counts.from_ns, counts.rejoined_ns) = (from_ns, None);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn listen(mut subscriber: Subscriber<[u8]>, counts: &Mutex<ReceiveCounts>, ended: &AtomicBool) {
    let word = |bytes: &[u8], at: usize| bytes[at..at + 8].try_into().unwrap();
    while !ended.load(Ordering::Relaxed) {
        let got = match subscriber.recv_timeout(LOOK) {
            Ok(message) => {
                Ok((u64::from_le_bytes(word(&message, 0)), i64::from_le_bytes(word(&message, 8))))
            }
            Err(error) => Err(error),
        };
        let mut counts = counts.lock().unwrap();
        match got {
            Ok((number, sent_ns)) => {
                if number < counts.next {
                    let next = counts.next;
                    counts.wrong.get_or_insert_with(|| format!("{number} where {next} is next"));
                }
                counts.received += 1;
                counts.next = number + 1;
                counts.lost = subscriber.lost();
                if sent_ns >= counts.from_ns {
                    counts.rejoined_ns.get_or_insert_with(common_ns);
                }
            }
            Err(Error::Timeout { .. }) => {}
            Err(Error::PeerLost { .. }) => counts.peer_lost += 1,
            Err(error) => {
                counts.wrong.get_or_insert_with(|| error.to_string());
            }
        }
    }
}
