//! `rnet action send` and `cancel`: a node with a client of the action.

use std::time::{Duration, Instant};

use rnet::inspect::ServerInfo;
use rnet::{ActionClient, CallOptions, Error, MessageType, Node};
use serde_json::json;

use super::{CancelArgs, SendArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::service::call::{encode_request, print, read_request, types, wait_for_servers};
use crate::service::list::{Kind, snapshot_with_server};
use crate::signal;

/// For raw bytes: this command decodes what it prints.
type Client = ActionClient<[u8], [u8], [u8]>;
/// Of goal, feedback and result.
type Types = [MessageType; 3];

/// Longest time between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long an action may take to open its feedback after its requests.
const FEEDBACK_TIMEOUT: Duration = Duration::from_secs(1);

pub fn run(context: &mut Context, args: &SendArgs) -> Outcome {
    let (given, action) = (read_request(&args.data)?, args.action.as_str());
    let begun = Instant::now();
    let limit = args.timeout.unwrap_or(Duration::MAX);
    let types =
        types(context, Kind::Action, action, limit, |server| types_or_service(server, begun))??;
    let [goal_type, feedback_type, result_type] = &types;
    let goal = encode_request(action, given, goal_type)?;
    let node = context.node("action", &args.own_node)?;
    let client = client(&node, action, &types)?;
    let mut options = CallOptions::new();
    if let Some(key) = &args.key {
        wait_for_servers(context, action, limit, || client.server_count())?;
        options = options.key(key);
    }
    if let Some(timeout) = args.timeout {
        options = options.timeout(timeout.saturating_sub(begun.elapsed()));
    }
    let goal = client.send(&goal, options)?;
    let (mut first, mut cancelled) = (true, false);
    loop {
        if signal::stop_requested() && !cancelled {
            goal.cancel()?;
            cancelled = true;
            context.eprintln(format_args!("goal cancelled; waiting until it ends"));
        }
        match goal.feedback_within(STOP_CHECK_INTERVAL) {
            Ok(Some(feedback)) => {
                let document = json!({"action": action, "part": "feedback"});
                print(context, document, feedback_type, &feedback, (first, true))?;
                context.flush()?;
                first = false;
            }
            Ok(None) => break,
            Err(Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match goal.result() {
        Err(Error::Cancelled { .. }) if cancelled => Err(Failure::Interrupted),
        result => {
            let document = json!({"action": action, "part": "result"});
            print(context, document, result_type, &result?, (first, true))
        }
    }
}

fn known_types(server: &ServerInfo<'_>) -> Option<Types> {
    let types = Kind::Action.types(server)?.into_iter().map(|of| of.message_type());
    types.collect::<Option<Vec<_>>>()?.try_into().ok()
}

fn client(node: &Node, action: &str, types: &Types) -> Outcome<Client> {
    let [goal, feedback, result] = types.clone();
    Ok(node.action_client(action).message_types(goal, feedback, result).open()?)
}

/// The types; an error if it is a service, which still has no feedback after it has existed for a while.
fn types_or_service(server: &ServerInfo<'_>, begun: Instant) -> Option<Outcome<Types>> {
    let is_service = server.replies.is_some() && server.feedback.is_none();
    match known_types(server) {
        None if is_service && begun.elapsed() > FEEDBACK_TIMEOUT => {
            Some(Err(Failure::Failed(format!(
                "{} in {} is a service, not an action; use rnet service call",
                server.service,
                server.node()
            ))))
        }
        types => types.map(Ok),
    }
}

pub fn cancel(context: &mut Context, args: &CancelArgs) -> Outcome {
    let action = args.action.as_str();
    let there =
        Kind::Action.servers(&snapshot_with_server(Kind::Action, context, action)?, action).len();
    let types = types(context, Kind::Action, action, args.timeout, known_types)?;
    let node = context.node("action", &args.own_node)?;
    let client = client(&node, action, &types)?;
    let reached = || Ok((client.server_count() >= there).then_some(()));
    if signal::poll(args.timeout, STOP_CHECK_INTERVAL, reached)?.is_none() {
        return Err(Failure::TimedOut(format!(
            "only {} of {there} servers of {action} answered within {:?}; nothing was cancelled",
            client.server_count(),
            args.timeout
        )));
    }
    let asked = client.cancel_all()?;
    if context.json() {
        return context.document(&json!({"action": action, "servers": asked}));
    }
    context.line(format_args!("{action}: cancel requested; servers reached: {asked}"))
}
