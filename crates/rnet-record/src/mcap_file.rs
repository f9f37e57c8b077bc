//! An MCAP file being written.
//!
//! Chunks are built in memory and written as a whole ([`sink`]), so the file ends with a complete chunk
//! whatever happens to the writer. Disk space is reserved ahead, for every accepted message and for the end
//! of the file with its index. So a full disk is detected before a message is accepted
//! ([`Part::reserve_space`]), and the file can still be finished.

mod sink;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcap::records::{MessageHeader, Metadata};
use mcap::{Compression, WriteOptions, Writer};

use crate::error::{RecordError, Result};
use crate::names::LIBRARY;
use sink::Sink;

/// A chunk ends with the message that exceeds this length, uncompressed.
const CHUNK_LEN_BYTES: u64 = 1 << 20;
/// Maximum age of a chunk before it is written.
pub const CHUNK_AGE: Duration = Duration::from_millis(250);
/// Maximum growth of a chunk by compression, in bytes: the header, and the overhead for incompressible data.
const CHUNK_OVERHEAD_BYTES: u64 = 64 << 10;
/// Bytes of a message record and its index entry, without the data.
const MESSAGE_OVERHEAD_BYTES: u64 = 64;
/// Bytes of a chunk's index entry, without those for each channel.
const CHUNK_INDEX_BYTES: u64 = 128;
/// Bytes of a channel in a chunk's index entry and in the message indexes.
const CHANNEL_INDEX_BYTES: u64 = 32;
/// Bytes reserved for statistics, offsets, footer and the records at the end, without those for each channel.
const END_BYTES: u64 = 64 << 10;
/// Bytes reserved at the end for each channel, in addition to the copy of its record: losses and statistics.
const CHANNEL_END_BYTES: u64 = 1 << 10;

/// Compression of the chunks of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkCompression {
    /// Small files.
    #[default]
    Zstd,
    /// Less CPU time than zstd.
    Lz4,
    /// Uncompressed: for incompressible data.
    None,
}

/// A file to which messages can be added.
pub struct Part {
    path: PathBuf,
    sink: Sink,
    writer: Writer<Sink>,
    /// Uncompressed bytes of the open chunk, and when it was opened.
    chunk: Option<(u64, Instant)>,
    /// Upper bound for the length of the end of the file.
    end_len: u64,
    channels: u64,
}

/// How another process changed a file while it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file was deleted: its data is lost when the recorder exits.
    Removed,
    /// The file was moved or renamed.
    Moved,
}

/// A completed file.
#[derive(Debug)]
pub struct FinishedPart {
    /// Path of the file.
    pub path: PathBuf,
    /// Its length, in bytes.
    pub len_bytes: u64,
}

