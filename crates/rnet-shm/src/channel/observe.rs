//! Reading along without taking part: for echo, recorders and dashboards.
//!
//! An observer has no page that a publisher waits for: it is overrun like nobody else, and counts what
//! it misses by number. It may sleep: its own file (`ObserverFile` in `observers`) tells publishers so, and they ring
//! it (`Observers`). docs/design/observers.md draws both sides.

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

/// Pulls and skipped records after which a poll gives its caller a turn.
const MAX_EMPTY_PULLS: usize = 1 << 16;
/// Words copied at a time.
const BATCH_WORDS: usize = 8192;
/// How often the end of a log is looked at until both its words agree.
const END_TRIES: usize = 1000;

/// What [`Observer::poll`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Observation {
    /// Nothing new.
    Nothing,
    /// A message: its stamp; the bytes are in the buffer that was given.
    Message(Stamp),
    /// Messages that were sent and that this observer did not see. It goes on behind them.
    Missed(MissedMessages),
    /// The log contradicts itself.
    Corrupt(&'static str),
    /// This process ran out of what it takes to read the next message, which is tried again with the
    /// next poll.
    Shortage(Box<Error>),
}

/// Messages of one publisher, one after the other, that an observer did not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedMessages {
    /// The publisher.
    pub publisher: u64,
    /// Number of the first of them.
    pub first_seq: u64,
    /// How many there are.
    pub count: u64,
    /// Why they were missed.
    pub cause: MissedCause,
}

/// Why an observer missed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissedCause {
    /// The publisher wrote over them in its log before the observer had read them.
    Overrun,
    /// A large message: the publisher used its memory anew before it was copied.
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
    /// Counts what was missed.
    pub fn add(&mut self, missed: &MissedMessages) {
        let count = match missed.cause {
            MissedCause::Overrun => &mut self.overrun,
            MissedCause::Reused => &mut self.reused,
        };
        *count = count.saturating_add(missed.count);
    }

    /// Adds the counts of another.
    pub fn add_all(&mut self, other: &MissedCounts) {
        self.overrun = self.overrun.saturating_add(other.overrun);
        self.reused = self.reused.saturating_add(other.reused);
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.overrun.saturating_add(self.reused)
    }
}

/// Follows one publisher unseen. `rnet::inspect::Domain` has an example.
#[derive(Debug)]
pub struct Observer {
    path: PathBuf,
    meta: PublisherMeta,
    map: PublisherMap,
    log: LogReader,
    batch: Batch,
    taken_ns: u64,
    /// What part of the log waited when it was read last.
    fill: f32,
    /// Number of the message that comes next; `None` before the first, if any will do.
    next_seq: Option<u64>,
    missed: MissedCounts,
    /// A message that was found and not handed out yet; it still stands in `batch`.
    withheld: Option<Record>,
    /// The message that the last poll handed out.
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

    /// Hands out messages from this number on. Those from it on that the log does not hold any more
    /// are missed; to be said before the first poll.
    pub fn expect_from(&mut self, seq: u64) {
        self.next_seq = Some(seq);
    }

    /// What the publisher says of itself.
    pub fn meta(&self) -> &PublisherMeta {
        &self.meta
    }

    /// What the message carries beside its content that the last poll has found, also of one whose memory was used
    /// anew; nothing after a poll that found none.
    pub fn message_meta(&self) -> Meta {
        let extension = |record| self.batch.extension(&record, self.log.extension_len(&record));
        self.current.map(extension).unwrap_or_default().meta
    }

    /// Messages that the publisher knows to be missing from all that it has sent, by cause. No observer
    /// missed these: [`Observer::message_meta`] says where they would be.
    pub fn known_lost(&self) -> LossCounts {
        self.map.known_lost().into()
    }

    /// The publisher.
    pub fn publisher(&self) -> u64 {
        self.map.id()
    }

    /// What was missed so far, by cause.
    pub fn missed(&self) -> MissedCounts {
        self.missed
    }

    /// What part of the log waited to be read when the last message was found, from 0 to 1: at 1 the next one is overrun.
    pub fn fill(&self) -> f32 {
        self.fill
    }

    /// Whether a poll may find something.
    pub fn is_ready(&self) -> bool {
        !self.short && (self.withheld.is_some() || self.log.has_more(self.map.log()))
    }

    /// Whether the publisher counts on the barrier of those that sleep for its messages.
    pub fn needs_barrier(&self) -> bool {
        // SYNC-SIDES: see `PublisherBarrier::update_send_rate`.
        self.map.control().flow.asymmetric.load(Ordering::Acquire) != 0
    }

    /// The next message; its bytes replace the content of `bytes`. What was missed before it is said
    /// first.
    pub fn poll(&mut self, bytes: &mut Vec<u8>) -> Observation {
        self.short = false;
        self.current = None;
        // Bounded, because a hostile publisher could stream nothing but gaps.
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

    /// Messages from `first_seq` to the one before `next_seq` were missed.
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

    /// Copies a chunk's message; `Ok(false)` if its memory was used anew before the copy was done,
    /// `Err` if this process ran out of what it takes.
    fn copy_chunk(&mut self, reference: ChunkRef, bytes: &mut Vec<u8>) -> rustix::io::Result<bool> {
        if reference.len > MAX_MESSAGE_LEN_BYTES as u64 {
            return Ok(false);
        }
        let chunk = self.chunks.get(&self.path, self.map.id(), reference.chunk)?;
        Ok(chunk.is_some_and(|chunk| chunk.copy(reference, bytes)))
    }
}

/// The end of a log, and the number of the message there unless the writer died between two stores.
fn end_of(log: Log<'_>) -> (u64, Option<u64>) {
    for _ in 0..END_TRIES {
        if let Some((end, seq)) = log.end() {
            return (end, Some(seq));
        }
        std::hint::spin_loop();
    }
    (log.control.tail.tail.load(Ordering::Acquire), None)
}
