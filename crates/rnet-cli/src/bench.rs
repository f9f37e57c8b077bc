//! `rnet bench …`: measures robot-net on this machine.
//!
//! Each bench starts its processes itself, in a private directory, so that it meets no robot that
//! runs here, and leaves nothing behind. It measures robot-net and nothing else, through the API that
//! users have; the comparison with other systems is in `bench/` of the repository.
//!
//! A run starts when all processes have met, and ends when each message has arrived or counts as lost:
//! numbers in the messages tell. Figures are the median of the runs, with the least and the greatest.

pub mod args;
pub mod crew;
mod death;
pub mod figure;
mod idle;
pub mod job;
mod latency;
pub mod link;
mod machine;
pub mod message;
mod nodes;
pub mod pace;
pub mod place;
pub mod roles;
mod rtt;
mod throughput;
mod topology;
mod trace;
mod usage;
mod wait;
pub mod worker;

use std::fmt::Arguments;

use serde::Serialize;
use serde_json::{Value, json};

use args::BenchCommand;
use figure::{PercentileSpread, Spread};
use machine::Machine;
use place::Place;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

pub fn run(context: &mut Context, command: BenchCommand) -> Outcome {
    let global = context.global();
    if global.domain.is_some() || global.group.is_some() {
        return Err(Failure::Usage(
            "a bench runs in a private domain of its own: leave --domain and --group out (--dir \
             says where that stands)"
                .to_owned(),
        ));
    }
    match command {
        BenchCommand::Throughput(args) => throughput::run(context, &args),
        BenchCommand::Latency(args) => latency::run(context, &args),
        BenchCommand::Wait(args) => wait::run(context, &args),
        BenchCommand::Trace(args) => trace::run(context, &args),
        BenchCommand::Rtt(args) => rtt::run(context, &args),
        BenchCommand::Topology(args) => topology::run(context, &args),
        BenchCommand::Idle(args) => idle::run(context, &args),
        BenchCommand::Nodes(args) => nodes::run(context, &args),
        BenchCommand::Death(args) => death::run(context, &args),
    }
}

/// A bench under way: where it runs, and on what.
struct Bench {
    name: &'static str,
    place: Place,
    machine: Machine,
}

impl Bench {
    /// Prints the head: what is measured on what.
    fn begin(context: &mut Context, name: &'static str, what: Arguments<'_>) -> Outcome<Bench> {
        let place = Place::new(&context.base())?;
        let bench = Bench { name, place, machine: Machine::look() };
        if cfg!(debug_assertions) {
            context.say(format_args!(
                "rnet: this is a debug build, which is many times slower; build with --release"
            ));
        }
        if !context.json() {
            context.line(format_args!("{:<12}{}", "machine", bench.machine))?;
            context.line(format_args!("{name:<12}{what}"))?;
            // It takes seconds until there is more to say.
            context.flush()?;
        }
        Ok(bench)
    }

    /// The JSON document: what all benches have, and what this one found.
    fn document(&self, context: &mut Context, settings: Value, result: Value) -> Outcome {
        context.document(&json!({
            "bench": self.name,
            "version": rnet::VERSION,
            "machine": self.machine,
            "settings": settings,
            "result": result,
        }))
    }
}

/// One line of a result: its name, and the figure.
fn row(context: &mut Context, name: &str, text: Arguments<'_>) -> Outcome {
    context.line(format_args!("{name:<12}{text}"))
}

/// `3 runs of 1 s`
fn runs(count: u32, seconds: std::time::Duration) -> String {
    let plural = if count == 1 { "run" } else { "runs" };
    format!("{count} {plural} of {} s", seconds.as_secs_f64())
}

fn as_latency(ns: f64) -> String {
    table::latency(ns as u64)
}

fn as_bytes(bytes: f64) -> String {
    table::bytes(bytes)
}

