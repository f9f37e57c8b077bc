//! The words that name blocks: in slots, in heads, in the journal.

use super::layout::{Geometry, MAX_UNITS};

/// [`BlockRef::kind`]: names nothing.
pub const EMPTY: u64 = 0;
/// [`BlockRef::kind`]: names a leaf.
pub const LEAF: u64 = 1;
/// [`BlockRef::kind`]: names an inner node.
pub const NODE: u64 = 2;
/// [`BlockRef::kind`]: names a transaction.
pub const TXN: u64 = 3;

/// Names a block as it is now: its place and its tag, which changes when the block is used again.
///
/// So a word that reads the same twice means the same, and a compare-and-swap of a slot cannot
/// mistake a new block for the old one at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockRef(pub u64);

impl BlockRef {
    /// Names nothing.
    pub const NONE: BlockRef = BlockRef(0);

    /// Names the block at `unit` that has this tag.
    pub const fn new(kind: u64, unit: u32, tag: u32) -> BlockRef {
        BlockRef(kind | (unit as u64) << 2 | (tag as u64) << 32)
    }
    /// What it names.
    #[inline]
    pub const fn kind(self) -> u64 {
        self.0 & 3
    }
    /// Where the block begins, in units.
    #[inline]
    pub const fn unit(self) -> u32 {
        (self.0 >> 2) as u32 & (MAX_UNITS as u32 - 1)
    }
    /// The block's tag.
    #[inline]
    pub const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// Whether it names nothing.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// [`BlockHeader::state`]: anybody may take the block.
pub const FREE: u64 = 0;
/// [`BlockHeader::state`]: its process slot prepares it, or keeps it for later.
pub const PRIVATE: u64 = 1;
/// [`BlockHeader::state`]: a leaf, in a slot or about to be.
pub const IS_LEAF: u64 = 2;
/// [`BlockHeader::state`]: an inner node.
pub const IS_NODE: u64 = 3;
/// [`BlockHeader::state`]: a transaction.
pub const IS_TXN: u64 = 4;
/// [`BlockHeader::state`]: taken out of its slot; its process slot keeps it for those who still read it.
pub const RETIRED: u64 = 5;

/// The first word of each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader(pub u64);

impl BlockHeader {
    /// A head.
    pub const fn new(state: u64, process_slot: u16, tag: u32) -> BlockHeader {
        BlockHeader(state | (process_slot as u64) << 8 | (tag as u64) << 32)
    }
    /// One of the states.
    #[inline]
    pub const fn state(self) -> u64 {
        self.0 & 0xff
    }
    /// The process slot that is responsible for the block.
    #[inline]
    pub const fn process_slot(self) -> u16 {
        (self.0 >> 8) as u16
    }
    /// Counts the uses of the block.
    #[inline]
    pub const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A revision that is not given yet, of a block with this tag. The tag keeps a slow helper from
/// giving a revision to what the block was used for afterwards.
#[inline]
pub const fn pending(tag: u32) -> u64 {
    1 << 63 | tag as u64
}

/// Whether a revision word says that there is none yet.
#[inline]
pub const fn is_pending(revision: u64) -> bool {
    revision >> 63 != 0
}

/// [`TxnStatus::state`]: conditions are looked at; anybody may end it by aborting it.
pub const UNDECIDED: u64 = 1;
/// [`TxnStatus::state`]: to be written to disk; its writer may still withdraw it.
pub const PERSISTING: u64 = 2;
/// [`TxnStatus::state`]: being written to disk; the persister decides.
pub const WRITING: u64 = 5;
/// [`TxnStatus::state`]: its changes hold.
pub const COMMITTED: u64 = 3;
/// [`TxnStatus::state`]: its changes never were.
pub const ABORTED: u64 = 4;

/// The word that decides over a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxnStatus(pub u64);

impl TxnStatus {
    /// A status of the transaction with this tag.
    pub const fn new(state: u64, tag: u32) -> TxnStatus {
        TxnStatus(state | (tag as u64) << 32)
    }
    /// One of the states.
    pub const fn state(self) -> u64 {
        self.0 & 0xff
    }
    /// Tag of the transaction's block.
    pub const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// An entry of the journal: which block has the revision of its position.
///
/// The lap tells an entry from every other that ever stood at its place: it comes again after
/// 2^[`LAP_BITS`] laps of the journal, which no thread is stopped for between a load and its
/// compare-and-swap (docs/design/state-layout.md has the figures).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalEntry(pub u64);

/// Bits of an entry that say in which lap of the journal it was written.
pub const LAP_BITS: u32 = 30;
/// Bits of an entry that say which root slot its leaf hangs from: the lowest of its number, enough to
/// pass over most of the changes that a follower does not want without a look at them.
const ROOT_BITS: u32 = 4;
const ROOT_AT: u32 = 2;
const UNIT_AT: u32 = ROOT_AT + ROOT_BITS;
const LAP_AT: u32 = UNIT_AT + MAX_UNITS.trailing_zeros();
const ROOT_MASK: u32 = (1 << ROOT_BITS) - 1;

const _: () = assert!(LAP_AT + LAP_BITS == u64::BITS);

impl JournalEntry {
    /// The entry for a block at a position.
    pub const fn new(word: BlockRef, lap: u64, deleted: bool, root: u32) -> JournalEntry {
        JournalEntry(
            (word.kind() == TXN) as u64
                | (deleted as u64) << 1
                | ((root & ROOT_MASK) as u64) << ROOT_AT
                | (word.unit() as u64) << UNIT_AT
                | lap << LAP_AT,
        )
    }
    /// The lap of a position, as an entry there says it. The first is 1, so that a place that was never
    /// written is of no lap.
    pub const fn lap_of(geometry: &Geometry, position: u64) -> u64 {
        ((position >> geometry.journal_bits) + 1) & ((1 << LAP_BITS) - 1)
    }
    /// Whether it was written in that lap.
    #[inline]
    pub const fn is_of(self, lap: u64) -> bool {
        self.0 >> LAP_AT == lap
    }
    /// Whether it names a transaction, not a leaf.
    #[inline]
    pub const fn is_txn(self) -> bool {
        self.0 & 1 != 0
    }
    /// Whether the leaf says that its key is deleted.
    #[inline]
    pub const fn is_deleted(self) -> bool {
        self.0 & 2 != 0
    }
    /// Whether its leaf's key can hang from this root slot.
    #[inline]
    pub const fn fits_root(self, root: u32) -> bool {
        (self.0 >> ROOT_AT) as u32 & ROOT_MASK == root & ROOT_MASK
    }
    /// Where the block begins.
    #[inline]
    pub const fn unit(self) -> u32 {
        (self.0 >> UNIT_AT) as u32 & (MAX_UNITS as u32 - 1)
    }
}
