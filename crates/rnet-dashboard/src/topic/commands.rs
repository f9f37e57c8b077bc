//! Status of command receivers, and their audit trails.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use prost::Message as _;
use rnet::TypeDesc;
use rnet::command_of_status;
use rnet::inspect::ObservedMessage;
use rnet::msgs::command_status::State;
use rnet::msgs::{CommandEvent, CommandStatus, timestamp_to_ns};
use rnet_monitor::link::host_of;
use rnet_monitor::{commands, documents};
use serde_json::{Value as Json, json};

use super::sink::{MAX_NAME_LEN_BYTES, RateLimiter, TopicSink, cut_text};
use crate::operations::Operations;
use crate::outbox::Output;

/// Data items per second.
const HZ: f64 = 5.0;
/// Checks for removed receivers per second.
const RECEIVERS_HZ: f64 = 1.0;
/// Maximum number of receivers shown.
const MAX_RECEIVERS: usize = 256;
/// Maximum number of queued audit lines: the oldest are dropped.
const MAX_LINES: usize = 1_000;

pub struct CommandsSink {
    output: Output,
    operations: Arc<Operations>,
    rate_limiter: RateLimiter,
    receivers_limiter: RateLimiter,
    /// By command and receiver.
    statuses: BTreeMap<(String, String), CommandStatus>,
    /// Receivers that do not answer now, whether or not they have sent a status before.
    silent: BTreeSet<(String, String)>,
}

impl CommandsSink {
    pub fn new(output: Output, operations: Arc<Operations>) -> CommandsSink {
        let (statuses, silent) = Default::default();
        let (rate_limiter, receivers_limiter) =
            (RateLimiter::new(HZ), RateLimiter::new(RECEIVERS_HZ));
        CommandsSink { output, operations, rate_limiter, receivers_limiter, statuses, silent }
    }

    fn rows(&self) -> Vec<Json> {
        let mut wanted = self.operations.authority.held_commands();
        let stops = wanted.clone();
        // Whether the dashboard holds a command, according to its receiver: a restarted receiver does not
        // know of it.
        let node = (!stops.is_empty()).then(|| self.operations.operator.node().ok()).flatten();
        let own = node.as_ref().map_or("", |node| node.name());
        let mut rows = Vec::new();
        // The last status of a silent receiver is outdated.
        let of_silent = self.silent.iter().map(|of| (of, None));
        let answers = self.statuses.iter().filter(|(of, _)| !self.silent.contains(*of));
        let all: BTreeMap<_, _> =
            answers.map(|(of, status)| (of, Some(status))).chain(of_silent).collect();
        for ((command, receiver), status) in all.into_iter().take(MAX_RECEIVERS) {
            wanted.remove(command);
            let mut row = documents::command(command, receiver, status);
            let is_ours = status.is_some_and(|status| is_held_by(own, receiver, &status.holder));
            row["held"] = (is_ours && stops.get(command) == Some(&true)).into();
            row["stop_wanted"] = stops.contains_key(command).into();
            rows.push(row);
        }
        // A stop outlives its receiver, and must be shown so that it can be released.
        rows.extend(wanted.into_keys().map(|command| {
            json!({"command": command, "receiver": null, "state": "closed", "held": false, "stop_wanted": true})
        }));
        rows
    }

    /// Removes receivers that are gone, which may have died without a message, and finds silent ones.
    fn read_receivers(&mut self) {
        let Ok(mut domain) = self.operations.app().options.location.domain() else { return };
        let Ok(snapshot) = domain.snapshot() else { return };
        let here = documents::receivers(&snapshot);
        self.statuses.retain(|(topic, node), _| here.contains(&(topic.as_str(), node.as_str())));
        let silent = commands::silent_receivers(&snapshot).into_iter();
        self.silent = silent.map(|of| (of.command.to_owned(), of.node.to_owned())).collect();
    }
}

/// Whether the holder named by a receiver is our node; a receiver on another host adds our host.
fn is_held_by(own: &str, receiver: &str, holder: &str) -> bool {
    let (at, holder) = host_of(holder);
    !own.is_empty() && holder == own && at.is_some() == host_of(receiver).0.is_some()
}

/// Whether a topic carries the status of a command's receiver.
pub fn is_status(topic: &str, desc: &TypeDesc) -> bool {
    command_of_status(topic).is_some() && desc.name() == Some("rnet.msgs.CommandStatus")
}

impl TopicSink for CommandsSink {
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], _: f64) {
        let Some(command) = command_of_status(observed.topic) else { return };
        let Ok(mut status) = CommandStatus::decode(bytes) else { return };
        status.holder = cut_text(&status.holder, MAX_NAME_LEN_BYTES).to_owned();
        let key = (command.to_owned(), observed.node.to_owned());
        if status.state() == State::Closed {
            self.statuses.remove(&key);
        } else if self.statuses.len() < MAX_RECEIVERS || self.statuses.contains_key(&key) {
            self.statuses.insert(key, status);
        }
    }

    fn tick(&mut self, now: Instant, _: f64) {
        if !self.rate_limiter.take(now) {
            return;
        }
        if self.receivers_limiter.take(now) {
            self.read_receivers();
        }
        self.output.send_if_changed(Some(json!({"commands": self.rows()}).to_string()));
    }
}

pub struct CommandLogSink {
    output: Output,
    rate_limiter: RateLimiter,
    lines: VecDeque<Json>,
}

impl CommandLogSink {
    pub fn new(output: Output) -> CommandLogSink {
        CommandLogSink { output, rate_limiter: RateLimiter::new(HZ), lines: VecDeque::new() }
    }
}

impl TopicSink for CommandLogSink {
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64) {
        if observed.type_desc.name() != Some("rnet.msgs.CommandEvent") {
            return;
        }
        let Ok(event) = CommandEvent::decode(bytes) else { return };
        let at_ns = event.timestamp.as_ref().and_then(timestamp_to_ns);
        let kind = event.kind().as_str_name().trim_start_matches("KIND_").to_lowercase();
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(json!({
            "time_s": at_ns.map_or(sent_s, |ns| ns as f64 / 1e9),
            "receiver": observed.node,
            "kind": kind,
            "node": cut_text(&event.node, MAX_NAME_LEN_BYTES),
            "priority": event.priority,
            // Too large for a JavaScript number.
            "number": event.number.to_string(),
            "text": cut_text(&event.text, MAX_NAME_LEN_BYTES),
        }));
    }

    fn tick(&mut self, now: Instant, _: f64) {
        if !self.lines.is_empty() && self.rate_limiter.take(now) {
            let lines: Vec<Json> = self.lines.drain(..).collect();
            self.output.data(json!({"lines": lines}).to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_receivers_name_the_host_of_the_holder() {
        let own = "/rnet_dashboard_7";
        assert!(is_held_by(own, "/base", own));
        assert!(is_held_by(own, "@robot/base", "@desk/rnet_dashboard_7"));
        // Dashboards of other hosts may have the same number.
        assert!(!is_held_by(own, "@robot/base", own));
        assert!(!is_held_by(own, "/base", "@robot/rnet_dashboard_7"));
        assert!(!is_held_by(own, "/base", "/pilot"));
        assert!(!is_held_by("", "/base", ""));
    }
}
