//! `rnet command …`.

pub mod args;
mod drive;
mod log;
mod show;

use args::CommandCommand;
use rnet::inspect::Snapshot;
use rnet_monitor::documents::receivers;

use crate::context::Context;
use crate::failure::Outcome;
use crate::snapshot::{not_found, take_snapshot};

pub fn run(context: &mut Context, command: CommandCommand) -> Outcome {
    match command {
        CommandCommand::List(args) => show::list(context, &args),
        CommandCommand::Who(args) => show::who(context, &args),
        CommandCommand::Take(args) => drive::take(context, &args),
        CommandCommand::Release(args) => drive::release(context, &args),
        CommandCommand::Log(args) => log::run(context, args),
    }
}

/// A snapshot with a command that has a receiver.
fn snapshot_with_command(context: &Context, topic: &str) -> Outcome<Snapshot> {
    let (domain, snapshot) = take_snapshot(context)?;
    let receivers = receivers(&snapshot);
    match receivers.iter().any(|(of, _)| *of == topic) {
        true => Ok(snapshot),
        false => {
            let names = receivers.into_iter().map(|(of, _)| of);
            Err(not_found("command", domain.id(), topic, names))
        }
    }
}
