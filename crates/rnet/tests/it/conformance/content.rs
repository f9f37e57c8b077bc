//! Content of a message, computed from its stream's tag and its number, so that each side computes it alone.

/// Message number `index` of the stream `tag`. The first words are the tag and the number.
pub fn content(tag: u64, index: u64, len: usize) -> Vec<u8> {
    let mut state = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index ^ (len as u64) << 32;
    let mut bytes = vec![0; len];
    for (at, word) in bytes.chunks_mut(8).enumerate() {
        // xorshift64* (S. Vigna, 2016): each word differs from its neighbours and from the words of other
        // messages.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let value = match at {
            0 => tag,
            1 => index,
            _ => state.wrapping_mul(0x2545_f491_4f6c_dd1d),
        };
        word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
    }
    bytes
}

/// A checksum that depends on each bit and its position.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |sum, word| {
        let mut buf = [0; 8];
        buf[..word.len()].copy_from_slice(word);
        (sum ^ u64::from_le_bytes(buf)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
    })
}
