//! Blocks of messages in a file: chunks, or runs of records outside of chunks.

use super::channels::Channels;
use super::chunk::{Chunk, MAX_CHUNK_LEN_BYTES};
use super::error::{Problem, ReadError, RecordName};
use super::input::{HEAD_LEN_BYTES, Head, Input, heads, split_head};
use super::record;
use mcap::records::{ChunkHeader, MessageHeader, op};
use std::ops::Range;

/// Messages outside of chunks are read in blocks of this length.
pub const MAX_UNCHUNKED_LEN_BYTES: u64 = 1 << 20;

/// A part of the file that is read at once.
#[derive(Clone, Debug)]
pub struct Block {
    /// Whether it is a chunk, or records outside of chunks.
    pub is_chunk: bool,
    pub offset: u64,
    /// Offset after its last byte.
    pub end: u64,
    /// The first and last log time in it, as the file declares them, in ns.
    pub times: (u64, u64),
    /// The channels of its messages, in order; `None` if they are unknown.
    pub channels: Option<Vec<u16>>,
}

/// The content of a block.
pub struct BlockContents {
    /// The header of the chunk.
    pub header: ChunkHeader,
    pub bytes: Vec<u8>,
    /// Messages in the order of the file: their headers, and the ranges of their data in `bytes`.
    pub messages: Vec<(MessageHeader, Range<usize>)>,
    /// Offset of each message's record.
    pub offsets: Vec<u64>,
    /// What is wrong with the rest of the block.
    pub problem: Option<ReadError>,
}

impl Block {
    /// Reads the block. Adds schemas and channels that it contains to `channels`.
    ///
    /// The result contains the messages before an error, and none after it.
    pub fn read(&self, input: &Input, channels: &mut Channels) -> Result<BlockContents, ReadError> {
        match self.is_chunk {
            true => self.read_chunk(input, channels),
            false => match input.head(self.offset, self.end)? {
                Some(head) => self.read_unchunked(input, &head, channels),
                None => {
                    let why = "a record should begin here, but the file ends before it";
                    Err(ReadError::new(self.offset, Problem::Index(why.to_owned())))
                }
            },
        }
    }

    /// The length of a chunk is stored in its head and in the index. If they differ, the one that makes the
    /// chunk readable is used.
    fn read_chunk(
        &self,
        input: &Input,
        channels: &mut Channels,
    ) -> Result<BlockContents, ReadError> {
        let whole = input.read(self.offset, HEAD_LEN_BYTES)?;
        let (opcode, said) = split_head(&whole);
        let body_len = (self.end - self.offset).saturating_sub(HEAD_LEN_BYTES);
        let head = Head { opcode: op::CHUNK, offset: self.offset, body_len };
        let is_same = (opcode, said) == (op::CHUNK, body_len);
        // Nothing is used of a chunk that fails its CRC or cannot be decompressed.
        let chunk = match Chunk::read(input, &head) {
            Err(error) if !is_same => {
                let by_head = input.head(self.offset, input.len());
                let by_head = by_head.ok().flatten().filter(|head| head.opcode == op::CHUNK);
                Chunk::read(input, &by_head.ok_or(error)?)?
            }
            read => read?,
        };
        let mut contents = parse_records(chunk, 0, channels);
        // Problems inside are reported at the chunk: compressed data has no offset in the file.
        contents.problem.iter_mut().for_each(|problem| problem.offset = self.offset);
        if !is_same {
            let problem = Problem::HeadMismatch { what: RecordName(opcode), said, len: body_len };
            contents.problem.get_or_insert(ReadError::new(self.offset, problem));
        }
        Ok(contents)
    }

    fn read_unchunked(
        &self,
        input: &Input,
        first: &Head,
        channels: &mut Channels,
    ) -> Result<BlockContents, ReadError> {
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
        // Problems are reported at their offsets in the file.
        Ok(parse_records(chunk, self.offset, channels))
    }
}

/// Parses the records of a chunk, which begin at `start`.
fn parse_records(chunk: Chunk, start: u64, channels: &mut Channels) -> BlockContents {
    let (mut messages, mut offsets) = (Vec::new(), Vec::new());
    let mut problem = None;
    for head in heads(&chunk.records, start) {
        let head = match head {
            Ok(head) => head,
            Err(wrong) => {
                problem = Some(wrong);
                break;
            }
        };
        let offset = head.offset;
        let range = (head.body() - start) as usize..(head.end() - start) as usize;
        let body = &chunk.records[range.clone()];
        let taken = match head.opcode {
            op::MESSAGE => record::message_header(body, offset).and_then(|header| {
                if channels.get(header.channel_id).is_none() {
                    let channel = header.channel_id;
                    return Err(ReadError::new(offset, Problem::UnknownChannel { channel }));
                }
                let data = range.start + record::MESSAGE_HEADER_LEN_BYTES..range.end;
                messages.push((header, data));
                offsets.push(offset - start);
                Ok(())
            }),
            op::SCHEMA | op::CHANNEL => record::parse(head.opcode, body, offset)
                .and_then(|record| channels.add(record, offset)),
            _ => Ok(()),
        };
        if let Err(wrong) = taken {
            // The length of the record is known, so the following ones can be read; only the first error is
            // reported.
            problem = problem.or(Some(wrong));
        }
    }
    BlockContents { header: chunk.header, bytes: chunk.records, messages, offsets, problem }
}
