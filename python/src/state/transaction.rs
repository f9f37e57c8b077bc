//! `rnet.Transaction`: several keys at once, all or none.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::limits::MAX_TRIES;
use rnet::state;
use rnet::{Error, Result};

use super::change::{outrun, tried, until_done};
use super::core::{StateCore, Terms, deleted};
use super::disk;
use super::entry;
use super::value::{of_object, to_object};
use crate::callback::Callback;
use crate::errors::OrRaise;
use crate::fork::Own;
use crate::members::{Kind, Member};
use crate::qos::Given;
use crate::release::release;
use crate::wait;

/// Reads and writes of several keys of which either all hold or none. Made by `State.transaction`.
///
/// >>> state = node.state
/// >>> state["/account/a"], state["/account/b"] = 30, 0
/// >>> with state.transaction() as t:
/// ...     t["/account/a"] = t["/account/a"] - 10
/// ...     t["/account/b"] = t["/account/b"] + 10
/// >>> state["/account/a"], state["/account/b"]
/// (20, 10)
///
/// Writes are kept back until the `with` block ends, and are then made in one step, which all
/// readers see as a whole; if the block raises, nothing is written. If another writer changed a key
/// that was read here, Conflict is raised, at the end of the block at the latest, and nothing is
/// written. `state.transact(body)` tries again.
///
/// It is for one thread.
#[pyclass(frozen, mapping, module = "rnet", weakref)]
pub(crate) struct Transaction {
    core: Arc<StateCore>,
    inner: Arc<Open>,
    revision: OnceLock<u64>,
}

/// A transaction until it ends, which it does with the state, too: it would keep a closed node.
struct Open(Mutex<Own<Option<state::Transaction>>>);

impl Open {
    fn lock(&self) -> MutexGuard<'_, Own<Option<state::Transaction>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it; what it gives is to be dropped without the GIL. Not for a child of the process.
    fn take(&self) -> Option<state::Transaction> {
        self.lock().take()
    }
}

impl Member for Open {
    fn close(&self) {
        drop(self.take());
    }
}

impl Transaction {
    pub(crate) fn begin(py: Python<'_>, core: &Arc<StateCore>) -> PyResult<Transaction> {
        let inner = core.with(|state| Ok(state.transaction())).or_raise(py)?;
        let inner = Arc::new(Open(Mutex::new(Own::new(Some(inner)))));
        py.detach(|| core.members.add(Kind::Transaction, &inner));
        Ok(Transaction { core: core.clone(), inner, revision: OnceLock::new() })
    }

    fn with<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut state::Transaction) -> Result<R>,
    ) -> PyResult<R> {
        // The state may be closed, or a parent's.
        self.core.with(|_| Ok(())).or_raise(py)?;
        let mut inner = self.inner.lock();
        let open = inner.as_mut().ok_or_else(over);
        open.and_then(act).or_raise(py)
    }

    fn read<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.with(py, |open| open.get(key))?;
        found.map(|value| to_object(py, &self.core.types, key, &value)).transpose()
    }

    fn write(&self, py: Python<'_>, key: &str, value: state::Value, terms: Terms) -> PyResult<()> {
        self.with(py, |open| {
            open.put(key)
                .given(terms.ttl, |put, ttl| put.ttl(ttl))
                .given(terms.durable, |put, durable| put.durable(durable))
                .given(terms.last_will, |put, will| match will {
                    state::LastWill::Delete => put.last_will_delete(),
                    state::LastWill::Becomes(value) => put.last_will(value),
                })
                .given(terms.change_type.then_some(()), |put, ()| put.change_type())
                .set(value)
        })
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.discard();
    }
}

fn over() -> Error {
    Error::Closed { what: "the transaction".to_owned() }
}

#[pymethods]
impl Transaction {
    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        self.read(py, key)?.ok_or_else(|| PyKeyError::new_err(key.to_owned()))
    }

    fn __setitem__(&self, py: Python<'_>, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = of_object(&self.core.types, key, value)?;
        self.write(py, key, value, Terms::default())
    }

    fn __delitem__(&self, py: Python<'_>, key: &str) -> PyResult<()> {
        deleted(key, self.delete(py, key)?)
    }

    fn __contains__(&self, py: Python<'_>, key: &str) -> PyResult<bool> {
        Ok(self.with(py, |open| open.get(key))?.is_some())
    }

    /// The value of a key, or `default` if it is absent. Others may not change it until the end.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.read(py, key)?.or(default))
    }

    /// Sets a key at the end of the transaction. The keywords are those of `State.set`.
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
            Terms { ttl, durable, last_will, change_type, ..Terms::default() },
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

    /// Ends it and makes the writes; returns their revision. The `with` block does it.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        self.core.with(|_| Ok(())).or_raise(py)?;
        let open = self.inner.take().ok_or_else(over).or_raise(py)?;
        // Durable keys wait for the disk, and a transaction may have a thousand keys.
        let revision = disk::write_detached(py, move || open.commit())?;
        let _ = self.revision.set(revision);
        Ok(revision)
    }

    /// Ends it and writes nothing.
    fn discard(&self) {
        if !self.core.is_parents()
            && let Some(open) = self.inner.take()
        {
            // It may be the last that holds the node.
            release(open);
        }
    }

    /// Revision of the change, the same for all its keys; None before it was committed.
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
        let open = self.core.is_parents() || self.inner.lock().is_some();
        if !open {
            // By `commit` or `discard` in the block.
            return Ok(());
        }
        if exception_type.is_none() {
            return self.commit(py).map(drop);
        }
        self.discard();
        Ok(())
    }
}

/// `State.transact`.
pub(crate) fn transact<'py>(
    state: &Bound<'py, PyAny>,
    core: &Arc<StateCore>,
    body: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, what) = (state.py(), "commit the transaction");
    if body.extract::<Callback>()?.is_async(py)? {
        let arguments = (state, body, MAX_TRIES, outrun(py, what).into_value(py));
        return py.import("rnet.on_loop")?.call_method1("transact", arguments);
    }
    until_done(py, what, || {
        let open = Bound::new(py, Transaction::begin(py, core)?)?;
        // A key that is read twice may have changed in between; the body is told at once.
        let returned = body.call1((&open,));
        tried(py, returned.and_then(|returned| open.get().commit(py).map(|_| returned)))
    })
}
