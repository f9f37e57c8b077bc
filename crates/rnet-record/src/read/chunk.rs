//! The inside of a chunk.

use std::io::Read;

use mcap::records::{ChunkHeader, Record, op};

use super::error::{Problem, ReadError, RecordName};
use super::input::{Head, Input};
use super::record;

/// The longest chunk that is read, compressed and not.
pub const MAX_CHUNK_LEN_BYTES: u64 = 1 << 30;

/// A chunk without its compression.
pub struct Chunk {
    pub header: ChunkHeader,
    pub records: Vec<u8>,
}

impl Chunk {
    /// Reads and decompresses a chunk. Its CRC is compared, unless it has none.
    pub fn read(input: &Input, head: &Head) -> Result<Self, ReadError> {
        let body = input.body(head, MAX_CHUNK_LEN_BYTES)?;
        let Record::Chunk { header, data } = record::parse(op::CHUNK, &body, head.offset)? else {
            unreachable!("a record of this opcode is parsed as a chunk");
        };
        if header.uncompressed_size > MAX_CHUNK_LEN_BYTES {
            let (what, len) = (RecordName(op::CHUNK), header.uncompressed_size);
            let problem = Problem::TooLong { what, len, limit: MAX_CHUNK_LEN_BYTES };
            return Err(ReadError::new(head.offset, problem));
        }
        let records = decompress(&header, &data).and_then(|records| check_crc(&header, records));
        let records = records.map_err(|problem| ReadError::new(head.offset, problem))?;
        Ok(Self { header, records })
    }
}

/// What a chunk holds.
fn decompress(header: &ChunkHeader, data: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut records = Vec::new();
    // One more than there should be, so that too many are found; a lie about the size costs no memory.
    let limit = header.uncompressed_size + 1;
    let name = header.compression.as_str();
    let read = match name {
        "" => data.take(limit).read_to_end(&mut records),
        "zstd" => zstd::stream::read::Decoder::with_buffer(data)
            .and_then(|decoder| decoder.take(limit).read_to_end(&mut records)),
        "lz4" => lz4::Decoder::new(data)
            .and_then(|decoder| decoder.take(limit).read_to_end(&mut records)),
        _ => return Err(Problem::Compression { name: name.to_owned() }),
    };
    let failed = |why: String| Problem::Decompress { name: name.to_owned(), why };
    read.map_err(|error| failed(error.to_string()))?;
    let (said, len) = (header.uncompressed_size, records.len() as u64);
    match len == said {
        true => Ok(records),
        false => {
            let more = if len > said { "more" } else { "less" };
            Err(failed(format!("it contains {more} than the declared {said} bytes")))
        }
    }
}

fn check_crc(header: &ChunkHeader, records: Vec<u8>) -> Result<Vec<u8>, Problem> {
    let saved = header.uncompressed_crc;
    // 0 is none.
    let found = if saved == 0 { 0 } else { crc32fast::hash(&records) };
    match saved == found {
        true => Ok(records),
        false => Err(Problem::Crc { what: "a chunk", saved, found }),
    }
}
