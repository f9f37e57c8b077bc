//! `rnet param …`: the settings of nodes.
//!
//! Parameters are state with a description, so these commands take part, as `rnet state` does. What a node
//! forbids is refused here, in this process, by the same rule as everywhere.

pub mod args;
mod describe;
mod dump;
mod find;
mod get;
mod list;
mod load;
mod set;
mod settings;
mod text;
mod value;
mod write;

use args::{NodeArg, ParamCommand};
pub use list::row;
use rnet::Node;
use rnet::state::State;
pub use text::document;

use crate::context::Context;
use crate::failure::Outcome;

pub fn run(context: &mut Context, command: ParamCommand) -> Outcome {
    match command {
        ParamCommand::List(args) => list::run(context, &args),
        ParamCommand::Get(args) => get::run(context, &args),
        ParamCommand::Set(args) => set::run(context, &args),
        ParamCommand::Reset(args) => set::reset(context, &args),
        ParamCommand::Delete(args) => set::delete(context, &args),
        ParamCommand::Describe(args) => describe::run(context, &args),
        ParamCommand::Dump(args) => dump::run(context, &args),
        ParamCommand::Load(args) => load::run(context, &args),
    }
}

/// The part that a command takes: a node, for as long as it runs.
struct Session {
    state: State,
    // The state is of the node, so this one is dropped last.
    _node: Node,
}

/// Takes part; makes the domain if it is not there yet.
fn join(context: &Context, me: &NodeArg) -> Outcome<Session> {
    let node = context.node("param", me.node_name.as_ref())?;
    Ok(Session { state: node.state()?, _node: node })
}

/// Takes part where there is state; `None` where there is none, and none is made.
fn join_to_look(context: &Context, me: &NodeArg) -> Outcome<Option<Session>> {
    match context.domain()?.has_state()? {
        true => join(context, me).map(Some),
        false => Ok(None),
    }
}

/// The parameters of a node that is there; none are there where there is no state.
pub fn of_node(context: &Context, node: &str) -> Outcome<Vec<find::Named>> {
    let session = join_to_look(context, &NodeArg { node_name: None })?;
    let mut all = find::all(session.as_ref().map(|session| &session.state))?;
    all.retain(|(of, ..)| of == node);
    Ok(all)
}
