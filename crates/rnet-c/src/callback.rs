//! Functions that C programs pass to be called.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use rnet::binding::{CallbackErrors, Report};

use crate::border::{enter_or, free, given};
use crate::handle::{Handle, Latch, MemberKind, MemberList, Shared};

/// The name of callbacks in reports of their errors.
const CALLBACK: &str = "a callback";

/// Frees the context of a callback.
pub type rnet_free_function = Option<unsafe extern "C" fn(context: *mut c_void)>;

thread_local!(static FREES_CONTEXT: Cell<bool> = const { Cell::new(false) });

/// Whether this thread runs a callback or a handler, or frees the context of one. Closing does not wait there for
/// another thread, which may wait for this one.
pub(crate) fn in_callback() -> bool {
    FREES_CONTEXT.get() || CallbackErrors::is_callback_thread()
}

/// The context of a callback, freed once, after the last call.
pub(crate) struct Context {
    pointer: *mut c_void,
    free: rnet_free_function,
    freed: Arc<Latch>,
}

// SAFETY: the documentation of each callback says that its context is used and freed by other threads.
unsafe impl Send for Context {}
// SAFETY: as above; a callback that several threads call at a time says so.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(pointer: *mut c_void, free: rnet_free_function) -> Context {
        Context { pointer, free, freed: Arc::default() }
    }

    /// Set once it was freed: the callback is not called again.
    pub(crate) fn freed(&self) -> Option<Arc<Latch>> {
        Some(self.freed.clone())
    }

    /// The pointer, to be passed to the callback. A method, so that closures capture the whole context.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            let outer = FREES_CONTEXT.replace(true);
            // SAFETY: the caller has passed both for each other, and this is the only call.
            unsafe { free(self.pointer) };
            FREES_CONTEXT.set(outer);
        }
        let _ = self.freed.set(());
    }
}

/// What ends a callback when it is dropped.
type Registration = Box<dyn Send + Sync>;

/// A registered callback. rnet_guard_free() removes it and waits for a running call, except within a callback;
/// rnet_guard_detach() lets it run until its object is closed. Any thread may use it.
pub struct rnet_guard(Handle<Shared<Registration>>);

impl rnet_guard {
    pub(crate) fn new(
        members: &Arc<MemberList>,
        registration: impl Send + Sync + 'static,
        freed: Option<Arc<Latch>>,
    ) -> rnet_guard {
        let registration: Registration = Box::new(registration);
        let guard = Shared::with_end("the callback".to_owned(), registration, |_| (), freed);
        rnet_guard(Handle::new(members, MemberKind::Guard, guard))
    }
}

/// Removes a callback. When it returns, the callback does not run and is not called again, except within a
/// callback. Null is allowed.
///
/// # Safety
/// `guard` is null or a guard that was not freed or detached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_guard_free(guard: *mut rnet_guard) {
    // SAFETY: as promised by the caller.
    unsafe { free(guard) }
}

/// Keeps the callback until its object is closed, and frees the guard. Null is allowed.
///
/// # Safety
/// As for rnet_guard_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_guard_detach(guard: *mut rnet_guard) {
    if guard.is_null() {
        return;
    }
    enter_or((), || {
        // SAFETY: not null, and as promised by the caller.
        unsafe { Box::from_raw(guard) }.0.detach();
        Ok(())
    });
}

/// Reports an error of a callback, from within it: it is counted, shown by `rnet status`, and logged. For languages
/// whose exceptions must not leave a callback. Without effect on a thread that runs no callback of robot-net.
///
/// # Safety
/// `message` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_report_callback_error(message: *const c_char) {
    enter_or((), || {
        // SAFETY: as promised by the caller.
        unsafe { given(message, "message") }?;
        // SAFETY: not null, and as promised by the caller. The text of an exception may have any encoding.
        let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        if let Some(errors) = CallbackErrors::of_this_thread()
            && let Some(unreported) = errors.count(CALLBACK)
        {
            errors.report(CALLBACK, unreported, Report { text, ..Report::default() });
        }
        Ok(())
    });
}
