//! The message that all systems carry.
//!
//! ```text
//! 0..8   CLOCK_MONOTONIC at the call to send, ns, little-endian
//! 8..16  little-endian: kind (bits 60..64), phase (52..60), publisher (40..52), number (0..40)
//! 16..   content: a pattern fixed by position; from 4 KiB on, one word in each page is the number
//! ```
//! The founding study's message, "Hello at <epoch in ms>", has 22 bytes: here the 16 above and six of
//! pattern. A text in milliseconds would show neither a loss nor a latency below one. A message shorter than
//! 16 bytes has no header; it is counted, and its content checked.

/// Bytes of the header.
pub const HEADER_LEN: usize = 16;
const PAGE: usize = 4096;
/// Stride of long messages that are compared whole; of the others a word per page is compared.
const WHOLE_EVERY: u64 = 1024;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Repeated until all endpoints have joined; not counted.
    Hello = 1,
    /// A numbered message of the workload.
    Data = 2,
    /// A numbered message whose words were all written and are all to be summed.
    Filled = 3,
    /// Repeated after the last message of a phase; `number` is their count.
    End = 4,
}

/// A message's first 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, ns of `CLOCK_MONOTONIC`.
    pub stamp_ns: u64,
    /// Its purpose.
    pub kind: Kind,
    /// The phase of the run.
    pub phase: u8,
    /// Its sender: the publisher's index on the topic, below 4096.
    pub publisher: u16,
    /// Its number in the phase from this publisher, from 0, below 2^40.
    pub number: u64,
}

impl Header {
    /// Writes the header to the front of `message`.
    #[inline]
    pub fn write(&self, message: &mut [u8]) {
        let word = (self.kind as u64) << 60
            | u64::from(self.phase) << 52
            | u64::from(self.publisher & 0xfff) << 40
            | (self.number & ((1 << 40) - 1));
        message[..8].copy_from_slice(&self.stamp_ns.to_le_bytes());
        message[8..16].copy_from_slice(&word.to_le_bytes());
    }

    /// Reads the header of `message`; `None` where it is too short or of no known kind.
    #[inline]
    pub fn read(message: &[u8]) -> Option<Self> {
        let stamp_ns = u64::from_le_bytes(message.get(..8)?.try_into().ok()?);
        let word = u64::from_le_bytes(message.get(8..16)?.try_into().ok()?);
        let kind = match word >> 60 {
            1 => Kind::Hello,
            2 => Kind::Data,
            3 => Kind::Filled,
            4 => Kind::End,
            _ => return None,
        };
        Some(Self {
            stamp_ns,
            kind,
            phase: (word >> 52) as u8,
            publisher: (word >> 40) as u16 & 0xfff,
            number: word & ((1 << 40) - 1),
        })
    }
}

/// The byte of the pattern at a position.
fn pattern(position: usize) -> u8 {
    (position.wrapping_mul(131).wrapping_add(position >> 8).wrapping_add(7)) as u8
}

/// A buffer of `len` bytes of pattern.
pub fn patterned(len: usize) -> Vec<u8> {
    (0..len).map(pattern).collect()
}

/// Writes the number into each page of a long message.
#[inline]
pub fn number_pages(message: &mut [u8], number: u64) {
    for page in message.chunks_exact_mut(PAGE).skip(1) {
        page[..8].copy_from_slice(&number.to_le_bytes());
    }
}

/// Checks the content of a received [`Kind::Data`] message. `template` is [`patterned`] and at
/// least as long as the message.
#[inline]
pub fn content_is_right(message: &[u8], number: u64, template: &[u8]) -> bool {
    let len = message.len();
    if len < PAGE {
        return template.len() >= len && message[HEADER_LEN..] == template[HEADER_LEN..len];
    }
    let numbered = message.chunks_exact(PAGE).skip(1).all(|page| page[..8] == number.to_le_bytes());
    let whole = !number.is_multiple_of(WHOLE_EVERY)
        || template.len() >= len
            && message[HEADER_LEN..PAGE] == template[HEADER_LEN..PAGE]
            && message[PAGE..].chunks(PAGE).zip(template[PAGE..].chunks(PAGE)).all(|(a, b)| {
                let skip = if a.len() == PAGE { 8 } else { 0 };
                a[skip..] == b[skip..a.len()]
            });
    numbered && whole
}

/// Writes every word after the header: the number plus the word's position.
#[inline]
pub fn fill(message: &mut [u8], number: u64) {
    let (words, rest) = message[HEADER_LEN..].as_chunks_mut::<8>();
    for (position, word) in words.iter_mut().enumerate() {
        *word = number.wrapping_add(position as u64).to_le_bytes();
    }
    rest.fill(0);
}

/// Whether a [`fill`]ed message adds up.
#[inline]
pub fn sum_is_right(message: &[u8], number: u64) -> bool {
    let (words, _) = message[HEADER_LEN..].as_chunks::<8>();
    let sum = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    let n = words.len() as u64;
    sum == number.wrapping_mul(n).wrapping_add(n.wrapping_mul(n.wrapping_sub(1)) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = Header {
            stamp_ns: u64::MAX - 5,
            kind: Kind::Filled,
            phase: 255,
            publisher: 4095,
            number: (1 << 40) - 1,
        };
        let mut message = [0; 22];
        header.write(&mut message);
        assert_eq!(Header::read(&message), Some(header));
        assert_eq!(Header::read(&message[..15]), None);
        assert_eq!(Header::read(&[0; 16]), None);
    }

    #[test]
    fn each_changed_byte_of_a_short_message_is_found() {
        let template = patterned(100);
        let mut message = template.clone();
        assert!(content_is_right(&message, 3, &template));
        for i in HEADER_LEN..100 {
            message[i] ^= 1;
            assert!(!content_is_right(&message, 3, &template), "byte {i}");
            message[i] ^= 1;
        }
    }

    #[test]
    fn a_long_message_with_a_page_of_another_is_found() {
        let template = patterned(3 * PAGE + 100);
        let mut message = template.clone();
        number_pages(&mut message, 7);
        assert!(content_is_right(&message, 7, &template));
        message[2 * PAGE] ^= 1;
        assert!(!content_is_right(&message, 7, &template));
        // The rest is checked in each 1024th.
        number_pages(&mut message, WHOLE_EVERY);
        assert!(content_is_right(&message, WHOLE_EVERY, &template));
        for i in [20, PAGE + 8, 3 * PAGE + 99] {
            message[i] ^= 1;
            assert!(!content_is_right(&message, WHOLE_EVERY, &template), "byte {i}");
            message[i] ^= 1;
        }
    }

    #[test]
    fn a_filled_message_adds_up_and_a_wrong_one_does_not() {
        let mut message = vec![0; 1000];
        fill(&mut message, 41);
        assert!(sum_is_right(&message, 41));
        assert!(!sum_is_right(&message, 42));
        message[500] ^= 1;
        assert!(!sum_is_right(&message, 41));
    }
}
