//! `rnet bag convert`: messages as CSV, one row each, or as JSON, one line each.

use std::io::{BufWriter, Write};
use std::path::Path;

use rnet_format::value::FieldPath;
use rnet_record::names;
use rnet_record::read::{self, Message};
use rnet_record::ros2::{OmittedTopic, to_ros2};
use rnet_record::tools::NewFile;
use serde_json::{Map, Value, json};

use super::args::ConvertArgs;
use super::cat::{ChannelTypes, document};
use super::csv::{Table, check_fields};
use super::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;

/// Messages that are not of their type, told one by one.
const MAX_REPORTED: u64 = 10;

pub fn run(context: &mut Context, args: &ConvertArgs) -> Outcome {
    let extension = args.output.extension().and_then(|extension| extension.to_str());
    if args.ros2 || extension == Some("mcap") {
        return ros2(context, args, extension);
    }
    let is_table = match extension {
        Some("csv") => true,
        Some("jsonl" | "ndjson") => false,
        _ => {
            let what = "the name of the new file must end in .csv, .jsonl or .ndjson";
            return Err(Failure::Usage(what.to_owned()));
        }
    };
    let recording = file::open(context, &args.file)?;
    let select = file::select(&recording, &args.select)?;
    let (mut types, to) = (ChannelTypes::default(), &args.output);
    let table = match is_table {
        true => Some(Table::new(context, &recording, &select, &args.field, &mut types, to)?),
        false if args.field.is_empty() => None,
        false => {
            check_fields(context, &recording, &select, &args.field, &mut types)?;
            None
        }
    };
    let failed = |error| Failure::Failed(format!("cannot write {}: {error}", to.display()));
    let new = NewFile::create(to).map_err(failed)?;
    let mut out = BufWriter::new(new.file().map_err(failed)?);
    if let Some(table) = &table {
        writeln!(out, "{}", table.header()).map_err(failed)?;
    }
    let (mut rows, mut malformed, mut broken) = (0_u64, 0_u64, recording.info().is_damaged());
    for message in recording.messages(select) {
        signal::check()?;
        let message = match message {
            Ok(message) => message,
            Err(problem) => {
                broken = true;
                file::report_problem(context, &args.file, &problem);
                continue;
            }
        };
        let line = match &table {
            None => {
                let whole = document(&message, &types.decode_or_raw(context, &message))?;
                select_fields(whole, &args.field).to_string()
            }
            Some(table) => match types.decode(context, &message) {
                Ok(shown) => table.row(&message, &shown)?,
                Err(why) => {
                    malformed += 1;
                    if malformed <= MAX_REPORTED {
                        report_malformed(context, &args.file, &message, &why);
                    }
                    continue;
                }
            },
        };
        writeln!(out, "{line}").map_err(failed)?;
        rows += 1;
    }
    if malformed > MAX_REPORTED {
        context.eprintln(format_args!("{} more messages were omitted", malformed - MAX_REPORTED));
    }
    out.flush().map_err(failed)?;
    drop(out);
    new.commit().map_err(failed)?;
    report_written(context, args, rows, &[])?;
    match broken || malformed > 0 {
        false => Ok(()),
        true => Err(Failure::Failed("unreadable data was omitted".to_owned())),
    }
}

fn report_malformed(context: &Context, file: &Path, message: &Message, why: &str) {
    let channel = &message.channel;
    let node = channel.metadata.get(names::NODE_KEY);
    let of = node.map(|node| format!(" of {node}")).unwrap_or_default();
    let (number, topic, file) = (message.sequence(), &channel.topic, file.display());
    let text = format!("{file}: message {number}{of} on {topic} was omitted: {why}");
    context.note(&text);
}

/// A line with the fields that are asked for, or with all.
fn select_fields(mut line: Value, fields: &[FieldPath]) -> Value {
    if !fields.is_empty() {
        let data = &line["data"];
        let value = |field: &FieldPath| field.pick(data).cloned().unwrap_or_default();
        let picked: Map<String, Value> =
            fields.iter().map(|field| (field.text().to_owned(), value(field))).collect();
        line["data"] = picked.into();
    }
    line
}

/// Writes a file of ROS 2, and says what is not in it.
fn ros2(context: &mut Context, args: &ConvertArgs, extension: Option<&str>) -> Outcome {
    if !args.ros2 || extension != Some("mcap") {
        let what = "--ros2 requires NAME.mcap as the new file; to write MCAP without it, use rnet bag filter";
        return Err(Failure::Usage(what.to_owned()));
    }
    if !args.field.is_empty() {
        let what = "--field works only with .csv and .jsonl; ROS 2 messages are written whole";
        return Err(Failure::Usage(what.to_owned()));
    }
    let recording = file::open(context, &args.file)?;
    let select = file::select(&recording, &args.select)?;
    let mut broken = recording.info().is_damaged();
    let mut tell = |path: &Path, problem: &read::ReadError| {
        broken = true;
        file::report_problem(context, path, problem);
    };
    let (written, left_out) =
        to_ros2(&recording, &args.output, select, &mut tell, signal::stop_requested)?;
    for OmittedTopic { topic, type_name, messages } in &left_out {
        let why = format!("{messages} messages of {topic} were omitted: ROS 2 has no {type_name}");
        context.note(&why);
    }
    report_written(context, args, written.messages, &left_out)?;
    match broken {
        false => Ok(()),
        true => Err(Failure::Failed("unreadable data was omitted".to_owned())),
    }
}

/// Says what there is now.
fn report_written(
    context: &mut Context,
    args: &ConvertArgs,
    messages: u64,
    left_out: &[OmittedTopic],
) -> Outcome {
    if !context.json() {
        return context.line(format_args!("{}: {messages} messages", args.output.display()));
    }
    let one = |one: &OmittedTopic| {
        let OmittedTopic { topic, type_name, messages } = one;
        json!({ "topic": topic, "type": type_name, "messages": messages })
    };
    let left_out: Vec<Value> = left_out.iter().map(one).collect();
    context.document(&json!({ "file": args.output, "messages": messages, "left_out": left_out }))
}
