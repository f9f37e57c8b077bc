//! The status that a recorder publishes for inspection tools: docs/design/recording.md, "How it is going".

use serde_json::json;

use super::progress::Progress;

/// Format version: the content is stable while it does not change.
const FORMAT: u32 = 1;

/// A longer command line is truncated.
const MAX_COMMAND_LINE_CHARS: usize = 1000;

/// Fields that are constant while a recorder runs.
pub struct StatusReport {
    command_line: String,
    begun_ns: u64,
    buffer_bytes: u64,
}

impl StatusReport {
    pub fn new(command_line: &str, buffer_bytes: u64) -> StatusReport {
        StatusReport {
            command_line: command_line.chars().take(MAX_COMMAND_LINE_CHARS).collect(),
            begun_ns: rnet::now_ns(),
            buffer_bytes,
        }
    }

    /// The status text. `queued_bytes` is passed separately, because the writer that updates the progress may
    /// be blocked.
    pub fn text(&self, progress: &Progress, queued_bytes: u64) -> String {
        let by_cause = progress.losses.by_cause();
        let missing: serde_json::Map<_, _> = by_cause
            .into_iter()
            .map(|(cause, count)| (cause.name().to_owned(), count.into()))
            .collect();
        let file = progress.path.as_ref();
        let file = file.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()));
        json!({
            "recorder": FORMAT,
            "pid": std::process::id(),
            "said": self.command_line,
            "begun_ns": self.begun_ns,
            "at_ns": rnet::now_ns(),
            "publishers": progress.publishers,
            "messages": progress.messages,
            "bytes": progress.bytes,
            "missing": missing,
            "unheard": progress.unheard.total(),
            "file": file,
            "file_bytes": progress.file_bytes,
            "free_bytes": progress.free_bytes,
            "queued_bytes": queued_bytes,
            "buffer_bytes": self.buffer_bytes,
            "disk_is_full": progress.disk_is_full,
            "is_waiting": progress.is_waiting,
            "problems": progress.problems,
        })
        .to_string()
    }
}
