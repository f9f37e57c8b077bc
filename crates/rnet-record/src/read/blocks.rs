//! Where the messages of a file stand: in chunks, or one after the other without.

use super::channels::Channels;
use super::chunk::{Chunk, MAX_CHUNK_LEN_BYTES};
use super::error::{Problem, ReadError, RecordName};
use super::input::{HEAD_LEN_BYTES, Head, Input, heads, split_head};
use super::record;
use mcap::records::{ChunkHeader, MessageHeader, op};
use std::ops::Range;

/// Messages outside of chunks are read in pieces of this length.
pub const MAX_UNCHUNKED_LEN_BYTES: u64 = 1 << 20;

/// A part of the file that is read at once.
#[derive(Clone, Debug)]
pub struct Block {
    /// It is a chunk, and not records outside of chunks.
    pub is_chunk: bool,
    pub offset: u64,
    /// Behind its last byte.
    pub end: u64,
    /// The first and last log time in it, as far as the file is to be believed, in ns.
    pub times: (u64, u64),
    /// The channels whose messages are in it, in order; `None` if that is not known.
    pub channels: Option<Vec<u16>>,
}

/// What is in a block.
pub struct BlockContents {
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

    /// The length of a chunk stands in its head and in the index. If they differ, the one with which it can be read holds.
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
        // What fails its CRC or cannot be decompressed may be anything, so nothing of it is taken.
        let chunk = match Chunk::read(input, &head) {
            Err(error) if !is_same => {
                let by_head = input.head(self.offset, input.len());
                let by_head = by_head.ok().flatten().filter(|head| head.opcode == op::CHUNK);
                Chunk::read(input, &by_head.ok_or(error)?)?
            }
            read => read?,
        };
        let mut contents = parse_records(chunk, 0, channels);
        // What is wrong inside is reported at the chunk: what is compressed has no offset in the file.
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
        // Offsets of what is wrong in it are those of the file.
        Ok(parse_records(chunk, self.offset, channels))
    }
}

/// Reads the records of a chunk, which begin at `start`.
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
            // The record has its length, so what follows can be read; the first that is wrong is told.
            problem = problem.or(Some(wrong));
        }
    }
    BlockContents { header: chunk.header, bytes: chunk.records, messages, offsets, problem }
}
