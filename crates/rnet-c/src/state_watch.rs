//! `rnet_watch`: notification of changes of the state.

use std::ffi::{c_char, c_int, c_void};

use rnet::state::Watch;

use crate::border::{close, enter, free, give, given, write};
use crate::bytes::text;
use crate::callback::{Context, rnet_free_function, rnet_guard};
use crate::error::{Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle, MemberKind};
use crate::state::{rnet_state, state_of};
use crate::state_entry::rnet_change;
use crate::stream::{KeptEvent, Pollable};
use crate::subscriber::{call_with_error, rnet_error_function};

/// Reports the values of the keys under a prefix, then each change, in order. A slow reader gets the newest
/// value of each key, and the number of values that it missed. One thread at a time may use it; a second one
/// gets RNET_WRONG_THREAD.
pub struct rnet_watch {
    object: Handle<Exclusive<Pollable<Watch>>>,
    event: KeptEvent,
}

/// # Safety
/// As [`given`].
pub(crate) unsafe fn watching_of<'a>(
    watch: *const rnet_watch,
) -> Outcome<&'a Handle<Exclusive<Pollable<Watch>>>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(watch, "watch") }?.object)
}

/// Watches the keys under a prefix; "" for all. The caller frees the watch with rnet_watch_free().
///
/// Errors: RNET_LIMIT_REACHED, RNET_OUT_OF_MEMORY, RNET_BAD_NAME, RNET_CLOSED.
///
/// # Safety
/// `state` is a state, `prefix` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_state_watch(
    state: *const rnet_state,
    prefix: *const c_char,
    out: *mut *mut rnet_watch,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (open, prefix) = unsafe { (state_of(state)?, text(prefix, "prefix")?) };
        // SAFETY: as promised by the caller.
        let members = &unsafe { given(state, "state") }?.members;
        let watch = open.watch(prefix)?;
        let interrupter = watch.interrupter();
        let name = format!("the watch of {prefix:?}");
        let watch = Pollable::Direct(watch);
        let object = Exclusive::new("watch", name, watch, move || interrupter.interrupt());
        let object = Handle::new(members, MemberKind::Client, object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_watch { object, event: KeptEvent::default() }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Waits for the next change, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does not wait.
/// The caller frees the change with rnet_change_free(); it is null if there is none and `timeout_ns` is 0,
/// which is not an error.
///
/// Errors: RNET_TIMEOUT, RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `watch` is a watch, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_watch_recv(
    watch: *mut rnet_watch,
    timeout_ns: i64,
    out: *mut *mut rnet_change,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { watching_of(watch) }?;
        match object.with(|watch| {
            watch.receive(timeout_ns, Watch::try_recv, Watch::recv, Watch::recv_timeout)
        })? {
            // SAFETY: as promised by the caller.
            Some(change) => unsafe { give(out, rnet_change::new(change)) },
            // SAFETY: as promised by the caller.
            None => unsafe { write(out, std::ptr::null_mut()) },
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A file descriptor that is readable when there may be a change, as rnet_subscriber_fd(): it stays readable until
/// rnet_watch_recv() with `timeout_ns` 0 has returned null. It is closed by rnet_watch_free(). If the watch or its node is
/// closed, it becomes readable, and rnet_watch_recv() fails with RNET_CLOSED.
///
/// Errors: RNET_LIMIT_REACHED if the process has no free descriptor; RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `watch` is a watch, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_watch_fd(
    watch: *mut rnet_watch,
    out: *mut c_int,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let rnet_watch { object, event } = unsafe { given(watch, "watch") }?;
        let raised = object.with(Pollable::event)?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, event.keep(raised)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Called for each change. The change belongs to the library, and is valid until the callback returns.
pub type rnet_change_function =
    Option<unsafe extern "C" fn(change: *const rnet_change, context: *mut c_void)>;

/// Passes each change to `on_change`, and each error to `on_error` if that is not null, on a thread of the
/// node: that of the urgent lane if `urgent`, otherwise that of the bulk lane. It runs until the guard is
/// freed. Consumes the watch: the caller frees it as usual, and its other calls fail with RNET_CLOSED.
///
/// `free_context` is called once with `context` after the last call, also if this function fails.
///
/// # Safety
/// `watch` is a watch, `out` valid for a write, `error` null or valid for a write. The functions and the
/// context may be used by other threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_watch_on(
    watch: *mut rnet_watch,
    urgent: bool,
    on_change: rnet_change_function,
    on_error: rnet_error_function,
    context: *mut c_void,
    free_context: rnet_free_function,
    out: *mut *mut rnet_guard,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let context = Context::new(context, free_context);
    let body = move || {
        // SAFETY: as promised by the caller.
        let object = unsafe { watching_of(watch) }?;
        let on_change = on_change.ok_or_else(|| invalid("on_change is null"))?;
        let inner = object.consume()?.into_direct()?;
        let freed = context.freed();
        let inner = if urgent { inner.urgent() } else { inner };
        let handle = inner.on_result(move |result| match result {
            Ok(change) => {
                let change = rnet_change::new(change);
                // SAFETY: the caller has passed the function and the context for each other.
                unsafe { on_change(&raw const change, context.pointer()) };
            }
            Err(failed) => call_with_error(on_error, failed, &context),
        });
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_guard::new(object.members(), handle, freed)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a watch: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null and
/// a closed watch are allowed.
///
/// # Safety
/// `watch` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_watch_close(watch: *mut rnet_watch) {
    // SAFETY: as promised by the caller.
    unsafe { close(watch, |watch| watch.object.close()) }
}

/// Closes and frees a watch. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `watch` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_watch_free(watch: *mut rnet_watch) {
    // SAFETY: as promised by the caller.
    unsafe { free(watch) }
}
