//! The arguments of `rnet node`.

use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::NodeName;

use crate::shared_args::{any_node, seconds};

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// List the nodes
    List(NodeListArgs),
    /// Show process, endpoints and parameters of a node
    Info {
        /// The node; for a node of another host, @host/node
        #[arg(value_name = "NODE", value_parser = any_node)]
        any_node: String,
        /// Also show robot-net's internal topics, under /_rnet/
        #[arg(short, long)]
        all: bool,
    },
    /// Kill a node with SIGKILL; rnet launch treats it as a crash
    Kill {
        /// The node
        node: NodeName,
    },
    /// Stop a node with SIGINT, then SIGTERM; rnet launch does not restart it
    Stop {
        /// The node
        node: NodeName,
    },
    /// Restart a launched node
    Restart {
        /// The node
        node: NodeName,
    },
    /// Print the stdout and stderr output of a launched node
    Logs(NodeLogsArgs),
}

#[derive(Debug, Args)]
pub struct NodeLogsArgs {
    /// The node
    pub node: NodeName,
    /// Print only the last N lines
    #[arg(short = 'l', long, value_name = "N")]
    pub lines: Option<usize>,
    /// Keep printing new output until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Debug, Args)]
pub struct NodeListArgs {
    /// Show host, process, uptime, language and version
    #[arg(short, long)]
    pub verbose: bool,
    /// List only the nodes of this host
    #[arg(long, value_name = "NAME", conflicts_with = "watch")]
    pub host: Option<String>,
    /// Keep running and print each node that joins, leaves or dies
    #[arg(short, long)]
    pub watch: bool,
    /// With --watch: exit after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds, requires = "watch")]
    pub timeout: Option<Duration>,
}
