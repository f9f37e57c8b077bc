//! A peer overwrites its own shared memory while others read it. They may lose its messages, but do not
//! crash, hang or stop.

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Child, LONG, Net, role, tell};
use rnet::OnFull;

/// How long each scribbler writes.
const SCRIBBLE: Duration = Duration::from_millis(700);

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let _orders = common::orders();
    let node = net.node("peer");
    match role.as_str() {
        // Sends small and large messages without ever waiting.
        "sends" => {
            let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            tell("ready");
            loop {
                publisher.send(&[1; 22]).unwrap();
                publisher.send(&[2; 5000]).unwrap();
            }
        }
        "reads" => {
            let mut subscriber = node.subscriber::<[u8]>("/t").reliable().open().unwrap();
            subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
            tell("ready");
            loop {
                let _ = subscriber.recv_timeout(Duration::from_millis(100));
            }
        }
        other => panic!("unknown role: {other}"),
    }
}

/// xorshift64*, for the scribbler's choices.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Files of the peer's folder whose names begin with `letter`.
fn files(net: &Net, letter: char) -> Vec<PathBuf> {
    let nodes = net.base().join(format!("rnet-{}-t/nodes", rustix::process::geteuid().as_raw()));
    let folders = std::fs::read_dir(nodes).unwrap().flatten();
    let peers = folders.filter(|f| f.file_name().to_string_lossy().starts_with("peer@"));
    let all = peers.flat_map(|f| std::fs::read_dir(f.path()).into_iter().flatten().flatten());
    all.filter(|f| f.file_name().to_string_lossy().starts_with(letter)).map(|f| f.path()).collect()
}

/// Writes random words at random offsets, most of them near the control words.
fn scribble(net: &Net, letter: char, seed: u64) {
    let mut random = Random(seed);
    let until = Instant::now() + SCRIBBLE;
    while Instant::now() < until {
        for path in files(net, letter) {
            let Ok(file) = std::fs::OpenOptions::new().write(true).open(&path) else { continue };
            let len = file.metadata().map_or(0, |m| m.len());
            for _ in 0..20 {
                let within = if random.next().is_multiple_of(2) { len } else { len.min(12_288) };
                let at = random.next() % (within / 8).max(1) * 8;
                let word = match random.next() % 4 {
                    0 => random.next(),
                    1 => random.next() % (2 * len + 1),
                    2 => u64::MAX,
                    _ => 0,
                };
                // Never beyond the end of the file: shrinking files are a separate test.
                if at + 8 <= len {
                    let _ = file.write_all_at(&word.to_le_bytes(), at);
                }
            }
        }
    }
}

/// The peer publishes; this test reads while the peer's files are overwritten.
fn reading_from_a_scribbler(letter: char, seed: u64) {
    let net = Net::new("scribbled publisher");
    let node = net.node("victim");
    let mut subscriber = node.subscriber::<[u8]>("/t").open().unwrap();
    let mut child = Child::spawn(&net, "sends");
    child.expect("ready");
    std::thread::scope(|scope| {
        let scribbler = scope.spawn(|| scribble(&net, letter, seed));
        while !scribbler.is_finished() {
            // Any result, errors included; the bytes are read.
            if let Ok(sample) = subscriber.recv_timeout(Duration::from_millis(20)) {
                std::hint::black_box(sample.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b)));
            }
            let _ = net.inspect();
        }
    });
    child.kill();
    // The subscriber and its node still work.
    let mut publisher = net.node("honest").publisher::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"honest").unwrap();
    common::eventually("honest messages arrive", || {
        subscriber.recv_timeout(Duration::from_millis(20)).is_ok_and(|s| *s == *b"honest")
    });
}

#[test]
fn a_scribbled_log() {
    (1..4).for_each(|seed| reading_from_a_scribbler('p', seed));
}

#[test]
fn scribbled_bells_of_a_publisher() {
    reading_from_a_scribbler('b', 11);
}

#[test]
fn a_scribbled_node_header() {
    reading_from_a_scribbler('n', 12);
}

/// The peer subscribes; this test publishes reliably while the peer's files are overwritten.
fn writing_to_a_scribbler(letter: char, seed: u64) {
    let net = Net::new("scribbled subscriber");
    let node = net.node("victim");
    let mut publisher = node
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Refuse)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .pool_limit_bytes(1 << 20)
        .open()
        .unwrap();
    let mut child = Child::spawn(&net, "reads");
    child.expect("ready");
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    std::thread::scope(|scope| {
        let scribbler = scope.spawn(|| scribble(&net, letter, seed));
        while !scribbler.is_finished() {
            let _ = publisher.send(&[1; 22]);
            let _ = publisher.send(&[2; 5000]);
        }
    });
    child.kill();
    let mut honest = net.node("honest").subscriber::<[u8]>("/t").reliable().open().unwrap();
    honest.wait_for_publishers_timeout(1, LONG).unwrap();
    common::eventually("the dead reader is removed", || publisher.subscriber_count() == 1);
    for len in [22, 5000] {
        publisher.send(&vec![3; len]).unwrap();
        assert_eq!(*honest.recv_timeout(LONG).unwrap(), vec![3; len]);
    }
}

#[test]
fn a_scribbled_subscription() {
    (21..24).for_each(|seed| writing_to_a_scribbler('s', seed));
}

#[test]
fn scribbled_bells_of_a_subscriber() {
    writing_to_a_scribbler('b', 31);
}

#[test]
fn foreign_files_in_the_domain_are_left_alone() {
    let net = Net::new("litter");
    drop(net.node("first"));
    let domain = net.base().join(format!("rnet-{}-t", rustix::process::geteuid().as_raw()));
    for name in ["nodes/x", "nodes/a@zzzzzzzzzz", "nodes/@0000000001", "nodes/ü@0000000002"] {
        std::fs::create_dir(domain.join(name)).unwrap();
    }
    std::fs::write(domain.join("names/ghost"), [0xff; 100]).unwrap();
    let (a, b) = (net.node("a"), net.node("ghost"));
    let mut publisher = a.publisher::<[u8]>("/t").open().unwrap();
    let mut subscriber = b.subscriber::<[u8]>("/t").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    publisher.send(b"well").unwrap();
    assert_eq!(&*subscriber.recv_timeout(LONG).unwrap(), b"well");
}
