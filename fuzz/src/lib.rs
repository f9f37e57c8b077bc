//! Shared by the fuzz targets: choices from the fuzzer's bytes, and a domain to corrupt.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rnet_core::{DomainId, NodeName, PublisherQos, SubscriberQos, TypeDesc};
use rnet_shm::channel::publisher::PublisherMeta;
use rnet_shm::channel::subscription::SubscriptionMeta;
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;

/// The topic of all endpoints.
pub const TOPIC: &str = "/t";

/// The fuzzer's bytes, one choice after the other; then zeros.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    /// The next step to take; `None` at the end.
    pub fn step(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn byte(&mut self) -> u8 {
        self.step().unwrap_or(0)
    }

    pub fn short(&mut self) -> u64 {
        u64::from(self.byte()) << 8 | u64::from(self.byte())
    }

    /// A word to replace `now`; values that random bytes seldom have come first.
    pub fn word(&mut self, now: u64) -> u64 {
        match self.byte() {
            0 => 0,
            1 => u64::MAX,
            2 => now.wrapping_add(1),
            3 => now.wrapping_sub(1),
            4 => now.wrapping_add(8 * self.short()),
            5 => now.wrapping_sub(8 * self.short()),
            6 => now ^ 1 << (self.byte() % 64),
            7 => 1 << (self.byte() % 64),
            8 => self.short() * 8,
            9 => self.short(),
            _ => (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte())),
        }
    }

    /// The remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// Replaces a word of a file by one of the fuzzer. The file keeps its length.
pub fn corrupt_word(file: &File, at: u64, input: &mut Input<'_>) {
    let mut word = [0; 8];
    if file.read_exact_at(&mut word, at).is_ok() {
        let word = input.word(u64::from_le_bytes(word));
        file.write_all_at(&word.to_le_bytes(), at).unwrap();
    }
}

/// Opens a file to corrupt it.
pub fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// A domain of this process. The script that starts the target removes `RNET_FUZZ_DIR` afterwards.
pub fn domain() -> DomainDir {
    let base = std::env::var_os("RNET_FUZZ_DIR").expect("scripts/fuzz.sh names a directory");
    let base = PathBuf::from(base).join(std::process::id().to_string());
    std::fs::create_dir_all(&base).unwrap();
    let config = DomainConfig { id: DomainId::new("fuzz").unwrap(), base: Some(base), group: None };
    DomainDir::open_or_create(&config).unwrap()
}

pub fn node(dir: &DomainDir, name: &str) -> Arc<OwnNode> {
    let name = NodeName::new(name).unwrap();
    Arc::new(OwnNode::create(dir, &name, "rust", "0").unwrap())
}

pub fn publisher_meta(qos: PublisherQos) -> PublisherMeta {
    PublisherMeta {
        topic: TOPIC.to_owned(),
        type_desc: TypeDesc::Raw,
        qos,
        proxy: None,
        will: false,
    }
}

pub fn subscription_meta() -> SubscriptionMeta {
    let (topic, qos) = (TOPIC.to_owned(), SubscriberQos::default());
    SubscriptionMeta { topic, type_desc: TypeDesc::Raw, qos, proxy: None, link: None }
}
