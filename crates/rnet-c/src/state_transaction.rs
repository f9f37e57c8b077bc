//! `rnet_transaction`: several keys, all or none.

use std::ffi::c_char;

use rnet::state::Transaction;

use crate::border::{enter, free, give, given, write_optional};
use crate::bytes::text;
use crate::error::{Outcome, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle, MemberKind};
use crate::options::Options;
use crate::state::{rnet_put_options, rnet_state, state_of};
use crate::state_value::{give_value, rnet_value, value_of};

/// Reads and writes of several keys, of which all take effect at the commit, or none. One thread at a time
/// may use it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_transaction(Handle<Exclusive<Transaction>>);

/// # Safety
/// As [`given`].
unsafe fn transaction_of<'a>(
    transaction: *const rnet_transaction,
) -> Outcome<&'a Exclusive<Transaction>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(transaction, "transaction") }?.0)
}

/// Begins a transaction. The caller frees it with rnet_transaction_free().
///
/// # Safety
/// `state` is a state, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_transaction(
    state: *const rnet_state,
    out: *mut *mut rnet_transaction,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (open, members) = unsafe { (state_of(state)?, &given(state, "state")?.members) };
        let name = "the transaction".to_owned();
        let object = Exclusive::new("transaction", name, open.transaction(), || {});
        let object = Handle::new(members, MemberKind::State, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_transaction(object)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The value of a key: the one that this transaction has set, otherwise the current one. The caller frees it
/// with rnet_value_free(). Null if the key is absent, which is not an error.
///
/// Errors: RNET_CONFLICT if it was read here before, and another writer has changed it since;
/// RNET_LIMIT_REACHED for too many keys; RNET_BAD_NAME, RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `transaction` is a transaction, `key` a string, `out` valid for a write, `error` null or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_transaction_get(
    transaction: *mut rnet_transaction,
    key: *const c_char,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, key) = unsafe { (transaction_of(transaction)?, text(key, "key")?) };
        let value = object.with(|transaction| Ok(transaction.get(key)?))?;
        // SAFETY: as promised by the caller.
        unsafe { give_value(out, value) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Sets a key at the commit. `options` may be null; it has no `if_revision` or `if_absent` here.
///
/// Errors: RNET_LIMIT_REACHED for too many keys; RNET_BAD_NAME, RNET_CLOSED, RNET_WRONG_THREAD. The commit
/// reports a value that cannot be stored.
///
/// # Safety
/// `transaction` is a transaction, `key` a string, `value` a value, `options` null or initialised, `error`
/// null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_transaction_set(
    transaction: *mut rnet_transaction,
    key: *const c_char,
    value: *const rnet_value,
    options: *const rnet_put_options,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, key) = unsafe { (transaction_of(transaction)?, text(key, "key")?) };
        // SAFETY: as promised by the caller.
        let (value, options) =
            unsafe { (value_of(value, "value")?, rnet_put_options::read(options)?) };
        object.with(|transaction| {
            // SAFETY: as promised by the caller.
            let put = unsafe { options.apply_in_transaction(transaction.put(key)) }?;
            Ok(put.set(value)?)
        })
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Deletes a key at the commit. Errors as rnet_transaction_set().
///
/// # Safety
/// `transaction` is a transaction, `key` a string, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_transaction_delete(
    transaction: *mut rnet_transaction,
    key: *const c_char,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (object, key) = unsafe { (transaction_of(transaction)?, text(key, "key")?) };
        object.with(|transaction| Ok(transaction.delete(key)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Makes all changes in one step, and ends the transaction: its calls fail with RNET_CLOSED from then on. It
/// must still be freed. `*revision` becomes the revision of the changes; it may be null.
///
/// Errors: RNET_CONFLICT if another writer has changed a key that was read here: nothing was changed, and the
/// program begins again; as rnet_state_set().
///
/// # Safety
/// `transaction` is a transaction, `revision` and `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_transaction_commit(
    transaction: *mut rnet_transaction,
    revision: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let written = unsafe { transaction_of(transaction) }?.consume()?.commit()?;
        // SAFETY: as promised by the caller.
        unsafe { write_optional(revision, written) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a transaction. Without a commit it changes nothing. Null is allowed.
///
/// # Safety
/// `transaction` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_transaction_free(transaction: *mut rnet_transaction) {
    // SAFETY: as promised by the caller.
    unsafe { free(transaction) }
}
