//! Reading along without taking part: for echo, recorders and dashboards.
//!
//! An observer has no slot, no place in the publisher's table and no bell. The publisher does not
//! know of it and pays nothing for it; the observer polls, and what it misses it counts itself.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use rnet_core::{Error, MAX_MESSAGE_LEN_BYTES};
use rnet_ring::layout::{CHUNK_MAGIC, ChunkHeader};
use rnet_ring::record::{ChunkRef, Record};
use rnet_ring::{Kind, LogReader, Pull};
use rustix::io::Errno;

use crate::mapping::{Access, Mapping};
use crate::pool::{CHUNK_HEADER_LEN_BYTES, chunk_path};
use crate::publisher::{PeerPublisher, PublisherMap, PublisherMeta};
use crate::shortage::{self, io_error};
use crate::taken::{Stamp, is_short};
use crate::{clock, files};

/// Pulls and gaps after which a poll gives its caller a turn.
const MAX_FRUITLESS: usize = 1 << 16;
/// Words copied at a time.
const BATCH_WORDS: usize = 8192;

/// What [`Observer::poll`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing new.
    Nothing,
    /// A message: its stamp; the bytes are in the buffer that was given.
    Message(Stamp),
    /// The log contradicts itself.
    Corrupt(&'static str),
    /// This process ran out of what it takes to read the next message, which is tried again with the
    /// next poll.
    Short(Box<Error>),
}

/// Follows one publisher unseen.
#[derive(Debug)]
pub struct Observer {
    path: PathBuf,
    meta: PublisherMeta,
    map: PublisherMap,
    log: LogReader,
    batch: Box<[u64]>,
    taken_ns: u64,
    lost: u64,
    /// A message that could not be read for want of something; it still stands in `batch`.
    withheld: Option<Record>,
    chunks: HashMap<u32, Mapping>,
}

impl Observer {
    /// Follows the publisher whose file is `path`, from its newest message (or, `from_oldest`,
    /// from the oldest that its log holds).
    pub fn open(path: PathBuf, id: u64, from_oldest: bool) -> Result<Observer, Error> {
        let peer = PeerPublisher::open(&path, id)?;
        let map = peer.map()?;
        let control = map.control();
        let start = if from_oldest {
            control.head.head.load(Ordering::Acquire)
        } else {
            control.tail.tail.load(Ordering::Acquire)
        };
        Ok(Observer {
            path,
            meta: peer.meta,
            log: LogReader::new(start),
            map,
            batch: vec![0; BATCH_WORDS].into(),
            taken_ns: 0,
            lost: 0,
            withheld: None,
            chunks: HashMap::new(),
        })
    }

    /// What the publisher says of itself.
    pub fn meta(&self) -> &PublisherMeta {
        &self.meta
    }

    /// The publisher.
    pub fn publisher(&self) -> u64 {
        self.map.id()
    }

    /// Messages that passed unseen since the last call.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost) + self.log.take_lost()
    }

    /// The next message; its bytes replace the content of `bytes`.
    pub fn poll(&mut self, bytes: &mut Vec<u8>) -> Seen {
        // Bounded, because a hostile publisher could stream nothing but gaps.
        for _ in 0..MAX_FRUITLESS {
            let next = match self.withheld.take() {
                None => self.log.next(&self.batch),
                withheld => Ok(withheld),
            };
            let record = match next {
                Ok(Some(record)) => record,
                Ok(None) => match self.log.pull(self.map.log(), &mut self.batch) {
                    _ if self.map.is_spoilt() => return Seen::Corrupt("its file was truncated"),
                    Pull::Empty => return Seen::Nothing,
                    Pull::Batch => {
                        self.taken_ns = clock::now_ns();
                        continue;
                    }
                    Pull::Lapped => continue,
                    Pull::Corrupt(what) => return Seen::Corrupt(what),
                },
                Err(what) => return Seen::Corrupt(what),
            };
            bytes.clear();
            let words = &self.batch[record.offset / 8..(record.offset + record.len).div_ceil(8)];
            bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()).take(record.len));
            if record.kind == Kind::Chunk {
                let Some(reference) = ChunkRef::from_bytes(bytes) else {
                    return Seen::Corrupt("a chunk reference is malformed");
                };
                let whole = match self.copy_chunk(reference, bytes) {
                    Ok(whole) => whole,
                    Err(errno) => {
                        self.withheld = Some(record);
                        return Seen::Short(Box::new(self.short(reference, errno)));
                    }
                };
                if self.chunks.get(&reference.chunk).is_some_and(Mapping::is_spoilt) {
                    self.chunks.remove(&reference.chunk);
                    return Seen::Corrupt("the file of one of its large messages was truncated");
                }
                if !whole {
                    self.lost += 1;
                    continue;
                }
            }
            return Seen::Message(Stamp {
                publisher: self.map.id(),
                seq: record.seq,
                sent_ns: record.time_ns,
                taken_ns: self.taken_ns,
            });
        }
        Seen::Nothing
    }

    #[cold]
    fn short(&self, reference: ChunkRef, errno: Errno) -> Error {
        let path = chunk_path(&self.path, reference.chunk);
        let doing = "cannot read a large message in";
        shortage::named(doing, &path, Some(&self.meta.topic), reference.len, errno)
            .unwrap_or_else(|| io_error(doing, &path, errno))
    }

    /// Copies a chunk's message; `Ok(false)` if it was replaced before the copy was done, `Err` if
    /// this process ran out of what it takes.
    fn copy_chunk(&mut self, reference: ChunkRef, bytes: &mut Vec<u8>) -> rustix::io::Result<bool> {
        bytes.clear();
        if reference.len > MAX_MESSAGE_LEN_BYTES as u64 {
            return Ok(false);
        }
        let len = reference.len as usize;
        if !self.chunks.contains_key(&reference.chunk) {
            self.chunks
                .retain(|_, map| map.get::<ChunkHeader>(0).retired.load(Ordering::Acquire) == 0);
            let file = match files::open_read(&chunk_path(&self.path, reference.chunk)) {
                Ok(file) => file,
                Err(errno) => return if is_short(errno) { Err(errno) } else { Ok(false) },
            };
            let size = files::len_of(&file).unwrap_or(0) as usize;
            if !(CHUNK_HEADER_LEN_BYTES..=2 * MAX_MESSAGE_LEN_BYTES).contains(&size) {
                return Ok(false);
            }
            let map = match Mapping::new(file.as_fd(), 0, size, Access::Read, false) {
                Ok(map) => map,
                Err(errno) => return if is_short(errno) { Err(errno) } else { Ok(false) },
            };
            self.chunks.insert(reference.chunk, map);
        }
        let Some(map) = self.chunks.get(&reference.chunk) else { return Ok(false) };
        let header: &ChunkHeader = map.get(0);
        let current = || header.generation.load(Ordering::Acquire) == reference.generation;
        if header.magic.load(Ordering::Acquire) != CHUNK_MAGIC
            || len > map.len() - CHUNK_HEADER_LEN_BYTES
            || !current()
        {
            return Ok(false);
        }
        let words = map.slice::<std::sync::atomic::AtomicU64>(
            CHUNK_HEADER_LEN_BYTES,
            len.div_ceil(8).min((map.len() - CHUNK_HEADER_LEN_BYTES) / 8),
        );
        bytes.reserve(len);
        for word in words {
            bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        bytes.truncate(len);
        // SYNC-LAP, for chunks: the copy above is over before the generation is looked at again.
        std::sync::atomic::fence(Ordering::Acquire);
        Ok(current())
    }
}
