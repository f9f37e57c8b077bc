//! `rnet_client` and `rnet_pending`: calling services.

use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::{CallOptions, Client, ClientBuilder, ClientStats, Error, Pending, Received};

use crate::border::{close, enter, free, give, give_optional, given};
use crate::bytes::{bytes, optional_text, text};
use crate::error::{Failure, Outcome, c_text, rnet_code, rnet_error};
use crate::handle::{Handle, MemberKind, MemberList, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, duration, fill, optional_duration, options, set};
use crate::sample::rnet_sample;
use crate::subscriber::RNET_FOREVER;
use crate::types::{rnet_type, type_of};

/// Options of rnet_client_new() and rnet_node_call(). Initialise it with RNET_CLIENT_OPTIONS_INIT; 0 and null
/// mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_client_options {
    /// sizeof(rnet_client_options), set by the initialiser.
    pub struct_size: usize,
    /// The type of requests; default: raw bytes.
    pub request_type: *const rnet_type,
    /// The type of replies; default: raw bytes.
    pub reply_type: *const rnet_type,
    /// Time limit of each call that sets none, in ns, including the wait for a server; default 10 s;
    /// RNET_FOREVER: none.
    pub timeout_ns: i64,
}

/// Options of a call or a goal. Initialise it with RNET_CALL_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_call_options {
    /// sizeof(rnet_call_options), set by the initialiser.
    pub struct_size: usize,
    /// Time limit in ns, from now until the last reply, including the wait for a server; default: that of the
    /// client, for a goal none; RNET_FOREVER: none.
    pub timeout_ns: i64,
    /// Calls with the same key go to the same server, of those that the client knows; default: any server.
    pub key: *const c_char,
    /// For rnet_client_start(): whether the call receives all replies of a stream, instead of one.
    pub stream: bool,
    /// Space for options of new versions; 0.
    pub reserved: [u8; 7],
}

options!(rnet_client_options, rnet_call_options, rnet_client_stats);

/// # Safety
/// `options` is null or initialised.
pub(crate) unsafe fn call_options(options: *const rnet_call_options) -> Outcome<CallOptions> {
    // SAFETY: as promised by the caller.
    let given = unsafe { rnet_call_options::read(options)? };
    let timeout = optional_duration(given.timeout_ns, "timeout_ns")?;
    let options = set(CallOptions::new(), timeout, CallOptions::timeout);
    // SAFETY: as promised by the caller.
    let key = unsafe { optional_text(given.key, "key") }?;
    Ok(set(options, key, CallOptions::key))
}

/// Repeats a wait that signals interrupt, until the time is over: then `over` makes the error.
pub(crate) fn wait_within<R>(
    timeout_ns: i64,
    mut wait: impl FnMut(Duration) -> rnet::Result<R>,
    over: impl FnOnce(Duration) -> Error,
) -> Outcome<R> {
    let limit = duration(timeout_ns, "timeout_ns")?;
    let until = Some(limit).filter(|_| timeout_ns != RNET_FOREVER);
    let until = until.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left =
            until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        match wait(left) {
            Err(Error::Interrupted) if left.is_zero() => return Err(over(limit).into()),
            Err(Error::Interrupted) => {}
            result => return result.map_err(Failure::from),
        }
    }
}

/// Counters of a client.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_client_stats {
    /// sizeof(rnet_client_stats), set by the caller: see RNET_CLIENT_STATS_INIT.
    pub struct_size: usize,
    /// Calls that were started.
    pub calls: u64,
    /// Calls that are open now.
    pub open: u64,
    /// Servers that would accept a call now; for an action also those that would refuse a goal.
    pub servers: u64,
    /// Answers that were dropped because their call had ended.
    pub late: u64,
    /// Calls that were sent to another server because one refused.
    pub rerouted: u64,
    /// Feedback that was skipped because too much waited for its reader.
    pub feedback_skipped: u64,
    /// Feedback that did not arrive.
    pub feedback_lost: u64,
}

