//! The single writer of a log.
//!
//! The writer keeps private copies of all positions, so that writes of a reader or a stray pointer to the
//! shared page cannot mislead it. Publishing frees space, writes the words and stores `tail` with release.
//! Freeing space moves `head` in strides, so that the cache line that readers check for a lap stays unchanged
//! between strides. The writer remembers the start of the first record of each block and therefore need not
//! walk over freed records. A record that extends into another block takes the slow path, which determines
//! the length of the log from there on (`blocks.rs`).

use crate::blocks::{Blocks, PendingMessage};
use crate::layout::BLOCKS_PER_LOG;
use crate::record::{HEADER_LEN_BYTES, HeaderWord, MAX_RECORD_LEN_BYTES, RecordTag, span_of};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{COPY_STEP, Log, RecordKind, fail_point};

/// Services of the environment for the writer of a log: the needs of its readers, and memory. Called only
/// when the writer's cached bounds are exhausted.
pub trait Gate {
    /// The lowest byte position that a reliable reader still needs; `u64::MAX` if there is none. The writer
    /// overwrites nothing at or after it.
    fn lowest_needed(&mut self) -> u64;

    /// As [`Gate::lowest_needed`], for all readers that want every message. While the log may grow, the
    /// writer overwrites nothing at or after it.
    fn lowest_wanted(&mut self) -> u64 {
        self.lowest_needed()
    }

    /// As [`Gate::lowest_needed`], for all readers: they do not access anything below it.
    fn lowest_read(&mut self) -> u64 {
        self.lowest_wanted()
    }

    /// The newest messages to keep regardless of their age.
    fn retention(&mut self) -> Retention {
        Retention::default()
    }

    /// Backs `count` blocks of the ring with memory, starting at block `first`; `false` if memory is
    /// exhausted.
    fn back_with_memory(&mut self, _first: u32, _count: u32) -> bool {
        false
    }

    /// Releases the memory of blocks without readers; `false` if the system keeps it.
    fn release_memory(&mut self, _first: u32, _count: u32) -> bool {
        false
    }
}

/// Numbers of the newest messages that a log keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// For late joiners: a message that would overwrite one of them is refused.
    pub history: u64,
    /// For readers with keep_last: kept if memory is available.
    pub newest: u64,
}

/// A gate without reliable readers: the writer never waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReliableReaders;

impl Gate for NoReliableReaders {
    fn lowest_needed(&mut self) -> u64 {
        u64::MAX
    }
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// A reliable reader still needs the oldest message.
    ReaderBehind,
    /// The log must grow to keep the messages for late joiners, and memory is exhausted.
    OutOfMemory,
}

/// Maximum number of blocks by which a log shrinks at a time.
const MAX_BLOCKS_DROPPED: u32 = 8;
/// The head moves by this fraction of the log.
const STRIDES_PER_LOG: u64 = 16;

/// Maximum number of records in one commit. The published sequence number may be this far ahead of the tail
/// for a moment.
pub const MAX_COMMIT_RECORDS: u64 = 64;

/// The writer's private state; one per log.
#[derive(Debug)]
pub struct LogWriter {
    tail: u64,
    head: u64,
    seq: u64,
    bytes: u64,
    gate: u64,
    /// Largest `tail` without a new block, a new head, or another query of the readers.
    limit: u64,
    /// Largest `tail` without a new head.
    free_until: u64,
    /// Ring index of the first word of the block that contains `tail`.
    base: usize,
    /// Binary logarithm of the block length; the mask is the length minus 1.
    block_bits: u32,
    block_mask: u64,
    max_payload: usize,
    blocks: Blocks,
    /// Start of the first record of each of the last blocks, by block number modulo the array length.
    marks: [u64; BLOCKS_PER_LOG * 2],
}

impl LogWriter {
    /// Starts an empty log: the control lines must be zero, and the log must have its memory.
    pub fn new(log: Log<'_>) -> Self {
        Self::growing(log, BLOCKS_PER_LOG as u64)
    }

    /// As [`LogWriter::new`], for a log whose first `least` blocks have memory, in the order of the ring. It
    /// always keeps these and requests more with [`Gate::back_with_memory`].
    pub fn growing(log: Log<'_>, least: u64) -> Self {
        let blocks = Blocks::new(log.block_len_bytes(), log.blocks() as u64, least);
        LogWriter {
            tail: 0,
            head: 0,
            seq: 0,
            bytes: 0,
            gate: 0,
            limit: blocks.end().min(blocks.capacity()),
            free_until: blocks.capacity(),
            base: 0,
            block_bits: blocks.block_len().ilog2(),
            block_mask: blocks.block_len() - 1,
            max_payload: Self::max_payload(log),
            blocks,
            marks: [0; BLOCKS_PER_LOG * 2],
        }
    }

