//! The last will of a publisher that has died: the message that is read after all others.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::Meta;
use rnet_ring::RecordKind;
use rnet_ring::record::Record;

use super::Reader;
use crate::channel::extension::Extension;
use crate::os::clock;

impl Reader {
    /// Whether the publisher has died and its last will is still unread.
    #[inline]
    pub fn has_will(&self) -> bool {
        self.died && !self.will_read && self.map.will_len().is_some()
    }

    /// The version of the publisher's current last will: it differs after each change; `None` if none is set.
    pub fn will_change(&self) -> Option<u64> {
        self.map.will_change()
    }

    /// The publisher's current last will; `None` if none is set, or it keeps changing.
    pub fn will(&self) -> Option<Vec<u8>> {
        self.map.will()
    }

    /// Makes the last will the next record, if its turn has come. The batch must be used up: the will
    /// replaces what was copied from the log.
    #[inline]
    pub(super) fn take_will(&mut self) -> Option<Record> {
        if self.has_will() { self.read_will() } else { None }
    }

    #[cold]
    fn read_will(&mut self) -> Option<Record> {
        self.will_read = true;
        let message = self.map.will()?;
        let batch = Arc::get_mut(&mut self.batch)?;
        let meta = Meta::default().as_last_will();
        let mut bytes = Vec::new();
        Extension { meta, known_lost: 0 }.write_to(&mut bytes);
        let words = bytes.len();
        bytes.extend_from_slice(&message);
        for (to, from) in batch.0.iter_mut().zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word[..from.len()].copy_from_slice(from);
            *to = u64::from_ne_bytes(word);
        }
        self.taken_ns = clock::now_ns();
        // A reader that was never admitted was promised no earlier messages.
        let sent = &self.map.control().tail.seq;
        let seq = self.log.next_seq().unwrap_or_else(|| sent.load(Ordering::Acquire));
        self.log.note_extended(seq, words);
        Some(Record {
            kind: RecordKind::Inline,
            seq,
            time_ns: self.taken_ns,
            offset: words,
            len: message.len(),
        })
    }
}
