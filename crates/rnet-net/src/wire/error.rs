//! What is wrong with bytes that came from another link.

use super::header::{HEADER_LEN, MAX_FRAME_LEN, VERSION};

/// Why a frame, or an item of one, was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Less than a header.
    #[error("a frame of {0} bytes is shorter than its header of {HEADER_LEN}")]
    TooShort(usize),
    /// No frame at all.
    #[error("a frame starts with {0:#06x}: it is not a frame of a robot-net link")]
    BadMagic(u16),
    /// The frame says another length than it has.
    #[error("a frame of {actual} bytes declares {declared}")]
    LengthMismatch {
        /// What its header says.
        declared: u32,
        /// What it has.
        actual: usize,
    },
    /// Longer than any frame.
    #[error("a frame of {0} bytes exceeds the limit of {MAX_FRAME_LEN}")]
    TooLong(usize),
    /// A kind that must be understood and is not.
    #[error(
        "an item has the mandatory kind {0:#04x}, which version {VERSION} of the link protocol does not support: install \
         the same release of robot-net on both hosts"
    )]
    UnknownKind(u8),
    /// An item that ends before its fields do, or whose length exceeds its frame.
    #[error("an item of kind {0:#04x} is truncated")]
    Truncated(u8),
    /// A number that cannot be what it stands for.
    #[error("an item of kind {kind:#04x} has an invalid {field}")]
    InvalidField {
        /// Kind of the item.
        kind: u8,
        /// Name of the field.
        field: &'static str,
    },
    /// More than the receiver takes.
    #[error("{len} bytes are announced; at most {limit} are accepted")]
    LimitExceeded {
        /// What was announced.
        len: u64,
        /// What is taken.
        limit: usize,
    },
    /// A part that does not follow the one before it.
    #[error(
        "a part of {len} bytes at {offset} of {total} does not follow the {have} of {known} received"
    )]
    OutOfOrder {
        /// Length of the part.
        len: usize,
        /// Where it claims to belong.
        offset: u64,
        /// Length of the whole, by this part.
        total: u64,
        /// How much is there.
        have: usize,
        /// Length of the whole, by the parts before; that of this one where it is the first.
        known: u64,
    },
    /// A header that no peer that follows the protocol sends.
    #[error("it acknowledges data that was never sent, or was sent before its receiver is known")]
    InvalidHeader,
    /// More was said than is looked at in time.
    #[error("too many requests at once")]
    Backlog,
    /// Compressed bytes that are not.
    #[error("{0} compressed bytes cannot be decompressed to the length that they declare")]
    BadCompression(usize),
}
