//! Measures the cost of a message between two hosts: through the link, or through Zenoh alone. Start it
//! once on each host, see scripts/link-speed.sh.
//!
//!     link_speed (rnet|zenoh) (send|receive) LEN COUNT HZ [ENDPOINT]
//!     link_speed urgent (send|receive) LEN COUNT HZ
//!
//! `urgent` sends COUNT urgent events of 64 bytes beside images of LEN bytes, which fill the bulk lane; no
//! images if LEN is 0. The receiver fails if an event is missing.
//!
//! HZ 0 sends as fast as the receiver reads (reliable, Block). The receiver prints messages per second and
//! the latency by CLOCK_MONOTONIC, which both hosts must share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rnet::{Node, OnFull, now_ns};
use zenoh::Wait as _;
use zenoh::qos::CongestionControl;

const TOPIC: &str = "/speed";
const LIMIT: Duration = Duration::from_secs(120);
/// The images have filled the cable after this time.
const SATURATED: Duration = Duration::from_secs(2);

struct Job {
    len: usize,
    count: u64,
    hz: u64,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let job = Job { len: number(2) as usize, count: number(3), hz: number(4) };
    match (words[0].as_str(), words[1].as_str()) {
        ("rnet", "send") => rnet_send(&job),
        ("rnet", "receive") => rnet_receive(&job),
        ("urgent", "send") => urgent_send(&job),
        ("urgent", "receive") => urgent_receive(&job),
        ("zenoh", "send") => zenoh_send(&job, &words[5]),
        ("zenoh", "receive") => zenoh_receive(&job, &words[5]),
        _ => panic!("rnet or zenoh, send or receive"),
    }
}

/// Calls `send` with each message, at its time.
fn each(job: &Job, mut send: impl FnMut(&[u8])) {
    let mut message = vec![7_u8; job.len.max(16)];
    let begun = Instant::now();
    for number in 0..job.count {
        if let Some(due) = (number * 1_000_000_000).checked_div(job.hz) {
            std::thread::sleep(Duration::from_nanos(due).saturating_sub(begun.elapsed()));
        }
        message[..8].copy_from_slice(&now_ns().to_le_bytes());
        message[8..16].copy_from_slice(&number.to_le_bytes());
        send(&message);
    }
}

/// The received messages.
struct Seen {
    began: Option<Instant>,
    latencies_ns: Vec<u64>,
}

impl Seen {
    fn new(job: &Job) -> Seen {
        Seen { began: None, latencies_ns: Vec::with_capacity(job.count as usize) }
    }

    fn take(&mut self, message: &[u8]) {
        let sent = u64::from_le_bytes(message[..8].try_into().expect("8 bytes"));
        self.began.get_or_insert_with(Instant::now);
        self.latencies_ns.push(now_ns().saturating_sub(sent));
    }

    fn tell(mut self, job: &Job) {
        let seconds = self.began.map_or(f64::NAN, |began| began.elapsed().as_secs_f64());
        let count = self.latencies_ns.len();
        self.latencies_ns.sort_unstable();
        let us = |q: f64| self.latencies_ns[((count - 1) as f64 * q) as usize] as f64 / 1e3;
        println!(
            "len {} got {count} of {} rate {:.0}/s p50 {:.1} us p99 {:.1} us",
            job.len,
            job.count,
            count as f64 / seconds,
            us(0.5),
            us(0.99)
        );
    }
}

