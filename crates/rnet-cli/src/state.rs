//! `rnet state …`: reads, writes and watches shared state.
//!
//! State is memory that the nodes of a domain share, so these commands take part: each is a node while it runs, and what it
//! sets is owned by that name. Whoever only looks makes no domain: where none is, there are no keys.

mod add;
pub mod args;
mod del;
mod document;
mod dump;
mod flush;
mod get;
mod given;
mod hint;
mod list;
mod load;
mod record;
mod set;
mod watch;

use args::{NodeArg, StateCommand};
use rnet::Node;
use rnet::state::State;

use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, command: StateCommand) -> Outcome {
    match command {
        StateCommand::Get(args) => get::run(context, args),
        StateCommand::Set(args) => set::run(context, &args.key, &args.value, args.if_revision),
        StateCommand::Cas(args) => set::run(context, &args.key, &args.value, Some(args.revision)),
        StateCommand::Add(args) => add::run(context, &args),
        StateCommand::Del(args) => del::run(context, &args),
        StateCommand::Flush(args) => flush::run(context, &args),
        StateCommand::List(args) => list::run(context, args),
        StateCommand::Watch(args) => watch::run(context, args),
        StateCommand::Dump(args) => dump::run(context, &args),
        StateCommand::Load(args) => load::run(context, args),
    }
}

/// The part that a command takes: a node, for as long as it runs.
struct Session {
    state: State,
    // The state is of the node, so this one is dropped last.
    _node: Node,
}

/// Takes part; makes the domain if it is not there yet.
fn join(context: &Context, node: &NodeArg) -> Outcome<Session> {
    let node = context.node("state", node.node_name.as_ref())?;
    Ok(Session { state: node.state()?, _node: node })
}

/// The keys that are there now, for completion.
pub fn keys(context: &Context) -> Outcome<Vec<String>> {
    let session = join_to_look(context, &NodeArg { node_name: None })?;
    Ok(session.map(|session| session.state.keys("/")).transpose()?.unwrap_or_default())
}

/// Takes part where there is state; `None` where there is none, and none is made.
fn join_to_look(context: &Context, node: &NodeArg) -> Outcome<Option<Session>> {
    match context.domain()?.has_state()? {
        true => join(context, node).map(Some),
        false => Ok(None),
    }
}
