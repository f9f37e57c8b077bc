//! A stopped reader and a reliable writer, under each of its three policies.

use std::time::Duration;

use rnet::{Error, OnFull, Publisher, Subscriber};

use super::{is_full, message, number, reader_of, reliable};
use crate::common::{Child, LONG, Net, eventually, orders, tell};

/// Small messages are in the log, large ones in chunks.
const LENS: [usize; 2] = [1000, 20_000];
const SHORT: Duration = Duration::from_millis(100);

/// Reads until an empty message, then reports its counts: received, lost by detachment, lost in total. With
/// `keep`, keeps the first messages.
pub(crate) fn reads_when_told(net: &Net, keep: bool) {
    let orders = orders();
    let node = net.node("stopped");
    let mut subscriber = reader_of(&node, "/t");
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    let (mut next, mut detached, mut kept) = (0, 0, Vec::new());
    loop {
        match subscriber.recv_timeout(LONG) {
            Ok(end) if end.is_empty() => break,
            Ok(sample) => {
                let now = number(&sample);
                assert!(now >= next, "{now} after {next}");
                next = now + 1;
                if keep && kept.len() < 4 {
                    kept.push((now, sample.into_owned()));
                }
                if now == 3 {
                    tell("reading");
                }
            }
            Err(Error::Detached { topic, publisher_node, stall_ms: 1.. }) => {
                assert_eq!((topic.as_str(), publisher_node.as_str()), ("/t", "/writer"));
                detached += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        kept.iter().all(|(was, sample)| number(sample) == *was),
        "the kept samples are unchanged"
    );
    let stats = subscriber.stats().remove(0);
    tell(&format!("{} {} {} {detached}", stats.received, stats.lost.detached, stats.lost.total()));
    let _ = orders.recv();
}

struct Scene {
    publisher: Publisher<[u8]>,
    /// A reader that continues.
    other: Subscriber<[u8]>,
    child: Child,
    sent: u64,
    read: u64,
    len: usize,
    _net: Net,
}

impl Scene {
    /// A writer, a running reader, and a reader that stopped after four messages.
    fn new(role: &str, on_full: OnFull, len: usize) -> Scene {
        let net = Net::new("stopped");
        let publisher = reliable(&net.node("writer"), on_full).open().unwrap();
        let other = reader_of(&net.node("beside"), "/t");
        let child = Child::spawn(&net, role);
        let mut scene = Scene { publisher, other, child, sent: 0, read: 0, len, _net: net };
        scene.publisher.wait_for_subscribers_timeout(2, LONG).unwrap();
        for _ in 0..4 {
            scene.send().unwrap();
        }
        scene.child.expect("reading");
        scene.child.stop();
        scene
    }

    /// Sends the next message, and lets the other reader take all available messages.
    fn send(&mut self) -> rnet::Result<()> {
        let sent = self.publisher.send(&message(self.sent, self.len));
        self.sent += u64::from(sent.is_ok());
        while let Some(sample) = self.other.try_recv().unwrap() {
            assert_eq!(number(&sample), self.read);
            self.read += 1;
        }
        assert_eq!(self.read, self.sent, "the other reader receives each sent message");
        sent
    }

    fn send_until_full(&mut self) -> Error {
        loop {
            if let Err(error) = self.send() {
                return error;
            }
        }
    }

    /// Resumes the stopped reader. Returns its counts: received, lost by detachment, lost in total,
    /// notifications.
    fn resume(&mut self) -> [u64; 4] {
        self.child.resume();
        eventually("the end message fits", || {
            self.publisher.subscriber_count() == 2 && self.publisher.send(&[]).is_ok()
        });
        let words = self.child.hear();
        let counts: Vec<u64> = words.split(' ').map(|n| n.parse().unwrap()).collect();
        assert_eq!(self.other.lost().total(), 0);
        counts.try_into().unwrap()
    }
}

/// The error names the reader that the writer waits for and returns the message, and nothing is lost.
fn holds_back(role: &str, on_full: OnFull) {
    for len in LENS {
        let mut scene = Scene::new(role, on_full, len);
        for _ in 0..3 {
            is_full(&scene.send_until_full(), "/stopped");
        }
        let sent = scene.sent;
        let counts = scene.resume();
        assert_eq!(counts, [sent + 1, 0, 0, 0], "{len}");
    }
}

#[test]
fn stopped_reader_with_refuse_policy() {
    holds_back("reader", OnFull::Refuse);
}

#[test]
fn stopped_reader_with_wait_policy() {
    holds_back("reader", OnFull::Wait(SHORT));
}

#[test]
fn stopped_reader_with_kept_samples_and_refuse_policy() {
    holds_back("persister", OnFull::Refuse);
}

/// The writer continues without the reader, which is notified once; its missed messages are counted.
fn detaches(role: &str) {
    for len in LENS {
        let mut scene = Scene::new(role, OnFull::Detach { stall: SHORT }, len);
        for _ in 0..1000 {
            // Each send returns when the stall timeout is over, at the latest.
            scene.send().unwrap();
        }
        assert_eq!(scene.publisher.subscriber_count(), 1);
        let [received, detached, lost, reported] = scene.resume();
        let sent = scene.sent + 1;
        assert_eq!((received + detached, lost, reported), (sent, detached, 1), "{len}");
        assert!(detached > 0, "{len}");
    }
}

#[test]
fn stopped_reader_with_detach_policy() {
    detaches("reader");
}

#[test]
fn stopped_reader_with_kept_samples_and_detach_policy() {
    detaches("persister");
}

/// Stopped and then killed: once it is dead, the publisher regains the kept samples.
#[test]
fn stopped_then_killed_reader_releases_its_samples() {
    for on_full in [OnFull::Refuse, OnFull::Wait(SHORT), OnFull::Detach { stall: SHORT }] {
        let mut scene = Scene::new("persister", on_full, 100_000);
        match on_full {
            OnFull::Detach { .. } => (0..20).for_each(|_| scene.send().unwrap_or(())),
            _ => is_full(&scene.send_until_full(), "/stopped"),
        }
        scene.child.kill();
        eventually("the reader is gone", || scene.publisher.subscriber_count() == 1);
        for _ in 0..20 {
            scene.send().unwrap();
        }
        assert_eq!(scene.other.lost().total(), 0);
    }
}

/// A publisher that closes waits for its large messages to be taken, for a limited time.
#[test]
fn publisher_closes_before_a_stopped_reader() {
    for len in LENS {
        let mut scene = Scene::new("reader", OnFull::Wait(Duration::from_secs(3600)), len);
        scene.send().unwrap();
        let Scene { publisher, mut child, mut other, .. } = scene;
        let started = std::time::Instant::now();
        drop(publisher);
        eprintln!("closed after {:?}, messages of {len} bytes", started.elapsed());
        // Its node detects the end a moment later.
        eventually("the other reader has seen the end", || {
            assert!(other.try_recv().unwrap().is_none());
            other.publisher_count() == 0
        });
        assert_eq!(other.lost().total(), 0);
        child.kill();
    }
}
