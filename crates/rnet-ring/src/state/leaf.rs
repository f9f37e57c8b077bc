//! Leaves: a key with one version of its value. A leaf is immutable until its block is reused, except for its
//! revision, which is assigned once.

use super::block_words::{BlockHeader, BlockRef};
use super::key::{KEY_WORDS, Key, KeyBuf, MAX_KEY_LEN_BYTES};
use super::region::{Block, Region};
use crate::fail_point;
use crate::sync::{AtomicU64, Ordering, fence};

/// Block word: the revision, or a pending mark. Leaves and transactions have it at the same offset.
pub(crate) const REVISION: usize = 1;
/// Leaf word: the previous content of the slot.
pub(crate) const PREV: usize = 2;
/// Leaf word: the transaction that decides over the leaf, if any.
pub(crate) const TXN_WORD: usize = 3;
const LENS: usize = 4;
const VALUE_LENS: usize = 5;
const WRITTEN: usize = 6;
const EXPIRES: usize = 7;
pub(crate) const VERSION: usize = 8;
const TYPE: usize = 9;
/// Words before the key.
pub const LEAF_HEADER_WORDS: usize = 10;

/// [`LeafMeta::flags`]: this leaf deletes the key.
pub const DELETED: u16 = 1;
/// [`LeafMeta::flags`] of a write: the value was loaded from disk. It keeps its version and is not persisted
/// again.
pub const LOADED: u16 = 16;
/// [`LeafMeta::flags`] of a write: it commits without the disk, which stays unchanged until a persister
/// writes the value.
pub const MEMORY_ONLY: u16 = 32;
/// [`LeafMeta::flags`]: the value is also on disk.
pub const DURABLE: u16 = 2;
/// [`LeafMeta::flags`]: the key has a last will.
pub const WILL: u16 = 4;
/// [`LeafMeta::flags`]: deleted because it expired.
pub const EXPIRED: u16 = 8;
/// [`LeafMeta::flags`]: not a value but the mark of a transaction that has read the key. The previous value
/// is still valid; a concurrent change of the key is ordered before or after the transaction.
pub const GUARD: u16 = 1 << 15;

/// Longest name of a writer, in bytes.
pub const MAX_WRITER_LEN_BYTES: usize = 255;
/// Longest value, in bytes (64 MiB).
pub const MAX_VALUE_LEN_BYTES: usize = 64 << 20;
/// Longest last will, in bytes: a value with its kind.
pub const MAX_WILL_LEN_BYTES: usize = MAX_VALUE_LEN_BYTES + 16;

/// The metadata of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LeafMeta {
    /// Its revision; 0 until assigned.
    pub revision: u64,
    /// Number of writes of the key since its creation.
    pub version: u64,
    /// Kind of the value; defined by the writer.
    pub kind: u16,
    /// Type of the value; defined by the writer.
    pub type_id: u64,
    /// `DELETED`, `DURABLE`, `WILL`, `EXPIRED`.
    pub flags: u16,
    /// Write time, ns since 1970.
    pub written_unix_ns: u64,
    /// Expiry time, in ns of CLOCK_BOOTTIME; 0 for never.
    pub expires_boot_ns: u64,
}

impl LeafMeta {
    /// Whether a flag is set.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Words of a leaf, after its header, that a buffer holds without heap memory.
const SMALL_WORDS: usize = 16;

/// A copy of a leaf. The buffer is reused.
#[derive(Clone, Debug, Default)]
pub struct LeafBuffer {
    /// The metadata.
    pub meta: LeafMeta,
    small: [u64; SMALL_WORDS],
    /// Used if `small` is too small.
    large: Vec<u64>,
    is_large: bool,
    key_len: usize,
    writer_len: usize,
    value_len: usize,
    will_len: usize,
}

impl LeafBuffer {
    fn bytes(&self, word: usize, len: usize) -> &[u8] {
        let words = if self.is_large { &self.large[..] } else { &self.small[..] };
        // The layout is little-endian, like the machine.
        &zerocopy::IntoBytes::as_bytes(&words[word..word + len.div_ceil(8)])[..len]
    }
    /// Memory of a copy, in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        size_of::<LeafBuffer>() + if self.is_large { self.large.len() * 8 } else { 0 }
    }
    /// The key's bytes.
    pub fn key(&self) -> &[u8] {
        self.bytes(0, self.key_len)
    }
    /// Name of the node that wrote it.
    pub fn writer(&self) -> &[u8] {
        self.bytes(self.key_len.div_ceil(8), self.writer_len)
    }
    /// The value's bytes.
    pub fn value(&self) -> &[u8] {
        self.bytes(self.key_len.div_ceil(8) + self.writer_len.div_ceil(8), self.value_len)
    }
    /// The last will's bytes.
    pub fn will(&self) -> Option<&[u8]> {
        let at =
            self.key_len.div_ceil(8) + self.writer_len.div_ceil(8) + self.value_len.div_ceil(8);
        self.meta.has(WILL).then(|| self.bytes(at, self.will_len))
    }
}

