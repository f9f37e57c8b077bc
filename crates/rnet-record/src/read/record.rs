//! Parses records from untrusted bytes.

use mcap::records::{MessageHeader, Record, op};

use super::error::{Problem, ReadError, RecordName};

/// Bytes of a Message record before its data.
pub const MESSAGE_HEADER_LEN_BYTES: usize = 22;
/// Minimum length after the strings of an Attachment record: the length of the data, and its CRC.
const ATTACHMENT_END_LEN_BYTES: usize = 12;
/// Length of an entry of a ChunkIndex record's map of message indexes: the channel, and the offset.
const INDEX_OFFSET_LEN_BYTES: usize = 2 + 8;

/// Parses a record other than a message; for messages, see [`message_header`].
pub fn parse(opcode: u8, body: &[u8], offset: u64) -> Result<Record<'_>, ReadError> {
    let failed =
        |why: String| ReadError::new(offset, Problem::Record { what: RecordName(opcode), why });
    // mcap allocates the declared length of a string (up to 4 GiB) before it checks whether so much data
    // exists. It also subtracts the length of the CRC from the rest of an attachment without a check.
    if !strings_fit(opcode, body) {
        return Err(failed("a string is longer than the record".to_owned()));
    }
    // The first line of a parser error names the problem; the others are details.
    mcap::parse_record(opcode, body).map_err(|error| {
        let text = match &error {
            mcap::McapError::Parse(error) => error.to_string(),
            error => error.to_string(),
        };
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        failed(line.unwrap_or("it is malformed").to_owned())
    })
}

/// Whether all strings of a record end within it, with space for the fields that follow in an attachment. The
/// parser itself rejects a record that ends before its strings begin.
fn strings_fit(opcode: u8, body: &[u8]) -> bool {
    // Bytes before the strings, and the number of consecutive strings.
    let (at, texts) = match opcode {
        op::HEADER => (0, 2),
        op::SCHEMA => (2, 2),
        op::CHANNEL => (4, 2),
        op::CHUNK => (28, 1),
        // The string follows the map of index offsets with its length and a further length field. The parser
        // reads whole offsets, even if the map ends within one.
        op::CHUNK_INDEX => match read_len(body, 32) {
            Some(len) => (32 + 4 + len.next_multiple_of(INDEX_OFFSET_LEN_BYTES) + 8, 1),
            None => return true,
        },
        op::ATTACHMENT => (16, 2),
        op::ATTACHMENT_INDEX => (40, 2),
        op::METADATA => (0, 1),
        op::METADATA_INDEX => (16, 1),
        _ => return true,
    };
    let mut at = at;
    let end = body.len().saturating_sub(match opcode {
        op::ATTACHMENT => ATTACHMENT_END_LEN_BYTES,
        _ => 0,
    });
    for _ in 0..texts {
        let Some(len) = read_len(body, at) else { return opcode != op::ATTACHMENT };
        at += 4 + len;
        if at > end {
            return false;
        }
    }
    if !matches!(opcode, op::CHANNEL | op::METADATA) {
        return true;
    }
    // A map of strings, preceded by its length in bytes.
    let Some(len) = read_len(body, at) else { return true };
    at += 4;
    let end = at + len;
    while at < end {
        // A key and its value, even if the map ends between them.
        for _ in 0..2 {
            let Some(len) = read_len(body, at) else { return true };
            at += 4 + len;
            if at > body.len() {
                return false;
            }
        }
    }
    true
}

/// The length stored in the four bytes at `at`.
fn read_len(body: &[u8], at: usize) -> Option<usize> {
    let bytes = body.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes) as usize)
}

/// The fields of a message before its data.
pub fn message_header(body: &[u8], offset: u64) -> Result<MessageHeader, ReadError> {
    let Some(header) = body.first_chunk::<MESSAGE_HEADER_LEN_BYTES>() else {
        let why = format!("it has {} bytes", body.len());
        let what = RecordName(op::MESSAGE);
        return Err(ReadError::new(offset, Problem::Record { what, why }));
    };
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    Ok(MessageHeader {
        channel_id: u16::from_le_bytes([header[0], header[1]]),
        sequence: u32::from_le_bytes([header[2], header[3], header[4], header[5]]),
        log_time: number(6),
        publish_time: number(14),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        let len = (text.len() as u32).to_le_bytes();
        [&len, text.as_bytes()].concat()
    }

    /// Each kind of record with strings, with the offsets of their lengths.
    fn records() -> Vec<(u8, Vec<u8>, Vec<usize>)> {
        let map = |entries: Vec<u8>| [&(entries.len() as u32).to_le_bytes()[..], &entries].concat();
        let entries = map([text("key"), text("value")].concat());
        let two = [text("one"), text("two")].concat();
        let after = |before: usize, rest: &[u8]| [&vec![0; before], rest].concat();
        let chunk_index = [vec![0; 32], map(vec![0; 10]), vec![0; 8], text("lz4"), vec![0; 16]];
        let channel = [vec![0; 4], two.clone(), entries.clone()].concat();
        vec![
            (op::HEADER, two.clone(), vec![0, 7]),
            (op::SCHEMA, after(2, &[two.clone(), vec![0; 4]].concat()), vec![2, 9]),
            (op::CHANNEL, channel, vec![4, 11, 22, 29]),
            (op::CHUNK, after(28, &[text("lz4"), vec![0; 8]].concat()), vec![28]),
            (op::CHUNK_INDEX, chunk_index.concat(), vec![54]),
            (op::ATTACHMENT, after(16, &[two.clone(), vec![0; 12]].concat()), vec![16, 23]),
            (op::ATTACHMENT_INDEX, after(40, &two), vec![40, 47]),
            (op::METADATA, [text("one"), entries].concat(), vec![0, 11, 18]),
            (op::METADATA_INDEX, after(16, &text("one")), vec![16]),
        ]
    }

    #[test]
    fn string_beyond_its_record_allocates_no_memory() {
        for (opcode, body, lengths) in records() {
            parse(opcode, &body, 0).unwrap_or_else(|error| panic!("{opcode}: {error}"));
            for at in lengths {
                for lie in [body.len() as u32, u32::MAX] {
                    let mut body = body.clone();
                    body[at..at + 4].copy_from_slice(&lie.to_le_bytes());
                    let error = parse(opcode, &body, 7).unwrap_err().to_string();
                    assert!(error.contains("longer than the record"), "{opcode} at {at}: {error}");
                }
            }
            // A map that ends within its entry.
            if let op::CHANNEL | op::METADATA = opcode {
                let mut body = body.clone();
                let map = body.len() - 20;
                body[map] = 1;
                body[map + 11..map + 15].fill(0xff);
                let error = parse(opcode, &body, 7).unwrap_err().to_string();
                assert!(error.contains("longer than the record"), "{opcode}: {error}");
            }
            // A map that ends within an offset, which the parser reads completely.
            if opcode == op::CHUNK_INDEX {
                for len in 1..INDEX_OFFSET_LEN_BYTES {
                    let mut body = body.clone();
                    body[32] = len as u8;
                    parse(opcode, &body, 7).unwrap();
                    body[54..58].fill(0xff);
                    let error = parse(opcode, &body, 7).unwrap_err().to_string();
                    assert!(error.contains("longer than the record"), "{len}: {error}");
                }
            }
            for len in 0..body.len() {
                let _ = parse(opcode, &body[..len], 0);
            }
        }
    }
}
