//! The timers of a dispatch thread: finds the next due timer and runs it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::node_time::NodeTime;
use crate::schedule::{Schedule, Tick};

/// Shared by the handle of a timer and the thread that runs it.
#[derive(Default)]
pub struct TimerState {
    /// Set by the handle, possibly by the callback itself.
    pub(crate) cancelled: AtomicBool,
    /// Number of ticks taken.
    pub(crate) ticks: AtomicU64,
    /// Number of ticks skipped because the timer ran late.
    pub(crate) missed: AtomicU64,
}

/// A timer of a dispatch thread.
pub struct TimerTask {
    /// When the timer is due.
    pub(crate) schedule: Schedule,
    /// Called with each tick.
    pub(crate) callback: Box<dyn FnMut(Tick) + Send>,
    /// The state that the handle of the timer reads.
    pub(crate) shared: Arc<TimerState>,
}

impl TimerTask {
    /// Calls the callback if the timer is due; returns whether the timer continues.
    fn run(&mut self, time: &NodeTime, elapsed_ns: u64) -> bool {
        let cancelled = || self.shared.cancelled.load(Ordering::Acquire);
        if cancelled() {
            return false;
        }
        let Some(mut tick) = self.schedule.take(elapsed_ns) else { return true };
        tick.due_ns = time.at_ns(tick.due_ns);
        // Only one thread writes.
        self.shared.missed.fetch_add(tick.missed, Ordering::Relaxed);
        self.shared.ticks.fetch_add(1, Ordering::Relaxed);
        let callback = &mut self.callback;
        callback(tick);
        !cancelled()
    }
}

/// The timers of one dispatch thread, in the order of their due times.
#[derive(Default)]
pub struct Timers {
    time: NodeTime,
    /// By due time and id: of two timers that are due at the same time, the older one runs first.
    queue: BTreeMap<(u64, u64), TimerTask>,
}

impl Timers {
    pub(crate) fn new(time: NodeTime) -> Timers {
        Timers { time, queue: BTreeMap::new() }
    }

    /// Adds a timer, unless its schedule has ended.
    pub(crate) fn add(&mut self, id: u64, timer: TimerTask) {
        if let Some(due_ns) = timer.schedule.due_ns() {
            self.queue.insert((due_ns, id), timer);
        }
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<TimerTask> {
        let at = *self.queue.keys().find(|(_, of)| *of == id)?;
        self.queue.remove(&at)
    }

    /// Whether a timer is due.
    pub fn is_due(&self) -> bool {
        self.queue
            .first_key_value()
            .is_some_and(|((due_ns, _), _)| *due_ns <= self.time.elapsed_ns())
    }

    /// Time until the next timer is due; `None` without timers.
    pub fn until_due(&self) -> Option<Duration> {
        self.queue.first_key_value().map(|((due_ns, _), _)| self.time.left_until(*due_ns))
    }

    /// Runs each due timer once. Calls `keep_going` after each timer. Returns the finished timers, for the
    /// caller to drop. A timer that panics is dropped with the panic, which ends this run: the others run in
    /// the next one.
    pub fn run(&mut self, mut keep_going: impl FnMut() -> bool) -> Vec<TimerTask> {
        let mut over = Vec::new();
        if !self.is_due() {
            return over;
        }
        // One time for all timers, so that none is due again before every other has run.
        let elapsed_ns = self.time.elapsed_ns();
        while let Some(first) = self.queue.first_entry().filter(|first| first.key().0 <= elapsed_ns)
        {
            let ((_, id), mut timer) = first.remove_entry();
            let lives = timer.run(&self.time, elapsed_ns);
            match timer.schedule.due_ns() {
                Some(due_ns) if lives => drop(self.queue.insert((due_ns, id), timer)),
                _ => over.push(timer),
            }
            if !keep_going() {
                break;
            }
        }
        over
    }
}
