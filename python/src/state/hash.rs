//! `rnet.StateHash`: the keys under a prefix as the fields of one thing.

use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use rnet::state::Value;

use super::core::{StateCore, deleted, is_there};
use super::value::{of_object, to_object};
use crate::errors::OrRaise;

/// The keys under a prefix as the fields of one thing, a mapping: what a hash is in Redis. Made by
/// `State.hash`.
///
/// Each field is a key of its own, `prefix/field`, with a type, an owner and a revision of its own;
/// writers of different fields do not meet. `all` and `set_many` read and write several at once.
#[pyclass(frozen, mapping, module = "rnet", weakref)]
pub(crate) struct StateHash {
    core: Arc<StateCore>,
    prefix: String,
}

impl StateHash {
    pub(crate) fn open(py: Python<'_>, core: &Arc<StateCore>, prefix: &str) -> PyResult<StateHash> {
        // The state may be closed, and the prefix none.
        core.with(|state| state.hash(prefix).get("x").map(drop)).or_raise(py)?;
        Ok(StateHash { core: core.clone(), prefix: prefix.trim_end_matches('/').to_owned() })
    }

    fn key(&self, field: &str) -> String {
        format!("{}/{field}", self.prefix)
    }

    fn read<'py>(&self, py: Python<'py>, field: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.core.with(|state| state.hash(&self.prefix).get(field)).or_raise(py)?;
        found.map(|value| to_object(py, &self.core.types, &self.key(field), &value)).transpose()
    }

    fn fields(&self, py: Python<'_>) -> PyResult<Vec<(String, Value)>> {
        let all = self.core.detached(py, |state| state.hash(&self.prefix).all())?;
        Ok(all.into_iter().collect())
    }
}

#[pymethods]
impl StateHash {
    /// The prefix.
    #[getter]
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn __getitem__<'py>(&self, py: Python<'py>, field: &str) -> PyResult<Bound<'py, PyAny>> {
        self.read(py, field)?.ok_or_else(|| PyKeyError::new_err(field.to_owned()))
    }

    fn __setitem__(&self, py: Python<'_>, field: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = self.key(field);
        let value = of_object(&self.core.types, &key, value)?;
        let set = |state: &rnet::state::State| state.hash(&self.prefix).set(field, value);
        self.core.change(py, set).map(drop)
    }

    fn __delitem__(&self, py: Python<'_>, field: &str) -> PyResult<()> {
        deleted(field, self.delete(py, field)?)
    }

    /// Deletes a field; False if it was absent.
    fn delete(&self, py: Python<'_>, field: &str) -> PyResult<bool> {
        self.core.change(py, |state| state.hash(&self.prefix).delete(field))
    }

    fn __contains__(&self, py: Python<'_>, field: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(field) = field.extract::<&str>() else { return Ok(false) };
        is_there(py, self.core.with(|state| state.hash(&self.prefix).get(field)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.fields(py)?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.into_pyobject(py)?.try_iter()
    }

    /// The value of a field, or `default` if it is absent.
    #[pyo3(signature = (field, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.read(py, field)?.or(default))
    }

    /// The names of the fields, in order.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.fields(py)?.into_iter().map(|(field, _)| field).collect())
    }

    /// The fields as a dict, all of one moment.
    fn all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (field, value) in self.items(py)? {
            dict.set_item(field, value)?;
        }
        Ok(dict)
    }

    /// The values, in the order of the names of their fields, all of one moment.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        Ok(self.items(py)?.into_iter().map(|(_, value)| value).collect())
    }

    /// Pairs of name and value, in the order of the names, all of one moment.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let object = |(field, value): (String, Value)| {
            let value = to_object(py, &self.core.types, &self.key(&field), &value)?;
            Ok((field, value))
        };
        self.fields(py)?.into_iter().map(object).collect()
    }

    /// Sets several fields at once, all or none; returns the revision of the change.
    fn set_many(&self, py: Python<'_>, fields: &Bound<'_, PyDict>) -> PyResult<u64> {
        let mut wanted: Vec<(String, Value)> = Vec::with_capacity(fields.len());
        for (field, value) in fields.iter() {
            let field: String = field.extract()?;
            let value = of_object(&self.core.types, &self.key(&field), &value)?;
            wanted.push((field, value));
        }
        self.core.detached(py, |state| {
            let fields = wanted.iter().map(|(field, value)| (field.as_str(), value.clone()));
            state.hash(&self.prefix).set_many(fields)
        })
    }

    fn __repr__(&self) -> String {
        format!("<rnet.StateHash {}>", self.prefix)
    }
}
