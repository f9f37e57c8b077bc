//! Keeps messages of a reliable channel until the other host has read them: after a cut, the host requests
//! them again. While a host is away, `kept_for_reconnect.rs` keeps them; `control.rs` notices its return.

use std::collections::VecDeque;
use std::sync::Arc;

use rnet::{Meta, OwnedSample};

use super::proxy::{CREDIT_LEN_BYTES, MESSAGE_COST};

/// Longer messages keep the publisher's memory instead of a copy, if it has plenty. The credit bounds their
/// number, and a reader may keep 64 of them.
const COPIED_LEN_BYTES: usize = 128 << 10;
/// A publisher has plenty of memory if it fits this many messages, and this many times the credit.
const PLENTIFUL_SHARE: u64 = 8;
/// Memory that an empty buffer keeps, in bytes.
const SPARE_LEN_BYTES: usize = 64 << 10;

/// The bytes of a message.
#[derive(Clone)]
pub enum Payload {
    /// In the publisher's memory.
    Sample(Arc<OwnedSample<[u8]>>),
    Copy(Vec<u8>),
}

impl Payload {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Payload::Sample(sample) => sample,
            Payload::Copy(bytes) => bytes,
        }
    }
}

/// A message that crosses.
pub struct Message {
    pub seq: u64,
    pub sent_ns: u64,
    pub meta: Meta,
    pub payload: Payload,
}

impl Message {
    pub fn of(sample: OwnedSample<[u8]>) -> Message {
        let (seq, sent_ns, meta) = (sample.seq(), sample.sent_ns(), sample.meta());
        Message { seq, sent_ns, meta, payload: Payload::Sample(Arc::new(sample)) }
    }
}

struct Entry {
    seq: u64,
    sent_ns: u64,
    /// `None` for most messages.
    meta: Option<Box<Meta>>,
    len: usize,
    /// `None` if its bytes are in the buffer.
    sample: Option<Arc<OwnedSample<[u8]>>>,
    /// Bytes of the channel sent up to this message; `u64::MAX` before it was sent completely.
    sent: u64,
}

impl Entry {
    fn cost(&self) -> u64 {
        self.len as u64 + MESSAGE_COST
    }

    fn buffered_len(&self) -> usize {
        if self.sample.is_some() { 0 } else { self.len }
    }
}

/// The messages, oldest first. Beyond the limit the oldest are dropped.
pub struct ResendBuffer {
    limit_bytes: u64,
    /// Longer messages are copied; all messages if this is 0.
    longest_kept: usize,
    len_bytes: u64,
    entries: VecDeque<Entry>,
    bytes: VecDeque<u8>,
    /// The first entry not yet sent on this channel, and the offset of its bytes.
    next: usize,
    next_at: usize,
}

impl ResendBuffer {
    /// Creates a buffer of at most `limit_bytes` for a publisher whose pool may grow to `pool_limit_bytes`,
    /// which decides whether its memory may be kept.
    pub fn new(limit_bytes: u64, pool_limit_bytes: Option<u64>) -> ResendBuffer {
        let share = pool_limit_bytes.unwrap_or_default() / PLENTIFUL_SHARE;
        ResendBuffer {
            limit_bytes,
            longest_kept: if share < CREDIT_LEN_BYTES { 0 } else { share as usize },
            len_bytes: 0,
            entries: VecDeque::new(),
            bytes: VecDeque::new(),
            next: 0,
            next_at: 0,
        }
    }

    /// Its size in bytes; each message costs as much as in the credit.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Adds a message; the channel has sent `sent` bytes with it.
    #[inline]
    pub fn add_sent(
        &mut self,
        (seq, sent_ns): (u64, u64),
        meta: Option<&Meta>,
        payload: &[u8],
        sent: u64,
    ) {
        if self.is_too_long(payload.len()) {
            return self.trim(0);
        }
        self.bytes.extend(payload);
        let (meta, len, sample) = (meta.copied().map(Box::new), payload.len(), None);
        self.add_entry(Entry { seq, sent_ns, meta, len, sample, sent });
    }

