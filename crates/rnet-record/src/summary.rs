//! What a recording holds: by its index, and by channel after reading all messages.

use std::collections::{BTreeMap, BTreeSet};

use rnet::msgs::timestamp_from_ns;
use rnet_format::text::escape_controls;
use rnet_format::units;
use serde_json::{Value, json};

use crate::names;
use crate::read::{ChannelTimes, ReadError, Recording, Select};

/// Triggers of a black box that are shown.
const MAX_TRIGGERS: usize = 10;

/// What all channels of a topic are together.
#[derive(Default)]
struct Topic<'a> {
    types: BTreeSet<&'a str>,
    encodings: BTreeSet<&'a str>,
    nodes: BTreeSet<&'a str>,
    messages: u64,
    /// The first and last log time, in ns.
    times: Option<(u64, u64)>,
}

/// Cells of the topics: name, types, messages, rate, nodes.
pub fn topic_rows(recording: &Recording) -> Vec<Vec<String>> {
    let row = |(topic, of): (&&str, &Topic<'_>)| {
        let join = |names: &BTreeSet<&str>| {
            escape_controls(&names.iter().copied().collect::<Vec<_>>().join(" ")).into_owned()
        };
        vec![
            escape_controls(topic).into_owned(),
            join(&of.types),
            of.messages.to_string(),
            rate(of.messages, of.times),
            join(&of.nodes),
        ]
    };
    topics(recording, &recording.channel_times()).iter().map(row).collect()
}

fn topics<'a>(recording: &'a Recording, times: &ChannelTimes) -> BTreeMap<&'a str, Topic<'a>> {
    let mut topics: BTreeMap<&str, Topic<'_>> = BTreeMap::new();
    for channel in recording.channels().filter(|channel| !channel.is_reserved()) {
        let topic = topics.entry(&channel.topic).or_default();
        topic.types.insert(channel.type_name());
        topic.encodings.insert(&channel.message_encoding);
        topic.nodes.extend(channel.metadata.get(names::NODE_KEY).map(String::as_str));
        topic.messages += recording.info().counts.get(&channel.id).copied().unwrap_or(0);
        for at_ns in times.get(&channel.id).iter().flat_map(|(first, last)| [first, last]) {
            add_time(&mut topic.times, *at_ns);
        }
    }
    topics
}

/// Messages of publishers, as the recorder counts them, and those that the recorder wrote to itself, by topic.
fn message_counts(recording: &Recording) -> (u64, BTreeMap<&str, u64>) {
    let (mut sent, mut own) = (0, BTreeMap::new());
    for channel in recording.channels() {
        let count = recording.info().counts.get(&channel.id).copied().unwrap_or(0);
        match channel.is_reserved() {
            false => sent += count,
            true if count > 0 => *own.entry(channel.topic.as_str()).or_default() += count,
            true => {}
        }
    }
    (sent, own)
}

/// From the first message to the last.
fn duration_s(recording: &Recording) -> f64 {
    let times = recording.info().times.unwrap_or_default();
    times.1.saturating_sub(times.0) as f64 / 1e9
}

/// Adds the time of a message to the first and the last one.
fn add_time(times: &mut Option<(u64, u64)>, at_ns: u64) {
    let (first, last) = times.get_or_insert((at_ns, at_ns));
    (*first, *last) = ((*first).min(at_ns), (*last).max(at_ns));
}

/// The rate of a topic or channel: messages per second between its first and its last message.
fn rate(messages: u64, times: Option<(u64, u64)>) -> String {
    let seconds = times.map_or(0.0, |times| times.1.saturating_sub(times.0) as f64 / 1e9);
    match seconds > 0.0 && messages > 1 {
        true => format!("{:.1}", (messages - 1) as f64 / seconds),
        false => "-".to_owned(),
    }
}

fn time(ns: u64) -> String {
    i64::try_from(ns).map_or_else(|_| format!("{ns} ns"), |ns| timestamp_from_ns(ns).to_string())
}