impl rnet_client_stats {
    pub(crate) fn new(s: &ClientStats, servers: usize) -> rnet_client_stats {
        rnet_client_stats {
            servers: servers as u64,
            struct_size: size_of::<Self>(),
            calls: s.calls,
            open: s.open as u64,
            late: s.late,
            rerouted: s.rerouted,
            feedback_skipped: s.feedback_skipped,
            feedback_lost: s.feedback_lost,
        }
    }
}

/// Calls one service. Any thread may use it, with any number of calls at a time.
pub struct rnet_client {
    object: Arc<Shared<Client<[u8], [u8]>>>,
    members: Arc<MemberList>,
    name: CString,
}

/// Opens a client of a service, whose servers may start later. The caller frees it with rnet_client_free().
///
/// Errors: RNET_BAD_NAME, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `name` a string, `options` null or initialised, `out` valid for a write, `error` null or
/// valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_client_new(
    node: *const rnet_node,
    name: *const c_char,
    options: *const rnet_client_options,
    out: *mut *mut rnet_client,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_client_options::read(options)? };
        // SAFETY: as promised by the caller.
        let (request, reply) =
            unsafe { (type_of(options.request_type), type_of(options.reply_type)) };
        let builder = node.get()?.client::<[u8], [u8]>(name).message_types(request, reply);
        let timeout = optional_duration(options.timeout_ns, "timeout_ns")?;
        let client = set(builder, timeout, ClientBuilder::timeout).open()?;
        let (name, members) = (c_text(client.name()), node.members.clone());
        let what = format!("the client of {}", client.name());
        let object = Shared::with_end(what, client, Client::close, None);
        members.add(MemberKind::Client, &object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_client { object, members, name }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

fn call(
    client: &Client<[u8], [u8]>,
    request: &[u8],
    timeout: Option<Duration>,
) -> Outcome<Received<[u8]>> {
    Ok(match timeout {
        Some(timeout) => client.call_timeout(request, timeout)?,
        None => client.call(request)?,
    })
}

/// Calls a service, and waits for the reply. `*out` becomes an owned sample, which the caller frees.
///
/// Errors: RNET_TIMEOUT; RNET_SERVER_LOST if the server ended before it answered; RNET_CALL_FAILED with the
/// error of its handler; RNET_REFUSED if the backlogs of all servers are full; RNET_FULL, RNET_CANCELLED,
/// RNET_CALL_LOST, RNET_INCOMPATIBLE_TYPE, RNET_BAD_VALUE, RNET_LIMIT_REACHED, RNET_CLOSED.
///
/// # Safety
/// `client` is a client, `data` valid for reads of `len` bytes, `options` null or initialised, `out` valid
/// for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_client_call(
    client: *const rnet_client,
    data: *const u8,
    len: usize,
    options: *const rnet_call_options,
    out: *mut *mut rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (client, request) = unsafe { (given(client, "client")?, bytes(data, len)?) };
        // SAFETY: as promised by the caller.
        let given = unsafe { rnet_call_options::read(options)? };
        let timeout = optional_duration(given.timeout_ns, "timeout_ns")?;
        // SAFETY: as promised by the caller.
        let call_options = unsafe { call_options(options)? };
        let reply = client.object.wait(|client| match given.key.is_null() {
            true => call(client, request, timeout),
            false => Ok(client.start(request, call_options)?.wait()?),
        })?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_sample::received(reply)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Calls a service once, with a client that the node keeps for the next call of these types. `*out` becomes
/// an owned sample, which the caller frees.
///
/// Errors: as for rnet_client_new() and rnet_client_call().
///
/// # Safety
/// `node` is a node, `name` a string, `data` valid for reads of `len` bytes, `options` null or initialised,
/// `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_call(
    node: *const rnet_node,
    name: *const c_char,
    data: *const u8,
    len: usize,
    options: *const rnet_client_options,
    out: *mut *mut rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, name) = unsafe { (node_of(node)?, text(name, "name")?) };
        // SAFETY: as promised by the caller.
        let request = unsafe { bytes(data, len)? };
        // SAFETY: as promised by the caller.
        let options = unsafe { rnet_client_options::read(options)? };
        // SAFETY: as promised by the caller.
        let types = unsafe { (type_of(options.request_type), type_of(options.reply_type)) };
        let client = rnet::binding::cached_client(&*node.get()?, name, types)?;
        // Closing the node ends the call.
        let what = format!("the client of {}", client.name());
        let object = Shared::with_end(what, client, Client::close, None);
        // Not by a handle, whose end would close the client, which the node keeps.
        node.members.add(MemberKind::Client, &object);
        let timeout = optional_duration(options.timeout_ns, "timeout_ns")?;
        let reply = object.wait(|client| call(client, request, timeout))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_sample::received(reply)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A call in progress. Any thread may use it.
