//! `rnet.State`: the state of a domain, as a mapping.
//!
//! | file | what |
//! |---|---|
//! | `mod` | [`PyState`]: reading and writing keys |
//! | `core` | data shared by all objects of a node's state |
//! | `disk` | writes that may wait for the disk: the GIL, and Ctrl-C |
//! | `value`, `types` | objects to values and back |
//! | `entry` | `Entry` |
//! | `change` | changes relative to the current value: `update`, counters |
//! | `remote` | the state of another host |
//! | `transaction` | several keys at once |
//! | `watch` | notification of changes: iterating, by callback, in asyncio |
//!
//! Functions built on these, without direct access to the domain, are in Python: `rnet.state`.

mod change;
pub(crate) mod core;
pub(crate) mod disk;
mod entry;
pub(crate) mod remote;
mod transaction;
pub(crate) mod types;
pub(crate) mod value;
pub(crate) mod watch;

use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use rnet::state::{self, Value};

pub(crate) use self::change::too_many_conflicts;
use self::core::{StateCore, WriteOptions};
pub(crate) use self::entry::Entry;
pub(crate) use self::transaction::Transaction;
use self::value::{of_object, to_object};
pub(crate) use self::watch::Watch;
use crate::errors::OrRaise;
use crate::node_core::NodeCore;
use crate::wait;

/// The state of a domain: keys with values that every node reads and writes. Returned by `Node.state`.
///
/// It behaves as a dict: `state["/arm/mode"] = "idle"`, `state["/arm/mode"]`, `del`, `in`, `len`, and `for
/// key in state`. A key is a name like that of a topic. A value is a bool, int, float, str or bytes; a dict,
/// list or None, which is stored as JSON; a set; a message (protobuf or ctypes.Structure) or a numpy array. A
/// read returns a copy: to change a dict that was read, set it again; `update` does so without losing changes
/// of other writers.
///
/// The type of a value is kept with it: writing another type raises StateTypeError, unless `set(...,
/// change_type=True)` allows it or the key was deleted before. int and float are different types.
///
/// A prefix matches whole names: "/arm" is "/arm" itself and all of "/arm/...", "/arm/" only the latter, ""
/// all keys.
///
/// Redis equivalents: GET is `state[key]`, SET `state[key] = value`, SETNX `set(..., if_revision=0)`, SETEX
/// `set(..., ttl=seconds)`, DEL `del state[key]`, INCR `add`, HSET and HGETALL `hash`, LPUSH and LTRIM
/// `push`, SADD `set_add`, WATCH and MULTI `transaction`, keyspace notifications `watch`.
///
/// Any thread may use it. A read never waits. A write waits only for the disk, if the key is durable or a
/// durable write to it is pending; other threads run meanwhile, and Ctrl-C ends the wait. An interrupted
/// write is withdrawn, unless the disk write had started: then it may still take effect, and reading the key
/// shows whether it did.
///
/// >>> state = node.state
/// >>> state["/arm/mode"] = "idle"
/// >>> state["/arm/gains"] = {"kp": 12.5}
/// >>> state["/arm/mode"], state["/arm/gains"]["kp"], "/leg" in state
/// ('idle', 12.5, False)
/// >>> sorted(state.keys("/arm"))
/// ['/arm/gains', '/arm/mode']
#[pyclass(frozen, mapping, name = "State", module = "rnet", weakref)]
pub(crate) struct PyState {
    core: Arc<StateCore>,
    node: Arc<NodeCore>,
}

impl PyState {
    pub(crate) fn new(core: Arc<StateCore>, node: Arc<NodeCore>) -> PyState {
        PyState { core, node }
    }

    fn read<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.core.with(|state| state.get(key)).or_raise(py)?;
        found.map(|value| to_object(py, &self.core.types, key, &value)).transpose()
    }

    /// The value of a key, as a message of `class`.
    fn read_as<'py>(
        &self,
        key: &str,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let types = &self.core.types;
        match self.core.with(|state| state.get(key)).or_raise(class.py())? {
            None => Ok(None),
            Some(Value::Message(message)) => types.object_as(class, key, &message).map(Some),
            Some(other) => Err(types.not_a_message(class, key, &other.type_text())?),
        }
    }
}

