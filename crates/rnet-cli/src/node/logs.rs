//! `rnet node logs`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rnet_launch::RunFolder;

use super::control::launched;
use crate::args::NodeLogsArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::launch::folder;
use crate::signal;

/// How often a log is looked at for more.
const LOOK: Duration = Duration::from_millis(100);

pub fn run(context: &mut Context, args: &NodeLogsArgs) -> Outcome {
    let control = launched(context, &args.node)?;
    let folder: RunFolder = folder(context)?;
    let newest = folder.log(&args.node);
    let mut text = Vec::new();
    let mut current = None;
    for path in control.logs() {
        match File::open(&path) {
            Ok(mut file) => {
                read(&mut file, &path, &mut text)?;
                current = (path == newest).then_some(file);
            }
            // It was moved on in this moment.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, &error)),
        }
    }
    context.out().write_all(last_lines(&text, args.lines))?;
    context.flush()?;
    if !args.follow {
        return Ok(());
    }
    loop {
        signal::check()?;
        text.clear();
        if let Some(file) = &mut current {
            read(file, &newest, &mut text)?;
        }
        if text.is_empty() {
            current = moved_on(current, &newest);
            wait()?;
            continue;
        }
        context.out().write_all(&text)?;
        context.flush()?;
    }
}

fn read(file: &mut File, path: &Path, text: &mut Vec<u8>) -> Outcome {
    file.read_to_end(text).map(|_| ()).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("{} cannot be read: {error}", path.display()))
}

/// The log that is written now: the one that is open, unless it has been moved away.
fn moved_on(current: Option<File>, newest: &Path) -> Option<File> {
    let open = current.as_ref().and_then(|file| file.metadata().ok()).map(|meta| meta.ino());
    let named = std::fs::metadata(newest).ok().map(|meta| meta.ino());
    if open == named { current } else { File::open(newest).ok() }
}

/// A moment, or until a signal comes.
fn wait() -> Outcome {
    let nothing = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC);
    let nothing = nothing.map_err(std::io::Error::from)?;
    Ok(signal::wait_readable_for(nothing.as_fd(), Some(LOOK), false)?)
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
