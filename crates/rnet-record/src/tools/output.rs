//! Writes messages that were read from other files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::records::{MessageHeader, Metadata};
use mcap::{Compression, McapError, WriteOptions, Writer};
use rnet_format::Failure;

use super::new_file::NewFile;
use crate::read::{Channel, Message};

/// Size of a chunk, uncompressed.
const CHUNK_LEN_BYTES: u64 = 1 << 20;

/// Why a file could not be created from others.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The new file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A limit of MCAP is exceeded.
    #[error("cannot write {}: {error}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// The error of the MCAP writer.
        error: McapError,
    },
    /// A value has no such form, or was selected wrongly.
    #[error(transparent)]
    Value(#[from] Failure),
    /// The operation was interrupted. The new file does not exist.
    #[error("interrupted")]
    Interrupted,
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Failure {
        match error {
            ToolError::Interrupted => Failure::Interrupted,
            ToolError::Value(error) => error,
            error => Failure::Failed(error.to_string()),
        }
    }
}

/// A new file, which appears only when it is finished.
pub struct OutputFile {
    path: PathBuf,
    writer: Option<Writer<BufWriter<File>>>,
    /// Ids in this file, by the channels of the files that were read.
    ids: HashMap<*const Channel, (u16, Arc<Channel>)>,
    new: NewFile,
}

impl OutputFile {
    /// Creates a file. `compression` is its MCAP name; chunks with an unknown compression are not compressed.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(
        path: &Path,
        profile: &str,
        library: &str,
        compression: &str,
    ) -> Result<Self, ToolError> {
        let failed = |error| ToolError::Write { path: path.to_owned(), error };
        let new = NewFile::create(path).map_err(failed)?;
        let file = new.file().map_err(failed)?;
        let compression = match compression {
            "zstd" => Some(Compression::Zstd),
            "lz4" => Some(Compression::Lz4),
            _ => None,
        };
        let options = WriteOptions::new()
            .profile(profile)
            .library(library)
            .chunk_size(Some(CHUNK_LEN_BYTES))
            .compression(compression);
        let path = path.to_owned();
        let mut output = Self { path, writer: None, ids: HashMap::new(), new };
        let writer = options.create(BufWriter::new(file));
        output.writer = Some(writer.map_err(|error| output.failed(error))?);
        Ok(output)
    }

    fn failed(&self, error: McapError) -> ToolError {
        let path = self.path.clone();
        match error {
            McapError::Io(error) => ToolError::Write { path, error },
            error => ToolError::Format { path, error },
        }
    }

    /// Calls a function with the writer.
    fn with<T>(
        &mut self,
        run: impl FnOnce(&mut Writer<BufWriter<File>>) -> Result<T, McapError>,
    ) -> Result<T, ToolError> {
        let writer = self.writer.as_mut().expect("the writer exists until finish");
        run(writer).map_err(|error| self.failed(error))
    }

    /// Writes a metadata record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn metadata(&mut self, metadata: &Metadata) -> Result<(), ToolError> {
        self.with(|writer| writer.write_metadata(metadata))
    }

    /// Writes an attachment.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn attachment(&mut self, attachment: &mcap::Attachment<'_>) -> Result<(), ToolError> {
        self.with(|writer| writer.attach(attachment))
    }

    /// Writes a message on its channel. The first message of a channel sets its topic: `topic`, or its own.
    ///
    /// # Errors
    /// The file cannot be written, or there are more channels than a file may have.
    pub fn message(&mut self, message: &Message, topic: Option<&str>) -> Result<(), ToolError> {
        let channel = &message.channel;
        let id = match self.ids.get(&Arc::as_ptr(channel)) {
            Some((id, _)) => *id,
            None => {
                let id = self.with(|writer| add(writer, channel, topic))?;
                // The channel is kept, so that its address is not reused.
                self.ids.insert(Arc::as_ptr(channel), (id, channel.clone()));
                id
            }
        };
        let header = MessageHeader { channel_id: id, ..*message.header() };
        self.with(|writer| writer.write_to_known_channel(&header, message.data()))
    }

    /// Writes index and end, and returns the length of the file in bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<u64, ToolError> {
        self.with(|writer| writer.finish().map(drop))?;
        let writer = self.writer.take().expect("the writer exists until finish");
        let path = self.path.clone();
        let failed = |error| ToolError::Write { path: path.clone(), error };
        let file = writer.into_inner().into_inner().map_err(|error| failed(error.into_error()))?;
        let len = file.metadata().map_err(failed)?.len();
        self.new.commit().map_err(failed)?;
        Ok(len)
    }
}

fn add(
    writer: &mut Writer<BufWriter<File>>,
    channel: &Channel,
    topic: Option<&str>,
) -> Result<u16, McapError> {
    let schema = match &channel.schema {
        Some(schema) => writer.add_schema(&schema.name, &schema.encoding, &schema.data)?,
        None => 0,
    };
    let topic = topic.unwrap_or(&channel.topic);
    writer.add_channel(schema, topic, &channel.message_encoding, &channel.metadata)
}
