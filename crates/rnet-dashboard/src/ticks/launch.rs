//! The nodes that `rnet launch` has started, from their keepers' records.

use rnet_launch::{Record, RunFolder};
use serde_json::{Value as Json, json};

use super::full_update::Read;
use crate::times::unix_now_s;

pub fn launched() -> Read {
    Box::new(|tick| {
        let path = tick.operations.app().options.location.path();
        let folder = RunFolder::of_domain(path, &|name| std::env::var_os(name));
        let records = folder.map(|folder| Record::all(&folder)).unwrap_or_default();
        let nodes: Vec<Json> = records.iter().map(row).collect();
        Ok(Some(json!({"nodes": nodes}).to_string()))
    })
}

fn row(record: &Record) -> Json {
    let runs = record.keeper().is_some();
    let state = match (&record.end, runs) {
        (Some(end), _) if end.is_failure() && !record.was_asked_to_stop() => "failed",
        (Some(_), _) => "ended",
        // Its keeper was killed without writing the end.
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
        // Rounded to seconds, so that it is equal in each tick.
        "started_s": (unix_now_s() - age_s).round(),
        "end": end.or_else(|| (!runs).then(|| "killed together with its keeper".to_owned())),
    })
}
