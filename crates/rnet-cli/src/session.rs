//! The part that a command takes in the state: a node, for as long as it runs.

use rnet::Node;
use rnet::state::{RemoteState, State};

use crate::context::Context;
use crate::failure::Outcome;
use crate::shared_args::NodeArg;

pub struct Session {
    pub state: State,
    // The state is of the node, so this one is dropped last.
    _node: Node,
}

/// Takes part as `/rnet_WHAT_PID`, unless it is named; makes the domain if it is not there yet.
pub fn join(context: &Context, what: &str, own_node: &NodeArg) -> Outcome<Session> {
    let node = context.node(what, own_node)?;
    Ok(Session { state: node.state()?, _node: node })
}

/// Takes part where there is state; `None` where there is none, and none is made.
pub fn join_as_observer(
    context: &Context,
    what: &str,
    own_node: &NodeArg,
) -> Outcome<Option<Session>> {
    match context.domain()?.has_state()? {
        true => join(context, what, own_node).map(Some),
        false => Ok(None),
    }
}

/// The state of this host, or of another one.
pub enum StateSource {
    /// This host has no state, and whoever only looks makes none.
    None,
    Local(Session),
    // The state is reached through the node, so that one is dropped last.
    Remote(RemoteState, #[expect(dead_code, reason = "it is kept, and not read")] Node),
}

impl StateSource {
    /// Takes part in the state of that host; of this one, where there is state.
    pub fn observe(
        context: &Context,
        host: Option<&str>,
        what: &str,
        own_node: &NodeArg,
    ) -> Outcome<StateSource> {
        let Some(host) = host else {
            return Ok(join_as_observer(context, what, own_node)?
                .map_or(StateSource::None, StateSource::Local));
        };
        let node = context.node(what, own_node)?;
        Ok(StateSource::Remote(node.state_of(host)?, node))
    }

    /// Takes part in it; makes the state of this host if there is none.
    pub fn join(self, context: &Context, what: &str, own_node: &NodeArg) -> Outcome<StateSource> {
        match self {
            StateSource::None => join(context, what, own_node).map(StateSource::Local),
            there => Ok(there),
        }
    }
}
