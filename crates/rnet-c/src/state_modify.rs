//! Changes of the state relative to the current value: of numbers, lists and sets.

use std::ffi::c_char;

use rnet::state::{State, Value};

use crate::border::{enter, write_optional};
use crate::bytes::text;
use crate::error::{Outcome, rnet_code, rnet_error};
use crate::state::{rnet_state, state_of};
use crate::state_value::{rnet_value, value_of};

/// Adds to an integer; an absent key starts at 0. `*sum` may be null.
///
/// Errors: RNET_STATE_TYPE if the key holds another type; RNET_BAD_VALUE if the sum does not fit into 64
/// bits; RNET_LIMIT_REACHED if other writers interfered each time.
///
/// # Safety
/// `state` is a state, `key` a string, `sum` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_add(
    state: *const rnet_state,
    key: *const c_char,
    amount: i64,
    sum: *mut i64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body = || unsafe { write_optional(sum, state_of(state)?.add(text(key, "key")?, amount)?) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_state_add(), for a float.
///
/// # Safety
/// As for rnet_state_add().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_add_float(
    state: *const rnet_state,
    key: *const c_char,
    amount: f64,
    sum: *mut f64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let body =
        || unsafe { write_optional(sum, state_of(state)?.add_float(text(key, "key")?, amount)?) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Runs an operation with a key and a value, and writes its result.
///
/// # Safety
/// As for rnet_state_push().
unsafe fn change<R>(
    state: *const rnet_state,
    key: *const c_char,
    value: *const rnet_value,
    out: *mut R,
    act: impl FnOnce(&State, &str, &Value) -> rnet::Result<R>,
) -> Outcome {
    // SAFETY: as promised by the caller.
    let (state, value) = unsafe { (state_of(state)?, value_of(value, "value")?) };
    // SAFETY: as promised by the caller.
    unsafe { write_optional(out, act(&state, text(key, "key")?, value)?) }
}

/// Appends to a list, which rnet_state_get() returns, and keeps its last `max_len` items. `*len` becomes its
/// length; it may be null.
///
/// Errors: as rnet_state_set(); RNET_LIMIT_REACHED also if other writers interfered each time.
///
/// # Safety
/// `state` is a state, `key` a string, `value` a value, `len` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_push(
    state: *const rnet_state,
    key: *const c_char,
    value: *const rnet_value,
    max_len: usize,
    len: *mut usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let push = |state: &State, key: &str, value: &Value| state.push(key, value, max_len);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || change(state, key, value, len, push)) }
}

/// Adds a member to a set, which rnet_state_get() returns. `*added` becomes false if it was already in the
/// set; it may be null. Errors as rnet_state_push().
///
/// # Safety
/// `state` is a state, `key` a string, `value` a value, `added` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_set_add(
    state: *const rnet_state,
    key: *const c_char,
    value: *const rnet_value,
    added: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let add = |state: &State, key: &str, value: &Value| state.set_add(key, value);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || change(state, key, value, added, add)) }
}

/// Removes a member from a set. `*removed` becomes false if it was not in the set; it may be null. Errors as
/// rnet_state_push().
///
/// # Safety
/// As for rnet_state_set_add().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_set_remove(
    state: *const rnet_state,
    key: *const c_char,
    value: *const rnet_value,
    removed: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let remove = |state: &State, key: &str, value: &Value| state.set_remove(key, value);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || change(state, key, value, removed, remove)) }
}

/// Whether a set has this member; false if the key is absent.
///
/// Errors: RNET_STATE_TYPE if the key does not hold a set.
///
/// # Safety
/// As for rnet_state_set_add(); `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_contains(
    state: *const rnet_state,
    key: *const c_char,
    value: *const rnet_value,
    out: *mut bool,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let contains = |state: &State, key: &str, value: &Value| state.contains(key, value);
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || change(state, key, value, out, contains)) }
}
