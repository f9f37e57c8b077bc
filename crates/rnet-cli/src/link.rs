//! `rnet link …`: the link between hosts, a separate program.
//!
//! `program` runs it, `status` shows its status.

pub mod program;
mod status;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// Link this host with other hosts and show the link status.
///
/// If a network is configured, in robot.toml or by RNET_NETWORK, nodes start the link automatically. Without a
/// subcommand, runs the link in the terminal until Ctrl-C.
#[derive(Debug, Args)]
pub struct LinkArgs {
    #[command(flatten)]
    pub options: LinkOptions,
    #[command(subcommand)]
    pub command: Option<LinkCommand>,
}

/// Settings, instead of those of the environment and of the file.
#[derive(Debug, Default, Args)]
pub struct LinkOptions {
    /// Settings file [env: RNET_CONFIG] [default: robot.toml, if it exists]
    #[arg(long, global = true, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Network mode: off, lan or peers [env: RNET_NETWORK] [default: off]
    #[arg(long, global = true, value_name = "MODE")]
    pub network: Option<String>,
    /// Name of this host [env: RNET_HOST] [default: the system's host name]
    #[arg(long, global = true, value_name = "NAME")]
    pub host: Option<String>,
    /// Endpoints to listen on, such as tcp/0.0.0.0:7450, separated by commas [env: RNET_LISTEN]
    #[arg(long, global = true, value_name = "ENDPOINTS")]
    pub listen: Option<String>,
    /// Endpoints of other hosts, such as tcp/10.0.0.2:7450, separated by commas [env: RNET_CONNECT]
    #[arg(long, global = true, value_name = "ENDPOINTS")]
    pub connect: Option<String>,
    /// With lan: network interfaces, separated by commas [env: RNET_INTERFACES] [default: all except loopback]
    #[arg(long, global = true, value_name = "NAMES")]
    pub interfaces: Option<String>,
    /// Milliseconds of silence after which another host counts as lost [env: RNET_LOST_AFTER_MS] [default: 750]
    #[arg(long, global = true, value_name = "MS")]
    pub lost_after_ms: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Run the link in this terminal until Ctrl-C; same as rnet link without a subcommand
    Run,
    /// Start the link in the background, as nodes do; it exits with the last node of the domain
    Start,
    /// Show linked hosts, forwarded topics, and what is held back and why
    Status {
        /// Also list robot-net's internal topics, under /_rnet/
        #[arg(short, long)]
        all: bool,
    },
}

pub fn run(context: &mut Context, args: LinkArgs) -> Outcome {
    match args.command.unwrap_or(LinkCommand::Run) {
        LinkCommand::Run => {
            // Replaces this process, so that signals and a waiting parent reach the link.
            let error = program::command(context, "run", &args.options)?.exec();
            Err(Failure::Failed(format!("cannot start rnet-link: {error}")))
        }
        LinkCommand::Start => {
            let status = program::command(context, "start", &args.options)?.status();
            let failed = |e| Failure::Failed(format!("cannot start rnet-link: {e}"));
            if status.map_err(failed)?.success() { Ok(()) } else { Err(Failure::AlreadyReported) }
        }
        LinkCommand::Status { all } => status::run(context, &args.options, all),
    }
}
