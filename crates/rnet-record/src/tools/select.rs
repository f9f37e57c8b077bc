//! Choosing messages of a recording by the names of topics and by time.

use std::time::Duration;

use rnet::NamePattern;
use rnet_format::suggestions::did_you_mean;
use rnet_format::{Failure, Outcome};

use crate::read::{Recording, Select};

/// Messages of the topics that match one of `include`, or of all, and none of `exclude`, from `start` to `end` of the
/// recording.
///
/// # Errors
/// `end` is not after `start`, or a pattern of `include` matches no topic.
pub fn select(
    recording: &Recording,
    include: &[NamePattern],
    exclude: &[NamePattern],
    (from_start, to_end): (Option<Duration>, Option<Duration>),
) -> Outcome<Select> {
    let start = from_start.unwrap_or_default();
    if let Some(end) = to_end.filter(|end| *end <= start) {
        let (start, end) = (start.as_secs_f64(), end.as_secs_f64());
        let why = format!("--end {end} must be greater than --start {start}");
        return Err(Failure::Usage(why));
    }
    let mut topics: Vec<String> = Vec::new();
    for pattern in include {
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
    let (start_ns, end_ns) = (at(from_start), at(to_end));
    let is_excluded = |topic: &str| exclude.iter().any(|pattern| topic_matches(pattern, topic));
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

/// The error of a topic that the recording does not have.
pub fn no_topic(recording: &Recording, asked: &str) -> Failure {
    let hint = did_you_mean(asked, recording.channels().map(|channel| channel.topic.as_str()));
    let hint = hint.unwrap_or_else(|| "see rnet bag info".to_owned());
    let file = recording.path().display();
    Failure::Failed(format!("topic {asked} not found in {file}; {hint}"))
}
