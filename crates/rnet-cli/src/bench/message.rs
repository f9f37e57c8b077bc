//! The message of the benches, and who counts what came of it.
//!
//! ```text
//! 0..8    CLOCK_MONOTONIC at the call to send, ns, where latency is asked for
//! 8..16   number of the message from this publisher, from 0; the top 16 bits are the publisher
//! ..-8    of 24 bytes or more, the last 8 are the number again: one written over while it is read
//!         has two
//! ```
//! All little-endian. What lies between is one byte repeated, in long messages only (see [`Body`]).

use rnet::{Publisher, Result};
use serde::{Deserialize, Serialize};

/// Shortest message, in bytes: time and number.
pub const MIN_LEN_BYTES: usize = 16;
const TAILED_LEN_BYTES: usize = 24;
/// Bits of the number that count; the publisher stands above them.
const NUMBER_BITS: u32 = 48;

/// What is done with the bytes of a long message, one that is lent and read in place. A short one
/// is copied in full whatever its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Every byte is written by the sender and read by the reader, as an image would be.
    Whole,
    /// Only head and tail are, which leaves what the transport itself takes.
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

fn word(publisher: u16, number: u64) -> u64 {
    u64::from(publisher) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1)
}

fn word_at(message: &[u8], at: usize) -> u64 {
    message.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()))
}

/// Writes a message of which only the time, which [`stamp`] sets, is missing.
fn write(message: &mut [u8], publisher: u16, number: u64, body: Body) {
    let len = message.len();
    if body == Body::Whole && is_long(len) {
        message[MIN_LEN_BYTES..].fill(number as u8);
    }
    let word = word(publisher, number).to_le_bytes();
    if len >= TAILED_LEN_BYTES {
        message[len - 8..].copy_from_slice(&word);
    }
    message[8..16].copy_from_slice(&word);
}

/// The time last: what was done to the message before is the sender's own work.
fn stamp(message: &mut [u8]) {
    message[..8].copy_from_slice(&rnet::now_ns().to_le_bytes());
}

/// Messages of one length from one publisher.
#[derive(Debug)]
pub struct Outgoing {
    publisher: u16,
    len: usize,
    body: Body,
    /// Whether somebody wants to know how long they took. A look at the clock costs a part of what
    /// a short message costs.
    timed: bool,
    buffer: Vec<u8>,
}

impl Outgoing {
    pub fn new(publisher: u16, len: usize, body: Body, timed: bool) -> Outgoing {
        // A long message is built in memory that is lent.
        let buffer = vec![0; if is_long(len) { 0 } else { len }];
        Outgoing { publisher, len, body, timed, buffer }
    }

    /// Sends message `number`.
    #[inline]
    pub fn send(&mut self, topic: &mut Publisher<[u8]>, number: u64) -> Result<()> {
        if is_long(self.len) {
            let mut loan = topic.loan(self.len)?;
            write(&mut loan, self.publisher, number, self.body);
            if self.timed {
                stamp(&mut loan);
            }
            return loan.send().map_err(|(_, error)| error);
        }
        write(&mut self.buffer, self.publisher, number, self.body);
        if self.timed {
            stamp(&mut self.buffer);
        }
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
    if body == Body::Whole {
        loan.copy_from_slice(message);
    } else {
        loan[..MIN_LEN_BYTES].copy_from_slice(&message[..MIN_LEN_BYTES]);
        loan[len - 8..].copy_from_slice(&message[len - 8..]);
    }
    loan.send().map_err(|(_, error)| error)
}

/// A received message that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    pub stamp_ns: u64,
    pub publisher: u16,
    pub number: u64,
}

/// Reads and checks a message; `None` if it is not as it was sent.
pub fn read(message: &[u8], len: usize, body: Body) -> Option<Read> {
    if message.len() != len || len < MIN_LEN_BYTES {
        return None;
    }
    let word = word_at(message, 8);
    if len >= TAILED_LEN_BYTES && word_at(message, len - 8) != word {
        return None;
    }
    let number = word & ((1 << NUMBER_BITS) - 1);
    if body == Body::Whole && is_long(len) {
        let (words, rest) = message[MIN_LEN_BYTES..len - 8].as_chunks::<8>();
        let expected = u64::from_le_bytes([number as u8; 8]);
        // A sum and no comparison word by word: it reads every byte, at the speed of the memory.
        let sum = words.iter().fold(0_u64, |sum, w| sum.wrapping_add(u64::from_le_bytes(*w)));
        let right = sum == expected.wrapping_mul(words.len() as u64)
            && rest.iter().all(|b| *b == number as u8);
        if !right {
            return None;
        }
    }
    let publisher = (word >> NUMBER_BITS) as u16;
    Some(Read { stamp_ns: word_at(message, 0), publisher, number })
}

/// What one reader received from one publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Messages that came in order and whole.
    pub received: u64,
    /// Messages that came behind a later one, or twice.
    pub out_of_order: u64,
    /// Messages that were not as they were sent.
    pub corrupt: u64,
    /// The number behind the last one.
    pub next: u64,
}

impl Tally {
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

    /// How many of `sent` messages did not come.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: usize, number: u64) -> Vec<u8> {
        let mut message = vec![0; len];
        write(&mut message, 7, number, Body::Whole);
        stamp(&mut message);
        message
    }

    #[test]
    fn a_message_reads_as_it_was_written() {
        for len in [16, 22, 24, 4096, 4097, 10_001] {
            let message = message(len, 300);
            let read = read(&message, len, Body::Whole).unwrap();
            assert_eq!((read.publisher, read.number), (7, 300), "{len}");
            assert!(read.stamp_ns > 0 && read.stamp_ns <= rnet::now_ns());
        }
    }

    #[test]
    fn what_was_changed_is_found() {
        assert_eq!(read(&message(22, 1), 23, Body::Ends), None);
        assert_eq!(read(&[], 0, Body::Ends), None);
        for at in [8, 15, 16, 5000, 9_990, 9_993, 10_000] {
            let mut message = message(10_001, 1);
            message[at] ^= 1;
            assert_eq!(read(&message, 10_001, Body::Whole), None, "byte {at}");
        }
    }

    #[test]
    fn a_tally_tells_loss_from_disorder() {
        let mut tally = Tally::default();
        let kept: Vec<bool> = [0, 1, 4, 4, 2, 5].into_iter().map(|n| tally.count(n)).collect();
        assert_eq!(kept, [true, true, true, false, false, true]);
        assert_eq!((tally.received, tally.out_of_order), (4, 2));
        assert_eq!(tally.lost(8), 4);
    }
}
