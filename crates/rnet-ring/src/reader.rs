//! A reader of a log; any number of them read from one writer.
//!
//! A reader copies committed words into its own memory, then checks whether the writer has begun to reuse the
//! copied words, and only then parses the copy. A record is therefore never torn, and lengths and tags are
//! not checked in memory that can still change.

use crate::record::{HEADER_LEN_BYTES, HeaderWord, Record, RecordKind, extension_len};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{COPY_STEP, Log};

/// Attempts of a lapped reader to find a position again before it moves to the end of the log.
const RESYNC_TRIES: usize = 8;

/// A value that differs from every half sequence number.
const NO_SEQ: u64 = u64::MAX;

/// Result of [`LogReader::pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// No new records.
    Empty,
    /// Records were copied; get them with [`LogReader::next`].
    Batch,
    /// The writer lapped the reader, which has moved ahead. Pull again. The gap shows in the next record's
    /// sequence number.
    Lapped,
    /// The log is inconsistent: the violated condition. Nothing more can be read from it.
    Corrupt(&'static str),
}

/// A reader's private state.
#[derive(Debug)]
pub struct LogReader {
    /// Position of the first byte that was not delivered yet.
    pos: u64,
    /// The last loaded tail.
    known_tail: u64,
    /// Sequence number of the next record; `None` until the first record.
    next_seq: Option<u64>,
    /// Messages lost to laps since [`LogReader::take_lost`].
    lost: u64,
    /// Whether a gap in the sequence is expected, because the reader moved.
    moved: bool,
    /// The low half of `next_seq` as stored in the next record, or [`NO_SEQ`] while it is unknown. It allows
    /// one comparison instead of three.
    next_seq_lo: u64,
    /// Walked bytes of the batch, and its length.
    batch_at: usize,
    batch_len: usize,
    /// Sequence number of the end of the log when the batch was pulled.
    batch_end_seq: u64,
    /// Whether a lap moves the reader to the oldest record instead of half a log ahead.
    resyncs_to_oldest: bool,
    /// Number of the last record with extension words, and their length in bytes. Stored here and not in each
    /// record, so that records without them have no overhead.
    extended: (u64, usize),
}

impl LogReader {
    /// A reader that starts at `start`, the byte position of a record (or the tail).
    pub fn new(start: u64) -> Self {
        LogReader {
            pos: start,
            known_tail: start,
            next_seq: None,
            lost: 0,
            moved: true,
            next_seq_lo: NO_SEQ,
            batch_at: 0,
            batch_len: 0,
            batch_end_seq: 0,
            resyncs_to_oldest: false,
            extended: (u64::MAX, 0),
        }
    }

    /// Makes a lap move the reader to the oldest record, for a reader that its writer does not lap again.
    pub fn resync_to_oldest(&mut self) {
        self.resyncs_to_oldest = true;
    }

    /// Everything below this position has been delivered.
    pub fn position(&self) -> u64 {
        self.pos
    }

    /// Sequence number of the next message, if known.
    pub fn next_seq(&self) -> Option<u64> {
        self.next_seq
    }

    /// Bytes of the log at the last pull that were not delivered since.
    pub fn unread_len_bytes(&self) -> u64 {
        self.known_tail.saturating_sub(self.pos)
    }

    /// Sequence number of the end of the log at the last pull.
    pub fn end_seq(&self) -> u64 {
        self.batch_end_seq
    }

    /// Whether this record, the last one delivered, has extension words.
    #[inline]
    pub fn is_extended(&self, record: &Record) -> bool {
        self.extended.0 == record.seq
    }

    /// Length in bytes of the extension words directly before the payload of this record, the last one
    /// delivered.
    #[inline]
    pub fn extension_len(&self, record: &Record) -> usize {
        if self.is_extended(record) { self.extended.1 } else { 0 }
    }

    /// Announces a record from outside the log as the next one, with this length of extension words in bytes.
    pub fn note_extended(&mut self, seq: u64, len: usize) {
        self.extended = (seq, len);
    }

    /// Length of the last batch.
    pub fn batch_len_bytes(&self) -> usize {
        self.batch_len
    }

