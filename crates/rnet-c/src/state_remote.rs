//! The state of another host: as an `rnet_state`, and its local copies.

use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rnet::state::{RemoteState, Replica};

use crate::border::{enter, give, give_optional, given};
use crate::bytes::text;
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{MemberKind, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{optional_duration, set};
use crate::publisher::wait_in_slices;
use crate::state::{Source, rnet_state, write_age};
use crate::state_entry::rnet_change;

/// The state of another host.
pub(crate) struct Remote {
    pub(crate) state: RemoteState,
    /// Ends the waits of other threads.
    closing: Arc<AtomicBool>,
}

/// The state of another host, the home of its keys, by the name that `rnet link status` shows. It has get, read, entry,
/// list, params, set, write, delete and mirror. Each request waits for at most `timeout_ns`; 0 is the default of 10 s. The
/// caller frees it with rnet_state_free().
///
/// A read asks that host. While the host is away, the last value that was read is returned: see rnet_state_entry() for its
/// age. A write is sent once, and returns when it is in effect there; while the host is away it fails with
/// RNET_HOME_AWAY, and may have arrived.
///
/// Errors: RNET_BAD_NAME, RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `host` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_state_of(
    node: *const rnet_node,
    host: *const c_char,
    timeout_ns: i64,
    out: *mut *mut rnet_state,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, host) = unsafe { (node_of(node)?, text(host, "host")?) };
        let timeout = optional_duration(timeout_ns, "timeout_ns")?;
        let state = set(node.get()?.state_of(host)?, timeout, RemoteState::with_timeout);
        let closing = Arc::new(AtomicBool::new(false));
        let stop = closing.clone();
        let state = state.with_stop(Arc::new(move || stop.load(Ordering::Relaxed)));
        let end = |remote: &Remote| remote.closing.store(true, Ordering::Relaxed);
        let name = format!("the state of host {host}");
        let shared = Shared::with_end(name, Remote { state, closing }, end, None);
        node.members.add(MemberKind::Client, &shared);
        let (source, members) = (Source::Remote(shared), node.members.clone());
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_state { source, members }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A local copy of the keys under a prefix of another host: while it exists, reads of these keys do not use the
/// network. It has get, read, entry, list, age and recv. Returns when it has the current values. The caller frees it with
/// rnet_state_free().
///
/// Errors: RNET_HOME_AWAY, RNET_TIMEOUT; RNET_LIMIT_REACHED for more than 64 copies, 65,536 keys or 64 MiB
/// of values; RNET_BAD_NAME.
///
/// # Safety
/// `state` is the state of another host, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_mirror(
    state: *const rnet_state,
    prefix: *const c_char,
    out: *mut *mut rnet_state,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (state, prefix) = unsafe { (given(state, "state")?, text(prefix, "prefix")?) };
        let Source::Remote(remote) = &state.source else {
            return Err(invalid("only the state of another host can be mirrored"));
        };
        let (replica, host) =
            remote.wait(|it| Ok((it.state.mirror(prefix)?, it.state.host().to_owned())))?;
        let replica = Shared::new(format!("the replica of {prefix:?} of host {host}"), replica);
        state.members.add(MemberKind::Client, &replica);
        let (source, members) = (Source::Replica(replica), state.members.clone());
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_state { source, members }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// # Safety
/// As [`given`].
unsafe fn replica_of<'a>(state: *const rnet_state) -> Outcome<&'a Shared<Replica>> {
    // SAFETY: as promised by the caller.
    match &unsafe { given(state, "state") }?.source {
        Source::Replica(replica) => Ok(replica),
        _ => Err(invalid("only a local copy of another host's keys has this function")),
    }
}

/// Time since the keys of a local copy were known to be current, in ns: less than 1 s while the host is connected; and
/// whether the host is away. Each may be null.
///
/// # Safety
/// `state` is a local copy, `age_ns`, `is_stale` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_age(
    state: *const rnet_state,
    age_ns: *mut i64,
    is_stale: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let replica = unsafe { replica_of(state) }?.get()?;
        // SAFETY: as promised by the caller.
        unsafe { write_age(replica.age(), replica.is_stale(), age_ns, is_stale) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_watch_recv(), for a local copy: first the current values, then each change.
///
/// Errors: RNET_TIMEOUT, RNET_CLOSED; RNET_LIMIT_REACHED if changes of more than 65,536 keys wait.
///
/// # Safety
/// `state` is a local copy, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_recv(
    state: *const rnet_state,
    timeout_ns: i64,
    out: *mut *mut rnet_change,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let replica = unsafe { replica_of(state) }?;
        let change = match timeout_ns {
            0 => replica.get()?.try_recv()?,
            ns => Some(wait_in_slices(ns, |slice| Ok(replica.get()?.recv_timeout(slice)))?),
        };
        // SAFETY: as promised by the caller.
        unsafe { give_optional(out, change.map(rnet_change::new)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
