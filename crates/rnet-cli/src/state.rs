//! `rnet state …`: reads, writes and watches shared state.
//!
//! State is memory that the nodes of a domain share, so these commands take part: each is a node while it
//! runs, and that node owns the keys that it sets. A read-only command does not create a domain: a missing
//! domain has no keys.

pub mod args;
mod change;
mod document;
mod dump;
mod get;
mod hint;
mod list;
mod set;
mod target;
mod value_input;
mod watch;

use args::StateCommand;

use crate::context::Context;
use crate::failure::Outcome;
use crate::session::join_as_observer;
use crate::shared_args::NodeArg;

pub fn run(context: &mut Context, command: StateCommand) -> Outcome {
    match command {
        StateCommand::Get(args) => get::run(context, args),
        StateCommand::Set(args) => set::run(context, &args.key, &args.value, args.if_revision),
        StateCommand::Cas(args) => set::run(context, &args.key, &args.value, Some(args.revision)),
        StateCommand::Add(args) => change::add(context, &args),
        StateCommand::Del(args) => change::del(context, &args),
        StateCommand::Flush(args) => change::flush(context, &args),
        StateCommand::List(args) => list::run(context, args),
        StateCommand::Watch(args) => watch::run(context, args),
        StateCommand::Dump(args) => dump::dump(context, &args),
        StateCommand::Load(args) => dump::load(context, args),
    }
}

/// The present keys, for completion.
pub fn keys(context: &Context) -> Outcome<Vec<String>> {
    let session = join_as_observer(context, "state", &NodeArg::default())?;
    Ok(session.map(|session| session.state.keys("/")).transpose()?.unwrap_or_default())
}
