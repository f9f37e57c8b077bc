//! The words of `rnet status`.

use std::time::Duration;

use clap::Args;
use rnet::NodeName;

use crate::shared_args::interval;

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Nodes that have to run; without one of them the status is a problem
    #[arg(value_name = "NODE")]
    pub nodes: Vec<NodeName>,
    /// Seconds over which losses and missed deadlines are counted
    #[arg(long = "over", value_name = "S", default_value = "1", value_parser = interval)]
    pub over: Duration,
}
