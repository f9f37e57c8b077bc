//! The history of a topic, and its new points.

use std::time::{Duration, Instant};

use rnet::{bucket_high, bucket_low};
use serde_json::{Value as Json, json};

use super::tick::{Sink, Tick};
use crate::outbox::Output;

/// Interval of points, if no subscription needs snapshots more often.
const INTERVAL: Duration = Duration::from_millis(500);

pub struct HistorySink {
    output: Output,
    topic: String,
    /// The last snapshot that was sent.
    last_snapshot: u64,
    last: Option<Instant>,
    /// Counts by latency bucket that were not sent yet.
    counts: Vec<u64>,
}

impl HistorySink {
    pub fn new(output: Output, topic: String) -> HistorySink {
        HistorySink { output, topic, last_snapshot: 0, last: None, counts: Vec::new() }
    }

    /// Non-empty buckets: bounds in ns, and counts.
    fn take_histogram(&mut self) -> Json {
        let counts = std::mem::take(&mut self.counts);
        let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, count)| json!([bucket_low(at), bucket_high(at), count])).collect()
    }
}

impl Sink for HistorySink {
    fn needs_snapshot(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= INTERVAL)
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        let Some(view) = tick.view else { return };
        self.last = Some(tick.now);
        let row = view.figures.topics.iter().find(|row| row.topic == self.topic);
        for (at, count) in row.iter().flat_map(|row| row.latency.counts.iter().enumerate()) {
            self.counts.resize(self.counts.len().max(at + 1), 0);
            self.counts[at] += count;
        }
        let Some(mut columns) = tick.history.columns(&self.topic, self.last_snapshot) else {
            return;
        };
        self.last_snapshot = tick.history.snapshots;
        columns["hist"] = self.take_histogram();
        self.output.data(columns.to_string());
    }
}
