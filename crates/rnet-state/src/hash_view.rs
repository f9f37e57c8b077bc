//! A view of the keys under a prefix as the fields of one object, like a Redis hash.

use std::collections::BTreeMap;

use rnet_core::{Error, Result, key_name};

use super::state::State;
use super::value::Value;

/// The keys under a prefix, each as a field, like a Redis hash. Created by [`State::hash`].
///
/// The fields are ordinary keys (`/arm/limits` and `max` are `/arm/limits/max`), with all features of keys.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("hash{}", std::process::id()));
/// # let node = settings.open()?;
/// # let state = rnet_state::State::open(&node, None, None)?;
/// let limits = state.hash("/arm/limits");
/// limits.set_many([("min", -1.5), ("max", 1.5)])?;
/// assert_eq!(limits.get("max")?, Some(1.5.into()));
/// assert_eq!(limits.all()?.len(), 2);
/// # let path = node.state.domain.path().to_owned();
/// # drop((limits, state, node));
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Hash {
    state: State,
    prefix: String,
}

impl State {
    /// The keys under a prefix as fields.
    pub fn hash(&self, prefix: &str) -> Hash {
        Hash::new(self, prefix)
    }
}

impl Hash {
    pub(super) fn new(state: &State, prefix: &str) -> Hash {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        Hash { state: state.clone(), prefix: prefix.to_owned() }
    }

    /// The prefix, without a trailing slash.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key of a field.
    ///
    /// # Errors
    /// `BadName`.
    pub fn key(&self, field: &str) -> Result<String> {
        if field.starts_with('/') || field.is_empty() {
            let why = "a field must not be empty or start with '/'".to_owned();
            return Err(Error::BadName { what: "key", name: field.to_owned(), why });
        }
        Ok(key_name(&format!("{}/{field}", self.prefix))?.into_owned())
    }

    /// The value of a field.
    pub fn get(&self, field: &str) -> Result<Option<Value>> {
        self.state.get(&self.key(field)?)
    }

    /// Sets a field; returns the revision of the change.
    ///
    /// # Errors
    /// As [`State::set`].
    pub fn set(&self, field: &str, value: impl Into<Value>) -> Result<u64> {
        self.state.set(&self.key(field)?, value)
    }

    /// Deletes a field; `false` if it is absent.
    ///
    /// # Errors
    /// As [`State::delete`].
    pub fn delete(&self, field: &str) -> Result<bool> {
        self.state.delete(&self.key(field)?)
    }

    /// All fields, as of one revision.
    pub fn all(&self) -> Result<BTreeMap<String, Value>> {
        let below = format!("{}/", self.prefix);
        let entries = self.state.list(&below)?;
        // Skips the prefix, including the leading slash that the user may omit.
        let at = below.len() + usize::from(!below.starts_with('/'));
        Ok(entries.into_iter().map(|entry| (entry.key[at..].to_owned(), entry.value)).collect())
    }

    /// Sets several fields in one transaction: readers see all new values or none. Returns the revision of
    /// the change.
    ///
    /// # Errors
    /// As [`State::set`]; `LimitReached` for more fields than a transaction may have.
    pub fn set_many<F: AsRef<str>, V: Into<Value>>(
        &self,
        fields: impl IntoIterator<Item = (F, V)>,
    ) -> Result<u64> {
        let mut transaction = self.state.transaction();
        for (field, value) in fields {
            transaction.set(&self.key(field.as_ref())?, value)?;
        }
        transaction.commit()
    }
}
