//! `rnet node logs`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rnet::NodeName;
use rnet_launch::RunFolder;
use serde_json::json;

use super::args::NodeLogsArgs;
use super::control::find_launched;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::launch::run_folder;
use crate::signal;

/// How often a log is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub fn run(context: &mut Context, args: &NodeLogsArgs) -> Outcome {
    let control = find_launched(context, &args.node)?;
    let folder: RunFolder = run_folder(context)?;
    let newest = folder.log(&args.node);
    let mut text = Vec::new();
    let mut current = None;
    for path in control.logs() {
        match File::open(&path) {
            Ok(mut file) => {
                read_available(&mut file, &path, &mut text)?;
                current = (path == newest).then_some(file);
            }
            // It is being rotated at this moment.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(read_failure(&path, &error)),
        }
    }
    let last = last_lines(&text, args.lines).to_vec();
    let mut rest = Vec::new();
    write_text(context, &args.node, &mut rest, &last)?;
    if !args.follow {
        return write_unterminated_line(context, &args.node, &rest);
    }
    loop {
        if let Err(failure) = signal::check() {
            write_unterminated_line(context, &args.node, &rest)?;
            return Err(failure);
        }
        text.clear();
        if let Some(file) = &mut current {
            read_available(file, &newest, &mut text)?;
        }
        if text.is_empty() {
            current = reopen_if_rotated(current, &newest);
            // A signal ends the wait, and is handled above.
            let _ = signal::sleep(POLL_INTERVAL);
            continue;
        }
        write_text(context, &args.node, &mut rest, &text)?;
    }
}

/// Writes the available text of a log; as JSON, one document per complete line. `rest` keeps the incomplete
/// line.
fn write_text(context: &mut Context, node: &NodeName, rest: &mut Vec<u8>, text: &[u8]) -> Outcome {
    if !context.json() {
        context.out().write_all(text)?;
        return context.flush();
    }
    rest.extend_from_slice(text);
    let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for line in rest[..whole].split_inclusive(|byte| *byte == b'\n') {
        write_line_json(context, node, &line[..line.len() - 1])?;
    }
    rest.drain(..whole);
    context.flush()
}

/// Writes a last line without a line end.
fn write_unterminated_line(context: &mut Context, node: &NodeName, rest: &[u8]) -> Outcome {
    match rest.is_empty() {
        true => Ok(()),
        false => write_line_json(context, node, rest),
    }
}

fn write_line_json(context: &mut Context, node: &NodeName, line: &[u8]) -> Outcome {
    context.json_line(&json!({"node": node, "line": String::from_utf8_lossy(line)}))
}

fn read_available(file: &mut File, path: &Path, text: &mut Vec<u8>) -> Outcome {
    file.read_to_end(text).map(|_| ()).map_err(|error| read_failure(path, &error))
}

fn read_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot read {}: {error}", path.display()))
}

/// The current log: the open one, unless it was rotated.
fn reopen_if_rotated(current: Option<File>, newest: &Path) -> Option<File> {
    let open = current.as_ref().and_then(|file| file.metadata().ok()).map(|meta| meta.ino());
    let named = std::fs::metadata(newest).ok().map(|meta| meta.ino());
    if open == named { current } else { File::open(newest).ok() }
}

fn last_lines(text: &[u8], lines: Option<usize>) -> &[u8] {
    let Some(lines) = lines else { return text };
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match lines.checked_sub(1).map(|before| breaks.map(|(at, _)| at).nth(before)) {
        None => &[],
        Some(None) => text,
        Some(Some(at)) => &text[at + 1..],
    }
}
