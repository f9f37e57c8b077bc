//! The single writer of a log.
//!
//! The writer keeps its own copy of every position, so that nothing a reader or a stray pointer
//! does to the shared page can mislead it. Publishing is: make room, write the words, store
//! `tail` with release. Making room moves `head` forward in strides, so that the line which
//! readers check for having been lapped stays quiet between strides.

use crate::Log;
use crate::record::{HEADER_LEN_BYTES, Head, Kind, MAX_RECORD_LEN_BYTES, span_of};
use crate::sync::{Ordering, fence};

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
}

impl LogWriter {
    /// Starts an empty log: the control lines must be zero.
    pub fn new(log: Log<'_>) -> Self {
        LogWriter { tail: 0, head: 0, seq: 0, bytes: 0, gate: 0, free_until: log.capacity_bytes() }
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
        assert!(payload.len() <= Self::max_payload(log), "payload exceeds the log");
        let span = span_of(payload.len());
        let capacity = log.capacity_bytes();
        let to_end = capacity - (self.tail & (capacity - 1));
        let pad = if span > to_end { to_end } else { 0 };
        if self.tail + pad + span > self.free_until {
            self.make_room(log, pad + span, gate)?;
        }
        if pad != 0 {
            let head = Head { seq_lo: self.seq as u32, len: pad as u32, kind: Kind::Pad };
            log.word(self.tail).store(head.to_word(), Ordering::Relaxed);
        }
        let start = self.tail + pad;
        let head = Head { seq_lo: self.seq as u32, len: payload.len() as u32, kind };
        log.word(start).store(head.to_word(), Ordering::Relaxed);
        log.word(start + 8).store(time_ns, Ordering::Relaxed);
        store_bytes(log, start + HEADER_LEN_BYTES, payload);

        self.tail = start + span;
        self.seq += 1;
        self.bytes += counted_len;
        let line = &log.control.tail;
        line.last.store(start, Ordering::Relaxed);
        line.seq.store(self.seq, Ordering::Relaxed);
        line.bytes.store(self.bytes, Ordering::Relaxed);
        // SYNC-COMMIT: pairs with the acquire load in `LogReader::pull`; whoever sees this tail
        // sees the record before it.
        line.tail.store(self.tail, Ordering::Release);
        Ok(start)
    }

    /// Moves `head` so that `need` more bytes fit, a stride further where readers allow it.
    #[cold]
    fn make_room(&mut self, log: Log<'_>, need: u64, gate: &mut impl Gate) -> Result<(), LogFull> {
        let capacity = log.capacity_bytes();
        let must = (self.tail + need).saturating_sub(capacity);
        let want = (must + capacity / 16).min(self.tail);
        if want > self.gate {
            self.gate = gate.lowest_needed().min(self.tail);
        }
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
        // Release, so that a reader which finds its place by this head sees a tail behind it.
        log.control.head.head.store(self.head, Ordering::Release);
        // SYNC-LAP: pairs with the acquire fence in `LogReader::pull`; a reader that saw any word
        // written from here on also sees this head.
        fence(Ordering::Release);
        self.free_until = self.head + capacity;
        if self.head < must { Err(LogFull) } else { Ok(()) }
    }
}

/// Stores bytes word by word, the last word filled with zeros.
#[inline]
fn store_bytes(log: Log<'_>, position: u64, bytes: &[u8]) {
    let mut words = bytes.chunks_exact(8);
    let mut at = position;
    for word in &mut words {
        let mut buf = [0; 8];
        buf.copy_from_slice(word);
        log.word(at).store(u64::from_le_bytes(buf), Ordering::Relaxed);
        at += 8;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut buf = [0; 8];
        buf[..rest.len()].copy_from_slice(rest);
        log.word(at).store(u64::from_le_bytes(buf), Ordering::Relaxed);
    }
}
