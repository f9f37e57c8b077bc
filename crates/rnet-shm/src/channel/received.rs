//! Messages that a reader has taken: in a private copy of the log, or pinned in their chunk.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rnet_core::{MAX_CHUNKS_PER_CHANNEL, MAX_INLINE_LEN_BYTES, MAX_MESSAGE_LEN_BYTES};
use rnet_ring::layout::{CHUNK_MAGIC, ChunkHeader};
use rnet_ring::record::{ChunkRef, MAX_EXTENSION_LEN_BYTES, Record};
use rustix::io::Errno;

use crate::channel::extension::Extension;
use crate::channel::pool::{CHUNK_HEADER_LEN_BYTES, chunk_path};
use crate::channel::subscription::Slot;
use crate::os::files;
use crate::os::mapping::{Access, Mapping};

/// Words that a reader copies out of the log at a time. docs/decisions/0001 has the measurement.
const BATCH_WORDS: usize = 1024;

const _: () = assert!(BATCH_WORDS * 8 >= MAX_INLINE_LEN_BYTES + MAX_EXTENSION_LEN_BYTES + 64);

/// A private copy of a piece of the log.
#[derive(Debug)]
pub struct Batch(pub(crate) Box<[u64]>);

impl Batch {
    pub(crate) fn new() -> Arc<Batch> {
        Arc::new(Batch(vec![0; BATCH_WORDS].into()))
    }

    #[inline]
    pub(crate) fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.0.len() * 8),
            "a record extends beyond its batch"
        );
        // SAFETY: the range is inside the boxed words, which are initialised bytes.
        unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>().wrapping_add(offset), len)
        }
    }
}

impl Batch {
    /// What the extension words say that take `len` bytes before the payload of a record.
    #[inline]
    pub(crate) fn extension(&self, record: &Record, len: usize) -> Extension {
        match record.offset.checked_sub(len) {
            Some(begin) => Extension::from_bytes(self.bytes(begin, len)),
            None => Extension::default(),
        }
    }
}

/// A chunk of a peer, mapped read-only.
#[derive(Debug)]
pub(crate) struct PeerChunk {
    map: Mapping,
}

impl PeerChunk {
    /// Opens a chunk; `Ok(None)` if it is gone or is none, `Err` if this process ran out of what
    /// it takes.
    pub(crate) fn open(
        publisher: &Path,
        owner: u64,
        number: u32,
    ) -> rustix::io::Result<Option<PeerChunk>> {
        let file = match files::open_read(&chunk_path(publisher, number)) {
            Ok(file) => file,
            Err(e) => return shortage_or_none(e),
        };
        let len = files::len_of(&file).ok().and_then(|len| usize::try_from(len).ok());
        let sound = CHUNK_HEADER_LEN_BYTES..=2 * MAX_MESSAGE_LEN_BYTES;
        let Some(len) = len.filter(|len| sound.contains(len)) else { return Ok(None) };
        let map = match Mapping::new(file.as_fd(), 0, len, Access::Read, false) {
            Ok(map) => map,
            Err(e) => return shortage_or_none(e),
        };
        let chunk = PeerChunk { map };
        let header = chunk.header();
        let sound = header.magic.load(Ordering::Acquire) == CHUNK_MAGIC
            && header.publisher.load(Ordering::Relaxed) == owner;
        Ok(sound.then_some(chunk))
    }

    pub(crate) fn header(&self) -> &ChunkHeader {
        self.map.get(0)
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.map.is_truncated()
    }

    /// Copies a message to the end of `bytes`; `false` if the chunk holds another by the end of it, and
    /// then what was copied is of no use.
    pub(crate) fn copy(&self, reference: ChunkRef, bytes: &mut Vec<u8>) -> bool {
        let current = || self.header().generation.load(Ordering::Acquire) == reference.generation;
        if !self.holds(reference.len) || !current() {
            return false;
        }
        self.map.copy_to(CHUNK_HEADER_LEN_BYTES, reference.len as usize, bytes);
        // SYNC-LAP, for chunks: the copy above is over before the generation is looked at again.
        fence(Ordering::Acquire);
        current()
    }

