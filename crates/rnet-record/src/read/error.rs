//! What is wrong with a file, and where.

use std::fmt;
use std::io;

/// What is wrong at a place of a file.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {problem}")]
pub struct ReadError {
    /// Where, in bytes from the start of the file: the record in question, or the chunk that holds it.
    pub offset: u64,
    /// What.
    #[source]
    pub problem: Problem,
}

impl ReadError {
    /// This problem, there.
    pub fn new(offset: u64, problem: Problem) -> Self {
        Self { offset, problem }
    }
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It does not begin as MCAP files do.
    #[error("not an MCAP file: it does not begin with the MCAP magic bytes")]
    NotMcap,
    /// It was written by a recorder with a later format.
    #[error(
        "the recording has format version {found}, but this program reads up to version {known}; use a \
         newer rnet"
    )]
    Version {
        /// That of the file.
        found: String,
        /// The highest that is read here.
        known: u32,
    },
    /// It ends inside of a record.
    #[error("the file ends within a {what} record: {there} of its {len} bytes exist")]
    Truncated {
        /// What is cut.
        what: RecordName,
        /// Length of the record, in bytes.
        len: u64,
        /// Bytes of it that are there.
        there: u64,
    },
    /// The head of a chunk and the index say different things.
    #[error(
        "the record header here says {what} with {said} bytes, but the index says Chunk with {len}"
    )]
    HeadMismatch {
        /// The kind of record that the head says.
        what: RecordName,
        /// Length by the head, in bytes.
        said: u64,
        /// Length by the index, in bytes.
        len: u64,
    },
    /// The head of a record is damaged, and the index says where the next one begins.
    #[error("the record here cannot be read; reading continues at byte {next}, found in the index")]
    Skipped {
        /// Where reading continues.
        next: u64,
    },
    /// It ends without the records that end a file.
    #[error("the file ends without a footer: it is still being written, or its writer was killed")]
    MissingFooter,
    /// It has no index, which MCAP allows.
    #[error("the file has no chunk index or no statistics")]
    NoIndex,
    /// A record means nothing.
    #[error("a {what} record cannot be read: {why}")]
    Record {
        /// Which kind.
        what: RecordName,
        /// Why not.
        why: String,
    },
    /// Something is longer than is read.
    #[error("a {what} record claims {len} bytes, more than the limit of {limit}")]
    TooLong {
        /// Which kind.
        what: RecordName,
        /// Its length, in bytes.
        len: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A chunk is compressed in a way that is not known here.
    #[error("a chunk is compressed with {name:?}; only \"zstd\", \"lz4\" and \"\" are supported")]
    Compression {
        /// The name that it has.
        name: String,
    },
    /// A chunk cannot be decompressed.
    #[error("a chunk cannot be decompressed with {name}: {why}")]
    Decompress {
        /// How it is compressed.
        name: String,
        /// Why not.
        why: String,
    },
    /// A checksum is not that of the data.
    #[error("the CRC of {what} is {found:08x}, but the file says {saved:08x}")]
    Crc {
        /// Of what.
        what: &'static str,
        /// What is written.
        saved: u32,
        /// What it is.
        found: u32,
    },
    /// A message belongs to a channel that nothing describes.
    #[error("a message belongs to channel {channel}, which is not described before it")]
    UnknownChannel {
        /// Its id.
        channel: u16,
    },
    /// A channel names a schema that nothing describes.
    #[error("channel {topic} uses schema {schema}, which is not described before it")]
    UnknownSchema {
        /// Topic of the channel.
        topic: String,
        /// Id of the schema.
        schema: u16,
    },
    /// The same id is described twice, differently.
    #[error("{what} {id} is described twice with different content")]
    Conflict {
        /// `channel` or `schema`.
        what: &'static str,
        /// Its id.
        id: u16,
    },
    /// The index, or the summary that it stands in, says what is not so.
    #[error("the index is wrong: {0}")]
    Index(String),
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// The name of a record's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordName(pub u8);

/// By opcode, from 1 on.
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
