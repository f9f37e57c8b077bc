//! `rnet_remote_state` and `rnet_replica`: the state of another host.

use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rnet::Error;
use rnet::state::{Entry, RemoteState, Replica, WithAge};

use crate::border::{enter, enter_or, free, give, given, write};
use crate::bytes::text;
use crate::error::{Failure, Outcome, rnet_code, rnet_error};
use crate::handle::{Member, MemberKind, MemberList, Shared};
use crate::node::{node_of, rnet_node};
use crate::options::{Options, duration, optional_duration};
use crate::param_info::rnet_param_list;
use crate::state::{give_entry, rnet_put_options, write_optional};
use crate::state_entry::{rnet_change, rnet_entry, rnet_entry_list};
use crate::state_value::{rnet_value, value_of};
use crate::subscriber::RNET_FOREVER;

/// Longest wait for a change between two checks whether the replica is closed.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// The state of another host, the home of its keys. Any thread may use it.
///
/// A read asks that host. While the host is away, the last value that was read is returned, with its age. A
/// write is sent once, and returns when it is in effect there; while the host is away it fails with
/// RNET_HOME_AWAY, and may have arrived. Calls wait for the answer, for at most the time that
/// rnet_node_state_of() was given.
pub struct rnet_remote_state {
    object: Arc<Remote>,
    members: Arc<MemberList>,
}

struct Remote {
    shared: Arc<Shared<RemoteState>>,
    /// Ends the waits of other threads.
    closing: Arc<AtomicBool>,
}

impl Member for Remote {
    fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        drop(self.shared.take());
    }
}

impl Remote {
    fn with<R>(&self, act: impl FnOnce(&RemoteState) -> Outcome<R>) -> Outcome<R> {
        match act(&*self.shared.get()?) {
            Err(Failure::Rnet(Error::Interrupted)) => {
                // Interrupted because it was closed.
                self.shared.get()?;
                Err(Error::Interrupted.into())
            }
            result => result,
        }
    }
}

/// # Safety
/// As [`given`].
unsafe fn remote_of<'a>(remote: *const rnet_remote_state) -> Outcome<&'a Remote> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(remote, "remote") }?.object)
}

/// Gives an entry of another host, with its age in ns and whether the host is away.
///
/// # Safety
/// Each is null or valid for a write.
unsafe fn give_aged(
    found: WithAge<Option<Entry>>,
    out: *mut *mut rnet_entry,
    age_ns: *mut i64,
    is_stale: *mut bool,
) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe {
        give_age(found.age, found.is_stale, age_ns, is_stale)?;
        give_entry(out, found.value)
    }
}

/// # Safety
/// Each is null or valid for a write.
unsafe fn give_age(age: Duration, stale: bool, age_ns: *mut i64, is_stale: *mut bool) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe {
        write_optional(age_ns, i64::try_from(age.as_nanos()).unwrap_or(RNET_FOREVER))?;
        write_optional(is_stale, stale)
    }
}

/// The state of another host, by the name that `rnet link status` shows. Each request waits for at most
/// `timeout_ns`; 0 is the default of 10 s. The caller frees it with rnet_remote_state_free().
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
    out: *mut *mut rnet_remote_state,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (node, host) = unsafe { (node_of(node)?, text(host, "host")?) };
        let mut remote = node.get()?.state_of(host)?;
        if let Some(timeout) = optional_duration(timeout_ns, "timeout_ns")? {
            remote = remote.with_timeout(timeout);
        }
        let closing = Arc::new(AtomicBool::new(false));
        let stop = closing.clone();
        let remote = remote.with_stop(Arc::new(move || stop.load(Ordering::Relaxed)));
        let shared = Shared::new(format!("the state of host {host}"), remote);
        let object = Arc::new(Remote { shared, closing });
        node.add(MemberKind::State, &object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_remote_state { object, members: node.members.clone() }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees it. Its replicas stay usable. Null is allowed.
///
/// # Safety
/// `remote` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_remote_state_free(remote: *mut rnet_remote_state) {
    enter_or((), || {
        // SAFETY: as promised by the caller.
        if let Some(remote) = unsafe { remote.as_ref() } {
            remote.object.close();
        }
        Ok(())
    });
    // SAFETY: as promised by the caller.
    unsafe { free(remote) }
}

