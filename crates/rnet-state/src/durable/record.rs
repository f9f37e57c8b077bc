//! The encoding of one key on disk: a fixed header, then the writer's name, the value and the will.
//!
//! docs/design/durable-state.md has the table. The decoder trusts nothing: the file may come from a failing
//! disk, or anyone with write access may have changed it.

use rnet_core::{MAX_VALUE_LEN_BYTES, fnv1a_64};

/// Version of the encoding, in each record and in the table `meta`.
pub(super) const RECORD_FORMAT: u8 = 1;
const RECORD_HEAD_LEN_BYTES: usize = 64;
const SUM_AT: usize = 8;
const HAS_WILL: u8 = 1;

/// A durable key with all its attributes, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saved<'a> {
    pub key: &'a str,
    pub kind: u16,
    pub type_id: u64,
    pub version: u64,
    /// 0 if unknown.
    pub revision: u64,
    pub written_unix_ns: u64,
    /// 0: never. In the record itself, by the store's clock.
    pub expires_boot_ns: u64,
    /// Name of the node that wrote it.
    pub writer: &'a str,
    pub value: &'a [u8],
    /// The value of the key after its owner exits, as encoded in the region.
    pub will: Option<&'a [u8]>,
}

/// One key of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub key: &'a str,
    /// `None`: the key is deleted.
    pub saved: Option<Saved<'a>>,
}

impl Saved<'_> {
    /// Writes the record to `into`, after clearing it.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.clear();
        let will = self.will.unwrap_or_default();
        let flags = if self.will.is_some() { HAS_WILL } else { 0 };
        into.extend(self.kind.to_le_bytes());
        into.extend([RECORD_FORMAT, flags]);
        into.extend((self.writer.len() as u32).to_le_bytes());
        into.extend([0; 8]);
        for word in
            [self.type_id, self.version, self.revision, self.written_unix_ns, self.expires_boot_ns]
        {
            into.extend(word.to_le_bytes());
        }
        into.extend((self.value.len() as u32).to_le_bytes());
        into.extend((will.len() as u32).to_le_bytes());
        into.extend(self.writer.as_bytes());
        into.extend(self.value);
        into.extend(will);
        let sum = sum(self.key, into).to_le_bytes();
        into[SUM_AT..SUM_AT + 8].copy_from_slice(&sum);
    }
}

/// Why a record is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadRecord {
    /// A newer robot-net wrote it.
    Newer(u8),
    /// Its content was changed.
    Damaged(&'static str),
}

/// Decodes a record and checks all of it.
pub(super) fn decode<'a>(key: &'a str, bytes: &'a [u8]) -> Result<Saved<'a>, BadRecord> {
    let damaged = BadRecord::Damaged;
    let (head, rest) =
        bytes.split_at_checked(RECORD_HEAD_LEN_BYTES).ok_or(damaged("it is truncated"))?;
    if sum(key, bytes) != word(head, SUM_AT) {
        return Err(damaged("its checksum does not match"));
    }
    if head[2] != RECORD_FORMAT {
        return Err(BadRecord::Newer(head[2]));
    }
    let writer_len = half(head, 4) as usize;
    let (value_len, will_len) = (half(head, 56) as usize, half(head, 60) as usize);
    if rest.len() as u64 != writer_len as u64 + value_len as u64 + will_len as u64 {
        return Err(damaged("its lengths do not add up"));
    }
    // Larger than a leaf of the region allows.
    let will_limit = MAX_VALUE_LEN_BYTES + 16;
    if writer_len > 255 || value_len > MAX_VALUE_LEN_BYTES || will_len > will_limit {
        return Err(damaged("it exceeds the maximum record length"));
    }
    let (writer, rest) = rest.split_at(writer_len);
    let (value, will) = rest.split_at(value_len);
    Ok(Saved {
        key,
        kind: u16::from_le_bytes([head[0], head[1]]),
        type_id: word(head, 16),
        version: word(head, 24),
        revision: word(head, 32),
        written_unix_ns: word(head, 40),
        expires_boot_ns: word(head, 48),
        writer: std::str::from_utf8(writer).map_err(|_| damaged("its writer is not text"))?,
        value,
        will: (head[3] & HAS_WILL != 0).then_some(will),
    })
}

/// FNV-1a over the key, a byte that never occurs in text, and the record without its checksum. Including the
/// key detects a record under another key.
fn sum(key: &str, record: &[u8]) -> u64 {
    let (before, after) = (&record[..SUM_AT], &record[SUM_AT + 8..]);
    let mut hash = fnv1a_64(key.as_bytes());
    for part in [&[0xff][..], before, after] {
        // FNV-1a continues from its current state; only its start is fixed.
        for byte in part {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

fn word(head: &[u8], at: usize) -> u64 {
    head[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

fn half(head: &[u8], at: usize) -> u32 {
    head[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn record_round_trips(
            key in ".{0,40}", kind: u16, words: [u64; 5], writer in "/[a-z]{0,20}",
            value in proptest::collection::vec(any::<u8>(), 0..200),
            will in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
            flip: prop::sample::Index, bit in 0..8u32, cut: prop::sample::Index,
        ) {
            let [type_id, version, revision, written_unix_ns, expires_boot_ns] = words;
            let saved = Saved {
                key: &key, kind, type_id, version, revision, written_unix_ns, expires_boot_ns,
                writer: &writer, value: &value, will: will.as_deref(),
            };
            let mut bytes = vec![9; 9];
            saved.encode(&mut bytes);
            prop_assert_eq!(decode(&key, &bytes), Ok(saved));
            // It is rejected under another key, with a flipped bit, truncated or extended.
            let other = format!("{key}x");
            prop_assert!(decode(&other, &bytes).is_err());
            prop_assert!(decode(&key, &bytes[..cut.index(bytes.len())]).is_err());
            let mut longer = bytes.clone();
            longer.push(0);
            prop_assert!(decode(&key, &longer).is_err());
            let at = flip.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(decode(&key, &bytes).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(decode("/k", &bytes).is_err());
        }
    }

    /// The bytes of the page, so that a change of the encoding is a decision.
    #[test]
    fn encoding_matches_the_documentation() {
        let saved = Saved {
            key: "/k",
            kind: 0x0201,
            type_id: 3,
            version: 4,
            revision: 5,
            written_unix_ns: 6,
            expires_boot_ns: 7,
            writer: "/n",
            value: b"val",
            will: Some(b"w"),
        };
        let mut bytes = Vec::new();
        saved.encode(&mut bytes);
        assert_eq!(&bytes[..8], [1, 2, 1, 1, 2, 0, 0, 0]);
        let words: Vec<u64> = (2..7).map(|i| word(&bytes, i * 8)).collect();
        assert_eq!(words, [3, 4, 5, 6, 7]);
        assert_eq!(&bytes[56..], b"\x03\0\0\0\x01\0\0\0/nvalw");
        assert_eq!(decode("/k", &bytes), Ok(saved));
        // A record of a later version is distinguished from a damaged one, because its checksum is valid.
        bytes[2] = 2;
        let sum = sum("/k", &bytes).to_le_bytes();
        bytes[SUM_AT..SUM_AT + 8].copy_from_slice(&sum);
        assert_eq!(decode("/k", &bytes), Err(BadRecord::Newer(2)));
    }
}
