//! The table of a node, key by key.

use std::collections::BTreeMap;
use std::path::Path;

use rnet::NodeName;
use rnet_config::{ConfigError, Entry, Result, Table};
use toml::de::DeValue;

use super::LoadedNode;
use super::names::NodeNaming;
use super::vars::Vars;
use crate::node::{Limits, LogLimits, Node, ParamValue, Process, Ready, Scheduler};
use crate::restart_policy::{RestartPolicy, RestartWhen};

const NODE_KEYS: [&str; 26] = [
    "command",
    "dir",
    "env",
    "namespace",
    "remap",
    "params",
    "after",
    "ready",
    "ready_timeout_s",
    "restart",
    "backoff_s",
    "backoff_max_s",
    "give_up_after",
    "give_up_within_s",
    "on_failure",
    "interrupt_timeout_s",
    "stop_timeout_s",
    "die_with_launcher",
    "cpus",
    "scheduler",
    "priority",
    "memory_limit_mib",
    "log_max_mib",
    "log_files",
    "host",
    "when",
];

/// Keys whose values depend on the machine.
const MACHINE_KEYS: [&str; 6] =
    ["command", "dir", "cpus", "scheduler", "memory_limit_mib", "on_failure"];

/// Longest time of a setting, in s: a day.
const MAX_S: f64 = 86_400.0;
const MAX_CPU: u64 = 1023;
const MAX_MEMORY_MIB: u64 = 1 << 30;
const MAX_LOG_FILES: u64 = 100;
const MAX_PARAM_DEPTH: usize = 8;

/// An error for an invalid name: what was expected, and what is wrong with it.
pub fn name_error(entry: &Entry<'_>, expected: &str, error: rnet::Error) -> ConfigError {
    match error {
        rnet::Error::BadName { why, .. } | rnet::Error::BadValue { why, .. } => {
            entry.wrong(format!("{expected} ({why})"))
        }
        other => entry.wrong(format!("{expected} ({other})")),
    }
}

/// Reads the table of a node, selected or not: a mistake counts on all hosts.
pub fn read(
    table: &Table<'_>,
    name: NodeName,
    names: &NodeNaming,
    vars: &Vars,
    dir: &Path,
) -> Result<LoadedNode> {
    table.check_keys(&NODE_KEYS)?;
    let read_command = |entry: &Entry<'_>| read_command(entry, vars);
    let expected = "an array, such as [\"python\", \"arm.py\"]";
    let after = table
        .optional("after", |entry| entry.each(|entry| node_name(entry, names)))?
        .unwrap_or_default();
    let none = RestartPolicy::default();
    let ms = |key: &str, default: u64| {
        let ms = table.optional(key, |entry| entry.number("seconds", 0.0..=MAX_S))?;
        Ok(ms.map_or(default, |s| (s * 1e3).round() as u64))
    };
    let (backoff_ms, backoff_max_ms) = backoff(table, ms, &none)?;
    let ready = table.optional("ready", |entry| ready(entry, &name, names))?.unwrap_or_default();
    let policy = RestartPolicy {
        when: table
            .optional("restart", |entry| entry.keyword(&RestartWhen::NAMES))?
            .unwrap_or_default(),
        backoff_ms,
        backoff_max_ms,
        give_up_after: table
            .optional("give_up_after", Entry::count)?
            .map_or(none.give_up_after, u32::from),
        give_up_within_ms: ms("give_up_within_s", none.give_up_within_ms)?,
    };
    if ready == Ready::Exited && policy.when == RestartWhen::Always {
        return Err(table
            .require("ready", "")?
            .wrong("another value, because restart = \"always\""));
    }
    let process = Process {
        command: read_command(&table.require("command", expected)?)?,
        dir: table
            .optional("dir", |entry| vars.expand(entry, entry.text("the path of a directory")?))?
            .map_or_else(|| dir.to_owned(), |below| dir.join(below)),
        env: env(table, names, vars)?,
        params: table
            .optional("params", |entry| params(&entry.table("a table")?, &name, vars))?
            .unwrap_or_default(),
        limits: limits(table)?,
        interrupt_timeout_ms: ms("interrupt_timeout_s", 5_000)?,
        stop_timeout_ms: ms("stop_timeout_s", 5_000)?,
        die_with_launcher: table.optional("die_with_launcher", Entry::boolean)?.unwrap_or_default(),
        log: LogLimits {
            max_len_bytes: table
                .optional("log_max_mib", |e| whole_in_range(e, 1..=MAX_MEMORY_MIB))?
                .unwrap_or(10)
                << 20,
            files: table
                .optional("log_files", |e| whole_in_range(e, 1..=MAX_LOG_FILES))?
                .unwrap_or(3) as u32,
        },
    };
    let place = |key| table.get(key).map(|e| (key, format!("{}: {}", e.place(), e.key())));
    let key_positions = MACHINE_KEYS.into_iter().filter_map(place).collect();
    let node = Node {
        ready,
        ready_timeout_ms: ms("ready_timeout_s", 10_000)?,
        policy,
        on_failure: table.optional("on_failure", read_command)?.unwrap_or_default(),
        key_positions,
        ..Node::new(name, process)
    };
    Ok(LoadedNode { node, place: table.place(), after })
}

