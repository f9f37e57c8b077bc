//! Values that reveal when they are torn, mixed up or truncated: every word follows from the number that
//! the value represents, and from its length.

use rnet_survival::rng::mix_bits;

/// Bytes in front of the pattern: the number and the length.
const HEAD_LEN_BYTES: usize = 16;

fn word(number: i64, len: usize, index: usize) -> [u8; 8] {
    mix_bits(number as u64 ^ (len as u64).rotate_left(40) ^ (index as u64) << 20).to_le_bytes()
}

/// The bytes that represent a number, at least 16 of them.
pub fn bytes(number: i64, len: usize) -> Vec<u8> {
    let len = len.max(HEAD_LEN_BYTES);
    let mut bytes = Vec::with_capacity(len + 8);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&(len as u64).to_le_bytes());
    for index in 0..(len - HEAD_LEN_BYTES).div_ceil(8) {
        bytes.extend_from_slice(&word(number, len, index));
    }
    bytes.truncate(len);
    bytes
}

/// The number that bytes represent.
///
/// # Errors
/// What is wrong with the bytes.
pub fn number(bytes: &[u8]) -> Result<i64, String> {
    let Some((head, body)) = bytes.split_at_checked(HEAD_LEN_BYTES) else {
        return Err(format!("a value of {} bytes is truncated", bytes.len()));
    };
    let (number, len) = head.split_at(8);
    let number = i64::from_le_bytes(number.try_into().unwrap_or_default());
    let len = u64::from_le_bytes(len.try_into().unwrap_or_default());
    if len != bytes.len() as u64 {
        return Err(format!("value {number} declares {len} bytes and has {}", bytes.len()));
    }
    let mut words = body.chunks(8).enumerate();
    match words.find(|(i, to)| word(number, bytes.len(), *i)[..to.len()] != **to) {
        None => Ok(number),
        Some((index, _)) => Err(format!("value {number} is torn at word {index} of {len} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_detected() {
        for len in [24, 31, 32, 100] {
            let mut value = bytes(77, len);
            assert_eq!((value.len(), number(&value)), (len, Ok(77)));
            for at in 0..len {
                value[at] ^= 1;
                assert!(number(&value).is_err(), "byte {at} of {len}");
                value[at] ^= 1;
            }
            assert!(number(&value[..len - 1]).is_err());
        }
    }
}
