//! Compressed messages: the length of the whole as a varint, and a block of LZ4.

use lz4_flex::block;

use super::error::WireError;
use super::varint;

/// LZ4 makes at most this many bytes of one.
const MAX_RATIO: u64 = 255;

/// Replaces the content of `out` by the compressed message. `false` if that is no shorter: the message is then
/// sent as it is.
pub fn compress(message: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    out.resize(varint::MAX_LEN + block::get_maximum_output_size(message.len()), 0);
    let head = varint::put(out, message.len() as u64);
    let Ok(len) = block::compress_into(message, &mut out[head..]) else { return false };
    out.truncate(head + len);
    out.len() < message.len()
}

/// Replaces the content of `out` by the message that [`compress`] was given.
///
/// # Errors
/// If it states a length above `limit`, or is not of the length that it states.
pub fn decompress(compressed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut block = compressed;
    let len = varint::take(&mut block).ok_or(WireError::BadCompression(compressed.len()))?;
    if len > limit as u64 {
        return Err(WireError::LimitExceeded { len, limit });
    }
    // What cannot be that long is refused before it is given memory.
    if len > MAX_RATIO * block.len() as u64 {
        return Err(WireError::BadCompression(compressed.len()));
    }
    out.clear();
    out.resize(len as usize, 0);
    match block::decompress_into(block, out) {
        Ok(written) if written as u64 == len => Ok(()),
        _ => Err(WireError::BadCompression(compressed.len())),
    }
}
