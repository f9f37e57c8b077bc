//! NATS: core publish and subscribe, request and reply, and the key-value store of JetStream, through `async-nats`.

mod call;
mod core;
mod kv;
mod kv_watch;
mod publish;
mod server;
mod subscribe;

use bench_harness::{AsSystem, KeyValue, System};

/// Core NATS.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(core::Core)]
}

/// Request and reply.
pub fn calls() -> Vec<Box<dyn System>> {
    vec![Box::new(AsSystem::new(call::Request))]
}

/// A key that is watched.
pub fn watches() -> Vec<Box<dyn System>> {
    vec![Box::new(kv_watch::Watch)]
}

/// NATS KV.
pub fn stores() -> Vec<Box<dyn KeyValue>> {
    vec![Box::new(kv::Store)]
}
