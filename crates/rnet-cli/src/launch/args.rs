//! The words of `rnet launch`.

use std::path::PathBuf;

use clap::Args;
use rnet::NodeName;

/// Start the nodes of a robot, keep them running, and stop them.
///
/// The file says which nodes there are, in what order they start and what happens when one ends. Ctrl-C stops them, the
/// last one first. If the launcher is killed, the nodes go on; started again, it takes over those that run.
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// The file [env: RNET_CONFIG] [default: robot.toml]
    pub file: Option<PathBuf>,
    /// Start the part of this host [env: RNET_HOST] [default: network.host of the file, else the name of the system]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Give a variable of the file another value
    #[arg(long, value_name = "VARIABLE=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Show a table of the nodes
    #[arg(short, long)]
    pub watch: bool,
    /// Follow changes of the file: restart what is changed, start what is new, stop what is gone
    #[arg(long)]
    pub reload: bool,
    /// Print the nodes in the order in which they would start; fail if the file or this machine has not what they need
    #[arg(long, conflicts_with_all = ["watch", "reload"])]
    pub check: bool,
    /// For bindings: the process that launches, with which this one dies as if it were killed
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<i32>,
}

/// The arguments of a keeper: what it is told besides comes by its standard input.
#[derive(Debug, Args)]
pub struct KeeperArgs {
    /// The node, for the list of processes
    pub node: NodeName,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no '='")?;
    Ok((name.to_owned(), value.to_owned()))
}