    /// Messages lost to laps since the last call.
    #[inline]
    pub fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }

    /// Whether the log holds undelivered records.
    #[inline]
    pub fn has_more(&self, log: Log<'_>) -> bool {
        // SYNC-COMMIT: see `LogWriter::push`.
        log.control.tail.tail.load(Ordering::Acquire) != self.pos
    }

    /// Copies the next committed words into `buf`. Call it when [`LogReader::next`] has no record left.
    // Inlined for the same reason as `next`.
    #[inline(always)]
    pub fn pull(&mut self, log: Log<'_>, buf: &mut [u64]) -> Pull {
        self.batch_at = 0;
        self.batch_len = 0;
        if self.known_tail == self.pos {
            // SYNC-COMMIT: pairs with the release store in `LogWriter::push`.
            self.known_tail = log.control.tail.tail.load(Ordering::Acquire);
            if self.known_tail == self.pos {
                return Pull::Empty;
            }
        }
        let capacity = log.capacity_bytes();
        if self.known_tail < self.pos || (self.known_tail | self.pos) & 7 != 0 {
            return Pull::Corrupt("the tail went backwards");
        }
        let avail = self.known_tail - self.pos;
        if avail > capacity {
            return self.resync(log);
        }
        self.batch_end_seq = log.control.tail.seq.load(Ordering::Relaxed);
        let words = (avail / 8).min(buf.len() as u64) as usize;
        let mut copied = 0;
        while copied < words {
            let block = log.words_from(self.pos + copied as u64 * 8);
            let len = block.len().min(words - copied);
            load_words(&mut buf[copied..copied + len], &block[..len]);
            copied += len;
        }
        // SYNC-LAP: pairs with the release fence in `LogWriter::move_head`; if any word above
        // was overwritten, the head below is past it.
        fence(Ordering::Acquire);
        if log.control.head.head.load(Ordering::Relaxed) > self.pos {
            return self.resync(log);
        }
        self.batch_len = words * 8;
        Pull::Batch
    }

    /// [`LogReader::next`] in its common case: an inline record with the next number. `None` is inconclusive;
    /// then call `next`.
    #[inline]
    pub fn next_fast(&mut self, buf: &[u64]) -> Option<Record> {
        let [word, time_ns, ..] = *buf.get(self.batch_at / 8..self.batch_len / 8)? else {
            return None;
        };
        let head = HeaderWord::from_word_of(RecordKind::Inline, word)?;
        let span = head.span();
        let after = self.batch_at + span as usize;
        // The copy ends inside the log, and so does a record that ends inside the copy.
        if u64::from(head.seq_lo) != self.next_seq_lo || after > self.batch_len {
            return None;
        }
        let seq = self.next_seq?;
        let offset = self.batch_at + HEADER_LEN_BYTES as usize;
        self.batch_at = after;
        self.pos += span;
        self.next_seq = Some(seq.wrapping_add(1));
        self.next_seq_lo = u64::from(head.seq_lo.wrapping_add(1));
        Some(Record { kind: RecordKind::Inline, seq, time_ns, offset, len: head.len as usize })
    }

    /// As [`LogReader::next_fast`], for a message with `N` extension words that `fits` accepts. The first
    /// word is the length of all and is checked here; `fits` checks the others.
    #[inline]
    pub fn next_fast_extended<const N: usize>(
        &mut self,
        buf: &[u64],
        fits: impl FnOnce(&[u64; N]) -> bool,
    ) -> Option<Record> {
        let words = buf.get(self.batch_at / 8..self.batch_len / 8)?;
        let (&[word, time_ns], rest) = words.split_first_chunk()?;
        let extension = rest.first_chunk()?;
        let head = HeaderWord::from_word_of_extended(RecordKind::Inline, word)?;
        let span = head.span();
        let after = self.batch_at + span as usize;
        let len = (head.len as usize).checked_sub(8 * N)?;
        if u64::from(head.seq_lo) != self.next_seq_lo
            || after > self.batch_len
            || extension[0] != 8 * N as u64
            || !fits(extension)
        {
            return None;
        }
        let seq = self.next_seq?;
        let offset = self.batch_at + HEADER_LEN_BYTES as usize + 8 * N;
        self.batch_at = after;
        self.pos += span;
        self.advance_past(seq);
        self.extended = (seq, 8 * N);
        Some(Record { kind: RecordKind::Inline, seq, time_ns, offset, len })
    }

    /// The next record of the batch in `buf`, which must be the buffer that was pulled into.
    ///
    /// `Ok(None)` when the batch is used up. An error means that the log contradicts itself.
    // Its only caller on the message path is large; the compiler does not inline it there by itself.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // borrows a buffer and can fail
    pub fn next(&mut self, buf: &[u64]) -> Result<Option<Record>, &'static str> {
        if self.batch_at < self.batch_len {
            return match HeaderWord::from_word_unextended(buf[self.batch_at / 8]) {
                Some(head) => self.walk(head, buf),
                None => self.next_extended(buf),
            };
        }
        Ok(None)
    }

    /// As [`LogReader::next`], of a record with extension words.
    #[inline(never)]
    fn next_extended(&mut self, buf: &[u64]) -> Result<Option<Record>, &'static str> {
        // One 8-byte word, as messages of calls have. Its check is complete.
        if let Some(record) = self.next_fast_extended(buf, |&[_, head, _]| head >> 32 == 8) {
            return Ok(Some(record));
        }
        let head =
            HeaderWord::from_word(buf[self.batch_at / 8]).ok_or("a record has an unknown kind")?;
        let Some(record) = self.walk(head, buf)? else { return Ok(None) };
        let extension_len = extension_len(&buf[record.offset / 8..], record.len)
            .ok_or("the extension words of a record are inconsistent")?;
        self.extended = (record.seq, extension_len);
        Ok(Some(Record {
            offset: record.offset + extension_len,
            len: record.len - extension_len,
            ..record
        }))
    }

    /// Advances past the record with this header, and returns it if the copy contains all of it.
    #[inline]
    fn walk(&mut self, head: HeaderWord, buf: &[u64]) -> Result<Option<Record>, &'static str> {
        let at = self.batch_at / 8;
        let span = head.span();
        let left = self.batch_len - self.batch_at;
        if span > self.known_tail - self.pos {
            return Err("a record is longer than the log");
        }
        if span > left as u64 {
            // The copy may end inside a record, which the next pull then copies completely. The buffer must
            // hold the first record of a copy.
            if self.batch_at == 0 {
                return Err("a record exceeds the maximum record length");
            }
            self.batch_len = self.batch_at;
            return Ok(None);
        }
        self.batch_at += span as usize;
        self.pos += span;
        let seq = self.accept_seq(head.seq_lo)?;
        Ok(Some(Record {
            kind: head.tag.kind,
            seq,
            time_ns: buf[at + 1],
            offset: (at * 8) + HEADER_LEN_BYTES as usize,
            len: head.len as usize,
        }))
    }

    /// Extends the record's half sequence number and counts missing messages before it.
    #[inline]
    fn accept_seq(&mut self, seq_lo: u32) -> Result<u64, &'static str> {
        if let Some(expected) = self.next_seq {
            if expected as u32 == seq_lo && !self.moved {
                self.advance_past(expected);
                return Ok(expected);
            }
            if !self.moved {
                return Err("a sequence number is out of order");
            }
        }
        // The end of the log is at most a ring of records ahead, fewer than 2^32.
        let ahead = (self.batch_end_seq as u32).wrapping_sub(seq_lo);
        let seq = self.batch_end_seq.wrapping_sub(u64::from(ahead));
        if let Some(expected) = self.next_seq {
            if seq < expected || seq > self.batch_end_seq {
                return Err("a sequence number is out of order");
            }
            self.lost += seq - expected;
        }
        self.moved = false;
        self.advance_past(seq);
        Ok(seq)
    }

    #[inline]
    fn advance_past(&mut self, seq: u64) {
        self.next_seq = Some(seq.wrapping_add(1));
        self.next_seq_lo = u64::from((seq as u32).wrapping_add(1));
    }

    /// Makes the next message the first expected one; earlier messages were never promised.
    pub fn expect_from(&mut self, seq: u64) {
        self.next_seq = Some(seq);
    }

    /// Moves to the newest record. Skipped messages show as a gap and are returned by
    /// [`LogReader::take_lost`]; the caller decides how to count them.
    pub fn seek_newest(&mut self, log: Log<'_>) {
        let line = &log.control.tail;
        for _ in 0..RESYNC_TRIES {
            let last = line.last.load(Ordering::Acquire);
            // SYNC-COMMIT: the record at `last` may be ahead of the tail for a moment.
            let tail = line.tail.load(Ordering::Acquire);
            if last < tail && last >= self.pos {
                if last > self.pos {
                    self.jump(last, tail);
                }
                return;
            }
            if last < self.pos {
                return;
            }
        }
        // The writer was stopped, or died, between its two stores.
        self.walk_to_newest(log);
    }

    /// Moves to the newest record by walking over those before it.
    #[cold]
    fn walk_to_newest(&mut self, log: Log<'_>) {
        let tail = log.control.tail.tail.load(Ordering::Acquire);
        let mut at = self.pos.max(log.control.head.head.load(Ordering::Acquire));
        // The writer is hostile or has advanced: the next pull distinguishes them.
        if tail.saturating_sub(at) > log.capacity_bytes() || (at | tail) & 7 != 0 {
            return;
        }
        let mut newest = None;
        while at < tail {
            let head = HeaderWord::from_word(log.word(at).load(Ordering::Relaxed));
            // SYNC-LAP: as in `pull`.
            fence(Ordering::Acquire);
            if log.control.head.head.load(Ordering::Relaxed) > at {
                // The writer has advanced; the next pull finds it.
                return;
            }
            match head {
                Some(head) if head.span() <= tail - at => {
                    newest = Some(at);
                    at += head.span();
                }
                // `next` reaches this record as well and reports the fault.
                _ => return,
            }
        }
        if let Some(newest) = newest.filter(|newest| *newest > self.pos) {
            self.jump(newest, tail);
        }
    }

    /// Finds a position after a lap: half a ring behind the end, so that the writer does not lap the reader
    /// again at once.
    #[cold]
    fn resync(&mut self, log: Log<'_>) -> Pull {
        let capacity = log.capacity_bytes();
        for _ in 0..RESYNC_TRIES {
            let mut at = log.control.head.head.load(Ordering::Acquire);
            let tail = log.control.tail.tail.load(Ordering::Acquire);
            if at > tail || (at | tail) & 7 != 0 {
                return Pull::Corrupt("the head is past the tail");
            }
            if tail - at > capacity {
                continue; // the writer advanced between the two loads
            }
            if at < self.pos {
                return Pull::Corrupt("the head went backwards");
            }
            let aim = if self.resyncs_to_oldest { at } else { tail - (tail - at) / 2 };
            let mut whole = true;
            while at < aim {
                let word = log.word(at).load(Ordering::Relaxed);
                // SYNC-LAP: as in `pull`.
                fence(Ordering::Acquire);
                if log.control.head.head.load(Ordering::Relaxed) > at {
                    whole = false;
                    break;
                }
                match HeaderWord::from_word(word).map(HeaderWord::span) {
                    Some(span) if span <= tail - at => at += span,
                    _ => return Pull::Corrupt("a record is longer than the log"),
                }
            }
            if whole {
                self.jump(at, tail);
                return Pull::Lapped;
            }
        }
        // The writer is much faster than this walk: continue at the end of the log.
        self.expect_gap();
        self.seek_newest(log);
        let head = log.control.head.head.load(Ordering::Acquire);
        if self.pos < head {
            let tail = log.control.tail.tail.load(Ordering::Acquire);
            self.jump(tail, tail);
        }
        Pull::Lapped
    }

    fn expect_gap(&mut self) {
        self.moved = true;
        self.next_seq_lo = NO_SEQ;
        // A hostile log may repeat a number after a gap: extension data of the old record do not apply to the
        // new one.
        self.extended = (u64::MAX, 0);
    }

    fn jump(&mut self, to: u64, tail: u64) {
        self.pos = to;
        self.known_tail = tail;
        self.expect_gap();
        self.batch_at = 0;
        self.batch_len = 0;
    }
}

/// Loads all words of `from` into `to`; both slices have the same length.
#[inline]
fn load_words(to: &mut [u64], from: &[AtomicU64]) {
    let (to_steps, to_rest) = to.as_chunks_mut::<COPY_STEP>();
    let (from_steps, from_rest) = from.as_chunks::<COPY_STEP>();
    for (to, from) in to_steps.iter_mut().zip(from_steps) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.load(Ordering::Relaxed);
        }
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to = from.load(Ordering::Relaxed);
    }
}
