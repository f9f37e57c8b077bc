//! `rnet.state.RemoteState`, `rnet.state.Replica`: the state of another host.
//!
//! Every call may wait for that host, so it runs without the GIL; Ctrl-C ends the wait.

use std::sync::Arc;

use pyo3::prelude::*;
use rnet::state::{self as rust, RemotePut, RemoteState, WithAge};

use super::disk;
use super::entry::{self, Entry};
use super::types::Types;
use super::value::of_object;
use crate::errors::OrRaise;
use crate::members::{Member, MemberKind};
use crate::node_core::NodeCore;
use crate::qos::OptionalSetters;
use crate::resource::Resource;
use crate::wait::{self, DEFAULT_TIMEOUT, UNINTERRUPTED_CHECK_INTERVAL, WaitLimit, answer_limit};

/// An `rnet.state.WithAge`.
fn with_age(
    py: Python<'_>,
    aged: WithAge<Option<rust::Entry>>,
    types: &Arc<Types>,
) -> PyResult<Py<PyAny>> {
    let entry = aged.value.map(|entry| Entry::new(entry, types));
    let parts = (entry, aged.age.as_secs_f64(), aged.is_stale);
    Ok(py.import("rnet.changes")?.call_method1("WithAge", parts)?.unbind())
}

/// The state of another host, the home of its keys. Returned by `Node.state_of`.
///
/// A read asks that host. While the host is away, the last value that was read is returned; `get_with_age` tells how
/// old it is. A write is sent once, and returns when it is in effect there; while the host is away it raises
/// HomeAwayError, whose `may_hold` tells whether the write may have arrived. It is never sent twice: read the key,
/// and write with `compare_and_set`. A write that was interrupted by Ctrl-C may also have taken effect.
///
/// >>> robot = node.state_of("robot")
/// >>> robot["/arm/mode"] = "idle"
/// >>> robot["/arm/mode"], robot.get_with_age("/arm/mode").is_stale
/// ('idle', False)
#[pyclass(frozen, name = "RemoteState", module = "rnet.state", weakref)]
pub(crate) struct PyRemoteState {
    resource: Arc<Resource<Arc<RemoteState>>>,
    node: Arc<NodeCore>,
    types: Arc<Types>,
    /// Name of the host.
    #[pyo3(get)]
    host: String,
}

impl PyRemoteState {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        host: &str,
        timeout: Option<f64>,
    ) -> PyResult<PyRemoteState> {
        let timeout = answer_limit(py, timeout, DEFAULT_TIMEOUT)?;
        let open = || node.node()?.state_of(host);
        let remote = py.detach(open).or_raise(py)?;
        let remote =
            remote.with_timeout(timeout).with_stop(Arc::new(|| !disk::run_signal_handlers()));
        let resource =
            Arc::new(Resource::new(format!("the state of host {host}"), Arc::new(remote)));
        py.detach(|| node.members.add(MemberKind::State, &resource));
        let types = Arc::new(Types::new(py));
        Ok(PyRemoteState { resource, node: node.clone(), types, host: host.to_owned() })
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&RemoteState) -> rnet::Result<R> + Send,
    ) -> PyResult<R> {
        disk::write_detached(py, || act(&*self.resource.get()?))
    }
}

#[pymethods]
impl PyRemoteState {
    fn __setitem__(&self, py: Python<'_>, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = of_object(&self.types, key, value)?;
        self.with(py, |remote| remote.set(key, value)).map(drop)
    }

    /// The value of a key there with its metadata, as an Entry; None if the key is absent. The revision is
    /// one of that host's state.
    fn entry(&self, py: Python<'_>, key: &str) -> PyResult<Option<Entry>> {
        let found = self.with(py, |remote| remote.entry(key))?.value;
        Ok(found.map(|entry| Entry::new(entry, &self.types)))
    }

    /// The value of a key there and its age, as a WithAge.
    fn get_with_age(&self, py: Python<'_>, key: &str) -> PyResult<Py<PyAny>> {
        let found = self.with(py, |remote| remote.entry(key))?;
        with_age(py, found, &self.types)
    }

    /// Sets a key there, and returns the revision of the change. The keyword arguments are those of
    /// `State.set`, without last_will: that host cannot observe this node.
    #[pyo3(signature = (key, value, *, if_revision = None, ttl = None, durable = None,
        change_type = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn set(
        &self,
        py: Python<'_>,
        key: &str,
        value: &Bound<'_, PyAny>,
        if_revision: Option<u64>,
        ttl: Option<f64>,
        durable: Option<bool>,
        change_type: bool,
    ) -> PyResult<u64> {
        let value = of_object(&self.types, key, value)?;
        let ttl = ttl.map(|ttl| wait::seconds(py, "ttl", ttl)).transpose()?;
        self.with(py, |remote| {
            remote
                .put(key)
                .set_opt(if_revision, RemotePut::if_revision)
                .set_opt(ttl, RemotePut::ttl)
                .set_opt(durable, RemotePut::durable)
                .set_if(change_type, |put| put.change_type())
                .set(value)
        })
    }

