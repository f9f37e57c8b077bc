//! The single writer of a log.
//!
//! The writer keeps its own copy of every position, so that nothing a reader or a stray pointer
//! does to the shared page can mislead it. Publishing is: make room, write the words, store
//! `tail` with release. Making room moves `head` forward in strides, so that the line which
//! readers check for having been lapped stays quiet between strides; the writer remembers where
//! the first record of each block begins and so need not walk over those it gives up. A record that
//! reaches into another block takes the slow path, which decides how long the log is from there on
//! (`blocks.rs`).

use crate::blocks::{Blocks, PendingMessage};
use crate::layout::BLOCKS_PER_LOG;
use crate::record::{HEADER_LEN_BYTES, HeaderWord, MAX_RECORD_LEN_BYTES, RecordTag, span_of};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::{COPY_STEP, Log, RecordKind, fail_point};

/// What the writer of a log asks of its surroundings: how long its readers need what is there, and
/// memory. Asked only when the writer's remembered bounds are used up.
pub trait Gate {
    /// The lowest byte position that a reliable reader still needs; `u64::MAX` if there is none.
    /// Nothing from there on is written over.
    fn lowest_needed(&mut self) -> u64;

    /// As [`Gate::lowest_needed`], of all readers that want every message. While the log may grow,
    /// nothing from there on is written over.
    fn lowest_wanted(&mut self) -> u64 {
        self.lowest_needed()
    }

    /// As [`Gate::lowest_needed`], of all readers: none of them looks at what is below.
    fn lowest_read(&mut self) -> u64 {
        self.lowest_wanted()
    }

    /// Which of the newest messages stay whatever their age.
    fn retention(&mut self) -> Retention {
        Retention::default()
    }

    /// Backs `count` blocks of the ring with memory, from block `first` on; `false` if there is none.
    fn back_with_memory(&mut self, _first: u32, _count: u32) -> bool {
        false
    }

    /// Gives the memory of such blocks back, which nobody reads; `false` if the system keeps it.
    fn release_memory(&mut self, _first: u32, _count: u32) -> bool {
        false
    }
}

/// How many of the newest messages a log keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// For late joiners: a message that would cost one of them is refused.
    pub history: u64,
    /// For readers that keep only the newest: as far as there is memory.
    pub newest: u64,
}

/// No reliable reader: the writer never waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReliableReaders;

impl Gate for NoReliableReaders {
    fn lowest_needed(&mut self) -> u64 {
        u64::MAX
    }
}

/// Why a message did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// A reliable reader still needs the oldest message.
    ReaderBehind,
    /// The log has to grow to keep what late joiners get, and there is no memory.
    OutOfMemory,
}

/// Blocks that a log gets shorter by at a time.
const MAX_BLOCKS_DROPPED: u32 = 8;
/// The head moves by this part of the log.
const STRIDES_PER_LOG: u64 = 16;

/// Messages that become visible at once, at most: so far ahead of the tail their number may be for a moment.
pub const MAX_COMMIT_RECORDS: u64 = 64;

/// The writer's private state; one per log.
#[derive(Debug)]
pub struct LogWriter {
    tail: u64,
    head: u64,
    seq: u64,
    bytes: u64,
    gate: u64,
    /// Largest `tail` that needs neither a new block, nor a new head, nor another look at the readers.
    limit: u64,
    /// Largest `tail` that needs no new head.
    free_until: u64,
    /// The ring's index of the word at the begin of the block that `tail` is in.
    base: usize,
    /// Length of a block is 2 to this; and less 1.
    block_bits: u32,
    block_mask: u64,
    max_payload: usize,
    blocks: Blocks,
    /// Where the first record of each of the last blocks begins, by block modulo their number.
    marks: [u64; BLOCKS_PER_LOG * 2],
}

impl LogWriter {
    /// Starts an empty log: the control lines must be zero. The log has its memory.
    pub fn new(log: Log<'_>) -> Self {
        Self::growing(log, BLOCKS_PER_LOG as u64)
    }

    /// As [`LogWriter::new`], of a log whose first `least` blocks have memory, in the order in which
    /// they stand. It always has these, and asks for more ([`Gate::back`]).
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

