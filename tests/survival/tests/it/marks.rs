//! The position of another host's publisher is stored before a reader is woken for it: the reader may run
//! at once, and if the link is killed meanwhile, its successor continues from there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rnet::bridge::BridgePublisher;
use rnet::bridge::{Checkpoint, WordFile};
use rnet::{Error, LossCause, Meta, Node, Origin};

const LONG: Duration = Duration::from_secs(30);
/// Messages in the log and beside it, by their length.
const LENS: [usize; 5] = [8, 1 << 20, 100, 1 << 16, 1 << 20];
/// The number of the first, and how many are missing at the end.
const FIRST: u64 = 10;
const MISSING: u64 = 5;

fn node(dir: &Path, name: &str) -> Node {
    Node::builder(name).domain("t").dir(dir).state_dir(dir).open().unwrap()
}

#[test]
#[ignore = "entry point of the child, which is killed"]
fn child_entry() {
    let Ok(dir) = std::env::var("MARKS_DIR") else { return };
    let dir = PathBuf::from(dir);
    let (words, _) = WordFile::open(&dir.join("places"), 1).unwrap();
    assert!(words.back(0, 1));
    words.set(0, 0);
    let node = node(&dir, "link");
    let mut proxy = node.publisher::<[u8]>("/t").open().unwrap();
    proxy.wait_for_subscribers_timeout(1, LONG).unwrap();
    proxy.set_checkpoint(Some(Checkpoint::new(Arc::new(words), 0)));
    for (seq, len) in (FIRST..).zip(LENS) {
        let meta = Meta::default().with_origin(Origin { host: 2, publisher: 7, seq });
        proxy.forward_uncommitted(&vec![1; len], meta, 1).unwrap();
        proxy.commit();
    }
    let behind = FIRST + LENS.len() as u64 + MISSING;
    proxy.forward_gap(LossCause::Link, MISSING, Some(behind)).unwrap();
}

#[test]
fn visible_position_is_stored_when_a_link_is_killed_while_waking_readers() {
    let dir = PathBuf::from(format!("/dev/shm/rnet-marks-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let reading = node(&dir, "reading");
    let mut all = Vec::new();
    for pass in 1.. {
        let mut reader = reading.subscriber::<[u8]>("/t").keep_all().open().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "marks::child_entry", "--ignored"]).env("MARKS_DIR", &dir);
        let output = command.env("RNET_FAIL_POINT", format!("notify.begin@{pass}")).output();
        let output = output.unwrap();
        let mut received = 0;
        loop {
            match reader.recv_timeout(Duration::from_millis(200)) {
                Ok(_) => received += 1,
                // A timeout: it was killed before it had a publisher, or has closed it.
                Err(Error::PeerLost { .. } | Error::Timeout { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        // Data beside the log may be gone with its publisher, which is counted.
        let seen = received + reader.lost().total();
        let bytes = std::fs::read(dir.join("places")).unwrap();
        let noted = bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        // The word is one above the next number.
        let place = if seen == 0 { 0 } else { FIRST + seen + 1 };
        assert_eq!(noted, place, "pass {pass}: {received} received, {:?}", reader.lost());
        all.push(seen);
        if output.status.success() {
            break;
        }
    }
    all.dedup();
    let messages = LENS.len() as u64;
    let each: Vec<u64> = (1..=messages).chain([messages + MISSING]).collect();
    assert!(all.ends_with(&each), "a kill after each: {all:?}");
    drop(reading);
    std::fs::remove_dir_all(&dir).unwrap();
}
