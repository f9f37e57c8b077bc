//! Log lines of nodes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use prost::Message as _;
use rnet::LogLevel;
use rnet::inspect::ObservedMessage;
use rnet::msgs::{Log, timestamp_to_ns};
use serde_json::{Value as Json, json};

use super::sink::{MAX_NAME_LEN_BYTES, RateLimiter, TopicSink, cut_text};
use crate::outbox::Output;

/// Data items per second.
const HZ: f64 = 10.0;
/// Maximum number of queued lines: the oldest are dropped.
pub const MAX_LINES: usize = 2_000;
/// Time for collecting the log history of nodes, which is then sent in the order of time.
const HISTORY_COLLECT_TIME: Duration = Duration::from_millis(300);
/// Maximum length of a line's text, in bytes.
const MAX_TEXT_LEN_BYTES: usize = 8 << 10;

/// Maximum total length of queued texts in bytes, limited by the send queue of a page. The oldest lines are
/// dropped.
const MAX_LINES_LEN_BYTES: usize = 1 << 20;
/// Size of a line without its text, in bytes.
const LINE_LEN_BYTES: usize = 256;

struct Line {
    at_ns: i64,
    len_bytes: usize,
    json: Json,
}

/// Which lines are shown.
pub struct Filter {
    pub level: LogLevel,
    pub node: String,
    pub text: String,
}

pub struct LogsSink {
    output: Output,
    filter: Filter,
    rate_limiter: RateLimiter,
    begun: Option<Instant>,
    /// Number of earlier lines to show.
    history: usize,
    is_history_sent: bool,
    lines: VecDeque<Line>,
    len_bytes: usize,
    /// Lines dropped because of the limits.
    dropped: u64,
}

impl LogsSink {
    pub fn new(output: Output, filter: Filter, history: usize) -> LogsSink {
        LogsSink {
            output,
            filter,
            rate_limiter: RateLimiter::new(HZ),
            begun: None,
            history: history.min(MAX_LINES),
            is_history_sent: false,
            lines: VecDeque::new(),
            len_bytes: 0,
            dropped: 0,
        }
    }

    fn line(&self, observed: &ObservedMessage<'_>, bytes: &[u8]) -> Option<Line> {
        let log = Log::decode(bytes).ok()?;
        // An unknown level may be the most severe one.
        let level = if log.level <= 0 { LogLevel::Info as i32 } else { log.level };
        let Filter { node, text, .. } = &self.filter;
        let is_wanted = level >= self.filter.level as i32
            && observed.node.contains(node.as_str())
            && log.message.contains(text.as_str());
        if !is_wanted {
            return None;
        }
        let at_ns = log.timestamp.as_ref().and_then(timestamp_to_ns).unwrap_or(0);
        let known = LogLevel::from_number(level);
        let message = cut_text(&log.message, MAX_TEXT_LEN_BYTES);
        let line = json!({
            "time_s": at_ns as f64 / 1e9,
            "level": known.map_or_else(|| level.to_string(), |level| level.name().to_owned()),
            "node": observed.node,
            "name": cut_text(&log.name, MAX_NAME_LEN_BYTES),
            "message": message,
            "file": cut_text(&log.file, MAX_NAME_LEN_BYTES),
            "line": log.line,
        });
        Some(Line { at_ns, len_bytes: message.len() + LINE_LEN_BYTES, json: line })
    }
}

impl TopicSink for LogsSink {
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], _: f64) {
        if observed.type_desc.name() != Some("foxglove.Log") {
            return;
        }
        let Some(line) = self.line(observed, bytes) else { return };
        self.len_bytes += line.len_bytes;
        self.lines.push_back(line);
        while self.lines.len() > MAX_LINES || self.len_bytes > MAX_LINES_LEN_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.len_bytes -= oldest.len_bytes;
            self.dropped += u64::from(self.is_history_sent);
        }
    }

    fn missed(&mut self, count: u64) {
        self.dropped += count;
    }

    fn tick(&mut self, now: Instant, _: f64) {
        if !self.is_history_sent {
            if now.duration_since(*self.begun.get_or_insert(now)) < HISTORY_COLLECT_TIME {
                return;
            }
            self.is_history_sent = true;
            // Stable: lines of one node with equal times stay in order.
            self.lines.make_contiguous().sort_by_key(|line| line.at_ns);
            let older = self.lines.len().saturating_sub(self.history);
            for line in self.lines.drain(..older) {
                self.len_bytes -= line.len_bytes;
            }
        }
        if self.lines.is_empty() || !self.rate_limiter.take(now) {
            return;
        }
        let lines: Vec<Json> = self.lines.drain(..).map(|line| line.json).collect();
        self.len_bytes = 0;
        let mut data = json!({"lines": lines});
        if self.dropped > 0 {
            data["lost"] = std::mem::take(&mut self.dropped).into();
        }
        self.output.data(data.to_string());
    }
}
