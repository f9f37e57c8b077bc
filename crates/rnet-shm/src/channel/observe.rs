//! Observing a publisher without taking part: for echo, recorders and dashboards.
//!
//! No publisher waits for an observer: it may be overrun at any time, and counts the missed messages by their
//! numbers. It may sleep: its file (`ObserverFile` in `observers`) tells publishers so, and they ring it
//! (`Observers`). docs/design/observers.md draws both sides.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use rnet_core::{Error, LossCounts, MAX_MESSAGE_LEN_BYTES, Meta};
use rnet_ring::record::{ChunkRef, Record};
use rnet_ring::{Log, LogReader, Pull, RecordKind};
use rustix::io::Errno;

use crate::channel::pool::chunk_path;
use crate::channel::publisher::{PeerPublisher, PublisherMap, PublisherMeta};
use crate::channel::received::{Batch, PeerChunks, Stamp};
use crate::os::clock;
use crate::os::shortage::{self, io_error};

/// Number of pulls and skipped records after which a poll returns to its caller.
const MAX_EMPTY_PULLS: usize = 1 << 16;
/// Words copied at a time.
const BATCH_WORDS: usize = 8192;
/// How many times the end of a log is read until its two words are consistent.
const END_TRIES: usize = 1000;

/// The result of [`Observer::poll`].
#[derive(Debug, PartialEq, Eq)]
pub enum Observation {
    /// No new message.
    Nothing,
    /// A message: its stamp; the bytes are in the given buffer.
    Message(Stamp),
    /// Messages that were sent and that this observer missed. It continues after them.
    Missed(MissedMessages),
    /// The log is inconsistent.
    Corrupt(&'static str),
    /// A resource of this process is exhausted, so the next message cannot be read; the next poll retries it.
    Shortage(Box<Error>),
}

/// Consecutive messages of one publisher that an observer missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedMessages {
    /// Id of the publisher.
    pub publisher: u64,
    /// Number of the first missed message.
    pub first_seq: u64,
    /// Number of missed messages.
    pub count: u64,
    /// Why they were missed.
    pub cause: MissedCause,
}

/// Why an observer missed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissedCause {
    /// The publisher overwrote them in its log before the observer read them.
    Overrun,
    /// A large message: the publisher reused its memory before it was copied.
    Reused,
}

/// Messages that an observer missed, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissedCounts {
    /// See [`MissedCause::Overrun`].
    pub overrun: u64,
    /// See [`MissedCause::Reused`].
    pub reused: u64,
}

impl MissedCounts {
    /// Counts missed messages.
    pub fn add(&mut self, missed: &MissedMessages) {
        let count = match missed.cause {
            MissedCause::Overrun => &mut self.overrun,
            MissedCause::Reused => &mut self.reused,
        };
        *count = count.saturating_add(missed.count);
    }

    /// Adds other counts.
    pub fn add_all(&mut self, other: &MissedCounts) {
        self.overrun = self.overrun.saturating_add(other.overrun);
        self.reused = self.reused.saturating_add(other.reused);
    }

    /// The sum of all causes.
    pub fn total(&self) -> u64 {
        self.overrun.saturating_add(self.reused)
    }
}

/// Follows one publisher, which does not notice. `rnet::inspect::Domain` has an example.
#[derive(Debug)]
pub struct Observer {
    path: PathBuf,
    meta: PublisherMeta,
    map: PublisherMap,
    log: LogReader,
    batch: Batch,
    taken_ns: u64,
    /// The unread fraction of the log at the last read.
    fill: f32,
    /// Number of the next message; `None` before the first, if any number is acceptable.
    next_seq: Option<u64>,
    missed: MissedCounts,
    /// A message that was found and not returned yet; it is still in `batch`.
    withheld: Option<Record>,
    /// The message that the last poll returned.
    current: Option<Record>,
    /// Whether the last poll ended with [`Observation::Shortage`].
    short: bool,
    chunks: PeerChunks,
}

impl Observer {
    /// Follows the publisher whose file is `path`, from its newest message (or, `from_oldest`,
    /// from the oldest that its log holds).
    ///
    /// # Errors
    /// `Io`, `Corrupt`, `LayoutVersion` for the publisher's file.
    pub fn open(path: PathBuf, id: u64, from_oldest: bool) -> Result<Observer, Error> {
        let peer = PeerPublisher::open(&path, id)?;
        let map = peer.map()?;
        let (start, next_seq) = if from_oldest {
            (map.control().head.head.load(Ordering::Acquire), None)
        } else {
            end_of(map.log())
        };
        Ok(Observer {
            path,
            meta: peer.meta,
            log: LogReader::new(start & !7),
            map,
            batch: Batch(vec![0; BATCH_WORDS].into()),
            taken_ns: 0,
            fill: 0.0,
            next_seq,
            missed: MissedCounts::default(),
            withheld: None,
            current: None,
            short: false,
            chunks: PeerChunks::default(),
        })
    }

    /// Returns messages from this number on. Messages from it on that the log no longer holds count as
    /// missed. Call it before the first poll.
    pub fn expect_from(&mut self, seq: u64) {
        self.next_seq = Some(seq);
    }

    /// The publisher's own description.
    pub fn meta(&self) -> &PublisherMeta {
        &self.meta
    }

    /// What the message that the last poll found carries beside its content, even if its memory was reused;
    /// empty after a poll without a message.
    pub fn message_meta(&self) -> Meta {
        let extension = |record| self.batch.extension(&record, self.log.extension_len(&record));
        self.current.map(extension).unwrap_or_default().meta
    }

