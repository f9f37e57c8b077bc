//! Timers: functions that a dispatch thread calls once or periodically.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rnet_core::{Error, Lane, Result};

use crate::NodeCore;
use crate::schedule::{Schedule, Tick};
use crate::timers::{TimerState, TimerTask};

/// A timer that is not running yet; by default periodic, on the bulk lane. Made by `rnet::Node::timer`.
#[must_use = "a builder does nothing until it is given a callback"]
pub struct TimerBuilder {
    core: Arc<NodeCore>,
    period: Duration,
    lane: Lane,
    once: bool,
}

impl TimerBuilder {
    /// A timer with this period.
    pub(crate) fn new(core: &Arc<NodeCore>, period: Duration) -> TimerBuilder {
        TimerBuilder { core: core.clone(), period, lane: Lane::Bulk, once: false }
    }

    /// Runs on the dispatch thread of the urgent lane, in sequence with the callbacks of urgent topics.
    pub fn urgent(mut self) -> Self {
        self.lane = Lane::Urgent;
        self
    }

    /// Ticks once, after one period, instead of periodically.
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Starts it: calls `callback` on each tick, until the returned [`Timer`] is dropped.
    ///
    /// Timers share their lane's thread with the callbacks of its topics: after a callback returns, the due
    /// timers run in the order of their due times, and then the next message. A timer thus waits for at most
    /// one callback, or for the other due timers. The first tick is due one period after this call, and each
    /// further tick one period after the previous due time. A tick that has not run when the next one is due
    /// is skipped and counted ([`Tick::missed`], [`Timer::missed`]). A callback that panics is not called
    /// again.
    ///
    /// # Errors
    /// `BadValue` for a period of zero; `Closed` in a forked child.
    pub fn on(self, callback: impl FnMut(Tick) + Send + 'static) -> Result<Timer> {
        let TimerBuilder { core, period, lane, once } = self;
        let state = &core.state;
        state.check_fork()?;
        let now_ns = state.time.elapsed_ns();
        let schedule = match once {
            true => Schedule::once(period, now_ns),
            false => {
                Schedule::periodic(&format!("a timer of {}", state.own.name()), period, now_ns)?
            }
        };
        let shared = Arc::<TimerState>::default();
        let id = state.next_task();
        let task = TimerTask { schedule, callback: Box::new(callback), shared: shared.clone() };
        state.dispatcher(lane).add_timer(id, task);
        Ok(Timer { id, shared, period, core: Some(core) })
    }
}

/// A running timer; dropping this stops it.
///
/// Dropping waits for a callback that is running, except inside a callback.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("timer{}", std::process::id());
/// # let node = rnet::Node::builder("controller").dir(dir).domain(&domain).open()?;
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (sender, ticks) = mpsc::channel();
/// let timer = node.timer(Duration::from_millis(1)).on(move |tick| {
///     let _ = sender.send(tick.number);
/// })?;
/// let (first, second) = (ticks.recv().unwrap(), ticks.recv().unwrap());
/// assert!(first < second);
/// drop(timer); // from here on it does not tick
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[must_use = "the timer stops when the Timer is dropped; keep it or call detach()"]
pub struct Timer {
    id: u64,
    shared: Arc<TimerState>,
    period: Duration,
    /// `None` once it is detached.
    core: Option<Arc<NodeCore>>,
}

impl Timer {
    /// The time between two ticks, or until the only one.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Number of ticks taken.
    pub fn ticks(&self) -> u64 {
        self.shared.ticks.load(Ordering::Relaxed)
    }

    /// Number of ticks skipped because the next one was due before the lane's thread ran the timer.
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }

    /// As [`crate::Subscription::error`].
    pub fn error(&self) -> Option<Error> {
        self.core.as_ref()?.state.dispatch_error()
    }

    /// Keeps the timer running until the node is closed.
    pub fn detach(mut self) {
        self.core = None;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(core) =
            self.core.take().filter(|core| !core.state.fork_guard().is_from_parent())
        {
            self.shared.cancelled.store(true, Ordering::Release);
            core.state.end_task(self.id);
        }
    }
}

crate::debug_by!([] Timer, "Timer", |this| "period": this.period);
