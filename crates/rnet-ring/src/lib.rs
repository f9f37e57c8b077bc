//! The algorithms of the shared-memory transport over borrowed memory.
//!
//! This crate maps no memory, waits on no kernel object and reads no clock. Callers provide a region of
//! atomic words and a few values, so that the same code runs over a heap buffer in a unit test, over loom's
//! atomics in a model and over mapped files in production (`rnet-shm`).
//!
//! | module | content |
//! |---|---|
//! | [`layout`] | the shared structures, byte for byte as shown in docs/design/shm-layout.md |
//! | [`record`] | the format of one message in the log |
//! | [`writer`] | the single writer: reserve, fill, commit with one release store |
//! | [`reader`] | any number of readers: bulk copy, validate, walk |
//! | `blocks` | the blocks of a log: how many are in use, and where they are |
//! | [`binding`] | a reader requests admission by a publisher, in a page that it can rebind |
//! | [`admission`] | the publisher's answers in its page |
//! | [`reader_requests`] | the publisher's half of an admission: requests and answers |
//! | [`reader_admission`] | the reader's half: request, read, detachment, new request |
//! | [`epoch`] | admission of a reader while the writer publishes |
//! | [`pins`] | chunks that are read in place are not reused |
//! | [`backpressure`] | readers that free capacity wake a waiting writer |
//! | [`state`] | state: a key-value tree that all processes write |
//! | [`failpoint`] | points at which a test build may be killed |
//! | [`wake`] | wake-ups: none is lost, and unnecessary ones are avoided |
//!
//! Each pair of operations that orders memory between processes has a name, `SYNC-…`, written at both
//! operations.
#![forbid(unsafe_code)]

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("robot-net's shared layout is little-endian and 64-bit");

pub mod admission;
pub mod backpressure;
pub mod binding;
mod blocks;
pub mod epoch;
pub mod failpoint;
pub mod layout;
pub mod pins;
pub mod reader;
pub mod reader_admission;
pub mod reader_requests;
pub mod record;
pub mod state;
pub mod sync;
pub mod wake;
pub mod writer;

pub use blocks::{BLOCK_IDLE_NS, MIN_RETENTION_NS};
pub use reader::{LogReader, Pull};
pub use record::{Record, RecordKind};
pub use writer::{Gate, LogWriter, MAX_COMMIT_RECORDS, NoReliableReaders, PushError, Retention};

use layout::{BLOCKS_PER_LOG, LogControl, MIN_BLOCK_LEN_BYTES};
use record::HeaderWord;
use sync::{AtomicU64, Ordering, fence};

/// A borrowed log: its control lines and its ring of words.
///
/// `words.len()` is a power of two of at least [`MIN_RING_WORDS`]. Positions are byte offsets that only
/// increase. The ring consists of blocks; [`LogControl::blocks`] maps a position to its block.
#[derive(Clone, Copy)]
pub struct Log<'a> {
    /// Control lines; only the writer writes them.
    pub control: &'a LogControl,
    /// The ring; only the writer writes it.
    pub words: &'a [AtomicU64],
    /// Binary logarithm of the block length in words. A wrong value only reads wrong words.
    pub block_bits: u32,
}

/// Smallest ring that the algorithms work with, in 8-byte words.
pub const MIN_RING_WORDS: usize = 8;

/// Words per loop iteration of a copy into or out of a log. The compiler does not merge atomic accesses, and
/// its own unrolling of four words spends three of eleven instructions on the loop.
pub(crate) const COPY_STEP: usize = 8;

impl<'a> Log<'a> {
    /// Borrows a log. Returns `None` if the ring's length is not a power of two or too small.
    #[inline]
    pub fn new(control: &'a LogControl, words: &'a [AtomicU64]) -> Option<Self> {
        let shortest = (MIN_BLOCK_LEN_BYTES / 8).min(words.len());
        Self::with_blocks(control, words, (words.len() / BLOCKS_PER_LOG).max(shortest))
    }