pub struct rnet_pending {
    object: Handle<Shared<Pending<[u8]>>>,
    service: String,
}

/// Starts a call, without waiting. The caller frees it with rnet_pending_free(), which cancels it.
///
/// Errors: RNET_BAD_VALUE, RNET_CLOSED. Others are those of rnet_pending_next().
///
/// # Safety
/// As for rnet_client_call().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_client_start(
    client: *const rnet_client,
    data: *const u8,
    len: usize,
    options: *const rnet_call_options,
    out: *mut *mut rnet_pending,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (client, request) = unsafe { (given(client, "client")?, bytes(data, len)?) };
        // SAFETY: as promised by the caller.
        let (given, options) =
            unsafe { (rnet_call_options::read(options)?, call_options(options)?) };
        let open = client.object.get()?;
        let pending = match given.stream {
            true => open.stream(request, options)?,
            false => open.start(request, options)?,
        };
        let service = open.name().to_owned();
        let what = format!("the call of {service}");
        let object = Shared::with_end(what, pending, Pending::cancel, None);
        let object = Handle::new(&client.members, MemberKind::Client, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_pending { object, service }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Waits for the next reply, for at most `timeout_ns`. `*out` becomes an owned sample, which the caller
/// frees; null after the last reply.
///
/// Errors: RNET_TIMEOUT if no reply is there yet: the call continues, unless its own time limit is over; as
/// for rnet_client_call(), after which the call has ended.
///
/// # Safety
/// `pending` is a call, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pending_next(
    pending: *const rnet_pending,
    timeout_ns: i64,
    out: *mut *mut rnet_sample,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let rnet_pending { object, service } = unsafe { given(pending, "pending") }?;
        let reply = object.wait(|pending| {
            let what = format!("a reply of {service}");
            let over = |limit| Error::timeout(service.as_str(), what, limit);
            wait_within(timeout_ns, |left| pending.next_within(left), over)
        })?;
        // SAFETY: as promised by the caller.
        unsafe { give_optional(out, reply.map(rnet_sample::received)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Cancels the call: its server is notified, and waits for it fail with RNET_CANCELLED. Null is allowed.
///
/// # Safety
/// `pending` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pending_cancel(pending: *const rnet_pending) {
    // SAFETY: as promised by the caller.
    unsafe { close(pending, |pending| pending.object.get().map(|pending| pending.cancel())) }
}

/// Cancels and frees a call. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `pending` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_pending_free(pending: *mut rnet_pending) {
    // SAFETY: as promised by the caller.
    unsafe { free(pending) }
}

/// The name of the service, with its leading slash. Valid until the client is freed; "" if `client` is null.
///
/// # Safety
/// `client` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_client_name(client: *const rnet_client) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { client.as_ref() }.map_or(c"".as_ptr(), |client| client.name.as_ptr())
}

/// The counters of a client.
///
/// # Safety
/// `client` is a client, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_client_get_stats(
    client: *const rnet_client,
    out: *mut rnet_client_stats,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let client = unsafe { given(client, "client") }?.object.get()?;
        // SAFETY: as promised by the caller.
        unsafe { fill(out, rnet_client_stats::new(&client.stats(), client.server_count())) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a client: its open calls end with RNET_CLOSED, also those that other threads wait for. Null and a
/// closed client are allowed.
///
/// # Safety
/// `client` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_client_close(client: *const rnet_client) {
    // SAFETY: as promised by the caller.
    unsafe { close(client, |client| client.object.close()) }
}

/// Frees a client. Calls that it started continue; see rnet_client_close(). Null is allowed. No other thread
/// may be about to use it.
///
/// # Safety
/// `client` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_client_free(client: *mut rnet_client) {
    // SAFETY: as promised by the caller.
    unsafe { free(client) }
}
