//! Yields messages in the order in which they were sent.
//!
//! A file contains them in the order in which they were recorded, which differs by a few milliseconds. So
//! messages are held back until no earlier message can follow.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rnet::Meta;

use super::recorded_meta::RecordedMeta;
use crate::names;
use crate::read::{Message, Messages, ReadError, Recording, Select};

/// Maximum time between sending and recording for which messages are reordered. Later ones are yielded when
/// they are read.
const REORDER_WINDOW_NS: u64 = 200_000_000;
/// Maximum number of messages that are held back.
const MAX_PENDING: usize = 4096;

/// A message, its due time and its metadata.
pub struct DueMessage {
    /// Time of the recording, in ns since 1970 UTC.
    pub at_ns: u64,
    pub message: Message,
    pub meta: Meta,
}

/// The messages of a file in the order in which they are due.
pub struct OrderedMessages {
    messages: Messages,
    recorded_meta: RecordedMeta,
    by_send_time: bool,
    pending: BinaryHeap<PendingMessage>,
    read_count: u64,
    /// Log time of the last message read.
    read_ns: u64,
    ended: bool,
}

struct PendingMessage {
    due: DueMessage,
    number: u64,
}

impl OrderedMessages {
    pub fn new(recording: &Recording, select: Select) -> OrderedMessages {
        let by_send_time = recording.profile() == names::PROFILE;
        let messages = recording.messages(Select { with_meta: true, ..select });
        let (recorded_meta, pending) = (RecordedMeta::default(), BinaryHeap::new());
        OrderedMessages {
            messages,
            recorded_meta,
            by_send_time,
            pending,
            read_count: 0,
            read_ns: 0,
            ended: false,
        }
    }

    /// Whether no unread message can be due before the first pending one.
    fn is_ready(&self) -> bool {
        match self.pending.peek() {
            Some(first) => {
                self.ended
                    || self.pending.len() >= MAX_PENDING
                    || first.due.at_ns.saturating_add(REORDER_WINDOW_NS) <= self.read_ns
            }
            None => self.ended,
        }
    }
}

impl Iterator for OrderedMessages {
    type Item = Result<DueMessage, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_ready() {
            match self.messages.next() {
                Some(Ok(message)) if message.channel.topic == names::META_TOPIC => {
                    self.recorded_meta.insert(message.data());
                }
                Some(Ok(message)) => {
                    self.read_ns = message.log_ns();
                    let meta = self.recorded_meta.take(&message);
                    if !self.by_send_time {
                        return Some(Ok(DueMessage { at_ns: self.read_ns, message, meta }));
                    }
                    let due = DueMessage { at_ns: message.publish_ns(), message, meta };
                    self.pending.push(PendingMessage { due, number: self.read_count });
                    self.read_count += 1;
                }
                Some(Err(problem)) => return Some(Err(problem)),
                None => self.ended = true,
            }
        }
        self.pending.pop().map(|pending| Ok(pending.due))
    }
}

/// The earliest is the greatest; among equal times, the one that was read first.
impl Ord for PendingMessage {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due.at_ns, other.number).cmp(&(self.due.at_ns, self.number))
    }
}

impl PartialOrd for PendingMessage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingMessage {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PendingMessage {}
