//! The single writer of a log.
//!
//! The writer keeps its own copy of every position, so that nothing a reader or a stray pointer
//! does to the shared page can mislead it. Publishing is: make room, write the words, store
//! `tail` with release. Making room moves `head` forward in strides, so that the line which
//! readers check for having been lapped stays quiet between strides; the writer remembers where
//! the first record of each stride begins and so need not walk over those it gives up.

use crate::record::{HEADER_LEN_BYTES, Head, Kind, MAX_RECORD_LEN_BYTES, span_of};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{Log, fail_point};

/// Until where readers allow the log to be reused.
pub trait Gate {
    /// The lowest byte position that a reliable reader still needs; `u64::MAX` if there is none.
    /// Called only when the writer's remembered bound is used up.
    fn lowest_needed(&mut self) -> u64;
}

/// No reliable reader: the writer never waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbounded;

impl Gate for Unbounded {
    fn lowest_needed(&mut self) -> u64 {
        u64::MAX
    }
}

/// The message did not fit because a reliable reader still needs the oldest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFull;

/// Strides of a ring, a power of two.
const STRIDES: u64 = 16;

/// The writer's private state; one per log.
#[derive(Debug)]
pub struct LogWriter {
    tail: u64,
    head: u64,
    seq: u64,
    bytes: u64,
    gate: u64,
    /// Largest `tail` that needs neither a new head nor another look at the readers.
    free_until: u64,
    max_payload: usize,
    /// Length of a stride is 2 to this.
    stride_bits: u32,
    /// Stride of the newest record.
    stride: u64,
    /// Where the first record of each of the last strides begins, by stride modulo their number.
    marks: [u64; STRIDES as usize * 2],
}

impl LogWriter {
    /// Starts an empty log: the control lines must be zero.
    pub fn new(log: Log<'_>) -> Self {
        LogWriter {
            tail: 0,
            head: 0,
            seq: 0,
            bytes: 0,
            gate: 0,
            free_until: log.capacity_bytes(),
            max_payload: Self::max_payload(log),
            stride_bits: log.capacity_bytes().ilog2() - STRIDES.ilog2(),
            stride: 0,
            marks: [0; STRIDES as usize * 2],
        }
    }

    /// Byte position of the end of the log.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Byte position of the oldest record that is still whole.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Sequence number of the next message.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Forgets what readers allowed: call when one has joined, before the next push.
    pub fn readers_changed(&mut self) {
        self.gate = 0;
    }

    /// Longest payload that fits in a log of this capacity beside the room that readers need to
    /// tell a lap.
    #[inline]
    pub fn max_payload(log: Log<'_>) -> usize {
        let by_ring = log.capacity_bytes() / 2 - HEADER_LEN_BYTES;
        usize::try_from(by_ring).unwrap_or(usize::MAX).min(MAX_RECORD_LEN_BYTES)
    }

    /// Appends one record and makes it visible with one release store.
    ///
    /// `counted_len` is what the byte counter grows by: the payload's own length, which for a
    /// chunk is not the length of the record. Returns the record's byte position.
    ///
    /// # Panics
    /// If `payload` is longer than [`LogWriter::max_payload`].
    #[inline]
    pub fn push(
        &mut self,
        log: Log<'_>,
        kind: Kind,
        time_ns: u64,
        payload: &[u8],
        counted_len: u64,
        gate: &mut impl Gate,
    ) -> Result<u64, LogFull> {
        assert!(payload.len() <= self.max_payload, "payload exceeds the log");
        let span = span_of(payload.len());
        let capacity = log.capacity_bytes();
        let to_end = capacity - (self.tail & (capacity - 1));
        let pad = if span > to_end { to_end } else { 0 };
        if self.tail + pad + span > self.free_until {
            self.make_room(log, pad + span, gate)?;
        }
        if pad != 0 {
            self.pad(log, pad);
        }
        let start = self.tail + pad;
        let stride = start >> self.stride_bits;
        if stride != self.stride {
            self.stride = stride;
            self.marks[stride as usize % self.marks.len()] = start;
        }
        let head = Head { seq_lo: self.seq as u32, len: payload.len() as u32, kind };
        let first = log.index(start);
        let (header, body) =
            log.words[first..first + (span / 8) as usize].split_at(HEADER_LEN_BYTES as usize / 8);
        header[0].store(head.to_word(), Ordering::Relaxed);
        fail_point!("push.head");
        header[1].store(time_ns, Ordering::Relaxed);
        fail_point!("push.time");
        store_bytes(body, payload);
        fail_point!("push.body");

        self.tail = start + span;
        self.seq += 1;
        self.bytes += counted_len;
        let line = &log.control.tail;
        line.last.store(start, Ordering::Relaxed);
        fail_point!("push.last");
        line.seq.store(self.seq, Ordering::Relaxed);
        fail_point!("push.seq");
        line.bytes.store(self.bytes, Ordering::Relaxed);
        fail_point!("push.bytes");
        // SYNC-COMMIT: pairs with the acquire load in `LogReader::pull`; whoever sees this tail
        // sees the record before it.
        line.tail.store(self.tail, Ordering::Release);
        fail_point!("push.tail");
        Ok(start)
    }

