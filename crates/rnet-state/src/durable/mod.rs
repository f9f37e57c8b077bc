//! Durable state: the keys that outlive the domain, on disk.
//!
//! One process of the domain, the persister, writes them. docs/design/durable-state.md shows how it is chosen
//! and replaced when it dies or stops.
//!
//! | module | content |
//! |---|---|
//! | [`service`] | a node's part: loading, and becoming or finding the persister |
//! | [`restore`] | restores the region from disk |
//! | [`persister`] | the persister's thread |
//! | [`folder`] | the location of the state, its owner, its files |
//! | [`persister_candidate`] | becoming the persister |
//! | [`store`] | the persister's operations: loading, committing |
//! | [`engine`] | one store in one file: redb, with contained panics and classified errors |
//! | [`file`] | that file: locked, with a fence before each write |
//! | [`record`] | the encoding of one key |
//! | [`expiry_index`] | the expiry times of keys on disk |
//! | [`time`] | the clock for expiry times, across boots |

mod engine;
mod expiry_index;
mod file;
mod folder;
mod persister;
mod persister_candidate;
mod record;
mod restore;
mod service;
mod store;
mod time;

#[cfg(test)]
mod tests;

pub use folder::{StateDirChoice, StateFolder};
pub(crate) use service::Durable;
