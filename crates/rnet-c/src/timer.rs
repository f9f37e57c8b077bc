//! `rnet_timer` and `rnet_rate`: periodic work, and clocks.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use rnet::fork::ProcessOwned;
use rnet::{Rate, Tick, Timer, WaitSetHandle};

use crate::border::{enter, enter_or, free, give, given, write_optional};
use crate::callback::{Context, rnet_free_function};
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle, MemberKind, Shared, lock};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, duration, fill, options};
use crate::publisher::wait_in_slices;

/// One tick of a timer or rate. Initialise it with RNET_TICK_INIT to receive one from rnet_rate_sleep().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_tick {
    /// sizeof(rnet_tick), set by the initialiser.
    pub struct_size: usize,
    /// Its number: tick 1 is due one period after the start. Skipped ticks count.
    pub number: u64,
    /// When it was due, in ns of the node's time.
    pub due_ns: u64,
    /// How late it was taken, in ns.
    pub late_ns: u64,
    /// Number of ticks skipped since the last one.
    pub missed: u64,
}

/// Options of rnet_timer_new(). Initialise it with RNET_TIMER_OPTIONS_INIT; 0 means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_timer_options {
    /// sizeof(rnet_timer_options), set by the initialiser.
    pub struct_size: usize,
    /// Whether to tick once, after one period.
    pub once: bool,
    /// Whether to run on the thread of the urgent lane.
    pub urgent: bool,
    /// Space for options of new versions; 0.
    pub reserved: [u8; 6],
}

options!(rnet_tick, rnet_timer_options);

impl From<Tick> for rnet_tick {
    fn from(tick: Tick) -> rnet_tick {
        let Tick { number, due_ns, late_ns, missed, .. } = tick;
        rnet_tick { struct_size: size_of::<Self>(), number, due_ns, late_ns, missed }
    }
}

/// Called for each tick of a timer. The tick is valid until the callback returns.
pub type rnet_tick_function =
    Option<unsafe extern "C" fn(tick: *const rnet_tick, context: *mut c_void)>;

/// A running timer. Any thread may use it.
pub struct rnet_timer(Handle<Shared<Timer>>);

/// Starts a timer: calls `callback` every `period_ns` of the node's time, on the node's thread for the lane, in sequence
/// with the callbacks of that lane. The first tick is due after one period. A tick that has not run when the next one
/// is due is skipped and counted. The caller frees the timer with rnet_timer_free().
///
/// `free_context` is called once with `context` after the last call, also if this function fails.
///
/// Errors: RNET_BAD_VALUE for a period of 0; RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `options` null or initialised, `out` valid for a write, `error` null or valid for a write. The
/// functions and the context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_timer_new(
    node: *const rnet_node,
    period_ns: i64,
    options: *const rnet_timer_options,
    callback: rnet_tick_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_timer,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let (object, options) = unsafe { (node_of(node)?, rnet_timer_options::read(options)?) };
        let callback = callback.ok_or_else(|| invalid("callback is null"))?;
        let node = object.get()?;
        let builder = node.timer(duration(period_ns, "period_ns")?);
        let builder = if options.once { builder.once() } else { builder };
        let builder = if options.urgent { builder.urgent() } else { builder };
        let freed = context.freed();
        let timer = builder.on(move |tick| {
            let tick = rnet_tick::from(tick);
            // SAFETY: the caller has passed both for each other.
            unsafe { callback(&raw const tick, context.pointer()) };
        })?;
        let name = format!("a timer of {}", node.name());
        let timer = object.add(MemberKind::Timer, Shared::with_end(name, timer, |_| (), freed));
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_timer(timer)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// # Safety
/// As [`given`].
unsafe fn timer_of(timer: *const rnet_timer) -> Outcome<Arc<ProcessOwned<Timer>>> {
    // SAFETY: as promised by the caller.
    unsafe { given(timer, "timer") }?.0.get()
}

/// Number of ticks for which the callback was called. 0 if `timer` is null or its node is closed.
///
/// # Safety
/// `timer` is null or a timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_timer_ticks(timer: *const rnet_timer) -> u64 {
    // SAFETY: as promised by the caller.
    enter_or(0, || Ok(unsafe { timer_of(timer) }?.ticks()))
}

/// Number of ticks skipped because the next one was due before the thread of the lane ran the timer. 0 if `timer` is
/// null or its node is closed.
///
/// # Safety
/// `timer` is null or a timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_timer_missed(timer: *const rnet_timer) -> u64 {
    // SAFETY: as promised by the caller.
    enter_or(0, || Ok(unsafe { timer_of(timer) }?.missed()))
}

/// Ends and frees a timer. When it returns, the callback does not run and is not called again, except within a
/// callback. Null is allowed.
///
/// # Safety
/// `timer` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_timer_free(timer: *mut rnet_timer) {
    // SAFETY: as promised by the caller.
    unsafe { free(timer) }
}

/// Keeps a loop of the user's thread at a rate. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_rate(Handle<Exclusive<RateObject>>);

/// A rate, and the wait set that may wait for it.
pub(crate) struct RateObject {
    pub(crate) rate: Rate,
    pub(crate) waiter: Arc<Mutex<Option<WaitSetHandle>>>,
}

