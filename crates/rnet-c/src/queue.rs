//! `rnet_pusher`: the sending end of a work queue.

use std::ffi::{CString, c_char, c_void};
use std::time::Duration;

use rnet::{PushBuilder, PushStats, Pusher};

use crate::border::{close, enter, free, give, given};
use crate::bytes::{bytes, rnet_bytes, text};
use crate::callback::{Context, rnet_free_function};
use crate::error::{Failure, Outcome, c_text, rnet_code, rnet_error};
use crate::handle::{Handle, MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, duration, fill, optional_duration, options, set};
use crate::subscriber::RNET_FOREVER;
use crate::types::{rnet_type, type_of};

/// Options of rnet_pusher_new(). Initialise it with RNET_PUSHER_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_pusher_options {
    /// sizeof(rnet_pusher_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of the jobs; default: raw bytes.
    pub message_type: *const rnet_type,
    /// Maximum number of unfinished jobs, up to 65,536; default 1,024.
    pub backlog: u32,
    /// How long rnet_pusher_push() waits while the backlog is full, in ns; default: it fails at once.
    pub wait_for_capacity_ns: i64,
    /// How long a worker may take for a job, in ns: after that it counts as lost. Default: no limit.
    pub ack_within_ns: i64,
}

options!(rnet_pusher_options, rnet_push_stats);

/// Counters of a pusher.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_push_stats {
    /// sizeof(rnet_push_stats), set by the caller: see RNET_PUSH_STATS_INIT.
    pub struct_size: usize,
    /// Jobs that were accepted.
    pub pushed: u64,
    /// Jobs that a worker has acknowledged.
    pub done: u64,
    /// Jobs that were sent to a second worker.
    pub redelivered: u64,
    /// Jobs that were returned, for any reason.
    pub undelivered: u64,
    /// Jobs that are not done, including those that wait for a worker.
    pub open: u64,
    /// Workers now, free or busy.
    pub workers: u64,
}

impl From<&Pusher<[u8]>> for rnet_push_stats {
    fn from(pusher: &Pusher<[u8]>) -> rnet_push_stats {
        let PushStats { pushed, done, redelivered, undelivered, open, .. } = pusher.stats();
        let (struct_size, open) = (size_of::<Self>(), open as u64);
        let workers = pusher.worker_count() as u64;
        rnet_push_stats { struct_size, pushed, done, redelivered, undelivered, open, workers }
    }
}

/// Called with each job that no worker acknowledged, and the reason, on the thread of the pusher. Both belong
/// to the library.
pub type rnet_undelivered_function =
    Option<unsafe extern "C" fn(job: rnet_bytes, error: *const rnet_error, context: *mut c_void)>;

/// The sending end of a work queue. Any thread may use it.
pub struct rnet_pusher {
    object: Handle<Shared<Pusher<[u8]>>>,
    name: CString,
}

