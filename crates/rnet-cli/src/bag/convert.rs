//! `rnet bag convert`: messages as CSV, one row each, or as JSON, one line each.

use std::path::Path;

use rnet_record::export::{ChannelTypes, Problem, export};
use rnet_record::read;
use rnet_record::ros2::{OmittedTopic, to_ros2};
use serde_json::json;

use super::args::ConvertArgs;
use super::file;
use crate::context::{Context, print_note};
use crate::failure::{Failure, Outcome};
use crate::signal;

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
    let mut tell = |problem: Problem<'_>| match problem {
        Problem::Unreadable(problem) => file::report_problem(context, &args.file, problem),
        Problem::Omitted(why) => context.note(&format!("{}: {why}", args.file.display())),
        Problem::MoreOmitted(count) => {
            context.eprintln(format_args!("{count} more messages were omitted"));
        }
    };
    let types = ChannelTypes::new(print_note);
    let stop = signal::stop_requested;
    let to = &args.output;
    let done = export(&recording, to, is_table, select, &args.field, types, &mut tell, stop)?;
    report_written(context, args, done.rows, &[])?;
    match done.is_complete {
        true => Ok(()),
        false => Err(Failure::Failed("unreadable data was omitted".to_owned())),
    }
}

/// Writes a ROS 2 file, and reports what it lacks.
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

/// Reports what was written.
fn report_written(
    context: &mut Context,
    args: &ConvertArgs,
    messages: u64,
    left_out: &[OmittedTopic],
) -> Outcome {
    if !context.json() {
        return context.line(format_args!("{}: {messages} messages", args.output.display()));
    }
    context.document(&json!({ "file": args.output, "messages": messages, "left_out": left_out }))
}
