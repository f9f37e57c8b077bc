//! `rnet command log`: the audit trail.

use prost::Message as _;
use rnet::inspect::{Follower, ObservedMessage};
use rnet::msgs::{CommandEvent, Timestamp};
use serde_json::json;

use super::args::CommandLogArgs;
use super::snapshot_with_command;
use crate::context::Context;
use crate::failure::Outcome;
use crate::topic::listen::{Flow, Listener, listen};
use rnet_format::text::escape_controls;

pub fn run(context: &mut Context, args: CommandLogArgs) -> Outcome {
    let topic = args.topic.as_str().to_owned();
    snapshot_with_command(context, &topic)?;
    let timeout = args.timeout;
    listen(
        context,
        &rnet::command_log_topic(&topic),
        true,
        timeout,
        &mut TrailListener { args, printed: 0 },
    )
}

struct TrailListener {
    args: CommandLogArgs,
    printed: u64,
}

impl Listener for TrailListener {
    fn on_message(
        &mut self,
        context: &mut Context,
        heard: &ObservedMessage<'_>,
        bytes: &[u8],
    ) -> Outcome<Flow> {
        let event = match heard.type_desc.name() {
            Some("rnet.msgs.CommandEvent") => CommandEvent::decode(bytes).ok(),
            _ => None,
        };
        let Some(event) = event else { return Ok(Flow::Continue) };
        let kind = event.kind().as_str_name().trim_start_matches("KIND_").to_lowercase();
        let CommandEvent { node, priority, number, text, .. } = &event;
        let time = event.timestamp.unwrap_or_default();
        if context.json() {
            context.json_line(&json!({
                "time": time.to_string(),
                "receiver": heard.node,
                "kind": kind,
                "node": node,
                "priority": priority,
                "number": number,
                "text": text,
            }))?;
        } else {
            let time = Timestamp { nanos: time.nanos / 1_000_000 * 1_000_000, ..time };
            let mut line = format!("{time} {:<11}", kind.replace('_', " "));
            if !node.is_empty() {
                line += &format!(" {} (priority {priority})", escape_controls(node));
            }
            if !text.is_empty() {
                line += &format!(": {}", escape_controls(text));
            }
            context.line(format_args!("{}", line.trim_end()))?;
        }
        self.printed += 1;
        Ok(if Some(self.printed) == self.args.count { Flow::Stop } else { Flow::Continue })
    }

    fn on_idle(&mut self, _: &mut Context, _: &Follower) -> Outcome<Flow> {
        Ok(if self.args.follow || self.printed == 0 { Flow::Continue } else { Flow::Stop })
    }

    fn on_second(&mut self, _: &mut Context, _: &Follower) -> Outcome<Flow> {
        Ok(if self.args.follow { Flow::Continue } else { Flow::Stop })
    }

    fn reports_publishers(&self) -> bool {
        false
    }

    fn is_satisfied(&self) -> bool {
        self.printed > 0
    }
}
