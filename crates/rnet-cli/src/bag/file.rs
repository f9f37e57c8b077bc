//! Opening a recording, and choosing messages of it.

use std::path::Path;
use std::time::Duration;

use rnet::NamePattern;
use rnet_record::read::{ReadError, Recording, Select};

use super::args::SelectArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_format::suggestions::did_you_mean;
use rnet_format::text::escape_controls;

/// Problems of a file that are told one by one.
const MAX_REPORTED: usize = 10;

/// Opens a file. That it has no index, and what is wrong with it, is told.
pub fn open(context: &Context, path: &Path) -> Outcome<Recording> {
    let opened = signal::with_immediate_exit(|| Recording::open(path))?;
    let recording = opened.map_err(|error| read_failure(path, &error))?;
    report_damage(context, &recording);
    Ok(recording)
}

/// Tells that a file has no index, and what is wrong with it.
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

/// Tells what is wrong with a file. What it quotes may be anything.
pub fn report_problem(context: &Context, path: &Path, problem: &ReadError) {
    let text = format!("{}: {problem}", path.display());
    context.note(&text);
}

/// The messages that the command line asks for.
pub fn select(recording: &Recording, args: &SelectArgs) -> Outcome<Select> {
    let start = args.span.start.unwrap_or_default();
    if let Some(end) = args.span.end.filter(|end| *end <= start) {
        let (start, end) = (start.as_secs_f64(), end.as_secs_f64());
        let why = format!("--end {end} must be greater than --start {start}");
        return Err(Failure::Usage(why));
    }
    let mut topics: Vec<String> = Vec::new();
    for pattern in &args.topic {
        let before = topics.len();
        let all = || recording.channels().map(|channel| channel.topic.as_str());
        topics.extend(all().filter(|topic| topic_matches(pattern, topic)).map(str::to_owned));
        if topics.len() == before {
            return Err(no_topic(recording, pattern.as_str()));
        }
    }
    let from = recording.info().times.map_or(0, |times| times.0);
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let at = |time: Option<Duration>| time.map(|time| from.saturating_add(ns(time)));
    let (start_ns, end_ns) = (at(args.span.start), at(args.span.end));
    let is_excluded =
        |topic: &str| args.exclude.iter().any(|pattern| topic_matches(pattern, topic));
    let excluded = recording.channels().filter(|channel| is_excluded(&channel.topic));
    let excluded_channels = excluded.map(|channel| channel.id).collect();
    Ok(Select { topics, start_ns, end_ns, excluded_channels, ..Select::default() })
}

/// Whether a topic of a file is like this; of other recorders some have no leading `/`.
pub fn topic_matches(pattern: &NamePattern, topic: &str) -> bool {
    match topic.starts_with('/') {
        true => pattern.matches(topic),
        false => pattern.matches(&format!("/{topic}")),
    }
}

/// The topics of a recording that are to have other names, as they stand in it: those of other recorders may be no names
/// of ours.
///
/// # Errors
/// One that the recording does not have.
pub fn remap(recording: &Recording, asked: &[(String, String)]) -> Outcome<Vec<(String, String)>> {
    let has = |topic: &str| recording.channels().any(|channel| channel.topic == topic);
    let one = |(from, to): &(String, String)| {
        let bare = from.trim_start_matches('/');
        let mut names = [from.clone(), format!("/{bare}"), bare.to_owned()].into_iter();
        let found = names.find(|name| has(name));
        Ok((found.ok_or_else(|| no_topic(recording, from))?, to.clone()))
    };
    asked.iter().map(one).collect()
}

pub fn no_topic(recording: &Recording, asked: &str) -> Failure {
    let hint = did_you_mean(asked, recording.channels().map(|channel| channel.topic.as_str()));
    let hint = hint.unwrap_or_else(|| "see rnet bag info".to_owned());
    let file = recording.path().display();
    Failure::Failed(format!("topic {asked} not found in {file}; {hint}"))
}
