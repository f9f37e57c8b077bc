//! Messages in the order in which they were sent.
//!
//! A file has them in the order in which they were taken, a few milliseconds apart from it. So some are held back until
//! nothing can come that was sent before them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rnet::Meta;

use super::carried::Carried;
use crate::names;
use crate::read::{Message, Messages, ReadError, Recording, Select};

/// How long before it was taken a message is sent, at most, to find its place. Others are sent when they are found.
const WINDOW_NS: u64 = 200_000_000;
/// Messages that are held back, at most.
const MAX_HELD: usize = 4096;

/// A message, its due time and its metadata.
pub struct Due {
    /// Time of the recording, in ns since 1970 UTC.
    pub at_ns: u64,
    pub message: Message,
    pub meta: Meta,
}

/// The messages of a file in the order in which they are due.
pub struct InOrder {
    messages: Messages,
    carried: Carried,
    by_sending: bool,
    held: BinaryHeap<Held>,
    taken: u64,
    /// Log time of the last that was read.
    read_ns: u64,
    ended: bool,
}

struct Held {
    due: Due,
    number: u64,
}

impl InOrder {
    pub fn new(recording: &Recording, select: Select) -> InOrder {
        let by_sending = recording.profile() == names::PROFILE;
        let messages = recording.messages(Select { with_meta: true, ..select });
        let (carried, held) = (Carried::default(), BinaryHeap::new());
        InOrder { messages, carried, by_sending, held, taken: 0, read_ns: 0, ended: false }
    }

    /// Whether nothing that is still to be read can be due before the first that is held.
    fn is_ready(&self) -> bool {
        match self.held.peek() {
            Some(first) => {
                self.ended
                    || self.held.len() >= MAX_HELD
                    || first.due.at_ns.saturating_add(WINDOW_NS) <= self.read_ns
            }
            None => self.ended,
        }
    }
}

impl Iterator for InOrder {
    type Item = Result<Due, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_ready() {
            match self.messages.next() {
                Some(Ok(message)) if message.channel.topic == names::META_TOPIC => {
                    self.carried.remember(message.data());
                }
                Some(Ok(message)) => {
                    self.read_ns = message.log_ns();
                    let meta = self.carried.of(&message);
                    if !self.by_sending {
                        return Some(Ok(Due { at_ns: self.read_ns, message, meta }));
                    }
                    let due = Due { at_ns: message.publish_ns(), message, meta };
                    self.held.push(Held { due, number: self.taken });
                    self.taken += 1;
                }
                Some(Err(problem)) => return Some(Err(problem)),
                None => self.ended = true,
            }
        }
        self.held.pop().map(|held| Ok(held.due))
    }
}

/// The earliest is the greatest; of the same time, the one that was read first.
impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due.at_ns, other.number).cmp(&(self.due.at_ns, self.number))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}
