//! The message that a reader has just taken.

use std::fmt;

use rnet_core::Meta;

use super::Reader;
use crate::channel::received::{Payload, Stamp};

impl Reader {
    /// The message that the last successful [`Reader::take`] went on to.
    #[inline]
    pub fn current(&mut self) -> ReceivedMessage<'_> {
        ReceivedMessage { reader: self }
    }
}

/// A message just taken, still in the channel's hands. No more than a borrow of it: what is copied
/// on its way through three layers would cost more than all else that a small message takes. So
/// the channel holds a large message until its next take.
pub struct ReceivedMessage<'a> {
    reader: &'a mut Reader,
}

impl ReceivedMessage<'_> {
    /// The message.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let Reader { current, pinned, batch, .. } = &*self.reader;
        match pinned {
            None => batch.bytes(current.offset, current.len),
            Some(pinned) => pinned.bytes(),
        }
    }

    /// The message in the reader's own copy of the log, which its publisher cannot change; `None` for a large message,
    /// which is read in its publisher's memory.
    #[inline]
    pub fn copied_bytes(&self) -> Option<&[u8]> {
        let Reader { current, pinned, batch, .. } = &*self.reader;
        pinned.is_none().then(|| batch.bytes(current.offset, current.len))
    }

    /// Who sent it, and when.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        let Reader { publisher, current, taken_ns, .. } = &*self.reader;
        Stamp {
            publisher: *publisher,
            seq: current.seq,
            sent_ns: current.time_ns,
            taken_ns: *taken_ns,
        }
    }

    /// The channel that it came by.
    pub fn channel(&self) -> &Reader {
        self.reader
    }

    /// What it carries beside its content.
    #[inline]
    pub fn meta(&self) -> Meta {
        if !self.has_meta() {
            return Meta::default();
        }
        self.reader.extension_of(&self.reader.current).meta
    }

    /// Whether it carries anything beside its content.
    #[inline]
    pub fn has_meta(&self) -> bool {
        self.reader.log.is_extended(&self.reader.current)
    }

    /// Keeps the message beyond the next take.
    pub fn into_payload(self) -> Payload {
        let current = self.reader.current;
        match self.reader.pinned.take() {
            Some(pinned) => Payload::InPlace(pinned),
            None => Payload::Copied {
                batch: self.reader.batch.clone(),
                offset: current.offset,
                len: current.len,
            },
        }
    }
}

impl fmt::Debug for ReceivedMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedMessage")
            .field("stamp", &self.stamp())
            .field("bytes", &self.bytes())
            .finish()
    }
}