/// The first and the longest wait. If the file sets only one, it adjusts the default of the other; if it
/// sets both, the first must not exceed the longest.
fn backoff(
    table: &Table<'_>,
    ms: impl Fn(&str, u64) -> Result<u64>,
    none: &RestartPolicy,
) -> Result<(u64, u64)> {
    let (first, longest) = (table.get("backoff_s"), table.get("backoff_max_s"));
    let first_ms = ms("backoff_s", none.backoff_ms)?;
    let longest_ms = ms("backoff_max_s", none.backoff_max_ms)?;
    match (first, longest) {
        _ if first_ms <= longest_ms => Ok((first_ms, longest_ms)),
        (Some(first), Some(longest)) => Err(first.wrong(format!(
            "at most backoff_max_s, {} s at {}",
            longest_ms as f64 / 1e3,
            longest.place()
        ))),
        (Some(_), None) => Ok((first_ms, first_ms)),
        (None, _) => Ok((longest_ms, longest_ms)),
    }
}

/// A program and its arguments.
fn read_command(entry: &Entry<'_>, vars: &Vars) -> Result<Vec<String>> {
    if entry.value().as_array().is_none_or(|words| words.is_empty()) {
        return Err(entry
            .wrong("an array of a program and its arguments, such as [\"python\", \"arm.py\"]"));
    }
    let mut is_program = true;
    entry.each(|word| {
        let text = vars.expand(word, text_without_nul(word)?)?;
        match std::mem::take(&mut is_program) && text.is_empty() {
            true => Err(word.wrong("a program as the first element")),
            false => Ok(text),
        }
    })
}

fn text_without_nul<'t>(entry: &Entry<'t>) -> Result<&'t str> {
    let text = entry.text("a string")?;
    if text.contains('\0') { Err(entry.wrong("a string without a zero byte")) } else { Ok(text) }
}

fn env(table: &Table<'_>, names: &NodeNaming, vars: &Vars) -> Result<BTreeMap<String, String>> {
    let variable = |(name, entry): (&str, Entry<'_>)| {
        if let Some((key, _, _)) = names.env().find(|(_, variable, _)| *variable == name) {
            return Err(entry.wrong(format!("no {name}, because {key} sets it")));
        }
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(entry.wrong("a name without '='"));
        }
        Ok((name.to_owned(), vars.expand(&entry, text_without_nul(&entry)?)?))
    };
    let given = table.optional("env", |entry| {
        entry.table("a table")?.entries().into_iter().map(variable).collect::<Result<_>>()
    })?;
    let mut env: BTreeMap<String, String> = given.unwrap_or_default();
    env.extend(names.env().map(|(_, variable, text)| (variable.to_owned(), text.to_owned())));
    Ok(env)
}

