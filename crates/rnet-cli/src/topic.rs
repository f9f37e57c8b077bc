//! `rnet topic …`.

mod bw;
mod delay;
mod echo;
mod hz;
mod info;
mod interest;
mod list;
pub mod listen;
mod payload;
pub mod publish;
mod rates;

use rnet::TypeDesc;
use rnet::inspect::{Domain, Snapshot};

use crate::args::TopicCommand;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::near::did_you_mean;
use crate::style::NOTE;

pub fn run(context: &mut Context, command: TopicCommand) -> Outcome {
    match command {
        TopicCommand::List(args) => list::run(context, args),
        TopicCommand::Info(args) => info::run(context, args),
        TopicCommand::Type { topic } => list::type_of(context, topic.as_str()),
        TopicCommand::Find { name } => list::find(context, &name),
        TopicCommand::Echo(args) => echo::run(context, args),
        TopicCommand::Hz(args) => hz::run(context, args),
        TopicCommand::Bw(args) => bw::run(context, args),
        TopicCommand::Delay(args) => delay::run(context, args),
        TopicCommand::Pub(args) => publish::run(context, args),
    }
}

/// A type in a word: `raw`, or its name.
pub fn type_name(desc: &TypeDesc) -> &str {
    desc.name().unwrap_or("raw")
}

/// The types of a topic's ends; more than one if they do not agree.
pub fn type_names<'a>(snapshot: &'a Snapshot, topic: &str) -> Vec<&'a str> {
    let publishers = snapshot.publishers.iter().filter(|p| p.topic == topic);
    let mut names: Vec<&str> = publishers.map(|p| type_name(&p.type_desc)).collect();
    let subscribers = snapshot.subscriptions.iter().filter(|s| s.topic == topic);
    // A raw subscriber takes whatever comes, so it says nothing of the topic's type.
    let typed = subscribers.filter(|s| names.is_empty() || s.type_desc.name().is_some());
    names.extend(typed.map(|s| type_name(&s.type_desc)).collect::<Vec<_>>());
    if names.iter().any(|n| *n != "raw") && snapshot.publishers.iter().all(|p| p.topic != topic) {
        names.retain(|n| *n != "raw");
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The domain and what is in it. What went wrong with single nodes is talk: the rest of the data stands.
pub fn look(context: &Context) -> Outcome<(Domain, Snapshot)> {
    let mut domain = context.domain()?;
    let snapshot = domain.snapshot()?;
    for problem in snapshot.problems.iter().chain(&snapshot.unread) {
        context.say(format_args!("{NOTE}rnet:{NOTE:#} {problem}"));
    }
    Ok((domain, snapshot))
}

/// As [`look`], for a topic that exists.
///
/// # Errors
/// There is no such topic, with the name that may have been meant.
pub fn look_at(context: &Context, topic: &str) -> Outcome<(Domain, Snapshot)> {
    let (domain, snapshot) = look(context)?;
    match snapshot.topics().contains(&topic) {
        true => Ok((domain, snapshot)),
        false => Err(no_such("topic", domain.id(), topic, snapshot.topics().into_iter())),
    }
}

/// "There is no such thing", with the name that may have been meant.
pub fn no_such<'a>(
    what: &str,
    domain: &str,
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> Failure {
    let hint = did_you_mean(name, names)
        .unwrap_or_else(|| format!("see rnet {what} list, and rnet domain list for other domains"));
    Failure::Failed(format!("there is no {what} {name} in domain {domain}; {hint}"))
}
