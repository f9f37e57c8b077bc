//! `rnet_state`: keys that hold values.

use std::ffi::c_char;
use std::sync::Arc;

use rnet::fork::ProcessOwned;
use rnet::state::{Put, RemotePut, State, StateType, TransactionPut, Value};

use crate::border::{enter, enter_or, free, give, given, write};
use crate::bytes::text;
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{MemberKind, MemberList, Shared};
use crate::node::{choice, node_of, rnet_node};
use crate::options::{Options, optional_duration, options};
use crate::state_entry::{rnet_entry, rnet_entry_list};
use crate::state_value::{give_value, optional_value, rnet_value, value_of};

/// The state of a node's domain: keys that hold values and can be watched. Any thread may use it. Calls never
/// wait, except for the disk if a key is durable.
///
/// In addition to those that they list, its calls have the errors RNET_BAD_NAME for an invalid key,
/// RNET_BAD_VALUE for an unreadable value, and RNET_CLOSED.
pub struct rnet_state {
    pub(crate) state: Arc<Shared<State>>,
    pub(crate) members: Arc<MemberList>,
}

/// Options of a write. Initialise it with RNET_PUT_OPTIONS_INIT; 0 and null mean the default. A write without
/// a time to live or a last will removes those of the previous write.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_put_options {
    /// sizeof(rnet_put_options), set by the initialiser.
    pub struct_size: usize,
    /// Writes only at this revision (rnet_entry_info), otherwise RNET_CONFLICT; default: at any.
    pub if_revision: u64,
    /// Writes only if the key is absent, otherwise RNET_CONFLICT.
    pub if_absent: bool,
    /// Allows another type than that of the current value.
    pub change_type: bool,
    /// Deletes the key when this node ends for any reason, unless another writer has written it since.
    pub last_will_delete: bool,
    /// 1: keeps the key on disk from now on, and returns when it is there. 2: in memory only. 0: as it is.
    pub durable: i32,
    /// Time to live in ns: the key is deleted if it is not written again. Default: forever.
    pub ttl_ns: i64,
    /// As `ttl_ns`, as a time of CLOCK_BOOTTIME in ns.
    pub expires_boot_ns: u64,
    /// The value that the key gets when this node ends for any reason, unless another writer has written it
    /// since.
    pub last_will: *const rnet_value,
}

options!(rnet_put_options);

/// Sets the options that all kinds of writes have.
macro_rules! common {
    ($options:expr, $put:expr) => {{
        let mut put = $put;
        if let Some(ttl) = optional_duration($options.ttl_ns, "ttl_ns")? {
            put = put.ttl(ttl);
        }
        if let Some(yes) = choice($options.durable, "durable")? {
            put = put.durable(yes);
        }
        if $options.change_type { put.change_type() } else { put }
    }};
}

/// Sets the options of writes on this host.
macro_rules! local {
    ($options:expr, $put:expr) => {{
        let mut put = common!($options, $put);
        if $options.expires_boot_ns > 0 {
            put = put.expires_at_boot_ns($options.expires_boot_ns);
        }
        // SAFETY: null or a value, as the caller promises.
        match unsafe { optional_value($options.last_will) } {
            Some(_) if $options.last_will_delete => {
                return Err(invalid("last_will and last_will_delete exclude each other"));
            }
            Some(will) => put.last_will(will),
            None if $options.last_will_delete => put.last_will_delete(),
            None => put,
        }
    }};
}

impl rnet_put_options {
    /// The revision that the key must have; 0: it must be absent.
    fn expected(&self) -> Outcome<Option<u64>> {
        match (self.if_absent, self.if_revision) {
            (false, 0) => Ok(None),
            (true, 0) => Ok(Some(0)),
            (false, revision) => Ok(Some(revision)),
            (true, _) => Err(invalid("if_absent and if_revision exclude each other")),
        }
    }

    /// # Safety
    /// `last_will` is null or a value.
    pub(crate) unsafe fn apply<'a>(&self, mut put: Put<'a>) -> Outcome<Put<'a>> {
        if let Some(revision) = self.expected()? {
            put = put.if_revision(revision);
        }
        Ok(local!(self, put))
    }

    /// # Safety
    /// As [`Self::apply`].
    pub(crate) unsafe fn apply_in_transaction<'a>(
        &self,
        put: TransactionPut<'a>,
    ) -> Outcome<TransactionPut<'a>> {
        if self.expected()?.is_some() {
            return Err(invalid(
                "a write of a transaction has no if_absent or if_revision: read the key in the transaction",
            ));
        }
        Ok(local!(self, put))
    }

    pub(crate) fn apply_remote<'a>(&self, mut put: RemotePut<'a>) -> Outcome<RemotePut<'a>> {
        if !self.last_will.is_null() || self.last_will_delete || self.expires_boot_ns > 0 {
            return Err(invalid(
                "a write on another host has no last_will, last_will_delete or expires_boot_ns",
            ));
        }
        if let Some(revision) = self.expected()? {
            put = put.if_revision(revision);
        }
        Ok(common!(self, put))
    }
}

