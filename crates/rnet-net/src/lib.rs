//! The link: it joins the hosts of a domain. docs/design/wire.md draws it.
//!
//! One process per host and domain holds the link. It is an ordinary node with proxies of the other hosts'
//! endpoints; nothing else in robot-net has a second transport. The network itself is behind [`Transport`]:
//! Zenoh with the feature `zenoh`, an in-memory network for tests.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod addresses;
pub mod config;
#[doc(hidden)]
pub mod in_memory_transport;
pub mod link;
pub mod secure;
pub mod stream;
mod transport;
pub mod wire;
#[cfg(feature = "zenoh")]
pub mod zenoh;

pub use transport::{Connection, HostId, Presence, Sink, Transport};
