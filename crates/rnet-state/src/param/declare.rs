//! Declares a parameter in the state, and determines its value.

use rnet_core::{Error, MAX_UPDATE_TRIES, Result};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::state::{Guard, Record, Region, Write};

use super::description::{ParamDescription, format_value};
use super::param_keys::ParamKeys;
use super::records;
use super::refused_value::RefusedValue;
use super::rules::{is_present, may_be_set};
use crate::Value;

/// Writes a description, and the value if it must change. Returns the rejected value, if any, and the
/// revision of the resulting state.
///
/// A default is written together with the description in one commit, and therefore has the same revision:
/// this identifies it as a default later, when the program may have another one. Defaults and descriptions
/// are not stored on disk; a value that survives a power cut was set explicitly.
pub(crate) fn declare(
    region: &Region,
    own: &OwnNode,
    keys: &ParamKeys,
    wanted: &ParamDescription,
) -> Result<Declaration> {
    let bad = |why: String| Error::bad_value(keys.display_name(), why);
    wanted.validate().map_err(bad)?;
    let (mut value, mut about) = (Record::default(), Record::default());
    let mut conflict = None;
    for _ in 0..MAX_UPDATE_TRIES {
        let value = region.get(&keys.key, &mut value)?.then_some(&value);
        let about = region.get(&keys.description_key, &mut about)?.then_some(&about);
        let plan = plan(own, wanted, value, about).map_err(bad)?;
        let mut done = commit_plan(&commit, region, keys, &plan, value, about);
        if let Err(error @ (Error::Storage { .. } | Error::Timeout { .. })) = &done
            && let Some(before) = value
        {
            // A failing disk must not prevent a robot's start: the declaration is in memory, and the disk is
            // updated when it is writable.
            eprintln!("rnet: {} is declared in memory only: {error}", keys.display_name());
            // A default is never on disk, and a valid value stays where it is stored.
            let durable = plan.refused.is_none() && before.durable;
            let held = plan.value.clone().map(|(value, _)| (value, durable));
            let plan = Plan {
                description: plan.description.clone(),
                value: held,
                refused: plan.refused.clone(),
            };
            done = commit_plan(&Region::commit_in_memory, region, keys, &plan, Some(before), about);
        }
        match done {
            Err(error @ Error::Conflict { .. }) => conflict = Some(error),
            Err(error) => return Err(error),
            Ok(revision) => return Ok(Declaration { refused: plan.refused, revision }),
        }
    }
    conflict.map_or_else(|| Err(bad("it keeps changing: try again".to_owned())), Err)
}

/// Result of a declaration.
pub(crate) struct Declaration {
    /// The stored value that was invalid.
    pub(crate) refused: Option<RefusedValue>,
    /// The revision at which the parameter was declared; later writes have a higher one.
    pub(crate) revision: u64,
}

/// The planned writes.
struct Plan {
    /// The description; `None`: description and value are already stored.
    description: Option<String>,
    /// The value, and whether it is durable; `None`: the current one is kept.
    value: Option<(Value, bool)>,
    refused: Option<RefusedValue>,
}

/// Determines the writes from the stored records. Errors complete the phrase "parameter /x of /n: ".
fn plan(
    own: &OwnNode,
    wanted: &ParamDescription,
    value: Option<&Record>,
    about: Option<&Record>,
) -> Result<Plan, String> {
    // An unreadable description is ignored.
    let old = about.and_then(|record| records::description(record).ok());
    if let Some(old) = &old
        && (&old.node, &old.name) != (&wanted.node, &wanted.name)
        && is_present(own, &old.node)
    {
        return Err(format!(
            "its state key is the key of parameter {} of {}; rename one of them",
            old.name, old.node
        ));
    }
    let is_default = is_default(old.as_ref(), value.map(|r| r.revision), about.map(|r| r.revision));
    let mut next = wanted.clone();
    let mut refused = None;
    let write = match (value, &wanted.default) {
        (None, None) => {
            return Err("it has no default and no value: set it with rnet param set".to_owned());
        }
        // It was never set: it gets the program's default.
        (None, Some(default)) => Some(default),
        (Some(_), Some(default)) if is_default => {
            next.refused = old.as_ref().and_then(|old| old.refused.clone());
            Some(default)
        }
        (Some(record), default) => match check_stored_value(wanted, record) {
            Ok(value) => return Ok(plan_to_keep(wanted, old.as_ref(), record, value)),
            Err(found) => {
                let Some(default) = default else {
                    return Err(format!("{} {}, and it has no default", found.value, found.why));
                };
                next.refused = Some(found.clone());
                refused = Some(found);
                Some(default)
            }
        },
    };
    next.default_stands = true;
    let unchanged = is_default && value.and_then(records::value_of).as_ref() == write;
    if unchanged && is_stored(&next, old.as_ref()) {
        return Ok(Plan { description: None, value: None, refused });
    }
    let write = write.map(|default| (default.clone(), false));
    Ok(Plan { description: Some(next.to_json()), value: write, refused })
}