/// What is known of the whole recording: names and values.
pub fn summary_rows(recording: &Recording) -> Vec<(&'static str, String)> {
    let found = recording.info();
    let mut facts = vec![
        ("File:", recording.path().display().to_string()),
        ("Size:", units::bytes(recording.len_bytes() as f64)),
    ];
    let profile = match recording.profile() {
        "" => "none".to_owned(),
        profile => profile.to_owned(),
    };
    facts.push(("Profile:", format!("{profile}, written by {}", recording.library())));
    if let Some(map) = recording.metadata(names::RECORDING) {
        let of = |key: &str| map.get(key).map_or("?", String::as_str);
        let part = format!("host {}, domain {}, part {}", of("host"), of("domain"), of("part"));
        facts.push(("Recorded:", part));
    }
    if let Some(map) = recording.metadata(names::RECOVERED) {
        let from = map.get("file").map_or("?", String::as_str);
        facts.push(("Recovered:", format!("from {from}")));
    }
    facts.extend(trigger_rows(recording));
    if let Some((start, end)) = found.times {
        facts.push(("Start:", time(start)));
        facts.push(("End:", time(end)));
        facts.push(("Duration:", format!("{:.3} s", duration_s(recording))));
    }
    let (sent, own) = message_counts(recording);
    facts.push(("Messages:", sent.to_string()));
    let of = |(topic, count): (&&str, &u64)| {
        let what = topic.strip_prefix(names::RESERVED_TOPICS).unwrap_or(topic);
        format!("{count} {what}")
    };
    let own: Vec<String> = own.iter().map(of).collect();
    if !own.is_empty() {
        facts.push(("Recorder's:", own.join(", ")));
    }
    let chunks = found.compression.iter().map(|(name, (before, after))| {
        let name = if name.is_empty() { "not compressed" } else { name };
        let percent = 100.0 * *after as f64 / (*before).max(1) as f64;
        format!(
            "{name}: {} to {} ({percent:.0} %)",
            units::bytes(*before as f64),
            units::bytes(*after as f64)
        )
    });
    let chunks: Vec<String> = chunks.collect();
    if found.chunks > 0 {
        facts.push(("Chunks:", format!("{}, {}", found.chunks, chunks.join(", "))));
    }
    if !found.attachments.is_empty() {
        facts.push(("Attachments:", found.attachments.len().to_string()));
    }
    match counts(recording, names::LOSSES) {
        Some(losses) => {
            let unheard = counts(recording, names::UNHEARD);
            let of = match unheard.as_ref().and_then(|map| map.get("followed")) {
                Some(0) => " known: no publisher was followed".to_owned(),
                Some(1) => " from the publisher followed".to_owned(),
                Some(followed) => format!(" from the {followed} publishers followed"),
                // Of a recorder that did not say it.
                None => String::new(),
            };
            let total = losses.get("total").map_or("?".to_owned(), u64::to_string);
            facts.push(("Losses:", format!("{total}{of}")));
            for (what, count) in losses.iter().filter(|(what, _)| **what != "total") {
                facts.push(("", format!("{count} {what}")));
            }
            let is_one = |(what, count): &(&&str, &u64)| {
                !["total", "followed"].contains(*what) && **count != 0
            };
            for (at, (what, count)) in unheard.iter().flatten().filter(is_one).enumerate() {
                let name = if at == 0 { "Not heard:" } else { "" };
                facts.push((name, format!("{count} of the publishers {what}")));
            }
        }
        None if recording.profile() == names::PROFILE => {
            facts.push(("Losses:", "unknown: the recording was not finished".to_owned()));
        }
        None => {}
    }
    facts
}

/// What made a black box write the file, and what the file lacks of the time that it is to cover.
fn trigger_rows(recording: &Recording) -> Vec<(&'static str, String)> {
    let records = recording.info().metadata.iter().filter(|one| one.name == names::TRIGGER);
    let fired: Vec<_> = records.map(|one| &one.metadata).collect();
    let mut facts = Vec::new();
    for (number, one) in fired.iter().take(MAX_TRIGGERS).enumerate() {
        let of = |key: &str| one.get(key).map_or("?", String::as_str);
        let at = of("at_ns").parse().map_or_else(|_| "?".to_owned(), time);
        let name = if number == 0 { "Triggers:" } else { "" };
        facts.push((name, format!("{}: {}, at {at}", of("name"), of("why"))));
    }
    if fired.len() > MAX_TRIGGERS {
        facts.push(("", format!("and {} more", fired.len() - MAX_TRIGGERS)));
    }
    let mut lacks: Vec<&String> = fired.iter().filter_map(|one| one.get("incomplete")).collect();
    // Each trigger of a file says the same; a file that was merged of several has several.
    lacks.dedup();
    facts.extend(lacks.into_iter().map(|why| ("Incomplete:", why.clone())));
    facts
}

/// What the records of this name count, all of them together: a file that was made of several has several.
fn counts<'a>(recording: &'a Recording, name: &str) -> Option<BTreeMap<&'a str, u64>> {
    let records = recording.info().metadata.iter().filter(|record| record.name == name);
    let mut sums = None;
    for record in records {
        let sums: &mut BTreeMap<&str, u64> = sums.get_or_insert_default();
        for (what, count) in &record.metadata {
            let Ok(count) = count.parse::<u64>() else { continue };
            let sum = sums.entry(what).or_default();
            // The number since the recording began grows from part to part.
            *sum = match what.as_str() {
                "followed" => count.max(*sum),
                _ => sum.saturating_add(count),
            };
        }
    }
    sums
}

