//! `rnet state set` and `rnet state cas`.

use std::time::Duration;

use rnet::Error;
use rnet::state::{Value, Watch, split_host};
use serde_json::json;

use super::args::ValueArgs;
use super::given::{self, Why};
use super::remote;
use crate::context::Context;
use crate::failure::Outcome;
use crate::session::join;
use crate::signal;
use crate::value::text;

/// Longest time between two looks at whether somebody said stop.
const STEP: Duration = Duration::from_millis(100);
/// Characters of the value that are said to have been set.
const SAID_CHARS: usize = 60;

pub fn run(
    context: &mut Context,
    key: &str,
    args: &ValueArgs,
    if_revision: Option<u64>,
) -> Outcome {
    if let Some(place) = split_host(key) {
        return remote::set(context, place, args, if_revision);
    }
    let session = join(context, "state", &args.me)?;
    let state = &session.state;
    // Which type the key has matters only where nothing says which one is meant.
    let present = match (&args.type_name, args.change_type) {
        (None, false) => state.get(key)?,
        _ => None,
    };
    let (value, why) = given::value(args, present.as_ref())?;
    let last_will =
        args.last_will.as_ref().map(|text| given::last_will(text, &value)).transpose()?;
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
    let then = match &last_will {
        Some(will) => format!("becomes {}", text::line(will, SAID_CHARS)),
        None => "is deleted".to_owned(),
    };
    if args.last_will_delete {
        put = put.last_will_delete();
    } else if let Some(will) = last_will {
        put = put.last_will(will);
    }
    signal::check()?;
    let stays = args.last_will.is_some() || args.last_will_delete;
    // Opened before the key is written: nothing that happens to it afterwards is missed.
    let watch = stays.then(|| state.watch(key)).transpose()?;
    let revision = put.set(&value)?;
    if context.json() {
        let type_name = value.type_name();
        context.document(&json!({"key": key, "type": type_name, "revision": revision}))?;
    } else {
        tell(context, key, &value, why, revision);
    }
    let Some(watch) = watch else { return Ok(()) };
    context.say(format_args!("{key} {then} when this command ends; Ctrl-C ends it"));
    context.flush()?;
    live(context, watch, key, revision)
}

/// Says what a key is now.
pub fn tell(context: &Context, key: &str, value: &Value, why: Why, revision: u64) {
    let why = match why {
        Why::Told => "",
        Why::AsBefore => ", as it was",
        Why::Looks => ", inferred from the value",
    };
    let (shown, type_name) = (text::line(value, SAID_CHARS), value.type_name());
    context.say(format_args!("{key} is {shown} (type {type_name}{why}), revision {revision}"));
}

/// Lives for the sake of a last will: until it is told to end, or somebody else has written the key.
fn live(context: &Context, mut watch: Watch, key: &str, revision: u64) -> Outcome {
    loop {
        match watch.recv(Some(STEP)) {
            Ok(change) if change.key == key && change.revision > revision => {
                let by = change.entry.map_or_else(
                    || "gone".to_owned(),
                    |entry| format!("written by {}", entry.owner.node),
                );
                context.say(format_args!("{key} was {by}, so its last will is void"));
                return Ok(());
            }
            Ok(_) | Err(Error::Timeout { .. }) => signal::check()?,
            Err(error) => return Err(error.into()),
        }
    }
}
