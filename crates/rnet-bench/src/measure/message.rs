//! The message of the benches, and the counts of what became of it.
//!
//! ```text
//! 0..8    number of the message from this publisher, from 0; the top 16 bits are the publisher
//! ..-8    the number again: one written over while it is read has two
//! ```
//! Both little-endian. Between them one byte is repeated, in long messages only (see [`Body`]).

use rnet::{Publisher, Result};
use serde::{Deserialize, Serialize};

/// Shortest message, in bytes: the number, twice.
pub const MIN_LEN_BYTES: usize = 16;
const WORD_LEN_BYTES: usize = 8;
/// Bits of the number that count; the publisher is above them.
const NUMBER_BITS: u32 = 48;

/// What is done with the bytes of a long message, one that is loaned and read in place. A short one is copied in full
/// whatever its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Every byte is written by the sender and read by the reader, as an image would be.
    Whole,
    /// Only the first and last bytes are, which leaves the cost of the transport itself.
    Ends,
}

impl Body {
    pub fn untouched(yes: bool) -> Body {
        if yes { Body::Ends } else { Body::Whole }
    }
}

/// Whether a message of this length is built where its readers read it.
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
    /// A short message. A long one is built in memory that is loaned.
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

/// Sends back what was received, of the same length and content.
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

/// A received message that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMessage {
    pub publisher: u16,
    pub number: u64,
}

/// Reads and checks a message; `None` if it is not as it was sent.
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
        // A sum and no comparison word by word: it reads every byte, at the speed of the memory.
        let sum = words.iter().fold(0_u64, |sum, w| sum.wrapping_add(u64::from_le_bytes(*w)));
        let is_right = sum == expected.wrapping_mul(words.len() as u64)
            && rest.iter().all(|b| *b == number as u8);
        if !is_right {
            return None;
        }
    }
    Some(ReadMessage { publisher: (word >> NUMBER_BITS) as u16, number })
}

/// What one reader received from one publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceCounter {
    /// Messages that came in order and whole.
    pub received: u64,
    /// Messages that came behind a later one, or twice.
    pub out_of_order: u64,
    /// The number behind the last one.
    pub next: u64,
}

impl SequenceCounter {
    /// Counts a whole message; whether it came in order.
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
    fn a_message_reads_as_it_was_written() {
        for len in [16, 22, 24, 4096, 4097, 10_001] {
            let read = read(&message(len, 300), Body::Whole).unwrap();
            assert_eq!((read.publisher, read.number), (7, 300), "{len}");
        }
    }

    #[test]
    fn what_was_changed_is_found() {
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
