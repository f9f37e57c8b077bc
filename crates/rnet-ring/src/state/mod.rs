//! State: a key-value tree in shared memory that any number of processes read and write without a lock.
//!
//! | module | what |
//! |---|---|
//! | [`layout`] | where things stand, as drawn in docs/design/state-layout.md |
//! | [`word`] | the words that name blocks |
//! | [`key`] | the path of a key; which keys a prefix means |
//! | [`leaf`] | a key with its value, written once |
//! | [`blocks`], [`slabs`] | where leaves come from and where they go |
//! | [`trie`] | from a key to its slot |
//! | [`journal`] | the order of all changes: revisions, followers, leases |
//! | [`resolve`] | what a leaf in a slot means |
//! | [`read`], [`commit`], [`transaction`] | reading; writing one key, and several |
//! | [`sweep`] | cleaning up after the dead |
//!
//! A slot names a leaf, which never changes. A write prepares a new leaf and swings the slot to it by
//! one compare-and-swap: killed before, the old value is there; killed after, the new one is. Nobody
//! ever waits for another's half-done write; who meets one finishes it or sets it aside. What is
//! replaced stays readable for a while, under a tag that changes when its block is used again, so that
//! readers need tell nobody that they read.

pub mod blocks;
pub mod commit;
pub mod journal;
pub mod key;
pub mod layout;
pub mod leaf;
pub mod read;
pub mod region;
pub mod resolve;
pub mod slabs;
pub mod sweep;
pub mod transaction;
pub mod trie;
pub mod word;

pub use blocks::{LocalBlocks, OutOfMemory};
pub use commit::{CommitError, CommitOutcome, Guard, Prepared, Write};
pub use key::{Key, Prefix};
pub use layout::Geometry;
pub use leaf::{LeafBuffer, LeafContent, LeafMeta};
pub use read::{Next, Position};
pub use region::{Environment, Region};
pub use slabs::Usage;
pub use sweep::SweepOutcome;

/// Turns of a loop that others can make go round again, each time by getting something done. Only a
/// hostile peer, or a corrupt region, makes for so many.
#[cfg(not(loom))]
pub(crate) const MAX_TRIES: usize = 1 << 20;
#[cfg(loom)]
pub(crate) const MAX_TRIES: usize = 1 << 6;

/// Others were faster `MAX_TRIES` times, or what stands in the region is not what robot-net writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetriesExhausted;

/// A slot leads nowhere: the region is corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptRegion;

#[cfg(all(test, not(loom)))]
mod tests;
