//! Varints of one to ten bytes, as in protobuf.

/// Longest varint of a u64.
pub const MAX_LEN: usize = 10;

/// Writes the number to the beginning of `out` and returns the number of bytes. `out` must have [`MAX_LEN`]
/// bytes.
#[inline]
pub fn put(out: &mut [u8], mut value: u64) -> usize {
    let mut len = 0;
    while value >= 0x80 {
        out[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    out[len] = value as u8;
    len + 1
}

/// How many bytes [`put`] writes.
#[inline]
pub fn len(value: u64) -> usize {
    // Seven bits in each, and one for 0.
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Two numbers in the encoding of [`put`], in the first bytes of a word, and their length; `None` if they
/// do not fit into a word.
#[inline]
pub fn pair(first: u64, second: u64) -> Option<(u64, usize)> {
    let (first_len, second_len) = (len(first), len(second));
    let used = first_len + second_len;
    (used <= 8).then(|| (word_of(first) | word_of(second) << (8 * first_len), used))
}

/// A number below 2^49 in the encoding of [`put`].
#[inline]
fn word_of(mut value: u64) -> u64 {
    let (mut word, mut at) = (0, 0);
    while value >= 0x80 {
        word |= (value & 0x7f | 0x80) << at;
        value >>= 7;
        at += 8;
    }
    word | value << at
}

/// Takes a number from the front; `None` if it does not end, or does not fit.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    // Most have one byte.
    if let [first @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    let mut value = 0;
    for at in 0..MAX_LEN {
        let byte = *bytes.get(at)?;
        if at == MAX_LEN - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

/// Encodes a signed number so that one with a small magnitude stays small.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The inverse of [`zigzag`].
#[inline]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}
