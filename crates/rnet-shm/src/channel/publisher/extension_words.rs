//! Sending messages with extension words, which carry more than the content, and known gaps of their
//! publisher.
//!
//! A known gap is recorded twice: in the publisher's first page, whose totals every reader finds however many
//! records it missed, and in the record at the position of the gap.

use std::sync::atomic::Ordering;

use rnet_core::{Error, KnownGap, Meta};
use rnet_ring::record::{MAX_EXTENSION_LEN_BYTES, RecordTag};
use rnet_ring::{PushError, RecordKind};

use super::{LogGate, Writer, WriterLoan};
use crate::channel::extension::{Extension, only_correlation, words_of_correlation};

const _: () = assert!(
    rnet_core::MAX_INLINE_LEN_BYTES + MAX_EXTENSION_LEN_BYTES
        < rnet_ring::layout::MIN_BLOCK_LEN_BYTES
);

impl Writer {
    /// Like [`Writer::send`], with the data that the message carries beside its content. `sent_ns` is when it
    /// was sent on another host, CLOCK_MONOTONIC of this host in ns; a time in the future counts as now.
    #[inline(never)]
    pub fn send_with(
        &mut self,
        payload: &[u8],
        meta: &Meta,
        sent_ns: Option<u64>,
    ) -> Result<(), Error> {
        self.check_fork()?;
        if payload.len() < self.inline_below {
            let len = payload.len() as u64;
            if sent_ns.is_none()
                && let Some(correlation) = only_correlation(meta)
                && self.commit_correlated(payload, correlation)
            {
                return Ok(());
            }
            return self
                .commit_extended(RecordKind::Inline.into(), payload, len, (meta, sent_ns))
                .map(drop);
        }
        let loan = self.loan_filled(payload)?;
        self.send_loan_with(loan, meta, sent_ns).map_err(|(loan, error)| {
            self.drop_loan(loan);
            error
        })
    }

    /// Like [`Writer::send_loan`], with the arguments of [`Writer::send_with`].
    #[cold]
    #[expect(clippy::result_large_err, reason = "the loan goes back by value, without allocating")]
    pub fn send_loan_with(
        &mut self,
        loan: WriterLoan,
        meta: &Meta,
        sent_ns: Option<u64>,
    ) -> Result<(), (WriterLoan, Error)> {
        self.send_loan_by(loan, |writer, tag, payload, len| {
            writer.commit_extended(tag, payload, len, (meta, sent_ns))
        })
    }

    /// Commits a small message of a call, whose words and payload are written directly into the log; `false`
    /// if that needs capacity that is not available, or another block, and then nothing was sent.
    #[inline]
    fn commit_correlated(&mut self, payload: &[u8], correlation: u64) -> bool {
        self.refresh_readers();
        let (now_ns, words) = (self.stamper.now_ns(), words_of_correlation(correlation));
        let Some(at) = self.log.write_extended(self.map.log(), now_ns, &words, payload) else {
            return false;
        };
        self.log.commit(self.map.log(), at);
        self.notify();
        true
    }

    fn commit_extended(
        &mut self,
        tag: RecordTag,
        payload: &[u8],
        counted_len: u64,
        (meta, sent_ns): (&Meta, Option<u64>),
    ) -> Result<u64, Error> {
        let known_lost = meta.gap.map_or(0, |gap| self.known_lost_with(gap));
        let mut bytes = std::mem::take(&mut self.extended);
        Extension { meta: *meta, known_lost }.write_to(&mut bytes);
        bytes.extend_from_slice(payload);
        let tag = RecordTag { extended: true, ..tag };
        let committed = match sent_ns {
            None => self.commit(tag, &bytes, counted_len),
            Some(sent_ns) => self.commit_forwarded(tag, sent_ns, &bytes, counted_len),
        };
        self.extended = bytes;
        let position = committed?;
        // After the send: a message that was not sent is not counted.
        if let Some(gap) = meta.gap {
            self.raise_known_lost(gap);
        }
        Ok(position)
    }

    /// Like [`Writer::commit`], for a message that was sent elsewhere at `sent_ns`.
    fn commit_forwarded(
        &mut self,
        tag: RecordTag,
        sent_ns: u64,
        payload: &[u8],
        counted_len: u64,
    ) -> Result<u64, Error> {
        self.refresh_readers();
        let now_ns = self.stamper.now_ns();
        match self.push_forwarded(tag, (now_ns, sent_ns), payload, counted_len) {
            Ok(position) => {
                self.notify();
                Ok(position)
            }
            Err(_) => self.commit_with_wait(tag, payload, counted_len, Some(sent_ns)),
        }
    }

    /// Appends a record of a message that was sent on another host.
    pub(super) fn push_forwarded(
        &mut self,
        tag: RecordTag,
        (now_ns, sent_ns): (u64, u64),
        payload: &[u8],
        counted_len: u64,
    ) -> Result<u64, PushError> {
        // Before the commit: a reader that sees the message also sees its arrival time.
        self.map.control().flow.forwarded_ns.store(now_ns, Ordering::Relaxed);
        let stamps = (now_ns, sent_ns.min(now_ns));
        let mut gate = LogGate {
            readers: &self.readers,
            reader_table: &self.reader_table,
            map: &self.map,
            path: &self.path,
            history: self.history,
        };
        let position = self.log.push_forwarded(
            self.map.log(),
            tag,
            stamps,
            payload,
            counted_len,
            &mut gate,
        )?;
        self.checkpoint_appended();
        Ok(position)
    }

    /// Makes every reader count missing messages, without a message, and wakes sleeping readers. For messages
    /// of another host, `next_seq`, the number after the missing ones, is stored in the checkpoint
    /// ([`Writer::set_checkpoint`]).
    pub fn publish_gap(&mut self, gap: KnownGap, next_seq: Option<u64>) -> Result<(), Error> {
        self.check_fork()?;
        self.check_truncated()?;
        self.commit_pending();
        self.refresh_readers();
        self.raise_known_lost(gap);
        self.checkpoint(next_seq);
        self.wake();
        Ok(())
    }

    fn known_lost_with(&self, gap: KnownGap) -> u64 {
        let sum = &self.map.control().head.known_lost[gap.cause as usize];
        sum.load(Ordering::Relaxed).saturating_add(gap.size)
    }

    fn raise_known_lost(&self, gap: KnownGap) {
        let sum = self.known_lost_with(gap);
        self.map.control().head.known_lost[gap.cause as usize].store(sum, Ordering::Release);
    }
}
