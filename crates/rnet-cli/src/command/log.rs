//! `rnet command log`: the audit trail.

use prost::Message as _;
use rnet::inspect::{Follow, Heard};
use rnet::msgs::{CommandEvent, Timestamp};
use serde_json::json;

use super::args::CommandLogArgs;
use super::look_at;
use crate::context::Context;
use crate::failure::Outcome;
use crate::topic::listen::{Go, Listener, listen};
use crate::value::tame;

pub fn run(context: &mut Context, args: CommandLogArgs) -> Outcome {
    let topic = args.topic.as_str().to_owned();
    look_at(context, &topic)?;
    let timeout = args.timeout;
    listen(
        context,
        &rnet::command_log_topic(&topic),
        true,
        timeout,
        &mut Lines { args, printed: 0 },
    )
}

struct Lines {
    args: CommandLogArgs,
    printed: u64,
}

impl Listener for Lines {
    fn message(&mut self, context: &mut Context, heard: &Heard<'_>, bytes: &[u8]) -> Outcome<Go> {
        let event = match heard.type_desc.name() {
            Some("rnet.msgs.CommandEvent") => CommandEvent::decode(bytes).ok(),
            _ => None,
        };
        let Some(event) = event else { return Ok(Go::On) };
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
                line += &format!(" {} (priority {priority})", tame(node));
            }
            if !text.is_empty() {
                line += &format!(": {}", tame(text));
            }
            context.line(format_args!("{}", line.trim_end()))?;
        }
        self.printed += 1;
        Ok(if Some(self.printed) == self.args.count { Go::Enough } else { Go::On })
    }

    fn idle(&mut self, _: &mut Context, _: &Follow) -> Outcome<Go> {
        Ok(if self.args.follow || self.printed == 0 { Go::On } else { Go::Enough })
    }

    fn second(&mut self, _: &mut Context, _: &Follow) -> Outcome<Go> {
        Ok(if self.args.follow { Go::On } else { Go::Enough })
    }

    fn tells_publishers(&self) -> bool {
        false
    }

    fn satisfied(&self) -> bool {
        self.printed > 0
    }
}