/// The summary as JSON.
pub fn summary_document(recording: &Recording) -> Value {
    let found = recording.info();
    let seconds = duration_s(recording);
    let (sent, own) = message_counts(recording);
    let topics: Vec<Value> = topics(recording, &ChannelTimes::new())
        .iter()
        .map(|(topic, of)| {
            json!({
                "topic": topic,
                "types": of.types,
                "encodings": of.encodings,
                "nodes": of.nodes,
                "messages": of.messages,
            })
        })
        .collect();
    let metadata: Vec<Value> =
        found.metadata.iter().map(|m| json!({"name": m.name, "values": m.metadata})).collect();
    json!({
        "file": recording.path(),
        "len_bytes": recording.len_bytes(),
        "profile": recording.profile(),
        "library": recording.library(),
        "by_index": found.scan_reason.is_none(),
        "start_ns": found.times.map(|times| times.0),
        "end_ns": found.times.map(|times| times.1),
        "duration_s": seconds,
        "messages": sent,
        "recorder_messages": own,
        "chunks": found.chunks,
        "attachments": found.attachments.len(),
        "topics": topics,
        "metadata": metadata,
        "problems": found.problems.iter().map(|p| json!({"offset": p.offset, "what": p.problem.to_string()})).collect::<Vec<_>>(),
        "more_problems": found.more_problems,
    })
}

/// What was read of a channel.
#[derive(Default)]
struct ChannelStats {
    messages: u64,
    bytes: u64,
    times: Option<(u64, u64)>,
    last: Option<u32>,
    /// Numbers between those of two messages.
    missing: u64,
}

/// What was read of each channel, in cells and as JSON.
#[derive(Default)]
pub struct ChannelSummary {
    /// Cells by channel: topic, type, node, messages, rate, bytes, missing messages.
    pub rows: Vec<Vec<String>>,
    /// The same as JSON.
    pub documents: Vec<Value>,
    /// Whether something could not be read.
    pub is_damaged: bool,
}

/// Reads all messages of a recording, and counts them by channel.
pub fn channel_summary(
    recording: &Recording,
    on_problem: &mut dyn FnMut(&ReadError),
) -> ChannelSummary {
    let mut all: BTreeMap<u16, ChannelStats> = BTreeMap::new();
    let mut summary =
        ChannelSummary { is_damaged: recording.info().is_damaged(), ..ChannelSummary::default() };
    for message in recording.messages(Select::default()) {
        let message = match message {
            Ok(message) => message,
            Err(problem) => {
                summary.is_damaged = true;
                on_problem(&problem);
                continue;
            }
        };
        let read = all.entry(message.channel.id).or_default();
        read.messages += 1;
        read.bytes += message.data().len() as u64;
        add_time(&mut read.times, message.log_ns());
        if let Some(last) = read.last.replace(message.sequence()) {
            let step = message.sequence().wrapping_sub(last);
            // Numbers are the low 32 bits of what they are.
            read.missing += u64::from(step.saturating_sub(1)) * u64::from(step < 1 << 31);
        }
    }
    // Others number their messages in ways of their own.
    let is_ours = recording.profile() == names::PROFILE;
    let none = ChannelStats::default();
    let mut channels: Vec<_> = recording.channels().filter(|c| !c.is_reserved()).collect();
    channels.sort_by(|a, b| a.topic.cmp(&b.topic));
    for channel in channels {
        let read = all.get(&channel.id).unwrap_or(&none);
        let node = channel.metadata.get(names::NODE_KEY).map_or("", String::as_str);
        let missing = if is_ours { Value::from(read.missing) } else { Value::Null };
        summary.rows.push(vec![
            escape_controls(&channel.topic).into_owned(),
            escape_controls(channel.type_name()).into_owned(),
            escape_controls(node).into_owned(),
            read.messages.to_string(),
            rate(read.messages, read.times),
            units::bytes(read.bytes as f64),
            missing.as_u64().map_or("-".to_owned(), |n| n.to_string()),
        ]);
        summary.documents.push(json!({
            "channel": channel.id,
            "topic": channel.topic,
            "type": channel.type_name(),
            "encoding": channel.message_encoding,
            "node": node,
            "messages": read.messages,
            "bytes": read.bytes,
            "start_ns": read.times.map(|times| times.0),
            "end_ns": read.times.map(|times| times.1),
            "missing": missing,
        }));
    }
    summary
}
