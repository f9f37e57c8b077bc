//! Reads the bytes of a file. Each length is compared with the file before memory is allocated.
//!
//! The file is read, not mapped: it may be truncated while it is read, and a mapping would then kill the
//! process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use mcap::records::Record;

use super::error::{Problem, ReadError, RecordName};
use super::record;

/// Length of opcode and length, which precede each record.
pub const HEAD_LEN_BYTES: u64 = 9;

/// A file, with the length that it had when it was opened.
#[derive(Debug)]
pub struct Input {
    file: File,
    len: u64,
}

/// Kind and position of a record.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub opcode: u8,
    /// Offset of the opcode.
    pub offset: u64,
    /// Length without opcode and length field.
    pub body_len: u64,
}

impl Head {
    pub fn body(&self) -> u64 {
        self.offset + HEAD_LEN_BYTES
    }

    /// Offset after the record.
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

    /// Reads `len` bytes at `offset`.
    pub fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>, ReadError> {
        let there = self.len.saturating_sub(offset);
        if len > there {
            let why = format!("{len} bytes are expected here, but the file has {there}");
            return Err(ReadError::new(offset, Problem::Index(why)));
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(|error| ReadError::new(offset, error.into()))?;
        Ok(bytes)
    }

    /// The head of the record at `offset`, in a section that ends at `end`; `None` at its end.
    pub fn head(&self, offset: u64, end: u64) -> Result<Option<Head>, ReadError> {
        let end = end.min(self.len);
        if offset >= end {
            return Ok(None);
        }
        let there = end - offset;
        let bytes = self.read(offset, HEAD_LEN_BYTES.min(there))?;
        let head = head_of(&bytes, offset, there);
        head.map(Some).map_err(|problem| ReadError::new(offset, problem))
    }

    /// The body of a record.
    pub fn body(&self, head: &Head, limit: u64) -> Result<Vec<u8>, ReadError> {
        if head.body_len > limit {
            let problem = Problem::TooLong { what: head.name(), len: head.body_len, limit };
            return Err(ReadError::new(head.offset, problem));
        }
        self.read(head.body(), head.body_len)
    }

    /// Reads and parses a record other than a message.
    pub fn record(&self, head: &Head, limit: u64) -> Result<Record<'static>, ReadError> {
        let body = self.body(head, limit)?;
        record::parse(head.opcode, &body, head.offset).map(Record::into_owned)
    }
}

/// The head of the record at the start of `bytes` (at least one byte). `offset` is the record's position in
/// its section, and `there` bytes of the section remain.
pub fn head_of(bytes: &[u8], offset: u64, there: u64) -> Result<Head, Problem> {
    let (opcode, body_len) = match there >= HEAD_LEN_BYTES {
        true => split_head(bytes),
        false => (bytes[0], 0),
    };
    let head = Head { opcode, offset, body_len };
    let len = body_len.saturating_add(HEAD_LEN_BYTES);
    match len <= there {
        true => Ok(head),
        false => Err(Problem::Truncated { what: head.name(), len, there }),
    }
}

/// The heads of the records in `bytes`, up to a truncated one. `start` is the offset of `bytes`.
pub fn heads(bytes: &[u8], start: u64) -> impl Iterator<Item = Result<Head, ReadError>> {
    let mut at = Some(0);
    std::iter::from_fn(move || {
        let rest = bytes.get(at?..).filter(|rest| !rest.is_empty())?;
        let offset = start + at? as u64;
        let head = head_of(rest, offset, rest.len() as u64);
        at = head.as_ref().ok().map(|head| (head.end() - start) as usize);
        Some(head.map_err(|problem| ReadError::new(offset, problem)))
    })
}

/// Opcode and length of the record at the start of these bytes, which are at least nine.
pub fn split_head(bytes: &[u8]) -> (u8, u64) {
    let mut len = [0; 8];
    len.copy_from_slice(&bytes[1..9]);
    (bytes[0], u64::from_le_bytes(len))
}
