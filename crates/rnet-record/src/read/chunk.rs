//! Reads and decompresses chunks.

use std::io::Read;

use mcap::records::{ChunkHeader, Record, op};

use super::error::{Problem, ReadError, RecordName};
use super::input::{Head, Input};
use super::record;

/// Maximum length of a chunk, compressed or uncompressed.
pub const MAX_CHUNK_LEN_BYTES: u64 = 1 << 30;

/// A decompressed chunk.
pub struct Chunk {
    pub header: ChunkHeader,
    pub records: Vec<u8>,
}

impl Chunk {
    /// Reads and decompresses a chunk. Checks its CRC, unless it has none.
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

/// The decompressed records of a chunk.
fn decompress(header: &ChunkHeader, data: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut records = Vec::new();
    // One byte more than declared, to detect an excess; a false size allocates no memory.
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
    // 0 means no CRC.
    let found = if saved == 0 { 0 } else { crc32fast::hash(&records) };
    match saved == found {
        true => Ok(records),
        false => Err(Problem::Crc { what: "a chunk", saved, found }),
    }
}
