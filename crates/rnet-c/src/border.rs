//! The one place where a call enters from C: panics end here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, Outcome, rnet_code, rnet_error, store};

/// Runs the body of an exported function. A failure is stored at `error`, if that is not null.
///
/// # Safety
/// `error` is null or valid for a write.
#[inline]
pub(crate) unsafe fn enter(
    error: *mut *mut rnet_error,
    body: impl FnOnce() -> Outcome,
) -> rnet_code {
    // Only a number leaves the closure: a failure is large, and its moves would cost each call.
    let call = || match body() {
        Ok(()) => rnet_code::RNET_OK,
        // SAFETY: as promised by the caller.
        Err(failure) => unsafe { store(failure, error) },
    };
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(code) => code,
        Err(panic) => {
            // SAFETY: as promised by the caller.
            unsafe { store(Failure::Internal(panic_text(&*panic)), error) }
        }
    }
}

/// As [`enter`], for a function that returns no code: a failure gives `otherwise`.
pub(crate) fn enter_or<T>(otherwise: T, body: impl FnOnce() -> Outcome<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        _ => otherwise,
    }
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without text").to_owned()
}

/// What a pointer refers to.
///
/// # Errors
/// `InvalidArgument` if it is null.
///
/// # Safety
/// `pointer` is null or refers to a `T` that lives as long as the result is used.
#[inline]
pub(crate) unsafe fn given<'a, T>(pointer: *const T, what: &str) -> Outcome<&'a T> {
    // SAFETY: as promised by the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| is_null(what))
}

#[cold]
fn is_null(what: &str) -> Failure {
    crate::error::invalid(format!("{what} is null"))
}

/// Gives a new object to the caller.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn give<T>(out: *mut *mut T, made: T) -> Outcome {
    let made = Box::new(made);
    // SAFETY: as promised by the caller. If it is null, the object is dropped.
    unsafe { write(out, std::ptr::null_mut()) }?;
    // SAFETY: as promised by the caller.
    unsafe { write(out, Box::into_raw(made)) }
}

/// As [`give`]; null for none.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn give_optional<T>(out: *mut *mut T, made: Option<T>) -> Outcome {
    match made {
        // SAFETY: as promised by the caller.
        Some(made) => unsafe { give(out, made) },
        // SAFETY: as promised by the caller.
        None => unsafe { write(out, std::ptr::null_mut()) },
    }
}

/// Writes a result.
///
/// # Safety
/// `out` is null or valid for a write.
#[inline]
pub(crate) unsafe fn write<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(is_null("the pointer for the result"));
    }
    // SAFETY: not null, and as promised by the caller.
    unsafe { out.write(value) };
    Ok(())
}

/// Writes a result that the caller may not want.
///
/// # Safety
/// `out` is null or valid for a write.
pub(crate) unsafe fn write_optional<T>(out: *mut T, value: T) -> Outcome {
    // SAFETY: as promised by the caller.
    if out.is_null() { Ok(()) } else { unsafe { write(out, value) } }
}

/// Ends an object of the caller with `end`, whose result is dropped. Null is allowed.
///
/// # Safety
/// `object` is null or was not freed.
pub(crate) unsafe fn close<T, R>(object: *const T, end: impl FnOnce(&T) -> R) {
    enter_or((), || {
        // SAFETY: as promised by the caller.
        drop(unsafe { object.as_ref() }.map(end));
        Ok(())
    });
}

/// Frees an object of the caller. Null is allowed.
///
/// # Safety
/// `object` is null, or comes from [`give`] and was not freed.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if object.is_null() {
        return;
    }
    enter_or((), || {
        // SAFETY: as promised by the caller.
        drop(unsafe { Box::from_raw(object) });
        Ok(())
    });
}
