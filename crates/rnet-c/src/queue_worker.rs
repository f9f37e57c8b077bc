//! `rnet_puller` and `rnet_job`: the workers of a work queue.

use std::ffi::{CString, c_char, c_void};

use rnet::{Error, HandlerError, Job, JobContext, Puller};

use crate::border::{close, enter, enter_or, free, give, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::callback::{Context, rnet_free_function};
use crate::error::{c_text, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle, MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, duration, fill, options};
use crate::request::{Handler, Origin, handler_error, rnet_request_function};
use crate::service::{rnet_service, rnet_service_stats};
use crate::subscriber::RNET_FOREVER;
use crate::types::{rnet_type, type_of};

/// Options of rnet_puller_new() and rnet_pull_on(). Initialise it with RNET_PULLER_OPTIONS_INIT; 0 and null
/// mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_puller_options {
    /// sizeof(rnet_puller_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of the jobs; default: raw bytes.
    pub message_type: *const rnet_type,
}

options!(rnet_puller_options);

/// A worker of a work queue, which has one job at a time. Any thread may use it.
pub struct rnet_puller {
    object: Handle<Shared<Puller<[u8]>>>,
    name: CString,
}

/// Opens a worker, which receives jobs with rnet_puller_recv(). The caller frees it with rnet_puller_free().
///
/// Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
/// valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_puller_new(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_puller_options,
    out: *mut *mut rnet_puller,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_puller_options::read(options)? };
        // SAFETY: as promised by the caller.
        let ty = unsafe { type_of(options.message_type) };
        let puller = node.get()?.pull::<[u8]>(name).message_type(ty).open()?;
        let name = c_text(puller.name());
        let what = format!("the worker of {}", puller.name());
        let object = Shared::with_end(what, puller, Puller::close, None);
        let object = node.add(MemberKind::Client, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_puller { object, name }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Opens a worker whose jobs go to `handler`, one at a time: a job whose handler returns is acknowledged,
/// unless it has called rnet_request_fail(). The caller frees the worker with rnet_service_free().
///
/// If the worker closes, a job whose handler has asked for the cancellation, and saw it, goes to
/// another worker.
///
/// `free_context` is called once with `context` after the last call, also if this function fails.
///
/// Errors: as for rnet_puller_new().
///
/// # Safety
/// As for rnet_service_new().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pull_on(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_puller_options,
    handler: rnet_request_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_service,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_puller_options::read(options)? };
        let freed = context.freed();
        let handler = Handler::new(handler, context)?;
        // SAFETY: as promised by the caller.
        let ty = unsafe { type_of(options.message_type) };
        let builder = node.get()?.pull::<[u8]>(name).message_type(ty);
        let run = move |job: &[u8], context: &JobContext| -> Result<(), HandlerError> {
            handler.run(job, Origin::Job(context.clone()), None).map(drop)
        };
        let worker = builder.on(run)?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_service::new(node, worker, freed)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A job that a worker has received. One thread at a time may use it.
pub struct rnet_job {
    object: Handle<Exclusive<Job<[u8]>>>,
    pusher: CString,
    redelivered: bool,
}

/// Waits for the next job, for at most `timeout_ns`. It comes once the previous one was acknowledged or
/// failed. The caller frees it with rnet_job_free(). `*out` becomes null if none has arrived and `timeout_ns`
/// is 0, which is not an error.
///
/// Errors: RNET_TIMEOUT, RNET_CLOSED.
///
/// # Safety
/// `puller` is a worker, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_puller_recv(
    puller: *const rnet_puller,
    timeout_ns: i64,
    out: *mut *mut rnet_job,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let worker = &unsafe { given(puller, "puller") }?.object;
        let job = worker.wait(|puller| {
            let limit = duration(timeout_ns, "timeout_ns")?;
            if timeout_ns == RNET_FOREVER {
                return Ok(Some(puller.recv()?));
            }
            match puller.recv_timeout(limit)? {
                None if timeout_ns != 0 => {
                    let what = format!("a job of {}", puller.name());
                    Err(Error::timeout(puller.name(), what, limit).into())
                }
                job => Ok(job),
            }
        })?;
        let Some(job) = job else {
            // SAFETY: as promised by the caller.
            return unsafe { write(out, std::ptr::null_mut()) };
        };
        let (pusher, redelivered) = (c_text(job.context().pusher()), job.context().redelivered());
        let object = Exclusive::new("job", "the job".to_owned(), job, || ());
        let object = Handle::new(worker.members(), MemberKind::Service, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_job { object, pusher, redelivered }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The name of the queue, with its leading slash. Valid until the worker is freed; "" if `puller` is null.
///
/// # Safety
/// `puller` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_puller_name(puller: *const rnet_puller) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { puller.as_ref() }.map_or(c"".as_ptr(), |puller| puller.name.as_ptr())
}

