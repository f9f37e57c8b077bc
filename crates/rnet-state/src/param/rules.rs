//! The parameter rules on the setter's side: a write that the declaration does not allow is rejected.
//!
//! Every write of state calls [`commit`]. For a parameter, it reads the stored description, checks the value,
//! and commits with the description as a guard: if the parameter is declared again in between, the write
//! fails and is checked again. A declaration guards the value in turn. A parameter therefore never has a
//! value that its description forbids, regardless of the writer.

use rnet_core::{Error, Result};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::domain::presence;
use rnet_shm::state::{Guard, Head, Record, Region, StoredValue, Write};

use super::description::{ParamDescription, format_value};
use super::param_keys::{self, display_name};
use super::records;

/// Maximum number of checks of a write while the parameter is declared again.
const MAX_CHECKS: usize = 100;

/// Conditions of an allowed write.
struct WritePermit {
    about: String,
    /// Revision of the description that allowed it; 0: it is absent.
    revision: u64,
    durable: Option<bool>,
}

/// [`Region::commit`] with the parameter rules.
///
/// # Errors
/// `BadValue` for a write that a description forbids, with the reason; otherwise those of the region.
pub(crate) fn commit(
    region: &Region,
    own: &OwnNode,
    writes: &[Write<'_>],
    guards: &[Guard<'_>],
    check: &mut dyn FnMut(usize, Option<&Head>) -> Result<()>,
) -> Result<u64> {
    if !writes.iter().any(|write| param_keys::is_param_key(write.key)) {
        return region.commit(writes, guards, check);
    }
    let mut conflict = None;
    for _ in 0..MAX_CHECKS {
        let permits: Vec<Option<WritePermit>> =
            writes.iter().map(|write| check_write(region, own, write)).collect::<Result<_>>()?;
        let mut guards = guards.to_vec();
        guards.extend(
            permits.iter().flatten().map(|r| Guard { key: &r.about, revision: r.revision }),
        );
        let writes: Vec<Write<'_>> = writes
            .iter()
            .zip(&permits)
            .map(|(write, permit)| {
                let durable = write.durable.or(permit.as_ref().and_then(|r| r.durable));
                Write { durable, ..*write }
            })
            .collect();
        match region.commit(&writes, &guards, check) {
            Err(Error::Conflict { key, expected, found })
                if param_keys::is_description_key(&key) =>
            {
                conflict = Some(Error::Conflict { key, expected, found });
            }
            other => return other,
        }
    }
    // The parameter is declared again on every attempt.
    conflict.map_or(Ok(0), Err)
}

/// Whether a write is allowed, and its conditions. `None` if it does not write a parameter.
fn check_write(region: &Region, own: &OwnNode, write: &Write<'_>) -> Result<Option<WritePermit>> {
    let Some(about) = param_keys::description_key_of(write.key) else { return Ok(None) };
    let mut record = Record::default();
    if !region.get(&about, &mut record)? {
        // Not declared yet: the declaration checks the value.
        return Ok(Some(WritePermit { about, revision: 0, durable: None }));
    }
    let description = records::description(&record).map_err(|why| {
        let cause = format!("its description as a parameter cannot be read ({why})");
        Error::bad_value(write.key, cause + "; the node rewrites the description when it starts")
    })?;
    check_rules(own, &description, write)
        .map_err(|why| Error::bad_value(display_name(&description.node, &description.name), why))?;
    let durable = write.value.is_some().then_some(description.durable);
    Ok(Some(WritePermit { about, revision: record.revision, durable }))
}

/// Checks a write against the description; the error states the reason.
fn check_rules(
    own: &OwnNode,
    description: &ParamDescription,
    write: &Write<'_>,
) -> Result<(), String> {
    may_be_set(own, description)?;
    let kept = if description.durable { "stored on disk" } else { "not stored on disk" };
    if write.durable.is_some_and(|durable| durable != description.durable) {
        return Err(format!("it is {kept}, as its node declared"));
    }
    let Some(stored) = &write.value else {
        return match description.default {
            Some(_) => Ok(()),
            None => Err("it has no default, so it cannot be deleted".to_owned()),
        };
    };
    if stored.will.is_some() {
        return Err("a parameter cannot have a last will".to_owned());
    }
    if stored.expires_boot_ns != 0 && description.default.is_none() {
        return Err("it has no default, so its value cannot expire".to_owned());
    }
    check(description, stored)
}

/// Whether a parameter may be set at all; the error states the reason.
pub(super) fn may_be_set(own: &OwnNode, description: &ParamDescription) -> Result<(), String> {
    if description.read_only && is_present(own, &description.node) {
        return Err(format!(
            "it is read-only while {} runs; set it before that node is started",
            description.node
        ));
    }
    Ok(())
}

fn check(description: &ParamDescription, stored: &StoredValue<'_>) -> Result<(), String> {
    let value = records::value(stored.kind, stored.bytes).ok_or_else(|| {
        format!("the value has another kind; the parameter is {}", description.kind)
    })?;
    description.check(&value).map_err(|why| format!("{} {why}", format_value(&value)))
}

/// Whether a node of this name is present; `true` if that cannot be determined.
pub(crate) fn is_present(own: &OwnNode, node: &str) -> bool {
    match rnet_core::NodeName::new(node) {
        Ok(name) => presence::is_held(&own.domain().names().join(name.file_stem())),
        // The description contains an invalid node name.
        Err(_) => false,
    }
}