    /// As [`Log::new`], with a block length other than the default for this ring length.
    #[inline]
    pub fn with_blocks(
        control: &'a LogControl,
        words: &'a [AtomicU64],
        block_words: usize,
    ) -> Option<Self> {
        let sound = words.len().is_power_of_two()
            && words.len() >= MIN_RING_WORDS
            && block_words.is_power_of_two()
            && (MIN_RING_WORDS..=words.len()).contains(&block_words)
            && words.len() / block_words <= BLOCKS_PER_LOG;
        sound.then(|| Log { control, words, block_bits: block_words.ilog2() })
    }

    /// Maximum number of bytes that the log holds.
    #[inline]
    pub fn capacity_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// A consistent pair of the end of the committed records and the number of the next message. `None` while
    /// the writer is between the two stores of a commit; it may have died there.
    pub fn end(&self) -> Option<(u64, u64)> {
        let line = &self.control.tail;
        let last = line.last.load(Ordering::Acquire);
        // SYNC-COMMIT: the record at `last` may be ahead of the tail for a moment.
        let tail = line.tail.load(Ordering::Acquire);
        if tail == 0 {
            return Some((0, 0));
        }
        // The record that ends at the tail determines the next number.
        let head = HeaderWord::from_word(self.word(last).load(Ordering::Relaxed))?;
        (last < tail && last.checked_add(head.span()) == Some(tail)).then(|| {
            let seq = line.seq.load(Ordering::Relaxed);
            let ahead = (seq as u32).wrapping_sub(head.seq_lo.wrapping_add(1));
            (tail, seq.wrapping_sub(u64::from(ahead)))
        })
    }

    /// Send time of the first message at or after position `from` whose number is at least `seq`, among those
    /// that the log still holds. `None` if no message matches, if the log is inconsistent, or if the writer
    /// overwrites the log meanwhile.
    pub fn sent_at(&self, from: u64, seq: u64) -> Option<u64> {
        let mut at = from.max(self.control.head.head.load(Ordering::Acquire));
        // SYNC-COMMIT: see `LogWriter::push`.
        let tail = self.control.tail.tail.load(Ordering::Acquire);
        if tail.checked_sub(at)? > self.capacity_bytes() || (at | tail) & 7 != 0 {
            return None;
        }
        while at < tail {
            let head = HeaderWord::from_word(self.word(at).load(Ordering::Relaxed))?;
            let time_ns = self.word(at + 8).load(Ordering::Relaxed);
            // SYNC-LAP: as in `LogReader::pull`.
            fence(Ordering::Acquire);
            if self.control.head.head.load(Ordering::Relaxed) > at {
                return None;
            }
            if head.span() > tail - at {
                return None;
            }
            // Compares the low halves of the numbers: a log holds fewer than 2^31 messages.
            let is_before = head.seq_lo.wrapping_sub(seq as u32) > u32::MAX / 2;
            if !is_before {
                return Some(time_ns);
            }
            at += head.span();
        }
        None
    }

    /// Length of a block.
    #[inline]
    pub fn block_len_bytes(&self) -> u64 {
        8 << self.block_bits
    }

    /// Maximum number of blocks.
    #[inline]
    pub fn blocks(&self) -> usize {
        self.words.len() >> self.block_bits
    }

    /// The word at a position.
    #[inline]
    pub fn word(&self, position: u64) -> &'a AtomicU64 {
        &self.words[self.index(position)]
    }

    /// The words from a position to the end of its block.
    #[inline]
    pub(crate) fn words_from(&self, position: u64) -> &'a [AtomicU64] {
        let first = self.index(position);
        &self.words[first..(first | ((1 << self.block_bits) - 1)) + 1]
    }

    /// Word index of a position; inside the ring for any position and any table of blocks.
    #[inline]
    fn index(&self, position: u64) -> usize {
        let word = (position >> 3) as usize;
        let most = self.blocks() - 1;
        let slot = (word >> self.block_bits) & most & (BLOCKS_PER_LOG - 1);
        // SYNC-LAP: a slot that changed after its block was given up is accompanied by a head past that
        // block.
        let place = self.control.blocks[slot].load(Ordering::Relaxed) as usize & most;
        place << self.block_bits | (word & ((1 << self.block_bits) - 1))
    }
}