/// The value of a key there with its metadata, which the caller frees with rnet_entry_free(); null if the key
/// is absent. `*age_ns` becomes the time since it was known to be current, `*is_stale` whether the host is
/// away; each may be null.
///
/// Errors: RNET_HOME_AWAY if the host does not answer and the key was never read; those of that host.
///
/// # Safety
/// `remote` is a remote state, `key` a string, `out` valid for a write, `age_ns`, `is_stale` and `error` null
/// or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_remote_state_entry(
    remote: *const rnet_remote_state,
    key: *const c_char,
    out: *mut *mut rnet_entry,
    age_ns: *mut i64,
    is_stale: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, key) = unsafe { (remote_of(remote)?, text(key, "key")?) };
        let found = object.with(|remote| Ok(remote.entry(key)?))?;
        // SAFETY: as promised by the caller.
        unsafe { give_aged(found, out, age_ns, is_stale) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The entries under a prefix there, sorted by key, at one moment. The caller frees the list.
///
/// Errors: RNET_HOME_AWAY; RNET_LIMIT_REACHED for more than 65,536 keys or 64 MiB of values.
///
/// # Safety
/// `remote` is a remote state, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_remote_state_list(
    remote: *const rnet_remote_state,
    prefix: *const c_char,
    out: *mut *mut rnet_entry_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, prefix) = unsafe { (remote_of(remote)?, text(prefix, "prefix")?) };
        let entries = object.with(|remote| Ok(remote.list(prefix)?))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_entry_list::new(entries, 0)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The parameters of the nodes of that host, sorted by key. The caller frees the list.
///
/// Errors: as rnet_remote_state_list().
///
/// # Safety
/// `remote` is a remote state, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_remote_state_params(
    remote: *const rnet_remote_state,
    out: *mut *mut rnet_param_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let params = unsafe { remote_of(remote) }?.with(|remote| Ok(remote.params()?))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_param_list::new(params)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sets a key there. `options` may be null; it has no last will and no `expires_boot_ns` here, because that
/// host cannot observe this node. `*revision` becomes the revision of the change; it may be null.
///
/// Errors: RNET_HOME_AWAY, which leaves open whether the write arrived; RNET_CONFLICT; as rnet_state_set().
///
/// # Safety
/// `remote` is a remote state, `key` a string, `value` a value, `options` null or initialised, `revision` and
/// `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_remote_state_set(
    remote: *const rnet_remote_state,
    key: *const c_char,
    value: *const rnet_value,
    options: *const rnet_put_options,
    revision: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, key) = unsafe { (remote_of(remote)?, text(key, "key")?) };
        // SAFETY: as promised by the caller.
        let (value, options) =
            unsafe { (value_of(value, "value")?, rnet_put_options::read(options)?) };
        let written =
            object.with(|remote| Ok(options.apply_remote(remote.put(key))?.set(value)?))?;
        // SAFETY: as promised by the caller.
        unsafe { write_optional(revision, written) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_state_delete(), for a key there.
///
/// Errors: as rnet_remote_state_set().
///
/// # Safety
/// `remote` is a remote state, `key` a string, `deleted` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_remote_state_delete(
    remote: *const rnet_remote_state,
    key: *const c_char,
    if_revision: u64,
    deleted: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, key) = unsafe { (remote_of(remote)?, text(key, "key")?) };
        let existed = object.with(|remote| {
            let put = remote.put(key);
            let put = if if_revision == 0 { put } else { put.if_revision(if_revision) };
            Ok(put.delete()?)
        })?;
        // SAFETY: as promised by the caller.
        unsafe { write_optional(deleted, existed) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The keys under a prefix of another host, mirrored locally. Any thread may use it.
pub struct rnet_replica(Arc<Shared<Replica>>);

/// # Safety
/// As [`given`].
unsafe fn replica_of<'a>(replica: *const rnet_replica) -> Outcome<&'a Shared<Replica>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(replica, "replica") }?.0)
}

