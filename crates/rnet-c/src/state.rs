//! `rnet_state`: keys that hold values.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use rnet::fork::ProcessOwned;
use rnet::param::ParamInfo;
use rnet::state::{Entry, Put, RemotePut, Replica, State, TransactionPut, Value};

use crate::border::{close, enter, free, give, give_optional, given, write, write_optional};
use crate::bytes::text;
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{MemberKind, MemberList, Shared};
use crate::node::{choice, node_of, rnet_node};
use crate::options::{Options, optional_duration, options, set};
use crate::state_entry::{rnet_entry, rnet_entry_list};
use crate::state_remote::Remote;
use crate::state_value::{give_value, optional_value, rnet_value, rnet_value_data, value_of};
use crate::subscriber::RNET_FOREVER;

/// Keys that hold values: of the node's domain, of another host, or the local copy of keys of another host. Any thread may
/// use it. Calls for the domain never wait, except for the disk if a key is durable; for another host see
/// rnet_node_state_of().
///
/// In addition to those that they list, its calls have the errors RNET_BAD_NAME for an invalid key,
/// RNET_BAD_VALUE for an unreadable value, and RNET_CLOSED. A call that the state of another host or a local copy does not
/// have fails with RNET_INVALID_ARGUMENT.
pub struct rnet_state {
    pub(crate) source: Source,
    pub(crate) members: Arc<MemberList>,
}

/// Where the keys are.
pub(crate) enum Source {
    Domain(Arc<Shared<State>>),
    Remote(Arc<Shared<Remote>>),
    Replica(Arc<Shared<Replica>>),
}

/// An entry, the time since it was known to be current, and whether its home is away.
type Aged = (Option<Entry>, Duration, bool);

impl rnet_state {
    fn domain(&self) -> Outcome<Arc<ProcessOwned<State>>> {
        match &self.source {
            Source::Domain(state) => state.get(),
            _ => Err(invalid(
                "this state does not have this function: see rnet_node_state_of() and rnet_state_mirror()",
            )),
        }
    }

    fn entry(&self, key: &str) -> Outcome<Aged> {
        let aged = match &self.source {
            Source::Domain(state) => return Ok((state.get()?.entry(key)?, Duration::ZERO, false)),
            Source::Remote(remote) => remote.wait(|remote| Ok(remote.state.entry(key)?))?,
            Source::Replica(replica) => replica.get()?.entry(key)?,
        };
        Ok((aged.value, aged.age, aged.is_stale))
    }

    fn get(&self, key: &str) -> Outcome<Option<Value>> {
        match &self.source {
            Source::Domain(state) => Ok(state.get()?.get(key)?),
            _ => Ok(self.entry(key)?.0.map(|entry| entry.value)),
        }
    }

    fn list(&self, prefix: &str) -> Outcome<rnet_entry_list> {
        let entries = match &self.source {
            Source::Domain(state) => {
                let snapshot = state.get()?.snapshot(prefix)?;
                return Ok(rnet_entry_list::new(snapshot.entries.into_values(), snapshot.revision));
            }
            Source::Remote(remote) => remote.wait(|remote| Ok(remote.state.list(prefix)?))?,
            Source::Replica(replica) if prefix.is_empty() => replica.get()?.list().value,
            Source::Replica(_) => return Err(invalid("prefix must be empty for a local copy")),
        };
        Ok(rnet_entry_list::new(entries, 0))
    }

    pub(crate) fn params(&self) -> Outcome<Vec<ParamInfo>> {
        match &self.source {
            Source::Remote(remote) => remote.wait(|remote| Ok(remote.state.params()?)),
            _ => Ok(self.domain()?.params()?),
        }
    }

    /// # Safety
    /// The fields of the options are valid.
    unsafe fn set(&self, key: &str, value: &Value, options: &rnet_put_options) -> Outcome<u64> {
        match &self.source {
            Source::Remote(remote) => {
                remote.wait(|it| Ok(options.apply_remote(it.state.put(key))?.set(value)?))
            }
            _ => {
                let state = self.domain()?;
                // SAFETY: as promised by the caller.
                Ok(unsafe { options.apply(state.put(key)) }?.set(value)?)
            }
        }
    }

    fn delete(&self, key: &str, if_revision: u64) -> Outcome<bool> {
        let only_at = Some(if_revision).filter(|revision| *revision > 0);
        match &self.source {
            Source::Remote(remote) => remote
                .wait(|it| Ok(set(it.state.put(key), only_at, RemotePut::if_revision).delete()?)),
            _ => Ok(set(self.domain()?.put(key), only_at, Put::if_revision).delete()?),
        }
    }

    pub(crate) fn close(&self) {
        match &self.source {
            Source::Domain(state) => state.close(),
            Source::Remote(remote) => remote.close(),
            Source::Replica(replica) => replica.close(),
        }
    }
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
        let ttl = optional_duration($options.ttl_ns, "ttl_ns")?;
        let put = set($put, ttl, |put, ttl| put.ttl(ttl));
        let durable = choice($options.durable, "durable")?;
        let put = set(put, durable, |put, yes| put.durable(yes));
        if $options.change_type { put.change_type() } else { put }
    }};
}

/// Sets the options of writes on this host.
macro_rules! local {
    ($options:expr, $put:expr) => {{
        let expires = Some($options.expires_boot_ns).filter(|ns| *ns > 0);
        let put = set(common!($options, $put), expires, |put, ns| put.expires_at_boot_ns(ns));
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
    unsafe fn apply<'a>(&self, put: Put<'a>) -> Outcome<Put<'a>> {
        let put = set(put, self.expected()?, Put::if_revision);
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

    fn apply_remote<'a>(&self, put: RemotePut<'a>) -> Outcome<RemotePut<'a>> {
        if !self.last_will.is_null() || self.last_will_delete || self.expires_boot_ns > 0 {
            return Err(invalid(
                "a write on another host has no last_will, last_will_delete or expires_boot_ns",
            ));
        }
        let put = set(put, self.expected()?, RemotePut::if_revision);
        Ok(common!(self, put))
    }
}