/// The content of a leaf to be written.
#[derive(Clone, Copy, Debug)]
pub struct LeafContent<'a> {
    /// Name of the writing node.
    pub writer: &'a [u8],
    /// The value; empty for a deletion.
    pub value: &'a [u8],
    /// The value of the key after the writer exits.
    pub will: Option<&'a [u8]>,
    /// Kind, type, flags and times; revision and version are assigned on commit.
    pub meta: LeafMeta,
}

impl LeafContent<'_> {
    /// Words of the leaf.
    pub fn words(&self, key: &Key<'_>) -> usize {
        LEAF_HEADER_WORDS
            + key.words()
            + self.writer.len().div_ceil(8)
            + self.value.len().div_ceil(8)
            + self.will.map_or(0, |w| w.len().div_ceil(8))
    }
}

fn put(block: &[AtomicU64], bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (word, bytes) in block.iter().zip(chunks) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        block[chunks.len()].store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
    bytes.len().div_ceil(8)
}

/// Writes a leaf into an owned block; the `words` of the content must fit. [`set_previous`] sets the
/// predecessor and the version later.
pub(crate) fn fill(block: &[AtomicU64], key: &Key<'_>, content: &LeafContent<'_>) {
    let store = |at: usize, value: u64| block[at].store(value, Ordering::Relaxed);
    let will_len = content.will.map_or(0, <[u8]>::len);
    let meta = &content.meta;
    let flags = meta.flags & !WILL | if content.will.is_some() { WILL } else { 0 };
    store(PREV, 0);
    store(TXN_WORD, 0);
    store(
        LENS,
        key.bytes().len() as u64
            | (content.writer.len() as u64) << 16
            | u64::from(meta.kind) << 32
            | u64::from(flags) << 48,
    );
    store(VALUE_LENS, content.value.len() as u64 | (will_len as u64) << 32);
    store(WRITTEN, meta.written_unix_ns);
    store(EXPIRES, meta.expires_boot_ns);
    store(VERSION, 1);
    store(TYPE, meta.type_id);
    fail_point!("state.filling");
    let mut at = LEAF_HEADER_WORDS;
    at += put(&block[at..], key.bytes());
    at += put(&block[at..], content.writer);
    at += put(&block[at..], content.value);
    put(&block[at..], content.will.unwrap_or_default());
    fail_point!("state.filled");
}

/// Whether a leaf is a guard mark.
pub(crate) fn is_guard(block: Block<'_>) -> bool {
    block[LENS].load(Ordering::Relaxed) >> 48 & u64::from(GUARD) != 0
}

/// Sets the predecessor, version and flags of a filled leaf that is not yet visible (the flag for a last will
/// is kept).
pub(crate) fn set_previous(block: &[AtomicU64], before: BlockRef, version: u64, flags: u16) {
    block[PREV].store(before.0, Ordering::Relaxed);
    block[VERSION].store(version, Ordering::Relaxed);
    let lens = block[LENS].load(Ordering::Relaxed);
    let will = lens >> 48 & u64::from(WILL);
    let flags = u64::from(flags & !WILL) | will;
    block[LENS].store(lens & !(0xffff << 48) | flags << 48, Ordering::Relaxed);
}

/// Whether a leaf belongs to this key; `None` if the block was reused.
#[inline]
pub(crate) fn is_of(block: Block<'_>, word: BlockRef, key: &Key<'_>) -> Option<bool> {
    let len = block[LENS].load(Ordering::Relaxed) & 0xffff;
    let same = len == key.bytes().len() as u64 && has_key(block, key.bytes());
    is_current(block, word).then_some(same)
}

