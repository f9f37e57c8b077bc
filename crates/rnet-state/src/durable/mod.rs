//! Durable state: the keys that outlive the domain, on disk.
//!
//! One process of the domain, the persister, writes them; who that is, and what happens when it is
//! killed or stopped, is drawn in docs/design/durable-state.md.
//!
//! | module | what |
//! |---|---|
//! | [`service`] | a node's part in it: loading, being or finding the persister |
//! | [`restore`] | putting back into the region what was on disk |
//! | [`persister`] | the persister's thread |
//! | [`folder`] | where it is, whose it must be, what the files in it are |
//! | [`persister_candidate`] | becoming the persister |
//! | [`store`] | what the persister does: loading, committing |
//! | [`engine`] | one store in one file: redb, its panics contained, its errors sorted |
//! | [`file`] | that file: locked, each write behind the fence |
//! | [`record`] | the bytes of one key |
//! | [`expiry_index`] | when which key ends on disk |
//! | [`time`] | the clock by which keys end, over boots |

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