    /// Adds a message that was read and not sent completely yet.
    pub fn add(&mut self, message: &Message) {
        let bytes = message.payload.bytes();
        if self.is_too_long(bytes.len()) {
            return self.trim(0);
        }
        let sample = match &message.payload {
            Payload::Sample(sample)
                if bytes.len() > COPIED_LEN_BYTES && bytes.len() <= self.longest_kept =>
            {
                Some(sample.clone())
            }
            _ => None,
        };
        if sample.is_none() {
            self.bytes.extend(bytes);
        }
        let (seq, sent_ns, len) = (message.seq, message.sent_ns, bytes.len());
        let meta = (message.meta != Meta::default()).then(|| Box::new(message.meta));
        self.add_entry(Entry { seq, sent_ns, meta, len, sample, sent: u64::MAX });
    }

    /// Whether a message alone is longer than the limit: then no earlier message is kept either.
    #[inline]
    fn is_too_long(&self, len: usize) -> bool {
        len as u64 + MESSAGE_COST > self.limit_bytes
    }

    #[inline]
    fn add_entry(&mut self, entry: Entry) {
        self.len_bytes += entry.cost();
        self.next_at += entry.buffered_len();
        self.next += 1;
        self.entries.push_back(entry);
        if self.len_bytes > self.limit_bytes {
            self.trim(self.limit_bytes);
        }
    }

    /// Marks the message that was added or taken last as sent; the channel has sent `sent` bytes with it.
    pub fn mark_sent(&mut self, sent: u64) {
        if let Some(entry) = self.next.checked_sub(1).and_then(|last| self.entries.get_mut(last)) {
            entry.sent = sent;
        }
    }

    /// Drops messages that the other host has read: the first `read` bytes of the channel.
    pub fn drop_read(&mut self, read: u64) {
        let mut len = 0;
        while self.next > 0 && self.entries.front().is_some_and(|entry| entry.sent <= read) {
            len += self.pop_oldest();
        }
        self.bytes.drain(..len);
        if self.entries.is_empty() {
            self.shrink();
        }
    }

    /// Frees excess memory.
    fn shrink(&mut self) {
        if self.bytes.capacity() > 4 * self.bytes.len() + SPARE_LEN_BYTES {
            self.entries.shrink_to(2 * self.entries.len() + SPARE_LEN_BYTES / size_of::<Entry>());
            self.bytes.shrink_to(2 * self.bytes.len() + SPARE_LEN_BYTES);
        }
    }

    /// Drops the oldest messages until the rest fits into `limit_bytes`.
    pub fn trim(&mut self, limit_bytes: u64) {
        while self.len_bytes > limit_bytes && !self.entries.is_empty() {
            self.drop_oldest();
        }
        self.shrink();
    }

    fn drop_oldest(&mut self) {
        let len = self.pop_oldest();
        self.bytes.drain(..len);
    }

    /// Drops the entry of the oldest message but not its bytes; returns how many bytes at the start of the
    /// buffer belong to it.
    fn pop_oldest(&mut self) -> usize {
        let Some(entry) = self.entries.pop_front() else { return 0 };
        let buffered_len = entry.buffered_len();
        self.len_bytes -= entry.cost();
        if self.next > 0 {
            (self.next, self.next_at) = (self.next - 1, self.next_at - buffered_len);
        }
        buffered_len
    }

    /// Restarts with message `from`, the first that the other host lacks.
    pub fn rewind(&mut self, from: u64) {
        while self.entries.front().is_some_and(|entry| entry.seq < from) {
            self.drop_oldest();
        }
        (self.next, self.next_at) = (0, 0);
        for entry in &mut self.entries {
            entry.sent = u64::MAX;
        }
    }

