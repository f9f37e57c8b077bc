//! A domain: its directory, its nodes, and which of them are alive.
//!
//! | module | contents |
//! |---|---|
//! | [`directory`], `version` | the directory: path, owner, layout version |
//! | [`node`], `endpoint_file` | a node's folder and control FIFO; the head of an endpoint's file |
//! | [`presence`] | liveness as a held kernel lock; removing what dead nodes leave |
//! | [`registry`], [`liveness_handle`], [`watch`] | what a node knows of its peers; how it notices their end |
//! | [`deaths`] | deaths of nodes, for observers that start later |
//! | [`orphans`] | what dead nodes leave that no peer knew |
//! | [`recovery`] | a node's files in the directory, and restoring them |
//! | [`types`] | protobuf types, which endpoints name by hash |
//! | [`observers`] | observers that sleep, and waking them |
//! | [`role`], [`heartbeat`] | a task of one process at a time, taken over from the dead and the stopped |
//! | [`host`] | the number of this host |
//! | `weak_cache` | what the nodes of a process share |

pub mod deaths;
pub mod directory;
pub(crate) mod endpoint_file;
pub mod heartbeat;
pub mod host;
pub mod liveness_handle;
pub mod node;
pub mod observers;
pub mod orphans;
pub mod presence;
pub mod recovery;
pub mod registry;
pub mod role;
pub mod types;
mod version;
pub mod watch;
mod weak_cache;
