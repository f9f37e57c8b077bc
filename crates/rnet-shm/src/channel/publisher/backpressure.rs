//! What a publisher does while a reliable reader holds it back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rnet_core::{Error, OnFull};
use rnet_ring::fail_point;
use rnet_ring::sync::FullFences;

use super::Writer;
use crate::channel::reader_table::ReaderRef;
use crate::os::bell::{SleepMode, WakeReason};
use crate::os::clock;

/// A writer that waits for room looks up this often, should a ring have been missed. One that signals may end returns to
/// its caller as often, should a signal have come while it was awake.
const CAPACITY_POLL: Duration = Duration::from_secs(1);
/// How long a writer waits for plenty of room, before any will do.
const CAPACITY_WAIT: Duration = Duration::from_millis(1);
/// Plenty of room is this part of the log.
pub(super) const PLENTY_DIVISOR: u64 = 4;
/// A writer that would let a reader go looks at all of them so many times in a stall, and no more often than
/// this: how far a look may be late.
const OBSERVATIONS_PER_STALL: u32 = 8;
const OBSERVATION_INTERVAL: Duration = Duration::from_millis(1);
/// How long a writer spins for room before it sleeps: about what a sleep and a wake-up cost.
const CAPACITY_SPIN: Duration = Duration::from_micros(50);