    /// Whether a message waits to be sent again.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.next < self.entries.len()
    }

    /// The next message to send again.
    pub fn take_next(&mut self) -> Option<Message> {
        let entry = self.entries.get(self.next)?;
        let payload = match &entry.sample {
            Some(sample) => Payload::Sample(sample.clone()),
            None => {
                let range = self.next_at..self.next_at + entry.len;
                Payload::Copy(self.bytes.range(range).copied().collect())
            }
        };
        self.next += 1;
        self.next_at += entry.buffered_len();
        let meta = entry.meta.as_deref().copied().unwrap_or_default();
        Some(Message { seq: entry.seq, sent_ns: entry.sent_ns, meta, payload })
    }

    /// Copies the messages kept in the publisher's memory, which may wait for long. Messages added later
    /// come after all of these, even if some were to be sent again.
    pub fn copy_samples(&mut self) {
        (self.next, self.next_at) = (self.entries.len(), self.bytes.len());
        if self.entries.iter().all(|entry| entry.sample.is_none()) {
            return;
        }
        let mut bytes = VecDeque::with_capacity(self.len_bytes as usize);
        let mut at = 0;
        for entry in &mut self.entries {
            match entry.sample.take() {
                Some(sample) => bytes.extend(&**sample),
                None => {
                    bytes.extend(self.bytes.range(at..at + entry.len));
                    at += entry.len;
                }
            }
        }
        self.bytes = bytes;
        self.next_at = self.bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(limit_messages: u64, count: u64) -> ResendBuffer {
        let mut buffer = ResendBuffer::new(limit_messages * (8 + MESSAGE_COST), None);
        for seq in 0..count {
            buffer.add_sent((seq, 100 + seq), None, &seq.to_le_bytes(), 10 * (seq + 1));
        }
        buffer
    }

    fn take(buffer: &mut ResendBuffer) -> Vec<u64> {
        std::iter::from_fn(|| buffer.take_next())
            .map(|message| {
                assert_eq!(message.payload.bytes(), message.seq.to_le_bytes());
                assert_eq!(message.sent_ns, 100 + message.seq);
                message.seq
            })
            .collect()
    }

    #[test]
    fn drops_read_messages_and_resends_the_rest_in_order() {
        let mut buffer = buffer(100, 6);
        assert!(!buffer.has_next());
        buffer.drop_read(29);
        buffer.rewind(0);
        assert_eq!(take(&mut buffer), [2, 3, 4, 5]);
        buffer.rewind(4);
        assert_eq!(take(&mut buffer), [4, 5]);
        assert_eq!(buffer.len_bytes(), 2 * (8 + MESSAGE_COST));
    }

    /// The host is lost a second time before everything was sent again.
    #[test]
    fn messages_added_during_resend_follow_all_resent_ones() {
        let mut buffer = ResendBuffer::new(4 * (800 + MESSAGE_COST), None);
        for seq in 0..4 {
            buffer.add_sent((seq, 0), None, &[seq as u8; 800], 10);
        }
        buffer.rewind(0);
        assert_eq!(buffer.take_next().unwrap().seq, 0);
        buffer.copy_samples();
        buffer.add_sent((4, 0), None, &[4; 500], u64::MAX);
        buffer.add_sent((5, 0), None, &[5; 900], u64::MAX);
        buffer.rewind(0);
        for (seq, len) in [(2, 800), (3, 800), (4, 500), (5, 900)] {
            let message = buffer.take_next().unwrap();
            assert_eq!((message.seq, message.payload.bytes()), (seq, &vec![seq as u8; len][..]));
        }
        assert!(!buffer.has_next());
    }

    #[test]
    fn too_long_message_is_not_copied() {
        let mut buffer = buffer(3, 3);
        buffer.add_sent((3, 0), None, &vec![7; 8 << 20], 1000);
        assert_eq!((buffer.len_bytes(), buffer.has_next()), (0, false));
        assert!(buffer.bytes.capacity() <= SPARE_LEN_BYTES);
        buffer.add_sent((4, 104), None, &4_u64.to_le_bytes(), 1010);
        buffer.rewind(0);
        assert_eq!(take(&mut buffer), [4]);
    }

    #[test]
    fn drop_read_ignores_messages_not_sent_again() {
        let mut buffer = buffer(100, 3);
        buffer.rewind(0);
        assert_eq!(buffer.take_next().unwrap().seq, 0);
        buffer.drop_read(u64::MAX - 1);
        assert_eq!(buffer.entries.len(), 3, "the last message is not sent completely");
        buffer.mark_sent(5);
        buffer.drop_read(5);
        assert_eq!(take(&mut buffer), [1, 2]);
    }

    #[test]
    fn oldest_messages_are_dropped_beyond_the_limit() {
        let mut buffer = buffer(3, 5);
        buffer.rewind(0);
        assert_eq!(buffer.take_next().unwrap().seq, 2);
        // The same applies during a resend, from which the first message is missing.
        buffer.trim(2 * (8 + MESSAGE_COST));
        assert_eq!(take(&mut buffer), [3, 4]);
        buffer.trim(0);
        buffer.rewind(0);
        assert_eq!((take(&mut buffer).len(), buffer.len_bytes(), buffer.bytes.len()), (0, 0, 0));
    }
}
