//! What a publisher offers for the sake of what forwards messages between hosts.

use rnet_core::{Error, KnownGap, LossCause, Meta, Origin, Result};

use rnet_shm::channel::word_file::Checkpoint;

use super::{Loan, OwnedLoan, Publisher};
use crate::{Message, PeerInfo};

#[doc(hidden)]
impl<T: Message + ?Sized> Publisher<T> {
    /// Closes the publisher as if its process had died: subscribers that have read it to the end get `PeerLost`, and
    /// all who are told of endpoints and matches are told that it was lost. For a proxy, when the node for which it
    /// stands is lost. Large messages that were not read yet go with it, and are counted as lost.
    pub fn close_as_lost(mut self) {
        if self.writer.fork_guard().is_from_parent() {
            return;
        }
        self.writer.end_as_lost();
        self.core.state.matching().remove_as_lost(self.id);
    }

    /// The subscriptions that wait for [`Publisher::admit`]; empty unless the publisher defers.
    pub fn awaiting_admission(&self) -> Vec<PeerInfo> {
        self.state.lock().awaiting_admission.clone()
    }

    /// Admits a subscription, now or when it asks; for a publisher that defers. The subscription counts once
    /// [`MatchEvent::Matched`](crate::MatchEvent::Matched) says so.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn admit(&self, subscription: u64) -> Result<()> {
        self.core.state.admit(self.id, subscription)
    }
}

#[doc(hidden)]
impl Publisher<[u8]> {
    /// Sends a message of another host: as [`Publisher::send_with`], but with the timestamp `sent_ns` of its first
    /// send, in ns of CLOCK_MONOTONIC of this host. A future timestamp counts as now. Latency and lifespan use this
    /// timestamp, deadlines and liveliness the time of this call.
    ///
    /// # Errors
    /// As [`Publisher::send_with`].
    pub fn forward(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.send_with(message, &meta, Some(sent_ns))
    }

    /// As [`Publisher::forward`], of a message that others may follow at once: subscribers get it no later than
    /// [`Publisher::commit`] is called, which has to be after the last of them.
    ///
    /// # Errors
    /// As [`Publisher::send_with`].
    pub fn forward_uncommitted(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.forward(message, &meta, sent_ns)
    }

    /// As [`Publisher::forward_uncommitted`], of a message that carries nothing but its origin.
    ///
    /// # Errors
    /// As [`Publisher::send_with`].
    #[inline]
    pub fn forward_plain(&mut self, message: &[u8], origin: Origin, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.forward_plain(message, origin, sent_ns)
    }

    /// Shows subscribers what [`Publisher::forward_uncommitted`] was given.
    pub fn commit(&mut self) {
        self.writer.commit_pending();
    }

    /// As [`Publisher::publish_gap`], of messages of another host up to the one with the number `next_seq`, which is noted
    /// where [`Publisher::set_checkpoint`] says.
    pub fn forward_gap(
        &mut self,
        cause: LossCause,
        size: u64,
        next_seq: Option<u64>,
    ) -> Result<()> {
        self.writer.publish_gap(KnownGap { cause, size }, next_seq)
    }

    /// Has each message of [`Publisher::forward_uncommitted`] noted there as soon as subscribers can see it, by the number
    /// behind its own at its origin.
    pub fn set_checkpoint(&mut self, checkpoint: Option<Checkpoint>) {
        self.writer.set_checkpoint(checkpoint);
    }

    /// Says how far from the truth the stamps of messages that are forwarded from now on may be, in ns; `None` if that
    /// is not known. [`Sample::sent_uncertainty_ns`](crate::Sample::sent_uncertainty_ns) shows it.
    pub fn set_sent_uncertainty_ns(&mut self, uncertain_ns: Option<u64>) {
        self.writer.set_uncertain_ns(uncertain_ns);
    }

    /// Whether a send or a loan may wait for slow subscribers, as [`rnet_core::OnFull`] says; `true` if this is not
    /// called. Where it may not, what would have waited fails with `Full` at once, and one that would have ended in
    /// letting a subscriber go does so: under `OnFull::Detach` the first that finds it to have stood still for the
    /// stall, counted from the first `Full` after which no send succeeded.
    pub fn set_waiting(&mut self, yes: bool) {
        self.writer.set_waiting(yes);
    }

    /// As [`Publisher::loan_owned`], of memory that the publisher has and that nobody needs any more; `None` if there is
    /// none. It never waits, takes no memory, and ends no message that a subscriber may still read.
    pub fn loan_idle(&mut self, len: usize) -> Option<OwnedLoan> {
        self.check_len(len).ok()?;
        Some(OwnedLoan { publisher: self.id, loan: self.writer.loan_idle(len)? })
    }

    /// As [`Publisher::forward_uncommitted`], of a loan, which subscribers get at once; on error it comes back.
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
    /// As [`Publisher::forward`], of a loan; on error it comes back.
    pub fn forward(self, meta: Meta, sent_ns: u64) -> Result<(), (Loan<'a>, Error)> {
        self.send_by(|writer, loan| writer.send_loan_with(loan, &meta, Some(sent_ns)))
    }
}
