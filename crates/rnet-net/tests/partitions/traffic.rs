//! Publishers that number their messages, and subscribers that check what they get.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rnet::{Error, LossCounts, Node, Publisher, Subscriber, SubscriberOptions};

use crate::random::Random;

/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What a publisher sends with its number: when, by the clock of the test.
const HEAD_LEN: usize = 16;

/// A publisher, and the thread that sends.
pub struct Talker {
    pub topic: String,
    pub sent: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Talker {
    /// Sends with this publisher, at a rate and in lengths that the numbers give.
    pub fn start(
        mut publisher: Publisher<[u8]>,
        topic: String,
        began: Instant,
        mut random: Random,
    ) -> Talker {
        let pause = random.ms(1..8);
        let (sent, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, told) = (Arc::clone(&sent), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                // Some cross in pieces.
                let len = if random.chance(1, 50) { 20_000 } else { random.below(300) };
                let mut message = vec![0; HEAD_LEN + len];
                let number = count.load(Ordering::Relaxed);
                message[..8].copy_from_slice(&number.to_le_bytes());
                let now = began.elapsed().as_nanos() as u64;
                message[8..16].copy_from_slice(&now.to_le_bytes());
                publisher.send(&message).unwrap();
                count.store(number + 1, Ordering::Relaxed);
                thread::sleep(pause); // sleep: the rate at which it sends
            }
        });
        Talker { topic, sent, ended, thread: Some(thread) }
    }

    /// Ends it; fails if it has failed.
    pub fn end(mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().expect("the publisher goes on");
    }
}

/// What a subscriber has had.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    pub received: u64,
    /// One after the number of the last message.
    pub next: u64,
    /// What its counters said after that message.
    pub lost: LossCounts,
    pub peer_lost: u64,
    /// From when on what is sent is waited for, and when it came, by the clock of the test.
    pub from_ns: u64,
    pub rejoined_ns: Option<u64>,
    /// What is wrong.
    pub wrong: Option<String>,
}

impl Heard {
    /// Whether all up to the last message is accounted for.
    pub fn balance(&self) -> i64 {
        (self.received + self.lost.total()) as i64 - self.next as i64
    }
}

/// A subscriber, and the thread that receives.
pub struct Listener {
    pub topic: String,
    pub host: usize,
    pub heard: Arc<Mutex<Heard>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub fn start(
        node: &Node,
        host: usize,
        topic: String,
        reliable: bool,
        began: Instant,
    ) -> Listener {
        let options = SubscriberOptions::new();
        let options = if reliable { options.reliable() } else { options.keep_all() };
        let subscriber = node.subscriber_with::<[u8]>(&topic, options).unwrap();
        let (heard, ended) = (Arc::<Mutex<Heard>>::default(), Arc::new(AtomicBool::new(false)));
        let (told, end) = (Arc::clone(&heard), Arc::clone(&ended));
        let thread = thread::spawn(move || listen(subscriber, &told, &end, began));
        Listener { topic, host, heard, ended, thread: Some(thread) }
    }

    pub fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn listen(
    mut subscriber: Subscriber<[u8]>,
    heard: &Mutex<Heard>,
    ended: &AtomicBool,
    began: Instant,
) {
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    while !ended.load(Ordering::Relaxed) {
        let got = match subscriber.recv(Some(LOOK)) {
            Ok(message) => Ok((word(&message, 0), word(&message, 8))),
            Err(error) => Err(error),
        };
        let mut heard = heard.lock().unwrap();
        match got {
            Ok((number, sent_ns)) => {
                let now = began.elapsed().as_nanos() as u64;
                if number < heard.next {
                    let next = heard.next;
                    heard.wrong.get_or_insert_with(|| format!("{number} where {next} is next"));
                }
                heard.received += 1;
                heard.next = number + 1;
                heard.lost = subscriber.lost();
                if sent_ns >= heard.from_ns {
                    heard.rejoined_ns.get_or_insert(now);
                }
            }
            Err(Error::Timeout { .. }) => {}
            Err(Error::PeerLost { .. }) => heard.peer_lost += 1,
            Err(error) => {
                heard.wrong.get_or_insert_with(|| error.to_string());
            }
        }
    }
}
