//! The C functions in use: Cyclone DDS's own, and those of `c/shim.c`.

use std::ffi::{c_char, c_int, c_void};

/// An entity, or a negative error code.
pub type Entity = i32;

/// Gets each message, on Cyclone's receive thread.
pub type SinkFn = unsafe extern "C" fn(context: *mut c_void, data: *const u8, len: usize);

unsafe extern "C" {
    pub fn dds_create_domain(id: u32, config: *const c_char) -> Entity;
    pub fn dds_create_participant(id: u32, qos: *const c_void, listener: *const c_void) -> Entity;
    pub fn dds_delete(entity: Entity) -> i32;
    pub fn dds_write_flush(writer: Entity);
    pub fn dds_strretcode(code: i32) -> *const c_char;

    pub fn shim_topic(participant: Entity, name: *const c_char) -> Entity;
    pub fn shim_writer(participant: Entity, topic: Entity) -> Entity;
    pub fn shim_write(writer: Entity, data: *const u8, len: u32) -> c_int;
    pub fn shim_reader(
        participant: Entity,
        topic: Entity,
        sink: SinkFn,
        context: *mut c_void,
        kept: *mut *mut c_void,
    ) -> Entity;
    pub fn shim_reader_free(kept: *mut c_void);
}
