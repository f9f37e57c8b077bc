//! `rnet state del`.

use serde_json::json;

use super::args::DelArgs;
use super::hint;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::join_to_look;

pub fn run(context: &mut Context, args: &DelArgs) -> Outcome {
    let session = join_to_look(context, "state", &args.me)?;
    let state = session.as_ref().map(|session| &session.state);
    let mut deleted = Vec::new();
    let mut failures: Vec<Failure> = Vec::new();
    for key in &args.keys {
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
