//! `rnet.Timer` and `rnet.Rate`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use rnet::Tick;

use crate::callback::Callback;
use crate::errors::OrRaise;
use crate::events;
use crate::interpreter;
use crate::members::Member;
use crate::qos::OptionalSetters;
use crate::resource::Resource;
use crate::wait::WaitLimit;

/// Counters shared by the Python object and the callback.
#[derive(Default)]
struct Counts {
    ticks: AtomicU64,
    missed: AtomicU64,
}

/// A timer, which its node keeps until it is cancelled or has ended.
pub(crate) struct TimerCore {
    resource: Resource<rnet::Timer>,
    counts: Arc<Counts>,
    once: bool,
}

impl Member for TimerCore {
    fn close(&self) {
        self.resource.close();
    }

    fn is_finished(&self) -> bool {
        self.resource.is_closed() || self.once && self.counts.ticks.load(Ordering::Relaxed) > 0
    }
}

/// Calls a function periodically, or once, until it is cancelled or its node is closed. Created by
/// `Node.timer`.
///
/// >>> ticks = queue.Queue()
/// >>> timer = node.timer(0.001, ticks.put)
/// >>> ticks.get().number < ticks.get().number
/// True
/// >>> timer.cancel()
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Timer {
    core: Arc<TimerCore>,
    period: Duration,
}

impl Timer {
    pub(crate) fn start(
        py: Python<'_>,
        node: &rnet::Node,
        period: Duration,
        callback: Callback,
        (once, urgent): (bool, bool),
    ) -> PyResult<Timer> {
        // Once this is set, no call may begin.
        let cancelled = Arc::<AtomicBool>::default();
        let counts = Arc::<Counts>::default();
        let (shared, over) = (counts.clone(), cancelled.clone());
        let is_async = callback.is_async(py)?;
        let callback = callback.for_threads_until(py, None, &cancelled)?;
        let skipped = AtomicU64::new(0);
        let call = move |mut tick: Tick| {
            if over.load(Ordering::Acquire) {
                return;
            }
            if is_async && is_busy(&callback) {
                // The event loop has not finished the previous tick.
                let missed = tick.missed + 1;
                shared.missed.fetch_add(missed, Ordering::Relaxed);
                skipped.fetch_add(missed, Ordering::Relaxed);
                return;
            }
            shared.ticks.fetch_add(1, Ordering::Relaxed);
            shared.missed.fetch_add(tick.missed, Ordering::Relaxed);
            tick.missed += skipped.swap(0, Ordering::Relaxed);
            events::call_with_event(&callback, |py| events::tick(py, tick));
        };
        let start = || {
            node.timer(period)
                .set_if(once, |options| options.once())
                .set_if(urgent, |options| options.urgent())
                .on(call)
        };
        let timer = py.detach(start).or_raise(py)?;
        let resource = Resource::with_callbacks("the timer".to_owned(), timer, cancelled);
        Ok(Timer { core: Arc::new(TimerCore { resource, counts, once }), period })
    }

    pub(crate) fn core(&self) -> &Arc<TimerCore> {
        &self.core
    }
}

/// Whether an async callback is running or scheduled.
fn is_busy(callback: &Py<PyAny>) -> bool {
    let busy = interpreter::attach(|py| callback.getattr(py, "is_busy")?.is_truthy(py));
    busy.is_none_or(|busy| busy.unwrap_or(false))
}

#[pymethods]
impl Timer {
    /// Cancels the timer. Waits for a running callback, except in a callback.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.core.clone();
        interpreter::close(py, move || core.close())
    }

    /// Whether it was cancelled.
    #[getter]
    fn cancelled(&self) -> bool {
        self.core.resource.is_closed()
    }

    /// Period in seconds, or the delay of a timer with `once=True`.
    #[getter]
    fn period(&self) -> f64 {
        self.period.as_secs_f64()
    }

    /// Number of ticks that ran.
    #[getter]
    fn ticks(&self) -> u64 {
        self.core.counts.ticks.load(Ordering::Relaxed)
    }

    /// Number of skipped ticks: the next one was due before the thread of the lane, or the event loop of an
    /// async callback, could run them.
    #[getter]
    fn missed(&self) -> u64 {
        self.core.counts.missed.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Timer of {} s>", self.period.as_secs_f64())
    }
}

/// Keeps a loop at a rate, on the thread that runs it: `sleep` returns at multiples of the period, however
/// long the loop took. `for tick in rnet.Rate(100):` is the same loop.
///
/// Other threads run meanwhile, and Ctrl-C ends a sleep. A Rate is for one thread.
///
/// >>> rate = rnet.Rate(1000)
/// >>> first, second = rate.sleep(), rate.sleep()
/// >>> (second.due_ns - first.due_ns) % 1_000_000   # a period, or several
/// 0
#[pyclass(module = "rnet")]
pub(crate) struct Rate {
    rate: rnet::Rate,
}

impl Rate {
    pub(crate) fn of(mut rate: rnet::Rate) -> Rate {
        rate.set_interruptible(true);
        Rate { rate }
    }

    /// Another rate with the same next tick, for a wait set.
    pub(crate) fn clone_rate(&mut self) -> rnet::Rate {
        // The waiter checks before the tick is due.
        self.rate.is_due();
        self.rate.clone()
    }
}

#[pymethods]
impl Rate {
    /// Creates a rate of `hz` iterations per second, starting now.
    #[new]
    fn new(py: Python<'_>, hz: f64) -> PyResult<Rate> {
        rnet::Rate::new(hz).map(Rate::of).or_raise(py)
    }

    /// Sleeps until the next tick is due, and returns it: a Tick. Returns at once if it is already due, which
    /// is an overrun; further ticks that have passed are skipped.
    fn sleep<'py>(&mut self, py: Python<'py>) -> PyResult<Py<PyAny>> {
        let rate = &mut self.rate;
        let tick = WaitLimit::unlimited().run(py, |slice| rate.sleep_for(slice));
        events::tick(py, tick?)
    }

    /// The tick that is due, or None: for a WaitSet, or a loop that waits for something else.
    fn try_tick(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.rate.try_tick().or_raise(py)?.map(|tick| events::tick(py, tick)).transpose()
    }

    /// Period in seconds.
    #[getter]
    fn period(&self) -> f64 {
        self.rate.period().as_secs_f64()
    }

    /// Number of sleeps that started after their tick was due: the loop took longer than its period.
    #[getter]
    fn overruns(&self) -> u64 {
        self.rate.overruns()
    }

    /// Number of skipped ticks: the next one was due before the loop reached them.
    #[getter]
    fn missed(&self) -> u64 {
        self.rate.missed()
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.sleep(py)
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Rate with a period of {} s>", self.rate.period().as_secs_f64())
    }
}