#[pymethods]
impl PyState {
    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        self.read(py, key)?.ok_or_else(|| PyKeyError::new_err(key.to_owned()))
    }

    fn __setitem__(&self, py: Python<'_>, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = of_object(&self.core.types, key, value)?;
        self.core.write(py, key, value, WriteOptions::default()).map(drop)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(key) = key.extract::<&str>() else { return Ok(false) };
        self::core::exists(py, self.core.with(|state| state.entry(key)))
    }

    /// The value of a key, or `default` if the key is absent.
    ///
    /// With `type` (a protobuf message class, a ctypes.Structure class or a numpy dtype) the value is an
    /// object of that type; StateTypeError is raised if the value is not compatible with it.
    #[pyo3(signature = (key, default = None, /, *, r#type = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
        r#type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = match r#type {
            None => self.read(py, key)?,
            Some(class) => self.read_as(key, class)?,
        };
        Ok(found.or(default))
    }

    /// The value of a key with its metadata (revision, writer, ...), as an Entry; None if the key is absent.
    fn entry(&self, py: Python<'_>, key: &str) -> PyResult<Option<Entry>> {
        let found = self.core.with(|state| state.entry(key)).or_raise(py)?;
        Ok(found.map(|entry| Entry::new(entry, &self.core.types)))
    }

    /// Sets a key, and returns the revision of the change.
    ///
    /// `if_revision=r` sets it only if it is still at that revision (`Entry.revision`), `if_revision=0` only
    /// if it is absent; otherwise ConflictError is raised. `ttl` is its time to live in seconds. `durable=True`
    /// keeps it on disk from now on, and returns when it is there; without it, a key stays as durable as it
    /// is. `last_will` is the value that it gets when this node ends for any reason: a value, or rnet.state.DELETE.
    /// `change_type=True` allows a different type than before.
    ///
    /// A write without `ttl` or `last_will` removes those of the previous write.
    #[pyo3(signature = (key, value, *, if_revision = None, ttl = None, durable = None,
        last_will = None, change_type = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn set(
        &self,
        py: Python<'_>,
        key: &str,
        value: &Bound<'_, PyAny>,
        if_revision: Option<u64>,
        ttl: Option<f64>,
        durable: Option<bool>,
        last_will: Option<&Bound<'_, PyAny>>,
        change_type: bool,
    ) -> PyResult<u64> {
        let value = of_object(&self.core.types, key, value)?;
        let ttl = ttl.map(|ttl| wait::seconds(py, "ttl", ttl)).transpose()?;
        let last_will =
            last_will.map(|given| entry::last_will(&self.core.types, key, given)).transpose()?;
        let options = WriteOptions {
            if_revision,
            ttl,
            durable,
            last_will,
            change_type,
            ..WriteOptions::default()
        };
        self.core.write(py, key, value, options)
    }

    /// Sets a key that is at this revision (0: absent), and returns the new revision; raises ConflictError if it
    /// is at another one.
    fn compare_and_set(
        &self,
        py: Python<'_>,
        key: &str,
        revision: u64,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let value = of_object(&self.core.types, key, value)?;
        self.core.write(
            py,
            key,
            value,
            WriteOptions { if_revision: Some(revision), ..WriteOptions::default() },
        )
    }

    /// Deletes a key; False if it was absent. With `if_revision`, only at that revision; otherwise raises
    /// ConflictError.
    #[pyo3(signature = (key, *, if_revision = None))]
    fn delete(&self, py: Python<'_>, key: &str, if_revision: Option<u64>) -> PyResult<bool> {
        let options = WriteOptions { if_revision, ..WriteOptions::default() };
        self.core.change(py, move |state| self::core::put(state, key, options).delete())
    }

    /// The keys under a prefix, in order.
    #[pyo3(signature = (prefix = ""))]
    fn keys<'py>(&self, py: Python<'py>, prefix: &str) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.core.detached(py, |state| state.keys(prefix))?)
    }

    /// The revision and the entries under a prefix, at one moment.
    fn _snapshot(&self, py: Python<'_>, prefix: &str) -> PyResult<(u64, Vec<Entry>)> {
        let state::Snapshot { revision, entries, .. } =
            self.core.detached(py, |state| state.snapshot(prefix))?;
        let entries = entries.into_values().map(|entry| Entry::new(entry, &self.core.types));
        Ok((revision, entries.collect()))
    }

    /// Watches the keys under a prefix: first the current values, then each change, in order, as Change
    /// objects.
    ///
    /// `for change in state.watch("/arm")` runs until the watch is closed, as does `async for`. A slow reader
    /// gets the newest value of a key and the number of values that it missed; no queue grows.
    #[pyo3(signature = (prefix = ""))]
    fn watch(&self, py: Python<'_>, prefix: &str) -> PyResult<Watch> {
        Watch::open(py, &self.core, &self.node, prefix)
    }

    /// Sets a key to a function of its value, unless another writer interferes.
    fn _rewrite<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        change::rewrite(py, &self.core, key, function)
    }

    /// Adds to a number, and returns the sum. An absent key starts at 0, with the type of `amount`, int or
    /// float.
    #[pyo3(signature = (key, amount = None, /))]
    #[pyo3(text_signature = "($self, key, amount=1, /)")]
    fn add<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        amount: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        change::add(py, &self.core, key, amount)
    }

    /// Appends to a list and keeps its last `max_len` items; returns the new length. `state[key]` is the
    /// list.
    fn push(
        &self,
        py: Python<'_>,
        key: &str,
        value: &Bound<'_, PyAny>,
        max_len: usize,
    ) -> PyResult<usize> {
        let value = of_object(&self.core.types, key, value)?;
        self.core.change(py, move |state| state.push(key, value, max_len))
    }

    /// Adds a member to a set; False if it was already in the set. `state[key]` is the set.
    fn set_add(&self, py: Python<'_>, key: &str, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        let member = of_object(&self.core.types, key, member)?;
        self.core.change(py, move |state| state.set_add(key, member))
    }

    /// Removes a member from a set; False if it was not in the set.
    fn set_remove(&self, py: Python<'_>, key: &str, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        let member = of_object(&self.core.types, key, member)?;
        self.core.change(py, move |state| state.set_remove(key, member))
    }

    /// Whether a set has this member; False if the key is absent.
    fn contains(&self, py: Python<'_>, key: &str, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        let member = of_object(&self.core.types, key, member)?;
        self.core.with(|state| state.contains(key, member)).or_raise(py)
    }

    /// A transaction: `with state.transaction() as t:` reads and writes several keys, either all or none. See
    /// Transaction; `transact` retries after conflicts.
    fn transaction(&self, py: Python<'_>) -> PyResult<Transaction> {
        Transaction::begin(py, &self.core)
    }

    /// Revision of the newest change of any key.
    #[getter]
    fn revision(&self, py: Python<'_>) -> PyResult<u64> {
        self.core.with(|state| Ok(state.revision())).or_raise(py)
    }

    fn __repr__(&self) -> String {
        let NodeCore { name, domain, .. } = &*self.node;
        format!("<rnet.State of domain {domain}, by node {name}>")
    }
}
