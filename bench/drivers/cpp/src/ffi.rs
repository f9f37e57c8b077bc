//! The types of `cpp/driver.hpp`.

use std::ffi::{CStr, c_char, c_void};

/// What an endpoint needs.
#[repr(C)]
pub struct Setup {
    pub place: *const c_char,
    pub topic: *const c_char,
    pub max_len: usize,
    pub is_urgent: bool,
}

/// An answer: an error, or the address of a publisher.
#[repr(C)]
pub struct Text([c_char; 512]);

impl Text {
    pub fn new() -> Self {
        Self([0; 512])
    }

    pub fn get(&self) -> String {
        // SAFETY: C++ ends the text with a zero byte, and a new one is empty.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }.to_string_lossy().into_owned()
    }
}

/// Receives each message.
#[repr(C)]
pub struct TakeMessage {
    pub take: unsafe extern "C" fn(context: *mut c_void, data: *const u8, len: usize),
    pub context: *mut c_void,
}

/// Writes a message in place.
#[repr(C)]
pub struct Fill {
    pub write: unsafe extern "C" fn(context: *mut c_void, data: *mut u8, len: usize),
    pub context: *mut c_void,
}

/// The functions of a system in C++.
#[repr(C)]
pub struct Functions {
    pub version: unsafe extern "C" fn(*mut Text),
    pub open_publisher: unsafe extern "C" fn(*const Setup, *mut Text) -> *mut c_void,
    pub send: unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut Text) -> bool,
    pub send_in_place: unsafe extern "C" fn(*mut c_void, usize, Fill, *mut Text) -> bool,
    pub close_publisher: unsafe extern "C" fn(*mut c_void),
    pub open_subscriber: unsafe extern "C" fn(*const Setup, TakeMessage, *mut Text) -> *mut c_void,
    pub close_subscriber: unsafe extern "C" fn(*mut c_void),
}

unsafe extern "C" {
    #[cfg(has_cpp_rnet)]
    pub static bench_cpp_rnet: Functions;
    #[cfg(has_cpp_zmq)]
    pub static bench_cpp_zmq: Functions;
}
