//! Shared-memory segments, registry, presence and wake-ups: the only crate that maps memory or
//! waits on the kernel.
//!
//! A domain is one directory on tmpfs; docs/design/shm-layout.md draws every file in it. Who
//! writes a page owns it: a publisher's log is mapped read-only by its readers, a reader's cursor
//! and pins stand in the reader's file and are mapped read-only by the publisher. The one page
//! that strangers write is the doorbell, and all it can do is wake somebody.
//!
//! | module | contents |
//! |---|---|
//! | [`os`] | Linux: memory, files, locks, threads, clocks and wake-ups |
//! | [`domain`] | the directory of a domain, its nodes, and which of them are alive |
//! | [`channel`] | the log of one publisher, and its readers |
//! | [`state`] | the state of the domain: keys, values, revisions |
//! | [`plain`] | casts between plain values and bytes |
//!
//! `os` uses none of the others; `domain` uses `os`; `channel` and `state` use both.

pub mod channel;
pub mod domain;
pub mod os;
pub mod plain;
pub mod state;

pub use rnet_ring as ring;

/// Version of everything that stands in shared memory; processes of one domain must agree.
pub const LAYOUT_VERSION: u32 = 7;
