//! Writes with options. Conditions (compare-and-set) are checked in `rnet-ring/src/state/conditional_write.rs`.

use rnet_core::{Result, key_name};

use super::message::StateMessage;
use super::options::{Options, option_methods};
use super::shared::CommitItem;
use super::state::State;
use super::value::Value;
use rnet_node::Message;

/// A write with options; created by [`State::put`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("put{}", std::process::id()));
/// # let node = settings.open()?;
/// # let state = rnet_state::State::open(&node, None, None)?;
/// use std::time::Duration;
/// state.put("/arm/alive").ttl(Duration::from_secs(1)).last_will_delete().set(true)?;
/// state.put("/arm/zero").if_absent().set(0.25)?;
/// assert!(state.put("/arm/zero").if_absent().set(0.5).is_err());
/// # let path = node.state.domain.path().to_owned();
/// # drop((state, node));
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is written until set, set_message or delete"]
#[derive(Debug)]
pub struct Put<'a> {
    state: &'a State,
    key: &'a str,
    options: Options,
}

impl State {
    /// Creates a write with options: conditions, time to live, durability, last will, change of type.
    pub fn put<'a>(&'a self, key: &'a str) -> Put<'a> {
        Put::new(self, key)
    }
}

impl<'a> Put<'a> {
    pub(super) fn new(state: &'a State, key: &'a str) -> Put<'a> {
        Put { state, key, options: Options::default() }
    }

    /// Writes only if the key has this revision; 0: if it is absent. Otherwise `Conflict`.
    pub fn if_revision(mut self, revision: u64) -> Self {
        self.options.expect = Some(revision);
        self
    }

    /// Writes only if the key is absent. Otherwise `Conflict`.
    pub fn if_absent(self) -> Self {
        self.if_revision(0)
    }

    option_methods!();

    /// Sets the key; returns the revision of the change.
    ///
    /// # Errors
    /// `Conflict` if a condition is not met; as [`State::set`].
    pub fn set(self, value: impl Into<Value>) -> Result<u64> {
        let shared = &self.state.shared;
        shared.check_fork()?;
        let key = key_name(self.key)?;
        let value = value.into();
        let prepared = shared.prepare(&key, &value, &self.options)?;
        let (expect, durable) = (self.options.expect, self.options.durable);
        let mut items = [CommitItem { key: &key, value: Some(prepared), expect, durable }];
        shared.commit(&mut items, &[])
    }

    /// Sets the key to a message; returns the revision of the change.
    ///
    /// # Errors
    /// As [`Put::set`].
    pub fn set_message<M: Message>(self, message: &M) -> Result<u64> {
        self.set(StateMessage::of(message)?)
    }

    /// Deletes the key; `false` if it is absent.
    ///
    /// # Errors
    /// `Conflict` if a condition is not met; for a durable key, `Storage`.
    pub fn delete(self) -> Result<bool> {
        let shared = &self.state.shared;
        let key = key_name(self.key)?;
        let mut items =
            [CommitItem { key: &key, value: None, expect: self.options.expect, durable: None }];
        Ok(shared.commit(&mut items, &[])? != 0)
    }
}
