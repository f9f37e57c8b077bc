//! Views of memory, and text that C passes.

use std::ffi::{CStr, c_char};

use crate::error::{Failure, Outcome, invalid};

/// A view of bytes: not owned, and not terminated by NUL. `data` may be null if `len` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_bytes {
    /// The first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl rnet_bytes {
    pub(crate) const EMPTY: rnet_bytes = rnet_bytes { data: std::ptr::null(), len: 0 };

    pub(crate) fn of(bytes: &[u8]) -> rnet_bytes {
        rnet_bytes { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Errors
    /// `InvalidArgument` if `data` is null and `len` is not 0.
    ///
    /// # Safety
    /// `data` is null or valid for reads of `len` bytes for as long as the result is used.
    #[inline]
    pub(crate) unsafe fn get<'a>(self, what: &str) -> Outcome<&'a [u8]> {
        if self.data.is_null() {
            return if self.len == 0 { Ok(&[]) } else { Err(self.without_data(what)) };
        }
        // SAFETY: not null, and as promised by the caller.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }

    #[cold]
    fn without_data(self, what: &str) -> Failure {
        invalid(format!("{what} is null, with a length of {}", self.len))
    }
}

/// The bytes that C passes by their address and number.
///
/// # Errors
/// `InvalidArgument` if `data` is null and `len` is not 0.
///
/// # Safety
/// As [`rnet_bytes::get`].
pub(crate) unsafe fn bytes<'a>(data: *const u8, len: usize) -> Outcome<&'a [u8]> {
    // SAFETY: as promised by the caller.
    unsafe { rnet_bytes { data, len }.get("data") }
}

/// The text that a C string holds.
///
/// # Errors
/// `InvalidArgument` if it is null or not UTF-8.
///
/// # Safety
/// `text` is null or a NUL-terminated string that lives as long as the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Outcome<&'a str> {
    // SAFETY: as promised by the caller.
    match unsafe { optional_text(text, what) }? {
        Some(text) => Ok(text),
        None => Err(invalid(format!("{what} is null"))),
    }
}

/// As [`text`]; `None` if it is null.
///
/// # Errors
/// `InvalidArgument` if it is not UTF-8.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(
    text: *const c_char,
    what: &str,
) -> Outcome<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and as promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|why| invalid(format!("{what} is not UTF-8: {why}")))
}
