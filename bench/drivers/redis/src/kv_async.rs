//! GET and SET with many requests in flight, by the asynchronous client.

use crate::server;
use bench_harness::spec::Call;
use bench_harness::{About, Broker, Error, KeyValue, KeyValueClient, Net, Result};
use futures_util::stream::{FuturesOrdered, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisResult, Value};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use tokio::runtime::{Builder, Runtime};

/// Requests in flight.
const IN_FLIGHT: usize = 64;

/// The asynchronous client, multiplexed.
pub struct Async;

impl KeyValue for Async {
    fn id(&self) -> &'static str {
        "redis-kv-async"
    }

    fn about(&self) -> About {
        let settings = [
            "TCP on 127.0.0.1, as in the founding study; TCP_NODELAY set",
            "64 requests in flight on one MultiplexedConnection, which pipelines by itself; its queue is as long",
            "the client's runtime is tokio's current_thread: the connection's task runs where the calls are made",
        ];
        About {
            label: "Redis get/set, asynchronous".into(),
            client: "crate redis, MultiplexedConnection on tokio (Rust)".into(),
            settings: settings.iter().chain(&server::SETTINGS).map(|s| s.to_string()).collect(),
        }
    }

    fn version(&self) -> Result<String> {
        server::version()
    }

    fn supports(&self, call: Call, _durable: bool) -> Result<()> {
        server::get_and_set_only(call)
    }

    fn broker(&self, dir: &Path, disk: Option<&Path>, port: u16) -> Option<Broker> {
        Some(server::broker(dir, disk, port))
    }

    fn open(&self, net: &Net) -> Result<Box<dyn KeyValueClient>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let config = AsyncConnectionConfig::new().set_pipeline_buffer_size(IN_FLIGHT);
        let client = server::tcp(net)?;
        let connection =
            runtime.block_on(client.get_multiplexed_async_connection_with_config(&config))?;
        Ok(Box::new(AsyncClient { answers: FuturesOrdered::new(), connection, runtime }))
    }
}

type Answer = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

struct AsyncClient {
    answers: FuturesOrdered<Answer>,
    connection: MultiplexedConnection,
    runtime: Runtime,
}

impl AsyncClient {
    /// Sends a request; returns the oldest answer when the limit of requests in flight is reached.
    fn ask(&mut self, command: Cmd) -> Result<Option<Value>> {
        let mut connection = self.connection.clone();
        self.answers
            .push_back(Box::pin(async move { connection.send_packed_command(&command).await }));
        if self.answers.len() < IN_FLIGHT {
            return Ok(None);
        }
        self.runtime.block_on(self.answers.next()).transpose().map_err(Error::from)
    }
}

impl KeyValueClient for AsyncClient {
    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        match self.ask(Cmd::set(key, value))? {
            None | Some(Value::Okay) => Ok(()),
            Some(other) => Err(Error::new(format!("SET was answered {other:?}"))),
        }
    }

    fn get(&mut self, key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        match self.ask(Cmd::get(key))? {
            None => {}
            Some(Value::BulkString(value)) => seen(Some(&value)),
            Some(Value::Nil) => seen(None),
            Some(other) => return Err(Error::new(format!("GET was answered {other:?}"))),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        while let Some(answer) = self.runtime.block_on(self.answers.next()) {
            answer?.extract_error()?;
        }
        Ok(())
    }
}