    pub(crate) fn holds(&self, len: u64) -> bool {
        len <= (self.map.len() - CHUNK_HEADER_LEN_BYTES) as u64
    }
}

/// What this process ran out of says nothing about the chunk; any other error is the chunk's end.
fn shortage_or_none<T>(errno: Errno) -> rustix::io::Result<Option<T>> {
    if is_shortage(errno) { Err(errno) } else { Ok(None) }
}

/// Whether this process, or the machine, ran out of something.
pub(crate) fn is_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// The chunks of one publisher that a reader has mapped, by number. Each large message looks one
/// up: a tree that is a leaf or two costs less than hashing the number would.
#[derive(Debug, Default)]
pub(crate) struct PeerChunks(BTreeMap<u32, Arc<PeerChunk>>);

impl PeerChunks {
    /// Whether the file of one of them was truncated.
    pub(crate) fn any_truncated(&self) -> bool {
        self.0.values().any(|chunk| chunk.is_truncated())
    }

    /// A chunk of the publisher whose file is `path`, mapped at first use. `Ok(None)` if it is
    /// gone, or if the publisher shows more chunks than a publisher may have.
    pub(crate) fn get(
        &mut self,
        path: &Path,
        owner: u64,
        number: u32,
    ) -> rustix::io::Result<Option<Arc<PeerChunk>>> {
        if let Some(chunk) = self.0.get(&number) {
            return Ok(Some(chunk.clone()));
        }
        // A new chunk is rare; a good time to let go of those that the publisher has given up.
        self.0.retain(|_, chunk| chunk.header().retired.load(Ordering::Acquire) == 0);
        if self.0.len() >= MAX_CHUNKS_PER_CHANNEL {
            return Ok(None);
        }
        let Some(chunk) = PeerChunk::open(path, owner, number)?.map(Arc::new) else {
            return Ok(None);
        };
        self.0.insert(number, chunk.clone());
        Ok(Some(chunk))
    }
}

/// A message that is read where its publisher wrote it; lets go on drop.
#[derive(Debug)]
pub struct PinnedMessage {
    pub(crate) chunk: Arc<PeerChunk>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) pin: usize,
    pub(crate) len: usize,
}

impl PinnedMessage {
    /// The message.
    pub fn bytes(&self) -> &[u8] {
        let at = self.chunk.map.bytes(CHUNK_HEADER_LEN_BYTES, self.len);
        // SAFETY: inside the mapping (checked), which lives as long as `self`. The publisher does
        // not write a chunk that this slot pins; one that breaks the protocol changes what the
        // bytes say. So what is decoded is copied first, and of a plain header each byte is read once.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), self.len) }
    }
}

impl Drop for PinnedMessage {
    fn drop(&mut self) {
        self.slot.release_pin(self.pin);
    }
}

/// Where a message's bytes are.
#[derive(Debug)]
pub enum Payload {
    /// In a private copy, shared by the messages that came with it.
    Copied {
        /// The copy.
        batch: Arc<Batch>,
        /// First byte.
        offset: usize,
        /// Length in bytes.
        len: usize,
    },
    /// In the publisher's memory.
    InPlace(PinnedMessage),
}

impl Payload {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Payload::Copied { batch, offset, len } => batch.bytes(*offset, *len),
            Payload::InPlace(pinned) => pinned.bytes(),
        }
    }
}

/// What is known of a message beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The publisher.
    pub publisher: u64,
    /// Its message number, counted from 0.
    pub seq: u64,
    /// When it was sent, CLOCK_MONOTONIC in ns.
    pub sent_ns: u64,
    /// When it was taken out of the log, CLOCK_MONOTONIC in ns.
    pub taken_ns: u64,
}
