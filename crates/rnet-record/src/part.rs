//! One MCAP file that is being written.
//!
//! Chunks are made in memory and go to the file as a whole ([`sink`]), so the file ends with a whole chunk whatever
//! happens to the writer. Room on the disk is reserved ahead: what is taken in has its place there, and so has the end
//! of the file with its index. A full disk is therefore met before a message is taken in ([`Part::reserve_space`]), and the file
//! can be ended as any other.

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

/// A chunk ends with the message that passes this length, uncompressed.
const CHUNK_LEN_BYTES: u64 = 1 << 20;
/// A chunk goes to the file when it is this old.
pub const CHUNK_AGE: Duration = Duration::from_millis(250);
/// What a chunk may grow by, compressed, in bytes: the header, and what a compressor adds to what it cannot compress.
const CHUNK_OVERHEAD_BYTES: u64 = 64 << 10;
/// Bytes of a message record and its index entry beside the data.
const MESSAGE_OVERHEAD_BYTES: u64 = 64;
/// Bytes of a chunk's entry in the index, without those for each channel.
const CHUNK_INDEX_BYTES: u64 = 128;
/// Bytes of a channel in an entry of the index of a chunk, and in the indexes of messages.
const CHANNEL_INDEX_BYTES: u64 = 32;
/// Reserved for statistics, offsets, footer and the records at the end, without those for each channel.
const END_BYTES: u64 = 64 << 10;
/// Reserved at the end for each channel, beside the copy of its record: losses and statistics.
const CHANNEL_END_BYTES: u64 = 1 << 10;

/// How the chunks of a recording are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkCompression {
    /// Small files.
    #[default]
    Zstd,
    /// Less of the processor than zstd.
    Lz4,
    /// As it is: for data that cannot be compressed.
    None,
}

/// A file that messages can be added to.
pub struct Part {
    path: PathBuf,
    sink: Sink,
    writer: Writer<Sink>,
    /// Bytes that were added to the chunk that is open, uncompressed, and since when it is.
    chunk: Option<(u64, Instant)>,
    /// An upper bound of what the end of the file takes.
    end_len: u64,
    channels: u64,
}

/// What others did with a file while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It has no name any more: what was written is gone with the end of the recorder.
    Removed,
    /// It is no longer where it was begun.
    Moved,
}

/// A file that is whole.
#[derive(Debug)]
pub struct FinishedPart {
    /// Where it is.
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
            // Chunks end when this file says so.
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
                // It is ours, and empty; that there is no room is told by the error.
                let _ = std::fs::remove_file(&part.path);
                Err(error)
            }
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file so far, with those that are on their way there.
    pub fn len_bytes(&self) -> u64 {
        self.sink.written() + self.chunk.map_or(0, |(len, _)| len)
    }

    /// A second handle on the file, for whoever sees to it that the disk has it.
    pub fn file(&self) -> Result<File> {
        self.sink.file().map_err(|e| RecordError::file("open", &self.path, e))
    }

    /// Whether the file is no longer where it was begun. If the system does not say so, it is there.
    pub fn file_change(&self) -> Option<FileChange> {
        let open = self.sink.file().and_then(|file| file.metadata()).ok()?;
        match std::fs::metadata(&self.path) {
            Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => None,
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => None,
            _ if open.nlink() == 0 => Some(FileChange::Removed),
            _ => Some(FileChange::Moved),
        }
    }

    /// Sees to it that there is room for `len` bytes more and for the end of the file.
    ///
    /// # Errors
    /// `Full`: the part is as before, and can be ended in the room that it has. `File`.
    pub fn reserve_space(&mut self, len: u64) -> Result<()> {
        let chunk = self.chunk.map_or(0, |(len, _)| len) + len + MESSAGE_OVERHEAD_BYTES;
        let indexes = (self.channels + 1) * CHANNEL_INDEX_BYTES;
        let chunk = chunk + chunk / 64 + CHUNK_OVERHEAD_BYTES + 2 * indexes + CHUNK_INDEX_BYTES;
        self.sink.reserve(chunk + self.end_len)
    }

    /// Makes a channel, with the schema of its messages: name, encoding, data.
    ///
    /// # Errors
    /// `Full`; `Format` if there are 65,535 already.
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
        // Once in the chunk, and once more at the end.
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

    /// Adds a message, for which there is room: see [`Part::reserve_space`].
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

    /// Adds a record of metadata; what was added before goes to the file.
    ///
    /// # Errors
    /// As [`Part::flush`].
    pub fn add_metadata(&mut self, name: &str, metadata: BTreeMap<String, String>) -> Result<()> {
        let record = Metadata { name: name.to_owned(), metadata };
        self.writer.write_metadata(&record).map_err(|e| write_error(&self.path, e))?;
        self.flush()
    }

    /// Whether something was added that is not in the file yet.
    pub fn has_open_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    /// How long from now the open chunk goes to the file.
    pub fn time_until_flush(&self) -> Option<Duration> {
        self.chunk.map(|(_, since)| CHUNK_AGE.saturating_sub(since.elapsed()))
    }

    /// Ends the open chunk; all that was added before goes to the file.
    ///
    /// # Errors
    /// `Full` where the file system keeps no reserve, `File`. The file is then cut behind its last whole chunk, and
    /// the part takes nothing more.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|e| write_error(&self.path, e))?;
        if self.chunk.take().is_some() {
            self.end_len += CHUNK_INDEX_BYTES + self.channels * CHANNEL_INDEX_BYTES;
        }
        self.sink.commit()
    }

    /// Ends the file: summary, index, footer. The reserve is given back.
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
