//! Writing with options.

use std::time::Duration;

use rnet_core::{Result, key_name};

use super::entry::LastWill;
use super::message::StateMessage;
use super::shared::Item;
use super::{State, Value};
use rnet_node::Message;

/// What a write asks for beside its value.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) expect: Option<u64>,
    pub(super) ends: Option<Ends>,
    pub(super) durable: Option<bool>,
    pub(super) will: Option<LastWill>,
    pub(super) change_type: bool,
}

/// When the time of a key is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    After(Duration),
    /// ns of CLOCK_BOOTTIME.
    At(u64),
}

/// The options of a write, for whatever has them in a field `options`.
macro_rules! option_methods {
    () => {
        /// The key is deleted when it was not written again for so long, by a clock that nobody can set. While the machine is
        /// suspended the time goes on. While it is off it does not: a durable key then has what was left of its time when the
        /// disk was written last.
        pub fn ttl(mut self, ttl: std::time::Duration) -> Self {
            self.options.ends = Some($crate::put::Ends::After(ttl));
            self
        }

        /// The key is deleted at this time, in ns of CLOCK_BOOTTIME (`rnet::boot_ns`); at once if it is past.
        pub fn expires_at_boot_ns(mut self, boot_ns: u64) -> Self {
            self.options.ends = Some($crate::put::Ends::At(boot_ns));
            self
        }

        /// Whether the key is kept on disk; the write then returns when it is. Without this it stays as it is, and a new key is
        /// kept in memory only.
        pub fn durable(mut self, yes: bool) -> Self {
            self.options.durable = Some(yes);
            self
        }

        /// What the key becomes when this node ends, however it ends, unless somebody wrote it since.
        pub fn last_will(mut self, value: impl Into<$crate::Value>) -> Self {
            self.options.will = Some($crate::LastWill::Becomes(value.into()));
            self
        }

        /// The key is deleted when this node ends, however it ends, unless somebody wrote it since.
        pub fn last_will_delete(mut self) -> Self {
            self.options.will = Some($crate::LastWill::Delete);
            self
        }

        /// The key may hold a value of another type, and holds this one's afterwards.
        pub fn change_type(mut self) -> Self {
            self.options.change_type = true;
            self
        }
    };
}
pub(super) use option_methods;

/// A write with options; made by [`State::put`].
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

impl<'a> Put<'a> {
    pub(super) fn new(state: &'a State, key: &'a str) -> Put<'a> {
        Put { state, key, options: Options::default() }
    }

    /// Only if the key is at this revision; 0: if it is absent. Else `Conflict`.
    pub fn if_revision(mut self, revision: u64) -> Self {
        self.options.expect = Some(revision);
        self
    }

    /// Only if the key is absent. Else `Conflict`.
    pub fn if_absent(self) -> Self {
        self.if_revision(0)
    }

    option_methods!();

    /// Sets the key; returns the revision of the change.
    ///
    /// # Errors
    /// `Conflict` if a condition does not hold; as [`State::set`].
    pub fn set(self, value: impl Into<Value>) -> Result<u64> {
        let shared = &self.state.shared;
        shared.check_birth()?;
        let key = key_name(self.key)?;
        let value = value.into();
        let prepared = shared.prepare(&key, &value, &self.options)?;
        let (expect, durable) = (self.options.expect, self.options.durable);
        let mut items = [Item { key: &key, value: Some(prepared), expect, durable }];
        shared.commit(&mut items, &[])
    }

    /// Sets the key to a message; returns the revision of the change.
    ///
    /// # Errors
    /// As [`Put::set`].
    pub fn set_message<M: Message>(self, message: &M) -> Result<u64> {
        self.set(StateMessage::of(message)?)
    }

    /// Deletes the key; `false` if there was none.
    ///
    /// # Errors
    /// `Conflict` if a condition does not hold; of a durable key, `Storage`.
    pub fn delete(self) -> Result<bool> {
        let shared = &self.state.shared;
        let key = key_name(self.key)?;
        let mut items =
            [Item { key: &key, value: None, expect: self.options.expect, durable: None }];
        Ok(shared.commit(&mut items, &[])? != 0)
    }
}
