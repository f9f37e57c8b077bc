//! The algorithms of the shared-memory plane over borrowed memory.
//!
//! Nothing here maps memory, waits on the kernel or reads a clock: callers hand in a region of
//! atomic words and a few values, so that the same code runs over a heap buffer in a unit test,
//! over loom's atomics in a model and over mapped files in production (`rnet-shm`).
//!
//! | module | what |
//! |---|---|
//! | [`layout`] | the shared structures, byte for byte as drawn in docs/design/shm-layout.md |
//! | [`record`] | how one message stands in the log |
//! | [`writer`] | the single writer: reserve, fill, commit with one release store |
//! | [`reader`] | any number of readers: copy out in bulk, validate, walk |
//! | [`binding`] | a reader asks a publisher to be admitted, by a page that goes from one to the other |
//! | [`admission`] | what the publisher answers, as it stands in its page |
//! | [`seats`] | the publisher's half of an admission: who has asked, and was answered what |
//! | [`follower`] | the reader's half: asks, reads, is let go, asks again |
//! | [`join`] | a reader joins while the writer publishes |
//! | [`pins`] | chunks that are read in place are not reused under the reader |
//! | [`room`] | a writer that sleeps for room is woken by readers that make it |
//! | [`state`] | state: a key-value tree that all processes write |
//! | [`failpoint`] | where a test build may be killed |
//! | [`wake`] | nobody sleeps through a message, nobody rings who need not |
//!
//! Each pair of operations that orders memory between processes has a name, `SYNC-…`, written at
//! both of its ends.
#![deny(unsafe_code)]

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("robot-net's shared layout is little-endian and 64-bit");

pub mod admission;
pub mod binding;
pub mod failpoint;
pub mod follower;
pub mod join;
pub mod layout;
pub mod pins;
pub mod reader;
pub mod record;
pub mod room;
pub mod seats;
pub mod state;
pub mod sync;
pub mod wake;
pub mod writer;

pub use reader::{LogReader, Pull};
pub use record::{Kind, Record};
pub use writer::{Gate, LogWriter, Unbounded};

use layout::LogControl;
use record::Head;
use sync::{AtomicU64, Ordering, fence};

/// A borrowed log: its control lines and its ring of words.
///
/// `words.len()` is a power of two of at least [`MIN_RING_WORDS`]. Positions are byte offsets
/// that only grow; the ring index is `position / 8 mod words.len()`.
#[derive(Clone, Copy)]
pub struct Log<'a> {
    /// Control lines, written by the writer only.
    pub control: &'a LogControl,
    /// The ring itself, written by the writer only.
    pub words: &'a [AtomicU64],
}

/// Smallest ring that the algorithms work with, in 8-byte words.
pub const MIN_RING_WORDS: usize = 8;

impl<'a> Log<'a> {
    /// Borrows a log. Returns `None` if the ring's length is not a power of two or too small.
    pub fn new(control: &'a LogControl, words: &'a [AtomicU64]) -> Option<Self> {
        (words.len().is_power_of_two() && words.len() >= MIN_RING_WORDS)
            .then_some(Log { control, words })
    }

    /// Size of the ring in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// End of the committed records and number of the next message, of one moment. `None` while the
    /// writer is between two of the stores that make a commit, which it may have died in.
    pub fn end(&self) -> Option<(u64, u64)> {
        let line = &self.control.tail;
        let last = line.last.load(Ordering::Acquire);
        // SYNC-COMMIT: the record at `last` may be ahead of the tail for a moment.
        let tail = line.tail.load(Ordering::Acquire);
        if tail == 0 {
            return Some((0, 0));
        }
        // The record that ends at the tail says which number comes next.
        let head = Head::from_word(self.word(last).load(Ordering::Relaxed))?;
        (last < tail && last.checked_add(head.span()) == Some(tail)).then(|| {
            let seq = line.seq.load(Ordering::Relaxed);
            let ahead = (seq as u32).wrapping_sub(head.seq_lo.wrapping_add(1));
            (tail, seq.wrapping_sub(u64::from(ahead)))
        })
    }

    /// When the first message was sent that stands at `from` or behind it and whose number is at least
    /// `seq`, of those that the log still holds. `None` if there is none, and if the log contradicts
    /// itself or the writer passes this look.
    pub fn sent_at(&self, from: u64, seq: u64) -> Option<u64> {
        let mut at = from.max(self.control.head.head.load(Ordering::Acquire));
        // SYNC-COMMIT: see `LogWriter::push`.
        let tail = self.control.tail.tail.load(Ordering::Acquire);
        if tail.checked_sub(at)? > self.capacity_bytes() || (at | tail) & 7 != 0 {
            return None;
        }
        while at < tail {
            let head = Head::from_word(self.word(at).load(Ordering::Relaxed))?;
            let time_ns = self.word(at + 8).load(Ordering::Relaxed);
            // SYNC-LAP: as in `LogReader::pull`.
            fence(Ordering::Acquire);
            if self.control.head.head.load(Ordering::Relaxed) > at {
                return None;
            }
            if !(8..=tail - at).contains(&head.span()) || head.span() % 8 != 0 {
                return None;
            }
            // Half numbers: a log holds less than 2^31 messages.
            let is_before = head.seq_lo.wrapping_sub(seq as u32) > u32::MAX / 2;
            if head.kind != Kind::Pad && !is_before {
                return Some(time_ns);
            }
            at += head.span();
        }
        None
    }

    #[inline]
    pub(crate) fn word(&self, position: u64) -> &'a AtomicU64 {
        &self.words[self.index(position)]
    }

    /// Index of the word at a position; inside the ring whatever the position, a corrupt one too.
    #[inline]
    pub(crate) fn index(&self, position: u64) -> usize {
        (position >> 3) as usize & (self.words.len() - 1)
    }
}
