//! The last will of a publisher: a message that its subscribers read after its process has died
//! (`channel/reader/last_will_delivery.rs`).
//!
//! It is stored in the publisher's file, in separate pages before the log. So every matched subscriber has it
//! mapped when the publisher dies, even if the file's name was removed. docs/design/shm-layout.md draws it.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use rnet_core::{Error, MAX_INLINE_LEN_BYTES};
use rnet_ring::fail_point;

use super::Writer;
use super::map::{PublisherMap, SLOTS_AT};

const SLOT_WORDS: usize = MAX_INLINE_LEN_BYTES / 8;
/// In the word: the length plus 1; 0 means no will.
const LEN: u64 = (1 << 16) - 1;
/// In the word: the slot that holds the will.
const SLOT: u64 = 1 << 16;
/// In the word: the change counter, in the bits above.
const CHANGE: u64 = 1 << 17;

/// How many times a read is repeated while a will is being changed.
const TRIES: usize = 8;

impl PublisherMap {
    fn will_word(&self) -> Option<&AtomicU64> {
        Some(self.map.get(self.will_at?))
    }

    fn will_slot(&self, word: u64) -> &[AtomicU64] {
        let at = self.will_at.unwrap_or_default() + SLOTS_AT;
        self.map.slice(at + usize::from(word & SLOT != 0) * MAX_INLINE_LEN_BYTES, SLOT_WORDS)
    }

    /// Length of the current last will in bytes; `None` if none is set.
    pub fn will_len(&self) -> Option<u64> {
        len_of(self.will_word()?.load(Ordering::Acquire)).map(|len| len as u64)
    }

    /// The version of the current last will: it differs after each change; `None` if none is set.
    pub fn will_change(&self) -> Option<u64> {
        let word = self.will_word()?.load(Ordering::Acquire);
        len_of(word).map(|_| word)
    }

    /// The last will; `None` if none is set, or if it keeps changing.
    pub fn will(&self) -> Option<Vec<u8>> {
        for _ in 0..TRIES {
            // SYNC-WILL: pairs with the release store in `PublisherMap::put_will`.
            let word = self.will_word()?.load(Ordering::Acquire);
            let message = len_of(word).map(|len| {
                let words = self.will_slot(word).iter().take(len.div_ceil(8));
                let mut bytes: Vec<u8> =
                    words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
                bytes.truncate(len);
                bytes
            });
            // SYNC-WILL: the copy above is complete before the word is read again.
            fence(Ordering::Acquire);
            if self.will_word()?.load(Ordering::Relaxed) == word {
                return message;
            }
        }
        None
    }
}

/// The length in the word, if it is valid for a will.
fn len_of(word: u64) -> Option<usize> {
    let len = usize::try_from(word & LEN).ok()?.checked_sub(1)?;
    (len <= MAX_INLINE_LEN_BYTES).then_some(len)
}

impl Writer {
    /// Sets the last will, or removes it. If the process dies at any moment, either the previous will or this
    /// one applies.
    pub fn set_will(&mut self, message: Option<&[u8]>) -> Result<(), Error> {
        self.check_fork()?;
        self.check_truncated()?;
        if self.map.will_at.is_none() {
            return Err(Error::BadValue {
                what: format!("last will on {}", self.topic),
                why: "the publisher was opened without a last will: set one when you open it, so \
                      that memory is reserved for it"
                    .to_owned(),
            });
        }
        check_will(&self.topic, message.unwrap_or_default())?;
        self.map.put_will(message);
        Ok(())
    }

    /// Ends as if its process had died: its large messages are dropped at once, and its last will stays.
    pub fn end_as_lost(&mut self) {
        (self.ends_as_lost, self.frees_unread) = (true, true);
    }

    /// Removes the last will of a publisher that is closed and not lost. This is the first step of its
    /// shutdown: a process that is killed later counts as having closed it.
    pub fn drop_will(&self) {
        if !self.ends_as_lost && self.map.will_len().is_some() {
            self.map.put_will(None);
        }
    }
}

impl PublisherMap {
    /// Called only by the publisher, with a message that fits in a slot.
    pub(super) fn put_will(&self, message: Option<&[u8]>) {
        let Some(word) = self.will_word() else { return };
        let next = word.load(Ordering::Relaxed) & !LEN;
        let next = (next ^ SLOT).wrapping_add(CHANGE);
        // SYNC-WILL: a reader that copies overwritten bytes also sees the word that names the other slot.
        fence(Ordering::Release);
        if let Some(message) = message {
            for (to, from) in self.will_slot(next).iter().zip(message.chunks(8)) {
                let mut bytes = [0; 8];
                bytes[..from.len()].copy_from_slice(from);
                to.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
            }
        }
        fail_point!("will.written");
        // SYNC-WILL: a reader that loads the word sees all of the will that it names.
        word.store(next | message.map_or(0, |message| message.len() as u64 + 1), Ordering::Release);
    }
}

/// Rejects a will that does not fit in a slot.
pub(super) fn check_will(topic: &str, message: &[u8]) -> Result<(), Error> {
    if message.len() <= MAX_INLINE_LEN_BYTES {
        return Ok(());
    }
    let (len, limit) = (message.len(), MAX_INLINE_LEN_BYTES);
    Err(Error::BadValue {
        what: format!("last will on {topic}"),
        why: format!(
            "it has {len} bytes; a last will has at most {limit}, regardless of the message limit: shorten it"
        ),
    })
}
