//! NATS: core publish and subscribe, and the key-value store of JetStream, through `async-nats`.

mod core;
mod kv;
mod publish;
mod server;
mod subscribe;

use bench_harness::{KeyValue, System};

/// Core NATS.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(core::Core)]
}

/// NATS KV.
pub fn stores() -> Vec<Box<dyn KeyValue>> {
    vec![Box::new(kv::Store)]
}
