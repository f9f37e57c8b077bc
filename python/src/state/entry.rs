//! `rnet.state.Entry`: a key with its value and metadata.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rnet::state::{self, LastWill, Value};

use super::types::Types;
use super::value::{of_object, to_object};

/// `rnet.state.DELETE`.
pub(crate) fn delete_mark(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static MARK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || Ok::<_, PyErr>(py.import("rnet.state_values")?.getattr("DELETE")?.unbind());
    Ok(MARK.get_or_try_init(py, find)?.bind(py))
}

/// A last will as the user passed it.
pub(super) fn last_will(types: &Types, key: &str, given: &Bound<'_, PyAny>) -> PyResult<LastWill> {
    if given.is(delete_mark(given.py())?) {
        return Ok(LastWill::Delete);
    }
    of_object(types, key, given).map(LastWill::Becomes)
}

/// A key with its value and metadata.
///
/// The value is decoded on access, so that a value that cannot be decoded raises an error there, and not
/// where keys are listed.
#[pyclass(frozen, module = "rnet.state", weakref)]
pub(crate) struct Entry {
    inner: state::Entry,
    types: Arc<Types>,
    value: PyOnceLock<Py<PyAny>>,
}

impl Entry {
    pub(crate) fn new(inner: state::Entry, types: &Arc<Types>) -> Entry {
        Entry { inner, types: types.clone(), value: PyOnceLock::new() }
    }

    pub(crate) fn value_of<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let make =
            || to_object(py, &self.types, &self.inner.key, &self.inner.value).map(Bound::unbind);
        Ok(self.value.get_or_try_init(py, make)?.bind(py).clone())
    }
}

#[pymethods]
impl Entry {
    /// The key, with its leading slash.
    #[getter]
    fn key(&self) -> &str {
        &self.inner.key
    }

    /// The value, the same object each time. Raises MalformedError if its bytes cannot be decoded.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.value_of(py)
    }

    /// Type of the value as text: "an integer", "protobuf message foxglove.Pose".
    #[getter]
    fn type_text(&self) -> String {
        self.inner.value.type_text()
    }

    /// Revision of the last write: a number that grows with each change of any key. Used with `if_revision`.
    #[getter]
    fn revision(&self) -> u64 {
        self.inner.revision
    }

    /// Number of writes of the key since it was created, from 1.
    #[getter]
    fn version(&self) -> u64 {
        self.inner.version
    }

    /// Name of the node that wrote it.
    #[getter]
    fn owner(&self) -> &str {
        &self.inner.owner.node
    }

    /// Time of the write, in ns since 1970 UTC.
    #[getter]
    fn written_unix_ns(&self) -> u64 {
        self.inner.owner.written_unix_ns
    }

    /// Whether it is kept on disk.
    #[getter]
    fn durable(&self) -> bool {
        self.inner.durable
    }

    /// Expiry time (`ttl`), in ns of CLOCK_BOOTTIME (`time.clock_gettime_ns(time.CLOCK_BOOTTIME)`), which
    /// cannot be set; None if the key does not expire.
    #[getter]
    fn expires_boot_ns(&self) -> Option<u64> {
        self.inner.expires_boot_ns
    }

    /// Remaining time to live, in seconds; None if the key does not expire.
    #[getter]
    fn ttl_left(&self) -> Option<f64> {
        self.inner.ttl_left().map(|left| left.as_secs_f64())
    }

    /// The value that it gets when the node that wrote it ends: a value, or `rnet.state.DELETE`; None if it does
    /// not change then.
    #[getter]
    fn last_will<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.inner.last_will {
            None => Ok(None),
            Some(LastWill::Delete) => Ok(Some(delete_mark(py)?.clone())),
            Some(LastWill::Becomes(value)) => {
                to_object(py, &self.types, &self.inner.key, value).map(Some)
            }
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let inner = &self.inner;
        let value = match (&inner.value, self.value_of(py)) {
            (Value::Unreadable(_), _) | (_, Err(_)) => inner.value.type_text(),
            (_, Ok(value)) => value.repr()?.to_string(),
        };
        let (key, revision, owner) = (&inner.key, inner.revision, &inner.owner.node);
        Ok(format!("<rnet.state.Entry {key} = {value}, revision {revision}, written by {owner}>"))
    }
}

/// An `rnet.state.Change`.
pub(crate) fn change(
    py: Python<'_>,
    change: state::Change,
    types: &Arc<Types>,
) -> PyResult<Py<PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || Ok::<_, PyErr>(py.import("rnet.changes")?.getattr("Change")?.unbind());
    let state::Change { key, entry, expired, revision, skipped, initial, .. } = change;
    let entry = entry.map(|entry| Entry::new(entry, types));
    let parts = (key, entry, expired, revision, skipped, initial);
    CLASS.get_or_try_init(py, find)?.call1(py, parts)
}
