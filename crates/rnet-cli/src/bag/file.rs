//! Opens a recording, and selects messages of it.

use std::path::Path;

use rnet_record::read::{ReadError, Recording, Select};
use rnet_record::tools;

use super::args::SelectArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_format::text::escape_controls;

/// Problems of a file that are reported one by one.
const MAX_REPORTED: usize = 10;

/// Opens a file. Reports a missing index and damage.
pub fn open(context: &Context, path: &Path) -> Outcome<Recording> {
    let opened = signal::with_immediate_exit(|| Recording::open(path))?;
    let recording = opened.map_err(|error| read_failure(path, &error))?;
    report_damage(context, &recording);
    Ok(recording)
}

/// Reports that a file has no index, and its damage.
pub fn report_damage(context: &Context, recording: &Recording) {
    let (found, path) = (recording.info(), recording.path());
    if let Some(why) = found.scan_reason {
        let file = path.display();
        context.note(&format!("{file} was read completely: {why}"));
    }
    for problem in found.problems.iter().take(MAX_REPORTED) {
        report_problem(context, path, problem);
    }
    let more = found.problems.len().saturating_sub(MAX_REPORTED) as u64 + found.more_problems;
    if more > 0 {
        context
            .eprintln(format_args!("{more} more problems; see rnet bag check {}", path.display()));
    }
}

pub fn read_failure(path: &Path, error: &ReadError) -> Failure {
    Failure::Failed(escape_controls(&format!("{}: {error}", path.display())).into_owned())
}

/// Reports damage of a file. The quoted text is untrusted.
pub fn report_problem(context: &Context, path: &Path, problem: &ReadError) {
    let text = format!("{}: {problem}", path.display());
    context.note(&text);
}

/// The messages that the command line selects.
pub fn select(recording: &Recording, args: &SelectArgs) -> Outcome<Select> {
    let SelectArgs { topic, exclude, span } = args;
    tools::select(recording, topic, exclude, (span.start, span.end))
}