impl Writer {
    /// Waits until the reader is past `needed` or has left, for at most `limit`; for a moment, until
    /// it is past by `plenty`: a writer that goes on at the first byte of room finds the log full
    /// again at the next message, and both then work for each other's cache lines.
    pub(super) fn wait_for_reader(
        &mut self,
        slowest: &Arc<ReaderRef>,
        needed: u64,
        plenty: u64,
        limit: Duration,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let left = || limit.saturating_sub(start.elapsed());
        let plenty = needed.saturating_add(plenty);
        while start.elapsed() < CAPACITY_SPIN.min(limit) {
            if slowest.needed() >= plenty {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        for (wanted, at_most) in
            [(plenty, CAPACITY_WAIT), (needed.saturating_add(1), CAPACITY_POLL)]
        {
            if slowest.needed() != needed || left().is_zero() {
                return Ok(());
            }
            self.sleep_for_capacity(slowest, wanted, left().min(at_most))?;
        }
        Ok(())
    }

    /// Sleeps until the reader needs nothing before `wanted`, there are other readers, or `limit` is over.
    pub(super) fn sleep_for_capacity(
        &mut self,
        slowest: &Arc<ReaderRef>,
        wanted: u64,
        limit: Duration,
    ) -> Result<(), Error> {
        let flow = &self.map.control().flow;
        rnet_ring::backpressure::set_wake_position(flow, wanted);
        let (reader_table, seen, interrupted) =
            (&self.reader_table, self.seen_epoch, &self.interrupted);
        let woken = self.waiter.sleep(
            SleepMode::UntilRung,
            |show| show(&flow.asleep),
            &FullFences,
            limit,
            || {
                slowest.needed() >= wanted
                    || reader_table.is_newer(seen)
                    || interrupted.load(Ordering::Acquire)
            },
        );
        if woken == WakeReason::Signal && self.interruptible {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// The reliable reader that is furthest behind, and from where on it needs the log. Take it
    /// before an attempt that may fail for want of room: what is made while it goes on must not be
    /// waited for a second time.
    pub(super) fn slowest(&self) -> Option<(Arc<ReaderRef>, u64)> {
        let reliable = self.readers.iter().filter(|r| r.reliable);
        let (reader, needed) =
            reliable.map(|r| (r, r.needed())).min_by_key(|(_, needed)| *needed)?;
        Some((reader.clone(), needed))
    }

    /// One step of what the publisher chose to do when a reader holds it back: returns to try
    /// again, or gives up with `Full`. `slowest` is what [`Writer::slowest`] said before the attempt.
    #[cold]
    pub(super) fn wait_for_capacity(
        &mut self,
        stall: &mut Option<StallTimer>,
        plenty: u64,
        slowest: Option<(Arc<ReaderRef>, u64)>,
    ) -> Result<(), Error> {
        let stall = stall.get_or_insert_with(|| self.stall_timer());
        let outcome = self.wait_on(stall, plenty, slowest);
        if let Some(tracker) = &mut self.pending_wait.stall_tracker
            && stall.observed
        {
            tracker.observed_ns = clock::now_ns();
        }
        if outcome == Err(Error::Interrupted) {
            self.pending_wait.save(stall, stall.began_ns, self.log.seq());
        }
        outcome
    }

    fn wait_on(
        &mut self,
        stall: &mut StallTimer,
        plenty: u64,
        slowest: Option<(Arc<ReaderRef>, u64)>,
    ) -> Result<(), Error> {
        self.check_interrupted()?;
        let (now_ns, begins) = (clock::now_ns(), stall.began_ns == 0);
        if begins {
            stall.began_ns = now_ns;
            self.map.control().flow.full.fetch_add(1, Ordering::Relaxed);
            fail_point!("backpressure.full");
        }
        self.observe_readers(now_ns, begins, !std::mem::replace(&mut stall.observed, true));
        let Some((slowest, needed)) = slowest else { return Ok(()) };
        match stall.decide(&slowest, now_ns) {
            WaitDecision::GiveUp => {
                self.pending_wait.save(stall, 0, self.log.seq());
                self.map.control().flow.refused.fetch_add(1, Ordering::Relaxed);
                fail_point!("backpressure.refused");
                Err(Error::Full { topic: self.topic.clone(), reader_node: slowest.node.clone() })
            }
            WaitDecision::Detach => {
                let stood_ns =
                    self.pending_wait.stall_tracker.map_or(0, |tracker| tracker.since_ns);
                for reader in &self.readers {
                    reader.progress.mark_outlasted(stood_ns);
                }
                self.reader_table.detach(slowest.subscription);
                self.refresh_readers();
                Ok(())
            }
            WaitDecision::Wait(limit) => {
                let slice = match self.interruptible {
                    true => CAPACITY_POLL.saturating_sub(stall.resumed.elapsed()),
                    false => limit,
                };
                if slice.is_zero() && !limit.is_zero() {
                    return Err(Error::Interrupted);
                }
                self.wait_for_reader(&slowest, needed, plenty, limit.min(slice))
            }
        }
    }

    /// Notes where all reliable readers are, for a wait that begins or goes on. Those that stand still before one
    /// message do so for all who wait to send it in turn; the time between two attempts, in which nobody waits, is not
    /// theirs.
    fn observe_readers(&mut self, now_ns: u64, begins: bool, of_another_attempt: bool) {
        let (seq, tail) = (self.log.seq(), self.log.tail());
        // One that never waits would have waited all the time between its attempts.
        let (waits, goes_on) =
            (!self.pending_wait.never_waits, !self.pending_wait.never_waits || !begins);
        let tracker =
            self.pending_wait.stall_tracker.filter(|tracker| tracker.seq == seq && goes_on);
        let gap_ns = match tracker {
            Some(tracker) if of_another_attempt && waits => {
                now_ns.saturating_sub(tracker.observed_ns)
            }
            _ => 0,
        };
        let since_ns = tracker.map_or(now_ns, |tracker| tracker.since_ns.saturating_add(gap_ns));
        for reader in self.readers.iter().filter(|r| r.reliable) {
            reader.progress.extend(gap_ns);
            reader.progress.observe(reader.needed(), tail, now_ns, tracker.is_none());
        }
        self.pending_wait.stall_tracker = Some(StallTracker { seq, since_ns, observed_ns: now_ns });
    }
}

enum WaitDecision {
    Wait(Duration),
    GiveUp,
    Detach,
}

/// A wait for readers that ended with `Interrupted`, for the next attempt to go on with ([`Writer::resume_wait`]).
#[derive(Clone, Copy, Debug)]
pub struct InterruptedWait {
    pub(super) began_ns: u64,
}

/// What a writer keeps of a wait for readers from one attempt to send to the next, as long as none succeeds.
#[derive(Debug, Default)]
pub(super) struct PendingWait {
    /// Whether the writer never waits.
    pub(super) never_waits: bool,
    /// When the wait began that the next attempt goes on with: one that was resumed, or that a writer that never waits
    /// would have begun. 0: it begins one.
    since_ns: u64,
    /// When the wait of the last attempt began, if that was interrupted; else 0.
    interrupted_ns: u64,
    /// Messages sent until then.
    seq: u64,
    pub(super) stall_tracker: Option<StallTracker>,
}

/// For how long readers are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct StallTracker {
    /// Messages sent until then.
    seq: u64,
    /// Since when, had nobody stopped to wait meanwhile.
    pub(super) since_ns: u64,
    /// Until when.
    pub(super) observed_ns: u64,
}

impl PendingWait {
    fn save(&mut self, stall: &StallTimer, interrupted_ns: u64, seq: u64) {
        self.since_ns = if self.never_waits { stall.began_ns } else { 0 };
        (self.interrupted_ns, self.seq) = (interrupted_ns, seq);
    }
}

impl Writer {
    /// Whether a send or a loan may wait for readers, as the publisher chose. One that may not returns `Full`
    /// at once in place of a wait, and lets readers go as it would have done after one.
    pub fn set_waiting(&mut self, yes: bool) {
        self.pending_wait = PendingWait { never_waits: !yes, ..PendingWait::default() };
    }

    /// The wait of the last attempt, if it ended with `Interrupted` while it waited for readers.
    pub fn interrupted_wait(&self) -> Option<InterruptedWait> {
        let PendingWait { interrupted_ns: began_ns, seq, .. } = self.pending_wait;
        (began_ns != 0 && seq == self.log.seq()).then_some(InterruptedWait { began_ns })
    }

    /// Has the next message go on with a wait, so that its limit is for all attempts together; `None`: it begins its own.
    pub fn resume_wait(&mut self, wait: Option<InterruptedWait>) {
        let began_ns = wait.map_or(0, |wait| wait.began_ns);
        (self.pending_wait.since_ns, self.pending_wait.interrupted_ns) = (began_ns, began_ns);
        self.pending_wait.seq = self.log.seq();
    }

    /// For a send or a loan that has found the log full.
    fn stall_timer(&self) -> StallTimer {
        let PendingWait { never_waits, since_ns, seq, .. } = self.pending_wait;
        StallTimer {
            on_full: self.qos.on_full,
            never_waits,
            began_ns: if seq == self.log.seq() { since_ns } else { 0 },
            resumed: Instant::now(),
            observed: false,
            observed_twice: false,
        }
    }
}

/// The memory of one send that found the log full.
pub(super) struct StallTimer {
    on_full: OnFull,
    never_waits: bool,
    /// When the wait began; 0 before.
    began_ns: u64,
    /// When this attempt found the log full.
    resumed: Instant,
    /// Whether it has looked at the readers.
    observed: bool,
    /// Whether the cursors were looked at a second time: the first look may have been at an old copy.
    observed_twice: bool,
}

impl StallTimer {
    fn decide(&mut self, slowest: &ReaderRef, now_ns: u64) -> WaitDecision {
        match self.on_full {
            OnFull::Wait(limit) if !self.never_waits => {
                let waited = Duration::from_nanos(now_ns - self.began_ns);
                match limit.saturating_sub(waited) {
                    Duration::ZERO => WaitDecision::GiveUp,
                    left => WaitDecision::Wait(left),
                }
            }
            OnFull::Detach { stall } => match slowest.progress.remaining(stall, now_ns) {
                Duration::ZERO => WaitDecision::Detach,
                _ if self.never_waits => self.refuse(),
                // Not for longer: the others are to be seen moving as well.
                left => WaitDecision::Wait(
                    left.min(OBSERVATION_INTERVAL.max(stall / OBSERVATIONS_PER_STALL)),
                ),
            },
            OnFull::Refuse | OnFull::Wait(_) => self.refuse(),
        }
    }

    fn refuse(&mut self) -> WaitDecision {
        let twice = std::mem::replace(&mut self.observed_twice, true);
        if twice { WaitDecision::GiveUp } else { WaitDecision::Wait(Duration::ZERO) }
    }
}