    /// Byte position of the oldest record that is still whole.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Sequence number of the next message.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Bytes that the log holds now; it may grow, and shrink again.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks.capacity()
    }

    /// Forgets what readers allowed: call when one has joined, before the next push.
    pub fn readers_changed(&mut self) {
        self.gate = 0;
    }

    /// Longest payload that fits in a log of this capacity beside the room that readers need to
    /// tell a lap, and that reaches into one block more than the one it begins in.
    #[inline]
    pub fn max_payload(log: Log<'_>) -> usize {
        let most = (log.capacity_bytes() / 2).min(log.block_len_bytes()) - HEADER_LEN_BYTES;
        usize::try_from(most).unwrap_or(usize::MAX).min(MAX_RECORD_LEN_BYTES)
    }

    /// Appends one record and makes it visible with one release store. If its tag says that it is
    /// extended, `payload` begins with the extension words (`record.rs`).
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

    /// Writes a record that stands in the block that `tail` is in, up to `limit`.
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

    /// Writes the header of such a record; returns the words behind it.
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

    /// As [`LogWriter::push`], at `now_ns` of a message that was sent elsewhere at `sent_ns`, which is what its
    /// readers see. How long the log keeps it goes by the former.
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

    /// Writes a record with these extension words of a message that was sent at `sent_ns`, here or elsewhere, if there
    /// is room for it in the block that the tail is in; returns its byte position. Readers see it, and what was written
    /// before it, once [`LogWriter::show`] is called or another record is pushed.
    ///
    /// # Panics
    /// If words and payload are longer than [`LogWriter::max_payload`].
    // So that the words, of which most callers know how many they are, are stored without a loop.
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

    /// Makes visible what was written, [`MAX_COMMIT_RECORDS`] records at most, of which the last stands at `last`.
    #[inline(always)]
    pub fn commit(&self, log: Log<'_>, last: u64) {
        let line = &log.control.tail;
        line.last.store(last, Ordering::Relaxed);
        fail_point!("push.last");
        line.seq.store(self.seq, Ordering::Relaxed);
        fail_point!("push.seq");
        line.bytes.store(self.bytes, Ordering::Relaxed);
        fail_point!("push.bytes");
        // SYNC-COMMIT: pairs with the acquire load in `LogReader::pull`; whoever sees this tail
        // sees the record before it.
        line.tail.store(self.tail, Ordering::Release);
        fail_point!("push.tail");
    }

    /// Writes a record wherever it stands; [`LogWriter::push`] comes here with one that needs room, or reaches
    /// into the next block, or begins it.
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
        // The block that the next record begins in, which is a new one if this one reaches into it.
        let block_at = end & !self.block_mask;
        if start <= block_at && block_at < self.blocks.end() {
            let mark = if start == block_at { start } else { end };
            self.marks[self.mark_of(block_at)] = mark;
            self.base = self.blocks.index(block_at);
            if start != 0 {
                self.blocks.note_end(message);
            }
        }
        // One that ends with its block leaves nothing of it.
        self.limit = ((end + self.block_mask) & !self.block_mask).min(self.free_until);
        Ok(())
    }

    fn mark_of(&self, position: u64) -> usize {
        (position >> self.block_bits) as usize % self.marks.len()
    }

    /// Opens the next block: with it the log stays as long as it is, grows, or shrinks.
    fn open_block(
        &mut self,
        log: Log<'_>,
        message: PendingMessage,
        gate: &mut impl Gate,
    ) -> Result<(), PushError> {
        // What is left of the block before it may be written to the last byte.
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

    /// Moves `head` so that the log can be written up to `end`, a stride further where readers allow
    /// it.
    #[cold]
    fn make_room(&mut self, log: Log<'_>, end: u64, gate: &mut impl Gate) -> Result<(), PushError> {
        let capacity = self.blocks.capacity();
        let must = end.saturating_sub(capacity);
        let mut want = must + capacity / STRIDES_PER_LOG;
        if self.blocks.may_grow() {
            // Only of the block that is written over is it known that nobody misses it.
            want = want.min(self.first_in(self.blocks.end() - capacity));
        }
        self.move_head(log, must, want, gate);
        self.free_until = self.head + capacity;
        if self.head < must { Err(PushError::ReaderBehind) } else { Ok(()) }
    }

    /// Moves `head` to a record at `must` or behind it, and up to `want` where that is cheap, as far
    /// as readers allow.
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
        // Release, so that a reader which finds its place by this head sees a tail behind it.
        log.control.head.head.store(self.head, Ordering::Release);
        // SYNC-LAP: pairs with the acquire fence in `LogReader::pull`; a reader that saw any word
        // written from here on also sees this head.
        fence(Ordering::Release);
        fail_point!("push.room");
    }

    /// The last remembered beginning of a record that is not past `limit`; 0 if there is none.
    fn last_mark(&self, limit: u64) -> u64 {
        let block = limit.min(self.tail) >> self.block_bits;
        let mark = |block: u64| self.marks[block as usize % self.marks.len()];
        [block, block.saturating_sub(1)]
            .into_iter()
            .find(|&b| mark(b) >> self.block_bits == b && mark(b) <= limit)
            .map_or(0, mark)
    }

    /// Where the first record begins in the block at this position, or the position if none does yet.
    fn first_in(&self, block_at: u64) -> u64 {
        let mark = self.marks[self.mark_of(block_at)];
        if mark >> self.block_bits == block_at >> self.block_bits { mark } else { block_at }
    }

    /// Moves `head` record by record up to `want` or what readers allow.
    fn walk(&mut self, log: Log<'_>, want: u64) {
        while self.head < want && self.head < self.gate {
            // The writer wrote this word; if it no longer parses, some stray pointer of this very
            // process corrupt it, and forgetting the whole log is the one safe way on.
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

/// Stores bytes word by word, the last word filled with zeros.
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
        // The bytes before the rest are shifted out: no loop, no copy.
        Some(end) if !rest.is_empty() => u64::from_le_bytes(*end) >> (64 - 8 * rest.len()),
        _ => rest.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    };
    last.store(value, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_stored_whole_and_nothing_beside_it() {
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
