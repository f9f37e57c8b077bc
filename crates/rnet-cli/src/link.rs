//! `rnet link …`: the link between hosts, which is a program of its own.
//!
//! `program` runs it, `heard` reads what it says of itself, `status` shows that.

pub mod args;
pub mod program;
mod status;

use std::os::unix::process::CommandExt;

use args::{LinkArgs, LinkCommand};

use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, args: LinkArgs) -> Outcome {
    match args.command.unwrap_or(LinkCommand::Run) {
        LinkCommand::Run => {
            // In its place: signals, and whoever waits for its end, reach the link.
            let error = program::command(context, "run", &args.options)?.exec();
            Err(Failure::Failed(format!("rnet-link cannot be started: {error}")))
        }
        LinkCommand::Start => {
            let status = program::command(context, "start", &args.options)?.status();
            let failed = |e| Failure::Failed(format!("rnet-link cannot be started: {e}"));
            if status.map_err(failed)?.success() { Ok(()) } else { Err(Failure::Told) }
        }
        LinkCommand::Status => status::run(context, &args.options),
    }
}
