//! The words of `rnet graph`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::shared_args::seconds;

#[derive(Debug, Args)]
pub struct GraphArgs {
    /// The form [default: by the ending of FILE: .dot, .mmd, .txt; else text]
    #[arg(long, short, value_enum)]
    pub format: Option<Format>,
    /// Write the graph to FILE
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure rates over so many seconds; 0: show no rates
    #[arg(long = "over", value_name = "S", default_value = "1", value_parser = seconds)]
    pub over: Duration,
    /// Show the topics of robot-net itself (/_rnet/…), too
    #[arg(long)]
    pub all: bool,
}

/// A form in which the graph is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Indented lines
    Text,
    /// The language of Graphviz
    Dot,
    /// A flowchart of Mermaid
    Mermaid,
}
