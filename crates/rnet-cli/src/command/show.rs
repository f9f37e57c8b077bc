//! `rnet command list` and `who`: a node that reads the receivers' status.

use std::time::{Duration, Instant};

use rnet::msgs::CommandStatus;
use rnet::msgs::command_status::Reason;
use rnet::{Error, Lane, Node};
use rnet_monitor::commands::{reason_text, state_text};
use rnet_monitor::documents::command as document;
use serde_json::{Value, json};

use super::args::{CommandListArgs, WhoArgs};
use super::{receivers, snapshot_with_command};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::snapshot::take_snapshot;
use crate::{domain, signal, table};

/// How long present receivers may take to send their status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum time for each, if others were slow.
const MIN_STATUS_TIMEOUT: Duration = Duration::from_millis(100);

pub fn list(context: &mut Context, args: &CommandListArgs) -> Outcome {
    let (domain, snapshot) = take_snapshot(context)?;
    let receivers = receivers(&snapshot);
    if receivers.is_empty() {
        domain::report_none_found(context, "commands")?;
        return match context.json() {
            true => context.document(&json!({"domain": domain.id(), "commands": []})),
            false => Ok(()),
        };
    }
    let node = context.node("command", &args.own_node)?;
    let until = Instant::now() + STATUS_TIMEOUT;
    let mut commands = Vec::new();
    for (topic, receiver) in receivers {
        commands.push((topic, receiver, status_of(&node, topic, receiver, until)?));
    }
    if context.json() {
        let commands = commands.iter().map(|(topic, of, said)| status_json(topic, of, said));
        let commands: Vec<_> = commands.collect();
        return context.document(&json!({"domain": domain.id(), "commands": commands}));
    }
    let titles = ["COMMAND", "RECEIVER", "STATE", "SINCE", "DRIVER", "PRIORITY ", "FALLBACKS "];
    let row = |(topic, receiver, said): &(&str, &str, Option<ReceiverStatus>)| {
        let Some(ReceiverStatus { status, since }) = said else {
            let words = [topic, *receiver, NO_ANSWER, "-", "-", "-", "-"];
            return words.map(str::to_owned).to_vec();
        };
        let drives = !status.holder.is_empty();
        let holder = if drives { &status.holder } else { "-" };
        let priority = if drives { status.priority.to_string() } else { "-".to_owned() };
        let (since, fallbacks) = (table::uptime(*since), status.fallbacks.to_string());
        let words = [topic, *receiver, &state_text(status), &since, holder, &priority, &fallbacks];
        words.map(str::to_owned).to_vec()
    };
    let rows: Vec<_> = commands.iter().map(row).collect();
    table::print(context, &titles, &rows)?;
    for (_, receiver, _) in commands.iter().filter(|(.., status)| status.is_none()) {
        report_no_answer(context, receiver);
    }
    Ok(())
}

pub fn who(context: &mut Context, args: &WhoArgs) -> Outcome {
    let topic = args.topic.as_str();
    let snapshot = snapshot_with_command(context, topic)?;
    let node = context.node("command", &args.own_node)?;
    let until = Instant::now() + STATUS_TIMEOUT;
    let mut all = Vec::new();
    for (_, receiver) in receivers(&snapshot).into_iter().filter(|(of, _)| *of == topic) {
        all.push((receiver, status_of(&node, topic, receiver, until)?));
    }
    if context.json() {
        let all: Vec<_> = all.iter().map(|(of, said)| status_json(topic, of, said)).collect();
        return context.document(&json!({"command": topic, "receivers": all}));
    }
    for (receiver, said) in &all {
        let ms = |ns: u64| ns as f64 / 1e6;
        context.line(format_args!("Command: {topic}"))?;
        context.line(format_args!("  receiver: {receiver}"))?;
        let Some(ReceiverStatus { status, since }) = said else {
            context.line(format_args!("  state: {NO_ANSWER}"))?;
            report_no_answer(context, receiver);
            continue;
        };
        context.line(format_args!("  state: {}", state_text(status)))?;
        context.line(format_args!("  since: {:.1} s", since.as_secs_f64()))?;
        if status.reason() != Reason::Unspecified {
            context.line(format_args!("  reason: {}", reason_text(status)))?;
        }
        match status.holder.as_str() {
            "" => context.line(format_args!("  driver: none"))?,
            holder => {
                context.line(format_args!("  driver: {holder}"))?;
                context.line(format_args!("  priority: {}", status.priority))?;
                context.line(format_args!("  lease: {} ms", ms(status.lease)))?;
            }
        }
        context.line(format_args!("  deadline: {} ms", ms(status.deadline)))?;
        let CommandStatus { applied, ignored, fallbacks, .. } = status;
        context.line(format_args!("  applied before: {applied}, ignored before: {ignored}"))?;
        context.line(format_args!("  fallbacks: {fallbacks}"))?;
    }
    if all.len() > 1 {
        context.eprintln(format_args!(
            "{topic} has {} receivers, each with its own driver: close all but one",
            all.len()
        ));
    }
    Ok(())
}

/// The last status of a receiver. A receiver sends it on changes only, so its counts of commands may be
/// older.
pub struct ReceiverStatus {
    pub status: CommandStatus,
    pub since: Duration,
}

fn status_json(topic: &str, receiver: &str, said: &Option<ReceiverStatus>) -> Value {
    let mut document = document(topic, receiver, said.as_ref().map(|said| &said.status));
    if let Some(ReceiverStatus { since, .. }) = said {
        document["since_s"] = since.as_secs_f64().into();
    }
    document
}

/// Shown for a receiver without a status.
const NO_ANSWER: &str = "no answer";

fn report_no_answer(context: &mut Context, receiver: &str) {
    context.eprintln(format_args!(
        "{receiver} does not answer: its process is suspended or has just exited; see rnet node info {receiver}"
    ));
}

/// The last status of the receiver in this node; `None` if there was none until then.
pub fn status_of(
    node: &Node,
    topic: &str,
    receiver: &str,
    until: Instant,
) -> Outcome<Option<ReceiverStatus>> {
    let mut said = node
        .subscriber::<CommandStatus>(&rnet::command_status_topic(topic))
        .lane(Lane::Urgent)
        .transient_local()
        .open()?;
    // An available status is read at once, even after the time limit.
    let until = until.max(Instant::now() + MIN_STATUS_TIMEOUT);
    while !signal::stop_requested() {
        match said.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(status) if status.node() == receiver => {
                let since = Duration::from_nanos(rnet::now_ns().saturating_sub(status.sent_ns()));
                return Ok(Some(ReceiverStatus { since, status: status.into_message() }));
            }
            Ok(_) | Err(Error::PeerLost { .. }) => {}
            Err(Error::Timeout { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Interrupted)
}
