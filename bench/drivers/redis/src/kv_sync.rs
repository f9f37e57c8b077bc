//! GET and SET, each waiting for its answer.

use crate::server;
use bench_harness::{About, Broker, KeyValue, KeyValueClient, Net, Result};
use redis::{Commands, Connection};
use std::path::Path;

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
            settings: [way].iter().chain(&server::SETTINGS).map(|s| s.to_string()).collect(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn broker(&self, dir: &Path, port: u16) -> Option<Broker> {
        Some(server::broker(dir, port))
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
}
