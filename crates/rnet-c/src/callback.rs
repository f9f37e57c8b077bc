//! Functions that C programs pass to be called.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use rnet::CallbackGuard;
use rnet::binding::{CallbackErrors, Report};

use crate::border::{enter_or, free, given};
use crate::handle::{Exclusive, MemberKind, MemberList};

/// The name of callbacks in reports of their errors.
const CALLBACK: &str = "a callback";

/// Frees the context of a callback.
pub type rnet_free_function = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// The context of a callback, freed once, after the last call.
pub(crate) struct Context {
    pointer: *mut c_void,
    free: rnet_free_function,
}

// SAFETY: the documentation of each callback says that its context is used and freed by other threads.
unsafe impl Send for Context {}
// SAFETY: as above; a callback that several threads call at a time says so.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(pointer: *mut c_void, free: rnet_free_function) -> Context {
        Context { pointer, free }
    }

    /// The pointer, to be passed to the callback. A method, so that closures capture the whole context.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            // SAFETY: the caller has passed both for each other, and this is the only call.
            unsafe { free(self.pointer) };
        }
    }
}

/// A callback that the engine calls until this is dropped.
pub(crate) trait Registration: Send {
    /// Lets the callback run until its object is closed.
    fn detach(self: Box<Self>);
}

impl Registration for CallbackGuard {
    fn detach(self: Box<Self>) {
        CallbackGuard::detach(*self);
    }
}

/// A registered callback. rnet_guard_free() removes it and waits for a running call, except within a callback of
/// the same node; rnet_guard_detach() lets it run until its object is closed. Any thread may use it.
pub struct rnet_guard(Arc<Exclusive<Box<dyn Registration>>>);

impl rnet_guard {
    pub(crate) fn new(
        members: &MemberList,
        registration: impl Registration + 'static,
    ) -> rnet_guard {
        let registration: Box<dyn Registration> = Box::new(registration);
        let guard = Exclusive::new("guard", "the callback".to_owned(), registration, || {});
        members.add(MemberKind::Guard, &guard);
        rnet_guard(guard)
    }
}

impl Drop for rnet_guard {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// Removes a callback. When it returns, the callback does not run and is not called again, except within a
/// callback of the same node. Null is allowed.
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
    // SAFETY: as promised by the caller.
    if let Some(registration) = unsafe { guard.as_ref() }.and_then(|guard| guard.0.take()) {
        registration.into_inner().into_iter().for_each(Registration::detach);
    }
    // SAFETY: as promised by the caller.
    unsafe { free(guard) }
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