/// The state of the node's domain.
///
/// # Errors
/// `Closed`; `InvalidArgument` for the state of another host.
///
/// # Safety
/// As [`given`].
pub(crate) unsafe fn state_of(state: *const rnet_state) -> Outcome<Arc<ProcessOwned<State>>> {
    // SAFETY: as promised by the caller.
    unsafe { given(state, "state") }?.domain()
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
        object.members.add(MemberKind::State, &state);
        let (source, members) = (Source::Domain(state), object.members.clone());
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_state { source, members }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a state: its calls fail with RNET_CLOSED from then on, and waits of other threads end. Its watches,
/// transactions and local copies stay usable. Null and a closed state are allowed.
///
/// # Safety
/// `state` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_close(state: *const rnet_state) {
    // SAFETY: as promised by the caller.
    unsafe { close(state, rnet_state::close) }
}

/// Closes and frees a state. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `state` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_free(state: *mut rnet_state) {
    // SAFETY: as promised by the caller.
    unsafe {
        close(state, rnet_state::close);
        free(state);
    }
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
    let body = || unsafe { give_value(out, given(state, "state")?.get(text(key, "key")?)?) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The boolean, the integer or the float of a key, in the node's domain without an allocation; of kind RNET_VALUE_NONE
/// if the key is absent.
///
/// Errors: RNET_STATE_TYPE if the key holds another type.
///
/// # Safety
/// `state` is a state, `key` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_read(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut rnet_value_data,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (state, key) = unsafe { (given(state, "state")?, text(key, "key")?) };
        let data = rnet_value_data::of_scalar(key, state.get(key)?.as_ref())?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, data) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The value of a key with its metadata, which the caller frees with rnet_entry_free(); null if the key is
/// absent, which is not an error. `*age_ns` becomes the time since that was known to be current at its home, 0 in the
/// node's domain; `*is_stale` whether the home is away. Each may be null.
///
/// Errors: RNET_HOME_AWAY if another host does not answer and the key was never read; those of that host. For a local
/// copy RNET_BAD_VALUE if the key is not under its prefix.
///
/// # Safety
/// `state` is a state, `key` a string, `out` valid for a write, `age_ns`, `is_stale` and `error` null or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_entry(
    state: *const rnet_state,
    key: *const c_char,
    out: *mut *mut rnet_entry,
    age_ns: *mut i64,
    is_stale: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let aged = unsafe { given(state, "state")?.entry(text(key, "key")?) };
        let (entry, age, stale) = aged?;
        // SAFETY: as promised by the caller.
        unsafe {
            write_age(age, stale, age_ns, is_stale)?;
            give_optional(out, entry.map(rnet_entry::new))
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// # Safety
/// Each is null or valid for a write.
pub(crate) unsafe fn write_age(
    age: Duration,
    stale: bool,
    age_ns: *mut i64,
    is_stale: *mut bool,
) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe {
        write_optional(age_ns, i64::try_from(age.as_nanos()).unwrap_or(RNET_FOREVER))?;
        write_optional(is_stale, stale)
    }
}

/// The entries under a prefix, sorted by key, at one moment; "" for all, and for a local copy. The caller frees the list.
///
/// Errors: for another host RNET_HOME_AWAY, and RNET_LIMIT_REACHED for more than 65,536 keys or 64 MiB of values.
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
    // SAFETY: as promised by the caller.
    let body = || unsafe { give(out, given(state, "state")?.list(text(prefix, "prefix")?)?) };
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
    // SAFETY: as promised by the caller.
    let keys = || Outcome::Ok(unsafe { state_of(state)?.keys(text(prefix, "prefix")?) }?);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::list(keys()?))) }
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
/// for a durable key RNET_STORAGE. For another host, which has no last will and no `expires_boot_ns`, because it cannot
/// observe this node: RNET_HOME_AWAY, which leaves open whether the write arrived.
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
        let (state, key) = unsafe { (given(state, "state")?, text(key, "key")?) };
        // SAFETY: as promised by the caller.
        let (value, options) =
            unsafe { (value_of(value, "value")?, rnet_put_options::read(options)?) };
        // SAFETY: as promised by the caller.
        unsafe { write_optional(revision, state.set(key, value, &options)?) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sets a key to a value of this content, without options. Errors as rnet_state_set() and rnet_value_new().
///
/// # Safety
/// `state` is a state, `key` a string, `data` valid as for rnet_value_new(), `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_write(
    state: *const rnet_state,
    key: *const c_char,
    data: rnet_value_data,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (state, key, value) =
            unsafe { (given(state, "state")?, text(key, "key")?, data.value()?) };
        // SAFETY: null means the defaults.
        unsafe { state.set(key, &value, &rnet_put_options::read(std::ptr::null())?) }.map(drop)
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Deletes a key; with `if_revision` other than 0 only at that revision. `*deleted` becomes false if it was
/// absent; it may be null.
///
/// Errors: RNET_CONFLICT if it is at another revision; RNET_BAD_VALUE for a parameter without a default; for
/// a durable key RNET_STORAGE; for another host as rnet_state_set().
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
        let (state, key) = unsafe { (given(state, "state")?, text(key, "key")?) };
        // SAFETY: as promised by the caller.
        unsafe { write_optional(deleted, state.delete(key, if_revision)?) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
