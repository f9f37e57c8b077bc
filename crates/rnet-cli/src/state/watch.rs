//! `rnet state watch`.

use std::time::{Duration, Instant};

use rnet::Error;
use rnet::state::{Change, State};
use serde_json::json;

use super::args::WatchArgs;
use super::target::StateTarget;
use super::{document, hint};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::signal;
use rnet_format::value::text;

/// Longest time between two checks for a stop request. A change ends the wait at once.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of characters of a value on a line; `--json` prints all.
const MAX_VALUE_CHARS: usize = 1000;

pub fn run(context: &mut Context, args: WatchArgs) -> Outcome {
    let at = StateTarget::join(context, &args.prefix, &args.own_node)?;
    let Some(mut feed) = at.watch()? else { return Ok(()) };
    let wanted = if args.once { Some(1) } else { args.count };
    let deadline = args.timeout.and_then(|t| Instant::now().checked_add(t));
    let mut seen = 0;
    let mut is_reported = false;
    loop {
        // Many changes are printed in large blocks, and a single one at once.
        let change = match feed.try_recv()? {
            Some(change) => change,
            None => {
                context.flush()?;
                if seen == 0 && !std::mem::replace(&mut is_reported, true) {
                    match at.local_state() {
                        Some(state) => report_if_empty(context, state, at.name)?,
                        None => {
                            context.eprintln(format_args!("no keys under {} yet; waiting", at.name))
                        }
                    }
                }
                let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
                match feed.recv_timeout(
                    left.map_or(STOP_CHECK_INTERVAL, |left| left.min(STOP_CHECK_INTERVAL)),
                ) {
                    Ok(change) => change,
                    Err(Error::Timeout { .. }) => {
                        if is_over(&args, deadline, seen, wanted)? {
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
        if Some(seen) == wanted || is_over(&args, deadline, seen, wanted)? {
            return Ok(());
        }
    }
}

/// If the name is wrong, no change may ever arrive, so this warns.
fn report_if_empty(context: &Context, state: &State, prefix: &str) -> Outcome {
    if state.keys(prefix)?.is_empty() {
        let near = hint::nearest_key(state, prefix);
        let near = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
        let under = match prefix {
            "" | "/" => String::new(),
            prefix => format!(" under {prefix:?}"),
        };
        context.eprintln(format_args!("no keys{under} yet; waiting{near}"));
    }
    Ok(())
}

/// Whether the time limit has passed, or a stop was requested.
fn is_over(
    args: &WatchArgs,
    deadline: Option<Instant>,
    seen: u64,
    wanted: Option<u64>,
) -> Outcome<bool> {
    if signal::stop_requested() {
        return Err(Failure::Interrupted);
    }
    if deadline.is_none_or(|end| Instant::now() < end) {
        return Ok(false);
    }
    if seen >= wanted.unwrap_or(1) {
        return Ok(true);
    }
    let what = match args.prefix.as_str() {
        "" | "/" => "all keys",
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
        // The reason is unknown.
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
        Some(1) => context.line(format_args!("# {key}: 1 value skipped"))?,
        Some(skipped) => context.line(format_args!("# {key}: {skipped} values skipped"))?,
        None => context.line(format_args!("# {key}: values may have been skipped"))?,
    }
    match &change.entry {
        Some(entry) => {
            context.line(format_args!("{key}: {}", text::line(&entry.value, MAX_VALUE_CHARS)))
        }
        None => context.line(format_args!("{key} {event}")),
    }
}