impl RateObject {
    fn new(rate: Rate) -> Arc<Exclusive<RateObject>> {
        let waiter = Arc::<Mutex<Option<WaitSetHandle>>>::default();
        let object = RateObject { rate, waiter: waiter.clone() };
        // A sleep ends by itself: it is in slices.
        Exclusive::new("rate", "the rate".to_owned(), object, move || {
            if let Some(waiter) = &*lock(&waiter) {
                waiter.interrupt();
            }
        })
    }
}

/// The rate behind a pointer.
///
/// # Safety
/// As [`given`].
pub(crate) unsafe fn rate_of<'a>(
    rate: *const rnet_rate,
) -> Outcome<&'a Arc<Exclusive<RateObject>>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(rate, "rate") }?.0)
}

/// Creates a rate of `hz` ticks per second of the node's time, from now. Without a node, its time is CLOCK_MONOTONIC.
/// The caller frees it with rnet_rate_free().
///
/// Errors: RNET_BAD_VALUE unless `hz` is above 0 and at most 1e9; RNET_CLOSED.
///
/// # Safety
/// `node` is null or a node, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_rate_new(
    node: *const rnet_node,
    hz: f64,
    out: *mut *mut rnet_rate,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        let rate = if node.is_null() {
            Handle::without_node(RateObject::new(Rate::new(hz)?))
        } else {
            // SAFETY: as promised by the caller.
            let object = unsafe { node_of(node) }?;
            object.add(MemberKind::Rate, RateObject::new(object.get()?.rate(hz)?))
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_rate(rate)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sleeps until the next tick is due, for at most `timeout_ns` of CLOCK_MONOTONIC: RNET_FOREVER has no limit. A sleep
/// that starts after its tick was due returns at once, and counts as an overrun; further ticks that have passed are
/// skipped. With a `timeout_ns` of 0 it does not wait: if no tick is due, the number of `*tick` becomes 0, which is not
/// an error.
///
/// Errors: RNET_TIMEOUT; RNET_CLOSED once the node is closed; RNET_WRONG_THREAD.
///
/// # Safety
/// `rate` is a rate, `tick` null or initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_rate_sleep(
    rate: *mut rnet_rate,
    timeout_ns: i64,
    tick: *mut rnet_tick,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { rate_of(rate) }?;
        let taken = match timeout_ns {
            0 => object.with(|it| Ok(it.rate.try_tick()?))?,
            // In slices, so that another thread can close the rate.
            ns => Some(wait_in_slices(ns, |slice| object.with(|it| Ok(it.rate.sleep_for(slice))))?),
        };
        let none = rnet_tick { struct_size: 0, number: 0, due_ns: 0, late_ns: 0, missed: 0 };
        if tick.is_null() {
            return Ok(());
        }
        // SAFETY: as promised by the caller.
        unsafe { fill(tick, taken.map_or(none, rnet_tick::from)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Number of sleeps that started after their tick was due: the loop took longer than its period. 0 if `rate` is null,
/// closed or used by another thread.
///
/// # Safety
/// `rate` is null or a rate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_rate_overruns(rate: *const rnet_rate) -> u64 {
    // SAFETY: as promised by the caller.
    enter_or(0, || unsafe { rate_of(rate) }?.with(|it| Ok(it.rate.overruns())))
}

/// Number of ticks skipped because the next one was due before the loop slept. 0 as for rnet_rate_overruns().
///
/// # Safety
/// `rate` is null or a rate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_rate_missed(rate: *const rnet_rate) -> u64 {
    // SAFETY: as promised by the caller.
    enter_or(0, || unsafe { rate_of(rate) }?.with(|it| Ok(it.rate.missed())))
}

/// Frees a rate. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `rate` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_rate_free(rate: *mut rnet_rate) {
    // SAFETY: as promised by the caller.
    unsafe { free(rate) }
}

/// Whether the node's time is simulated: see rnet_node_now(). False if `node` is null or closed.
///
/// # Safety
/// `node` is null or a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_is_sim_time(node: *const rnet_node) -> bool {
    // SAFETY: as promised by the caller.
    enter_or(false, || Ok(unsafe { node_of(node) }?.get()?.is_sim_time()))
}

/// The offset of the wall clock: add `*offset_ns` to rnet_now_ns() for ns since 1970 UTC. `*uncertainty_ns` is its
/// uncertainty in both directions. It changes when the wall clock is set.
///
/// # Safety
/// Each is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_wall_offset(offset_ns: *mut i64, uncertainty_ns: *mut u64) {
    enter_or((), || {
        let offset = rnet::wall_offset();
        // SAFETY: as promised by the caller.
        unsafe {
            write_optional(offset_ns, offset.offset_ns)?;
            write_optional(uncertainty_ns, offset.uncertainty_ns)
        }
    });
}

/// The time in ns of CLOCK_BOOTTIME, which expires keys of the state: it advances while the machine is suspended.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_boot_ns() -> u64 {
    rnet::boot_ns()
}

/// A number for this boot of the machine, the same in all its containers; 0 if the system does not provide one.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_boot_id() -> u64 {
    rnet::boot_id()
}
