//! The parameters of a domain, for tools.

use std::collections::BTreeMap;

use rnet_core::{NodeName, Result};
use rnet_shm::state::Record;

use super::board;
use super::declare::{is_default, reset};
use super::description::ParamDescription;
use super::place::{ALL_DESCRIPTIONS, ALL_VALUES, Place, value_of};
use crate::{Entry, State, Value};

/// A parameter as it stands in the domain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParamInfo {
    /// Its key: `/params/arm/gain`.
    pub key: String,
    /// What its node declared; `None`: it was set before any node declared it.
    pub description: Option<ParamDescription>,
    /// Why its description cannot be read, if it cannot.
    pub problem: Option<String>,
    /// What stands there; `None`: it was deleted, and is its default.
    pub entry: Option<Entry>,
    /// Nobody has set it.
    pub is_default: bool,
}

impl ParamInfo {
    /// The present value; `None` if there is none.
    pub fn value(&self) -> Option<&Value> {
        match &self.entry {
            Some(entry) => Some(&entry.value),
            None => self.description.as_ref()?.default.as_ref(),
        }
    }
}

impl State {
    /// All parameters of the domain, declared or only set, in the order of their keys.
    pub fn params(&self) -> Result<Vec<ParamInfo>> {
        self.shared.check_fork()?;
        let (_, records) = self.shared.region().snapshot(ALL_DESCRIPTIONS)?;
        let mut entries = self.snapshot(ALL_VALUES)?.entries;
        let mut all = BTreeMap::new();
        for about in &records {
            let Some(key) = value_of(about.key()) else { continue };
            let entry = entries.remove(&key);
            all.insert(key.clone(), info(key, Some(about), entry));
        }
        all.extend(entries.into_iter().map(|(key, entry)| {
            let undeclared = info(key.clone(), None, Some(entry));
            (key, undeclared)
        }));
        Ok(all.into_values().collect())
    }

    /// One parameter; `None` if it is neither declared nor set.
    ///
    /// # Errors
    /// `BadName`.
    pub fn param(&self, node: &NodeName, name: &str) -> Result<Option<ParamInfo>> {
        self.shared.check_fork()?;
        let place = Place::new(node, name)?;
        let mut record = Record::default();
        let about = self.shared.region().get(&place.about, &mut record)?.then_some(&record);
        let entry = self.entry(&place.key)?;
        Ok((about.is_some() || entry.is_some()).then(|| info(place.key, about, entry)))
    }

    /// Makes a parameter its default, as if nobody had set it.
    ///
    /// # Errors
    /// `BadName`; `BadValue` if no node has declared it, or it has no default, or is read-only and its node
    /// runs.
    pub fn reset_param(&self, node: &NodeName, name: &str) -> Result<()> {
        self.shared.check_fork()?;
        reset(self.shared.region(), &self.core.state.own, &Place::new(node, name)?)
    }
}

/// The key of a parameter: `/params/arm/gain` of `/gain` of `/arm`.
///
/// # Errors
/// `BadName`: names of parameters follow the rules of topics, and a key has at most 255 bytes.
pub fn key(node: &NodeName, name: &str) -> Result<String> {
    Place::new(node, name).map(|place| place.key)
}

fn info(key: String, about: Option<&Record>, entry: Option<Entry>) -> ParamInfo {
    let (mut description, problem) = match about.map(board::description) {
        None => (None, None),
        Some(Ok(description)) => (Some(description), None),
        Some(Err(why)) => (None, Some(why)),
    };
    let revision = entry.as_ref().map(|entry| entry.revision);
    let is_default =
        entry.is_none() || is_default(description.as_ref(), revision, about.map(|r| r.revision));
    if let Some(description) = &mut description {
        // Said by `is_default`, and by nobody who declares.
        description.default_stands = false;
    }
    ParamInfo { key, description, problem, entry, is_default }
}
