//! The lines that nodes log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message as _;
use rnet::inspect::Heard;
use rnet::msgs::{Log, timestamp_to_ns};
use rnet::{LOG_TOPIC, LogLevel};
use serde_json::{Value as Json, json};

use super::sink::{Pace, TopicSink, Wants};
use crate::outbox::Outbox;

/// Data in a second.
const HZ: f64 = 10.0;
/// Lines that wait, at most: the oldest are dropped.
pub const MAX_LINES: usize = 2_000;
/// What nodes had kept comes within this time, and is told in the order of time.
const GATHER: Duration = Duration::from_millis(300);
/// Longest text of a line that is shown, in bytes.
const MAX_TEXT_LEN_BYTES: usize = 8 << 10;

/// Which lines are shown.
pub struct Filter {
    pub level: LogLevel,
    pub node: String,
    pub text: String,
}

pub struct LogsSink {
    sub: u64,
    outbox: Arc<Outbox>,
    filter: Filter,
    pace: Pace,
    begun: Option<Instant>,
    /// Lines of before that are shown.
    history: usize,
    is_history_told: bool,
    lines: VecDeque<(i64, Json)>,
    /// Lines that had no room.
    dropped: u64,
}

impl LogsSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>, filter: Filter, history: usize) -> LogsSink {
        LogsSink {
            sub,
            outbox,
            filter,
            pace: Pace::new(HZ),
            begun: None,
            history: history.min(MAX_LINES),
            is_history_told: false,
            lines: VecDeque::new(),
            dropped: 0,
        }
    }

    fn line(&self, heard: &Heard<'_>, bytes: &[u8]) -> Option<(i64, Json)> {
        let log = Log::decode(bytes).ok()?;
        // A level that is not known may be the worst of all.
        let level = if log.level <= 0 { LogLevel::Info as i32 } else { log.level };
        let Filter { node, text, .. } = &self.filter;
        let is_wanted = level >= self.filter.level as i32
            && heard.node.contains(node.as_str())
            && log.message.contains(text.as_str());
        if !is_wanted {
            return None;
        }
        let at_ns = log.timestamp.as_ref().and_then(timestamp_to_ns).unwrap_or(0);
        let known = LogLevel::from_number(level);
        let chars = log.message.char_indices().map(|(at, _)| at);
        let end = match log.message.len() > MAX_TEXT_LEN_BYTES {
            true => chars.take_while(|at| *at <= MAX_TEXT_LEN_BYTES).last().unwrap_or(0),
            false => log.message.len(),
        };
        let line = json!({
            "time_s": at_ns as f64 / 1e9,
            "level": known.map_or_else(|| level.to_string(), |level| level.name().to_owned()),
            "node": heard.node,
            "name": log.name,
            "message": &log.message[..end],
            "file": log.file,
            "line": log.line,
        });
        Some((at_ns, line))
    }
}

impl TopicSink for LogsSink {
    fn wants(&self) -> Wants {
        Wants::Topic(LOG_TOPIC.to_owned())
    }

    fn message(&mut self, heard: &Heard<'_>, bytes: &[u8], _: f64) {
        if heard.type_desc.name() != Some("foxglove.Log") {
            return;
        }
        let Some(line) = self.line(heard, bytes) else { return };
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
            self.dropped += u64::from(self.is_history_told);
        }
        self.lines.push_back(line);
    }

    fn missed(&mut self, count: u64) {
        self.dropped += count;
    }

    fn tick(&mut self, now: Instant, _: f64) {
        if !self.is_history_told {
            if now.duration_since(*self.begun.get_or_insert(now)) < GATHER {
                return;
            }
            self.is_history_told = true;
            // Lines of one node with one time stay in their order.
            self.lines.make_contiguous().sort_by_key(|(at_ns, _)| *at_ns);
            let older = self.lines.len().saturating_sub(self.history);
            self.lines.drain(..older);
        }
        if self.lines.is_empty() || !self.pace.take(now) {
            return;
        }
        let lines: Vec<Json> = self.lines.drain(..).map(|(_, line)| line).collect();
        let mut data = json!({"lines": lines});
        if self.dropped > 0 {
            data["lost"] = std::mem::take(&mut self.dropped).into();
        }
        self.outbox.data(self.sub, data.to_string());
    }
}
