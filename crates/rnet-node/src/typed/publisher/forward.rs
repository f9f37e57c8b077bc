//! Publisher functions for programs that forward messages between hosts.

use rnet_core::{Error, KnownGap, LossCause, Meta, Origin, Result};

use rnet_shm::channel::word_file::Checkpoint;

use super::{Loan, OwnedLoan, Publisher};
use crate::{Message, PeerInfo};

#[doc(hidden)]
impl<T: Message + ?Sized> Publisher<T> {
    /// Closes the publisher as if its process had died: subscribers that have read it to the end get
    /// `PeerLost`, and watchers of endpoints and matches see it as lost. Used for a proxy whose represented
    /// node is lost. Unread large messages are freed, and counted as lost.
    pub fn close_as_lost(mut self) {
        if self.writer.fork_guard().is_from_parent() {
            return;
        }
        self.writer.end_as_lost();
        self.core.state.matching().remove_as_lost(self.id);
    }

    /// The subscriptions that wait for [`Publisher::admit`]; empty unless the publisher defers admission.
    pub fn awaiting_admission(&self) -> Vec<PeerInfo> {
        self.state.lock().awaiting_admission.clone()
    }

    /// Admits a subscription, now or when it asks; for a publisher that defers admission. The subscription
    /// counts once it is reported by [`MatchEvent::Matched`](crate::MatchEvent::Matched).
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn admit(&self, subscription: u64) -> Result<()> {
        self.core.state.admit(self.id, subscription)
    }
}

#[doc(hidden)]
impl Publisher<[u8]> {
    /// Sends a message of another host: as [`Publisher::send_with`], but with the timestamp `sent_ns` of its
    /// first send, in ns of CLOCK_MONOTONIC of this host. A future timestamp counts as now. Latency and
    /// lifespan use this timestamp, deadlines and liveliness the time of this call.
    ///
    /// # Errors
    /// As [`Publisher::send_with`].
    pub fn forward(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.send_with(message, &meta, Some(sent_ns))
    }

    /// As [`Publisher::forward`], for a message that others may follow at once. Subscribers get it at the
    /// latest when [`Publisher::commit`] is called, which must be called after the last of them.
    ///
    /// # Errors
    /// As [`Publisher::send_with`].
    pub fn forward_uncommitted(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.forward(message, &meta, sent_ns)
    }

    /// As [`Publisher::forward_uncommitted`], for a message without metadata other than its origin.
    ///
    /// # Errors
    /// As [`Publisher::send_with`].
    #[inline]
    pub fn forward_plain(&mut self, message: &[u8], origin: Origin, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.forward_plain(message, origin, sent_ns)
    }

    /// Makes the messages of [`Publisher::forward_uncommitted`] visible to subscribers.
    pub fn commit(&mut self) {
        self.writer.commit_pending();
    }

    /// As [`Publisher::publish_gap`], for messages of another host up to number `next_seq`, which is stored
    /// in the checkpoint of [`Publisher::set_checkpoint`].
    pub fn forward_gap(
        &mut self,
        cause: LossCause,
        size: u64,
        next_seq: Option<u64>,
    ) -> Result<()> {
        self.writer.publish_gap(KnownGap { cause, size }, next_seq)
    }

    /// Stores the position of each message of [`Publisher::forward_uncommitted`] in `checkpoint` as soon as
    /// subscribers can see it: one more than its number at its origin.
    pub fn set_checkpoint(&mut self, checkpoint: Option<Checkpoint>) {
        self.writer.set_checkpoint(checkpoint);
    }

    /// Sets the uncertainty of the stamps of messages forwarded from now on, in ns; `None` if unknown. Read
    /// it with [`Sample::sent_uncertainty_ns`](crate::Sample::sent_uncertainty_ns).
    pub fn set_sent_uncertainty_ns(&mut self, uncertain_ns: Option<u64>) {
        self.writer.set_uncertain_ns(uncertain_ns);
    }

    /// Sets whether a send or a loan may wait for slow subscribers, as [`rnet_core::OnFull`] specifies; the
    /// default is `true`. With `false`, a send that would wait fails with `Full` at once. Under
    /// `OnFull::Detach` a send still evicts a subscriber: the first send that finds no progress for the stall
    /// limit, counted from the first `Full` after which no send succeeded.
    pub fn set_waiting(&mut self, yes: bool) {
        self.writer.set_waiting(yes);
    }

    /// As [`Publisher::loan_owned`], but only from memory that the publisher already has and no longer needs;
    /// `None` if it has none. It never waits, takes no memory, and frees no message that a subscriber may
    /// still read.
    pub fn loan_idle(&mut self, len: usize) -> Option<OwnedLoan> {
        self.check_len(len).ok()?;
        Some(OwnedLoan { publisher: self.id, loan: self.writer.loan_idle(len)? })
    }

    /// As [`Publisher::forward_uncommitted`], for a loan, which subscribers get at once. On error the loan is
    /// returned.
    pub fn forward_loan(
        &mut self,
        loan: OwnedLoan,
        meta: Meta,
        sent_ns: u64,
    ) -> Result<(), (OwnedLoan, Error)> {
        self.send_loan_by(loan, |writer, loan| writer.forward_loan(loan, &meta, sent_ns))
    }
}

#[doc(hidden)]
impl<'a> Loan<'a> {
    /// As [`Publisher::forward`], for a loan. On error the loan is returned.
    pub fn forward(self, meta: Meta, sent_ns: u64) -> Result<(), (Loan<'a>, Error)> {
        self.send_by(|writer, loan| writer.send_loan_with(loan, &meta, Some(sent_ns)))
    }
}
