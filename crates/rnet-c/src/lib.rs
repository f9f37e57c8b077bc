//! The C ABI of robot-net: converts between C and crate `rnet`; the logic is in `rnet`.
//!
//! The rules of the border (ownership, threads, errors, options) are in docs/design/c-abi.md. `border.rs` is the
//! only place where a call enters from C; `handle.rs` has what an opaque pointer refers to.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "the operations of a block have one reason: what the caller of the function promises"
)]
#![allow(non_camel_case_types, reason = "types have the names that C programs see")]

mod action;
mod any_subscription;
mod border;
mod bytes;
mod callback;
mod command;
mod driver;
mod error;
mod events;
mod follower;
mod handle;
mod hooks;
mod inspect;
mod json;
mod log;
mod malformed;
mod node;
mod options;
mod param;
mod param_info;
mod publisher;
mod queue;
mod queue_worker;
mod recording;
mod recording_reader;
mod request;
mod sample;
mod service;
mod service_client;
mod state;
mod state_entry;
mod state_modify;
mod state_remote;
mod state_transaction;
mod state_value;
mod state_watch;
mod stats;
mod stream;
mod subscriber;
mod texts;
mod timer;
mod types;
mod wait_set;