fn params(table: &Table<'_>, node: &NodeName, vars: &Vars) -> Result<BTreeMap<String, ParamValue>> {
    let param = |(name, entry): (&str, Entry<'_>)| {
        rnet::param::key(node, name)
            .map_err(|error| name_error(&entry, "the name of a parameter", error))?;
        Ok((name.to_owned(), param(&entry, vars, 0)?))
    };
    table.entries().into_iter().map(param).collect()
}

fn param(entry: &Entry<'_>, vars: &Vars, depth: usize) -> Result<ParamValue> {
    let expected = "true, false, a number, a string or an array of these";
    let wrong = || entry.wrong(expected);
    Ok(match entry.value() {
        DeValue::Boolean(truth) => ParamValue::Bool(*truth),
        DeValue::Integer(number) => ParamValue::Int(
            i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| wrong())?,
        ),
        DeValue::Float(number) => ParamValue::Float(
            number
                .as_str()
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .ok_or_else(wrong)?,
        ),
        DeValue::String(text) => ParamValue::Text(vars.expand(entry, text)?),
        DeValue::Array(_) if depth < MAX_PARAM_DEPTH => {
            ParamValue::List(entry.each(|entry| param(entry, vars, depth + 1))?)
        }
        _ => return Err(wrong()),
    })
}

/// A dependency of a node, and its location.
fn node_name(entry: &Entry<'_>, names: &NodeNaming) -> Result<(NodeName, String)> {
    let name = names.node(entry.text("the name of a node")?);
    let name = name.map_err(|error| name_error(entry, "the name of a node", error))?;
    Ok((name, format!("{}: {}", entry.place(), entry.key())))
}

fn ready(entry: &Entry<'_>, node: &NodeName, names: &NodeNaming) -> Result<Ready> {
    let expected = "\"started\", \"notified\", \"exited\", or an array of topics that it publishes";
    match entry.value() {
        DeValue::Array(topics) if !topics.is_empty() => {
            Ok(Ready::Publishes(entry.each(|topic| {
                let name = names.topic(node, topic.text("the name of a topic")?);
                name.map(|name| name.to_string())
                    .map_err(|error| name_error(topic, "a topic", error))
            })?))
        }
        DeValue::String(text) => match text.as_ref() {
            "started" => Ok(Ready::Started),
            "notified" => Ok(Ready::Notified),
            "exited" => Ok(Ready::Exited),
            _ => Err(entry.wrong(expected)),
        },
        _ => Err(entry.wrong(expected)),
    }
}

fn limits(table: &Table<'_>) -> Result<Limits> {
    let cpu = |entry: &Entry<'_>| whole_in_range(entry, 0..=MAX_CPU).map(|cpu| cpu as usize);
    let scheduler: Option<Scheduler> =
        table.optional("scheduler", |entry| entry.keyword(&Scheduler::NAMES))?;
    let is_real_time = scheduler.is_some_and(Scheduler::is_real_time);
    let priority = table.get("priority");
    let priority = match (&priority, is_real_time) {
        (Some(priority), true) => whole_in_range(priority, 1..=99)?,
        (Some(priority), false) => {
            return Err(priority.wrong("scheduler = \"fifo\" or \"rr\" together with priority"));
        }
        (None, true) => table
            .require("priority", "a whole number, 1 to 99, for this scheduler")?
            .unsigned()
            .unwrap_or(1),
        (None, false) => 0,
    };
    Ok(Limits {
        cpus: table.optional("cpus", |entry| entry.each(cpu))?.unwrap_or_default(),
        scheduler,
        priority: priority as i32,
        memory_limit_mib: table
            .optional("memory_limit_mib", |entry| whole_in_range(entry, 1..=MAX_MEMORY_MIB))?,
    })
}

/// A whole number in this range.
pub fn whole_in_range(entry: &Entry<'_>, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
    entry
        .unsigned()
        .filter(|number| range.contains(number))
        .ok_or_else(|| entry.wrong(format!("a whole number, {} to {}", range.start(), range.end())))
}
