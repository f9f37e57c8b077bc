//! `rnet topic …`.

pub mod args;
mod delay;
mod echo;
mod info;
mod interest;
mod list;
pub mod listen;
mod payload;
pub mod publish;
mod rates;

use rnet::inspect::{Domain, Snapshot};

use rnet_format::suggestions::did_you_mean;
pub use rnet_monitor::{type_name, type_names};

use args::TopicCommand;

use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, command: TopicCommand) -> Outcome {
    match command {
        TopicCommand::List(args) => list::run(context, args),
        TopicCommand::Info(args) => info::run(context, args),
        TopicCommand::Type { topic } => list::type_of(context, topic.as_str()),
        TopicCommand::Find { name } => list::find_by_type(context, &name),
        TopicCommand::Echo(args) => echo::run(context, args),
        TopicCommand::Hz(args) => rates::hz(context, args),
        TopicCommand::Bw(args) => rates::bw(context, args),
        TopicCommand::Delay(args) => delay::run(context, args),
        TopicCommand::Pub(args) => publish::run(context, args),
    }
}

/// The domain and what is in it. What went wrong with single nodes is talk: the rest of the data stands.
pub fn take_snapshot(context: &Context) -> Outcome<(Domain, Snapshot)> {
    let mut domain = context.domain()?;
    let snapshot = domain.snapshot()?;
    for problem in snapshot.problems.iter().chain(&snapshot.unread) {
        context.note(&problem.to_string());
    }
    Ok((domain, snapshot))
}

/// As [`take_snapshot`], for a topic that exists.
///
/// # Errors
/// There is no such topic, with the name that may have been meant.
pub fn snapshot_with_topic(context: &Context, topic: &str) -> Outcome<(Domain, Snapshot)> {
    let (domain, snapshot) = take_snapshot(context)?;
    match snapshot.topics().contains(&topic) {
        true => Ok((domain, snapshot)),
        false => Err(not_found("topic", domain.id(), topic, snapshot.topics().into_iter())),
    }
}

/// "There is no such thing", with the name that may have been meant.
pub fn not_found<'a>(
    what: &str,
    domain: &str,
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> Failure {
    let hint = did_you_mean(name, names)
        .unwrap_or_else(|| format!("see rnet {what} list, and rnet domain list for other domains"));
    Failure::Failed(format!("{what} {name} not found in domain {domain}; {hint}"))
}
