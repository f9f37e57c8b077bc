//! `rnet bag recover`.

use std::path::{Path, PathBuf};

use rnet_record::read::Recording;
use rnet_record::tools::recover;
use serde_json::json;

use super::args::RecoverArgs;
use super::file;
use crate::context::Context;
use crate::failure::Outcome;
use crate::signal;
use crate::table;

pub fn run(context: &mut Context, args: &RecoverArgs) -> Outcome {
    let to = args.output.clone().unwrap_or_else(|| beside(&args.file));
    let opened = signal::reading(|| Recording::open_without_index(&args.file))?;
    let recording = opened.map_err(|error| file::unreadable(&args.file, &error))?;
    let recovered = recover(&recording, &to, signal::stopped)?;
    let found = recording.found();
    for problem in &found.problems {
        file::tell(context, &args.file, problem);
    }
    if found.more_problems > 0 {
        context.say(format_args!("{} more problems", found.more_problems));
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
fn beside(file: &Path) -> PathBuf {
    let extension = file.extension().unwrap_or("mcap".as_ref()).to_owned();
    let mut new = std::ffi::OsString::from("recovered.");
    new.push(extension);
    file.with_extension(new)
}
