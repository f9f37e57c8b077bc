//! Compressed messages: the length of the message as a varint, and an LZ4 block.

use lz4_flex::block;

use super::error::WireError;
use super::varint;

/// The largest expansion of a byte by LZ4.
const MAX_RATIO: u64 = 255;

/// Replaces the content of `out` by the compressed message. `false` if that is not shorter: the message is
/// then sent uncompressed.
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
/// If it declares a length above `limit`, or has another length than declared.
pub fn decompress(compressed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut block = compressed;
    let len = varint::take(&mut block).ok_or(WireError::BadCompression(compressed.len()))?;
    if len > limit as u64 {
        return Err(WireError::LimitExceeded { len, limit });
    }
    // An impossible length is refused before memory is allocated.
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