/// `98 %`, `0.03 %`: of a core.
fn as_percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.995 => format!("{percent:.2} %"),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// `12.3 M`: a count or a rate.
fn as_count(n: f64) -> String {
    match n {
        n if n >= 999_500.0 => format!("{:.2} M", n / 1e6),
        n if n >= 9_995.0 => format!("{:.1} k", n / 1e3),
        // Large messages are few per second.
        n if n < 9.995 && n.fract() != 0.0 => format!("{n:.2}"),
        n => format!("{n:.0}"),
    }
}

fn latency_rows(context: &mut Context, spread: &PercentileSpread) -> Outcome {
    for (name, spread) in spread.rows() {
        row(context, name, format_args!("{}", spread.show(as_latency)))?;
    }
    Ok(())
}

/// What became of the messages of all runs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Fate {
    /// Messages that readers should have received.
    expected: u64,
    received: u64,
    /// By the numbers in the messages.
    lost: u64,
    /// By robot-net's own counters.
    counted_lost: u64,
    out_of_order: u64,
    corrupt: u64,
}

impl Fate {
    fn sum(parts: impl Iterator<Item = Fate>) -> Fate {
        let mut sum = Fate::default();
        parts.for_each(|part| sum.add(part));
        sum
    }

    fn add(&mut self, other: Fate) {
        self.expected += other.expected;
        self.received += other.received;
        self.lost += other.lost;
        self.counted_lost += other.counted_lost;
        self.out_of_order += other.out_of_order;
        self.corrupt += other.corrupt;
    }

    fn show(&self) -> String {
        let Fate { expected, received, lost, out_of_order, corrupt, .. } = self;
        format!(
            "{received} of {expected} received, {lost} lost, {out_of_order} out of order, \
             {corrupt} corrupt"
        )
    }

    /// An error if robot-net did not keep its word.
    fn verdict(&self, may_lose: bool) -> Outcome {
        let Fate { expected, lost, counted_lost, out_of_order, corrupt, .. } = self;
        let what = if *corrupt > 0 {
            format!("{corrupt} messages were not as they were sent")
        } else if *out_of_order > 0 {
            format!("{out_of_order} messages came out of order")
        } else if *lost != *counted_lost {
            format!("{lost} messages were lost, but robot-net counts {counted_lost}")
        } else if *lost > 0 && !may_lose {
            format!("{lost} of {expected} messages were lost, of topics that are reliable")
        } else {
            return Ok(());
        };
        let ask = "this is a defect: please report it, with the output of --json";
        Err(Failure::Failed(format!("{what}; {ask}")))
    }
}

/// Medians of what each run found.
fn spread<R>(runs: &[R], of: impl Fn(&R) -> f64) -> Spread {
    Spread::of(runs.iter().map(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        assert_eq!(as_percent(0.00031), "0.03 %");
        assert_eq!(as_percent(0.98), "98 %");
        assert_eq!(as_percent(0.05), "5.0 %");
        assert_eq!(as_count(12_345_678.0), "12.35 M");
        assert_eq!(as_count(12_345.0), "12.3 k");
        assert_eq!(as_count(12.0), "12");
        assert_eq!(as_count(0.46), "0.46");
        assert_eq!(as_count(3.0), "3");
        assert_eq!(runs(1, std::time::Duration::from_millis(200)), "1 run of 0.2 s");
    }

    #[test]
    fn a_broken_word_is_told_of() {
        let good = Fate { expected: 5, received: 5, ..Fate::default() };
        assert!(good.verdict(false).is_ok());
        let lost = Fate { received: 4, lost: 1, counted_lost: 1, ..good };
        assert!(lost.verdict(true).is_ok());
        assert!(lost.verdict(false).unwrap_err().message().contains("reliable"));
        let silent = Fate { counted_lost: 0, ..lost };
        assert!(silent.verdict(true).unwrap_err().message().contains("counts 0"));
        assert!(Fate { corrupt: 1, ..good }.verdict(true).is_err());
        assert!(Fate { out_of_order: 1, ..good }.verdict(true).is_err());
    }
}