/// Mirrors the keys under a prefix there: while the replica exists, reads of these keys do not use the
/// network. Returns when it has the current values. The caller frees it with rnet_replica_free().
///
/// Errors: RNET_HOME_AWAY, RNET_TIMEOUT; RNET_LIMIT_REACHED for more than 64 replicas, 65,536 keys or 64 MiB
/// of values; RNET_BAD_NAME.
///
/// # Safety
/// `remote` is a remote state, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_remote_state_mirror(
    remote: *const rnet_remote_state,
    prefix: *const c_char,
    out: *mut *mut rnet_replica,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, prefix) = unsafe { (remote_of(remote)?, text(prefix, "prefix")?) };
        let (name, replica) = object.with(|remote| {
            let name = format!("the replica of {prefix:?} of host {}", remote.host());
            Ok((name, remote.mirror(prefix)?))
        })?;
        let replica = Shared::new(name, replica);
        // SAFETY: as promised by the caller.
        unsafe { given(remote, "remote") }?.members.add(MemberKind::State, &replica);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_replica(replica)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_remote_state_entry(), from the local copy.
///
/// Errors: RNET_BAD_VALUE for a key that is not under the prefix; RNET_BAD_NAME, RNET_CLOSED.
///
/// # Safety
/// As for rnet_remote_state_entry().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_replica_entry(
    replica: *const rnet_replica,
    key: *const c_char,
    out: *mut *mut rnet_entry,
    age_ns: *mut i64,
    is_stale: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let found = unsafe { replica_of(replica)?.get()?.entry(text(key, "key")?) }?;
        // SAFETY: as promised by the caller.
        unsafe { give_aged(found, out, age_ns, is_stale) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// All entries, sorted by key. The caller frees the list.
///
/// # Safety
/// `replica` is a replica, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_replica_list(
    replica: *const rnet_replica,
    out: *mut *mut rnet_entry_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let entries = unsafe { replica_of(replica)?.get() }?.list().value;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_entry_list::new(entries, 0)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Time since the keys were known to be current, in ns: less than 1 s while the host is connected; and
/// whether the host is away. Each may be null.
///
/// # Safety
/// `replica` is a replica, `age_ns`, `is_stale` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_replica_age(
    replica: *const rnet_replica,
    age_ns: *mut i64,
    is_stale: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let replica = unsafe { replica_of(replica) }?.get()?;
        // SAFETY: as promised by the caller.
        unsafe { give_age(replica.age(), replica.is_stale(), age_ns, is_stale) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_watch_recv(): first the current values, then each change.
///
/// Errors: RNET_TIMEOUT, RNET_CLOSED; RNET_LIMIT_REACHED if changes of more than 65,536 keys wait.
///
/// # Safety
/// `replica` is a replica, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_replica_recv(
    replica: *const rnet_replica,
    timeout_ns: i64,
    out: *mut *mut rnet_change,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { replica_of(replica) }?;
        let limit = duration(timeout_ns, "timeout_ns")?;
        if limit.is_zero() {
            return match object.get()?.try_recv()? {
                // SAFETY: as promised by the caller.
                Some(change) => unsafe { give(out, rnet_change::new(change)) },
                // SAFETY: as promised by the caller.
                None => unsafe { write(out, std::ptr::null_mut()) },
            };
        }
        let until = Instant::now().checked_add(limit).filter(|_| timeout_ns != RNET_FOREVER);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let slice = left.map_or(WAIT_SLICE, |left| left.min(WAIT_SLICE));
            match object.get()?.recv_timeout(slice) {
                Err(Error::Timeout { .. }) if left.is_none_or(|left| left > slice) => {}
                Err(Error::Timeout { topic, what, .. }) => {
                    return Err(Error::timeout(topic, what, limit).into());
                }
                // SAFETY: as promised by the caller.
                change => return unsafe { give(out, rnet_change::new(change?)) },
            }
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a replica: its calls fail with RNET_CLOSED from then on, and waits of other threads end. Null and a
/// closed replica are allowed.
///
/// # Safety
/// `replica` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_replica_close(replica: *mut rnet_replica) {
    enter_or((), || {
        // SAFETY: as promised by the caller.
        drop(unsafe { replica.as_ref() }.and_then(|replica| replica.0.take()));
        Ok(())
    });
}

/// Closes and frees a replica. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `replica` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_replica_free(replica: *mut rnet_replica) {
    // SAFETY: as promised by the caller.
    unsafe {
        rnet_replica_close(replica);
        free(replica);
    }
}
