//! A domain: its directory, its nodes, and which of them are alive.
//!
//! | module | contents |
//! |---|---|
//! | [`directory`], `version` | the directory: path, owner, layout version |
//! | [`node`], `endpoint_file` | a node's folder: header, endpoints, control FIFO; heads of endpoint files |
//! | [`presence`] | liveness as a held kernel lock; removing leftovers of dead nodes |
//! | [`registry`], [`liveness_handle`], [`watch`] | a node's view of its peers; detecting their exit |
//! | [`deaths`] | deaths of nodes, for observers that start later |
//! | [`orphans`] | leftovers of dead nodes that no peer knew |
//! | [`recovery`] | a node's files in the directory, and restoring them |
//! | [`types`] | protobuf types, which endpoints name by hash |
//! | [`observers`] | sleeping observers, and waking them |
//! | [`role`], [`heartbeat`] | a task of one process at a time, taken over from dead and stopped processes |
//! | [`host`] | the id of this host |
//! | `weak_cache` | what the nodes of a process share |

pub mod deaths;
pub mod directory;
pub(crate) mod endpoint_file;
pub mod heartbeat;
pub mod host;
pub mod lingering;
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
