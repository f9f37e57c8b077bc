//! Words of several commands. `args.rs` imports the words of each command, and these import only this.

use std::time::Duration;

use clap::Args;
use rnet::NodeName;

/// The name of the node that a command runs as.
#[derive(Debug, Default, Args)]
pub struct NodeArg {
    /// Name of this command's node, which owns what it sets [default: /rnet_COMMAND_PID]
    #[arg(short = 'n', long, value_name = "NAME")]
    pub node_name: Option<NodeName>,
}

/// A time on the command line.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}