    /// Fills the end of the ring, where the next record does not fit.
    #[cold]
    fn pad(&self, log: Log<'_>, pad: u64) {
        let head = Head { seq_lo: self.seq as u32, len: pad as u32, kind: Kind::Pad };
        log.word(self.tail).store(head.to_word(), Ordering::Relaxed);
        fail_point!("push.pad");
    }

    /// Moves `head` so that `need` more bytes fit, a stride further where readers allow it.
    #[cold]
    fn make_room(&mut self, log: Log<'_>, need: u64, gate: &mut impl Gate) -> Result<(), LogFull> {
        let capacity = log.capacity_bytes();
        let must = (self.tail + need).saturating_sub(capacity);
        let want = (must + capacity / STRIDES).min(self.tail);
        if want > self.gate {
            self.gate = gate.lowest_needed().min(self.tail);
        }
        let mark = self.last_mark(want.min(self.gate));
        if mark >= must && mark > self.head {
            self.head = mark;
        } else {
            self.walk(log, want);
            fail_point!("push.walk");
        }
        // Release, so that a reader which finds its place by this head sees a tail behind it.
        log.control.head.head.store(self.head, Ordering::Release);
        // SYNC-LAP: pairs with the acquire fence in `LogReader::pull`; a reader that saw any word
        // written from here on also sees this head.
        fence(Ordering::Release);
        fail_point!("push.room");
        self.free_until = self.head + capacity;
        if self.head < must { Err(LogFull) } else { Ok(()) }
    }

    /// The last remembered beginning of a record that is not past `limit`; 0 if there is none.
    fn last_mark(&self, limit: u64) -> u64 {
        let stride = (limit >> self.stride_bits).min(self.stride);
        let mark = |stride: u64| self.marks[stride as usize % self.marks.len()];
        // A stride in the middle of a long record has no beginning, and an old one in its place.
        [stride, stride.saturating_sub(1)]
            .into_iter()
            .find(|&s| mark(s) >> self.stride_bits == s && mark(s) <= limit)
            .map_or(0, mark)
    }

    /// Moves `head` record by record up to `want` or what readers allow.
    fn walk(&mut self, log: Log<'_>, want: u64) {
        while self.head < want && self.head < self.gate {
            // The writer wrote this word; if it no longer parses, some stray pointer of this very
            // process spoilt it, and forgetting the whole log is the one safe way on.
            let word = log.word(self.head).load(Ordering::Relaxed);
            match Head::from_word(word).map(Head::span) {
                Some(span) if span >= 8 && span % 8 == 0 && span <= self.tail - self.head => {
                    if self.head + span > self.gate {
                        break;
                    }
                    self.head += span;
                }
                _ => self.head = self.tail,
            }
        }
    }
}

/// Stores bytes word by word, the last word filled with zeros.
#[inline]
fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        fail_point!("push.word");
    }
    let Some(last) = words.get(whole.len()) else { return };
    let value = match bytes.last_chunk::<8>() {
        // The bytes before the rest are shifted out: no loop, no copy.
        Some(end) if !rest.is_empty() => u64::from_le_bytes(*end) >> (64 - 8 * rest.len()),
        _ => rest.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    last.store(value, Ordering::Relaxed);
}
