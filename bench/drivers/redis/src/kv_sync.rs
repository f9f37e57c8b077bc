//! GET, SET and counters, each call waiting for its answer.

use crate::server;
use bench_harness::spec::Call;
use bench_harness::{About, Broker, KeyValue, KeyValueClient, Net, Result};
use redis::{Commands, Connection};
use std::path::Path;

const COUNTERS: &str = "counters: add is INCR; compare-and-set is the crate's transaction: WATCH, GET, then MULTI SET EXEC, again after a conflict (redis.io, Transactions)";

/// The synchronous client.
pub struct Sync {
    /// By the Unix socket, or by TCP.
    pub unix: bool,
}

impl KeyValue for Sync {
    fn id(&self) -> &'static str {
        if self.unix { "redis-kv" } else { "redis-kv-tcp" }
    }

    fn about(&self) -> About {
        let (label, way) = if self.unix {
            (
                "Redis get/set, Unix socket",
                "Unix socket, the fastest way to a server on the same host",
            )
        } else {
            ("Redis get/set, tcp", "TCP on 127.0.0.1, as in the founding study; TCP_NODELAY set")
        };
        About {
            label: label.into(),
            client: "crate redis, synchronous (Rust)".into(),
            settings: [way, COUNTERS]
                .iter()
                .chain(&server::SETTINGS)
                .map(|s| s.to_string())
                .collect(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn supports(&self, _call: Call, _durable: bool) -> Result<()> {
        Ok(())
    }

    fn broker(&self, dir: &Path, disk: Option<&Path>, port: u16) -> Option<Broker> {
        Some(server::broker(dir, disk, port))
    }

    fn open(&self, net: &Net) -> Result<Box<dyn KeyValueClient>> {
        Ok(Box::new(SyncClient(server::client(net, self.unix)?.get_connection()?)))
    }
}

struct SyncClient(Connection);

impl KeyValueClient for SyncClient {
    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        Ok(self.0.set(key, value)?)
    }

    fn get(&mut self, key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let value: Option<Vec<u8>> = self.0.get(key)?;
        seen(value.as_deref());
        Ok(())
    }

    fn add_one(&mut self, key: &str) -> Result<()> {
        let _: u64 = self.0.incr(key, 1)?;
        Ok(())
    }

    fn compare_and_add_one(&mut self, key: &str) -> Result<u64> {
        let mut tries = 0;
        redis::transaction(&mut self.0, &[key], |connection, pipeline| {
            tries += 1;
            let number: Option<u64> = connection.get(key)?;
            pipeline.set(key, number.unwrap_or(0) + 1).ignore().query::<Option<()>>(connection)
        })?;
        Ok(tries)
    }

    fn number(&mut self, key: &str) -> Result<u64> {
        let number: Option<u64> = self.0.get(key)?;
        Ok(number.unwrap_or(0))
    }
}
