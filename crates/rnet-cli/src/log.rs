//! `rnet log`: the log lines of all nodes.

use prost::Message as _;
use rnet::inspect::{Follower, ObservedMessage};
use rnet::msgs::{Log, Timestamp, timestamp_now, timestamp_to_ns};
use rnet::{LOG_TOPIC, LogLevel};
use serde_json::json;

use crate::args::LogArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::style::{NOTE, PROBLEM};
use crate::topic::listen::{Flow, Listener, listen};
use rnet_format::text::escape_controls;
use rnet_monitor::link::host_of;

pub fn run(context: &mut Context, args: LogArgs) -> Outcome {
    let now_ns = timestamp_to_ns(&timestamp_now()).unwrap_or(0);
    let since_ns = args
        .since
        .map(|since| now_ns.saturating_sub(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)));
    let timeout = args.timeout;
    let mut lines = LogListener {
        args,
        since_ns,
        history: Some(Vec::new()),
        printed: 0,
        foreign_publishers: Vec::new(),
    };
    listen(context, LOG_TOPIC, true, timeout, &mut lines)
}

struct LogListener {
    args: LogArgs,
    /// Older lines are skipped, in ns since 1970 UTC.
    since_ns: Option<i64>,
    /// The lines that nodes had kept, by time, until all of them have arrived.
    history: Option<Vec<(i64, LogLine)>>,
    printed: u64,
    /// Nodes that publish another type on the topic.
    foreign_publishers: Vec<String>,
}

struct LogLine {
    node: String,
    log: Log,
}

impl Listener for LogListener {
    fn on_message(
        &mut self,
        context: &mut Context,
        heard: &ObservedMessage<'_>,
        bytes: &[u8],
    ) -> Outcome<Flow> {
        let log = match heard.type_desc.name() {
            Some("foxglove.Log") => Log::decode(bytes).ok(),
            _ => None,
        };
        let Some(log) = log else {
            self.report_foreign_publisher(context, heard);
            return Ok(Flow::Continue);
        };
        let at_ns = log.timestamp.as_ref().and_then(timestamp_to_ns).unwrap_or(0);
        if !self.is_wanted(heard.node, &log, at_ns) {
            return Ok(Flow::Continue);
        }
        let line = LogLine { node: heard.node.to_owned(), log };
        match &mut self.history {
            Some(history) => history.push((at_ns, line)),
            None => return self.print(context, &line),
        }
        Ok(Flow::Continue)
    }

    fn on_idle(&mut self, context: &mut Context, follow: &Follower) -> Outcome<Flow> {
        // Lines of other hosts are in transit.
        if follow.publishers().any(|node| host_of(node).0.is_some()) {
            return Ok(Flow::Continue);
        }
        self.print_history(context)
    }

    fn on_second(&mut self, context: &mut Context, _: &Follower) -> Outcome<Flow> {
        self.print_history(context)
    }

    fn on_finish(&mut self, context: &mut Context) -> Outcome {
        self.print_history(context)?;
        self.warn_unknown_node(context)
    }

    fn reports_publishers(&self) -> bool {
        false
    }

    fn is_satisfied(&self) -> bool {
        self.printed > 0
    }
}

impl LogListener {
    fn is_wanted(&self, node: &str, log: &Log, at_ns: i64) -> bool {
        // An unknown level may be the most severe of all.
        let level = if log.level <= 0 { LogLevel::Info as i32 } else { log.level };
        level > self.args.level as i32
            && self.args.node.as_ref().is_none_or(|nodes| nodes.matches(node))
            && self.since_ns.is_none_or(|since| at_ns >= since)
    }

    /// Warns of a node name that no node has: it is more likely a mistake than a silent node.
    fn warn_unknown_node(&self, context: &Context) -> Outcome {
        let Some(nodes) = self.args.node.as_ref().filter(|_| self.printed == 0) else {
            return Ok(());
        };
        let snapshot = context.domain()?.snapshot()?;
        let here = snapshot.nodes.iter().map(|node| node.meta.name.as_str());
        let remote = snapshot.remote.iter().map(|node| node.node.as_str());
        if !here.chain(remote).any(|name| nodes.matches(name)) {
            context.note(&format!(
                "node {nodes} not found, and no lines of it are kept; see rnet node list"
            ));
        }
        Ok(())
    }

    fn report_foreign_publisher(&mut self, context: &Context, heard: &ObservedMessage<'_>) {
        if !self.foreign_publishers.iter().any(|node| node == heard.node) {
            let (name, node) = (heard.type_desc.name().unwrap_or("raw"), heard.node);
            context.note(&format!(
                "messages of {node} on {LOG_TOPIC} are ignored: expected type foxglove.Log, but their type is \
                 {name} or they cannot be decoded"
            ));
            self.foreign_publishers.push(node.to_owned());
        }
    }

    /// Prints the lines that nodes had kept, once.
    fn print_history(&mut self, context: &mut Context) -> Outcome<Flow> {
        let mut history = self.history.take().unwrap_or_default();
        // Lines of one node with the same time keep their order.
        history.sort_by_key(|(at_ns, _)| *at_ns);
        for (_, line) in history {
            if self.print(context, &line)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(if self.args.follow { Flow::Continue } else { Flow::Stop })
    }

    fn print(&mut self, context: &mut Context, line: &LogLine) -> Outcome<Flow> {
        let LogLine { node, log } = line;
        let time = log.timestamp.unwrap_or_default();
        let level = LogLevel::from_number(log.level);
        if context.json() {
            context.json_line(&json!({
                "time": time.to_string(),
                "level": level.map_or_else(|| log.level.to_string(), |level| level.name().to_owned()),
                "node": node,
                "name": log.name,
                "message": log.message,
                "file": log.file,
                "line": log.line,
            }))?;
        } else {
            let word = level.map_or_else(|| "-".to_owned(), |level| level.name().to_uppercase());
            let word = format!("{word:<7}");
            let word = match level {
                Some(LogLevel::Error | LogLevel::Fatal) => context.styled(PROBLEM, &word),
                Some(LogLevel::Warning) => context.styled(NOTE, &word),
                _ => word,
            };
            let time = Timestamp { nanos: time.nanos / 1_000_000 * 1_000_000, ..time };
            let (node, text) = (escape_controls(node), indent_lines(&log.message));
            context.line(format_args!("{time} {word} {node}: {text}"))?;
        }
        self.printed += 1;
        Ok(if Some(self.printed) == self.args.count { Flow::Stop } else { Flow::Continue })
    }
}

/// The text without control characters. Further lines are indented: a text cannot imitate another entry.
fn indent_lines(text: &str) -> String {
    let lines = text.trim_end().lines().map(escape_controls);
    lines.collect::<Vec<_>>().join("\n    ")
}
