//! `rnet_watch`: notification of changes of the state.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use rnet::Error;
use rnet::fork::ProcessOwned;
use rnet::state::{Change, ChangeStream, Watch, WatchHandle};

use crate::border::{enter, enter_or, free, give, given, write};
use crate::bytes::text;
use crate::callback::{Context, Registration, rnet_free_function, rnet_guard};
use crate::error::{Failure, Outcome, invalid, rnet_code, rnet_error};
use crate::handle::{Exclusive, MemberKind, MemberList};
use crate::options::duration;
use crate::state::{rnet_state, state_of};
use crate::state_entry::rnet_change;
use crate::subscriber::{RNET_FOREVER, rnet_error_function};

/// Reports the values of the keys under a prefix, then each change, in order. A slow reader gets the newest
/// value of each key, and the number of values that it missed. One thread at a time may use it; a second one
/// gets RNET_WRONG_THREAD.
pub struct rnet_watch {
    pub(crate) object: Arc<Exclusive<Watching>>,
    members: Arc<MemberList>,
}

/// A watch: with a file descriptor as a stream, which a thread of the node waits for.
pub(crate) enum Watching {
    Watch(Box<Watch>),
    Stream(ChangeStream),
    /// It is being converted.
    Moved,
}

impl Watching {
    fn recv(&mut self, timeout_ns: i64) -> Outcome<Option<Change>> {
        let watch = match (self, timeout_ns) {
            (Watching::Watch(watch), _) => watch,
            (Watching::Stream(stream), 0) => return Ok(stream.try_recv()?),
            (Watching::Stream(_), _) => {
                return Err(invalid(
                    "the watch has a file descriptor: wait for that with poll(), and receive with timeout_ns 0",
                ));
            }
            (Watching::Moved, _) => return Err(Error::closed("the watch").into()),
        };
        match timeout_ns {
            RNET_FOREVER => Ok(Some(watch.recv()?)),
            0 => Ok(watch.try_recv()?),
            ns => Ok(Some(watch.recv_timeout(duration(ns, "timeout_ns")?)?)),
        }
    }

    fn fd(&mut self) -> Outcome<c_int> {
        *self = match std::mem::replace(self, Watching::Moved) {
            Watching::Watch(watch) => Watching::Stream(watch.into_stream()),
            other => other,
        };
        match self {
            Watching::Stream(stream) => Ok(stream.fd()?.as_raw_fd()),
            _ => Err(Error::closed("the watch").into()),
        }
    }

    fn into_watch(self) -> rnet::Result<Watch> {
        match self {
            Watching::Watch(watch) => Ok(*watch),
            Watching::Stream(stream) => stream.into_watch(),
            Watching::Moved => Err(Error::closed("the watch")),
        }
    }
}

impl Registration for WatchHandle {
    fn detach(self: Box<Self>) {
        WatchHandle::detach(*self);
    }
}

/// # Safety
/// As [`given`].
unsafe fn watch_of<'a>(watch: *const rnet_watch) -> Outcome<&'a rnet_watch> {
    // SAFETY: as promised by the caller.
    unsafe { given(watch, "watch") }
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
        let members = unsafe { given(state, "state") }?.members.clone();
        let watch = open.watch(prefix)?;
        let interrupter = watch.interrupter();
        let name = format!("the watch of {prefix:?}");
        let object = Exclusive::new("watch", name, Watching::Watch(Box::new(watch)), move || {
            interrupter.interrupt();
        });
        members.add(MemberKind::State, &object);
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_watch { object, members }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Waits for the next change, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does not wait.
/// The caller frees the change with rnet_change_free(); it is null if there is none and `timeout_ns` is 0,
/// which is not an error.
///
/// Errors: RNET_TIMEOUT, RNET_CLOSED, RNET_WRONG_THREAD; RNET_INVALID_ARGUMENT for a wait after
/// rnet_watch_fd().
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
        match unsafe { watch_of(watch) }?.object.with(|watch| watch.recv(timeout_ns))? {
            // SAFETY: as promised by the caller.
            Some(change) => unsafe { give(out, rnet_change::new(change)) },
            // SAFETY: as promised by the caller.
            None => unsafe { write(out, std::ptr::null_mut()) },
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// A file descriptor that is readable when there may be a change, for poll(), epoll and event loops: it stays
/// readable until rnet_watch_recv() with `timeout_ns` 0 has returned null. It belongs to the watch, which
/// closes it; do not read it. From then on the watch receives only with `timeout_ns` 0.
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
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || write(out, watch_of(watch)?.object.with(Watching::fd)?)) }
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
        let rnet_watch { object, members } = unsafe { watch_of(watch) }?;
        let on_change = on_change.ok_or_else(|| invalid("on_change is null"))?;
        let taken = object.take().and_then(ProcessOwned::into_inner);
        let inner = taken.ok_or_else(|| Error::closed("the watch"))?.into_watch()?;
        let inner = if urgent { inner.urgent() } else { inner };
        let handle = inner.on_result(move |result| match result {
            Ok(change) => {
                let change = rnet_change::new(change);
                // SAFETY: the caller has passed the function and the context for each other.
                unsafe { on_change(&raw const change, context.pointer()) };
            }
            Err(failed) => {
                let Some(on_error) = on_error else { return };
                let failed = Failure::from(failed).into_error();
                // SAFETY: as above.
                unsafe { on_error(&raw const failed, context.pointer()) };
            }
        });
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_guard::new(members, handle)) }
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
    enter_or((), || {
        // SAFETY: as promised by the caller.
        drop(unsafe { watch.as_ref() }.and_then(|watch| watch.object.take()));
        Ok(())
    });
}

/// Closes and frees a watch. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `watch` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_watch_free(watch: *mut rnet_watch) {
    // SAFETY: as promised by the caller.
    unsafe {
        rnet_watch_close(watch);
        free(watch);
    }
}
