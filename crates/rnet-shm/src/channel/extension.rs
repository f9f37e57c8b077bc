//! Extension words of a record: what a message carries beside its content, as bytes and back.
//!
//! The ring checks that the words lie in their record (`rnet_ring::record`); what each of them means is said
//! here. A word with an unknown tag is passed over, and so is one that is too short for what it should say:
//! of one that is longer than known the beginning is read. Of two with one tag the first counts.
//! docs/design/shm-layout.md draws them.

use rnet_core::{KnownGap, LossCause, Meta, Origin};
use rnet_ring::record::MAX_EXTENSION_LEN_BYTES;

/// Host, publisher, sequence number.
pub const TAG_ORIGIN: u32 = 1;
/// ns since 1970 UTC, signed.
pub const TAG_SOURCE: u32 = 2;
/// A number.
pub const TAG_CORRELATION: u32 = 3;
/// Cause, size, and the sum of the sizes of this cause with this one.
pub const TAG_GAP: u32 = 4;
/// Nothing: the message is a last will.
pub const TAG_LAST_WILL: u32 = 5;

/// Longest of what is written here.
const MAX_LEN_BYTES: usize = 8 + (8 + 24) + (8 + 8) + (8 + 8) + (8 + 24) + 8;
const _: () = assert!(MAX_LEN_BYTES <= MAX_EXTENSION_LEN_BYTES);

/// What stands before the value of a correlation.
const CORRELATION_HEAD: u64 = head_of(TAG_CORRELATION, 1);
/// Words of a record that says its correlation and nothing else.
const CORRELATION_WORDS: usize = 3;
/// What stands before the value of an origin.
const ORIGIN_HEAD: u64 = head_of(TAG_ORIGIN, 3);
/// Words of a record that says its origin and nothing else.
pub(crate) const ORIGIN_WORDS: usize = 5;

/// What the extension words of a record say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extension {
    pub meta: Meta,
    /// How many messages of the cause of `meta.gap` the publisher knows to be missing, with that gap.
    pub known_lost: u64,
}

impl Extension {
    /// What stands before the payload, and how many of these words.
    #[inline]
    pub(crate) fn words(self) -> ([u64; MAX_LEN_BYTES / 8], usize) {
        let (mut words, mut used) = ([0; MAX_LEN_BYTES / 8], 1);
        if let Some(origin) = self.only_origin() {
            words[..ORIGIN_WORDS].copy_from_slice(&words_of(origin));
            return (words, ORIGIN_WORDS);
        }
        if let Some(correlation) = only_correlation(&self.meta) {
            words[..CORRELATION_WORDS].copy_from_slice(&words_of_correlation(correlation));
            return (words, CORRELATION_WORDS);
        }
        let mut put = |tag: u32, value: &[u64]| {
            words[used] = head_of(tag, value.len());
            words[used + 1..][..value.len()].copy_from_slice(value);
            used += 1 + value.len();
        };
        let Meta { origin, source_ns, correlation, gap, last_will, .. } = self.meta;
        if let Some(Origin { host, publisher, seq }) = origin {
            put(TAG_ORIGIN, &[host, publisher, seq]);
        }
        if let Some(source_ns) = source_ns {
            put(TAG_SOURCE, &[source_ns.cast_unsigned()]);
        }
        if let Some(correlation) = correlation {
            put(TAG_CORRELATION, &[correlation]);
        }
        if let Some(KnownGap { cause, size }) = gap {
            put(TAG_GAP, &[cause as u64, size, self.known_lost]);
        }
        if last_will {
            put(TAG_LAST_WILL, &[]);
        }
        words[0] = 8 * used as u64;
        (words, used)
    }

    /// The origin, if there is nothing else: so it is with most messages of another host.
    #[inline]
    fn only_origin(&self) -> Option<Origin> {
        let Meta { origin, source_ns, correlation, gap, last_will, .. } = self.meta;
        let others = source_ns.is_some() || correlation.is_some() || gap.is_some() || last_will;
        origin.filter(|_| !others)
    }

    /// Makes `bytes` what stands before the payload.
    #[inline]
    pub(crate) fn write_to(self, bytes: &mut Vec<u8>) {
        let (words, used) = self.words();
        bytes.clear();
        words[..used].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }

    /// Reads bytes that nobody vouches for; none at all say nothing.
    #[inline]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Extension {
        let word = |word: &[u8; 8]| u64::from_le_bytes(*word);
        // What most messages of another host have, and nothing else: it is read three times for each of them.
        if let (&[_, head, host, publisher, seq], []) = bytes.as_chunks::<8>()
            && word(&head) == ORIGIN_HEAD
        {
            let [host, publisher, seq] = [host, publisher, seq].map(|bytes| word(&bytes));
            let origin = Origin { host, publisher, seq };
            return Extension { meta: Meta::default().with_origin(origin), known_lost: 0 };
        }
        // And what most messages of calls have.
        if let (&[_, head, correlation], []) = bytes.as_chunks::<8>()
            && word(&head) == CORRELATION_HEAD
        {
            let meta = Meta::default().with_correlation(word(&correlation));
            return Extension { meta, known_lost: 0 };
        }
        Extension::from_words(bytes)
    }

    /// The origin that the words of a record name, if they say nothing else.
    #[inline]
    pub(crate) fn origin_alone(words: &[u64; ORIGIN_WORDS]) -> Option<Origin> {
        let &[_, head, host, publisher, seq] = words;
        (head == ORIGIN_HEAD).then_some(Origin { host, publisher, seq })
    }

    #[cold]
    fn from_words(bytes: &[u8]) -> Extension {
        let mut found = Extension::default();
        let mut rest = bytes.get(8..).unwrap_or_default();
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let head = u64::from_le_bytes(*head);
            let len = (head >> 32) as usize;
            let Some(value) = after.get(..len) else { break };
            found.read(head as u32, value);
            rest = after.get(len.next_multiple_of(8)..).unwrap_or_default();
        }
        found
    }

    fn read(&mut self, tag: u32, value: &[u8]) {
        let (words, _) = value.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
        let (first, third) = (word(0), word(0).zip(word(1)).zip(word(2)));
        let meta = &mut self.meta;
        match tag {
            TAG_ORIGIN if meta.origin.is_none() => {
                meta.origin = third.map(|((host, publisher), seq)| Origin { host, publisher, seq });
            }
            TAG_SOURCE if meta.source_ns.is_none() => {
                meta.source_ns = first.map(u64::cast_signed);
            }
            TAG_CORRELATION if meta.correlation.is_none() => meta.correlation = first,
            TAG_GAP if meta.gap.is_none() => {
                let Some(((cause, size), known_lost)) = third else { return };
                // A cause that is not known is one of a later version.
                let Some(&cause) = LossCause::ALL.get(cause as usize) else { return };
                meta.gap = Some(KnownGap { cause, size });
                self.known_lost = known_lost;
            }
            TAG_LAST_WILL => meta.last_will = true,
            _ => {}
        }
    }
}

