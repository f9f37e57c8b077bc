//! The words of `rnet command …`.

use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::TopicName;

use crate::shared_args::{NodeArg, seconds};

#[derive(Debug, Subcommand)]
pub enum CommandCommand {
    /// List the commands: receiver, state and driver of each
    List(CommandListArgs),
    /// Show who drives a command, and why nobody does
    Who(WhoArgs),
    /// Take authority over a command and keep it until stopped
    Take(TakeArgs),
    /// End the authority of whoever drives a command
    Release(ReleaseArgs),
    /// Print the audit trail of a command
    Log(CommandLogArgs),
}

/// List the commands: receiver, state and driver of each.
///
/// A receiver speaks when its state or its driver changes. SINCE is how long ago that was. In JSON, `applied` and
/// `ignored` count the commands until then.
#[derive(Debug, Args)]
pub struct CommandListArgs {
    #[command(flatten)]
    pub me: NodeArg,
}

/// Show who drives a command, and why nobody does.
///
/// A receiver speaks when its state or its driver changes, `since` so long; the commands that it applied and ignored are
/// counted until then.
#[derive(Debug, Args)]
pub struct WhoArgs {
    /// The topic of the command
    pub topic: TopicName,
    #[command(flatten)]
    pub me: NodeArg,
}

/// Take authority over a command and keep it until stopped.
///
/// Without DATA nothing is sent: the driver before loses its authority, and the receiver falls back when its deadline
/// passes. With DATA, the fields of the message in YAML or JSON, it is sent at the rate.
#[derive(Debug, Args)]
pub struct TakeArgs {
    /// The topic of the command
    pub topic: TopicName,
    /// The fields of the message that is sent
    pub data: Option<String>,
    /// Take it from drivers of a lower priority
    #[arg(short, long, default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i32,
    /// How long authority lasts should this command be killed, in seconds
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds)]
    pub lease: Duration,
    /// Messages per second; three for each deadline of the receiver if not given, and 20 or more
    #[arg(short, long, value_name = "HZ", requires = "data")]
    pub rate: Option<f64>,
    /// End after this time, in seconds
    #[arg(long = "for", value_name = "S", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Longest time for a receiver, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    pub me: NodeArg,
}

/// End the authority of whoever drives a command.
///
/// It takes authority and gives it back, so that the receiver falls back. The driver is told, and
/// may take authority again.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// The topic of the command
    pub topic: TopicName,
    /// Only from drivers of a lower priority; from all if not given
    #[arg(short, long, allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// Longest time for the answer of the receiver, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    pub me: NodeArg,
}

#[derive(Debug, Args)]
pub struct CommandLogArgs {
    /// The topic of the command
    pub topic: TopicName,
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub follow: bool,
    /// End after so many lines
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this many seconds; exit 124 if no line came
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
}
