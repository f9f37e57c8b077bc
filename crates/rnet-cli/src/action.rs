//! `rnet action …`.

mod send;

use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::TopicName;

use crate::context::Context;
use crate::failure::Outcome;
use crate::service::list::{self, Kind};
use crate::service::{DataArgs, ListArgs};
use crate::shared_args::{NodeArg, seconds};

#[derive(Debug, Subcommand)]
pub enum ActionCommand {
    /// List the actions
    List(ListArgs),
    /// Show types, servers and clients of an action
    Info {
        /// The action
        action: TopicName,
    },
    /// Send a goal and print its feedback and result
    Send(SendArgs),
    /// Cancel all goals of an action, from any client
    Cancel(CancelArgs),
}

/// Send a goal and print its feedback and result.
///
/// DATA is the fields of the goal in YAML or JSON, such as '{x: 1.0}'; without DATA, no field is set. For an action
/// with raw-byte goals, use --text, --hex or --file. Prints feedback as it arrives and then the result, each as a
/// separate document. Ctrl-C cancels the goal and waits until it ends; a second Ctrl-C does not wait.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The action; its server does not need to exist yet
    pub action: TopicName,
    #[command(flatten)]
    pub data: DataArgs,
    /// Time limit for the goal, in seconds [default: no limit]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Send the goal to the server selected by this key
    #[arg(long)]
    pub key: Option<String>,
    #[command(flatten)]
    pub own_node: NodeArg,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The action
    pub action: TopicName,
    /// Longest wait to reach its servers, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    pub own_node: NodeArg,
}

pub fn run(context: &mut Context, command: ActionCommand) -> Outcome {
    match command {
        ActionCommand::List(args) => list::list(context, Kind::Action, &args),
        ActionCommand::Info { action } => list::info(context, Kind::Action, action.as_str()),
        ActionCommand::Send(args) => send::run(context, &args),
        ActionCommand::Cancel(args) => send::cancel(context, &args),
    }
}
