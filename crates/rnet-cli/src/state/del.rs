//! `rnet state del`.

use rnet::state::split_host;
use serde_json::json;

use super::args::DelArgs;
use super::{hint, remote};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::join_to_look;

pub fn run(context: &mut Context, args: &DelArgs) -> Outcome {
    let mut deleted = Vec::new();
    let mut failures: Vec<Failure> = Vec::new();
    // These first: each takes part by itself, under the name that the command has here, too.
    for key in &args.keys {
        let Some((host, there)) = split_host(key) else { continue };
        match remote::delete(context, (host, there), args.if_revision, &args.me) {
            Ok(true) => deleted.push(key.as_str()),
            Ok(false) => failures.push(remote::no_key(host, there)),
            Err(failure) => failures.push(failure),
        }
    }
    let here: Vec<&String> = args.keys.iter().filter(|key| split_host(key).is_none()).collect();
    let session = match here.is_empty() {
        true => None,
        false => join_to_look(context, "state", &args.me)?,
    };
    let state = session.as_ref().map(|session| &session.state);
    for key in here {
        let done = match (state, args.if_revision) {
            (None, _) => Ok(false),
            (Some(state), None) => state.delete(key),
            (Some(state), Some(revision)) => state.put(key).if_revision(revision).delete(),
        };
        match done {
            Ok(true) => deleted.push(key.as_str()),
            Ok(false) => failures.push(hint::no_key(state, context.domain()?.id(), key)),
            Err(error) => failures.push(error.into()),
        }
    }
    if context.json() {
        context.document(&json!({"deleted": deleted}))?;
    }
    match failures.pop() {
        None => Ok(()),
        Some(last) => {
            for failure in failures {
                context.say(format_args!("rnet: {}", failure.message()));
            }
            Err(last)
        }
    }
}
