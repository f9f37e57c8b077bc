//! Where the messages of a file stand: in chunks, or one after the other without.

use super::channels::Channels;
use super::chunk::{Chunk, MAX_CHUNK_LEN_BYTES};
use super::error::{Problem, ReadError};
use super::input::{Head, Input};
use super::record;
use mcap::records::{ChunkHeader, MessageHeader, op};
use std::ops::Range;

/// Messages outside of chunks are read in pieces of this length.
pub const LOOSE_LEN_BYTES: u64 = 1 << 20;

/// A part of the file that is read at once.
#[derive(Clone, Debug)]
pub struct Block {
    pub offset: u64,
    /// Behind its last byte.
    pub end: u64,
    /// The first and last log time in it, as far as the file is to be believed, in ns.
    pub times: (u64, u64),
    /// The channels whose messages are in it, in order; `None` if that is not known.
    pub channels: Option<Vec<u16>>,
}

/// What is in a block.
pub struct Contents {
    /// What the chunk says of itself.
    pub header: ChunkHeader,
    pub bytes: Vec<u8>,
    /// Messages, in the order of the file: what stands before their data, and where that is in `bytes`.
    pub messages: Vec<(MessageHeader, Range<usize>)>,
    /// Where the record of each of them begins.
    pub offsets: Vec<u64>,
    /// What is wrong with the rest of it.
    pub problem: Option<ReadError>,
}

impl Block {
    /// Reads it. Schemas and channels that it describes are added to those that are known.
    ///
    /// What stands before something that is wrong is there, and what stands behind it is not.
    pub fn read(&self, input: &Input, channels: &mut Channels) -> Result<Contents, ReadError> {
        let head = match input.head(self.offset, self.end)? {
            Some(head) => head,
            None => {
                let why = "a chunk is said to begin here, and the file ends before it".to_owned();
                return Err(ReadError::new(self.offset, Problem::Index(why)));
            }
        };
        match head.opcode {
            op::CHUNK => {
                // What fails its CRC or cannot be decompressed may be anything, so nothing of it is taken.
                let chunk = Chunk::read(input, &head)?;
                // What is wrong inside is reported at the chunk: what is compressed has no offset in the file.
                Ok(of_records(chunk, |_| head.offset, channels))
            }
            _ => self.loose(input, &head, channels),
        }
    }

    fn loose(
        &self,
        input: &Input,
        first: &Head,
        channels: &mut Channels,
    ) -> Result<Contents, ReadError> {
        if self.end - self.offset > MAX_CHUNK_LEN_BYTES {
            let (what, len) = (first.name(), first.body_len);
            let problem = Problem::TooLong { what, len, limit: MAX_CHUNK_LEN_BYTES };
            return Err(ReadError::new(self.offset, problem));
        }
        let bytes = input.read(self.offset, self.end - self.offset)?;
        let header = ChunkHeader {
            message_start_time: self.times.0,
            message_end_time: self.times.1,
            uncompressed_size: bytes.len() as u64,
            uncompressed_crc: 0,
            compression: String::new(),
            compressed_size: bytes.len() as u64,
        };
        let chunk = Chunk { header, records: bytes };
        // Offsets of what is wrong in it are those of the file.
        Ok(of_records(chunk, |at| self.offset + at as u64, channels))
    }
}

fn of_records(chunk: Chunk, offset_of: impl Fn(usize) -> u64, channels: &mut Channels) -> Contents {
    let (mut messages, mut offsets) = (Vec::new(), Vec::new());
    let mut problem = None;
    let mut last = 0;
    for inner in chunk.inner() {
        let inner = match inner {
            Ok(inner) => inner,
            Err(wrong) => {
                problem = Some(ReadError::new(offset_of(last), wrong));
                break;
            }
        };
        last = inner.body.end;
        let offset = offset_of(inner.offset);
        let body = &chunk.records[inner.body.clone()];
        let taken = match inner.opcode {
            op::MESSAGE => record::message_header(body, offset).and_then(|header| {
                if channels.get(header.channel_id).is_none() {
                    let channel = header.channel_id;
                    return Err(ReadError::new(offset, Problem::UnknownChannel { channel }));
                }
                let data = inner.body.start + record::MESSAGE_HEADER_LEN_BYTES..inner.body.end;
                messages.push((header, data));
                offsets.push(inner.offset as u64);
                Ok(())
            }),
            op::SCHEMA | op::CHANNEL => record::parse(inner.opcode, body, offset)
                .and_then(|record| channels.add(record, offset)),
            _ => Ok(()),
        };
        if let Err(wrong) = taken {
            // The record has its length, so what follows can be read; the first that is wrong is told.
            problem = problem.or(Some(wrong));
        }
    }
    Contents { header: chunk.header, bytes: chunk.records, messages, offsets, problem }
}
