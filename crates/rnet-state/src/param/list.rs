//! Lists the parameters of a domain, for tools.

use std::collections::BTreeMap;

use rnet_core::{NodeName, Result};
use rnet_shm::state::Record;

use super::declare::{is_default, reset};
use super::description::ParamDescription;
use super::param_keys::{ALL_DESCRIPTIONS, ALL_VALUES, ParamKeys, param_key_of};
use super::records;
use crate::{Entry, State, Value};

/// A parameter of the domain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParamInfo {
    /// Its key: `/params/arm/gain`.
    pub key: String,
    /// The declaration of its node; `None`: it was set before any node declared it.
    pub description: Option<ParamDescription>,
    /// Why its description cannot be read, if so.
    pub problem: Option<String>,
    /// The stored entry; `None`: it was deleted, and the default applies.
    pub entry: Option<Entry>,
    /// Whether it is unset.
    pub is_default: bool,
}

impl ParamInfo {
    /// The current value, if any.
    pub fn value(&self) -> Option<&Value> {
        match &self.entry {
            Some(entry) => Some(&entry.value),
            None => self.description.as_ref()?.default.as_ref(),
        }
    }
}

impl State {
    /// All parameters of the domain, declared or only set, sorted by key.
    pub fn params(&self) -> Result<Vec<ParamInfo>> {
        let (descriptions, entries) = raw_params(self)?;
        Ok(collect_params(descriptions, entries))
    }

    /// One parameter; `None` if it is neither declared nor set.
    ///
    /// # Errors
    /// `BadName`.
    pub fn param(&self, node: &NodeName, name: &str) -> Result<Option<ParamInfo>> {
        self.shared.check_fork()?;
        let keys = ParamKeys::new(node, name)?;
        let mut record = Record::default();
        let found = self.shared.region().get(&keys.description_key, &mut record)?;
        let about = found.then(|| (record.revision, records::description(&record)));
        let entry = self.entry(&keys.key)?;
        Ok((about.is_some() || entry.is_some()).then(|| info(keys.key, about, entry)))
    }

    /// Resets a parameter to its default.
    ///
    /// # Errors
    /// `BadName`; `BadValue` if it is not declared, has no default, or is read-only and its node runs.
    pub fn reset_param(&self, node: &NodeName, name: &str) -> Result<()> {
        self.shared.check_fork()?;
        reset(self.shared.region(), &self.core.state.own, &ParamKeys::new(node, name)?)
    }
}

/// The key of a parameter: `/params/arm/gain` for `/gain` of `/arm`.
///
/// # Errors
/// `BadName`: names of parameters follow the rules of topics, and a key has at most 255 bytes.
pub fn key(node: &NodeName, name: &str) -> Result<String> {
    ParamKeys::new(node, name).map(|keys| keys.key)
}

/// A description as stored in the region: its internal key, its revision and its JSON.
pub type RawDescription = (String, u64, Vec<u8>);

/// The descriptions and the values of all parameters.
pub fn raw_params(state: &State) -> Result<(Vec<RawDescription>, Vec<Entry>)> {
    state.shared.check_fork()?;
    let (_, records) = state.shared.region().snapshot(ALL_DESCRIPTIONS)?;
    let about =
        |record: &Record| (record.key().to_owned(), record.revision, record.value().to_vec());
    Ok((records.iter().map(about).collect(), state.list(ALL_VALUES)?))
}

/// The parameters of these records, sorted by key.
pub fn collect_params(descriptions: Vec<RawDescription>, entries: Vec<Entry>) -> Vec<ParamInfo> {
    let mut entries: BTreeMap<String, Entry> =
        entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
    let mut all = BTreeMap::new();
    for (about, revision, json) in descriptions {
        let Some(key) = param_key_of(&about) else { continue };
        let (entry, about) = (entries.remove(&key), records::description_in(&json));
        all.insert(key.clone(), info(key, Some((revision, about)), entry));
    }
    all.extend(entries.into_iter().map(|(key, entry)| {
        let undeclared = info(key.clone(), None, Some(entry));
        (key, undeclared)
    }));
    all.into_values().collect()
}

/// Combines the records of a parameter; `about` is its description, or the fault in it, and its revision.
fn info(
    key: String,
    about: Option<(u64, Result<ParamDescription, String>)>,
    entry: Option<Entry>,
) -> ParamInfo {
    let described_at = about.as_ref().map(|(revision, _)| *revision);
    let (mut description, problem) = match about.map(|(_, description)| description) {
        None => (None, None),
        Some(Ok(description)) => (Some(description), None),
        Some(Err(why)) => (None, Some(why)),
    };
    let revision = entry.as_ref().map(|entry| entry.revision);
    let is_default = entry.is_none() || is_default(description.as_ref(), revision, described_at);
    if let Some(description) = &mut description {
        // Internal; `is_default` contains this information.
        description.default_stands = false;
    }
    ParamInfo { key, description, problem, entry, is_default }
}