/// What stands before the payload of a message that names its origin and nothing else.
#[inline]
pub(crate) fn words_of(Origin { host, publisher, seq }: Origin) -> [u64; ORIGIN_WORDS] {
    [8 * ORIGIN_WORDS as u64, ORIGIN_HEAD, host, publisher, seq]
}

/// What stands before the payload of a message that says its correlation and nothing else.
#[inline]
pub(crate) fn words_of_correlation(correlation: u64) -> [u64; CORRELATION_WORDS] {
    [8 * CORRELATION_WORDS as u64, CORRELATION_HEAD, correlation]
}

/// The correlation, if there is nothing else: so it is with most messages of calls.
#[inline]
pub(crate) fn only_correlation(meta: &Meta) -> Option<u64> {
    let Meta { origin, source_ns, correlation, gap, last_will, .. } = meta;
    let others = origin.is_some() || source_ns.is_some() || gap.is_some() || *last_will;
    correlation.filter(|_| !others)
}

const fn head_of(tag: u32, words: usize) -> u64 {
    tag as u64 | (words as u64 * 8) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut Vec<u8>, tag: u32, words: &[u64]) {
        let head = head_of(tag, words.len());
        bytes.extend(std::iter::once(&head).chain(words).flat_map(|word| word.to_le_bytes()));
    }

    fn to_bytes(extension: Extension) -> Vec<u8> {
        let mut bytes = b"what was there before".to_vec();
        extension.write_to(&mut bytes);
        bytes
    }

    fn full() -> Extension {
        let meta = Meta::default()
            .with_origin(Origin { host: 1, publisher: u64::MAX, seq: 3 })
            .with_source_ns(-4)
            .with_correlation(5)
            .with_gap(LossCause::Link, 6)
            .as_last_will();
        Extension { meta, known_lost: 7 }
    }

    #[test]
    fn what_was_written_is_read() {
        let one = Meta::default().with_correlation(9);
        let origin = Meta::default().with_origin(Origin { host: 7, publisher: 8, seq: u64::MAX });
        let [one, origin] = [one, origin].map(|meta| Extension { meta, known_lost: 0 });
        for extension in [full(), Extension::default(), one, origin] {
            let bytes = to_bytes(extension);
            assert!(bytes.len() <= MAX_LEN_BYTES && bytes.len().is_multiple_of(8));
            assert_eq!(Extension::from_bytes(&bytes), extension);
        }
        assert_eq!(to_bytes(full()).len(), MAX_LEN_BYTES);
        assert_eq!(Extension::from_bytes(&[]), Extension::default());
    }

    #[test]
    fn unknown_words_are_passed_over() {
        let mut bytes = vec![0; 8];
        put(&mut bytes, 999, &[1, 2]);
        // Three bytes, which take eight.
        bytes.extend((1000 | 3_u64 << 32).to_le_bytes());
        bytes.extend([0xff; 8]);
        put(&mut bytes, TAG_CORRELATION, &[5]);
        // A cause of a later version.
        put(&mut bytes, TAG_GAP, &[4, 1, 1]);
        let meta = Meta::default().with_correlation(5);
        assert_eq!(Extension::from_bytes(&bytes), Extension { meta, known_lost: 0 });
    }

    #[test]
    fn words_of_another_length_are_read_as_far_as_they_are_known() {
        let mut bytes = vec![0; 8];
        put(&mut bytes, TAG_ORIGIN, &[1, 2]);
        put(&mut bytes, TAG_SOURCE, &[]);
        put(&mut bytes, TAG_GAP, &[1, 2]);
        put(&mut bytes, TAG_CORRELATION, &[7, 8, 9]);
        put(&mut bytes, TAG_CORRELATION, &[6]);
        let meta = Meta::default().with_correlation(7);
        assert_eq!(Extension::from_bytes(&bytes).meta, meta);
    }

    /// Whatever the bytes say, and wherever they end.
    #[test]
    fn nothing_is_read_beyond_the_end() {
        let bytes = to_bytes(full());
        for len in 0..bytes.len() {
            let _ = Extension::from_bytes(&bytes[..len]);
            for value in [0, 1, 0x7f, 0xff] {
                let mut spoilt = bytes.clone();
                spoilt[len] = value;
                let _ = Extension::from_bytes(&spoilt);
            }
        }
    }
}
