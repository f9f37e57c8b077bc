//! `rnet-link`: the link between hosts, one process for each host and domain.
//!
//! `run` is the link: it waits for its turn, holds the role, waits for its addresses (`network_wait.rs`)
//! and links until it has to exit (`run.rs`, `last_node.rs`). `start` starts one in the background if the
//! configuration needs a link (`start.rs`). `config` prints the effective settings. The link itself is in
//! the library.
#![forbid(unsafe_code)]

mod address_monitor;
mod args;
mod config_watcher;
mod detach;
mod discover;
mod domain;
mod last_node;
mod network_wait;
mod predecessor;
mod run;
mod runtime;
mod settings;
mod start;
mod stop;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

/// The error, as text.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Run { background } => {
            runtime::configure_threads();
            runtime::raise_file_limit();
            run::run(&cli.options, background)
        }
        Command::Start => start::start(&cli.options),
        Command::Config => settings::show(&cli.options),
        Command::Discover => discover::discover(&cli.options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("rnet-link: {why}");
            ExitCode::FAILURE
        }
    }
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Prints `text` and a newline. If the reader has closed the pipe (`rnet-link config | grep -q …`), that is
/// not an error.
fn print_line(text: impl std::fmt::Display) -> Outcome {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write the output: {error}"))
        }
        _ => Ok(()),
    }
}
