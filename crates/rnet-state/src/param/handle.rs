//! A declared parameter.

use std::sync::{Arc, Mutex, TryLockError};

use rnet_core::{Error, Result};
use rnet_node::sync::lock;

use super::declare::reset;
use super::description::ParamDescription;
use super::param_keys::ParamKeys;
use super::refused_value::RefusedValue;
use super::types::ParamType;
use crate::{Cell, Change, State, WatchHandle};

/// A parameter of this node. Clones refer to the same parameter; its value outlives them.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("param{}", std::process::id()));
/// # let node = settings.open()?;
/// use rnet_state::param::ParamBuilder;
///
/// // In programs: node.param("/gain").default(1.0).max(10.0).declare()?
/// # let state = rnet_state::State::open(&node, None, None);
/// let gain = ParamBuilder::new(state, "/gain").default(1.0).max(10.0).declare()?;
/// gain.set(2.5)?;
/// assert_eq!(gain.get()?, 2.5);
/// assert!(gain.set(11.0).is_err());
/// # let path = node.state.domain.path().to_owned();
/// # drop((gain, node));
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
pub struct Param<T: ParamType> {
    pub(super) inner: Arc<Inner<T>>,
}

pub(super) struct Inner<T: ParamType> {
    pub(super) state: State,
    pub(super) keys: ParamKeys,
    pub(super) description: ParamDescription,
    pub(super) default: Option<T>,
    /// Used by one thread at a time; concurrent threads create their own cell.
    pub(super) cell: Mutex<Cell<T::Stored>>,
    pub(super) refused: Option<RefusedValue>,
    /// The callback from the builder.
    pub(super) watch: Mutex<Option<WatchHandle>>,
}

impl<T: ParamType> Param<T> {
    /// The current value. It never blocks, and does not allocate for a `bool`, `i64` or `f64`, so it can be
    /// called in a control loop.
    ///
    /// # Errors
    /// `Closed` in a forked child; `BadValue` or `StateType` if a program other than robot-net has written
    /// it.
    pub fn get(&self) -> Result<T> {
        let stored = match self.inner.cell.try_lock() {
            Ok(mut cell) => cell.get(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().get(),
            Err(TryLockError::WouldBlock) => self.inner.state.cell(self.key())?.get(),
        };
        match stored? {
            Some(stored) => T::from_stored(stored).ok_or_else(|| {
                self.bad("the stored value is not valid for this parameter: set it again")
            }),
            // Deleted: this resets the parameter to its default.
            None => self
                .inner
                .default
                .clone()
                .ok_or_else(|| self.bad("it has no default, and its value was deleted: set it")),
        }
    }

    /// Sets the value.
    ///
    /// # Errors
    /// `BadValue` with the reason if the value is invalid or the parameter is read-only; as [`State::set`].
    pub fn set(&self, value: T) -> Result<()> {
        let value = self.inner.description.adapt(value.to_value());
        self.inner.state.set(&self.inner.keys.key, value).map(drop)
    }

    /// Resets it to its default.
    ///
    /// # Errors
    /// `BadValue` if it has no default, or is read-only.
    pub fn reset(&self) -> Result<()> {
        let Inner { state, keys, .. } = &*self.inner;
        reset(state.shared.region(), &state.core.state.own, keys)
    }

    /// Calls `callback` with each new value from any writer, until the handle is dropped.
    ///
    /// # Errors
    /// Those of [`State::watch`].
    pub fn on_change(&self, callback: impl FnMut(T) + Send + 'static) -> Result<WatchHandle> {
        self.watch_changes(None, callback)
    }

    /// Calls a callback while this parameter exists, including changes after `since`, the revision of its
    /// declaration.
    pub(super) fn set_callback(
        &self,
        since: u64,
        callback: impl FnMut(T) + Send + 'static,
    ) -> Result<()> {
        let handle = self.watch_changes(Some(since), callback)?;
        *lock(&self.inner.watch) = Some(handle);
        Ok(())
    }

    fn watch_changes(
        &self,
        since: Option<u64>,
        mut callback: impl FnMut(T) + Send + 'static,
    ) -> Result<WatchHandle> {
        let (key, default) = (self.inner.keys.key.clone(), self.inner.default.clone());
        let mut last = default.clone();
        let tell = move |change: Change| {
            // A prefix also matches the keys below it.
            if change.key != key {
                return;
            }
            let value = match change.entry {
                Some(entry) => T::from_value(entry.value),
                None => default.clone(),
            };
            let Some(value) = value else { return };
            let is_new = last.as_ref() != Some(&value);
            last = Some(value.clone());
            if is_new && !(change.initial && since.is_none_or(|since| change.revision <= since)) {
                callback(value);
            }
        };
        Ok(self.inner.state.watch(&self.inner.keys.key)?.on(tell))
    }

    /// Its name in its node: `/gain`.
    pub fn name(&self) -> &str {
        &self.inner.keys.name
    }

    /// Its key in the state: `/params/arm/gain`.
    pub fn key(&self) -> &str {
        &self.inner.keys.key
    }

    /// The declaration.
    pub fn description(&self) -> &ParamDescription {
        &self.inner.description
    }

    /// The stored value that was invalid at the declaration.
    pub fn refused(&self) -> Option<&RefusedValue> {
        self.inner.refused.as_ref()
    }

    fn bad(&self, why: &str) -> Error {
        Error::bad_value(self.inner.keys.display_name(), why)
    }
}

impl<T: ParamType> Clone for Param<T> {
    fn clone(&self) -> Self {
        Param { inner: self.inner.clone() }
    }
}

rnet_node::debug_by!([T: ParamType] Param<T>, "Param", |this| "key": this.key());
