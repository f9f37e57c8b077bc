//! The functions of `lcm/lcm.h` in use.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `lcm_recv_buf_t`.
#[repr(C)]
pub struct RecvBuf {
    pub data: *const u8,
    pub data_size: u32,
    pub recv_utime: i64,
    pub lcm: *mut c_void,
}

/// `lcm_msg_handler_t`.
pub type Handler =
    unsafe extern "C" fn(message: *const RecvBuf, channel: *const c_char, user: *mut c_void);

unsafe extern "C" {
    pub fn lcm_create(url: *const c_char) -> *mut c_void;
    pub fn lcm_destroy(lcm: *mut c_void);
    pub fn lcm_publish(
        lcm: *mut c_void,
        channel: *const c_char,
        data: *const u8,
        len: c_uint,
    ) -> c_int;
    pub fn lcm_subscribe(
        lcm: *mut c_void,
        channel: *const c_char,
        handler: Handler,
        user: *mut c_void,
    ) -> *mut c_void;
    pub fn lcm_subscription_set_queue_capacity(subscription: *mut c_void, messages: c_int)
    -> c_int;
    pub fn lcm_handle(lcm: *mut c_void) -> c_int;
}
