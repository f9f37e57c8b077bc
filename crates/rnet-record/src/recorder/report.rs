//! How a recording is going, in words and as JSON.

use std::time::Duration;

use rnet_format::text::count_text;
use rnet_format::units;
use serde_json::{Value, json};

use super::Progress;

impl Progress {
    /// How it is going, in a line, after so long and at so many messages per second.
    #[must_use]
    pub fn line(&self, since: Duration, rate: f64) -> String {
        let progress = self;
        let state = match (progress.disk_is_full, progress.is_waiting) {
            (true, _) => "DISK FULL",
            (_, true) => "waiting",
            _ => "recording",
        };
        format!(
            "{state} {:.0} s: {} from {} ({rate:.0}/s), {} written, {} waiting; {}",
            since.as_secs_f64(),
            count_text(progress.messages, "message"),
            count_text(progress.publishers as u64, "publisher"),
            units::bytes(progress.file_bytes as f64),
            units::bytes(progress.queued_bytes as f64),
            losses_text(progress),
        )
    }

    /// What a recording of so long came to, in lines.
    #[must_use]
    pub fn summary(&self, since: Duration) -> Vec<String> {
        let (report, mut lines) = (self, Vec::new());
        for (topic, node, cause, count) in report.losses.iter() {
            lines.push(format!(
                "{count} messages of {topic} from {node} are missing: {}",
                cause.name()
            ));
        }
        for (topic, node, why, count) in report.unheard.iter() {
            lines.push(format!(
                "publishers of {topic} in {node} not heard, or not until their end: {count} ({})",
                why.name()
            ));
        }
        let files: Vec<String> =
            report.ended.iter().map(|path| path.display().to_string()).collect();
        let files = match &files[..] {
            [] => "no file".to_owned(),
            [only] => only.clone(),
            [first, .., last] => format!("{} files, {first} to {last}", files.len()),
        };
        let removed = match report.removed {
            0 => String::new(),
            n => format!(" ({n} older ones were removed)"),
        };
        lines.push(format!(
            "{files}{removed}: {} messages in {:.1} s, {}; {}",
            report.messages,
            since.as_secs_f64(),
            units::bytes(report.file_bytes as f64),
            losses_text(report),
        ));
        lines
    }

    /// How it is going, as JSON.
    #[must_use]
    pub fn document(&self, since: Duration) -> Value {
        let progress = self;
        let losses = progress.losses.iter().map(|(topic, node, cause, count)| {
        json!({"topic": topic, "node": node, "cause": cause.name(), "count": count})
    });
        let unheard = progress.unheard.iter().map(|(topic, node, why, count)| {
        json!({"topic": topic, "node": node, "why": why.name(), "count": count})
    });
        json!({
            "seconds": since.as_secs_f64(),
            "publishers": progress.publishers,
            "followed": progress.followed,
            "unheard": unheard.collect::<Vec<Value>>(),
            "messages": progress.messages,
            "bytes": progress.bytes,
            "queued_bytes": progress.queued_bytes,
            "file_bytes": progress.file_bytes,
            "file": progress.path,
            "ended": progress.ended,
            "removed": progress.removed,
            "gone": progress.gone,
            "missing": progress.losses.total(),
            "skipped_values": progress.skipped_values,
            "losses": losses.collect::<Vec<Value>>(),
            "disk_is_full": progress.disk_is_full,
            "is_waiting": progress.is_waiting,
        })
    }
}

/// Losses by cause, and of how many publishers they are known: of those that nobody saw they are not.
fn losses_text(progress: &Progress) -> String {
    let Progress { losses, unheard, followed, .. } = progress;
    let causes = losses.by_cause().into_iter();
    let causes: Vec<String> = causes.map(|(cause, n)| format!("{n} {}", cause.name())).collect();
    let missing = match losses.total() {
        _ if *followed == 0 => "no publisher was followed".to_owned(),
        0 if *followed == 1 => "no message is missing from the publisher followed".to_owned(),
        0 => format!("no message is missing from the {followed} publishers followed"),
        n => format!("{n} missing ({})", causes.join(", ")),
    };
    match unheard.total() {
        0 => missing,
        n => format!("{missing}; publishers seen but not heard: {n}"),
    }
}
