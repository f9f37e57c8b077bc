//! The part of nanomsg's headers that is used, for version 1.

use std::ffi::{c_char, c_int, c_void};

pub const AF_SP: c_int = 1;
pub const NN_PAIR: c_int = 16;
pub const NN_PUB: c_int = 2 * 16;
pub const NN_SUB: c_int = 2 * 16 + 1;
/// For the length of a message: the buffer is the library's.
pub const NN_MSG: usize = usize::MAX;

pub const NN_SOL_SOCKET: c_int = 0;
pub const NN_SNDBUF: c_int = 2;
pub const NN_RCVBUF: c_int = 3;
pub const NN_SNDTIMEO: c_int = 4;
pub const NN_RCVMAXSIZE: c_int = 16;
pub const NN_SUB_SUBSCRIBE: c_int = 1;
pub const NN_TCP: c_int = -3;
pub const NN_TCP_NODELAY: c_int = 1;
pub const NN_STAT_CURRENT_CONNECTIONS: c_int = 201;

unsafe extern "C" {
    pub fn nn_errno() -> c_int;
    pub fn nn_strerror(error: c_int) -> *const c_char;
    pub fn nn_socket(domain: c_int, protocol: c_int) -> c_int;
    pub fn nn_close(socket: c_int) -> c_int;
    pub fn nn_setsockopt(
        socket: c_int,
        level: c_int,
        option: c_int,
        value: *const c_void,
        len: usize,
    ) -> c_int;
    pub fn nn_bind(socket: c_int, address: *const c_char) -> c_int;
    pub fn nn_connect(socket: c_int, address: *const c_char) -> c_int;
    pub fn nn_send(socket: c_int, data: *const c_void, len: usize, flags: c_int) -> c_int;
    pub fn nn_recv(socket: c_int, data: *mut c_void, len: usize, flags: c_int) -> c_int;
    pub fn nn_allocmsg(len: usize, kind: c_int) -> *mut c_void;
    pub fn nn_freemsg(message: *mut c_void) -> c_int;
    pub fn nn_get_statistic(socket: c_int, statistic: c_int) -> u64;
}
