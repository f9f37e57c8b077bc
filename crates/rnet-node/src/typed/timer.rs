//! Timers: functions that a dispatch thread calls once or periodically.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rnet_core::{Error, Lane, Result};

use crate::NodeCore;
use crate::schedule::{Schedule, Tick};
use crate::timers::{TimerState, TimerTask};

/// Options of a timer; the default is periodic, on the bulk lane.
///
/// ```
/// let options = rnet::TimerOptions::new().urgent().once();
/// ```
#[derive(Clone, Debug, Default)]
pub struct TimerOptions {
    lane: Lane,
    once: bool,
}

impl TimerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
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
}

/// A running timer; dropping this stops it.
///
/// Dropping waits for a callback that is running, except inside a callback of the same node.
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
/// let timer = node.timer(Duration::from_millis(1), move |tick| {
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

#[doc(hidden)]
impl Timer {
    /// Starts it; users call `rnet::Node::timer_with`.
    ///
    /// # Errors
    /// As `rnet::Node::timer_with`.
    pub fn start(
        core: &Arc<NodeCore>,
        period: Duration,
        options: TimerOptions,
        callback: impl FnMut(Tick) + Send + 'static,
    ) -> Result<Timer> {
        let state = &core.state;
        state.check_fork()?;
        let now_ns = state.time.elapsed_ns();
        let schedule = match options.once {
            true => Schedule::once(period, now_ns),
            false => {
                Schedule::periodic(&format!("a timer of {}", state.own.name()), period, now_ns)?
            }
        };
        let shared = Arc::<TimerState>::default();
        let id = state.next_task();
        let task = TimerTask { schedule, callback: Box::new(callback), shared: shared.clone() };
        state.dispatcher(options.lane).add_timer(id, task);
        Ok(Timer { id, shared, period, core: Some(core.clone()) })
    }
}