/// Opens the sending end of a work queue; its workers may start later. The caller frees it with
/// rnet_pusher_free().
///
/// `on_undelivered` may be null: the node then logs the reason. `free_context` is called once with `context`
/// after the last call, also if this function fails.
///
/// Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
/// valid for a write. The function and the context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pusher_new(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_pusher_options,
    on_undelivered: rnet_undelivered_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_pusher,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_pusher_options::read(options)? };
        let freed = context.freed();
        // SAFETY: as promised by the caller.
        let ty = unsafe { type_of(options.message_type) };
        let builder = node.get()?.push::<[u8]>(name).message_type(ty);
        let backlog = Some(options.backlog as usize).filter(|jobs| *jobs > 0);
        let builder = set(builder, backlog, PushBuilder::backlog);
        let limit = optional_duration(options.wait_for_capacity_ns, "wait_for_capacity_ns")?;
        let builder = set(builder, limit, PushBuilder::wait_for_capacity);
        let limit = optional_duration(options.ack_within_ns, "ack_within_ns")?;
        let mut builder = set(builder, limit, PushBuilder::ack_within);
        if let Some(on_undelivered) = on_undelivered {
            builder = builder.on_undelivered(move |returned| {
                let error = Failure::from(returned.error).into_error();
                let job = rnet_bytes::of(&returned.job);
                // SAFETY: the caller has passed the function and the context for each other.
                unsafe { on_undelivered(job, &raw const error, context.pointer()) };
            });
        } else {
            // Closing the pusher waits until it is freed.
            drop(context);
        }
        let pusher = builder.open()?;
        let name = c_text(pusher.name());
        let what = format!("the pusher of {}", pusher.name());
        let object = Shared::with_end(what, pusher, Pusher::close, freed);
        let object = node.add(MemberKind::Client, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_pusher { object, name }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// # Safety
/// `pusher` is null or was not freed.
unsafe fn pusher_of<'a>(pusher: *const rnet_pusher) -> Outcome<&'a Shared<Pusher<[u8]>>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(pusher, "pusher") }?.object)
}

/// Adds a job, whose bytes are copied. It goes to the next free worker; if that worker is lost before it
/// acknowledges, once more to another one. Waits while the backlog is full for at most `timeout_ns`; 0: the
/// `wait_for_capacity_ns` of the options.
///
/// Errors: RNET_LIMIT_REACHED if the backlog is full after that time: the job was not accepted; RNET_BAD_VALUE,
/// RNET_CLOSED.
///
/// # Safety
/// `pusher` is a pusher, `data` valid for reads of `len` bytes, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pusher_push(
    pusher: *const rnet_pusher,
    data: *const u8,
    len: usize,
    timeout_ns: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, job) = unsafe { (pusher_of(pusher)?, bytes(data, len)?) };
        let limit = optional_duration(timeout_ns, "timeout_ns")?;
        object.wait(|pusher| match limit {
            None => Ok(pusher.push(job)?),
            Some(_) if timeout_ns == RNET_FOREVER => Ok(pusher.push_timeout(job, Duration::MAX)?),
            Some(limit) => Ok(pusher.push_timeout(job, limit)?),
        })
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Waits until every job has been acknowledged or returned, for at most `timeout_ns`.
///
/// Errors: RNET_TIMEOUT, RNET_CLOSED.
///
/// # Safety
/// `pusher` is a pusher, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pusher_wait_until_done(
    pusher: *const rnet_pusher,
    timeout_ns: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        unsafe { pusher_of(pusher) }?.wait(|pusher| match timeout_ns {
            RNET_FOREVER => Ok(pusher.wait_until_done()?),
            ns => Ok(pusher.wait_until_done_timeout(duration(ns, "timeout_ns")?)?),
        })
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The name of the queue, with its leading slash. Valid until the pusher is freed; "" if `pusher` is null.
///
/// # Safety
/// `pusher` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pusher_name(pusher: *const rnet_pusher) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { pusher.as_ref() }.map_or(c"".as_ptr(), |pusher| pusher.name.as_ptr())
}

/// The counters of a pusher.
///
/// # Safety
/// `pusher` is a pusher, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pusher_get_stats(
    pusher: *const rnet_pusher,
    out: *mut rnet_push_stats,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { fill(out, rnet_push_stats::from(&**pusher_of(pusher)?.get()?)) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a pusher: unfinished jobs are returned as undelivered, with RNET_CLOSED, before this returns; waits
/// of other threads end. Null and a closed pusher are allowed.
///
/// # Safety
/// `pusher` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pusher_close(pusher: *const rnet_pusher) {
    // SAFETY: as promised by the caller.
    unsafe { close(pusher, |pusher| pusher.object.close()) }
}

/// Closes and frees a pusher. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `pusher` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pusher_free(pusher: *mut rnet_pusher) {
    // SAFETY: as promised by the caller.
    unsafe { free(pusher) }
}
