//! The part that a command takes in the state: a node, for as long as it runs.

use rnet::Node;
use rnet::state::State;

use crate::context::Context;
use crate::failure::Outcome;
use crate::shared_args::NodeArg;

pub struct Session {
    pub state: State,
    // The state is of the node, so this one is dropped last.
    _node: Node,
}

/// Takes part as `/rnet_WHAT_PID`, unless it is named; makes the domain if it is not there yet.
pub fn join(context: &Context, what: &str, me: &NodeArg) -> Outcome<Session> {
    let node = context.node(what, me)?;
    Ok(Session { state: node.state()?, _node: node })
}

/// Takes part where there is state; `None` where there is none, and none is made.
pub fn join_to_look(context: &Context, what: &str, me: &NodeArg) -> Outcome<Option<Session>> {
    match context.domain()?.has_state()? {
        true => join(context, what, me).map(Some),
        false => Ok(None),
    }
}
