//! GET and SET in pipelines of a hundred.

use crate::server;
use bench_harness::spec::Call;
use bench_harness::{About, Broker, KeyValue, KeyValueClient, Net, Result};
use redis::{Connection, Pipeline};
use std::collections::VecDeque;
use std::path::Path;

/// Commands in a pipeline.
const BATCH: usize = 100;

/// The synchronous client's pipelines.
pub struct Pipelined;

impl KeyValue for Pipelined {
    fn id(&self) -> &'static str {
        "redis-kv-pipelined"
    }

    fn about(&self) -> About {
        let settings = [
            "TCP on 127.0.0.1, as in the founding study; TCP_NODELAY set",
            "a hundred commands in each pipeline, written together, answers read together; then the next",
        ];
        About {
            label: "Redis get/set, pipelined".into(),
            client: "crate redis, synchronous, Pipeline (Rust)".into(),
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
        let connection = server::tcp(net)?.get_connection()?;
        let pipeline = Pipeline::with_capacity(BATCH);
        Ok(Box::new(PipelinedClient { connection, pipeline, answers: VecDeque::new() }))
    }
}

struct PipelinedClient {
    connection: Connection,
    pipeline: Pipeline,
    /// To gets, not shown yet.
    answers: VecDeque<Option<Vec<u8>>>,
}

impl PipelinedClient {
    fn run(&mut self) -> Result<()> {
        let answers: Vec<Option<Vec<u8>>> = self.pipeline.query(&mut self.connection)?;
        self.answers.extend(answers);
        self.pipeline.clear();
        Ok(())
    }

    fn run_if_full(&mut self) -> Result<()> {
        if self.pipeline.len() == BATCH { self.run() } else { Ok(()) }
    }
}

impl KeyValueClient for PipelinedClient {
    fn in_flight(&self) -> usize {
        BATCH
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<()> {
        // A set that the server refuses is an error of the whole pipeline, ignored answer or not.
        self.pipeline.set(key, value).ignore();
        self.run_if_full()
    }

    fn get(&mut self, key: &str, seen: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        if let Some(answer) = self.answers.pop_front() {
            seen(answer.as_deref());
        }
        self.pipeline.get(key);
        self.run_if_full()
    }

    fn finish(&mut self) -> Result<()> {
        if !self.pipeline.is_empty() {
            self.run()?;
        }
        self.answers.clear();
        Ok(())
    }
}
