//! The message of the benchmarks, and the counts of received messages.
//!
//! ```text
//! 0..8    number of the message from this publisher, from 0; the top 16 bits are the publisher
//! ..-8    the number again: the two differ in a message that was overwritten while it was read
//! ```
//! Both are little-endian. The bytes between them repeat one byte, in long messages only (see [`Body`]).

use rnet::{Publisher, Result};
use serde::{Deserialize, Serialize};

/// Shortest message, in bytes: the number, twice.
pub const MIN_LEN_BYTES: usize = 16;
const WORD_LEN_BYTES: usize = 8;
/// Bits of the number; the publisher is above them.
const NUMBER_BITS: u32 = 48;

/// Which bytes of a long message, one that is loaned and read in place, are written and read. A short message
/// is copied in full in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The sender writes every byte and the reader reads every byte, as for an image.
    Whole,
    /// Only the first and last bytes are written and read, which leaves the cost of the transport itself.
    Ends,
}

impl Body {
    pub fn untouched(yes: bool) -> Body {
        if yes { Body::Ends } else { Body::Whole }
    }
}

/// Whether a message of this length is built in the memory that its readers read.
fn is_long(len: usize) -> bool {
    len > rnet::limits::MAX_INLINE_LEN_BYTES
}

fn write(message: &mut [u8], publisher: u16, number: u64, body: Body) {
    let tail = message.len() - WORD_LEN_BYTES;
    if body == Body::Whole && is_long(message.len()) {
        message[WORD_LEN_BYTES..tail].fill(number as u8);
    }
    let word = u64::from(publisher) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1);
    message[tail..].copy_from_slice(&word.to_le_bytes());
    message[..WORD_LEN_BYTES].copy_from_slice(&word.to_le_bytes());
}

/// Messages of one length from one publisher.
#[derive(Debug)]
pub struct Outgoing {
    publisher: u16,
    len: usize,
    body: Body,
    /// Buffer of a short message. A long one is built in loaned memory.
    buffer: Vec<u8>,
}

impl Outgoing {
    pub fn new(publisher: u16, len: usize, body: Body) -> Outgoing {
        Outgoing { publisher, len, body, buffer: vec![0; if is_long(len) { 0 } else { len }] }
    }

    /// Sends message `number`.
    #[inline]
    pub fn send(&mut self, topic: &mut Publisher<[u8]>, number: u64) -> Result<()> {
        if is_long(self.len) {
            let mut loan = topic.loan(self.len)?;
            write(&mut loan, self.publisher, number, self.body);
            return loan.send().map_err(|(_, error)| error);
        }
        write(&mut self.buffer, self.publisher, number, self.body);
        topic.send(&self.buffer)
    }
}

/// Sends back the received message, with the same length and content.
pub fn answer(topic: &mut Publisher<[u8]>, message: &[u8], body: Body) -> Result<()> {
    let len = message.len();
    if !is_long(len) {
        return topic.send(message);
    }
    let mut loan = topic.loan(len)?;
    match body {
        Body::Whole => loan.copy_from_slice(message),
        Body::Ends => {
            for range in [0..WORD_LEN_BYTES, len - WORD_LEN_BYTES..len] {
                loan[range.clone()].copy_from_slice(&message[range]);
            }
        }
    }
    loan.send().map_err(|(_, error)| error)
}

/// A valid received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMessage {
    pub publisher: u16,
    pub number: u64,
}

/// Reads and checks a message; `None` if it differs from the sent one.
pub fn read(message: &[u8], body: Body) -> Option<ReadMessage> {
    let (head, rest) = message.split_first_chunk()?;
    let (between, tail) = rest.split_last_chunk()?;
    if head != tail {
        return None;
    }
    let word = u64::from_le_bytes(*head);
    let number = word & ((1 << NUMBER_BITS) - 1);
    if body == Body::Whole && is_long(message.len()) {
        let (words, rest) = between.as_chunks::<WORD_LEN_BYTES>();
        let expected = u64::from_le_bytes([number as u8; WORD_LEN_BYTES]);
        // A sum instead of a comparison word by word: it reads every byte at memory speed.
        let sum = words.iter().fold(0_u64, |sum, w| sum.wrapping_add(u64::from_le_bytes(*w)));
        let is_right = sum == expected.wrapping_mul(words.len() as u64)
            && rest.iter().all(|b| *b == number as u8);
        if !is_right {
            return None;
        }
    }
    Some(ReadMessage { publisher: (word >> NUMBER_BITS) as u16, number })
}

/// Messages that one reader received from one publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceCounter {
    /// Valid messages received in order.
    pub received: u64,
    /// Messages received after a later one, or twice.
    pub out_of_order: u64,
    /// The number after the last one.
    pub next: u64,
}

impl SequenceCounter {
    /// Counts a valid message; returns whether it was in order.
    #[inline]
    pub fn count(&mut self, number: u64) -> bool {
        if number < self.next {
            self.out_of_order += 1;
            return false;
        }
        self.next = number + 1;
        self.received += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: usize, number: u64) -> Vec<u8> {
        let mut message = vec![0; len];
        write(&mut message, 7, number, Body::Whole);
        message
    }

    #[test]
    fn message_reads_as_written() {
        for len in [16, 22, 24, 4096, 4097, 10_001] {
            let read = read(&message(len, 300), Body::Whole).unwrap();
            assert_eq!((read.publisher, read.number), (7, 300), "{len}");
        }
    }

    #[test]
    fn changed_bytes_are_detected() {
        assert_eq!(read(&message(22, 1)[..21], Body::Ends), None);
        assert_eq!(read(&[], Body::Ends), None);
        for at in [0, 7, 8, 5000, 9_990, 9_993, 10_000] {
            let mut message = message(10_001, 1);
            message[at] ^= 1;
            assert_eq!(read(&message, Body::Whole), None, "byte {at}");
        }
    }

    #[test]
    fn a_sequence_counter_distinguishes_loss_from_reordering() {
        let mut tally = SequenceCounter::default();
        let kept: Vec<bool> = [0, 1, 4, 4, 2, 5].into_iter().map(|n| tally.count(n)).collect();
        assert_eq!(kept, [true, true, true, false, false, true]);
        assert_eq!((tally.received, tally.out_of_order, tally.next), (4, 2, 6));
    }
}