#[inline]
fn has_key(block: Block<'_>, key: &[u8]) -> bool {
    let Some(words) = block.get(LEAF_HEADER_WORDS..LEAF_HEADER_WORDS + key.len().div_ceil(8))
    else {
        return false;
    };
    let (chunks, rest) = key.as_chunks::<8>();
    let whole = chunks
        .iter()
        .zip(words)
        .all(|(bytes, word)| word.load(Ordering::Relaxed) == u64::from_le_bytes(*bytes));
    whole
        && (rest.is_empty() || {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words[chunks.len()].load(Ordering::Relaxed) == u64::from_le_bytes(last)
        })
}

/// Whether the block still is the one that `word` refers to. What was read before this check then belongs to
/// it.
#[inline]
pub(crate) fn is_current(block: Block<'_>, word: BlockRef) -> bool {
    // SYNC-BLOCK: see `Region::current_block`.
    fence(Ordering::Acquire);
    BlockHeader(block[0].load(Ordering::Relaxed)).tag() == word.tag()
}

fn meta_of(block: Block<'_>) -> LeafMeta {
    let load = |at: usize| block[at].load(Ordering::Relaxed);
    let lens = load(LENS);
    LeafMeta {
        revision: load(REVISION),
        version: load(VERSION),
        kind: (lens >> 32) as u16,
        type_id: load(TYPE),
        flags: (lens >> 48) as u16,
        written_unix_ns: load(WRITTEN),
        expires_boot_ns: load(EXPIRES),
    }
}

/// The metadata of a leaf; `None` if the block was reused.
pub(crate) fn meta(block: Block<'_>, word: BlockRef) -> Option<LeafMeta> {
    let meta = meta_of(block);
    is_current(block, word).then_some(meta)
}

/// Copies a leaf; `None` if its block was reused or its content is invalid.
pub(crate) fn copy(block: Block<'_>, word: BlockRef, into: &mut LeafBuffer) -> Option<()> {
    let lens = block[LENS].load(Ordering::Relaxed);
    let value_lens = block[VALUE_LENS].load(Ordering::Relaxed);
    let meta = meta_of(block);
    let (key_len, writer_len) = ((lens & 0xffff) as usize, (lens >> 16 & 0xffff) as usize);
    let (value_len, will_len) = (value_lens as u32 as usize, (value_lens >> 32) as usize);
    let fits = key_len <= MAX_KEY_LEN_BYTES
        && writer_len <= MAX_WRITER_LEN_BYTES
        && value_len <= MAX_VALUE_LEN_BYTES
        && will_len <= MAX_WILL_LEN_BYTES;
    if !fits {
        return None;
    }
    let words =
        key_len.div_ceil(8) + writer_len.div_ceil(8) + value_len.div_ceil(8) + will_len.div_ceil(8);
    let source = block.get(LEAF_HEADER_WORDS..LEAF_HEADER_WORDS + words)?;
    into.is_large = words > SMALL_WORDS;
    if into.is_large {
        into.large.clear();
        into.large.extend(source.iter().map(|word| word.load(Ordering::Relaxed)));
    } else {
        for (to, word) in into.small.iter_mut().zip(source) {
            *to = word.load(Ordering::Relaxed);
        }
    }
    (into.key_len, into.writer_len, into.value_len, into.will_len) =
        (key_len, writer_len, value_len, will_len);
    into.meta = meta;
    is_current(block, word).then_some(())
}

impl Region<'_> {
    /// The key of a leaf; `None` if its block was reused.
    pub(crate) fn key_of(&self, word: BlockRef) -> Option<KeyBuf> {
        let block = self.current_block(word)?;
        let len = (block[LENS].load(Ordering::Relaxed) & 0xffff) as usize;
        if len > MAX_KEY_LEN_BYTES {
            return None;
        }
        let mut bytes = [0u8; KEY_WORDS * 8];
        let words = block.get(LEAF_HEADER_WORDS..LEAF_HEADER_WORDS + len.div_ceil(8))?;
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        let key = KeyBuf::new(bytes, len, self.seed, &self.geometry)?;
        is_current(block, word).then_some(key)
    }
}
