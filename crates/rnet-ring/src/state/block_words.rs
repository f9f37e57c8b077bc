//! The words that refer to blocks, or describe them: references in slots, headers of blocks, the status of
//! transactions, entries of the journal.

use super::layout::{Geometry, MAX_UNITS};

/// [`BlockRef::kind`]: refers to nothing.
pub const EMPTY: u64 = 0;
/// [`BlockRef::kind`]: refers to a leaf.
pub const LEAF: u64 = 1;
/// [`BlockRef::kind`]: refers to an inner node.
pub const NODE: u64 = 2;
/// [`BlockRef::kind`]: refers to a transaction.
pub const TXN: u64 = 3;

/// Refers to one use of a block, by its unit and its tag, which changes when the block is reused.
///
/// Equal words therefore refer to the same content, and a compare-and-swap of a slot cannot mistake a new
/// block for an old one at the same unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockRef(pub u64);

impl BlockRef {
    /// The empty reference.
    pub const NONE: BlockRef = BlockRef(0);

    /// Refers to the block at `unit` with this tag.
    pub const fn new(kind: u64, unit: u32, tag: u32) -> BlockRef {
        BlockRef(kind | (unit as u64) << 2 | (tag as u64) << 32)
    }
    /// The kind of the block.
    #[inline]
    pub const fn kind(self) -> u64 {
        self.0 & 3
    }
    /// First unit of the block.
    #[inline]
    pub const fn unit(self) -> u32 {
        (self.0 >> 2) as u32 & (MAX_UNITS as u32 - 1)
    }
    /// The block's tag.
    #[inline]
    pub const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// Whether it refers to nothing.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// [`BlockHeader::state`]: free for any process.
pub const FREE: u64 = 0;
/// [`BlockHeader::state`]: its process slot prepares it, or caches it.
pub const PRIVATE: u64 = 1;
/// [`BlockHeader::state`]: a leaf, in a slot or before its installation.
pub const IS_LEAF: u64 = 2;
/// [`BlockHeader::state`]: an inner node.
pub const IS_NODE: u64 = 3;
/// [`BlockHeader::state`]: a transaction.
pub const IS_TXN: u64 = 4;
/// [`BlockHeader::state`]: removed from its slot; its process slot keeps it for remaining readers.
pub const RETIRED: u64 = 5;

/// The first word of each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader(pub u64);

impl BlockHeader {
    /// A header.
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
    /// Counter of the uses of the block.
    #[inline]
    pub const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The revision word of a block with this tag before a revision is assigned. The tag prevents a slow helper
/// from assigning the revision to a later use of the block.
#[inline]
pub const fn pending(tag: u32) -> u64 {
    1 << 63 | tag as u64
}

/// Whether a revision word is pending.
#[inline]
pub const fn is_pending(revision: u64) -> bool {
    revision >> 63 != 0
}

/// [`TxnStatus::state`]: conditions are being checked; any process may abort it.
pub const UNDECIDED: u64 = 1;
/// [`TxnStatus::state`]: waits to be written to disk; its writer may still withdraw it.
pub const PERSISTING: u64 = 2;
/// [`TxnStatus::state`]: being written to disk; the persister decides.
pub const WRITING: u64 = 5;
/// [`TxnStatus::state`]: its changes are committed.
pub const COMMITTED: u64 = 3;
/// [`TxnStatus::state`]: its changes are discarded.
pub const ABORTED: u64 = 4;

/// The status word of a transaction.
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

/// An entry of the journal: the block that has the revision of its position.
///
/// The lap distinguishes an entry from earlier ones at the same index. It repeats after 2^[`LAP_BITS`] laps
/// of the journal; no thread is suspended that long between a load and its compare-and-swap
/// (docs/design/state-layout.md has the figures).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalEntry(pub u64);

/// Bits of an entry for the lap of the journal in which it was written.
pub const LAP_BITS: u32 = 30;
/// Bits of an entry for the root slot of its leaf: the lowest bits of its number, enough for a follower to
/// skip most unrelated changes without reading their leaves.
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
    /// The lap of a position, as stored in an entry. The first lap is 1, so that an entry that was never
    /// written belongs to no lap.
    pub const fn lap_of(geometry: &Geometry, position: u64) -> u64 {
        ((position >> geometry.journal_bits) + 1) & ((1 << LAP_BITS) - 1)
    }
    /// Whether it was written in this lap.
    #[inline]
    pub const fn is_of(self, lap: u64) -> bool {
        self.0 >> LAP_AT == lap
    }
    /// Whether it refers to a transaction, not a leaf.
    #[inline]
    pub const fn is_txn(self) -> bool {
        self.0 & 1 != 0
    }
    /// Whether the leaf deletes its key.
    #[inline]
    pub const fn is_deleted(self) -> bool {
        self.0 & 2 != 0
    }
    /// Whether its leaf's key can belong to this root slot.
    #[inline]
    pub const fn fits_root(self, root: u32) -> bool {
        (self.0 >> ROOT_AT) as u32 & ROOT_MASK == root & ROOT_MASK
    }
    /// First unit of the block.
    #[inline]
    pub const fn unit(self) -> u32 {
        (self.0 >> UNIT_AT) as u32 & (MAX_UNITS as u32 - 1)
    }
}
