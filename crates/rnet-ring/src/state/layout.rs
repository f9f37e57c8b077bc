//! Layout of a state region, as shown in docs/design/state-layout.md. All offsets are in 8-byte words.

/// Words of a cache line pair; lines that different processes write are this far apart.
pub const LINE_WORDS: usize = 16;
/// Words of one unit, the granularity of blocks.
pub const UNIT_WORDS: usize = 8;
/// Units of one slab.
pub const SLAB_UNITS: usize = if cfg!(loom) { 16 } else { 1024 };
/// Words of one slab (64 KiB).
pub const SLAB_WORDS: usize = SLAB_UNITS * UNIT_WORDS;
/// Maximum number of units of a region, as limited by [`super::block_words::BlockRef`].
pub const MAX_UNITS: usize = 1 << 28;
/// Number of snapshot leases.
pub const SNAPSHOT_LEASES: usize = if cfg!(loom) { 2 } else { 64 };
/// Fan-out of an inner node of the trie.
pub const FANOUT: usize = 16;
/// Deepest path: two levels of the second component, four hashes of sixteen levels.
pub const MAX_LEVEL: usize = 2 + 64;
/// Maximum number of keys that one transaction writes and guards.
pub const MAX_TXN_WRITES: usize = 2048;

/// Header word: layout version.
pub const MAGIC_AT: usize = 0;
/// Header word: seed of the hashes.
pub const SEED_AT: usize = 1;
/// Header word: 1 after the durable values have been loaded.
pub const LOADED_AT: usize = 2;
/// Header word: the geometry, packed.
pub const GEOMETRY_AT: usize = 3;
/// The journal's tail: the revision of the next change.
pub const TAIL_AT: usize = LINE_WORDS;
/// Bit set of the taken leases.
pub const TAKEN_LEASES_AT: usize = 2 * LINE_WORDS;
/// Bit set of the sleeping followers.
pub const ASLEEP_AT: usize = 3 * LINE_WORDS;
/// Number of slabs that were ever claimed.
pub const HIGH_AT: usize = 4 * LINE_WORDS;
/// Lower bound of the unused slabs, as far as known.
pub const LOW_AT: usize = 4 * LINE_WORDS + 1;
/// The persister's line: see docs/design/durable-state.md.
pub const PERSISTER_AT: usize = 5 * LINE_WORDS;
/// Words of the header page.
pub const HEADER_WORDS: usize = if cfg!(loom) { 128 } else { 512 };

/// Process slot word: incarnation of the node that owns the process slot; 0 while it is free.
pub const PROCESS_OWNER: usize = 0;
/// Process slot word: incarnation of the node that sweeps the process slot.
pub const PROCESS_SWEEPER: usize = 1;
/// Process slot word: the leaf that its owner is removing from its trie slot.
pub const PROCESS_BUSY: usize = 2;
/// Process slot word: 1 if a key of the process slot's owner may have a last will.
pub const PROCESS_WILLS: usize = 3;
/// Process slot word: number of claims of the process slot.
pub const PROCESS_CLAIMS: usize = 4;

/// Process slot word: the slab that its owner searches for free blocks, plus 1.
pub const PROCESS_SLAB: usize = 5;

/// Process slot word: the leaf whose revision its owner does not know yet. Others may have replaced the leaf,
/// but it is not reused before.
pub const PROCESS_NEW: usize = 6;

/// Lease word: the process slot that holds it, plus 1.
pub const LEASE_OWNER: usize = 0;
/// Lease word: the leased revision; 0 while unknown, [`REVOKED`] after revocation.
pub const LEASE_REVISION: usize = 1;
/// [`LEASE_REVISION`]: the blocks that the reader needs are no longer kept.
pub const REVOKED: u64 = u64::MAX;

/// Follower word: the process slot that follows, plus 1.
pub const FOLLOWER_OWNER: usize = 0;
/// Follower word: the root slot it waits for, plus 1; 0 for all.
pub const FOLLOWER_FILTER: usize = 1;
/// Follower word: the bell of its node that wakes it.
pub const FOLLOWER_BELL: usize = 2;

/// Sizes of the parts of a region. All processes of a domain use [`Geometry::DOMAIN`]; tests use smaller
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Binary logarithm of the slots of the trie's root, at most 12.
    pub root_bits: u32,
    /// Binary logarithm of the entries of the journal.
    pub journal_bits: u32,
    /// Process slots: nodes that use state at the same time.
    pub process_slots: usize,
    /// Followers in all; a multiple of 64.
    pub followers: usize,
    /// Slots for requests to the persister.
    pub persist_requests: usize,
    /// Slabs of 64 KiB.
    pub slabs: usize,
}

impl Geometry {
    /// The geometry of every domain: 16 GiB of blocks.
    pub const DOMAIN: Geometry = Geometry {
        root_bits: 12,
        journal_bits: 14,
        process_slots: 1024,
        followers: 1024,
        persist_requests: 256,
        slabs: MAX_UNITS / SLAB_UNITS,
    };

    /// A geometry for small tests.
    pub const SMALL: Geometry = Geometry {
        root_bits: 4,
        journal_bits: 6,
        process_slots: 8,
        followers: 64,
        persist_requests: 8,
        slabs: 64,
    };

    /// First word of the process slots.
    pub const fn process_slots_at(&self) -> usize {
        HEADER_WORDS
    }
    /// First word of the leases.
    pub const fn leases_at(&self) -> usize {
        self.process_slots_at() + self.process_slots * LINE_WORDS
    }
    /// First word of the followers.
    pub const fn followers_at(&self) -> usize {
        self.leases_at() + SNAPSHOT_LEASES * LINE_WORDS
    }
    /// First word of the requests to the persister.
    pub const fn persist_requests_at(&self) -> usize {
        self.followers_at() + self.followers * LINE_WORDS
    }
    /// First word of the journal.
    pub const fn journal_at(&self) -> usize {
        self.persist_requests_at() + self.persist_requests
    }
    /// First word of the trie's root.
    pub const fn root_at(&self) -> usize {
        self.journal_at() + (1 << self.journal_bits)
    }
    /// First word of the table of slabs, page-aligned.
    pub const fn table_at(&self) -> usize {
        (self.root_at() + (1 << self.root_bits)).next_multiple_of(512)
    }
    /// First word of the blocks, slab-aligned.
    pub const fn blocks_at(&self) -> usize {
        (self.table_at() + self.slabs).next_multiple_of(SLAB_WORDS)
    }
    /// Words of the region.
    pub const fn words(&self) -> usize {
        self.blocks_at() + self.slabs * SLAB_WORDS
    }
    /// Packed into one word, for the header.
    pub const fn packed(&self) -> u64 {
        self.root_bits as u64
            | (self.journal_bits as u64) << 8
            | (self.process_slots as u64) << 16
            | (self.followers as u64) << 32
            | (self.slabs as u64) << 44
    }
}

/// Units of the blocks of each class. The class after these is a span of whole slabs.
pub const CLASS_UNITS: [u16; 20] =
    [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 170, 204, 256, 341, 512, 1024, 0];
/// The class of spans: blocks larger than one slab.
pub const SPAN_CLASS: usize = 19;

/// The smallest class whose blocks hold this many words.
pub fn class_of(words: usize) -> usize {
    let units = words.div_ceil(UNIT_WORDS);
    let class = CLASS_UNITS[..SPAN_CLASS].partition_point(|have| usize::from(*have) < units);
    class.min(SPAN_CLASS)
}
