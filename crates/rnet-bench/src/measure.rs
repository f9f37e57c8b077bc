//! Benchmarks of robot-net on this machine.
//!
//! Each benchmark starts its own processes, in a private directory, so that it does not meet a robot that
//! runs here, and leaves no files. It measures only robot-net, through the API that users have; the
//! comparison with other systems is in `bench/` of the repository.
//!
//! A run starts when all processes are matched, and ends when the numbers in the messages show that each
//! message was received or lost. Figures are the median of the runs, with the minimum and maximum.

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
pub use options::Benchmark;
pub use report::{DeliveryCounts, Table, TableView};
pub use topology::EXAMPLE_TOPOLOGY;
pub use usage::Machine;
pub use worker::run as run_worker;
use workers::{NamedRole, Workers};

use rnet_format::Outcome;
use streams::Compare;

/// Where a benchmark runs, and its callbacks.
pub struct BenchHost<'a> {
    /// Directory of the robots' domains; a benchmark makes its private directory in it.
    pub domains_dir: PathBuf,
    /// Returns whether to stop.
    pub should_stop: fn() -> bool,
    /// Called before the first run, which takes seconds.
    pub on_begin: &'a mut dyn FnMut(&Heading) -> io::Result<()>,
}

/// The benchmark and the machine.
pub struct Heading {
    /// Name of the benchmark.
    pub name: &'static str,
    /// The measured settings, as text.
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
    /// An error if robot-net broke a guarantee or exceeded a limit.
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
            Benchmark::Topology(options) => topology::run(host, options),
            Benchmark::Idle(options) => domain::idle(host, options),
            Benchmark::Nodes(options) => domain::nodes(host, options),
            Benchmark::Death(options) => domain::death(host, options),
        }
    }
}

/// A running benchmark: its directory and its heading.
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

    /// Starts a process for each role, in a domain that no other run uses, and waits until all are matched.
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
