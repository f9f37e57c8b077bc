//! The words of `rnet top`.

use std::time::Duration;

use clap::Args;

use crate::shared_args::interval;

#[derive(Debug, Args)]
pub struct TopArgs {
    /// Print the nodes, topics and problems of one interval, and end
    #[arg(long)]
    pub once: bool,
    /// Seconds between two looks, over which rates and latencies are taken
    #[arg(long, short, value_name = "S", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Show only what has this text in its name
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
    /// Show the topics and nodes of robot-net itself, too
    #[arg(long)]
    pub all: bool,
}
