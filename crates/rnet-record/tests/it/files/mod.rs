//! Small MCAP files, written with the crate `mcap` alone.
#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use mcap::records::{MessageHeader, Metadata};
use mcap::{Attachment, Compression, WriteOptions, Writer};
use rnet_record::mcap;

/// Log time of the first message.
pub const START_NS: u64 = 1_790_000_000_000_000_000;
/// Interval between two messages.
pub const STEP_NS: u64 = 1_000_000;
pub const PLAIN: &str = r#"{"kind":"plain","name":"Pose","size":8,"align":8,"fields":[{"name":"x","offset":0,"type":"f64"}]}"#;

/// A directory that is removed with the test.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (pid, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(format!("rnet-record-{pid}-{n}"));
        std::fs::create_dir(&dir).unwrap();
        Dir(dir)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Options of a file of several chunks.
pub fn chunked(compression: Option<Compression>) -> WriteOptions {
    WriteOptions::new().compression(compression).chunk_size(Some(400))
}

/// A recording of two topics in turns: `/pose`, plain, and `/raw`, bytes.
pub fn write(options: WriteOptions, messages: u32) -> Vec<u8> {
    let options = options.profile("rnet").library("test");
    let mut writer = Writer::with_options(Cursor::new(Vec::new()), options).unwrap();
    let recording = [("version", "1"), ("host", "robot1"), ("domain", "0")];
    writer.write_metadata(&metadata("rnet.recording", &recording)).unwrap();
    let pose = writer.add_schema("Pose", "rnet-plain", PLAIN.as_bytes()).unwrap();
    let of = |node: &str, kind: &str, name: &str| {
        let pairs = [
            ("rnet.node", node),
            ("rnet.host", "robot1"),
            ("rnet.kind", kind),
            ("rnet.type", name),
        ];
        metadata("", &pairs).metadata
    };
    let pose =
        writer.add_channel(pose, "/pose", "rnet-plain", &of("/arm", "plain", "Pose")).unwrap();
    let raw = writer.add_channel(0, "/raw", "bytes", &of("/tool", "bytes", "")).unwrap();
    for n in 0..messages {
        let log_time = START_NS + u64::from(n) * STEP_NS;
        let channel_id = if n % 2 == 0 { pose } else { raw };
        let header =
            MessageHeader { channel_id, sequence: n / 2, log_time, publish_time: log_time - 1000 };
        let data = match n % 2 {
            0 => f64::from(n).to_le_bytes().to_vec(),
            _ => format!("message {n}").into_bytes(),
        };
        writer.write_to_known_channel(&header, &data).unwrap();
    }
    let attachment = Attachment {
        log_time: START_NS,
        create_time: START_NS,
        name: "note".into(),
        media_type: "text/plain".into(),
        data: b"hello".as_slice().into(),
    };
    writer.attach(&attachment).unwrap();
    writer.write_metadata(&metadata("rnet.losses", &[("total", "0")])).unwrap();
    writer.finish().unwrap();
    writer.into_inner().into_inner()
}

pub fn metadata(name: &str, pairs: &[(&str, &str)]) -> Metadata {
    let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Metadata { name: name.to_owned(), metadata: pairs.collect::<BTreeMap<_, _>>() }
}

/// The records of a file outside of chunks: opcode, offset, length including the head.
pub fn records(bytes: &[u8]) -> Vec<(u8, usize, usize)> {
    let mut at = mcap::MAGIC.len();
    let mut found = Vec::new();
    while at + 9 <= bytes.len() - mcap::MAGIC.len() {
        let len = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize + 9;
        found.push((bytes[at], at, len));
        at += len;
    }
    found
}

/// Times of the readable messages, in the order of reading.
pub fn times(path: &Path) -> Vec<u64> {
    use rnet_record::read::{Recording, Select};
    let Ok(recording) = Recording::open(path) else { return Vec::new() };
    let messages = recording.messages(Select { with_reserved: true, ..Select::default() });
    messages.filter_map(Result::ok).map(|message| message.log_ns()).collect()
}
