//! The first 64 bytes of a frame.

use super::error::WireError;

/// Length of a header, in bytes.
pub const HEADER_LEN: usize = 64;
/// Longest frame, in bytes, with its header.
pub const MAX_FRAME_LEN: usize = 64 << 10;
/// First two bytes of a frame.
pub const MAGIC: u16 = 0x4E52;
/// Version of the protocol. A higher one has the same header.
pub const VERSION: u8 = 1;

/// Flag: a pure acknowledgement. Such a frame takes no number, and is not acknowledged.
pub const ACK_ONLY: u8 = 1;
/// Flag: acknowledge at once.
pub const ACK_AT_ONCE: u8 = 1 << 1;

/// The header of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Version of the sender's protocol; [`encode`](Self::encode) writes this link's version.
    pub version: u8,
    /// [`ACK_ONLY`], [`ACK_AT_ONCE`]; others belong to a later version.
    pub flags: u8,
    /// Length of the whole frame, in bytes.
    pub len: u32,
    /// Term of the sender.
    pub from_term: u64,
    /// Term of the receiver; 0 until the sender knows it.
    pub to_term: u64,
    /// Number of this frame in its stream.
    pub number: u64,
    /// Number of the next frame that the sender expects in the other direction.
    pub next: u64,
    /// When the sender handed the frame to the network, ns of its `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// `sent_ns` of the newest frame that the sender has received, or 0.
    pub echo_ns: u64,
    /// For how long the sender has had that frame, in ns.
    pub held_ns: u64,
}

impl Header {
    /// Writes the header to the first bytes of a frame.
    ///
    /// # Panics
    /// If `frame` is shorter than a header.
    pub fn encode(&self, frame: &mut [u8]) {
        frame[..2].copy_from_slice(&MAGIC.to_le_bytes());
        (frame[2], frame[3]) = (VERSION, self.flags);
        frame[4..8].copy_from_slice(&self.len.to_le_bytes());
        let words = [
            self.from_term,
            self.to_term,
            self.number,
            self.next,
            self.sent_ns,
            self.echo_ns,
            self.held_ns,
        ];
        for (place, word) in frame[8..HEADER_LEN].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The header of a frame, and its items.
    ///
    /// # Errors
    /// If the bytes are not a frame, or its length differs from the declared one.
    pub fn decode(frame: &[u8]) -> Result<(Header, &[u8]), WireError> {
        let Some((head, items)) = frame.split_first_chunk::<HEADER_LEN>() else {
            return Err(WireError::TooShort(frame.len()));
        };
        let magic = u16::from_le_bytes([head[0], head[1]]);
        if magic != MAGIC {
            return Err(WireError::BadMagic(magic));
        }
        if frame.len() > MAX_FRAME_LEN {
            return Err(WireError::TooLong(frame.len()));
        }
        let (words, _) = head.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        let len = (word(0) >> 32) as u32;
        if len as usize != frame.len() {
            return Err(WireError::LengthMismatch { declared: len, actual: frame.len() });
        }
        let header = Header {
            version: head[2],
            flags: head[3],
            len,
            from_term: word(1),
            to_term: word(2),
            number: word(3),
            next: word(4),
            sent_ns: word(5),
            echo_ns: word(6),
            held_ns: word(7),
        };
        Ok((header, items))
    }
}