    /// Sets a key that is at this revision of that host (0: absent), and returns the new revision; raises
    /// ConflictError if it is at another one.
    fn compare_and_set(
        &self,
        py: Python<'_>,
        key: &str,
        revision: u64,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let value = of_object(&self.types, key, value)?;
        self.with(py, |remote| remote.compare_and_set(key, revision, value))
    }

    /// Deletes a key there; False if it was absent. With `if_revision`, only at that revision; otherwise
    /// raises ConflictError.
    #[pyo3(signature = (key, *, if_revision = None))]
    fn delete(&self, py: Python<'_>, key: &str, if_revision: Option<u64>) -> PyResult<bool> {
        self.with(py, |remote| {
            remote.put(key).set_opt(if_revision, RemotePut::if_revision).delete()
        })
    }

    /// The entries under a prefix there, sorted by key, at one moment.
    #[pyo3(signature = (prefix = ""))]
    fn list(&self, py: Python<'_>, prefix: &str) -> PyResult<Vec<Entry>> {
        let found = self.with(py, |remote| remote.list(prefix))?;
        Ok(found.into_iter().map(|entry| Entry::new(entry, &self.types)).collect())
    }

    /// Mirrors the keys under a prefix there: returns a Replica, which holds them locally and receives each
    /// change. While it exists, reading these keys does not use the network. Returns when it has the current
    /// values.
    #[pyo3(signature = (prefix = ""))]
    fn mirror(&self, py: Python<'_>, prefix: &str) -> PyResult<PyReplica> {
        let replica = self.with(py, |remote| remote.mirror(prefix))?;
        let what = format!("the replica of {prefix:?} of host {}", self.host);
        let resource = Arc::new(Resource::new(what, Arc::new(replica)));
        py.detach(|| self.node.members.add(MemberKind::Watch, &resource));
        let (types, prefix) = (self.types.clone(), prefix.to_owned());
        Ok(PyReplica { resource, types, prefix, host: self.host.clone() })
    }

    fn __repr__(&self) -> String {
        format!("<rnet.state.RemoteState of host {}, by node {}>", self.host, self.node.name)
    }
}

/// The keys under a prefix of another host, mirrored locally. Created by `RemoteState.mirror`.
///
/// `for change in replica` returns the current values, then each change, as a Watch does, until the replica
/// or its node is closed. While the host is away the keys keep their values, and `age` grows.
#[pyclass(frozen, name = "Replica", module = "rnet.state", weakref)]
pub(crate) struct PyReplica {
    resource: Arc<Resource<Arc<rust::Replica>>>,
    types: Arc<Types>,
    /// The prefix.
    #[pyo3(get)]
    prefix: String,
    /// Name of the host that the keys belong to.
    #[pyo3(get)]
    host: String,
}

impl PyReplica {
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&rust::Replica) -> rnet::Result<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| act(&*self.resource.get()?)).or_raise(py)
    }

    fn take(&self, py: Python<'_>, limit: &WaitLimit) -> PyResult<Py<PyAny>> {
        let change = limit
            .in_slices(UNINTERRUPTED_CHECK_INTERVAL)
            .run(py, |slice| self.resource.get()?.recv_timeout(slice))?;
        entry::change(py, change, &self.types)
    }
}

#[pymethods]
impl PyReplica {
    /// Seconds since the keys were last known to be current: less than one while the host is connected.
    #[getter]
    fn age(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |replica| Ok(replica.age().as_secs_f64()))
    }

    /// Whether the host is away.
    #[getter]
    fn is_stale(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |replica| Ok(replica.is_stale()))
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.resource.is_closed()
    }

    /// The value of a key with its metadata, as an Entry; None if the key is absent.
    fn entry(&self, py: Python<'_>, key: &str) -> PyResult<Option<Entry>> {
        let found = self.with(py, |replica| replica.entry(key))?.value;
        Ok(found.map(|entry| Entry::new(entry, &self.types)))
    }

    /// The value of a key and its age, as a WithAge.
    fn get_with_age(&self, py: Python<'_>, key: &str) -> PyResult<Py<PyAny>> {
        with_age(py, self.with(py, |replica| replica.entry(key))?, &self.types)
    }

    /// All entries, sorted by key.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<Entry>> {
        let found = self.with(py, |replica| Ok(replica.list()))?.value;
        Ok(found.into_iter().map(|entry| Entry::new(entry, &self.types)).collect())
    }

    /// Waits for the next change, up to `timeout` seconds, without a limit by default. Raises WaitTimeoutError.
    #[pyo3(signature = (*, timeout = None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let limit = WaitLimit::new(py, timeout)?;
        self.take(py, &limit)
    }

    /// The next change if one is available, else None.
    fn try_recv(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let change = self.with(py, rust::Replica::try_recv)?;
        change.map(|change| entry::change(py, change, &self.types)).transpose()
    }

    /// Stops mirroring; loops over it end.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.resource.close());
    }

    fn __repr__(&self) -> String {
        format!("<rnet.state.Replica of {:?} of host {}>", self.prefix, self.host)
    }
}
