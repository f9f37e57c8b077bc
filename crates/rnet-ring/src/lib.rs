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
//! | [`join`] | a reader joins while the writer publishes |
//! | [`pins`] | chunks that are read in place are not reused under the reader |
//! | [`state`] | state: a key-value tree that all processes write |
//! | [`failpoint`] | where a test build may be killed |
//! | [`wake`] | nobody sleeps through a message, nobody rings who need not |
//!
//! Each pair of operations that orders memory between processes has a name, `SYNC-…`, written at
//! both of its ends.
#![deny(unsafe_code)]

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("robot-net's shared layout is little-endian and 64-bit");

pub mod binding;
pub mod failpoint;
pub mod join;
pub mod layout;
pub mod pins;
pub mod reader;
pub mod record;
pub mod state;
pub mod sync;
pub mod wake;
pub mod writer;

pub use reader::{LogReader, Pull};
pub use record::{Kind, Record};
pub use writer::{Gate, LogWriter, Unbounded};

use layout::LogControl;
use sync::AtomicU64;

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
