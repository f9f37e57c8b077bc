//! Access to one key in loops.

use std::marker::PhantomData;
use std::sync::Arc;

use rnet_core::{Result, key_name};
use rnet_shm::state::{KeyPath, Record};

use super::codec::StateType;
use super::shared::StateShared;
use super::state::State;
use rnet_node::core::NodeCore;

/// A key that is accessed often. Its name is checked once, and accesses of numbers do not allocate.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut settings = rnet_node::NodeSettings::new("arm");
/// # settings.dir = Some(std::env::temp_dir());
/// # settings.domain = Some(format!("cell{}", std::process::id()));
/// # let node = settings.open()?;
/// # let state = rnet_state::State::open(&node, None, None)?;
/// let mut gain = state.cell::<f64>("/arm/gain")?;
/// gain.set(&1.5)?;
/// assert_eq!(gain.get()?, Some(1.5));
/// # let path = node.state.domain.path().to_owned();
/// # drop((gain, state, node));
/// # std::fs::remove_dir_all(path)?;
/// # Ok(()) }
/// ```
pub struct Cell<T> {
    shared: Arc<StateShared>,
    core: Arc<NodeCore>,
    key: Box<str>,
    path: KeyPath,
    record: Record,
    of: PhantomData<fn(T) -> T>,
}

impl State {
    /// Creates a [`Cell`]: the name is checked once, and accesses of numbers do not allocate.
    ///
    /// # Errors
    /// `BadName`.
    pub fn cell<T: StateType>(&self, key: &str) -> Result<Cell<T>> {
        self.shared.check_fork()?;
        Cell::new(self, key_name(key)?.into_owned())
    }
}

impl<T: StateType> Cell<T> {
    pub(super) fn new(state: &State, key: String) -> Result<Cell<T>> {
        let path = state.shared.region.path(&key)?;
        Ok(Cell {
            path,
            shared: state.shared.clone(),
            core: state.core.clone(),
            key: key.into(),
            record: Record::default(),
            of: PhantomData,
        })
    }

    /// The key, with its leading slash.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value; `None` if the key is absent or expired.
    ///
    /// # Errors
    /// `StateType` if the key holds another type; `BadValue` for a number out of range of the type.
    pub fn get(&mut self) -> Result<Option<T>> {
        if !self.shared.read_at(&self.path, &mut self.record)? {
            self.record.revision = 0;
            return Ok(None);
        }
        T::read(&self.shared, &self.record).map(Some)
    }

    /// Revision of the value that [`Cell::get`] returned last; 0 if none.
    pub fn revision(&self) -> u64 {
        self.record.revision
    }

    /// Sets the key; returns the revision of the change.
    ///
    /// # Errors
    /// As [`State::set`].
    pub fn set(&self, value: &T) -> Result<u64> {
        match value.pack() {
            Some((of, bytes)) => self.shared.write_simple(&self.key, of, &bytes, None),
            None => self.state().set(&self.key, value.to_value()),
        }
    }

    /// Sets the key if it has this revision ([`Cell::revision`]; 0: if it is absent).
    ///
    /// # Errors
    /// `Conflict` if it has another revision; as [`State::set`].
    pub fn compare_and_set(&self, revision: u64, value: &T) -> Result<u64> {
        match value.pack() {
            Some((of, bytes)) => self.shared.write_simple(&self.key, of, &bytes, Some(revision)),
            None => self.state().compare_and_set(&self.key, revision, value.to_value()),
        }
    }

    /// The state of this cell.
    pub fn state(&self) -> State {
        State { shared: self.shared.clone(), core: self.core.clone() }
    }
}

impl<T> Clone for Cell<T> {
    fn clone(&self) -> Cell<T> {
        Cell {
            shared: self.shared.clone(),
            core: self.core.clone(),
            key: self.key.clone(),
            path: self.path.clone(),
            record: Record::default(),
            of: PhantomData,
        }
    }
}

rnet_node::debug_by!([T] Cell<T>, "Cell", |this| "key": this.key);