fn rnet_send(job: &Job) {
    let node = Node::new("sender").expect("a node");
    let mut publisher = node
        .publisher::<[u8]>(TOPIC)
        .reliable(OnFull::Wait(LIMIT))
        .log_len_bytes(8 << 20)
        .open()
        .expect("a publisher");
    publisher.wait_for_subscribers_timeout(1, LIMIT).expect("a subscriber");
    each(job, |message| publisher.send(message).expect("it is sent"));
    while publisher.subscriber_count() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn rnet_receive(job: &Job) {
    let node = Node::new("receiver").expect("a node");
    let mut subscriber = node.subscriber::<[u8]>(TOPIC).reliable().open().expect("a subscriber");
    let mut seen = Seen::new(job);
    for _ in 0..job.count {
        seen.take(&subscriber.recv_timeout(LIMIT).expect("a message"));
    }
    seen.tell(job);
}

/// Length of an `urgent` event, in bytes.
const EVENT_LEN: usize = 64;
const IMAGES: &str = "/images";

fn urgent_send(job: &Job) {
    let node = Node::new("sender").expect("a node");
    let mut events = node
        .publisher::<[u8]>(TOPIC)
        .reliable(OnFull::Wait(LIMIT))
        .urgent()
        .open()
        .expect("a publisher");
    let images = (job.len > 0).then(|| {
        let images = node
            .publisher::<[u8]>(IMAGES)
            .reliable(OnFull::Wait(LIMIT))
            .open()
            .expect("a publisher");
        images.wait_for_subscribers_timeout(1, LIMIT).expect("a subscriber");
        images
    });
    events.wait_for_subscribers_timeout(1, LIMIT).expect("a subscriber");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if let Some(mut images) = images {
            let (ended, image) = (&ended, vec![7; job.len]);
            // The send fails when the receiver has finished.
            scope.spawn(move || while !ended.load(Relaxed) && images.send(&image).is_ok() {});
            std::thread::sleep(SATURATED);
        }
        each(&Job { len: EVENT_LEN, ..*job }, |message| events.send(message).expect("it is sent"));
        while events.subscriber_count() > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        ended.store(true, Relaxed);
    });
}

fn urgent_receive(job: &Job) {
    let node = Node::new("receiver").expect("a node");
    let mut events = node.subscriber::<[u8]>(TOPIC).reliable().open().expect("a subscriber");
    let (ended, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        if job.len > 0 {
            let mut images =
                node.subscriber::<[u8]>(IMAGES).reliable().open().expect("a subscriber");
            let (ended, bytes) = (&ended, &bytes);
            scope.spawn(move || {
                while !ended.load(Relaxed) {
                    if let Ok(image) = images.recv_timeout(Duration::from_millis(100)) {
                        bytes.fetch_add(image.len() as u64, Relaxed);
                    }
                }
            });
        }
        let mut seen = Seen::new(job);
        for number in 0..job.count {
            let event = events.recv_timeout(LIMIT).expect("an event");
            assert_eq!(event[8..16], number.to_le_bytes(), "an event was lost");
            if number == 0 {
                bytes.store(0, Relaxed);
            }
            seen.take(&event);
        }
        let seconds = seen.began.map_or(f64::NAN, |began| began.elapsed().as_secs_f64());
        ended.store(true, Relaxed);
        print!("images {:.1} Mbit/s ", bytes.load(Relaxed) as f64 * 8e-6 / seconds);
        seen.tell(job);
    });
}

fn config(key: &str, endpoint: &str) -> zenoh::Config {
    let mut config = zenoh::Config::default();
    let endpoints = format!("[{endpoint:?}]");
    for (key, value) in
        [("scouting/multicast/enabled", "false"), ("listen/endpoints", "[]"), (key, &endpoints)]
    {
        config.insert_json5(key, value).expect("a setting");
    }
    config
}

fn zenoh_send(job: &Job, endpoint: &str) {
    let session = zenoh::open(config("connect/endpoints", endpoint)).wait().expect("a session");
    let publisher = session
        .declare_publisher("speed")
        .congestion_control(CongestionControl::Block)
        .wait()
        .expect("a publisher");
    while !publisher.matching_status().wait().expect("a status").matching() {
        std::thread::sleep(Duration::from_millis(10));
    }
    each(job, |message| publisher.put(message).wait().expect("it is sent"));
    while publisher.matching_status().wait().expect("a status").matching() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn zenoh_receive(job: &Job, endpoint: &str) {
    let session = zenoh::open(config("listen/endpoints", endpoint)).wait().expect("a session");
    let subscriber = session.declare_subscriber("speed").wait().expect("a subscriber");
    let mut seen = Seen::new(job);
    for _ in 0..job.count {
        let sample = subscriber.recv_timeout(LIMIT).expect("it lives").expect("a message");
        seen.take(&sample.payload().to_bytes());
    }
    seen.tell(job);
}
