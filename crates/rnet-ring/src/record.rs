//! The format of one message in the log.
//!
//! ```text
//!   0        4      7    8        12      16
//!   | seq_lo | len (24) kind (8)  | time_ns (64)   | payload … | zeros to a multiple of 8
//! ```
//! Word 0 holds the low half of the sequence number and, in its high half, the payload length in the low 24
//! bits and the kind in the high 8. Word 1 is the send time. A record may extend from one block of the log
//! into the next.
//!
//! If the highest bit of the kind is set, extension words precede the payload, and the length includes them:
//!
//! ```text
//!   16       24        28        32
//!   | len    | tag (32) | len (32) | bytes, zeros to a multiple of 8 | tag | len | bytes … | payload …
//! ```
//! The first word is the length of all extension words, including itself. Records without extension words do
//! not execute the code that reads them.

/// Length of the header before each payload, in bytes.
pub const HEADER_LEN_BYTES: u64 = 16;
/// Payload length of a [`RecordKind::Chunk`] record, in bytes.
pub const CHUNK_REF_LEN_BYTES: usize = 24;
/// Maximum length of the extension words of a record, in bytes.
pub const MAX_EXTENSION_LEN_BYTES: usize = 1024;
/// Bit of the kind: extension words precede the payload.
pub const EXTENDED: u64 = 128;
/// Longest payload that the 24-bit length field can represent, in bytes.
pub const MAX_RECORD_LEN_BYTES: usize = (1 << 24) - 1;

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The payload itself.
    Inline,
    /// A [`ChunkRef`] to the payload.
    Chunk,
}

impl RecordKind {
    fn tag(self) -> u64 {
        match self {
            RecordKind::Inline => 1,
            RecordKind::Chunk => 2,
        }
    }

    fn from_tag(tag: u64) -> Option<RecordKind> {
        match tag {
            1 => Some(RecordKind::Inline),
            2 => Some(RecordKind::Chunk),
            _ => None,
        }
    }
}

/// The content of a record, and whether extension words precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTag {
    /// The content.
    pub kind: RecordKind,
    /// Whether extension words precede it.
    pub extended: bool,
}

impl From<RecordKind> for RecordTag {
    #[inline]
    fn from(kind: RecordKind) -> RecordTag {
        RecordTag { kind, extended: false }
    }
}

/// A record's first word, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderWord {
    /// Low half of the sequence number.
    pub seq_lo: u32,
    /// Length of the payload and of the extension words before it, in bytes.
    pub len: u32,
    /// The content of the record.
    pub tag: RecordTag,
}

impl HeaderWord {
    /// Encodes the word.
    #[inline]
    pub fn to_word(self) -> u64 {
        let extended = if self.tag.extended { EXTENDED } else { 0 };
        let kind = self.tag.kind.tag() | extended;
        u64::from(self.seq_lo) | u64::from(self.len) << 32 | kind << 56
    }

    /// Decodes an untrusted word.
    #[inline]
    pub fn from_word(word: u64) -> Option<HeaderWord> {
        let (kind, extended) = ((word >> 56) & !EXTENDED, (word >> 56) & EXTENDED != 0);
        Some(Self::of(word, RecordTag { kind: RecordKind::from_tag(kind)?, extended }))
    }

    /// As [`HeaderWord::from_word`], for a record without extension words.
    #[inline]
    pub fn from_word_unextended(word: u64) -> Option<HeaderWord> {
        Some(Self::of(word, RecordKind::from_tag(word >> 56)?.into()))
    }

    /// As [`HeaderWord::from_word_unextended`], for a record of this kind.
    #[inline]
    pub fn from_word_of(kind: RecordKind, word: u64) -> Option<HeaderWord> {
        (word >> 56 == kind.tag()).then_some(Self::of(word, kind.into()))
    }

    /// As [`HeaderWord::from_word_of`], for a record with extension words.
    #[inline]
    pub fn from_word_of_extended(kind: RecordKind, word: u64) -> Option<HeaderWord> {
        let tag = RecordTag { kind, extended: true };
        (word >> 56 == kind.tag() | EXTENDED).then_some(Self::of(word, tag))
    }

    #[inline]
    fn of(word: u64, tag: RecordTag) -> HeaderWord {
        HeaderWord { seq_lo: word as u32, len: (word >> 32) as u32 & 0x00ff_ffff, tag }
    }

    /// Length of the record in the ring, in bytes; a multiple of 8.
    #[inline]
    pub fn span(self) -> u64 {
        span_of(self.len as usize)
    }
}

