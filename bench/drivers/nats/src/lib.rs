//! NATS: core publish and subscribe, and the key-value store of JetStream, through `async-nats`.

mod core;
mod kv;
mod kv_watch;
mod publish;
mod server;
mod subscribe;

use bench_harness::{KeyValue, System};

/// Core NATS.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(core::Core)]
}

/// A key that is watched.
pub fn watches() -> Vec<Box<dyn System>> {
    vec![Box::new(kv_watch::Watch)]
}

/// NATS KV.
pub fn stores() -> Vec<Box<dyn KeyValue>> {
    vec![Box::new(kv::Store)]
}
