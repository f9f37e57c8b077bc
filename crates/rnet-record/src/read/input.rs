//! The bytes of a file. What is asked for is compared with its length before it is allocated.
//!
//! The file is read, not mapped: it may be cut while it is read, and a mapping would then end the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::error::{Problem, ReadError, RecordName};

/// Opcode and length, before each record.
pub const HEAD_LEN_BYTES: u64 = 9;

/// A file, as long as it was when it was opened.
#[derive(Debug)]
pub struct Input {
    file: File,
    len: u64,
}

/// Kind and place of a record.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub opcode: u8,
    /// Of the opcode.
    pub offset: u64,
    /// Without opcode and length.
    pub body_len: u64,
}

impl Head {
    pub fn body(&self) -> u64 {
        self.offset + HEAD_LEN_BYTES
    }

    /// Offset of what comes behind it.
    pub fn end(&self) -> u64 {
        self.body() + self.body_len
    }

    pub fn name(&self) -> RecordName {
        RecordName(self.opcode)
    }
}

impl Input {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Ok(Self { file, len: metadata.len() })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// So many bytes from there.
    pub fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>, ReadError> {
        let there = self.len.saturating_sub(offset);
        if len > there {
            let why = format!("{len} bytes are wanted here, and the file has {there}");
            return Err(ReadError::new(offset, Problem::Index(why)));
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(|error| ReadError::new(offset, error.into()))?;
        Ok(bytes)
    }

    /// The record that begins there, in a section that ends at `end`; `None` at its end.
    pub fn head(&self, offset: u64, end: u64) -> Result<Option<Head>, ReadError> {
        let end = end.min(self.len);
        if offset >= end {
            return Ok(None);
        }
        let there = end - offset;
        if there < HEAD_LEN_BYTES {
            let what = RecordName(self.read(offset, 1)?[0]);
            return Err(ReadError::new(offset, Problem::Cut { what, len: HEAD_LEN_BYTES, there }));
        }
        let bytes = self.read(offset, HEAD_LEN_BYTES)?;
        let (opcode, len) = split_head(&bytes);
        let head = Head { opcode, offset, body_len: len };
        match len <= there - HEAD_LEN_BYTES {
            true => Ok(Some(head)),
            false => {
                let len = len.saturating_add(HEAD_LEN_BYTES);
                Err(ReadError::new(offset, Problem::Cut { what: head.name(), len, there }))
            }
        }
    }

    /// What a record holds.
    pub fn body(&self, head: &Head, limit: u64) -> Result<Vec<u8>, ReadError> {
        if head.body_len > limit {
            let problem = Problem::TooLong { what: head.name(), len: head.body_len, limit };
            return Err(ReadError::new(head.offset, problem));
        }
        self.read(head.body(), head.body_len)
    }
}

/// Opcode and length of the record that these bytes begin with, of which there are nine at least.
pub fn split_head(bytes: &[u8]) -> (u8, u64) {
    let mut len = [0; 8];
    len.copy_from_slice(&bytes[1..9]);
    (bytes[0], u64::from_le_bytes(len))
}
