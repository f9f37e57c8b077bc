//! Reassembles a large message from its fragments: in memory of its publisher here, so that subscribers
//! read it in place, or in a separate buffer if it must be decompressed, has to wait, or finds no idle
//! memory. The first fragment takes only idle memory: announcing a message costs neither memory nor an
//! earlier message.

use rnet::bridge::BridgePublisher;
use rnet::{Error, LossCause, Meta, OwnedLoan, Publisher, Result};

use super::{MESSAGE_COST, Proxy};
use crate::wire::{Fragment, PartBuffer, PartStatus, ReassemblyProgress, WireError, decompress};

/// A partly received large message.
#[derive(Debug)]
pub struct IncomingLargeMessage {
    progress: ReassemblyProgress<u64>,
    parts: PartBuffer,
    /// The loan for its fragments, if the publisher's memory holds them.
    pub(super) loan: Option<OwnedLoan>,
}

impl IncomingLargeMessage {
    /// For messages of at most `limit` bytes.
    pub fn new(limit: usize) -> IncomingLargeMessage {
        IncomingLargeMessage {
            progress: ReassemblyProgress::new(limit),
            parts: PartBuffer::default(),
            loan: None,
        }
    }

    pub fn is_under_way(&self) -> bool {
        self.progress.under_way_len_bytes().is_some()
    }
}

impl Proxy {
    /// Adds a fragment of an expected message. The last one publishes the message like [`Proxy::publish`],
    /// with the same errors.
    ///
    /// # Errors
    /// The fragment does not follow the previous one, or the message cannot be decompressed.
    pub fn add_fragment(
        &mut self,
        fragment: &Fragment<'_>,
        sent_ns: u64,
    ) -> std::result::Result<Result<()>, WireError> {
        let (seq, total, offset, bytes) =
            (fragment.seq, fragment.total, fragment.offset, fragment.bytes);
        let PartStatus { begins, ends, abandoned } =
            self.large.progress.add(seq, total, offset, bytes.len())?;
        self.add_received(bytes.len() as u64);
        if let Some(before) = abandoned {
            self.discard_loan();
            self.gap(before, 1, LossCause::Link);
        }
        if begins && !fragment.compressed && !self.is_blocked() {
            let lend = |publisher: &mut Publisher<[u8]>| publisher.loan_idle(total as usize);
            self.large.loan = self.publisher.as_mut().and_then(lend);
            if self.large.loan.is_some() {
                self.large.parts = PartBuffer::default();
            }
        }
        match (&mut self.large.loan, &mut self.publisher) {
            (Some(loan), Some(publisher)) => {
                // Both are below the total, which is the length of the loan.
                let place = offset as usize..offset as usize + bytes.len();
                let room = publisher.loaned(loan).get_mut(place);
                debug_assert!(room.is_some(), "a loan of this publisher has all its bytes");
                if let Some(room) = room {
                    room.copy_from_slice(bytes);
                }
            }
            _ => self.large.parts.add(bytes, total, begins),
        }
        if !ends {
            return Ok(Ok(()));
        }
        self.add_received(MESSAGE_COST);
        if let Some(loan) = self.large.loan.take() {
            return Ok(self.publish_loan(seq, sent_ns, fragment.meta, loan));
        }
        let parts = std::mem::take(&mut self.large.parts);
        let published = match fragment.compressed {
            false => self.publish(seq, sent_ns, fragment.meta, parts.bytes(), None),
            true => {
                let mut message = Vec::new();
                decompress(parts.bytes(), self.limit, &mut message)?;
                self.publish(seq, sent_ns, fragment.meta, &message, Some(parts.bytes()))
            }
        };
        self.large.parts = parts;
        Ok(published)
    }

    /// Like [`Proxy::publish`], for a message in memory of the publisher.
    fn publish_loan(
        &mut self,
        seq: u64,
        sent_ns: u64,
        meta: Meta,
        mut loan: OwnedLoan,
    ) -> Result<()> {
        if !self.is_new(seq) {
            self.drop_loan(loan);
            return Ok(());
        }
        let meta = self.local_meta(seq, meta);
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        let len = publisher.loaned(&mut loan).len();
        if self.waiting.is_empty() {
            match publisher.forward_loan(loan, meta, sent_ns) {
                Ok(()) => return self.count_published(len, Ok(())),
                Err((back, Error::Full { .. })) => loan = back,
                Err((back, error)) => {
                    publisher.drop_loan(back);
                    return self.count_published(len, Err(error));
                }
            }
        }
        let bytes = publisher.loaned(&mut loan).to_vec();
        publisher.drop_loan(loan);
        self.wait_for_room(seq, sent_ns, meta, bytes, false)
    }

    /// The size of incomplete large messages, in bytes; if `all` is requested, memory kept for the next one
    /// is freed.
    pub fn partial_len_bytes(&mut self, all: bool) -> u64 {
        let under_way = self.large.progress.under_way_len_bytes();
        if all && under_way.is_none() {
            self.large.parts = PartBuffer::default();
        }
        under_way.unwrap_or(0).max(self.large.parts.capacity_bytes())
    }

    /// Drops an incomplete message as lost: the next item is not its fragment.
    pub fn interrupt(&mut self) {
        if let Some(before) = self.large.progress.give_up() {
            self.discard_loan();
            self.gap(before, 1, LossCause::Link);
        }
    }

    /// Drops a message that begins and the incomplete one: both are lost.
    pub fn drop_large(&mut self, seq: u64) {
        self.interrupt();
        self.reset_large();
        self.gap(seq, 1, LossCause::Link);
    }

    /// Resets the state: no more fragments of an incomplete message will arrive.
    pub(super) fn reset_large(&mut self) {
        self.discard_loan();
        self.large = IncomingLargeMessage::new(self.limit);
    }

    fn discard_loan(&mut self) {
        if let Some(loan) = self.large.loan.take() {
            self.drop_loan(loan);
        }
    }

    fn drop_loan(&mut self, loan: OwnedLoan) {
        if let Some(publisher) = &mut self.publisher {
            publisher.drop_loan(loan);
        }
    }
}