/// # Safety
/// As [`given`].
pub(crate) unsafe fn state_of(state: *const rnet_state) -> Outcome<Arc<ProcessOwned<State>>> {
    // SAFETY: as promised by the caller.
    unsafe { given(state, "state") }?.state.get()
}

/// Writes a result that the caller may not want.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn write_optional<T>(out: *mut T, value: T) -> Outcome {
    if !out.is_null() {
        // SAFETY: not null, and as promised by the caller.
        unsafe { out.write(value) };
    }
    Ok(())
}

/// The state of the node's domain. The caller frees it with rnet_state_free(). Opened at the first call of a
/// node; later calls are cheap.
///
/// Errors: RNET_OUT_OF_MEMORY, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
///
/// # Safety
/// `node` is a node, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_state(
    node: *const rnet_node,
    out: *mut *mut rnet_state,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { node_of(node) }?;
        let node = object.get()?;
        let state = Shared::new(format!("the state of node {}", node.name()), node.state()?);
        object.add(MemberKind::State, &state);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_state { state, members: object.members.clone() }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a state. Its watches and transactions stay usable. Null is allowed.
///
/// # Safety
/// `state` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_free(state: *mut rnet_state) {
    enter_or((), || {
        // SAFETY: as promised by the caller.
        drop(unsafe { state.as_ref() }.and_then(|state| state.state.take()));
        Ok(())
    });
    // SAFETY: as promised by the caller.
    unsafe { free(state) }
}

/// The value of a key, which the caller frees with rnet_value_free(); null if the key is absent, which is not
/// an error.
///
/// # Safety
/// `state` is a state, `key` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_get(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { give_value(out, state_of(state)?.get(text(key, "key")?)?) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Reads a value of a type that C has.
///
/// # Safety
/// As for rnet_state_get_bool().
unsafe fn get_as<T: StateType>(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut T,
    found: *mut bool,
) -> Outcome {
    // SAFETY: as promised by the caller.
    let value = unsafe { state_of(state)?.get_as::<T>(text(key, "key")?) }?;
    let is_present = value.is_some();
    if let Some(value) = value {
        // SAFETY: as promised by the caller.
        unsafe { write(out, value) }?;
    }
    // SAFETY: as promised by the caller.
    unsafe { write_optional(found, is_present) }
}

/// The boolean of a key, without an allocation. If the key is absent, `*out` keeps its value, and `*found`
/// becomes false. `found` may be null.
///
/// Errors: RNET_STATE_TYPE if the key holds another type.
///
/// # Safety
/// `state` is a state, `key` a string, `out` valid for a write, `found` and `error` null or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_get_bool(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut bool,
    found: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || get_as(state, key, out, found)) }
}

/// As rnet_state_get_bool(), for an integer.
///
/// # Safety
/// As for rnet_state_get_bool().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_get_int(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut i64,
    found: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || get_as(state, key, out, found)) }
}

/// As rnet_state_get_bool(), for a float.
///
/// # Safety
/// As for rnet_state_get_bool().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_get_float(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut f64,
    found: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || get_as(state, key, out, found)) }
}

