//! The integration tests of this crate, one module for each subject.

#[path = "../../../rnet/tests/it/common/mod.rs"]
mod common;
#[path = "partitions/random.rs"]
mod random;

#[cfg(feature = "zenoh")]
mod attack;
mod backpressure;
mod beside_large;
#[cfg(feature = "zenoh")]
mod cable;
mod calls;
mod certified;
mod commands;
mod commands_cut;
mod commands_random;
mod conformance;
mod drivers;
mod ended_publishers;
mod folder;
mod golden;
mod hostile;
mod hosts;
mod memory;
mod names;
#[cfg(feature = "zenoh")]
mod namespaces;
mod nodes;
mod partitions;
#[cfg(feature = "zenoh")]
mod ports;
mod promises;
mod quiet;
mod reliable_cut;
mod rights;
#[cfg(feature = "zenoh")]
mod rnet_link;
#[cfg(feature = "zenoh")]
mod rnet_link_start;
mod secure;
mod sinks;
mod state;
mod status;
mod stream;
mod stream_alloc;
mod trace;
mod two_hosts;
mod wills;
mod wire;
#[cfg(feature = "zenoh")]
mod zenoh;