/// Length in the ring of a record with `len` bytes of payload, in bytes.
#[inline]
pub fn span_of(len: usize) -> u64 {
    HEADER_LEN_BYTES + (len as u64).next_multiple_of(8)
}

/// One message, as a reader receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The content.
    pub kind: RecordKind,
    /// Sequence number; the publisher's messages are counted from 0.
    pub seq: u64,
    /// Send time, CLOCK_MONOTONIC in ns.
    pub time_ns: u64,
    /// Offset of the payload in the reader's buffer, in bytes; a multiple of 8.
    pub offset: usize,
    /// Length of the payload, in bytes.
    pub len: usize,
}

/// Length of the extension words at the start of these untrusted words; `None` if they are inconsistent. They
/// cannot be longer than the record.
#[inline]
pub fn extension_len(words: &[u64], record_len: usize) -> Option<usize> {
    let len = usize::try_from(*words.first()?).ok()?;
    let sound = len.is_multiple_of(8) && (8..=MAX_EXTENSION_LEN_BYTES).contains(&len);
    if !sound || len > record_len {
        return None;
    }
    let mut rest = words.get(1..len / 8)?;
    while let [head, after @ ..] = rest {
        rest = after.get(((head >> 32) as usize).div_ceil(8)..)?;
    }
    Some(len)
}

/// Location of a large message: the payload of a [`RecordKind::Chunk`] record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// Number of the chunk in its publisher's pool; never reused.
    pub chunk: u32,
    /// The use of the chunk that the message belongs to.
    pub generation: u64,
    /// Length of the payload, in bytes.
    pub len: u64,
}

impl ChunkRef {
    /// The bytes in the record.
    pub fn to_bytes(self) -> [u8; CHUNK_REF_LEN_BYTES] {
        let mut bytes = [0; CHUNK_REF_LEN_BYTES];
        bytes[..8].copy_from_slice(&u64::from(self.chunk).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    /// Decodes untrusted bytes; `None` if they cannot be a chunk reference.
    pub fn from_bytes(bytes: &[u8]) -> Option<ChunkRef> {
        let word = |i: usize| Some(u64::from_le_bytes(bytes.get(i..i + 8)?.try_into().ok()?));
        (bytes.len() == CHUNK_REF_LEN_BYTES).then_some(())?;
        Some(ChunkRef {
            chunk: u32::try_from(word(0)?).ok()?,
            generation: word(8)?,
            len: word(16)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_of_22_bytes_spans_40() {
        assert_eq!(span_of(22), 40);
        assert_eq!(span_of(0), 16);
    }

    #[test]
    fn words_round_trip() {
        for kind in [RecordKind::Inline, RecordKind::Chunk] {
            for extended in [false, true] {
                let tag = RecordTag { kind, extended };
                let head = HeaderWord { seq_lo: u32::MAX, len: 0xff_ffff, tag };
                assert_eq!(HeaderWord::from_word(head.to_word()), Some(head));
                let plain = HeaderWord::from_word_unextended(head.to_word());
                assert_eq!(plain, (!extended).then_some(head));
            }
        }
        assert_eq!(HeaderWord::from_word(0), None);
        assert_eq!(HeaderWord::from_word(u64::MAX), None);
    }

    #[test]
    fn inconsistent_extension_words_are_rejected() {
        let word = |tag: u64, len: u64| tag | len << 32;
        // Two words: 8 bytes, 9 bytes.
        let sound = [48, word(1, 8), 7, word(9, 9), 8, 9, 0xaaaa];
        assert_eq!(extension_len(&sound, 56), Some(48));
        assert_eq!(extension_len(&sound, 48), Some(48));
        assert_eq!(extension_len(&sound, 47), None, "longer than the record");
        assert_eq!(extension_len(&sound[..5], 56), None, "longer than the copy");
        assert_eq!(extension_len(&[8], 8), Some(8), "without a word");
        for len in [0, 7, 9, 1032, 1 << 32, u64::MAX] {
            assert_eq!(extension_len(&[len; 200], 1600), None, "length {len}");
        }
        for len in [9, 17, u32::MAX.into()] {
            assert_eq!(extension_len(&[24, word(1, len), 7], 24), None, "a word of {len} bytes");
        }
    }

    #[test]
    fn chunk_refs_round_trip() {
        let chunk = ChunkRef { chunk: 7, generation: 1 << 40, len: 1 << 30 };
        assert_eq!(ChunkRef::from_bytes(&chunk.to_bytes()), Some(chunk));
        assert_eq!(ChunkRef::from_bytes(&[0xff; 24]), None);
        assert_eq!(ChunkRef::from_bytes(&[0; 23]), None);
    }
}
