//! `rnet command …`.

pub mod args;
mod drive;
mod log;
mod show;

use args::CommandCommand;
use rnet::inspect::Snapshot;

use crate::context::Context;
use crate::failure::Outcome;
use crate::topic::{look, no_such};

pub fn run(context: &mut Context, command: CommandCommand) -> Outcome {
    match command {
        CommandCommand::List(args) => show::list(context, &args),
        CommandCommand::Who(args) => show::who(context, &args),
        CommandCommand::Take(args) => drive::take(context, &args),
        CommandCommand::Release(args) => drive::release(context, &args),
        CommandCommand::Log(args) => log::run(context, args),
    }
}

/// The topics of the commands that have a receiver, and its node.
fn receivers(snapshot: &Snapshot) -> Vec<(&str, &str)> {
    let topic = |status| rnet::command_of_status(status);
    let publishers = snapshot.publishers.iter();
    let mut found: Vec<_> =
        publishers.filter_map(|of| Some((topic(&of.topic)?, of.node.as_str()))).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// What there is, with a command that has a receiver.
fn look_at(context: &Context, topic: &str) -> Outcome<Snapshot> {
    let (domain, snapshot) = look(context)?;
    let receivers = receivers(&snapshot);
    match receivers.iter().any(|(of, _)| *of == topic) {
        true => Ok(snapshot),
        false => {
            let names = receivers.into_iter().map(|(of, _)| of);
            Err(no_such("command", domain.id(), topic, names))
        }
    }
}
