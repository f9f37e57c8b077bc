//! `rnet`, the command line of robot-net.
//!
//! A thin shell: `rnet::inspect` inspects a domain, and this program prints the result. The contract, for
//! people and for scripts:
//! - stdout is for data, stderr for messages; `--json` prints the data as one JSON document, or one per line
//!   for commands that keep running;
//! - exit 0 ok, 1 failed, 2 usage, 124 timed out, 130 interrupted;
//! - inspection commands (`list`, `info`, `find`, `echo`, `hz`, `bw`, `delay`, `log`, `graph`, `doctor`) are
//!   observers: they are neither nodes nor subscribers, and do not slow publishers. A command that listens to
//!   a topic of another host is an exception: the messages cross the network only while a subscription
//!   exists. `state`, `param` and `node info` take part as a node if the domain has state, which is memory
//!   that nodes share; if it has none, reading it creates none. `topic pub`, `service call`, `action send`,
//!   `command` and `trace` are nodes.
#![forbid(unsafe_code)]

mod action;
mod args;
mod bag;
mod bench;
mod blackbox;
mod command;
mod completions;
mod context;
mod demo;
mod doctor;
mod domain;
mod failure;
mod global;
mod graph;
mod help;
mod input;
mod keys;
mod launch;
mod link;
mod log;
mod metrics;
mod node;
mod observer_priority;
mod param;
mod play;
mod record;
mod rerun;
mod service;
mod session;
mod shared_args;
mod signal;
mod snapshot;
mod state;
mod status;
mod style;
mod table;
mod terminal_keys;
mod top;
mod topic;
mod trace;
mod types;
mod web;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::FromArgMatches;
use context::Context;
use failure::Outcome;

fn main() -> ExitCode {
    completions::answer_shell();
    let cli = Cli::from_arg_matches(&help::command().get_matches());
    let cli = cli.unwrap_or_else(|error| error.exit());
    // A bench worker has no signal handlers: its command, or a signal, ends it.
    if !matches!(cli.command, Command::BenchWorker) {
        signal::install();
    }
    observer_priority::apply(&cli.command);
    let json = cli.global.json;
    let mut context = Context::new(cli.global);
    let outcome = run(&mut context, cli.command);
    // Output printed before a failure is data too.
    let flushed = context.flush();
    match outcome.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure::print(&failure, json);
            ExitCode::from(failure::exit_code(&failure))
        }
    }
}

fn run(context: &mut Context, command: Command) -> Outcome {
    match command {
        Command::Topic(command) => topic::run(context, command),
        Command::Service(command) => service::run(context, command),
        Command::Drive(command) => command::run(context, command),
        Command::Action(command) => action::run(context, command),
        Command::Type(command) => types::run(context, command),
        Command::State(command) => state::run(context, command),
        Command::Param(command) => param::run(context, command),
        Command::Node(command) => node::run(context, command),
        Command::Log(args) => log::run(context, args),
        Command::Graph(args) => graph::run(context, &args),
        Command::Top(args) => top::run(context, &args),
        Command::Trace(args) => trace::run(context, &args),
        Command::Dashboard(args) => web::dashboard(context, args),
        Command::Foxglove(args) => web::foxglove(context, &args),
        Command::Status(args) => status::run(context, &args),
        Command::Metrics(args) => metrics::run(context, &args),
        Command::Record(args) => record::run(context, &args),
        Command::BlackBox(command) => blackbox::run(context, command),
        Command::Launch(args) => launch::run(context, args),
        Command::LaunchKeeper(args) => launch::keeper::run(context, &args),
        Command::Link(args) => link::run(context, args),
        Command::Keys(command) => keys::run(context, command),
        Command::Domain(command) => domain::run(context, command),
        Command::Doctor(args) => doctor::run(context, args),
        Command::Play(args) => play::run(context, &args),
        Command::Rerun(args) => rerun::run(context, &args),
        Command::Bag(command) => bag::run(context, command),
        Command::Bench(command) => bench::run(context, command),
        Command::Demo(args) => demo::run(context, &args),
        Command::BenchWorker => rnet_bench::measure::run_worker(),
        Command::Completions(args) => completions::run(context, &args),
        Command::Man(args) => Ok(clap_mangen::generate_to(help::command(), args.dir)?),
        Command::Version => version(context),
    }
}

fn version(context: &mut Context) -> Outcome {
    if context.json() {
        let document = serde_json::json!({
            "version": rnet::VERSION,
            "layout_version": rnet::LAYOUT_VERSION,
        });
        return context.document(&document);
    }
    let (version, layout) = (rnet::VERSION, rnet::LAYOUT_VERSION);
    context.line(format_args!("rnet {version} (shared-memory layout {layout})"))
}