    /// Messages that the publisher knows to be missing from what it has sent, by cause. They do not count as
    /// missed by an observer: [`Observer::message_meta`] shows their position.
    pub fn known_lost(&self) -> LossCounts {
        self.map.known_lost().into()
    }

    /// Id of the publisher.
    pub fn publisher(&self) -> u64 {
        self.map.id()
    }

    /// Missed messages so far, by cause.
    pub fn missed(&self) -> MissedCounts {
        self.missed
    }

    /// The unread fraction of the log when the last message was found, from 0 to 1: at 1, the next message is
    /// overrun.
    pub fn fill(&self) -> f32 {
        self.fill
    }

    /// Whether a poll may find a message.
    pub fn is_ready(&self) -> bool {
        !self.short && (self.withheld.is_some() || self.log.has_more(self.map.log()))
    }

    /// Whether the publisher relies on the barrier of sleeping readers for its messages.
    pub fn needs_barrier(&self) -> bool {
        // SYNC-SIDES: see `PublisherBarrier::update_send_rate`.
        self.map.control().flow.asymmetric.load(Ordering::Acquire) != 0
    }

    /// The next message; its bytes replace the content of `bytes`. Missed messages before it are reported
    /// first.
    pub fn poll(&mut self, bytes: &mut Vec<u8>) -> Observation {
        self.short = false;
        self.current = None;
        // Bounded, because a hostile publisher could send an endless stream of gaps.
        for _ in 0..MAX_EMPTY_PULLS {
            let next = match self.withheld.take() {
                None => self.log.next(&self.batch.0),
                withheld => Ok(withheld),
            };
            let record = match next {
                Ok(Some(record)) => record,
                Ok(None) => match self.log.pull(self.map.log(), &mut self.batch.0) {
                    _ if self.map.is_truncated() => {
                        return Observation::Corrupt("its file was truncated");
                    }
                    Pull::Empty => return Observation::Nothing,
                    Pull::Batch => {
                        self.taken_ns = clock::now_ns();
                        let (unread, log) = (self.log.unread_len_bytes(), self.map.log());
                        self.fill = unread as f32 / log.capacity_bytes() as f32;
                        continue;
                    }
                    Pull::Lapped => {
                        self.fill = 1.0;
                        continue;
                    }
                    Pull::Corrupt(what) => return Observation::Corrupt(what),
                },
                Err(what) => return Observation::Corrupt(what),
            };
            let expected = self.next_seq.unwrap_or(record.seq);
            if record.seq < expected {
                continue;
            }
            if record.seq > expected {
                self.withheld = Some(record);
                return self.report_missed(expected, record.seq, MissedCause::Overrun);
            }
            bytes.clear();
            self.current = Some(record);
            let payload = self.batch.bytes(record.offset, record.len);
            match record.kind {
                RecordKind::Inline => bytes.extend_from_slice(payload),
                RecordKind::Chunk => {
                    let Some(reference) = ChunkRef::from_bytes(payload) else {
                        return Observation::Corrupt("a chunk reference is malformed");
                    };
                    match self.copy_chunk(reference, bytes) {
                        Ok(true) => {}
                        Ok(false) => {
                            return self.report_missed(
                                record.seq,
                                record.seq.saturating_add(1),
                                MissedCause::Reused,
                            );
                        }
                        Err(errno) => {
                            self.current = None;
                            self.withheld = Some(record);
                            self.short = true;
                            return Observation::Shortage(Box::new(
                                self.shortage_error(reference, errno),
                            ));
                        }
                    }
                    if self.chunks.any_truncated() {
                        let what = "the file of one of its large messages was truncated";
                        return Observation::Corrupt(what);
                    }
                }
            }
            self.next_seq = Some(record.seq.saturating_add(1));
            return Observation::Message(Stamp {
                publisher: self.map.id(),
                seq: record.seq,
                sent_ns: record.time_ns,
                taken_ns: self.taken_ns,
            });
        }
        Observation::Nothing
    }

    /// Reports that the messages from `first_seq` to the one before `next_seq` were missed.
    #[cold]
    fn report_missed(&mut self, first_seq: u64, next_seq: u64, cause: MissedCause) -> Observation {
        self.next_seq = Some(next_seq);
        let (publisher, count) = (self.map.id(), next_seq - first_seq);
        let missed = MissedMessages { publisher, first_seq, count, cause };
        self.missed.add(&missed);
        Observation::Missed(missed)
    }

    #[cold]
    fn shortage_error(&self, reference: ChunkRef, errno: Errno) -> Error {
        let path = chunk_path(&self.path, reference.chunk);
        let doing = "cannot read a large message in";
        shortage::error_for(doing, &path, Some(&self.meta.topic), reference.len, errno)
            .unwrap_or_else(|| io_error(doing, &path, errno))
    }

    /// Copies a chunk's message; `Ok(false)` if its memory was reused before the copy was complete, `Err` if
    /// a resource of this process is exhausted.
    fn copy_chunk(&mut self, reference: ChunkRef, bytes: &mut Vec<u8>) -> rustix::io::Result<bool> {
        if reference.len > MAX_MESSAGE_LEN_BYTES as u64 {
            return Ok(false);
        }
        let chunk = self.chunks.get(&self.path, self.map.id(), reference.chunk)?;
        Ok(chunk.is_some_and(|chunk| chunk.copy(reference, bytes)))
    }
}

/// The end of a log, and the number of the next message unless the writer died between two stores.
fn end_of(log: Log<'_>) -> (u64, Option<u64>) {
    for _ in 0..END_TRIES {
        if let Some((end, seq)) = log.end() {
            return (end, Some(seq));
        }
        std::hint::spin_loop();
    }
    (log.control.tail.tail.load(Ordering::Acquire), None)
}
