//! `rnet state set` and `rnet state cas`.

use serde_json::json;

use super::args::ValueArgs;
use super::given::{self, Why};
use super::join;
use crate::context::Context;
use crate::failure::Outcome;
use crate::signal;
use crate::value::text;

/// Characters of the value that are said to have been set.
const SAID_CHARS: usize = 60;

pub fn run(
    context: &mut Context,
    key: &str,
    args: &ValueArgs,
    if_revision: Option<u64>,
) -> Outcome {
    let session = join(context, &args.node)?;
    let state = &session.state;
    // Which type the key has matters only where nothing says which one is meant.
    let present = match (&args.type_name, args.change_type) {
        (None, false) => state.get(key)?,
        _ => None,
    };
    let (value, why) = given::value(args, present.as_ref())?;
    let type_name = value.type_name().to_owned();
    let shown = text::line(&value, SAID_CHARS);
    let mut put = state.put(key);
    put = match if_revision {
        None => put,
        Some(0) => put.if_absent(),
        Some(revision) => put.if_revision(revision),
    };
    if let Some(ttl) = args.ttl {
        put = put.ttl(ttl);
    }
    if let Some(durable) = args.durable {
        put = put.durable(durable);
    }
    if args.change_type {
        put = put.change_type();
    }
    signal::check()?;
    let revision = put.set(value)?;
    if context.json() {
        return context.document(&json!({"key": key, "type": type_name, "revision": revision}));
    }
    let why = match why {
        Why::Told => "",
        Why::AsBefore => ", as it was",
        Why::Looks => ", by the look of it",
    };
    context.say(format_args!("{key} is {shown} (type {type_name}{why}), revision {revision}"));
    Ok(())
}
