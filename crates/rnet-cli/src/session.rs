//! A command's access to the state: a node that exists while the command runs.

use rnet::Node;
use rnet::state::{RemoteState, State};

use crate::context::Context;
use crate::failure::Outcome;
use crate::shared_args::NodeArg;

pub struct Session {
    pub state: State,
    // The state uses the node, so the node is dropped last.
    _node: Node,
}

/// Joins as `/rnet_WHAT_PID`, unless it is named; creates the domain if it does not exist.
pub fn join(context: &Context, what: &str, own_node: &NodeArg) -> Outcome<Session> {
    let node = context.node(what, own_node)?;
    Ok(Session { state: node.state()?, _node: node })
}

/// Joins if the domain has state; otherwise returns `None` and creates nothing.
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
    /// This host has no state, and an observer creates none.
    None,
    Local(Session),
    // The state is reached through the node, so the node is dropped last.
    Remote(RemoteState, #[expect(dead_code, reason = "it is kept, and not read")] Node),
}

impl StateSource {
    /// Joins the state of that host; for this host, only if the state exists.
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

    /// Joins it; creates the state of this host if it does not exist.
    pub fn join(self, context: &Context, what: &str, own_node: &NodeArg) -> Outcome<StateSource> {
        match self {
            StateSource::None => join(context, what, own_node).map(StateSource::Local),
            there => Ok(there),
        }
    }
}
