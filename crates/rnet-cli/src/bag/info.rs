//! `rnet bag info` prints the index; `ls` reads all messages and prints each channel.

use rnet_format::text::escape_controls;
use rnet_record::summary::{channel_summary, summary_document, summary_rows, topic_rows};
use serde_json::json;

use super::args::FileArg;
use super::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

pub fn info(context: &mut Context, args: &FileArg) -> Outcome {
    let recording = file::open(context, &args.file)?;
    if context.json() {
        return context.document(&summary_document(&recording));
    }
    for (name, value) in summary_rows(&recording) {
        let value = escape_controls(&value);
        context.line(format_args!("{name:<13}{value}"))?;
    }
    let rows = topic_rows(&recording);
    if !rows.is_empty() {
        context.line(format_args!(""))?;
    }
    table::print(context, &["TOPIC", "TYPE", "MESSAGES ", "HZ ", "NODE"], &rows)
}

pub fn ls(context: &mut Context, args: &FileArg) -> Outcome {
    let recording = file::open(context, &args.file)?;
    let mut tell = |problem: &_| file::report_problem(context, &args.file, problem);
    let summary = channel_summary(&recording, &mut tell);
    if context.json() {
        context.document(&json!({ "channels": summary.documents }))?;
    } else {
        let titles = ["TOPIC", "TYPE", "NODE", "MESSAGES ", "HZ ", "BYTES ", "MISSING "];
        table::print(context, &titles, &summary.rows)?;
    }
    match summary.is_damaged {
        false => Ok(()),
        true => Err(Failure::Failed(format!(
            "{} is damaged; unreadable messages are not counted; see rnet bag check",
            args.file.display()
        ))),
    }
}