    /// Byte position of the end of the log.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Byte position of the oldest valid record.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Sequence number of the next message.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Current capacity of the log in bytes; it grows and shrinks.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks.capacity()
    }

    /// Invalidates the cached bounds of readers: call it after a reader has joined, before the next push.
    pub fn readers_changed(&mut self) {
        self.gate = 0;
    }

    /// Longest payload for a log of this capacity, limited by the space that readers need to detect a lap and
    /// by extending into at most one further block.
    #[inline]
    pub fn max_payload(log: Log<'_>) -> usize {
        let most = (log.capacity_bytes() / 2).min(log.block_len_bytes()) - HEADER_LEN_BYTES;
        usize::try_from(most).unwrap_or(usize::MAX).min(MAX_RECORD_LEN_BYTES)
    }

    /// Appends one record and makes it visible with one release store. If its tag is extended, `payload`
    /// starts with the extension words (`record.rs`).
    ///
    /// `counted_len` is added to the byte counter: the payload's own length, which for a chunk differs from
    /// the length of the record. Returns the record's byte position.
    ///
    /// # Panics
    /// If `payload` is longer than [`LogWriter::max_payload`].
    #[inline]
    pub fn push(
        &mut self,
        log: Log<'_>,
        tag: impl Into<RecordTag>,
        time_ns: u64,
        payload: &[u8],
        counted_len: u64,
        gate: &mut impl Gate,
    ) -> Result<u64, PushError> {
        assert!(payload.len() <= self.max_payload, "payload exceeds the log");
        let span = span_of(payload.len());
        let (start, end) = (self.tail, self.tail + span);
        let head =
            HeaderWord { seq_lo: self.seq as u32, len: payload.len() as u32, tag: tag.into() };
        if end > self.limit {
            let message = PendingMessage { seq: self.seq, time_ns };
            self.push_across(log, message, head, payload, gate)?;
        } else {
            self.write_within(log, head, span, time_ns, payload);
        }
        fail_point!("push.body");
        self.count(end, counted_len);
        self.commit(log, start);
        Ok(start)
    }

    /// Writes a record that lies in the block of `tail`, up to `limit`.
    #[inline(always)]
    fn write_within(
        &self,
        log: Log<'_>,
        head: HeaderWord,
        span: u64,
        time_ns: u64,
        payload: &[u8],
    ) {
        store_bytes(self.write_head(log, head, span, time_ns), payload);
    }

    /// Writes the header of such a record; returns the words after it.
    #[inline(always)]
    fn write_head<'a>(
        &self,
        log: Log<'a>,
        head: HeaderWord,
        span: u64,
        time_ns: u64,
    ) -> &'a [AtomicU64] {
        let first = self.base + ((self.tail & self.block_mask) >> 3) as usize;
        let (header, body) =
            log.words[first..first + (span / 8) as usize].split_at(HEADER_LEN_BYTES as usize / 8);
        header[0].store(head.to_word(), Ordering::Relaxed);
        fail_point!("push.head");
        header[1].store(time_ns, Ordering::Relaxed);
        fail_point!("push.time");
        body
    }

    /// As [`LogWriter::push`], for a message that was sent elsewhere at `sent_ns`, which its readers see. The
    /// retention of the log uses `now_ns`.
    pub fn push_forwarded(
        &mut self,
        log: Log<'_>,
        tag: impl Into<RecordTag>,
        (now_ns, sent_ns): (u64, u64),
        payload: &[u8],
        counted_len: u64,
        gate: &mut impl Gate,
    ) -> Result<u64, PushError> {
        assert!(payload.len() <= self.max_payload, "payload exceeds the log");
        let span = span_of(payload.len());
        let (start, end) = (self.tail, self.tail + span);
        let head =
            HeaderWord { seq_lo: self.seq as u32, len: payload.len() as u32, tag: tag.into() };
        if end > self.limit {
            let message = PendingMessage { seq: self.seq, time_ns: now_ns };
            self.push_across(log, message, head, payload, gate)?;
            log.words[self.blocks.index(start + 8)].store(sent_ns, Ordering::Relaxed);
        } else {
            self.write_within(log, head, span, sent_ns, payload);
        }
        self.count(end, counted_len);
        self.commit(log, start);
        Ok(start)
    }

    #[inline(always)]
    fn count(&mut self, end: u64, counted_len: u64) {
        self.tail = end;
        self.seq += 1;
        self.bytes += counted_len;
    }

    /// Writes a record with these extension words for a message that was sent at `sent_ns`, here or
    /// elsewhere, if it fits into the block of the tail; returns its byte position. Readers see it, and
    /// earlier written records, after [`LogWriter::commit`] or the next push.
    ///
    /// # Panics
    /// If words and payload are longer than [`LogWriter::max_payload`].
    // Inlined so that callers with a constant number of words store them without a loop.
    #[inline(always)]
    pub fn write_extended(
        &mut self,
        log: Log<'_>,
        sent_ns: u64,
        words: &[u64],
        payload: &[u8],
    ) -> Option<u64> {
        let len = 8 * words.len() + payload.len();
        assert!(len <= self.max_payload, "payload exceeds the log");
        let span = span_of(len);
        let (start, end) = (self.tail, self.tail + span);
        if end > self.limit {
            return None;
        }
        let tag = RecordTag { kind: RecordKind::Inline, extended: true };
        let head = HeaderWord { seq_lo: self.seq as u32, len: len as u32, tag };
        let body = self.write_head(log, head, span, sent_ns);
        let (before, after) = body.split_at(words.len());
        before.iter().zip(words).for_each(|(to, word)| to.store(*word, Ordering::Relaxed));
        fail_point!("push.extension");
        store_bytes(after, payload);
        self.count(end, payload.len() as u64);
        Some(start)
    }

    /// Makes the written records visible, at most [`MAX_COMMIT_RECORDS`]; the last one starts at `last`.
    #[inline(always)]
    pub fn commit(&self, log: Log<'_>, last: u64) {
        let line = &log.control.tail;
        line.last.store(last, Ordering::Relaxed);
        fail_point!("push.last");
        line.seq.store(self.seq, Ordering::Relaxed);
        fail_point!("push.seq");
        line.bytes.store(self.bytes, Ordering::Relaxed);
        fail_point!("push.bytes");
        // SYNC-COMMIT: pairs with the acquire load in `LogReader::pull`; a reader that sees this tail also
        // sees the record before it.
        line.tail.store(self.tail, Ordering::Release);
        fail_point!("push.tail");
    }

    /// Writes a record at any position. [`LogWriter::push`] calls it if the record needs space, or starts or
    /// extends into the next block.
    #[cold]
    #[inline(never)]
    fn push_across(
        &mut self,
        log: Log<'_>,
        message: PendingMessage,
        head: HeaderWord,
        payload: &[u8],
        gate: &mut impl Gate,
    ) -> Result<(), PushError> {
        let (start, end) = (self.tail, self.tail + head.span());
        if end > self.blocks.end() {
            self.open_block(log, message, gate)?;
        }
        if end > self.free_until {
            self.make_room(log, end, gate)?;
        }
        let word = |position| &log.words[self.blocks.index(position)];
        word(start).store(head.to_word(), Ordering::Relaxed);
        fail_point!("push.across_head");
        word(start + 8).store(message.time_ns, Ordering::Relaxed);
        fail_point!("push.across_time");
        let (mut at, mut rest) = (start + HEADER_LEN_BYTES, payload);
        while !rest.is_empty() {
            let room = self.block_mask + 1 - (at & self.block_mask);
            let (piece, after) = rest.split_at(rest.len().min(room as usize));
            let first = self.blocks.index(at);
            store_bytes(&log.words[first..first + piece.len().div_ceil(8)], piece);
            at += piece.len() as u64;
            rest = after;
        }
        // The block in which the next record starts; a new one if this record extends into it.
        let block_at = end & !self.block_mask;
        if start <= block_at && block_at < self.blocks.end() {
            let mark = if start == block_at { start } else { end };
            self.marks[self.mark_of(block_at)] = mark;
            self.base = self.blocks.index(block_at);
            if start != 0 {
                self.blocks.note_end(message);
            }
        }
        // A record that ends with its block leaves no space in it.
        self.limit = ((end + self.block_mask) & !self.block_mask).min(self.free_until);
        Ok(())
    }

    fn mark_of(&self, position: u64) -> usize {
        (position >> self.block_bits) as usize % self.marks.len()
    }

    /// Opens the next block; the log keeps its length, grows, or shrinks.
    fn open_block(
        &mut self,
        log: Log<'_>,
        message: PendingMessage,
        gate: &mut impl Gate,
    ) -> Result<(), PushError> {
        // The rest of the previous block may be written up to its last byte.
        let end = self.blocks.end();
        if end > self.free_until {
            self.make_room(log, end, gate)?;
        }
        self.blocks.release_memory(message, gate);
        for _ in 0..MAX_BLOCKS_DROPPED {
            let Some(begin) = self.blocks.could_begin(message, gate) else { break };
            self.move_head(log, begin, begin, gate);
            if self.head < begin {
                break;
            }
            self.blocks.drop_oldest();
        }
        self.blocks.open(&log.control.blocks, message, gate).map_err(|_| PushError::OutOfMemory)?;
        self.free_until = self.head + self.blocks.capacity();
        Ok(())
    }

    /// Moves `head` so that the log can be written up to `end`, plus a stride if readers allow it.
    #[cold]
    fn make_room(&mut self, log: Log<'_>, end: u64, gate: &mut impl Gate) -> Result<(), PushError> {
        let capacity = self.blocks.capacity();
        let must = end.saturating_sub(capacity);
        let mut want = must + capacity / STRIDES_PER_LOG;
        if self.blocks.may_grow() {
            // Only the overwritten block is known to be no longer needed.
            want = want.min(self.first_in(self.blocks.end() - capacity));
        }
        self.move_head(log, must, want, gate);
        self.free_until = self.head + capacity;
        if self.head < must { Err(PushError::ReaderBehind) } else { Ok(()) }
    }

    /// Moves `head` to a record at or after `must`, and up to `want` if that is cheap, as far as readers
    /// allow.
    fn move_head(&mut self, log: Log<'_>, must: u64, want: u64, gate: &mut impl Gate) {
        let want = want.min(self.tail);
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
        // Release, so that a reader that resynchronizes at this head sees a tail after it.
        log.control.head.head.store(self.head, Ordering::Release);
        // SYNC-LAP: pairs with the acquire fence in `LogReader::pull`; a reader that saw any word written
        // from here on also sees this head.
        fence(Ordering::Release);
        fail_point!("push.room");
    }

    /// The last remembered record start that is not past `limit`; 0 if none.
    fn last_mark(&self, limit: u64) -> u64 {
        let block = limit.min(self.tail) >> self.block_bits;
        let mark = |block: u64| self.marks[block as usize % self.marks.len()];
        [block, block.saturating_sub(1)]
            .into_iter()
            .find(|&b| mark(b) >> self.block_bits == b && mark(b) <= limit)
            .map_or(0, mark)
    }

    /// Start of the first record in the block at this position; the position itself if none.
    fn first_in(&self, block_at: u64) -> u64 {
        let mark = self.marks[self.mark_of(block_at)];
        if mark >> self.block_bits == block_at >> self.block_bits { mark } else { block_at }
    }

    /// Moves `head` record by record up to `want` or what readers allow.
    fn walk(&mut self, log: Log<'_>, want: u64) {
        while self.head < want && self.head < self.gate {
            // The writer wrote this word. If it no longer parses, this process has corrupted its own log;
            // discard all of it.
            let word = log.words[self.blocks.index(self.head)].load(Ordering::Relaxed);
            match HeaderWord::from_word(word).map(HeaderWord::span) {
                Some(span) if span <= self.tail - self.head => {
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

/// Stores bytes word by word; the last word is zero-padded.
#[inline]
fn store_bytes(words: &[AtomicU64], bytes: &[u8]) {
    let store = |(word, bytes): (&AtomicU64, &[u8; 8])| {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        fail_point!("push.word");
    };
    let (whole, rest) = bytes.as_chunks::<8>();
    let (words, last) = words.split_at(whole.len());
    let (word_steps, words) = words.as_chunks::<COPY_STEP>();
    let (whole_steps, whole) = whole.as_chunks::<COPY_STEP>();
    for (words, whole) in word_steps.iter().zip(whole_steps) {
        words.iter().zip(whole).for_each(store);
    }
    words.iter().zip(whole).for_each(store);
    let Some(last) = last.first() else { return };
    let value = match bytes.last_chunk::<8>() {
        // Shifts out the preceding bytes: no loop, no copy.
        Some(end) if !rest.is_empty() => u64::from_le_bytes(*end) >> (64 - 8 * rest.len()),
        _ => rest.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    last.store(value, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn store_bytes_writes_every_length_without_overrun() {
        let untouched = u64::from_le_bytes([0xee; 8]);
        for len in 0..=4 * COPY_STEP * 8 {
            let bytes: Vec<u8> = (1..=len).map(|at| at as u8).collect();
            let words: Vec<_> = (0..=len.div_ceil(8)).map(|_| AtomicU64::new(untouched)).collect();
            let (body, beside) = words.split_at(len.div_ceil(8));
            store_bytes(body, &bytes);
            let stored: Vec<u8> =
                body.iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
            assert_eq!(stored[..len], bytes);
            assert!(stored[len..].iter().all(|byte| *byte == 0), "{len} bytes");
            assert_eq!(beside[0].load(Ordering::Relaxed), untouched, "{len} bytes");
        }
    }
}
