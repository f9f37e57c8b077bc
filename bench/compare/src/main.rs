//! `compare`: robot-net and the other systems of its field, on the same work.
//!
//! `compare run` starts everything itself, each publisher, subscriber and server as a process of its
//! own, and writes what it measured as raw data; `compare report` makes tables and plots of it.
//! docs/benchmark-method.md has the method.

mod additions;
mod hosts;
mod leftovers;
mod machine;
mod memory;
mod process;
mod progress;
mod raw;
mod registry;
mod run;
mod study3;
mod suite;
mod workloads;

use bench_harness::{Error, Result};
use clap::{Parser, Subcommand};
use registry::{Builtin, Registry};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Compares robot-net with the other systems of its field.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run workloads and write the raw data.
    Run(RunArguments),
    /// Make REPORT.md and its plots from raw data.
    Report {
        /// Output of `compare run`.
        raw: PathBuf,
        /// The folder for the report; by default the one of the raw data.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// List systems and workloads, and what cannot run here with the reason.
    List,
    /// One process of a run; started by `compare run`.
    #[command(hide = true)]
    Worker,
}

/// Selection of runs.
#[derive(clap::Args)]
pub struct RunArguments {
    /// Systems, separated by commas; by default those that each workload names.
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// Workloads, separated by commas; by default all.
    #[arg(long, value_delimiter = ',')]
    workloads: Vec<String>,
    /// How often each is repeated, the systems in turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    repeat: Option<u16>,
    /// Run one short repetition; do not quote its figures.
    #[arg(long)]
    quick: bool,
    /// Multiply all durations.
    #[arg(long, value_name = "FACTOR")]
    scale: Option<f64>,
    /// A robot for the workload sierra_nevada: a file in TOML.
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// A folder on a real disk, for values that are to be durable; by default bench/target.
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Where to write the raw data; compressed when the name ends in .gz.
    #[arg(long, value_name = "FILE")]
    json: PathBuf,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Task::Worker => {
            let builtin = Builtin::new();
            let carriers: Vec<_> = builtin.carriers().collect();
            return bench_harness::worker::main(&carriers, &builtin.stores);
        }
        Task::Run(arguments) => suite::run(&arguments, &bench_folder()),
        Task::Report { raw, out } => report(&raw, out.as_deref()),
        Task::List => match list(&mut std::io::stdout()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The folder `bench/` of the checkout that this program was built from.
fn bench_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

fn report(raw: &Path, out: Option<&Path>) -> Result<()> {
    raw::Raw::read(raw)?;
    let bench = bench_folder();
    let python = bench.join(".venv/bin/python");
    let out = out.or_else(|| raw.parent()).filter(|p| !p.as_os_str().is_empty());
    let status = Command::new(&python)
        .arg(bench.join("report/report.py"))
        .arg(raw)
        .arg("--out")
        .arg(out.unwrap_or(Path::new(".")))
        .status()
        .map_err(|e| Error::new(format!("{}: {e}: run bench/setup.sh", python.display())))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::new(format!("report.py ended with {status}")))
    }
}

/// Written by hand and not by `println!`, which panics when the reader, such as `head`, has enough.
fn list(out: &mut dyn Write) -> std::io::Result<()> {
    let registry = Registry::new(&bench_folder());
    writeln!(out, "systems:")?;
    for id in &registry.order {
        let entry = &registry.entries[id];
        let state = match (&entry.version, &entry.unavailable) {
            (_, Some(why)) => format!("cannot run here: {why}"),
            (Some(version), None) => version.clone(),
            (None, None) => String::new(),
        };
        writeln!(out, "  {id:<18} {:<40} {state}", entry.about.label)?;
    }
    writeln!(out, "workloads:")?;
    for workload in workloads::all() {
        writeln!(out, "  {:<18} {}", workload.name, workload.title)?;
    }
    writeln!(out, "  {:<18} {}", study3::NAME, study3::TITLE)
}