/// The value of a key with its metadata, which the caller frees with rnet_entry_free(); null if the key is
/// absent, which is not an error.
///
/// # Safety
/// As for rnet_state_get().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_entry(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut *mut rnet_entry,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let entry = unsafe { state_of(state)?.entry(text(key, "key")?) }?;
        // SAFETY: as promised by the caller.
        unsafe { give_entry(out, entry) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Gives an entry to the caller, or null.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn give_entry(
    out: *mut *mut rnet_entry,
    entry: Option<rnet::state::Entry>,
) -> Outcome {
    match entry {
        // SAFETY: as promised by the caller.
        Some(entry) => unsafe { give(out, rnet_entry::new(entry)) },
        // SAFETY: as promised by the caller.
        None => unsafe { write(out, std::ptr::null_mut()) },
    }
}

/// The entries under a prefix, sorted by key, at one moment; "" for all. The caller frees the list.
///
/// # Safety
/// `state` is a state, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_list(
    state: *const rnet_state,
    prefix: *const c_char,
    out: *mut *mut rnet_entry_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let snapshot = unsafe { state_of(state)?.snapshot(text(prefix, "prefix")?) }?;
        let list = rnet_entry_list::new(snapshot.entries.into_values(), snapshot.revision);
        // SAFETY: as promised by the caller.
        unsafe { give(out, list) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The keys under a prefix, in order, as a list of strings; "" for all. The caller frees it with
/// rnet_value_free().
///
/// # Safety
/// As for rnet_state_list().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_keys(
    state: *const rnet_state,
    prefix: *const c_char,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let keys = unsafe { state_of(state)?.keys(text(prefix, "prefix")?) }?;
        // SAFETY: as promised by the caller.
        unsafe { give_value(out, Value::list(keys)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Problems of the state on disk since the domain started, oldest first, as a list of strings. The caller
/// frees it with rnet_value_free().
///
/// # Safety
/// `state` is a state, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_disk_reports(
    state: *const rnet_state,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { give_value(out, Value::list(state_of(state)?.disk_reports()?)) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Revision of the newest change of any key.
///
/// # Safety
/// `state` is a state, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_revision(
    state: *const rnet_state,
    out: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || write(out, state_of(state)?.revision())) }
}

/// Sets a key. `options` may be null. `*revision` becomes the revision of the change; it may be null.
///
/// Errors: RNET_CONFLICT if a condition of the options does not hold; RNET_STATE_TYPE if the key holds
/// another type; RNET_BAD_VALUE, RNET_LIMIT_REACHED for a value that cannot be stored; RNET_OUT_OF_MEMORY;
/// for a durable key RNET_STORAGE.
///
/// # Safety
/// `state` is a state, `key` a string, `value` a value, `options` null or initialised, `revision` and `error`
/// null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_set(
    state: *const rnet_state,
    key: *const c_char,
    value: *const rnet_value,
    options: *const rnet_put_options,
    revision: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (state, key) = unsafe { (state_of(state)?, text(key, "key")?) };
        // SAFETY: as promised by the caller.
        let (value, options) =
            unsafe { (value_of(value, "value")?, rnet_put_options::read(options)?) };
        // SAFETY: as promised by the caller.
        let written = unsafe { options.apply(state.put(key)) }?.set(value)?;
        // SAFETY: as promised by the caller.
        unsafe { write_optional(revision, written) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sets a key without options.
///
/// # Safety
/// As for rnet_state_set_bool().
unsafe fn set(state: *const rnet_state, key: *const c_char, value: impl Into<Value>) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe { state_of(state)?.set(text(key, "key")?, value) }?;
    Ok(())
}

/// Sets a key to a boolean. Errors as rnet_state_set().
///
/// # Safety
/// `state` is a state, `key` a string, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_set_bool(
    state: *const rnet_state,
    key: *const c_char,
    value: bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || set(state, key, value)) }
}

/// Sets a key to an integer. Errors as rnet_state_set().
///
/// # Safety
/// As for rnet_state_set_bool().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_set_int(
    state: *const rnet_state,
    key: *const c_char,
    value: i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || set(state, key, value)) }
}

/// Sets a key to a float. Errors as rnet_state_set().
///
/// # Safety
/// As for rnet_state_set_bool().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_set_float(
    state: *const rnet_state,
    key: *const c_char,
    value: f64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || set(state, key, value)) }
}

/// Sets a key to a string. Errors as rnet_state_set().
///
/// # Safety
/// As for rnet_state_set_bool(); `value` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_set_string(
    state: *const rnet_state,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || set(state, key, text(value, "value")?)) }
}

/// Deletes a key; with `if_revision` other than 0 only at that revision. `*deleted` becomes false if it was
/// absent; it may be null.
///
/// Errors: RNET_CONFLICT if it is at another revision; RNET_BAD_VALUE for a parameter without a default; for
/// a durable key RNET_STORAGE.
///
/// # Safety
/// `state` is a state, `key` a string, `deleted` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_delete(
    state: *const rnet_state,
    key: *const c_char,
    if_revision: u64,
    deleted: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (state, key) = unsafe { (state_of(state)?, text(key, "key")?) };
        let put = state.put(key);
        let put = if if_revision == 0 { put } else { put.if_revision(if_revision) };
        // SAFETY: as promised by the caller.
        unsafe { write_optional(deleted, put.delete()?) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
