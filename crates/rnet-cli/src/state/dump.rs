//! `rnet state dump` and `load`.

use std::path::Path;

use rnet::limits::{MAX_STATE_LEN_BYTES, MAX_TRANSACTION_KEYS};
use rnet::state::State;
use serde_json::json;

use super::args::{DumpArgs, LoadArgs};
use super::document;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use crate::session::{join, join_as_observer};
use crate::signal;
use rnet_format::state_dump::{self, DumpHeader, DumpWriter, LoadedKey};

pub fn dump(context: &mut Context, args: &DumpArgs) -> Outcome {
    let session = join_as_observer(context, "state", &args.own_node)?;
    let snapshot = session.map(|session| session.state.snapshot(&args.prefix)).transpose()?;
    let snapshot = snapshot.unwrap_or_default();
    let domain = context.domain()?.id().to_owned();
    let now = document::unix_now_ns();
    context.json_line(&DumpHeader::new(&domain, &args.prefix, snapshot.revision, now))?;
    let mut writer = DumpWriter::default();
    let mut left_out = 0;
    for entry in snapshot.entries.values() {
        match writer.lines(entry) {
            Ok(lines) => lines.iter().try_for_each(|line| context.json_line(line))?,
            Err(why) => {
                left_out += 1;
                context.eprintln(format_args!("rnet: {} was omitted: {why}", entry.key));
            }
        }
    }
    context.json_line(&writer.end())?;
    context.flush()?;
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let (keys, revision) = (writer.keys(), snapshot.revision);
    context.eprintln(format_args!("dumped {keys} key{} as of revision {revision}", s(keys)));
    match left_out {
        0 => Ok(()),
        n => Err(Failure::Failed(format!("{n} key{} could not be dumped", s(n)))),
    }
}

/// Maximum number of conflicting keys that are named.
const MAX_NAMED: usize = 5;

const DUMP_LIMIT: InputLimit = InputLimit {
    bytes: MAX_STATE_LEN_BYTES as usize,
    subject: "a dump of the state",
    name: "MAX_STATE_LEN_BYTES",
    first_line: Some(MAX_HEAD_LEN_BYTES),
};
/// Maximum length of a dump's first line in bytes: more than the longest names of a domain and a key.
const MAX_HEAD_LEN_BYTES: usize = 4096;

/// What happens to the keys of a dump.
#[derive(Default)]
struct LoadPlan {
    set: Vec<LoadedKey>,
    /// Keys that already have the value.
    unchanged: usize,
    /// Keys that had expired when they were dumped.
    expired: usize,
}

pub fn load(context: &mut Context, args: LoadArgs) -> Outcome {
    let path = args.file.as_deref().unwrap_or_else(|| Path::new("-"));
    let name = input::display_name(path);
    let wrong = |why: String| Failure::Failed(format!("cannot load {name}: {why}"));
    let text = String::from_utf8(input::read(path, &DUMP_LIMIT)?);
    let text = text.map_err(|_| wrong("the content is not valid UTF-8".to_owned()))?;
    let loaded = state_dump::read(&text).map_err(wrong)?;
    drop(text);
    let session = join(context, "state", &args.own_node)?;
    let plan = plan_load(&session.state, loaded, args.replace)?;
    let total = plan.set.len();
    for (part, keys) in plan.set.chunks(MAX_TRANSACTION_KEYS).enumerate() {
        let done = part * MAX_TRANSACTION_KEYS;
        let so_far = |failure: Failure| match done {
            0 => failure,
            _ => Failure::Failed(format!("loaded only {done} of {total} keys: {}", failure)),
        };
        if signal::stop_requested() {
            if done > 0 {
                context.eprintln(format_args!("loaded {done} of {total} keys"));
            }
            return Err(Failure::Interrupted);
        }
        set_all(&session.state, keys, args.replace).map_err(so_far)?;
    }
    let (unchanged, expired) = (plan.unchanged, plan.expired);
    if context.json() {
        let document = json!({"set": total, "unchanged": unchanged, "expired": expired});
        return context.document(&document);
    }
    let mut said = format!("loaded {total} key{}", if total == 1 { "" } else { "s" });
    if unchanged > 0 {
        said.push_str(&format!(", {unchanged} unchanged"));
    }
    if expired > 0 {
        said.push_str(&format!(", {expired} expired and skipped"));
    }
    context.eprintln(format_args!("{said}"));
    Ok(())
}

/// Compares the loaded keys with the present ones.
fn plan_load(state: &State, loaded: Vec<LoadedKey>, replace: bool) -> Outcome<LoadPlan> {
    let mut plan = LoadPlan::default();
    let mut in_the_way = Vec::new();
    for one in loaded {
        if one.ttl.is_some_and(|ttl| ttl.is_zero()) {
            plan.expired += 1;
            continue;
        }
        match state.entry(&one.key)? {
            None => plan.set.push(one),
            Some(entry)
                if state_dump::values_equal(&entry.value, &one.value)
                    && entry.durable == one.durable
                    && entry.expires_boot_ns.is_some() == one.ttl.is_some() =>
            {
                plan.unchanged += 1;
            }
            Some(_) if replace => plan.set.push(one),
            Some(_) => in_the_way.push(one.key),
        }
    }
    if in_the_way.is_empty() {
        return Ok(plan);
    }
    let (s, it) =
        if in_the_way.len() == 1 { ("", "it already has") } else { ("s", "they already have") };
    let mut names = in_the_way.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match in_the_way.len().saturating_sub(MAX_NAMED) {
        0 => {}
        more => names.push_str(&format!(" and {more} more")),
    }
    Err(Failure::Failed(format!(
        "nothing was loaded: {} key{s} would be overwritten because {it} another value: {names}; use --replace \
         to overwrite",
        in_the_way.len()
    )))
}

/// Sets these keys, all or none.
fn set_all(state: &State, keys: &[LoadedKey], replace: bool) -> Outcome {
    let mut transaction = state.transaction();
    for one in keys {
        if !replace && transaction.get(&one.key)?.is_some() {
            return Err(Failure::Failed(format!(
                "{} was set in the meantime; use --replace to overwrite",
                one.key
            )));
        }
        let mut put = transaction.put(&one.key).change_type();
        // The node of a parameter decides whether it is durable; a default never is.
        if !one.key.starts_with("/params/") {
            put = put.durable(one.durable);
        }
        if let Some(ttl) = one.ttl {
            put = put.ttl(ttl);
        }
        put.set(&one.value)?;
    }
    transaction.commit()?;
    Ok(())
}
