//! Benchmarks of robot-net on this machine.
//!
//! Each benchmark starts its processes itself, in a private directory, so that it meets no robot that
//! runs here, and leaves nothing behind. It measures robot-net and nothing else, through the API that
//! users have; the comparison with other systems is in `bench/` of the repository.
//!
//! A run starts when all processes have met, and ends when each message has arrived or counts as lost:
//! numbers in the messages tell. Figures are the median of the runs, with the least and the greatest.

mod bench_dir;
mod domain;
pub(crate) mod figure;
pub(crate) mod message;
mod options;
mod report;
mod roles;
mod rtt;
pub(crate) mod schedule;
mod streams;
mod topology;
mod usage;
pub(crate) mod worker;
pub(crate) mod worker_link;
pub(crate) mod workers;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

pub use bench_dir::BenchDir;
pub use message::MIN_LEN_BYTES;
pub use options::{
    DeathOptions, IdleOptions, NodesOptions, RttOptions, RunOptions, StreamOptions,
    ThroughputOptions,
};
pub use report::{DeliveryCounts, Table, TableView};
pub use topology::EXAMPLE_TOPOLOGY;
pub use usage::Machine;
pub use worker::run as run_worker;
use workers::{NamedRole, Workers};

use rnet_format::Outcome;
use streams::Compare;

/// A benchmark with its options.
#[derive(Debug)]
pub enum Benchmark {
    /// Throughput of one topic.
    Throughput(ThroughputOptions),
    /// Latency at fixed rates.
    Latency(StreamOptions),
    /// Latency by wait mode, on idle cores and next to busy loops.
    Wait(StreamOptions),
    /// Overhead of tracing a topic.
    Trace(StreamOptions),
    /// Round-trip time by message size.
    Rtt(RttOptions),
    /// A complete robot.
    Topology {
        /// File of the robot; `None` is the built-in one.
        file: Option<PathBuf>,
        /// Length and number of the runs.
        run: RunOptions,
    },
    /// Cost of idle nodes.
    Idle(IdleOptions),
    /// Times to join, match and detect a death with many nodes.
    Nodes(NodesOptions),
    /// Detection time of the death of a process.
    Death(DeathOptions),
}

/// Where a benchmark runs, and its callbacks.
pub struct BenchHost<'a> {
    /// Directory of the domains of robots; a benchmark makes its private directory in it.
    pub domains_dir: PathBuf,
    /// Returns whether to stop.
    pub should_stop: fn() -> bool,
    /// Called before the first run, which takes seconds.
    pub on_begin: &'a mut dyn FnMut(&Heading) -> io::Result<()>,
}

/// What is measured on what.
pub struct Heading {
    /// Name of the benchmark.
    pub name: &'static str,
    /// The measured settings, in words.
    pub what: String,
    /// The machine.
    pub machine: Machine,
}

/// The result of a benchmark.
pub struct BenchReport {
    /// Name of the benchmark and the machine.
    pub heading: Heading,
    /// The tables, in the order in which they are printed.
    pub tables: Vec<Table>,
    /// Messages of all runs.
    pub delivery: Option<DeliveryCounts>,
    /// An error if robot-net broke a promise or exceeded a limit.
    pub verdict: Outcome,
    settings: Value,
}

impl Benchmark {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// The machine or the options do not allow it, a worker failed, or `should_stop` returned `true`.
    pub fn run(&self, host: &mut BenchHost<'_>) -> Outcome<BenchReport> {
        match self {
            Benchmark::Throughput(options) => streams::throughput(host, options),
            Benchmark::Latency(options) => streams::latency(host, options, Compare::Nothing),
            Benchmark::Wait(options) => streams::latency(host, options, Compare::Waits),
            Benchmark::Trace(options) => streams::latency(host, options, Compare::Tracing),
            Benchmark::Rtt(options) => rtt::run(host, options),
            Benchmark::Topology { file, run } => topology::run(host, file.as_deref(), run),
            Benchmark::Idle(options) => domain::idle(host, options),
            Benchmark::Nodes(options) => domain::nodes(host, options),
            Benchmark::Death(options) => domain::death(host, options),
        }
    }
}

/// A bench under way: where it runs, and on what.
struct Bench {
    heading: Heading,
    bench_dir: BenchDir,
    should_stop: fn() -> bool,
}

impl Bench {
    fn begin(host: &mut BenchHost<'_>, name: &'static str, what: String) -> Outcome<Bench> {
        let bench_dir = BenchDir::new(&host.domains_dir)?;
        let heading = Heading { name, what, machine: Machine::detect() };
        (host.on_begin)(&heading)?;
        Ok(Bench { heading, bench_dir, should_stop: host.should_stop })
    }

    /// Starts a process for each role, in a domain that no other run uses, and waits until all have met.
    fn start_workers(&self, run: usize, roles: Vec<NamedRole>) -> Outcome<Workers> {
        let (dir, domain) = (self.bench_dir.path().to_owned(), format!("run{run}"));
        Workers::start(&self.bench_dir, dir, domain, self.should_stop, roles)
    }

    fn report(
        self,
        settings: Value,
        tables: Vec<Table>,
        delivery: Option<DeliveryCounts>,
        verdict: Outcome,
    ) -> BenchReport {
        BenchReport { heading: self.heading, tables, delivery, verdict, settings }
    }
}

impl BenchReport {
    /// The result with all runs.
    pub fn document(&self) -> Value {
        let mut result = json!({ "delivery": self.delivery });
        for table in &self.tables {
            result[table.name] = table.document();
        }
        json!({
            "bench": self.heading.name,
            "version": rnet::VERSION,
            "machine": self.heading.machine,
            "settings": self.settings,
            "result": result,
        })
    }
}

/// `3 runs of 1 s`
fn runs(count: usize, seconds: Duration) -> String {
    let plural = if count == 1 { "run" } else { "runs" };
    format!("{count} {plural} of {} s", seconds.as_secs_f64())
}
