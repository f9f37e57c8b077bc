//! `rnet bag recover`.

use std::path::{Path, PathBuf};

use rnet_record::read::Recording;
use rnet_record::tools;
use serde_json::json;

use super::args::RecoverArgs;
use super::file;
use crate::context::Context;
use crate::failure::Outcome;
use crate::{signal, table};

pub fn recover(context: &mut Context, args: &RecoverArgs) -> Outcome {
    let to = args.output.clone().unwrap_or_else(|| recovered_path(&args.file));
    let opened = signal::with_immediate_exit(|| Recording::open_without_index(&args.file))?;
    let recording = opened.map_err(|error| file::read_failure(&args.file, &error))?;
    let recovered = tools::recover(&recording, &to, signal::stop_requested)?;
    let found = recording.info();
    for problem in &found.problems {
        file::report_problem(context, &args.file, problem);
    }
    if found.more_problems > 0 {
        context.eprintln(format_args!("{} more problems", found.more_problems));
    }
    if context.json() {
        return context.document(&json!({
            "file": to,
            "messages": recovered.messages,
            "len_bytes": recovered.len_bytes,
        }));
    }
    let (messages, len) = (recovered.messages, table::bytes(recovered.len_bytes as f64));
    context.line(format_args!("{}: {messages} messages, {len}", to.display()))
}

/// `run.recovered.mcap` for `run.mcap`.
fn recovered_path(file: &Path) -> PathBuf {
    let extension = file.extension().unwrap_or("mcap".as_ref()).to_owned();
    let mut new = std::ffi::OsString::from("recovered.");
    new.push(extension);
    file.with_extension(new)
}
