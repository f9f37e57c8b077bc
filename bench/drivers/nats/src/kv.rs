//! The key-value store of JetStream.

use crate::server;
use async_nats::jetstream::{self, kv, stream::StorageType};
use bench_harness::{About, Broker, KeyValue, KeyValueClient, Net, Result};
use std::path::Path;
use tokio::runtime::Runtime;

const BUCKET: &str = "bench";

/// NATS KV in memory.
pub struct Store;

impl KeyValue for Store {
    fn id(&self) -> &'static str {
        "nats-kv"
    }

    fn about(&self) -> About {
        let settings = [
            "JetStream bucket in memory, one replica, history 1 (its default): nothing is written to disk, as with the other stores",
            "put waits for JetStream's acknowledgement; get is a direct get, the bucket's default",
            "the client's runtime is tokio's current_thread: the connection's task runs where the calls are made, which saves a change of threads for each call and answer",
            "server: JetStream with max_memory_store 1GB; max_payload 8MB for long values; ping_interval 10m (default 2m), as a client that is idle does not answer",
        ];
        About {
            label: "NATS KV".into(),
            client: "crate async-nats on tokio (Rust)".into(),
            settings: settings.map(str::to_owned).into(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn broker(&self, dir: &Path, port: u16) -> Option<Broker> {
        Some(server::broker_with_jetstream(dir, port))
    }

    fn open(&self, net: &Net) -> Result<Box<dyn KeyValueClient>> {
        let runtime = server::runtime()?;
        let client = server::connect(&runtime, net)?;
        let config = kv::Config {
            bucket: BUCKET.into(),
            storage: StorageType::Memory,
            num_replicas: 1,
            ..Default::default()
        };
        // Creating what is there already, configured alike, succeeds.
        let store =
            runtime.block_on(async { jetstream::new(client).create_key_value(config).await })?;
        Ok(Box::new(StoreClient { store, runtime }))
    }
}

struct StoreClient {
    store: kv::Store,
    runtime: Runtime,
}

impl KeyValueClient for StoreClient {
    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.runtime.block_on(self.store.put(key, value.to_vec().into()))?;
        Ok(())
    }

    fn get(&mut self, key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let value = self.runtime.block_on(self.store.get(key))?;
        seen(value.as_deref());
        Ok(())
    }
}
