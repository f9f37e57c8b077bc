//! Records of bytes that may be anything.

use mcap::records::{MessageHeader, Record, op};

use super::error::{Problem, ReadError, RecordName};

/// Bytes of a Message record before its data.
pub const MESSAGE_HEADER_LEN_BYTES: usize = 22;
/// Times, lengths of two texts, length of the data and CRC: no Attachment record is shorter.
const MIN_ATTACHMENT_LEN_BYTES: usize = 36;

/// What a record says. It may not be a message, which is read by [`message_header`].
pub fn parse(opcode: u8, body: &[u8], offset: u64) -> Result<Record<'_>, ReadError> {
    let failed =
        |why: String| ReadError::new(offset, Problem::Record { what: RecordName(opcode), why });
    // mcap subtracts the length of the CRC from what is there.
    if opcode == op::ATTACHMENT && body.len() < MIN_ATTACHMENT_LEN_BYTES {
        return Err(failed(format!("it has {} bytes", body.len())));
    }
    // An error of the parser is many lines long, of which the first says what it is.
    mcap::parse_record(opcode, body).map_err(|error| {
        let text = match &error {
            mcap::McapError::Parse(error) => error.to_string(),
            error => error.to_string(),
        };
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        failed(line.unwrap_or("it is malformed").to_owned())
    })
}

/// What stands before the data of a message.
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
