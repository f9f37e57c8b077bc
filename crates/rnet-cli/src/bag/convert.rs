//! `rnet bag convert`: messages as CSV or Parquet, one row each, or as JSON, one line each.

use std::io::{BufWriter, Write};
use std::path::Path;

use rnet::schema::{Columns, csv_line};
use rnet_record::names;
use rnet_record::read;
use rnet_record::ros2::{LeftOut, to_ros2};
use rnet_record::tools::NewFile;
use serde_json::{Value, json};

use super::args::ConvertArgs;
use super::cat::{Types, document};
use super::{file, parquet};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use crate::style::NOTE;
use crate::value::field::cells;
use crate::value::hex::hex;
use crate::value::{Message, tame};

/// What stands before the fields of each row.
const FIRST: [&str; 4] = ["received_ns", "sent_ns", "node", "seq"];

pub fn run(context: &mut Context, args: &ConvertArgs) -> Outcome {
    let extension = args.output.extension().and_then(|extension| extension.to_str());
    if args.ros2 || extension == Some("mcap") {
        return ros2(context, args, extension);
    }
    let form = match extension {
        Some("csv") => Form::Csv,
        Some("parquet") => Form::Parquet,
        Some("jsonl" | "ndjson") => Form::Lines,
        _ => {
            let what =
                "the name of the new file says what it is: .csv, .parquet, .jsonl or .ndjson";
            return Err(Failure::Usage(what.to_owned()));
        }
    };
    let recording = file::open(context, &args.file)?;
    let select = file::select(&recording, &args.select)?;
    let taken = recording.channels().filter(|channel| select.takes(channel));
    let topics: std::collections::BTreeSet<&str> = taken.map(|c| c.topic.as_str()).collect();
    if form != Form::Lines && topics.len() > 1 {
        return Err(Failure::Usage(format!(
            "a table is of one topic, and these are {}: choose one with --topic, or write .jsonl",
            topics.len()
        )));
    }
    let failed =
        |error| Failure::Failed(format!("cannot write {}: {error}", args.output.display()));
    let new = NewFile::create(&args.output).map_err(failed)?;
    let (mut out, mut table) = (BufWriter::new(new.file().map_err(failed)?), Table::default());
    let mut columns = parquet::Table::new(new.file().map_err(failed)?);
    let mut types = Types::default();
    let (mut rows, mut broken) = (0_u64, recording.found().is_damaged());
    for message in recording.messages(select) {
        signal::check()?;
        let message = match message {
            Ok(message) => message,
            Err(problem) => {
                broken = true;
                file::tell(context, &args.file, &problem);
                continue;
            }
        };
        let shown = types.shown(context, &message);
        match form {
            Form::Csv => writeln!(out, "{}", table.row(&message, &shown, &args.output)?),
            Form::Lines => writeln!(out, "{}", document(&message, &shown)?),
            Form::Parquet => {
                columns.row(&message, &shown, &args.output)?;
                Ok(())
            }
        }
        .map_err(failed)?;
        rows += 1;
    }
    out.flush().map_err(failed)?;
    if form == Form::Parquet {
        columns.finish(&args.output)?;
    }
    drop(out);
    new.put().map_err(failed)?;
    tell_written(context, args, rows, &[])?;
    match broken {
        false => Ok(()),
        true => Err(Failure::Failed("what could not be read is left out".to_owned())),
    }
}

/// Writes a file of ROS 2, and says what is not in it.
fn ros2(context: &mut Context, args: &ConvertArgs, extension: Option<&str>) -> Outcome {
    if !args.ros2 || extension != Some("mcap") {
        let what = "--ros2 writes NAME.mcap, and without it rnet bag filter writes MCAP";
        return Err(Failure::Usage(what.to_owned()));
    }
    let recording = file::open(context, &args.file)?;
    let select = file::select(&recording, &args.select)?;
    let mut broken = recording.found().is_damaged();
    let mut tell = |path: &Path, problem: &read::ReadError| {
        broken = true;
        file::tell(context, path, problem);
    };
    let (written, left_out) =
        to_ros2(&recording, &args.output, select, &mut tell, signal::stopped)?;
    for LeftOut { topic, type_name, messages } in &left_out {
        let why = format!("{messages} messages of {topic} are left out: ROS 2 has no {type_name}");
        context.say(format_args!("{NOTE}rnet:{NOTE:#} {}", tame(&why)));
    }
    tell_written(context, args, written.messages, &left_out)?;
    match broken {
        false => Ok(()),
        true => Err(Failure::Failed("what could not be read is left out".to_owned())),
    }
}

/// Says what there is now.
fn tell_written(
    context: &mut Context,
    args: &ConvertArgs,
    messages: u64,
    left_out: &[LeftOut],
) -> Outcome {
    if !context.json() {
        return context.line(format_args!("{}: {messages} messages", args.output.display()));
    }
    let one = |one: &LeftOut| {
        let LeftOut { topic, type_name, messages } = one;
        json!({ "topic": topic, "type": type_name, "messages": messages })
    };
    let left_out: Vec<Value> = left_out.iter().map(one).collect();
    context.document(&json!({ "file": args.output, "messages": messages, "left_out": left_out }))
}

/// What is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Csv,
    Lines,
    Parquet,
}

/// A table, whose header is that of its first row.
#[derive(Default)]
struct Table {
    header: Option<Vec<String>>,
    columns: Option<Columns>,
}

impl Table {
    /// A row, with the header before the first.
    fn row(&mut self, message: &read::Message, shown: &Message<'_>, to: &Path) -> Outcome<String> {
        let node = message.channel.metadata.get(names::NODE_KEY).cloned().unwrap_or_default();
        let first = [
            message.log_ns().to_string(),
            message.publish_ns().to_string(),
            node,
            message.sequence().to_string(),
        ];
        let (header, fields) = self.fields(message, shown)?;
        let cells = first.iter().chain(&fields).map(String::as_str);
        let row = csv_line(cells);
        match &self.header {
            Some(known) if *known == header => Ok(row),
            Some(_) => Err(Failure::Failed(format!(
                "a message of {} has other fields than those before it, and {} is one table; write .jsonl",
                message.channel.topic,
                to.display()
            ))),
            None => {
                let titles = csv_line(FIRST.into_iter().chain(header.iter().map(String::as_str)));
                self.header = Some(header);
                Ok(format!("{titles}\n{row}"))
            }
        }
    }

    fn fields(
        &mut self,
        message: &read::Message,
        shown: &Message<'_>,
    ) -> Outcome<(Vec<String>, Vec<String>)> {
        let json: Value = match shown {
            Message::Protobuf(decoded, _) => {
                if self.columns.is_none() {
                    let columns = Columns::all(decoded.schema());
                    self.columns = Some(columns.map_err(|e| Failure::Failed(e.to_string()))?);
                }
                let columns = self.columns.iter().next();
                return Ok(columns.map(|c| (c.header(), c.row(decoded))).unwrap_or_default());
            }
            Message::Raw(bytes) => match document(message, shown)?.get("data") {
                Some(data) => data.clone(),
                None => return Ok((vec!["hex".to_owned()], vec![hex(bytes)])),
            },
            Message::Plain(..) => shown.json()?,
        };
        Ok(cells("", &json).into_iter().unzip())
    }
}