/// The counters of a worker: `calls` are jobs, `refused` the jobs that arrived while it had one or was
/// closing.
///
/// # Safety
/// `puller` is a worker, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_puller_get_stats(
    puller: *const rnet_puller,
    out: *mut rnet_service_stats,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { fill(out, given(puller, "puller")?.object.get()?.stats().into()) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a worker, and ends waits of other threads: its current job goes to another worker. Null and a
/// closed worker are allowed.
///
/// # Safety
/// `puller` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_puller_close(puller: *const rnet_puller) {
    // SAFETY: as promised by the caller.
    unsafe { close(puller, |puller| puller.object.close()) }
}

/// Closes and frees a worker. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `puller` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_puller_free(puller: *mut rnet_puller) {
    // SAFETY: as promised by the caller.
    unsafe { free(puller) }
}

/// The bytes of a job, 8-byte aligned, valid until it is acknowledged, failed or freed, also if another thread closes
/// its node. Empty if `job` is null, was acknowledged or failed, or its node is closed.
///
/// # Safety
/// `job` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_job_data(job: *const rnet_job) -> rnet_bytes {
    enter_or(rnet_bytes::EMPTY, || {
        // SAFETY: as promised by the caller.
        let object = &unsafe { given(job, "job") }?.object;
        object.with(|job| {
            object.set_borrowed(true);
            Ok(rnet_bytes::of(job))
        })
    })
}

/// The node that pushed the job. Valid until it is freed; "" if `job` is null.
///
/// # Safety
/// `job` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_job_pusher(job: *const rnet_job) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { job.as_ref() }.map_or(c"".as_ptr(), |job| job.pusher.as_ptr())
}

/// Whether another worker had the job, and was lost or did not acknowledge it in time: it may be done. False
/// if `job` is null.
///
/// # Safety
/// `job` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_job_redelivered(job: *const rnet_job) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { job.as_ref() }.is_some_and(|job| job.redelivered)
}

/// Whether the acknowledgement is no longer wanted: the pusher is gone or no longer waits, or the worker is
/// closing. True for a job that was acknowledged or failed, and if `job` is null.
///
/// # Safety
/// `job` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_job_is_cancelled(job: *const rnet_job) -> bool {
    enter_or(true, || {
        // SAFETY: as promised by the caller.
        unsafe { given(job, "job") }?.object.with(|job| Ok(job.context().is_cancelled()))
    })
}

/// Acknowledges a job as done. It must still be freed.
///
/// Errors: RNET_CLOSED if it was acknowledged or failed, or its node was closed.
///
/// # Safety
/// `job` is a job, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_job_ack(
    job: *mut rnet_job,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        unsafe { given(job, "job") }?.object.consume()?.ack();
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Fails a job: its pusher gets RNET_CALL_FAILED with the kind and the text, and it does not go to another
/// worker. It must still be freed. `kind` and `text` are as for rnet_request_fail().
///
/// Errors: as for rnet_job_ack().
///
/// # Safety
/// `job` is a job, `kind` and `text` are null or strings, `error` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_job_fail(
    job: *mut rnet_job,
    kind: *const c_char,
    text: *const c_char,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, why) = unsafe { (&given(job, "job")?.object, handler_error(kind, text)) };
        object.consume()?.fail(why);
        Ok(())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a job. If it was neither acknowledged nor failed, it fails, with the kind "not_acknowledged". Null
/// is allowed.
///
/// # Safety
/// `job` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_job_free(job: *mut rnet_job) {
    // SAFETY: as promised by the caller.
    unsafe { free(job) }
}
