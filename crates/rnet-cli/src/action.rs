//! `rnet action …`.

pub mod args;
mod list;
mod send;

use args::ActionCommand;
use rnet::inspect::{CallType, ServerInfo, Snapshot};
use rnet::{ActionClient, Node};

use crate::context::Context;
use crate::failure::Outcome;

/// Of raw bytes: what is printed is decoded here.
type Client = ActionClient<[u8], [u8], [u8]>;
/// Of goal, feedback and result.
type Types = [rnet::MessageType; 3];

pub fn run(context: &mut Context, command: ActionCommand) -> Outcome {
    match command {
        ActionCommand::List(args) => list::run(context, &args),
        ActionCommand::Info { action } => list::info(context, action.as_str()),
        ActionCommand::Send(args) => send::run(context, &args),
        ActionCommand::Cancel(args) => send::cancel(context, &args),
    }
}

/// The servers of actions.
fn servers(snapshot: &Snapshot) -> Vec<ServerInfo<'_>> {
    snapshot.servers().into_iter().filter(|server| server.feedback.is_some()).collect()
}

/// The names of the actions.
pub fn names(snapshot: &Snapshot) -> Vec<&str> {
    let mut names: Vec<&str> = servers(snapshot).iter().map(|server| server.service).collect();
    names.dedup();
    names
}

/// Goal, feedback and result of a server; `None` of one that has just come or goes.
fn types_of<'a>(server: &ServerInfo<'a>) -> Option<[CallType<'a>; 3]> {
    Some([server.request_type(), server.feedback_type()?, server.reply_type()?])
}

fn known(server: &ServerInfo<'_>) -> Option<Types> {
    let [goal, feedback, result] = types_of(server)?.map(|of| of.message_type());
    Some([goal?, feedback?, result?])
}

fn client(node: &Node, action: &str, types: &Types) -> Outcome<Client> {
    let [goal, feedback, result] = types.clone();
    Ok(node.action_client_of(action, goal, feedback, result)?)
}
