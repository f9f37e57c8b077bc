//! A session of release 0.1.0, kept as bytes in `fuzz/corpus/wire`: later releases must read it, and the
//! fuzzer starts from it. Each file is a byte that selects the fuzz target's input, and a frame.

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{LONG, Net, eventually};
use rnet::msgs::Imu;
use rnet::{Lane, LossCause, Meta, OnFull};
use rnet_net::config::Config;
use rnet_net::in_memory_transport::MemoryNet;
use rnet_net::link::{Link, LinkOptions};
use rnet_net::wire::{HEADER_LEN, Header, Items, VERSION};
use rnet_net::{HostId, Presence, Sink};

/// The fuzz target reads the following bytes as a frame.
const FRAME: u8 = 0;
/// All kinds that a well-behaved link sends; only a link that was not understood sends the tenth. Messages
/// have other kinds, too.
const KINDS: [u8; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14];
/// Flags of a message: none, compressed, with source, correlation and gap, after another one.
const FIELDS: [u8; 5] = [1, 2, 4, 8, 16];
const DATA: u8 = 0x20;
const FRAGMENT: u8 = 0x40;

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire")
}

/// The kinds of its items, read by a minimal parser.
fn kinds(frame: &[u8]) -> Vec<u8> {
    let (mut rest, mut kinds) = (&frame[HEADER_LEN..], Vec::new());
    while let Some((kind, after)) = rest.split_first() {
        kinds.push(*kind);
        let used = after.iter().position(|byte| *byte < 0x80).unwrap() + 1;
        let digits = after[..used].iter().rev();
        let len = digits.fold(0, |len, byte| len << 7 | usize::from(byte & 0x7f));
        rest = &after[used + len..];
    }
    kinds
}

#[test]
fn later_releases_read_the_recorded_session() {
    let (mut found, mut files) = (BTreeSet::new(), 0);
    for file in fs::read_dir(place()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let (what, frame) = bytes.split_first().unwrap();
        assert_eq!(*what, FRAME);
        let (header, items) = Header::decode(frame).unwrap();
        assert!(header.version <= VERSION);
        let read = Items::new(items).map(Result::unwrap).count();
        // No item was skipped as one of a later release.
        assert_eq!(read, kinds(frame).len());
        found.extend(kinds(frame));
        files += 1;
    }
    assert!(files > 0);
    for kind in KINDS {
        assert!(found.contains(&kind), "no item of kind {kind}");
    }
    for field in FIELDS {
        assert!(found.iter().any(|kind| kind & DATA != 0 && kind & field != 0), "no field {field}");
    }
    assert!(found.iter().any(|kind| kind & FRAGMENT != 0), "no fragment");
}

/// Keeps the arriving frames.
struct Tap {
    to: Arc<dyn Sink>,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Sink for Tap {
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        self.seen.lock().unwrap().push(frame.to_vec());
        self.to.on_frame(lane, from, frame);
    }

    fn on_up(&self, presence: Presence) {
        self.to.on_up(presence);
    }

    fn on_down(&self, presence: Presence) {
        self.to.on_down(presence);
    }
}

fn link(net: &Arc<MemoryNet>, domain: &Net, id: u64, seen: &Arc<Mutex<Vec<Vec<u8>>>>) -> Link {
    let text = "[[network.topic]]\ntopic = \"/packed\"\ncompression = \"lz4\"\n";
    let mut config = Config::from_toml(text, Path::new("robot.toml")).unwrap();
    config.host = format!("host{id}");
    let options = LinkOptions {
        node: domain.builder("/_rnet/link"),
        presence: Presence { host: HostId(id), term: 1 },
        config,
        holds_role: Arc::new(|| true),
    };
    let (net, seen) = (net.clone(), seen.clone());
    Link::open(options, |own, to| Ok(net.join(own, Arc::new(Tap { to, seen })))).unwrap()
}

/// Sends some of everything.
fn talk(here: &Net, there: &Net) {
    let (talker, listener) = (here.node("talker"), there.node("listener"));
    let mut subscriber = listener.subscriber::<[u8]>("/t").reliable().open().unwrap();
    let mut packed = listener.subscriber::<[u8]>("/packed").reliable().open().unwrap();
    let mut typed = listener.subscriber::<Imu>("/imu").open().unwrap();
    let lease = Duration::from_secs(2);
    let mut talks = talker
        .publisher::<[u8]>("/t")
        .reliable(OnFull::Wait(Duration::from_secs(60)))
        .manual_by_topic(lease)
        .last_will(&b"gone"[..])
        .open()
        .unwrap();
    let mut packs = talker
        .publisher::<[u8]>("/packed")
        .reliable(OnFull::Wait(Duration::from_secs(60)))
        .open()
        .unwrap();
    let mut types = talker.publisher::<Imu>("/imu").open().unwrap();
    talks.wait_for_subscribers_timeout(1, LONG).unwrap();
    packs.wait_for_subscribers_timeout(1, LONG).unwrap();
    types.wait_for_subscribers_timeout(1, LONG).unwrap();
    types.send(&Imu::default()).unwrap();
    typed.recv_timeout(LONG).unwrap();
    packs.send(&[7; 1000]).unwrap();
    packed.recv_timeout(LONG).unwrap();
    for number in 0..20_u8 {
        talks.send(&[number; 22]).unwrap();
    }
    let meta = Meta::default().with_source_ns(-5).with_correlation(6);
    talks.send_with(b"with all", meta.with_gap(LossCause::Overrun, 3)).unwrap();
    talks.publish_gap(LossCause::Restart, 2).unwrap();
    talks.send(&[9; 20_000]).unwrap();
    talks.assert_alive().unwrap();
    // Enough for a report of how much was read.
    for _ in 0..22 {
        subscriber.recv_timeout(LONG).unwrap();
    }
    for _ in 0..200 {
        talks.send(&[8; 8000]).unwrap();
        subscriber.recv_timeout(LONG).unwrap();
    }
    eventually("losses without a number are counted", || subscriber.lost().total() == 5);
    drop(subscriber);
    eventually("no subscriber is left", || talks.subscriber_count() == 0);
}

#[test]
#[ignore = "rewrites the session"]
fn record() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (net, domains) = (MemoryNet::new(), [Net::new("golden"), Net::new("golden")]);
    let links = [link(&net, &domains[0], 1, &seen), link(&net, &domains[1], 2, &seen)];
    talk(&domains[0], &domains[1]);
    drop(links);
    fs::create_dir_all(place()).unwrap();
    let (mut known, mut number) = (BTreeSet::new(), 0);
    for frame in seen.lock().unwrap().iter() {
        let new: Vec<u8> = kinds(frame).into_iter().filter(|kind| !known.contains(kind)).collect();
        if new.is_empty() {
            continue;
        }
        known.extend(new);
        fs::write(place().join(format!("frame-{number}")), [&[FRAME], &frame[..]].concat())
            .unwrap();
        number += 1;
    }
}
