//! The key-value store of JetStream.

use crate::server;
use async_nats::jetstream::kv::UpdateErrorKind;
use async_nats::jetstream::{self, kv, stream::StorageType};
use bench_harness::spec::Call;
use bench_harness::{About, Broker, Error, KeyValue, KeyValueClient, Net, Result};
use std::path::Path;
use tokio::runtime::Runtime;

const BUCKET: &str = "bench";

/// NATS KV in memory, and on disk where values are to be durable.
pub struct Store;

impl KeyValue for Store {
    fn id(&self) -> &'static str {
        "nats-kv"
    }

    fn about(&self) -> About {
        let settings = [
            "JetStream bucket in memory, one replica, history 1 (its default): nothing is written to disk, as with the other stores",
            "durable: a bucket in files on the real disk, sync_interval always (docs.nats.io, JetStream: each write is synced before it is acknowledged; default 2m)",
            "put waits for JetStream's acknowledgement; get is a direct get, the bucket's default",
            "compare-and-set: entry, then update with its revision, again after a conflict",
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

    fn supports(&self, call: Call, _durable: bool) -> Result<()> {
        match call {
            Call::Add => Err(Error::new("a bucket has no addition, only update with a revision")),
            _ => Ok(()),
        }
    }

    fn broker(&self, dir: &Path, disk: Option<&Path>, port: u16) -> Option<Broker> {
        Some(server::broker_with_jetstream(dir, disk, port))
    }

    fn open(&self, net: &Net) -> Result<Box<dyn KeyValueClient>> {
        let storage = if net.disk.is_some() { StorageType::File } else { StorageType::Memory };
        let (store, runtime) = bucket(net, storage)?;
        Ok(Box::new(StoreClient { store, runtime }))
    }
}

/// The bucket, by a connection of its own.
pub fn bucket(net: &Net, storage: StorageType) -> Result<(kv::Store, Runtime)> {
    let runtime = server::runtime()?;
    let client = server::connect(&runtime, net)?;
    let config =
        kv::Config { bucket: BUCKET.into(), storage, num_replicas: 1, ..Default::default() };
    // Creating an existing bucket with the same configuration succeeds.
    let store =
        runtime.block_on(async { jetstream::new(client).create_key_value(config).await })?;
    Ok((store, runtime))
}

struct StoreClient {
    store: kv::Store,
    runtime: Runtime,
}

/// The number that a value is the text of.
fn parse(value: &[u8]) -> Result<u64> {
    let text = std::str::from_utf8(value)?;
    Ok(text.parse()?)
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

    fn compare_and_add_one(&mut self, key: &str) -> Result<u64> {
        self.runtime.block_on(async {
            let mut tries = 0;
            loop {
                tries += 1;
                let (number, revision) = match self.store.entry(key).await? {
                    Some(entry) => (parse(&entry.value)?, entry.revision),
                    None => (0, 0),
                };
                let next = (number + 1).to_string();
                // Revision 0 is that of a key without one: update then creates it.
                match self.store.update(key, next.into(), revision).await {
                    Ok(_) => return Ok(tries),
                    Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {}
                    Err(error) => return Err(error.into()),
                }
            }
        })
    }

    fn number(&mut self, key: &str) -> Result<u64> {
        match self.runtime.block_on(self.store.get(key))? {
            Some(value) => parse(&value),
            None => Ok(0),
        }
    }
}
