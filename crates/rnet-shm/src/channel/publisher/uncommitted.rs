//! Messages of another host that came together: readers see some of them at once, so that the cost of showing them
//! and of looking who sleeps is theirs together.

use std::sync::atomic::Ordering;

use rnet_core::{Error, Meta, Origin};
use rnet_ring::MAX_COMMIT_RECORDS;

use super::{Writer, WriterLoan};
use crate::channel::extension::{Extension, words_of};
use crate::channel::word_file::Checkpoint;
use crate::os::barrier::RATE_WINDOW_MESSAGES;

/// Bytes of the log that are shown at once, so that a reader begins while others are still written.
const COMMIT_BATCH_LEN_BYTES: u64 = 4096;

/// Records that stand in the log, and that its readers do not see yet.
#[derive(Clone, Copy, Debug)]
struct Uncommitted {
    /// Where the last one stands, and where the log ends behind it.
    last: u64,
    end: u64,
    /// Where the log ends for readers, and how many messages it has for them.
    committed_end: u64,
    committed_seq: u64,
    /// When the first of them was written.
    now_ns: u64,
    /// Number of the message behind them at its origin.
    next_seq: Option<u64>,
}

/// What a writer knows of messages of another host.
#[derive(Debug, Default)]
pub struct Forwarding {
    uncommitted: Option<Uncommitted>,
    /// Where it says how far it has come.
    checkpoint: Option<Checkpoint>,
    /// Number of the message at its origin that follows the one that is being sent.
    next_origin_seq: Option<u64>,
}

fn next_origin_seq(meta: &Meta) -> Option<u64> {
    meta.origin.map(|origin| origin.seq.saturating_add(1))
}

impl Writer {
    /// As [`Writer::send_with`], of a message that was sent on another host at `sent_ns`. Readers may see it no earlier
    /// than [`Writer::commit_pending`] is called, or something else is sent.
    pub fn forward(&mut self, payload: &[u8], meta: &Meta, sent_ns: u64) -> Result<(), Error> {
        if meta.gap.is_none() {
            let (words, used) = Extension { meta: *meta, known_lost: 0 }.words();
            if self.write_uncommitted(&words[..used], payload, sent_ns, next_origin_seq(meta)) {
                return Ok(());
            }
        }
        self.forward_committed(payload, meta, sent_ns)
    }

    /// As [`Writer::forward`], of a message that carries nothing but its origin.
    pub fn forward_plain(
        &mut self,
        payload: &[u8],
        origin: Origin,
        sent_ns: u64,
    ) -> Result<(), Error> {
        let next_seq = Some(origin.seq.saturating_add(1));
        if self.write_uncommitted(&words_of(origin), payload, sent_ns, next_seq) {
            return Ok(());
        }
        self.forward_committed(payload, &Meta::default().with_origin(origin), sent_ns)
    }

    /// Writes a small message for which there is room, for readers to see with those that follow.
    #[inline(always)]
    fn write_uncommitted(
        &mut self,
        words: &[u64],
        payload: &[u8],
        sent_ns: u64,
        next_seq: Option<u64>,
    ) -> bool {
        if payload.len() >= self.inline_below || self.fork_guard.is_from_parent() {
            return false;
        }
        let stamper = &mut self.stamper;
        let (committed_end, committed_seq) = (self.log.tail(), self.log.seq());
        let uncommitted = self.forwarding.uncommitted.get_or_insert_with(|| Uncommitted {
            last: 0,
            // Of no log: there is nothing to show yet.
            end: u64::MAX,
            committed_end,
            committed_seq,
            now_ns: stamper.now_ns(),
            next_seq: None,
        });
        let sent_ns = sent_ns.min(uncommitted.now_ns);
        let Some(last) = self.log.write_extended(self.map.log(), sent_ns, words, payload) else {
            return false;
        };
        (uncommitted.last, uncommitted.end, uncommitted.next_seq) =
            (last, self.log.tail(), next_seq);
        if uncommitted.end - uncommitted.committed_end >= COMMIT_BATCH_LEN_BYTES
            || self.log.seq() - uncommitted.committed_seq == MAX_COMMIT_RECORDS
        {
            self.commit_pending();
        }
        true
    }

    /// As [`Writer::forward`], of a loan, which readers see at once; on error it is given back.
    #[expect(clippy::result_large_err, reason = "the loan goes back by value, without allocating")]
    pub fn forward_loan(
        &mut self,
        loan: WriterLoan,
        meta: &Meta,
        sent_ns: u64,
    ) -> Result<(), (WriterLoan, Error)> {
        self.commit_pending();
        self.forwarding.next_origin_seq = next_origin_seq(meta);
        let sent = self.send_loan_with(loan, meta, Some(sent_ns));
        self.forwarding.next_origin_seq = None;
        sent
    }

    fn forward_committed(
        &mut self,
        payload: &[u8],
        meta: &Meta,
        sent_ns: u64,
    ) -> Result<(), Error> {
        // Whoever has to make room has to be seen.
        self.commit_pending();
        self.forwarding.next_origin_seq = next_origin_seq(meta);
        let sent = self.send_with(payload, meta, Some(sent_ns));
        self.forwarding.next_origin_seq = None;
        sent
    }

    /// Has each message that is forwarded noted there once readers can see it, by the number behind its own at its
    /// origin: before they are woken, so that there is no time to be killed in between.
    pub fn set_checkpoint(&mut self, checkpoint: Option<Checkpoint>) {
        self.forwarding.checkpoint = checkpoint;
    }

    /// Says how far from the truth the stamps of the messages that are forwarded from now on may be, in ns; `None` if
    /// that is not known.
    pub fn set_uncertain_ns(&mut self, uncertain_ns: Option<u64>) {
        let uncertain_ns = uncertain_ns.unwrap_or(u64::MAX);
        self.map.control().flow.uncertain_ns.store(uncertain_ns, Ordering::Relaxed);
    }

    /// Notes the message that was appended just now, if it is one that is forwarded.
    pub(super) fn checkpoint_appended(&self) {
        self.checkpoint(self.forwarding.next_origin_seq);
    }

    #[inline]
    pub(super) fn checkpoint(&self, next_seq: Option<u64>) {
        if let (Some(checkpoint), Some(_)) = (&self.forwarding.checkpoint, next_seq) {
            checkpoint.set(next_seq);
        }
    }

    /// Shows readers what was forwarded, and wakes those that sleep.
    pub fn commit_pending(&mut self) {
        // What was sent since has shown it.
        let Some(uncommitted) = self
            .forwarding
            .uncommitted
            .take()
            .filter(|uncommitted| uncommitted.end == self.log.tail())
        else {
            return;
        };
        let flow = &self.map.control().flow;
        // Before: who sees the messages sees that they have come now.
        flow.forwarded_ns.store(uncommitted.now_ns, Ordering::Relaxed);
        self.log.commit(self.map.log(), uncommitted.last);
        self.checkpoint(uncommitted.next_seq);
        if self.log.seq() / RATE_WINDOW_MESSAGES != uncommitted.committed_seq / RATE_WINDOW_MESSAGES
        {
            self.update_send_rate();
        }
        self.wake();
    }
}
