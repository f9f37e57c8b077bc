//! `rnet state add`, `del` and `flush`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::fd::AsFd;

use rnet::state::{Value, split_host};
use serde_json::json;

use super::args::{AddArgs, DelArgs, FlushArgs};
use super::target::StateTarget;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::{join, join_as_observer};
use crate::signal;
use rnet_format::value::{text, to_json};

pub fn add(context: &mut Context, args: &AddArgs) -> Outcome {
    let session = join(context, "state", &args.own_node)?;
    let state = &session.state;
    let whole: Option<i64> = args.by.parse().ok();
    let is_float = matches!(state.get(&args.key)?, Some(Value::Float(_)));
    let sum = match whole {
        Some(by) if !is_float => Value::Int(state.add(&args.key, by)?),
        _ => {
            let by: f64 = args
                .by
                .parse()
                .map_err(|_| Failure::Usage(format!("{:?} is not a number", args.by)))?;
            Value::Float(state.add_float(&args.key, by)?)
        }
    };
    if context.json() {
        let (type_name, shown) = (sum.type_name(), to_json(&sum));
        return context.document(&json!({"key": args.key, "type": type_name, "value": shown}));
    }
    context.line(format_args!("{}", text::line(&sum, usize::MAX)))
}

pub fn del(context: &mut Context, args: &DelArgs) -> Outcome {
    let mut deleted = Vec::new();
    let mut failures: Vec<Failure> = Vec::new();
    // Keys of other hosts first: for each of them this command opens its own node, always with the same name.
    let (there, here): (Vec<&String>, Vec<&String>) =
        args.keys.iter().partition(|key| split_host(key).is_some());
    let mut last: Option<StateTarget<'_>> = None;
    for key in there.into_iter().chain(here) {
        let at = match last.take().filter(|at| at.host.is_none()) {
            Some(at) => Ok(StateTarget { name: key, ..at }),
            None => StateTarget::observe(context, key, &args.own_node),
        };
        let done = at.and_then(|at| {
            match at.delete(args.if_revision)? {
                true => deleted.push(key.as_str()),
                false => failures.push(at.no_key(context)?),
            }
            last = Some(at);
            Ok(())
        });
        failures.extend(done.err());
    }
    if context.json() {
        context.document(&json!({"deleted": deleted}))?;
    }
    match failures.pop() {
        None => Ok(()),
        Some(last) => {
            for failure in failures {
                context.eprintln(format_args!("rnet: {}", failure));
            }
            Err(last)
        }
    }
}

pub fn flush(context: &mut Context, args: &FlushArgs) -> Outcome {
    let session = join_as_observer(context, "state", &args.own_node)?;
    let state = session.as_ref().map(|session| &session.state);
    let keys = state.map(|state| state.keys(&args.prefix)).transpose()?.unwrap_or_default();
    let domain = context.domain()?.id().to_owned();
    let under = match args.prefix.as_str() {
        "" | "/" => String::new(),
        prefix => format!(" under {prefix}"),
    };
    let plural = if keys.len() == 1 { "" } else { "s" };
    let what = format!("{} key{plural}{under} in domain {domain}", keys.len());
    if !keys.is_empty() && !args.yes && !confirm(&what)? {
        return Err(Failure::Failed("nothing was deleted".to_owned()));
    }
    let mut deleted = 0;
    let mut failed = None;
    for key in &keys {
        if let Err(stopped) = signal::check() {
            failed = Some(stopped);
            break;
        }
        match state.map_or(Ok(false), |state| state.delete(key)) {
            // A key that another process deleted meanwhile is not counted.
            Ok(was_there) => deleted += usize::from(was_there),
            Err(error) => {
                context.eprintln(format_args!("rnet: {error}"));
                failed = Some(Failure::Failed(format!("{key} was not deleted")));
            }
        }
    }
    if context.json() {
        context.document(&json!({"deleted": deleted}))?;
    } else {
        context.eprintln(format_args!("deleted {deleted} of {what}"));
    }
    failed.map_or(Ok(()), Err)
}

/// Asks the user of this terminal for confirmation.
fn confirm(what: &str) -> Outcome<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let what =
            format!("this deletes {what}; without a terminal for confirmation, --yes is required");
        return Err(Failure::Usage(what));
    }
    // With a closed stderr, nothing is asked and the answer is no.
    let _ = write!(io::stderr(), "delete {what}? [y/N] ");
    signal::wait_readable(stdin.as_fd())?;
    signal::check()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
