//! `rnet state flush`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::fd::AsFd;

use serde_json::json;

use super::args::FlushArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::join_to_look;
use crate::signal;

pub fn run(context: &mut Context, args: &FlushArgs) -> Outcome {
    let session = join_to_look(context, "state", &args.me)?;
    let state = session.as_ref().map(|session| &session.state);
    let keys = state.map(|state| state.keys(&args.prefix)).transpose()?.unwrap_or_default();
    let domain = context.domain()?.id().to_owned();
    let under = match args.prefix.as_str() {
        "" | "/" => String::new(),
        prefix => format!(" under {prefix}"),
    };
    let plural = if keys.len() == 1 { "" } else { "s" };
    let what = format!("{} key{plural}{under} in domain {domain}", keys.len());
    if !keys.is_empty() && !args.yes && !asked(&what)? {
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
            // One that somebody else deleted meanwhile is not counted.
            Ok(was_there) => deleted += usize::from(was_there),
            Err(error) => {
                context.say(format_args!("rnet: {error}"));
                failed = Some(Failure::Failed(format!("{key} was not deleted")));
            }
        }
    }
    if context.json() {
        context.document(&json!({"deleted": deleted}))?;
    } else {
        context.say(format_args!("deleted {deleted} of {what}"));
    }
    failed.map_or(Ok(()), Err)
}

/// Whether the user of this terminal agrees.
fn asked(what: &str) -> Outcome<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let what = format!("this deletes {what}; without a terminal to ask on it needs --yes");
        return Err(Failure::Usage(what));
    }
    // A closed stderr asks nobody, and gets no answer.
    let _ = write!(io::stderr(), "delete {what}? [y/N] ");
    signal::wait_readable(stdin.as_fd())?;
    signal::check()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
