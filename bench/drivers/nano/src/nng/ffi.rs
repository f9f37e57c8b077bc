//! The part of nng/nng.h that is used, for version 1.

use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Socket {
    pub id: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Listener {
    pub id: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pipe {
    pub id: u32,
}

/// `nng_msg`, an opaque type.
pub enum Message {}

pub type PipeCallback = unsafe extern "C" fn(Pipe, c_int, *mut c_void);

pub const PIPE_EV_ADD_POST: c_int = 1;
pub const PIPE_EV_REM_POST: c_int = 2;
pub const ETIMEDOUT: c_int = 5;
pub const ECLOSED: c_int = 7;

unsafe extern "C" {
    pub fn nng_version() -> *const c_char;
    pub fn nng_strerror(error: c_int) -> *const c_char;
    pub fn nng_pub0_open(socket: *mut Socket) -> c_int;
    pub fn nng_sub0_open(socket: *mut Socket) -> c_int;
    pub fn nng_pair0_open(socket: *mut Socket) -> c_int;
    pub fn nng_close(socket: Socket) -> c_int;
    pub fn nng_socket_set(
        socket: Socket,
        name: *const c_char,
        value: *const c_void,
        len: usize,
    ) -> c_int;
    pub fn nng_socket_set_int(socket: Socket, name: *const c_char, value: c_int) -> c_int;
    pub fn nng_socket_set_size(socket: Socket, name: *const c_char, value: usize) -> c_int;
    pub fn nng_socket_set_ms(socket: Socket, name: *const c_char, value: i32) -> c_int;
    pub fn nng_listen(
        socket: Socket,
        url: *const c_char,
        listener: *mut Listener,
        flags: c_int,
    ) -> c_int;
    pub fn nng_listener_get_int(
        listener: Listener,
        name: *const c_char,
        value: *mut c_int,
    ) -> c_int;
    pub fn nng_dial(socket: Socket, url: *const c_char, dialer: *mut c_void, flags: c_int)
    -> c_int;
    pub fn nng_pipe_notify(
        socket: Socket,
        event: c_int,
        callback: PipeCallback,
        arg: *mut c_void,
    ) -> c_int;
    pub fn nng_send(socket: Socket, data: *const c_void, len: usize, flags: c_int) -> c_int;
    pub fn nng_sendmsg(socket: Socket, message: *mut Message, flags: c_int) -> c_int;
    pub fn nng_recvmsg(socket: Socket, message: *mut *mut Message, flags: c_int) -> c_int;
    pub fn nng_msg_alloc(message: *mut *mut Message, len: usize) -> c_int;
    pub fn nng_msg_free(message: *mut Message);
    pub fn nng_msg_body(message: *mut Message) -> *mut c_void;
    pub fn nng_msg_len(message: *const Message) -> usize;
}
