//! `rnet service …`.

pub mod call;
pub mod list;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use list::Kind;
use rnet::TopicName;

use crate::context::Context;
use crate::failure::Outcome;
use crate::shared_args::{NodeArg, seconds};

#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// List the services
    List(ListArgs),
    /// Show types, servers and clients of a service
    Info {
        /// The service
        service: TopicName,
    },
    /// Print the request type and the reply type of a service
    Type {
        /// The service
        service: TopicName,
    },
    /// Call a service
    Call(CallArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Show the types
    #[arg(short = 't', long)]
    pub show_types: bool,
    /// Show the number of servers and clients
    #[arg(short, long)]
    pub verbose: bool,
    /// Also list those of robot-net itself, under /_rnet/
    #[arg(short, long)]
    pub all: bool,
}

/// Call a service.
///
/// DATA is the fields of the request in YAML or JSON, such as '{x: 1.0}'; without DATA, no field is set. For a
/// service with raw-byte requests, use --text, --hex or --file. Prints the reply, or with --stream each reply as it
/// arrives.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The service; its server does not need to exist yet
    pub service: TopicName,
    #[command(flatten)]
    pub data: DataArgs,
    /// Print all replies of a streaming service
    #[arg(short, long)]
    pub stream: bool,
    /// Time limit to find a server and receive all replies, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
    /// Send the call to the server selected by this key
    #[arg(long)]
    pub key: Option<String>,
    #[command(flatten)]
    pub own_node: NodeArg,
}

/// What is sent.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// The fields of the message
    #[arg(allow_negative_numbers = true)]
    pub data: Option<String>,
    /// Send this text
    #[arg(
        long,
        value_name = "TEXT",
        group = "bytes",
        conflicts_with = "data",
        allow_hyphen_values = true
    )]
    pub text: Option<String>,
    /// Send these bytes, in hex; blanks and colons are ignored
    #[arg(long, value_name = "BYTES", group = "bytes", conflicts_with = "data")]
    pub hex: Option<String>,
    /// Read DATA, or raw bytes, from this file (- for stdin)
    #[arg(long, value_name = "PATH", group = "bytes", conflicts_with = "data")]
    pub file: Option<PathBuf>,
}

pub fn run(context: &mut Context, command: ServiceCommand) -> Outcome {
    match command {
        ServiceCommand::List(args) => list::list(context, Kind::Service, &args),
        ServiceCommand::Info { service } => list::info(context, Kind::Service, service.as_str()),
        ServiceCommand::Type { service } => list::type_of(context, service.as_str()),
        ServiceCommand::Call(args) => call::run(context, &args),
    }
}
