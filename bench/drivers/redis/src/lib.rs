//! Redis: pub/sub, the key-value store in four ways of calling it, and notifications of its keys,
//! through the crate `redis`.

mod keyspace;
mod kv_async;
mod kv_pipelined;
mod kv_sync;
mod publish;
mod pubsub;
mod server;
mod subscribe;

use bench_harness::{KeyValue, System};

/// Pub/sub by TCP and by Unix socket.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![Box::new(pubsub::PubSub { unix: false }), Box::new(pubsub::PubSub { unix: true })]
}

/// A key that is watched.
pub fn watches() -> Vec<Box<dyn System>> {
    vec![Box::new(keyspace::Keyspace)]
}

/// The store: one call at a time by Unix socket and by TCP, asynchronous, pipelined.
pub fn stores() -> Vec<Box<dyn KeyValue>> {
    vec![
        Box::new(kv_sync::Sync { unix: true }),
        Box::new(kv_sync::Sync { unix: false }),
        Box::new(kv_async::Async),
        Box::new(kv_pipelined::Pipelined),
    ]
}
