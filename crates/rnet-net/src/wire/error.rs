//! Errors in bytes from another link.

use super::header::{HEADER_LEN, MAX_FRAME_LEN, VERSION};

/// Why a frame or one of its items was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The frame is shorter than a header.
    #[error("a frame of {0} bytes is shorter than its header of {HEADER_LEN}")]
    TooShort(usize),
    /// The bytes are not a frame.
    #[error("a frame starts with {0:#06x}: it is not a frame of a robot-net link")]
    BadMagic(u16),
    /// The declared length of the frame differs from its length.
    #[error("a frame of {actual} bytes declares {declared}")]
    LengthMismatch {
        /// The length in its header.
        declared: u32,
        /// Its actual length.
        actual: usize,
    },
    /// The frame is too long.
    #[error("a frame of {0} bytes exceeds the limit of {MAX_FRAME_LEN}")]
    TooLong(usize),
    /// An item has a mandatory kind that is unknown.
    #[error(
        "an item has the mandatory kind {0:#04x}, which version {VERSION} of the link protocol does not support: install \
         the same release of robot-net on both hosts"
    )]
    UnknownKind(u8),
    /// An item ends before its fields do, or its length exceeds its frame.
    #[error("an item of kind {0:#04x} is truncated")]
    Truncated(u8),
    /// A field has an impossible value.
    #[error("an item of kind {kind:#04x} has an invalid {field}")]
    InvalidField {
        /// Kind of the item.
        kind: u8,
        /// Name of the field.
        field: &'static str,
    },
    /// The announced length exceeds the receiver's limit.
    #[error("{len} bytes are announced; at most {limit} are accepted")]
    LimitExceeded {
        /// The announced length.
        len: u64,
        /// The limit.
        limit: usize,
    },
    /// A part does not follow the previous one.
    #[error(
        "a part of {len} bytes at {offset} of {total} does not follow the {have} of {known} received"
    )]
    OutOfOrder {
        /// Length of the part.
        len: usize,
        /// Its declared offset.
        offset: u64,
        /// Length of the whole, by this part.
        total: u64,
        /// How many bytes were received.
        have: usize,
        /// Length of the whole, by the earlier parts; that of this part if it is the first.
        known: u64,
    },
    /// The header violates the protocol.
    #[error("it acknowledges data that was never sent, or was sent before its receiver is known")]
    InvalidHeader,
    /// More requests arrived than can be handled in time.
    #[error("too many requests at once")]
    Backlog,
    /// The bytes cannot be decompressed.
    #[error("{0} compressed bytes cannot be decompressed to the length that they declare")]
    BadCompression(usize),
}
