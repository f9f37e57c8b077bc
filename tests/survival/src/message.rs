//! Messages that reveal when they are torn, mixed up or truncated: every word follows from the sender and
//! the message's number.

use crate::rng::mix_bits;

/// Bytes in front of the pattern: sender, number, length.
pub const HEAD_LEN_BYTES: usize = 24;

fn word(sender: u64, number: u64, index: usize) -> [u8; 8] {
    mix_bits(sender ^ number.rotate_left(32) ^ index as u64).to_le_bytes()
}

/// Writes message `number` of `sender` over all of `bytes`, which must be at least as long as its head.
pub fn fill(bytes: &mut [u8], sender: u64, number: u64) {
    let len = bytes.len() as u64;
    let (head, body) = bytes.split_at_mut(HEAD_LEN_BYTES);
    for (to, value) in head.chunks_exact_mut(8).zip([sender, number, len]) {
        to.copy_from_slice(&value.to_le_bytes());
    }
    for (index, to) in body.chunks_mut(8).enumerate() {
        to.copy_from_slice(&word(sender, number, index)[..to.len()]);
    }
}

/// Sender and number of an intact message, or what is wrong with it.
pub fn check(bytes: &[u8]) -> Result<(u64, u64), String> {
    let Some((head, body)) = bytes.split_at_checked(HEAD_LEN_BYTES) else {
        return Err(format!("a message of {} bytes is truncated", bytes.len()));
    };
    let at = |index: usize| {
        let eight = head[index * 8..index * 8 + 8].try_into();
        u64::from_le_bytes(eight.expect("eight bytes"))
    };
    let (sender, number, len) = (at(0), at(1), at(2));
    if len != bytes.len() as u64 {
        return Err(format!("message {number} declares {len} bytes and has {}", bytes.len()));
    }
    let torn =
        body.chunks(8).enumerate().find(|(i, to)| word(sender, number, *i)[..to.len()] != **to);
    match torn {
        None => Ok((sender, number)),
        Some((index, _)) => Err(format!("message {number} is torn at word {index} of {len} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_detected() {
        for len in [24, 25, 31, 32, 100] {
            let mut bytes = vec![0; len];
            fill(&mut bytes, 7, 9);
            assert_eq!(check(&bytes), Ok((7, 9)));
            // Only the pattern reveals sender and number, so it has to be long enough.
            for at in (if len >= HEAD_LEN_BYTES + 8 { 0 } else { 16 })..len {
                bytes[at] ^= 1;
                assert!(check(&bytes).is_err(), "byte {at} of {len}");
                bytes[at] ^= 1;
            }
            assert!(check(&bytes[..len - 1]).is_err());
        }
    }
}
