//! How one message stands in the log.
//!
//! ```text
//!   0        4      7    8        12      16
//!   | seq_lo | len (24) kind (8)  | time_ns (64)   | payload … | zeros to a multiple of 8
//! ```
//! Word 0 holds the low half of the sequence number and, in its high half, the payload length in
//! the low 24 bits and the kind in the high 8. Word 1 is the send time. A record may begin in one
//! block of the log and go on in the next.

/// Bytes in front of each payload.
pub const HEADER_LEN_BYTES: u64 = 16;
/// Bytes of the payload of a [`Kind::Chunk`] record.
pub const CHUNK_REF_LEN_BYTES: usize = 24;
/// Longest payload that the 24-bit length field can name.
pub const MAX_RECORD_LEN_BYTES: usize = (1 << 24) - 1;

/// What a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The payload itself.
    Inline,
    /// A [`ChunkRef`] to the payload.
    Chunk,
}

impl Kind {
    fn tag(self) -> u64 {
        match self {
            Kind::Inline => 1,
            Kind::Chunk => 2,
        }
    }

    fn from_tag(tag: u64) -> Option<Kind> {
        match tag {
            1 => Some(Kind::Inline),
            2 => Some(Kind::Chunk),
            _ => None,
        }
    }
}

/// A record's first word, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Low half of the sequence number.
    pub seq_lo: u32,
    /// Payload bytes.
    pub len: u32,
    /// What the record carries.
    pub kind: Kind,
}

impl Head {
    /// The word that stands in memory.
    #[inline]
    pub fn to_word(self) -> u64 {
        u64::from(self.seq_lo) | u64::from(self.len) << 32 | self.kind.tag() << 56
    }

    /// Reads a word that nobody vouches for.
    #[inline]
    pub fn from_word(word: u64) -> Option<Head> {
        Some(Head {
            seq_lo: word as u32,
            len: (word >> 32) as u32 & 0x00ff_ffff,
            kind: Kind::from_tag(word >> 56)?,
        })
    }

    /// As [`Head::from_word`], of a record that must carry this.
    #[inline]
    pub fn from_word_of(kind: Kind, word: u64) -> Option<Head> {
        (word >> 56 == kind.tag()).then_some(Head {
            seq_lo: word as u32,
            len: (word >> 32) as u32 & 0x00ff_ffff,
            kind,
        })
    }

    /// Bytes that the record takes in the ring; a multiple of 8.
    #[inline]
    pub fn span(self) -> u64 {
        span_of(self.len as usize)
    }
}

/// Bytes that a record with `len` bytes of payload takes in the ring.
#[inline]
pub fn span_of(len: usize) -> u64 {
    HEADER_LEN_BYTES + (len as u64).next_multiple_of(8)
}

/// One message as a reader finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it carries.
    pub kind: Kind,
    /// Sequence number, counting the publisher's messages from 0.
    pub seq: u64,
    /// When it was sent, CLOCK_MONOTONIC in ns.
    pub time_ns: u64,
    /// Where its payload begins in the reader's buffer, in bytes; a multiple of 8.
    pub offset: usize,
    /// Payload bytes.
    pub len: usize,
}

/// Where a large message stands: the payload of a [`Kind::Chunk`] record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// Number of the chunk in its publisher's pool; never used twice.
    pub chunk: u32,
    /// Which use of the chunk the message is.
    pub generation: u64,
    /// Payload bytes.
    pub len: u64,
}

impl ChunkRef {
    /// The bytes that stand in the record.
    pub fn to_bytes(self) -> [u8; CHUNK_REF_LEN_BYTES] {
        let mut bytes = [0; CHUNK_REF_LEN_BYTES];
        bytes[..8].copy_from_slice(&u64::from(self.chunk).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    /// Reads bytes that nobody vouches for; `None` if they cannot be a chunk reference.
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
    fn twenty_two_bytes_take_forty() {
        assert_eq!(span_of(22), 40);
        assert_eq!(span_of(0), 16);
    }

    #[test]
    fn words_round_trip() {
        for kind in [Kind::Inline, Kind::Chunk] {
            let head = Head { seq_lo: u32::MAX, len: 0xff_ffff, kind };
            assert_eq!(Head::from_word(head.to_word()), Some(head));
        }
        assert_eq!(Head::from_word(0), None);
        assert_eq!(Head::from_word(u64::MAX), None);
    }

    #[test]
    fn chunk_refs_round_trip() {
        let chunk = ChunkRef { chunk: 7, generation: 1 << 40, len: 1 << 30 };
        assert_eq!(ChunkRef::from_bytes(&chunk.to_bytes()), Some(chunk));
        assert_eq!(ChunkRef::from_bytes(&[0xff; 24]), None);
        assert_eq!(ChunkRef::from_bytes(&[0; 23]), None);
    }
}
