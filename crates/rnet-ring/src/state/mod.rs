//! State: a key-value tree in shared memory that any number of processes read and write without a lock.
//!
//! | module | content |
//! |---|---|
//! | [`layout`] | offsets, as shown in docs/design/state-layout.md |
//! | [`block_words`] | the words that refer to blocks, or describe them |
//! | [`key`] | the path of a key; the keys that a prefix matches |
//! | [`leaf`] | a key with its value, written once |
//! | [`blocks`], [`slabs`] | allocation and reclamation of leaves |
//! | [`trie`] | from a key to its slot |
//! | [`journal`] | the order of all changes: revisions, followers, leases |
//! | [`resolve`] | the committed value of a slot |
//! | [`read`], [`conditional_write`], [`transaction`] | reading; writing one key, and several |
//! | [`dead_process`] | cleanup after dead processes |
//!
//! A slot refers to an immutable leaf. A write prepares a new leaf and sets the slot to it by one
//! compare-and-swap: if the writer is killed before that, the old value is valid; after it, the new one. No
//! process waits for another's incomplete write; a process that finds one completes or aborts it. A replaced
//! leaf stays readable for a while, under a tag that changes when its block is reused, so that readers need
//! not announce themselves.

pub mod block_words;
pub mod blocks;
pub mod conditional_write;
pub mod dead_process;
pub mod journal;
pub mod key;
pub mod layout;
pub mod leaf;
pub mod read;
pub mod region;
pub mod resolve;
pub mod slabs;
pub mod transaction;
pub mod trie;

pub use blocks::{LocalBlocks, OutOfMemory};
pub use conditional_write::{CommitError, CommitOutcome, Guard, Prepared, Write};
pub use dead_process::SweepOutcome;
pub use key::{Key, Prefix};
pub use layout::Geometry;
pub use leaf::{LeafBuffer, LeafContent, LeafMeta};
pub use read::{Next, Position};
pub use region::{Environment, Region};
pub use slabs::Usage;

/// Iterations of a loop that other processes can prolong, each time by making progress. Only a hostile peer
/// or a corrupt region causes this many.
#[cfg(not(loom))]
pub(crate) const MAX_TRIES: usize = 1 << 20;
#[cfg(loom)]
pub(crate) const MAX_TRIES: usize = 1 << 6;

/// Other processes won `MAX_TRIES` attempts, or the region contains data that robot-net does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetriesExhausted;

/// A slot has an invalid reference: the region is corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptRegion;

#[cfg(all(test, not(loom)))]
mod tests;
