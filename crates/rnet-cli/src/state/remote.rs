//! Keys of other hosts, which are written `@host/key`.

use rnet::Node;
use rnet::state::{Entry, RemoteState, Replica};
use serde_json::json;

use super::args::ValueArgs;
use super::given;
use super::set::tell;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::NodeArg;
use crate::signal;

/// The part that a command takes in the state of another host.
pub struct Remote {
    pub state: RemoteState,
    // The state is reached through this one, so it is dropped last.
    _node: Node,
}

pub fn join(context: &Context, host: &str, me: &NodeArg) -> Outcome<Remote> {
    let node = context.node("state", me)?;
    Ok(Remote { state: node.state_of(host)?, _node: node })
}

/// A key there; that there is none is an error.
pub fn entry(context: &Context, (host, key): (&str, &str), me: &NodeArg) -> Outcome<Entry> {
    let entry = join(context, host, me)?.state.entry(key)?.value;
    entry.ok_or_else(|| no_key(host, key))
}

pub fn no_key(host: &str, key: &str) -> Failure {
    Failure::Failed(format!("there is no key {key} on host {host}; see rnet state list @{host}/"))
}

pub fn list(context: &Context, (host, prefix): (&str, &str), me: &NodeArg) -> Outcome<Vec<Entry>> {
    Ok(join(context, host, me)?.state.list(prefix)?)
}

/// Deletes a key there; `false` if there was none.
pub fn delete(
    context: &Context,
    (host, key): (&str, &str),
    if_revision: Option<u64>,
    me: &NodeArg,
) -> Outcome<bool> {
    let remote = join(context, host, me)?;
    let put = remote.state.put(key);
    let put = match if_revision {
        Some(revision) => put.if_revision(revision),
        None => put,
    };
    Ok(put.delete()?)
}

pub fn set(
    context: &mut Context,
    (host, key): (&str, &str),
    args: &ValueArgs,
    if_revision: Option<u64>,
) -> Outcome {
    if args.last_will.is_some() || args.last_will_delete {
        let what = "a key of another host takes no last will: this command is not known there";
        return Err(Failure::Usage(what.to_owned()));
    }
    let remote = join(context, host, &args.me)?;
    let present = match (&args.type_name, args.change_type) {
        (None, false) => remote.state.get(key)?.value,
        _ => None,
    };
    let (value, why) = given::value(args, present.as_ref())?;
    let mut put = remote.state.put(key);
    if let Some(revision) = if_revision {
        put = put.if_revision(revision);
    }
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
    let revision = put.set(value.clone())?;
    if context.json() {
        let type_name = value.type_name();
        let document = json!({"host": host, "key": key, "type": type_name, "revision": revision});
        return context.document(&document);
    }
    tell(context, &format!("@{host}{key}"), &value, why, revision);
    Ok(())
}

/// A prefix of another host that is followed.
pub struct Followed {
    pub replica: Replica,
    _remote: Remote,
}

pub fn follow(context: &Context, (host, prefix): (&str, &str), me: &NodeArg) -> Outcome<Followed> {
    let remote = join(context, host, me)?;
    Ok(Followed { replica: remote.state.follow(prefix)?, _remote: remote })
}
