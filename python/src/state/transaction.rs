//! `rnet.state.Transaction`: several keys at once, all or none.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::Result;
use rnet::state;

use super::core::{StateCore, WriteOptions};
use super::disk;
use super::entry;
use super::value::{of_object, to_object};
use crate::drop_without_gil::drop_without_gil;
use crate::errors::OrRaise;
use crate::members::MemberKind;
use crate::qos::OptionalSetters;
use crate::resource::Resource;
use crate::wait;

/// Reads and writes of several keys, of which all take effect or none. Created by `State.transaction`.
///
/// >>> state = node.state
/// >>> state["/account/a"], state["/account/b"] = 30, 0
/// >>> with state.transaction() as t:
/// ...     t["/account/a"] = t["/account/a"] - 10
/// ...     t["/account/b"] = t["/account/b"] + 10
/// >>> state["/account/a"], state["/account/b"]
/// (20, 10)
///
/// Writes are held until the `with` block ends, and then made in one step, which all readers see as a whole;
/// if the block raises, nothing is written. If another writer changed a key that was read here, ConflictError is
/// raised, at the end of the block at the latest, and nothing is written. `state.transact(body)` retries.
///
/// For use by one thread.
#[pyclass(frozen, mapping, module = "rnet.state", weakref)]
pub(crate) struct Transaction {
    core: Arc<StateCore>,
    /// Kept until the transaction ends, or the state is closed: it would keep a closed node alive.
    resource: Arc<Resource<Option<state::Transaction>>>,
    revision: OnceLock<u64>,
}

impl Transaction {
    pub(crate) fn begin(py: Python<'_>, core: &Arc<StateCore>) -> PyResult<Transaction> {
        let inner = core.with(|state| Ok(state.transaction())).or_raise(py)?;
        let resource = Arc::new(Resource::new("the transaction".to_owned(), Some(inner)));
        py.detach(|| core.members.add(MemberKind::Transaction, &resource));
        Ok(Transaction { core: core.clone(), resource, revision: OnceLock::new() })
    }

    fn with<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut state::Transaction) -> Result<R>,
    ) -> PyResult<R> {
        // The state may be closed, or may belong to the parent process.
        self.core.with(|_| Ok(())).or_raise(py)?;
        let over = || self.resource.closed_error();
        self.resource.with(|open| open.as_mut().ok_or_else(over).and_then(act)).or_raise(py)
    }

    fn read<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.with(py, |open| open.get(key))?;
        found.map(|value| to_object(py, &self.core.types, key, &value)).transpose()
    }

    fn write(
        &self,
        py: Python<'_>,
        key: &str,
        value: state::Value,
        options: WriteOptions,
    ) -> PyResult<()> {
        self.with(py, |open| {
            open.put(key)
                .set_opt(options.ttl, |put, ttl| put.ttl(ttl))
                .set_opt(options.durable, |put, durable| put.durable(durable))
                .set_opt(options.last_will, |put, will| match will {
                    state::LastWill::Delete => put.last_will_delete(),
                    state::LastWill::Becomes(value) => put.last_will(value),
                })
                .set_if(options.change_type, |put| put.change_type())
                .set(value)
        })
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.discard();
    }
}

#[pymethods]
impl Transaction {
    fn __setitem__(&self, py: Python<'_>, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = of_object(&self.core.types, key, value)?;
        self.write(py, key, value, WriteOptions::default())
    }

    fn __contains__(&self, py: Python<'_>, key: &str) -> PyResult<bool> {
        Ok(self.with(py, |open| open.get(key))?.is_some())
    }

    /// The value of a key, or `default` if the key is absent. If another writer changes it before the end,
    /// the transaction fails.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.read(py, key)?.or(default))
    }

    /// Sets a key at the end of the transaction. The keyword arguments are those of `State.set`.
    #[pyo3(signature = (key, value, *, ttl = None, durable = None, last_will = None,
        change_type = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn set(
        &self,
        py: Python<'_>,
        key: &str,
        value: &Bound<'_, PyAny>,
        ttl: Option<f64>,
        durable: Option<bool>,
        last_will: Option<&Bound<'_, PyAny>>,
        change_type: bool,
    ) -> PyResult<()> {
        let value = of_object(&self.core.types, key, value)?;
        let ttl = ttl.map(|ttl| wait::seconds(py, "ttl", ttl)).transpose()?;
        let last_will =
            last_will.map(|given| entry::last_will(&self.core.types, key, given)).transpose()?;
        self.write(
            py,
            key,
            value,
            WriteOptions { ttl, durable, last_will, change_type, ..WriteOptions::default() },
        )
    }

    /// Deletes a key at the end of the transaction; False if it is absent.
    fn delete(&self, py: Python<'_>, key: &str) -> PyResult<bool> {
        self.with(py, |open| {
            let there = open.get(key)?.is_some();
            if there {
                open.delete(key)?;
            }
            Ok(there)
        })
    }

    /// Commits the writes and ends the transaction; returns their revision. The `with` block does this.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        self.core.with(|_| Ok(())).or_raise(py)?;
        let open = self.resource.close_and_take().or_raise(py)?;
        // Durable keys wait for the disk, and a transaction may have a thousand keys.
        let revision = disk::write_detached(py, move || open.commit())?;
        let _ = self.revision.set(revision);
        Ok(revision)
    }

    /// Ends the transaction without writing.
    fn discard(&self) {
        if let Some(open) = self.resource.take() {
            // This may be the last handle of the node.
            drop_without_gil(open);
        }
    }

    /// Revision of the change, the same for all its keys; None before the commit.
    #[getter]
    fn revision(&self) -> Option<u64> {
        self.revision.get().copied()
    }

    #[pyo3(signature = (exception_type, *_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception_type: &Bound<'_, PyAny>,
        _exception: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        if self.resource.is_closed() && !self.resource.is_from_parent() {
            // `commit` or `discard` in the block has ended it.
            return Ok(());
        }
        if exception_type.is_none() {
            return self.commit(py).map(drop);
        }
        self.discard();
        Ok(())
    }
}