impl Part {
    /// Creates the file.
    ///
    /// # Errors
    /// `Exists`, `Full`, `File`.
    pub fn create(path: &Path, compress: ChunkCompression, profile: &str) -> Result<Part> {
        let sink = Sink::create(path)?;
        let options = WriteOptions::new()
            .profile(profile)
            .library(LIBRARY)
            // This type decides when chunks end.
            .chunk_size(None)
            .compression_threads(0)
            .compression_level(1)
            .compression(match compress {
                ChunkCompression::Zstd => Some(Compression::Zstd),
                ChunkCompression::Lz4 => Some(Compression::Lz4),
                ChunkCompression::None => None,
            });
        let writer = options.create(sink.clone()).map_err(|e| write_error(path, e))?;
        let (path, end_len) = (path.to_owned(), END_BYTES);
        let mut part = Part { path, sink, writer, chunk: None, end_len, channels: 0 };
        match part.reserve_space(0) {
            Ok(()) => Ok(part),
            Err(error) => {
                // The file is new and empty; the error already reports a full disk.
                let _ = std::fs::remove_file(&part.path);
                Err(error)
            }
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file so far, including those not yet written.
    pub fn len_bytes(&self) -> u64 {
        self.sink.written() + self.chunk.map_or(0, |(len, _)| len)
    }

    /// A second handle on the file, for `fsync`.
    pub fn file(&self) -> Result<File> {
        self.sink.file().map_err(|e| RecordError::file("open", &self.path, e))
    }

    /// Whether the file was deleted or moved. If the system cannot tell, it is unchanged.
    pub fn file_change(&self) -> Option<FileChange> {
        let open = self.sink.file().and_then(|file| file.metadata()).ok()?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => None,
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => None,
            _ if open.nlink() == 0 => Some(FileChange::Removed),
            _ => Some(FileChange::Moved),
        }
    }

    /// Reserves space for `len` more bytes and for the end of the file.
    ///
    /// # Errors
    /// `Full`: the part is unchanged, and can be finished in its reserved space. `File`.
    pub fn reserve_space(&mut self, len: u64) -> Result<()> {
        let chunk = self.chunk.map_or(0, |(len, _)| len) + len + MESSAGE_OVERHEAD_BYTES;
        let indexes = (self.channels + 1) * CHANNEL_INDEX_BYTES;
        let chunk = chunk + chunk / 64 + CHUNK_OVERHEAD_BYTES + 2 * indexes + CHUNK_INDEX_BYTES;
        self.sink.reserve(chunk + self.end_len)
    }

    /// Adds a channel, with the schema of its messages: name, encoding, data.
    ///
    /// # Errors
    /// `Full`; `Format` if the file already has 65,535 channels.
    pub fn add_channel(
        &mut self,
        topic: &str,
        encoding: &str,
        schema: Option<(&str, &str, &[u8])>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<u16> {
        let said: usize = metadata.iter().map(|(key, value)| key.len() + value.len() + 16).sum();
        let schema_len = schema.map_or(0, |(name, _, data)| name.len() + data.len());
        let len = (said + schema_len + 2 * topic.len()) as u64 + CHANNEL_END_BYTES;
        // The record is written in the chunk, and again at the end.
        self.reserve_space(2 * len)?;
        let schema = match schema {
            None => 0,
            Some((name, encoding, data)) => self
                .writer
                .add_schema(name, encoding, data)
                .map_err(|e| write_error(&self.path, e))?,
        };
        let id = self.writer.add_channel(schema, topic, encoding, metadata);
        let id = id.map_err(|e| write_error(&self.path, e))?;
        self.end_len += len;
        self.channels += 1;
        self.grow_chunk(len);
        Ok(id)
    }

    /// Adds a message, whose space was reserved with [`Part::reserve_space`].
    ///
    /// # Errors
    /// As [`Part::flush`].
    pub fn add(&mut self, header: &MessageHeader, data: &[u8]) -> Result<()> {
        self.writer.write_to_known_channel(header, data).map_err(|e| write_error(&self.path, e))?;
        self.grow_chunk(data.len() as u64 + MESSAGE_OVERHEAD_BYTES);
        if self.chunk.is_some_and(|(len, _)| len >= CHUNK_LEN_BYTES) {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn grow_chunk(&mut self, len: u64) {
        self.chunk.get_or_insert_with(|| (0, Instant::now())).0 += len;
    }

    /// Adds a metadata record; writes the open chunk first.
    ///
    /// # Errors
    /// As [`Part::flush`].
    pub fn add_metadata(&mut self, name: &str, metadata: BTreeMap<String, String>) -> Result<()> {
        let record = Metadata { name: name.to_owned(), metadata };
        self.writer.write_metadata(&record).map_err(|e| write_error(&self.path, e))?;
        self.flush()
    }

    /// Whether added messages are not yet written to the file.
    pub fn has_open_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    /// Time until the open chunk is due to be written.
    pub fn time_until_flush(&self) -> Option<Duration> {
        self.chunk.map(|(_, since)| CHUNK_AGE.saturating_sub(since.elapsed()))
    }

    /// Ends the open chunk and writes it to the file.
    ///
    /// # Errors
    /// `Full` if the file system does not support reservation, `File`. The file is then truncated after its
    /// last complete chunk, and the part accepts nothing more.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|e| write_error(&self.path, e))?;
        if self.chunk.take().is_some() {
            self.end_len += CHUNK_INDEX_BYTES + self.channels * CHANNEL_INDEX_BYTES;
        }
        self.sink.commit()
    }

    /// Finishes the file: summary, index, footer. Releases the reserved space.
    ///
    /// # Errors
    /// As [`Part::flush`].
    pub fn end(mut self) -> Result<FinishedPart> {
        self.writer.finish().map_err(|e| write_error(&self.path, e))?;
        self.sink.commit()?;
        let file = self.file()?;
        let len_bytes = self.sink.written();
        file.set_len(len_bytes).map_err(|e| RecordError::file("cut", &self.path, e))?;
        Ok(FinishedPart { path: self.path, len_bytes })
    }
}

fn write_error(path: &Path, error: mcap::McapError) -> RecordError {
    let (path, why) = (path.to_owned(), error.to_string());
    match error {
        mcap::McapError::Io(source) => RecordError::file("write", &path, source),
        _ => RecordError::Format { path, why },
    }
}
