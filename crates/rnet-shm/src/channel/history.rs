//! What a reader passes over by its own choice, and how far it is behind.
//!
//! A reader that keeps the last few messages passes over a message once more than that many have
//! been committed from it on, as of the moment at which it would be handed out. What it passes over
//! is counted as skipped, and so is what the log lost before the reader looked, as far as it would
//! have been passed over anyway: a loss is only what the reader still wanted.

use std::sync::atomic::Ordering;

use rnet_core::Behind;
use rnet_ring::admission;
use rnet_ring::follower::Gap;

use super::{Reader, Trouble};
use crate::clock;
use crate::tally::bump;

impl Reader {
    /// Whether newer messages have taken the place of message `seq`. A comparison for a reader that
    /// keeps all; for others a look at the log's end as it is now, not as it was when the batch was
    /// copied: between two messages of a batch the user may have slept.
    #[inline]
    pub(super) fn passes_over(&self, seq: u64) -> bool {
        self.keep_last != u64::MAX && self.is_beyond(seq)
    }

    /// Out of line, so that readers which keep all pay for the comparison alone.
    #[inline(never)]
    fn is_beyond(&self, seq: u64) -> bool {
        let end = self.map.control().tail.seq.load(Ordering::Relaxed);
        let newer = end.saturating_sub(seq);
        newer > self.keep_last && (newer - self.keep_last > 1 || self.is_beyond_the_committed(seq))
    }

    /// The number at the end of the log is stored before the message is committed. A writer that
    /// died in between must not cost the reader the oldest of those that it keeps.
    #[cold]
    fn is_beyond_the_committed(&self, seq: u64) -> bool {
        let end = self.map.log().end();
        end.is_some_and(|(_, end)| end.saturating_sub(seq) > self.keep_last)
    }

    /// Counts a message that is passed over, and goes on behind it.
    #[cold]
    pub(super) fn skip(&mut self, seq: u64) {
        let count = &self.slot.page().count;
        bump(&count.skipped, 1);
        count.next_seq.store(seq.wrapping_add(1), Ordering::Relaxed);
    }

    /// Counts what the log lost before message `seq`.
    #[inline]
    pub(super) fn count_gap(&mut self, seq: u64) {
        let lost = self.log.take_lost();
        if lost != 0 {
            self.count_lost(lost, seq);
        }
    }

    #[cold]
    fn count_lost(&self, lost: u64, seq: u64) {
        let count = &self.slot.page().count;
        let end = self.map.control().tail.seq.load(Ordering::Relaxed);
        let unwanted =
            end.saturating_sub(self.keep_last).saturating_sub(seq.saturating_sub(lost)).min(lost);
        bump(&count.skipped, unwanted);
        let cause = match self.follower.gap(self.admissions()) {
            Gap::Detached => &count.lost_detached,
            Gap::Overrun => &count.lost_overrun,
        };
        bump(cause, lost - unwanted);
        count.next_seq.store(seq, Ordering::Relaxed);
    }

    /// Goes to the newest message, which [`Reader::take`] then hands out and [`Reader::pass_over`]
    /// does not, and passes over those before it. Says when it was sent.
    pub fn find_newest(&mut self) -> Result<Option<u64>, Trouble> {
        if !self.prepare()? {
            return Ok(None);
        }
        let newest = self.map.control().tail.last.load(Ordering::Acquire);
        if newest > self.log.position() {
            self.pass_over();
            self.log.seek_newest(self.map.log());
        }
        let Some(record) = self.next_record()? else {
            self.found_nothing()?;
            return Ok(None);
        };
        let count = &self.slot.page().count;
        bump(&count.skipped, self.log.take_lost());
        count.next_seq.store(record.seq, Ordering::Relaxed);
        self.withheld = Some(record);
        Ok(Some(record.time_ns))
    }

    /// Passes over the message that [`Reader::find_newest`] went to, or that waits for a pin.
    pub fn pass_over(&mut self) {
        let Some(record) = self.withheld.take() else { return };
        self.slot.forget_pin();
        self.skip(record.seq);
        if self.reliable {
            self.show_if_awaited(record.kind);
        }
    }

    /// Lets go of what was committed and not read yet, of a publisher that is gone: what was still wanted
    /// is counted as lost with it.
    pub fn give_up(&mut self) {
        let end = self.map.control().tail.tail.load(Ordering::Acquire);
        while self.withheld.is_some() || self.log.position() < end {
            let Ok(Some(record)) = self.next_record() else { break };
            self.count_gap(record.seq);
            if self.passes_over(record.seq) {
                self.skip(record.seq);
            } else {
                let count = &self.slot.page().count;
                bump(&count.lost_restart, 1);
                count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
            }
        }
    }

    /// How far it is behind its publisher.
    pub fn behind(&self) -> Behind {
        if self.is_asking()
            && let Some((_, grant, _)) = admission::find(self.admissions(), self.follower.ask())
        {
            return self.map.behind(grant.start, grant.start_seq);
        }
        let position = self.log.position();
        match (&self.withheld, self.log.next_seq()) {
            (Some(record), _) => Behind {
                age_ns: clock::now_ns().saturating_sub(record.time_ns),
                ..self.map.behind(position, record.seq)
            },
            (None, Some(next)) => self.map.behind(position, next),
            (None, None) => Behind::default(),
        }
    }
}
