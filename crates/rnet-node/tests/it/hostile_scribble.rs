//! A process of the same user overwrites each kind of shared file while others send and receive. The others
//! continue, or report `Corrupt` and close that channel; their other channels lose nothing.

use crate::common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Child, LONG, Net, eventually, role, tell};
use rnet::inspect::Domain;
use rnet::schema::{Schema, compile_text};
use rnet::{Dynamic, Error, Node, OnFull};

/// Reads of the victim on the corrupt channel, per kind of file.
const READS: u32 = 250;
/// Seeds per kind of file.
const ROUNDS: u64 = 3;
/// Files that the scribbler overwrites: prefixes of file names in the peer's folder, or a file of the domain.
const KINDS: [(&str, u64); 10] = [
    ("p0", 1),
    ("p0.", 2),
    ("s1", 3),
    ("bells", 4),
    ("node", 5),
    ("ctl", 6),
    ("names", 7),
    ("VERSION", 8),
    ("", 9), // all of the folder at once
    ("t", 10),
];

#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    let orders = common::orders();
    if role == "peer" {
        let node = net.node("peer");
        // p0 and s1, whose file names the scribbler uses.
        let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
        let mut subscriber = node.subscriber::<[u8]>("/u").reliable().open().unwrap();
        let _typed = node.publisher::<Dynamic>("/typed").schema(&level()).open().unwrap();
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
        subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
        tell("ready");
        // Until the parent ends it, whatever each call returns.
        while orders.try_recv().is_err() {
            for len in [0, 22, 22, 1000, 5000, 100_000] {
                let _ = publisher.send(&vec![1; len]);
            }
            if let Ok(sample) = subscriber.recv_timeout(Duration::from_millis(1)) {
                look_at(&sample);
            }
        }
        tell("alive");
        return;
    }
    let (kind, seed) = role.split_once(' ').unwrap();
    let mut random = Random(seed.parse().unwrap());
    let mut inputs = 0_u64;
    tell("ready");
    while orders.try_recv().is_err() {
        for path in files(&net, kind) {
            inputs += scribble(&path, kind, &mut random);
        }
    }
    tell(&format!("inputs={inputs}"));
}

fn level() -> Schema {
    let text = r#"syntax = "proto3"; message Level { double volt = 1; repeated Level cells = 2; }"#;
    compile_text("level.proto", text).unwrap().schema("Level").unwrap()
}

/// Matches the peer's type again: it is compatible, or the error says why not.
fn meet_type(victim: &Node) {
    let mut typed = victim.subscriber::<Dynamic>("/typed").schema(&level()).open().unwrap();
    if let Err(error) = typed.wait_for_publishers_timeout(1, Duration::from_millis(1)) {
        assert!(allowed(&error), "{error}");
    }
}

fn look_at(bytes: &[u8]) {
    std::hint::black_box(bytes.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b)));
}

/// xorshift64* (G. Marsaglia, "Xorshift RNGs", 2003; S. Vigna's multiplier).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        // Uses the high bits, because the low bits of this generator are weaker.
        (self.next() >> 16) % bound.max(1)
    }
}

fn domain(net: &Net) -> PathBuf {
    net.base().join(format!("rnet-{}-t", rustix::process::geteuid().as_raw()))
}

fn files(net: &Net, kind: &str) -> Vec<PathBuf> {
    match kind {
        "names" => return vec![domain(net).join("names/peer")],
        "VERSION" => return vec![domain(net).join("VERSION")],
        _ => {}
    }
    let folders = std::fs::read_dir(domain(net).join("nodes")).into_iter().flatten().flatten();
    let peer = folders.filter(|f| f.file_name().to_string_lossy().starts_with("peer@"));
    let all = peer.flat_map(|f| std::fs::read_dir(f.path()).into_iter().flatten().flatten());
    all.filter(|f| f.file_name().to_string_lossy().starts_with(kind)).map(|f| f.path()).collect()
}

/// Position of the control words, and their number: first byte, words.
fn hot(name: &str, len: u64) -> (u64, u64) {
    match name.as_bytes() {
        // A chunk's header, and a publisher's control words and first records.
        [b'p', ..] if name.contains('.') => (0, 5),
        [b'p', ..] => (256, 60),
        // The page that is bound to a publisher is the last one.
        [b's', ..] => (len.saturating_sub(4096), 112),
        [b'n', ..] => (32, 3),
        _ => (0, 64),
    }
}

/// A value in place of `now` that does more harm than noise.
fn adversarial(now: u64, len: u64, random: &mut Random) -> u64 {
    match random.below(14) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << 63,
        3 => now.wrapping_add(1),
        4 => now.wrapping_sub(1),
        5 => now.wrapping_add(8),
        6 => now.wrapping_sub(8),
        7 => now.wrapping_add(len),
        8 => now.wrapping_sub(len),
        9 => now ^ 1 << random.below(64),
        10 => random.below(2 * len + 1) & !7,
        11 => random.below(8),
        12 => now.wrapping_add(random.below(1 << 20) * 8),
        _ => random.next(),
    }
}

