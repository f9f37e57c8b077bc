//! `rnet bench …`: measures robot-net on this machine.
//!
//! Each bench starts its processes itself, in a private directory, so that it meets no robot that
//! runs here, and leaves nothing behind. It measures robot-net and nothing else, through the API that
//! users have; the comparison with other systems is in `bench/` of the repository.
//!
//! A run starts when all processes have met, and ends when each message has arrived or counts as lost:
//! numbers in the messages tell. Figures are the median of the runs, with the least and the greatest.

pub mod args;
pub mod bench_dir;
mod domain;
pub mod figure;
pub mod message;
mod report;
mod roles;
mod rtt;
pub mod schedule;
mod streams;
mod topology;
mod usage;
pub mod worker;
pub mod worker_link;
pub mod workers;

use std::fmt::Arguments;
use std::time::Duration;

use serde_json::{Value, json};

use args::BenchCommand;
use bench_dir::BenchDir;
use report::{DeliveryCounts, Table, row};
use streams::Compare;
use usage::Machine;

use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, command: BenchCommand) -> Outcome {
    let global = context.global();
    if global.domain.is_some() || global.group.is_some() {
        return Err(Failure::Usage(
            "a benchmark runs in its own private domain: omit --domain and --group (--dir sets its directory)"
                .to_owned(),
        ));
    }
    match command {
        BenchCommand::Throughput(args) => streams::throughput(context, &args),
        BenchCommand::Latency(args) => streams::latency(context, &args, Compare::Nothing),
        BenchCommand::Wait(args) => streams::latency(context, &args, Compare::Waits),
        BenchCommand::Trace(args) => streams::latency(context, &args, Compare::Tracing),
        BenchCommand::Rtt(args) => rtt::run(context, &args),
        BenchCommand::Topology(args) => topology::run(context, &args),
        BenchCommand::Idle(args) => domain::idle(context, &args),
        BenchCommand::Nodes(args) => domain::nodes(context, &args),
        BenchCommand::Death(args) => domain::death(context, &args),
    }
}

/// A bench under way: where it runs, and on what.
struct Bench {
    name: &'static str,
    bench_dir: BenchDir,
    machine: Machine,
}

impl Bench {
    /// Prints the head: what is measured on what.
    fn begin(context: &mut Context, name: &'static str, what: Arguments<'_>) -> Outcome<Bench> {
        let bench_dir = BenchDir::new(&context.domains_dir())?;
        let bench = Bench { name, bench_dir, machine: Machine::detect() };
        if cfg!(debug_assertions) {
            context.eprintln(format_args!(
                "rnet: this is a debug build and many times slower; build with --release"
            ));
        }
        if !context.json() {
            row(context, "machine", &bench.machine.to_string())?;
            row(context, name, &what.to_string())?;
            // It takes seconds until there is more to say.
            context.flush()?;
        }
        Ok(bench)
    }

    /// Prints what was found; as JSON with all runs.
    fn report(
        &self,
        context: &mut Context,
        settings: Value,
        tables: &[Table],
        delivery: Option<&DeliveryCounts>,
    ) -> Outcome {
        if !context.json() {
            tables.iter().try_for_each(|table| table.print(context))?;
            return delivery.map_or(Ok(()), |delivery| row(context, "messages", &delivery.show()));
        }
        let mut result = json!({ "delivery": delivery });
        for table in tables {
            result[table.name] = table.document();
        }
        context.document(&json!({
            "bench": self.name,
            "version": rnet::VERSION,
            "machine": self.machine,
            "settings": settings,
            "result": result,
        }))
    }
}

/// `3 runs of 1 s`
fn runs(count: usize, seconds: Duration) -> String {
    let plural = if count == 1 { "run" } else { "runs" };
    format!("{count} {plural} of {} s", seconds.as_secs_f64())
}
