//! `rnet state set` and `rnet state cas`.

use std::time::Duration;

use rnet::Error;
use rnet::state::Value;
use serde_json::json;

use super::args::ValueArgs;
use super::target::{ChangeFeed, StateTarget};
use super::value_input::{self, TypeReason};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::StateSource;
use crate::signal;
use rnet_format::value::input::last_will;
use rnet_format::value::text;

/// Longest time between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of characters of the reported value.
const MAX_REPORTED_CHARS: usize = 60;

/// A write with the options of the command line: `Put` on this host, `RemotePut` on another.
macro_rules! with_options {
    ($put:expr, $args:expr, $if_revision:expr) => {{
        let mut put = $put;
        if let Some(revision) = $if_revision {
            put = put.if_revision(revision);
        }
        if let Some(ttl) = $args.ttl {
            put = put.ttl(ttl);
        }
        if let Some(durable) = $args.durable {
            put = put.durable(durable);
        }
        if $args.change_type { put.change_type() } else { put }
    }};
}

pub fn run(
    context: &mut Context,
    key: &str,
    args: &ValueArgs,
    if_revision: Option<u64>,
) -> Outcome {
    let stays = args.last_will.is_some() || args.last_will_delete;
    if stays && key.starts_with('@') {
        let what =
            "a key of another host cannot have a last will from here: run the command on that host";
        return Err(Failure::Usage(what.to_owned()));
    }
    let at = StateTarget::join(context, key, &args.own_node)?;
    // The present type matters only if the arguments neither name nor change the type.
    let present = match (&args.type_name, args.change_type) {
        (None, false) => at.entry()?.map(|entry| entry.value),
        _ => None,
    };
    let (value, why) = value_input::value(args, present.as_ref())?;
    let will = args.last_will.as_ref().map(|text| last_will(text, &value)).transpose()?;
    let then = match &will {
        Some(will) => format!("becomes {}", text::line(will, MAX_REPORTED_CHARS)),
        None => "is deleted".to_owned(),
    };
    signal::check()?;
    // Opened before the key is written, so that no later change is missed.
    let watch = if stays { at.watch()? } else { None };
    let revision = match &at.source {
        StateSource::None => return Ok(()),
        StateSource::Local(session) => {
            let put = with_options!(session.state.put(at.name), args, if_revision);
            let put = match will {
                _ if args.last_will_delete => put.last_will_delete(),
                Some(will) => put.last_will(will),
                None => put,
            };
            put.set(&value)?
        }
        StateSource::Remote(state, _) => {
            with_options!(state.put(at.name), args, if_revision).set(value.clone())?
        }
    };
    if context.json() {
        let type_name = value.type_name();
        let mut document = json!({"key": at.name, "type": type_name, "revision": revision});
        if let Some(host) = at.host {
            document["host"] = host.into();
        }
        context.document(&document)?;
    } else {
        report_value(context, key, &value, why, revision);
    }
    let Some(watch) = watch else { return Ok(()) };
    context.eprintln(format_args!("{key} {then} when this command exits; press Ctrl-C to exit"));
    context.flush()?;
    hold_last_will(context, watch, key, revision)
}

/// Reports the new value of a key.
fn report_value(context: &Context, key: &str, value: &Value, why: TypeReason, revision: u64) {
    let why = match why {
        TypeReason::Requested => "",
        TypeReason::Unchanged => ", unchanged",
        TypeReason::Inferred => ", inferred from the value",
    };
    let (shown, type_name) = (text::line(value, MAX_REPORTED_CHARS), value.type_name());
    context.eprintln(format_args!("{key} is {shown} (type {type_name}{why}), revision {revision}"));
}

/// Keeps the node alive for its last will: until a stop request, or until another node has written the key.
fn hold_last_will(context: &Context, mut watch: ChangeFeed, key: &str, revision: u64) -> Outcome {
    loop {
        match watch.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(change) if change.key == key && change.revision > revision => {
                let by = change.entry.map_or_else(
                    || "deleted".to_owned(),
                    |entry| format!("written by {}", entry.owner.node),
                );
                context
                    .eprintln(format_args!("{key} was {by}, so its last will no longer applies"));
                return Ok(());
            }
            Ok(_) | Err(Error::Timeout { .. }) => signal::check()?,
            Err(error) => return Err(error.into()),
        }
    }
}
