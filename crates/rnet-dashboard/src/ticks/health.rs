//! One-time requests: metrics and health.

use std::time::{Duration, Instant};

use rnet_monitor::{Finding, Level, MetricsFormat, metrics};
use serde_json::json;
use tokio::sync::oneshot;

use super::tick::{Sink, Tick};

/// Minimum interval for rates if no earlier snapshot exists.
const MIN_INTERVAL: Duration = Duration::from_millis(900);

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorQuery {
    Metrics(MetricsFormat),
    Health,
}

/// A request.
pub struct MonitorRequest {
    ask: MonitorQuery,
    /// Sends whether it is healthy, and the text.
    reply: Option<oneshot::Sender<(bool, String)>>,
    since: Instant,
    snapshot_seen: bool,
}

impl MonitorRequest {
    pub fn new(ask: MonitorQuery) -> (MonitorRequest, oneshot::Receiver<(bool, String)>) {
        let (reply, answer) = oneshot::channel();
        (
            MonitorRequest { ask, reply: Some(reply), since: Instant::now(), snapshot_seen: false },
            answer,
        )
    }
}

impl Sink for MonitorRequest {
    fn needs_snapshot(&self, now: Instant) -> bool {
        self.reply.is_some()
            && (!self.snapshot_seen || now.duration_since(self.since) >= MIN_INTERVAL)
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        // The figures cover a meaningful interval, even if other subscriptions take snapshots more often.
        let long = MIN_INTERVAL.as_secs_f64();
        self.snapshot_seen |= self.needs_snapshot(tick.now);
        let is_old = tick.now.duration_since(self.since) >= MIN_INTERVAL;
        let ready = tick.view.filter(|view| is_old || view.figures.interval_s >= long);
        let Some(view) = ready else { return };
        let Some(reply) = self.reply.take() else { return };
        let figures = &view.figures;
        let answer = match self.ask {
            MonitorQuery::Metrics(format) => {
                (true, metrics(format, view.domain, view.now, figures, &view.problems))
            }
            MonitorQuery::Health => {
                let is_problem = |found: &&Finding| found.level == Level::Problem;
                let found: Vec<&Finding> = view.problems.iter().filter(is_problem).collect();
                let document = json!({
                    "domain": view.domain,
                    "ok": found.is_empty(),
                    "nodes": figures.nodes.len(),
                    "topics": figures.topics.len(),
                    "hosts": figures.hosts.len(),
                    "problems": found,
                });
                (found.is_empty(), format!("{document:#}\n"))
            }
        };
        let _ = reply.send(answer);
    }
}
