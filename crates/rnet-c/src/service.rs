//! `rnet_service`: the server of a service, of an action, or of a work queue with a handler.

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

use rnet::{Responder, Service, ServiceBuilder, ServiceStats};

use crate::border::{close, enter, free, give, given};
use crate::bytes::text;
use crate::callback::{Context, rnet_free_function};
use crate::error::{c_text, rnet_code, rnet_error};
use crate::handle::{Handle, Latch, MemberKind, Shared};
use crate::node::{NodeObject, node_of, rnet_node};
use crate::options::{Options, fill, options, set};
use crate::request::{Handler, Origin, rnet_request_function};
use crate::types::{rnet_type, type_of};

/// Options of rnet_service_new(). Initialise it with RNET_SERVICE_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_service_options {
    /// sizeof(rnet_service_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of requests; default: raw bytes.
    pub request_type: *const rnet_type,
    /// The type of replies; default: raw bytes.
    pub reply_type: *const rnet_type,
    /// How many calls the handler may run at a time, each on its own thread: 1 to 256; default 1.
    pub at_once: u32,
    /// How many calls may wait, up to 65,536; default 64. Further calls are refused.
    pub backlog: u32,
    /// Whether no call may wait.
    pub no_backlog: bool,
    /// Space for options of new versions; 0.
    pub reserved: [u8; 7],
}

options!(rnet_service_options, rnet_service_stats);

/// Counters of a server.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_service_stats {
    /// sizeof(rnet_service_stats), set by the caller: see RNET_SERVICE_STATS_INIT.
    pub struct_size: usize,
    /// Accepted requests, goals or jobs, without the refused ones.
    pub calls: u64,
    /// Calls whose handler runs now.
    pub running: u64,
    /// Calls that wait for a handler now.
    pub waiting: u64,
    /// Calls that were refused because the backlog was full, and jobs that arrived while their worker closed.
    pub refused: u64,
    /// Calls whose handler failed.
    pub failed: u64,
    /// Calls that were cancelled, or whose caller was gone, before their handler returned.
    pub cancelled: u64,
    /// Messages that a correct caller does not send.
    pub malformed: u64,
    /// Answers that could not be sent: their caller was gone, or did not read.
    pub unsent: u64,
    /// Requests that were dropped because their client has no endpoints for answers.
    pub unanswerable: u64,
}

impl From<ServiceStats> for rnet_service_stats {
    fn from(s: ServiceStats) -> rnet_service_stats {
        rnet_service_stats {
            struct_size: size_of::<Self>(),
            calls: s.calls,
            running: s.running as u64,
            waiting: s.waiting as u64,
            refused: s.refused,
            failed: s.failed,
            cancelled: s.cancelled,
            malformed: s.malformed,
            unsent: s.unsent,
            unanswerable: s.unanswerable,
        }
    }
}

/// The server of a service, of an action, or of a work queue with a handler. Any thread may use it.
pub struct rnet_service {
    object: Handle<Shared<Service>>,
    name: CString,
}

impl rnet_service {
    pub(crate) fn new(
        node: &NodeObject,
        service: Service,
        freed: Option<Arc<Latch>>,
    ) -> rnet_service {
        let (name, what) = (c_text(service.name()), format!("the server of {}", service.name()));
        let object = Shared::with_end(what, service, |_| (), freed);
        rnet_service { object: node.add(MemberKind::Service, object), name }
    }
}

/// Serves a service: `handler` is called for each request. The caller frees the service with
/// rnet_service_free().
///
/// `free_context` is called once with `context` after the last call, also if this function fails.
///
/// Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
/// valid for a write. The handler and the context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_service_new(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_service_options,
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
        let options = unsafe { rnet_service_options::read(options)? };
        let freed = context.freed();
        let handler = Handler::new(handler, context)?;
        // SAFETY: as promised by the caller.
        let types = unsafe { (type_of(options.request_type), type_of(options.reply_type)) };
        let builder = node.get()?.service::<[u8], [u8]>(name).message_types(types.0, types.1);
        let at_once = Some(options.at_once as usize).filter(|calls| *calls > 0);
        let builder = set(builder, at_once, ServiceBuilder::at_once);
        let backlog =
            (options.backlog > 0 || options.no_backlog).then_some(options.backlog as usize);
        let builder = set(builder, backlog, ServiceBuilder::backlog);
        let service =
            builder.serve_any(move |request: &[u8], replies: &mut Responder<'_, [u8]>| {
                let origin = Origin::Call(replies.context());
                handler.run(request, origin, Some(&mut |reply: &[u8]| replies.send(reply)))
            })?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_service::new(node, service, freed)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The name of the service, with its leading slash. Valid until it is freed; "" if `service` is null.
///
/// # Safety
/// `service` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_service_name(service: *const rnet_service) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { service.as_ref() }.map_or(c"".as_ptr(), |service| service.name.as_ptr())
}

/// The counters of a server.
///
/// # Safety
/// `service` is a service, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_service_get_stats(
    service: *const rnet_service,
    out: *mut rnet_service_stats,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { fill(out, given(service, "service")?.object.get()?.stats().into()) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a server: cancels its calls, and waits for running handlers, except within a callback or a handler. The
/// answer of a handler that does not ask for the cancellation is delivered; other callers get
/// RNET_SERVER_LOST. Null and a closed server are allowed.
///
/// # Safety
/// `service` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_service_close(service: *mut rnet_service) {
    // SAFETY: as promised by the caller.
    unsafe { close(service, |service| service.object.close()) }
}

/// Closes and frees a server. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `service` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_service_free(service: *mut rnet_service) {
    // SAFETY: as promised by the caller.
    unsafe { free(service) }
}
