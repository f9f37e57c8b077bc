//! The link: what joins a domain's hosts. docs/design/wire.md draws it.
//!
//! One process per host and domain holds the link. It is an ordinary node with proxies of what other hosts
//! have; nothing else of robot-net knows of a second transport. The network itself is behind [`Transport`]:
//! Zenoh with the feature `zenoh`, a network in memory for tests.

#[doc(hidden)]
pub mod addresses;
pub mod config;
pub mod link;
#[doc(hidden)]
pub mod memory;
pub mod stream;
mod transport;
pub mod wire;
#[cfg(feature = "zenoh")]
pub mod zenoh;

pub use transport::{Connection, HostId, Presence, Sink, Transport};
