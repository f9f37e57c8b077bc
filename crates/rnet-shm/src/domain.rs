//! A domain: its directory, its nodes, and which of them are alive.
//!
//! | module | contents |
//! |---|---|
//! | [`directory`], `version` | the directory: path, owner, layout version |
//! | [`node`], `endpoint_file` | a node's folder: header, endpoints, control FIFO; heads of endpoint files |
//! | [`presence`] | liveness as a held kernel lock; removing leftovers of dead nodes |
//! | [`registry`], [`pidfd`], [`exit_watch`] | a node's view of its peers; detecting their exit |
//! | [`death_notes`] | deaths of nodes, for observers that start later |
//! | [`dead_node_leftovers`] | leftovers of dead nodes that no peer knew |
//! | [`restored_files`] | a node's files in the directory, and restoring them |
//! | [`types`] | protobuf types, which endpoints name by hash |
//! | [`observers`] | sleeping observers, and waking them |
//! | [`role`], [`lease`] | a task of one process at a time, taken over from dead and stopped processes |
//! | [`host_id`] | the id of this host |
//! | `weak_cache` | what the nodes of a process share |

pub mod dead_node_leftovers;
pub mod death_notes;
pub mod directory;
pub(crate) mod endpoint_file;
pub mod exit_watch;
pub mod host_id;
pub mod lease;
pub mod lingering;
pub mod node;
pub mod observers;
pub mod pidfd;
pub mod presence;
pub mod registry;
pub mod restored_files;
pub mod role;
pub mod types;
mod version;
mod weak_cache;
