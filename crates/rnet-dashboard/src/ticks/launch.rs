//! The nodes that `rnet launch` has started, as their keepers' records say.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet_launch::{Record, RunFolder};
use serde_json::{Value as Json, json};

use super::turn::{Sink, Tick};
use crate::outbox::Outbox;
use crate::times::unix_now_s;

const INTERVAL: Duration = Duration::from_millis(500);

pub struct LaunchSink {
    sub: u64,
    outbox: Arc<Outbox>,
    told: String,
    last: Option<Instant>,
}

impl LaunchSink {
    pub fn new(sub: u64, outbox: Arc<Outbox>) -> LaunchSink {
        LaunchSink { sub, outbox, told: String::new(), last: None }
    }
}

impl Sink for LaunchSink {
    fn tick(&mut self, tick: &Tick<'_>) {
        if self.last.is_some_and(|last| tick.now.duration_since(last) < INTERVAL) {
            return;
        }
        self.last = Some(tick.now);
        let path = tick.desk.world().options.location.path();
        let folder = RunFolder::of_domain(path, &|name| std::env::var_os(name));
        let records = folder.map(|folder| Record::all(&folder)).unwrap_or_default();
        let nodes: Vec<Json> = records.iter().map(row).collect();
        let text = json!({"nodes": nodes}).to_string();
        if text != self.told || self.outbox.take_broken(self.sub) {
            self.outbox.whole(self.sub, text.clone());
            self.told = text;
        }
    }
}

fn row(record: &Record) -> Json {
    let runs = record.keeper().is_some();
    let state = match (&record.end, runs) {
        (Some(end), _) if end.is_failure() && !record.was_told_to_stop() => "failed",
        (Some(_), _) => "ended",
        // Its keeper was killed, and nobody has said so.
        (None, false) => "failed",
        (None, true) if record.is_ready => "ready",
        (None, true) => "starting",
    };
    let age_s = rnet::boot_ns().saturating_sub(record.started_boot_ns) as f64 / 1e9;
    let end = record.end.as_ref().map(ToString::to_string);
    json!({
        "node": record.node,
        "file": record.file,
        "pid": record.main.as_ref().filter(|_| runs).map(|main| main.pid),
        "state": state,
        "restarts": record.restarts,
        // To whole seconds, so that it is the same at each look.
        "started_s": (unix_now_s() - age_s).round(),
        "end": end.or_else(|| (!runs).then(|| "ended with its keeper, which was killed".to_owned())),
    })
}
