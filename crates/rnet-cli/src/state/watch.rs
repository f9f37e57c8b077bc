//! `rnet state watch`.

use std::time::{Duration, Instant};

use rnet::Error;
use rnet::state::{Change, State, Watch, split_host};
use serde_json::json;

use super::args::WatchArgs;
use super::remote::Followed;
use super::{document, hint, remote};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::{Session, join};
use crate::signal;
use crate::value::text;

/// Longest time between two looks at whether somebody said stop. A change ends the wait at once.
const STEP: Duration = Duration::from_millis(100);
/// Characters of a value on a line; `--json` has all.
const SHOWN_CHARS: usize = 1000;

pub fn run(context: &mut Context, args: WatchArgs) -> Outcome {
    let mut source = Source::open(context, &args)?;
    let wanted = if args.once { Some(1) } else { args.count };
    let deadline = args.timeout.and_then(|t| Instant::now().checked_add(t));
    let mut seen = 0;
    let mut told = false;
    loop {
        // A flood is printed in large pieces, and what comes seldom at once.
        let change = match source.try_recv()? {
            Some(change) => change,
            None => {
                context.flush()?;
                if seen == 0 && !std::mem::replace(&mut told, true) {
                    source.tell_if_empty(context, &args.prefix)?;
                }
                let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
                match source.recv(Some(left.map_or(STEP, |left| left.min(STEP)))) {
                    Ok(change) => change,
                    Err(Error::Timeout { .. }) => {
                        if over(&args, deadline, seen, wanted)? {
                            return Ok(());
                        }
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if !(args.changes && change.initial) {
            print(context, &change)?;
            seen += 1;
        }
        if Some(seen) == wanted || over(&args, deadline, seen, wanted)? {
            return Ok(());
        }
    }
}

/// Who tells the changes.
enum Source {
    Here(Box<(Watch, Session)>),
    There(Followed),
}

impl Source {
    fn open(context: &Context, args: &WatchArgs) -> Outcome<Source> {
        if let Some(place) = split_host(&args.prefix) {
            return Ok(Source::There(remote::follow(context, place, &args.me)?));
        }
        let session = join(context, "state", &args.me)?;
        let watch = session.state.watch(&args.prefix)?;
        Ok(Source::Here(Box::new((watch, session))))
    }

    fn try_recv(&mut self) -> rnet::Result<Option<Change>> {
        match self {
            Source::Here(here) => here.0.try_recv(),
            Source::There(there) => there.replica.try_recv(),
        }
    }

    fn recv(&mut self, limit: Option<Duration>) -> rnet::Result<Change> {
        match self {
            Source::Here(here) => here.0.recv(limit),
            Source::There(there) => there.replica.recv(limit),
        }
    }

    fn tell_if_empty(&self, context: &Context, prefix: &str) -> Outcome {
        match self {
            Source::Here(here) => tell_if_empty(context, &here.1.state, prefix),
            Source::There(_) => {
                context.say(format_args!("there are no keys under {prefix} yet; waiting"));
                Ok(())
            }
        }
    }
}

/// What comes may be long in coming, if the name is wrong.
fn tell_if_empty(context: &Context, state: &State, prefix: &str) -> Outcome {
    if state.keys(prefix)?.is_empty() {
        let near = hint::near(state, prefix);
        let near = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
        let under = match prefix {
            "" | "/" => String::new(),
            prefix => format!(" under {prefix:?}"),
        };
        context.say(format_args!("there are no keys{under} yet; waiting{near}"));
    }
    Ok(())
}

/// Whether the time is over, or somebody said stop.
fn over(
    args: &WatchArgs,
    deadline: Option<Instant>,
    seen: u64,
    wanted: Option<u64>,
) -> Outcome<bool> {
    if signal::stopped() {
        return Err(Failure::Interrupted);
    }
    if deadline.is_none_or(|end| Instant::now() < end) {
        return Ok(false);
    }
    if seen >= wanted.unwrap_or(1) {
        return Ok(true);
    }
    let what = match args.prefix.as_str() {
        "" | "/" => "any key",
        prefix => prefix,
    };
    let after = args.timeout.unwrap_or_default();
    let changes = if args.changes { "changes" } else { "values and changes" };
    Err(Failure::TimedOut(format!("timed out after {after:?} with {seen} {changes} of {what}")))
}

fn print(context: &mut Context, change: &Change) -> Outcome {
    let event = match (&change.entry, change.expired, change.initial) {
        (Some(_), _, true) => "present",
        (Some(_), _, false) => "set",
        (None, Some(true), _) => "expired",
        (None, Some(false), _) => "deleted",
        // Nobody can tell why.
        (None, None, _) => "gone",
    };
    if context.json() {
        let mut line = match &change.entry {
            Some(entry) => document::of(entry),
            None => json!({"key": change.key, "revision": change.revision}),
        };
        line["event"] = event.into();
        line["skipped"] = change.skipped.into();
        return context.json_line(&line);
    }
    let key = &change.key;
    match change.skipped {
        Some(0) => {}
        Some(1) => context.line(format_args!("# {key}: 1 value left out"))?,
        Some(skipped) => context.line(format_args!("# {key}: {skipped} values left out"))?,
        None => context.line(format_args!("# {key}: values may have been left out"))?,
    }
    match &change.entry {
        Some(entry) => {
            context.line(format_args!("{key}: {}", text::line(&entry.value, SHOWN_CHARS)))
        }
        None => context.line(format_args!("{key} {event}")),
    }
}