/// Performs a few writes. Returns how many.
fn scribble(path: &Path, kind: &str, random: &mut Random) -> u64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut options = std::fs::OpenOptions::new();
    if name == "ctl" {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK);
    }
    let Ok(file) = options.read(true).write(true).open(path) else { return 0 };
    if name == "ctl" {
        let litter: Vec<u8> = (0..random.below(64)).map(|_| random.next() as u8).collect();
        return u64::from(std::io::Write::write(&mut &file, &litter).is_ok());
    }
    let len = file.metadata().map_or(0, |m| m.len());
    let (at, words) = hot(&name, len);
    let mut done = 0;
    for _ in 0..16 {
        let at = match random.below(4) {
            0 => random.below(len / 8) * 8,
            _ => at + random.below(words) * 8,
        };
        // Not beyond the end, because growing a file does no harm.
        let mut word = [0; 8];
        let end = (len.saturating_sub(at)).min(8) as usize;
        if file.read_at(&mut word[..end], at).is_ok() {
            let word = adversarial(u64::from_le_bytes(word), len, random).to_le_bytes();
            done += u64::from(file.write_all_at(&word[..end], at).is_ok());
        }
    }
    // If all kinds are overwritten at once, some files are truncated as well.
    if kind.is_empty() && random.below(500) == 0 {
        done += u64::from(file.set_len(random.below(len)).is_ok());
    }
    done
}

/// A reliable channel between the victim and an honest node that carries messages throughout the test.
fn honest_stream(node: &Node, victim: &Node, stop: &AtomicBool) -> u64 {
    let mut publisher = node
        .publisher::<[u8]>("/honest")
        .reliable(OnFull::Wait(Duration::from_secs(30)))
        .open()
        .unwrap();
    let mut subscriber = victim.subscriber::<[u8]>("/honest").reliable().open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let mut sent = 0_u64;
    while sent == 0 || !stop.load(Ordering::Relaxed) {
        publisher.send(&sent.to_le_bytes()).unwrap();
        let got = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!(*got, sent.to_le_bytes(), "a message of the honest node was lost");
        sent += 1;
    }
    assert_eq!(subscriber.lost().total(), 0);
    sent
}

/// Errors that the victim may get; any other error is wrong.
fn allowed(error: &Error) -> bool {
    matches!(
        error,
        Error::Timeout { .. }
            | Error::Corrupt { .. }
            | Error::Detached { .. }
            | Error::PeerLost { .. }
            | Error::LimitReached { .. }
            | Error::LayoutVersion { .. }
            | Error::IncompatibleQos { .. }
            | Error::IncompatibleType { .. }
            | Error::Io { .. }
    )
}

/// Returns how often the victim got `Corrupt`.
fn scribbled(kind: &str, seed: u64) -> u32 {
    let net = Net::new(&format!("scribble over {kind:?} with seed {seed}"));
    let (victim, honest_node) = (net.node("victim"), net.node("honest"));
    let mut subscriber = victim.subscriber::<[u8]>("/t").open().unwrap();
    let mut publisher = victim
        .publisher::<[u8]>("/u")
        .reliable(OnFull::Refuse)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .pool_limit_bytes(1 << 20)
        .open()
        .unwrap();
    let mut peer = Child::spawn(&net, "peer");
    peer.expect("ready");
    // Both channels carry messages before anything is corrupt.
    look_at(&subscriber.recv_timeout(LONG).unwrap());
    let version = std::fs::read(domain(&net).join("VERSION")).unwrap();
    let mut scribbler = Child::spawn(&net, &format!("{kind} {seed}"));
    scribbler.expect("ready");
    let (stop, mut corrupt) = (AtomicBool::new(false), 0);
    let honest = std::thread::scope(|scope| {
        let honest = scope.spawn(|| honest_stream(&honest_node, &victim, &stop));
        for look in 0..READS {
            if kind == "t" || look.is_multiple_of(16) {
                meet_type(&victim);
            }
            match subscriber.recv_timeout(Duration::from_millis(2)) {
                Ok(sample) => look_at(&sample),
                Err(error) => {
                    assert!(allowed(&error), "{error}");
                    corrupt += u32::from(matches!(error, Error::Corrupt { .. }));
                }
            }
            for len in [22, 5000, 100_000] {
                match publisher.send(&vec![2; len]) {
                    Ok(()) | Err(Error::Full { .. } | Error::OutOfMemory { .. }) => {}
                    Err(error) => panic!("our own publisher cannot send: {error}"),
                }
            }
        }
        // It may report another layout version; it must not crash.
        let observer = Domain::open(Some("t"), Some(net.base().to_owned()), None);
        let _ = observer.and_then(|mut domain| domain.snapshot());
        stop.store(true, Ordering::Relaxed);
        honest.join().unwrap()
    });
    scribbler.say("stop");
    let answer = scribbler.hear();
    let inputs: u64 = answer.strip_prefix("inputs=").unwrap().parse().unwrap();
    eprintln!("scribble {kind:?}: seed={seed} inputs={inputs} corrupt={corrupt} honest={honest}");
    assert!(inputs > 0, "nothing was written over {kind:?}");
    // Only the peer's own files were corrupt, and the peer still runs.
    peer.say("end");
    peer.expect("alive");
    drop((peer, scribbler));
    std::fs::write(domain(&net).join("VERSION"), version).unwrap();
    let (a, b) = (net.node("new_a"), net.node("peer"));
    for topic in ["/t", "/u"] {
        let mut new = b.subscriber::<[u8]>(topic).open().unwrap();
        let mut publisher = a.publisher::<[u8]>(topic).open().unwrap();
        // The victim's old endpoints still exist.
        eventually("the new pair communicates", || {
            publisher.send(b"new").unwrap();
            new.recv_timeout(Duration::from_millis(20)).is_ok_and(|sample| *sample == *b"new")
        });
    }
    corrupt
}

