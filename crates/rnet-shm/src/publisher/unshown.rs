//! Messages of another host that came together: readers see some of them at once, so that the cost of showing them
//! and of looking who sleeps is theirs together.

use std::sync::atomic::Ordering;

use rnet_core::{Error, Meta, Origin};
use rnet_ring::SHOWN_AT_ONCE;

use super::{Loaned, Writer};
use crate::barrier::PACE;
use crate::extension::{Extension, words_of};
use crate::words::Mark;

/// Bytes of the log that are shown at once, so that a reader begins while others are still written.
const SHOWN_LEN_BYTES: u64 = 4096;

/// Records that stand in the log, and that its readers do not see yet.
#[derive(Clone, Copy, Debug)]
struct Unshown {
    /// Where the last one stands, and where the log ends behind it.
    last: u64,
    end: u64,
    /// Where the log ends for readers, and how many messages it has for them.
    shown_end: u64,
    shown_seq: u64,
    /// When the first of them was written.
    now_ns: u64,
    /// Number of the message behind them at its origin.
    next_seq: Option<u64>,
}

/// What a writer knows of messages of another host.
#[derive(Debug, Default)]
pub struct Forwarding {
    unshown: Option<Unshown>,
    /// Where it says how far it has come.
    mark: Option<Mark>,
    /// Number of the message at its origin that follows the one that is being sent.
    behind: Option<u64>,
}

fn behind(meta: &Meta) -> Option<u64> {
    meta.origin.map(|origin| origin.seq.saturating_add(1))
}

impl Writer {
    /// As [`Writer::send_with`], of a message that was sent on another host at `sent_ns`. Readers may see it no earlier
    /// than [`Writer::show`] is called, or something else is sent.
    pub fn forward(&mut self, payload: &[u8], meta: &Meta, sent_ns: u64) -> Result<(), Error> {
        if meta.gap.is_none() {
            let (words, used) = Extension { meta: *meta, known_lost: 0 }.words();
            if self.write_unshown(&words[..used], payload, sent_ns, behind(meta)) {
                return Ok(());
            }
        }
        self.forward_shown(payload, meta, sent_ns)
    }

    /// As [`Writer::forward`], of a message that carries nothing but its origin.
    pub fn forward_plain(
        &mut self,
        payload: &[u8],
        origin: Origin,
        sent_ns: u64,
    ) -> Result<(), Error> {
        let next_seq = Some(origin.seq.saturating_add(1));
        if self.write_unshown(&words_of(origin), payload, sent_ns, next_seq) {
            return Ok(());
        }
        self.forward_shown(payload, &Meta::default().with_origin(origin), sent_ns)
    }

    /// Writes a small message for which there is room, for readers to see with those that follow.
    #[inline(always)]
    fn write_unshown(
        &mut self,
        words: &[u64],
        payload: &[u8],
        sent_ns: u64,
        next_seq: Option<u64>,
    ) -> bool {
        if payload.len() >= self.inline_below || self.fork_guard.is_parents() {
            return false;
        }
        let stamper = &mut self.stamper;
        let (shown_end, shown_seq) = (self.log.tail(), self.log.seq());
        let unshown = self.forwarding.unshown.get_or_insert_with(|| Unshown {
            last: 0,
            // Of no log: there is nothing to show yet.
            end: u64::MAX,
            shown_end,
            shown_seq,
            now_ns: stamper.now_ns(),
            next_seq: None,
        });
        let sent_ns = sent_ns.min(unshown.now_ns);
        let Some(last) = self.log.write_extended(self.map.log(), sent_ns, words, payload) else {
            return false;
        };
        (unshown.last, unshown.end, unshown.next_seq) = (last, self.log.tail(), next_seq);
        if unshown.end - unshown.shown_end >= SHOWN_LEN_BYTES
            || self.log.seq() - unshown.shown_seq == SHOWN_AT_ONCE
        {
            self.show();
        }
        true
    }

    /// As [`Writer::forward`], of a loan, which readers see at once; on error it is given back.
    #[expect(clippy::result_large_err, reason = "the loan goes back by value, without allocating")]
    pub fn forward_loan(
        &mut self,
        loan: Loaned,
        meta: &Meta,
        sent_ns: u64,
    ) -> Result<(), (Loaned, Error)> {
        self.show();
        self.forwarding.behind = behind(meta);
        let sent = self.send_loan_with(loan, meta, Some(sent_ns));
        self.forwarding.behind = None;
        sent
    }

    fn forward_shown(&mut self, payload: &[u8], meta: &Meta, sent_ns: u64) -> Result<(), Error> {
        // Whoever has to make room has to be seen.
        self.show();
        self.forwarding.behind = behind(meta);
        let sent = self.send_with(payload, meta, Some(sent_ns));
        self.forwarding.behind = None;
        sent
    }

    /// Has each message that is forwarded noted there once readers can see it, by the number behind its own at its
    /// origin: before they are woken, so that there is no time to be killed in between.
    pub fn set_mark(&mut self, mark: Option<Mark>) {
        self.forwarding.mark = mark;
    }

    /// Says how far from the truth the stamps of the messages that are forwarded from now on may be, in ns; `None` if
    /// that is not known.
    pub fn set_uncertain_ns(&mut self, uncertain_ns: Option<u64>) {
        let uncertain_ns = uncertain_ns.unwrap_or(u64::MAX);
        self.map.control().flow.uncertain_ns.store(uncertain_ns, Ordering::Relaxed);
    }

    /// Notes the message that was appended just now, if it is one that is forwarded.
    pub(super) fn mark_appended(&self) {
        self.mark(self.forwarding.behind);
    }

    #[inline]
    pub(super) fn mark(&self, next_seq: Option<u64>) {
        if let (Some(mark), Some(_)) = (&self.forwarding.mark, next_seq) {
            mark.set(next_seq);
        }
    }

    /// Shows readers what was forwarded, and wakes those that sleep.
    pub fn show(&mut self) {
        // What was sent since has shown it.
        let Some(unshown) =
            self.forwarding.unshown.take().filter(|unshown| unshown.end == self.log.tail())
        else {
            return;
        };
        let flow = &self.map.control().flow;
        // Before: who sees the messages sees that they have come now.
        flow.forwarded_ns.store(unshown.now_ns, Ordering::Relaxed);
        self.log.show(self.map.log(), unshown.last);
        self.mark(unshown.next_seq);
        if self.log.seq() / PACE != unshown.shown_seq / PACE {
            self.take_pace();
        }
        self.wake();
    }
}
