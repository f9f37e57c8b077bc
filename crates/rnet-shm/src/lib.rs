//! Shared-memory segments, registry, presence and wake-ups: the only crate that maps memory or
//! waits on the kernel.
//!
//! A domain is one directory on tmpfs; docs/design/shm-layout.md draws every file in it. Who
//! writes a page owns it: a publisher's log is mapped read-only by its readers, a reader's cursor
//! and pins stand in the reader's file and are mapped read-only by the publisher. The one page
//! that strangers write is the doorbell, and all it can do is wake somebody.
//!
//! | module | what |
//! |---|---|
//! | [`domain`] | the directory: where, whose, which version |
//! | [`orphans`] | sweeping up after those whom nobody knew |
//! | [`presence`] | who lives is a held kernel lock; sweeping up after the dead |
//! | [`deaths`] | nodes that have died, for observers that look later |
//! | [`node`] | a node's folder: header, list of endpoints, control FIFO |
//! | [`domain_recovery`] | what a node has in the directory, and putting it back |
//! | [`types`] | protobuf types, which endpoints name by hash |
//! | [`registry`], [`liveness_handle`], [`watch`] | what a node knows of its peers; how it notices their end |
//! | [`bell`], [`barrier`] | sleeping and waking across processes |
//! | [`publisher`], [`pool`], [`reader_table`] | the writer's side of a channel |
//! | [`subscription`], [`channel`], [`received`] | the reader's side |
//! | [`file_lock`] | a file that one process at a time may write |
//! | [`role`], [`heartbeat`] | a task of one process at a time, taken over from the dead and the stopped |
//! | [`host`] | the number of this host |
//! | [`word_file`] | what a process has come to, for the one after it |
//! | [`cpu`], [`priority`] | what threads ask of the scheduler: that wait, that only look on |
//! | [`tcp`] | the TCP connections of this process |
//! | [`shortage`] | what the system has run out of, by name |
//! | [`observe`], [`observers`] | reading along without taking part; waking those who do |
//! | [`state`] | the state of the domain: keys, values, revisions |
//! | [`fork`] | what a forked child inherits, and must neither use nor end |

pub mod barrier;
pub mod bell;
pub mod channel;
pub mod clock;
pub mod cpu;
pub mod deaths;
pub mod domain;
pub mod domain_recovery;
pub mod event;
pub mod extension;
#[cfg(debug_assertions)]
pub mod failpoint;
pub mod file_lock;
mod files;
mod folders;
pub mod fork;
mod handoff;
pub mod heartbeat;
pub mod host;
pub mod liveness_handle;
mod mapping;
pub mod node;
pub mod observe;
pub mod observers;
mod ofd;
pub mod orphans;
pub mod pool;
pub mod presence;
pub mod priority;
mod process_state;
pub mod publisher;
pub mod random;
mod reader_stats;
pub mod reader_table;
pub mod received;
pub mod registry;
pub mod role;
pub mod shortage;
mod sigbus;
pub mod sleep;
pub mod state;
pub mod subscription;
pub mod tcp;
mod temp_file;
pub mod thread;
pub mod types;
mod unlinked_files;
mod version;
pub mod watch;
mod weak_cache;
pub mod word_file;

pub use rnet_ring as ring;

/// Version of everything that stands in shared memory; processes of one domain must agree.
pub const LAYOUT_VERSION: u32 = 7;
