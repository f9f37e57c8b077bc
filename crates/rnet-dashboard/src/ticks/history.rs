//! Rates, latencies and losses of each topic over time, kept while a page is connected.

use std::collections::{BTreeMap, VecDeque};

use rnet_monitor::TopicRow;
use serde_json::{Value as Json, json};

use super::view::View;

/// Maximum number of points of a topic.
const MAX_POINTS: usize = 600;

/// The points of each topic, oldest first.
#[derive(Default)]
pub struct History {
    topics: BTreeMap<String, VecDeque<Point>>,
    /// Number of snapshots so far.
    pub snapshots: u64,
}

#[derive(Clone)]
struct Point {
    /// Number of the snapshot of this point.
    snapshot: u64,
    t_s: f64,
    rate_hz: f64,
    bytes_per_s: f64,
    latency: [Option<u64>; 3],
    counts: [u64; 3],
}

impl Point {
    fn new(row: &TopicRow, snapshot: u64, t_s: f64) -> Point {
        Point {
            snapshot,
            t_s,
            rate_hz: row.rate_hz,
            bytes_per_s: row.bytes_per_s,
            latency: [row.latency.p50_ns, row.latency.p99_ns, row.latency.max_ns],
            counts: [row.lost_in_interval, row.missed_in_interval, row.skipped_in_interval],
        }
    }
}

impl History {
    pub fn add(&mut self, view: &View<'_>) {
        self.snapshots += 1;
        let rows = &view.figures.topics;
        self.topics.retain(|topic, _| rows.iter().any(|row| row.topic == *topic));
        for row in rows {
            let points = self.topics.entry(row.topic.clone()).or_default();
            if points.len() == MAX_POINTS {
                points.pop_front();
            }
            points.push_back(Point::new(row, self.snapshots, view.at_s));
        }
    }

    /// The points of a topic after a snapshot, as columns; `None` without any.
    pub fn columns(&self, topic: &str, after: u64) -> Option<Json> {
        let points: Vec<&Point> =
            self.topics.get(topic)?.iter().filter(|point| point.snapshot > after).collect();
        let column =
            |of: &dyn Fn(&Point) -> Json| -> Json { points.iter().map(|p| of(p)).collect() };
        (!points.is_empty()).then(|| {
            json!({
                "t_s": column(&|p| p.t_s.into()),
                "rate_hz": column(&|p| p.rate_hz.into()),
                "bytes_per_s": column(&|p| p.bytes_per_s.into()),
                "p50_ns": column(&|p| p.latency[0].into()),
                "p99_ns": column(&|p| p.latency[1].into()),
                "max_ns": column(&|p| p.latency[2].into()),
                "lost": column(&|p| p.counts[0].into()),
                "missed": column(&|p| p.counts[1].into()),
                "skipped": column(&|p| p.counts[2].into()),
            })
        })
    }
}
