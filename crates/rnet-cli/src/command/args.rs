//! The arguments of `rnet command …`.

use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::TopicName;

use crate::shared_args::{NodeArg, seconds};

#[derive(Debug, Subcommand)]
pub enum CommandCommand {
    /// List the commands: receiver, state and driver of each
    List(CommandListArgs),
    /// Show the driver of a command, or why it has none
    Who(WhoArgs),
    /// Take authority over a command and hold it until stopped
    Take(TakeArgs),
    /// Revoke the current driver's authority over a command
    Release(ReleaseArgs),
    /// Print the audit trail of a command
    Log(CommandLogArgs),
}

/// List the commands: receiver, state and driver of each.
///
/// A receiver reports when its state or driver changes. SINCE is the time since the last report. In JSON, `applied`
/// and `ignored` count the commands up to that report.
#[derive(Debug, Args)]
pub struct CommandListArgs {
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Show the driver of a command, or why it has none.
///
/// A receiver reports when its state or driver changes. `since` is the time since the last report; the counts of
/// applied and ignored commands are as of that report.
#[derive(Debug, Args)]
pub struct WhoArgs {
    /// The topic of the command
    pub topic: TopicName,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Take authority over a command and hold it until stopped.
///
/// Without DATA nothing is sent: the previous driver loses its authority, and the receiver falls back when its
/// deadline passes. With DATA (the fields of the message in YAML or JSON), the message is sent at --rate.
#[derive(Debug, Args)]
pub struct TakeArgs {
    /// The topic of the command
    pub topic: TopicName,
    /// The fields of the message to send
    pub data: Option<String>,
    /// Priority; takes authority from drivers with a lower priority
    #[arg(short, long, default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i32,
    /// How long the authority lasts if this command is killed, in seconds
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds)]
    pub lease: Duration,
    /// Messages per second [default: three per receiver deadline, at least 20]
    #[arg(short, long, value_name = "HZ", requires = "data")]
    pub rate: Option<f64>,
    /// Exit after this many seconds
    #[arg(long = "for", value_name = "S", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Longest wait for a receiver, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// Revoke the current driver's authority over a command.
///
/// Takes authority and releases it, so that the receiver falls back. The driver is notified and may take authority
/// again.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// The topic of the command
    pub topic: TopicName,
    /// Revoke only from drivers with a lower priority [default: from all]
    #[arg(short, long, allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// Longest wait for the receiver's answer, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    pub own_node: NodeArg,
}

#[derive(Debug, Args)]
pub struct CommandLogArgs {
    /// The topic of the command
    pub topic: TopicName,
    /// Keep printing new events
    #[arg(short, long)]
    pub follow: bool,
    /// Exit after this many lines
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Exit after this many seconds; exit code 124 if no line was printed
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
}
