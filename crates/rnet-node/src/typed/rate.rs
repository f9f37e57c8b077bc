//! A loop with a period, on the caller's thread.

use std::sync::Arc;
use std::time::Duration;

use rnet_core::{Error, Result};

use crate::core::NodeCore;
use crate::core::NodeState;
use crate::node_time::NodeTime;
use crate::schedule::{Schedule, Tick};
use crate::wait_set_member::WaitSetMember;
use crate::wait_source::WaitSource;
use rnet_shm::os::bell::{Bells, WakeReason};
use rnet_shm::os::clock::now_ns;

/// Keeps a loop at a rate: [`Rate::sleep`] returns at multiples of the period, however long the loop took.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// let mut rate = rnet::Rate::new(1000.0)?;
/// for _ in 0..3 {
///     // Read, compute, command.
///     rate.sleep()?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Rate {
    time: NodeTime,
    schedule: Schedule,
    period: Duration,
    overruns: u64,
    missed: u64,
    /// Whether the next tick was checked before it was due.
    awaited: bool,
    /// The bell at which a wait set sleeps for it.
    bell: Option<(Arc<Bells>, u64)>,
    interruptible: bool,
}

impl NodeCore {
    /// A rate in the node's time.
    ///
    /// # Errors
    /// As [`Rate::new`], and `Closed` in a forked child.
    pub fn rate(&self, hz: f64) -> Result<Rate> {
        self.state.check_fork()?;
        Rate::of(self.state.time.clone(), hz)
    }
}

impl Rate {
    /// A rate of `hz` ticks per second, from now.
    ///
    /// # Errors
    /// `BadValue` unless `hz` is a number greater than 0 and not above 10⁹.
    pub fn new(hz: f64) -> Result<Rate> {
        Rate::of(NodeTime::default(), hz)
    }

    /// As [`Rate::new`], in the time of a node.
    pub(crate) fn of(time: NodeTime, hz: f64) -> Result<Rate> {
        let period = (hz > 0.0 && hz <= 1e9).then(|| Duration::try_from_secs_f64(1.0 / hz).ok());
        let period = period.flatten().ok_or_else(|| {
            Error::bad_value(
                "loop rate",
                format!("it is {hz} Hz; it must be above 0 and at most 1e9"),
            )
        })?;
        Rate::start(time, period)
    }

    /// One tick per `period`, from now.
    ///
    /// # Errors
    /// `BadValue` for a period of zero.
    pub fn every(period: Duration) -> Result<Rate> {
        Rate::start(NodeTime::default(), period)
    }

    fn start(time: NodeTime, period: Duration) -> Result<Rate> {
        let schedule = Schedule::periodic("loop rate", period, time.elapsed_ns())?;
        let (overruns, missed, awaited, bell, interruptible) = (0, 0, false, None, false);
        Ok(Rate { time, schedule, period, overruns, missed, awaited, bell, interruptible })
    }

    /// Sleeps until the next tick is due. If it is already due, this returns at once and counts an overrun;
    /// missed ticks are skipped.
    ///
    /// # Errors
    /// `Interrupted`; see [`Rate::set_interruptible`]. `Closed` once the node of its simulated time is
    /// closed, and in a forked child.
    pub fn sleep(&mut self) -> Result<Tick> {
        self.sleep_for(Duration::MAX)
    }

    /// As [`Rate::sleep`], at most for `limit` of the host's time.
    ///
    /// # Errors
    /// As [`Rate::sleep`], and `Timeout`; the tick is not consumed then.
    pub fn sleep_for(&mut self, limit: Duration) -> Result<Tick> {
        let end_ns = now_ns().saturating_add(rnet_core::time::ns_saturating(limit));
        loop {
            if let Some(tick) = self.try_tick()? {
                return Ok(tick);
            }
            let now_ns = now_ns();
            if now_ns >= end_ns {
                return Err(Error::timeout("", "the next tick of a rate", limit));
            }
            let due_ns = self.schedule.due_ns().unwrap_or(u64::MAX);
            let whole = self.time.sleep_until(due_ns, Duration::from_nanos(end_ns - now_ns));
            if !whole && self.interruptible {
                return Err(Error::Interrupted);
            }
        }
    }

    /// The tick that is due, if any: for a [`crate::WaitSet`], or a loop that waits for something else.
    ///
    /// # Errors
    /// `Closed`, as [`Rate::sleep`].
    pub fn try_tick(&mut self) -> Result<Option<Tick>> {
        self.time.check()?;
        let Some(mut tick) = self.schedule.take(self.time.elapsed_ns()) else {
            self.awaited = true;
            return Ok(None);
        };
        tick.due_ns = self.time.at_ns(tick.due_ns);
        self.overruns += u64::from(!std::mem::take(&mut self.awaited));
        self.missed = self.missed.saturating_add(tick.missed);
        Ok(Some(tick))
    }

    /// Whether [`Rate::try_tick`] would return a tick.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.is_ready();
        self.awaited |= !is_due;
        is_due
    }

    /// The time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Number of sleeps that started after their tick was due: the loop took longer than its period.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Number of ticks skipped because the next one was due before the loop slept.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Lets a signal interrupt a sleep with `Interrupted`; otherwise the sleep continues after the handler.
    pub fn set_interruptible(&mut self, yes: bool) {
        self.interruptible = yes;
    }
}

impl WaitSource for Rate {
    fn is_ready(&self) -> bool {
        self.sleep_limit().is_zero() || self.time.check().is_err()
    }
    fn sleep_limit(&self) -> Duration {
        self.time.left_until(self.schedule.due_ns().unwrap_or(u64::MAX))
    }
    fn before_sleep(&self) {
        self.bell.iter().for_each(|(bells, bell)| self.time.before_sleep(bells, *bell));
    }
    fn after_sleep(&self, _woken: WakeReason, _limit: Duration) {
        self.bell.iter().for_each(|(bells, bell)| self.time.after_sleep(bells, *bell));
    }
}

impl WaitSetMember for Rate {
    fn name(&self) -> String {
        "a rate".to_owned()
    }
    fn node(&self) -> Option<&NodeState> {
        None
    }
    fn set_bell(&mut self, bells: &Arc<Bells>, bell: u64) {
        self.bell = Some((bells.clone(), bell));
    }
    fn refresh(&mut self) {
        self.is_due();
    }
    fn wait_source(&self) -> &dyn WaitSource {
        self
    }
}

/// Each `next` is a [`Rate::sleep`]. Ends when a sleep is interrupted or fails.
impl Iterator for Rate {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        self.sleep().ok()
    }
}
