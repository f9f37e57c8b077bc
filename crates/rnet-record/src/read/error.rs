//! Problems of a file, and their offsets.

use std::fmt;
use std::io;

/// A problem at an offset of a file.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {problem}")]
pub struct ReadError {
    /// Offset of the affected record or of the chunk that contains it, in bytes from the start of the file.
    pub offset: u64,
    /// The problem.
    #[source]
    pub problem: Problem,
}

impl ReadError {
    /// A problem at an offset.
    pub fn new(offset: u64, problem: Problem) -> Self {
        Self { offset, problem }
    }
}

/// A problem of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file does not begin with the MCAP magic bytes.
    #[error("not an MCAP file: it does not begin with the MCAP magic bytes")]
    NotMcap,
    /// A recorder with a later format version wrote the file.
    #[error(
        "the recording has format version {found}, but this program reads up to version {known}; use a \
         newer rnet"
    )]
    Version {
        /// Version of the file.
        found: String,
        /// The highest version that this reader supports.
        known: u32,
    },
    /// The file ends within a record.
    #[error("the file ends within a {what} record: {there} of its {len} bytes exist")]
    Truncated {
        /// Kind of the truncated record.
        what: RecordName,
        /// Length of the record, in bytes.
        len: u64,
        /// Bytes of it in the file.
        there: u64,
    },
    /// The head of a chunk and the index contradict each other.
    #[error(
        "the record header here is {what} with {said} bytes, but the index lists a Chunk with {len}"
    )]
    HeadMismatch {
        /// The kind of record in the head.
        what: RecordName,
        /// Length in the head, in bytes.
        said: u64,
        /// Length in the index, in bytes.
        len: u64,
    },
    /// The head of a record is damaged; reading continues at the next record in the index.
    #[error("the record here cannot be read; reading continues at byte {next}, found in the index")]
    Skipped {
        /// Offset where reading continues.
        next: u64,
    },
    /// The file has no footer.
    #[error("the file ends without a footer: it is still being written, or its writer was killed")]
    MissingFooter,
    /// The file has no index, which MCAP allows.
    #[error("the file has no chunk index or no statistics")]
    NoIndex,
    /// A record is malformed.
    #[error("a {what} record cannot be read: {why}")]
    Record {
        /// Kind of the record.
        what: RecordName,
        /// The reason.
        why: String,
    },
    /// A record exceeds the length limit.
    #[error("a {what} record claims {len} bytes, more than the limit of {limit}")]
    TooLong {
        /// Kind of the record.
        what: RecordName,
        /// Its length, in bytes.
        len: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The compression of a chunk is unknown.
    #[error("a chunk is compressed with {name:?}; only \"zstd\", \"lz4\" and \"\" are supported")]
    Compression {
        /// Name of the compression.
        name: String,
    },
    /// A chunk cannot be decompressed.
    #[error("a chunk cannot be decompressed with {name}: {why}")]
    Decompress {
        /// Name of the compression.
        name: String,
        /// The reason.
        why: String,
    },
    /// A checksum does not match the data.
    #[error("the CRC of {what} is {found:08x}, but the file contains {saved:08x}")]
    Crc {
        /// The checked part of the file.
        what: &'static str,
        /// The checksum in the file.
        saved: u32,
        /// The checksum of the data.
        found: u32,
    },
    /// A message belongs to a channel without a description.
    #[error("a message belongs to channel {channel}, which is not described before it")]
    UnknownChannel {
        /// Id of the channel.
        channel: u16,
    },
    /// A channel uses a schema without a description.
    #[error("channel {topic} uses schema {schema}, which is not described before it")]
    UnknownSchema {
        /// Topic of the channel.
        topic: String,
        /// Id of the schema.
        schema: u16,
    },
    /// The same id has two different descriptions.
    #[error("{what} {id} is described twice with different content")]
    Conflict {
        /// `channel` or `schema`.
        what: &'static str,
        /// The id.
        id: u16,
    },
    /// The index, or the summary that contains it, contradicts the data.
    #[error("the index is wrong: {0}")]
    Index(String),
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// The name of a record kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordName(pub u8);

/// By opcode, starting at 1.
const NAMES: &str = "Header Footer Schema Channel Message Chunk MessageIndex ChunkIndex Attachment \
                     AttachmentIndex Statistics Metadata MetadataIndex SummaryOffset DataEnd";

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::from(self.0).checked_sub(1).and_then(|at| NAMES.split(' ').nth(at)) {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:02x}", self.0),
        }
    }
}