fn scribbled_over(kinds: std::ops::Range<usize>) -> u32 {
    let mut corrupt = 0;
    for (kind, seed) in &KINDS[kinds] {
        for round in 0..ROUNDS {
            corrupt += scribbled(kind, seed + 100 * round);
        }
    }
    corrupt
}

#[test]
fn scribble_over_logs_and_chunks() {
    let mut corrupt = scribbled_over(0..2);
    // Whether a reader meets the corrupt bytes is random, about one in two.
    for seed in 1000..1040 {
        if corrupt > 0 {
            break;
        }
        corrupt += scribbled(KINDS[0].0, seed);
    }
    assert!(corrupt > 0, "no reader reported a corrupt log or chunk");
}

#[test]
fn scribble_over_subscriptions_and_bells() {
    scribbled_over(2..4);
}

#[test]
fn scribble_over_nodes_and_names() {
    scribbled_over(4..8);
}

#[test]
fn scribble_over_everything() {
    scribbled_over(8..9);
}

#[test]
fn scribble_over_types() {
    scribbled_over(9..10);
}

/// A message that detects a change of its bytes during decoding.
struct Steady(u64);

impl rnet::protobuf::MessageCodec for Steady {
    type DecodeBuffer = Steady;

    fn static_type() -> rnet::Result<rnet::MessageType> {
        Ok(rnet::MessageType::Raw)
    }
    fn new_buffer(_: &rnet::MessageType) -> Steady {
        Steady(0)
    }
    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }
    fn encoded_len(&self) -> usize {
        64 << 10
    }
    fn encode(&self, out: &mut impl rnet::protobuf::prost::bytes::BufMut) {
        out.put_bytes(1, 64 << 10);
    }
    fn decode(bytes: &[u8], held: &mut Steady) -> Result<(), String> {
        // The first read is like a check of limits, the second uses the bytes.
        let read = || bytes.iter().map(|byte| u64::from(std::hint::black_box(*byte))).sum::<u64>();
        held.0 = read();
        for _ in 0..30 {
            let now = read();
            if now != held.0 {
                return Err(format!("it was {} and is {now}", held.0));
            }
        }
        Ok(())
    }
    fn view<'a>(_: &'a [u8], held: &'a Steady) -> &'a Steady {
        held
    }
    fn take_buffer(held: &mut Steady) -> Steady {
        Steady(held.0)
    }
}

#[test]
fn a_message_does_not_change_while_it_is_decoded() {
    let net = Net::new("flipped bytes");
    let (peer, victim) = (net.node("peer"), net.node("victim"));
    let mut publisher = peer.publisher::<Steady>("/t").reliable(OnFull::Wait(LONG)).open().unwrap();
    let mut subscriber = victim.subscriber::<Steady>("/t").reliable().open().unwrap();
    subscriber.wait_for_publishers_timeout(1, LONG).unwrap();
    let (stop, flipped) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // The chunks of its only publisher, behind the header.
                for path in files(&net, "p0.") {
                    let Ok(file) = std::fs::OpenOptions::new().write(true).open(path) else {
                        continue;
                    };
                    for byte in 0..=u8::MAX {
                        let done = file.write_all_at(&[byte; 64], 16 << 10);
                        flipped.fetch_add(u64::from(done.is_ok()), Ordering::Relaxed);
                    }
                }
            }
        });
        let (mut received, mut meanwhile) = (0, 0);
        while received < 20 || meanwhile < 20 {
            publisher.send(&Steady(0)).unwrap();
            let before = flipped.load(Ordering::Relaxed);
            let sample = subscriber.recv_timeout(LONG);
            stop.store(sample.is_err(), Ordering::Relaxed);
            sample.unwrap();
            received += 1;
            meanwhile += u64::from(flipped.load(Ordering::Relaxed) > before);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
