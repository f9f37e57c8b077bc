//! `rnet bag ls`: each channel of a recording, by reading all messages.

use std::collections::BTreeMap;

use rnet_record::names;
use rnet_record::read::{Recording, Select};
use serde_json::{Value, json};

use super::args::FileArg;
use super::file;
use super::info::rate;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;
use crate::value::tame;

/// What was read of a channel.
#[derive(Default)]
struct Read {
    messages: u64,
    bytes: u64,
    times: Option<(u64, u64)>,
    last: Option<u32>,
    /// Numbers between those of two messages.
    missing: u64,
}

pub fn run(context: &mut Context, args: &FileArg) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let mut all: BTreeMap<u16, Read> = BTreeMap::new();
    let mut broken = recording.found().is_damaged();
    for message in recording.messages(Select::default()) {
        let message = match message {
            Ok(message) => message,
            Err(problem) => {
                broken = true;
                file::tell(context, &args.file, &problem);
                continue;
            }
        };
        let read = all.entry(message.channel.id).or_default();
        read.messages += 1;
        read.bytes += message.data().len() as u64;
        let (first, last) = read.times.get_or_insert((message.log_ns(), message.log_ns()));
        (*first, *last) = ((*first).min(message.log_ns()), (*last).max(message.log_ns()));
        if let Some(last) = read.last.replace(message.sequence()) {
            let step = message.sequence().wrapping_sub(last);
            // Numbers are the low 32 bits of what they are.
            read.missing += u64::from(step.saturating_sub(1)) * u64::from(step < 1 << 31);
        }
    }
    print(context, &recording, &all)?;
    match broken {
        false => Ok(()),
        true => Err(Failure::Failed(format!(
            "{} is damaged, and what cannot be read is not counted; see rnet bag check",
            args.file.display()
        ))),
    }
}

fn print(context: &mut Context, recording: &Recording, all: &BTreeMap<u16, Read>) -> Outcome {
    // Others number their messages in ways of their own.
    let is_ours = recording.profile() == names::PROFILE;
    let none = Read::default();
    let (mut rows, mut documents) = (Vec::new(), Vec::new());
    let mut channels: Vec<_> = recording.channels().filter(|c| !c.is_reserved()).collect();
    channels.sort_by(|a, b| a.topic.cmp(&b.topic));
    for channel in channels {
        let read = all.get(&channel.id).unwrap_or(&none);
        let seconds = read.times.map_or(0.0, |times| times.1.saturating_sub(times.0) as f64 / 1e9);
        let node = channel.metadata.get(names::NODE_KEY).map_or("", String::as_str);
        let missing = if is_ours { Value::from(read.missing) } else { Value::Null };
        rows.push(vec![
            tame(&channel.topic).into_owned(),
            tame(channel.type_name()).into_owned(),
            tame(node).into_owned(),
            read.messages.to_string(),
            rate(read.messages, seconds),
            table::bytes(read.bytes as f64),
            missing.as_u64().map_or("-".to_owned(), |n| n.to_string()),
        ]);
        documents.push(json!({
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
    if context.json() {
        return context.document(&json!({ "channels": documents }));
    }
    let titles = ["TOPIC", "TYPE", "NODE", "MESSAGES ", "HZ ", "BYTES ", "MISSING "];
    table::print(context, &titles, &rows)
}