/// The plan for a valid value that was set explicitly. It loses its time to live and its last will, because
/// these would change the parameter without a write.
fn plan_to_keep(
    wanted: &ParamDescription,
    old: Option<&ParamDescription>,
    record: &Record,
    value: Value,
) -> Plan {
    let is_as_declared = records::value_of(record).as_ref() == Some(&value)
        && record.durable == wanted.durable
        && record.expires_boot_ns == 0
        && record.will().is_none();
    let said = is_as_declared && is_stored(wanted, old);
    Plan {
        description: (!said).then(|| wanted.to_json()),
        value: (!is_as_declared).then_some((value, wanted.durable)),
        refused: None,
    }
}

/// Whether the stored value is the default that was written with its description, from the revisions of both.
pub(crate) fn is_default(
    description: Option<&ParamDescription>,
    value: Option<u64>,
    about: Option<u64>,
) -> bool {
    description.is_some_and(|description| description.default_stands)
        && value.is_some()
        && value == about
}

/// Whether an equal description is already stored. That of a read-only parameter is always written, so that
/// concurrent writers that saw its node as absent fail.
fn is_stored(next: &ParamDescription, old: Option<&ParamDescription>) -> bool {
    !next.read_only && old == Some(next)
}

/// The stored value, converted to the declared type; or why that is impossible.
fn check_stored_value(wanted: &ParamDescription, record: &Record) -> Result<Value, RefusedValue> {
    let refused = |value: String, why: String| {
        Err(RefusedValue { value, why, set_by: record.writer().to_owned() })
    };
    let Some(value) = records::value_of(record) else {
        return refused("the value".to_owned(), format!("is not of type {}", wanted.kind));
    };
    let value = wanted.adapt(value);
    match wanted.check(&value) {
        Ok(()) => Ok(value),
        Err(why) => refused(format_value(&value), why),
    }
}

/// How a plan is committed: with or without the disk.
type Commit = dyn Fn(&Region, &[Write<'_>], &[Guard<'_>]) -> Result<u64>;

fn commit(region: &Region, writes: &[Write<'_>], guards: &[Guard<'_>]) -> Result<u64> {
    region.commit(writes, guards, &mut |_, _| Ok(()))
}

/// Commits a plan, provided that its inputs are unchanged. Returns the revision.
fn commit_plan(
    commit: &Commit,
    region: &Region,
    keys: &ParamKeys,
    plan: &Plan,
    value: Option<&Record>,
    about: Option<&Record>,
) -> Result<u64> {
    let at = |record: Option<&Record>| record.map_or(0, |record| record.revision);
    let Some(json) = &plan.description else {
        return Ok(at(value).max(at(about)));
    };
    let description = Write {
        key: &keys.description_key,
        value: Some(records::json(json)),
        expect: Some(at(about)),
        durable: Some(false),
    };
    let Some((new, durable)) = &plan.value else {
        let guard = Guard { key: &keys.key, revision: at(value) };
        return commit(region, &[description], &[guard]);
    };
    let bytes = records::EncodedValue::of(new)?;
    let value = Write {
        key: &keys.key,
        value: Some(bytes.stored()),
        expect: Some(at(value)),
        durable: Some(*durable),
    };
    commit(region, &[description, value], &[])
}

/// Resets a declared parameter to its default.
///
/// # Errors
/// `BadValue` if it is not declared, has no default, or may not be set.
pub(crate) fn reset(region: &Region, own: &OwnNode, keys: &ParamKeys) -> Result<()> {
    let bad = |why: &str| Error::bad_value(keys.display_name(), why);
    let (mut value, mut about) = (Record::default(), Record::default());
    let mut conflict = None;
    for _ in 0..MAX_UPDATE_TRIES {
        let value = region.get(&keys.key, &mut value)?.then_some(&value);
        if !region.get(&keys.description_key, &mut about)? {
            return Err(bad("no node has declared it: start its node first"));
        }
        let mut description = records::description(&about).map_err(|why| bad(&why))?;
        may_be_set(own, &description).map_err(|why| bad(&why))?;
        let default =
            description.default.clone().ok_or_else(|| bad("it has no default: set it instead"))?;
        description.default_stands = true;
        description.refused = None;
        let plan = Plan {
            description: Some(description.to_json()),
            value: Some((default, false)),
            refused: None,
        };
        match commit_plan(&commit, region, keys, &plan, value, Some(&about)) {
            Err(error @ Error::Conflict { .. }) => conflict = Some(error),
            other => return other.map(drop),
        }
    }
    conflict.map_or(Ok(()), Err)
}
