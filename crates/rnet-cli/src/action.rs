//! `rnet action …`.

mod send;

use std::time::Duration;

use clap::{Args, Subcommand};
use rnet::TopicName;

use crate::context::Context;
use crate::failure::Outcome;
use crate::service::DataArgs;
use crate::service::list::{self, Kind};
use crate::shared_args::{NodeArg, seconds};

#[derive(Debug, Subcommand)]
pub enum ActionCommand {
    /// List the actions
    List(ActionListArgs),
    /// Show types, servers and clients of an action
    Info {
        /// The action
        action: TopicName,
    },
    /// Send a goal, and print its feedback and its result
    Send(SendArgs),
    /// Cancel the goals of an action, whosesoever they are
    Cancel(CancelArgs),
}

#[derive(Debug, Args)]
pub struct ActionListArgs {
    /// Show the types
    #[arg(short = 't', long)]
    pub show_types: bool,
}

/// Send a goal, and print its feedback and its result.
///
/// DATA is the fields of the goal in YAML or JSON, such as '{x: 1.0}'; left out, none is set. An action whose goals are
/// raw bytes takes --text, --hex or --file. Prints feedback as it comes and then the result, each as a document of
/// its own. Ctrl-C cancels the goal and waits for its end; a second one does not wait.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// The action; it need not have a server yet
    pub action: TopicName,
    #[command(flatten)]
    pub data: DataArgs,
    /// Longest time for the goal, in seconds; it has no end if left out
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Send it to the server to which goals of this key go
    #[arg(long)]
    pub key: Option<String>,
    #[command(flatten)]
    pub me: NodeArg,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The action
    pub action: TopicName,
    /// Longest time for its servers to be reached, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    pub me: NodeArg,
}

pub fn run(context: &mut Context, command: ActionCommand) -> Outcome {
    match command {
        ActionCommand::List(args) => list::list(context, Kind::Action, args.show_types, false),
        ActionCommand::Info { action } => list::info(context, Kind::Action, action.as_str()),
        ActionCommand::Send(args) => send::run(context, &args),
        ActionCommand::Cancel(args) => send::cancel(context, &args),
    }
}
