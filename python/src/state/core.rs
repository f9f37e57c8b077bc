//! State shared by the Python objects of one node's state.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use rnet::Error;
use rnet::state::{Entry, LastWill, Put, State, Value};

use super::disk;
use super::types::Types;
use crate::errors::OrRaise;
use crate::members::{Member, Members};
use crate::qos::OptionalSetters;
use crate::resource::Resource;

/// A value of at least this length is copied without the GIL. For shorter ones, releasing and retaking the
/// GIL costs more than the copy, and a thread that computes keeps the GIL for 5 ms.
const LARGE_LEN_BYTES: usize = 64 << 10;

pub(crate) struct StateCore {
    /// The node that the state belongs to, for errors.
    node: String,
    resource: Resource<State>,
    pub(crate) types: Arc<Types>,
    pub(crate) members: Members,
}

/// The options of a write.
#[derive(Default)]
pub(crate) struct WriteOptions {
    pub(crate) if_revision: Option<u64>,
    pub(crate) ttl: Option<Duration>,
    /// The expiry time: `ttl` as a point in time.
    pub(crate) expires_boot_ns: Option<u64>,
    pub(crate) durable: Option<bool>,
    pub(crate) last_will: Option<LastWill>,
    pub(crate) change_type: bool,
}

impl StateCore {
    pub(crate) fn new(py: Python<'_>, node: &str, inner: State) -> Arc<StateCore> {
        Arc::new(StateCore {
            node: node.to_owned(),
            resource: Resource::new(format!("the state of node {node}"), inner),
            types: Arc::new(Types::new(py)),
            members: Members::new(),
        })
    }

    /// Runs a short operation that does not wait, with or without the GIL.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&State) -> rnet::Result<R>) -> rnet::Result<R> {
        self.resource.with(|state| act(state))
    }

    /// Runs an operation that may wait or takes long.
    pub(crate) fn detached<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&State) -> rnet::Result<R> + Send,
    ) -> PyResult<R> {
        disk::write_detached(py, || act(&self.resource.get()?))
    }

    /// Writes a value; returns the revision.
    pub(crate) fn write(
        &self,
        py: Python<'_>,
        key: &str,
        value: Value,
        options: WriteOptions,
    ) -> PyResult<u64> {
        if len_of(&value) >= LARGE_LEN_BYTES {
            return self.detached(py, move |state| put(state, key, options).set(value));
        }
        self.change(py, move |state| put(state, key, options).set(value))
    }

    /// Changes a key; without the GIL while it waits for the disk.
    pub(crate) fn change<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&State) -> rnet::Result<R>,
    ) -> PyResult<R> {
        // Not under the lock: a thread that closes the state would wait for it, and threads with the GIL
        // behind that one.
        let state = self.resource.get().or_raise(py)?;
        let done = disk::write(py, || act(&state));
        self.resource.drop_clone(state);
        done
    }

    /// Options for a write of a value that was computed from `entry`. The write takes effect only if the key
    /// still has that revision. Its expiry, and a last will of this node, are kept, as with the changes of
    /// crate `rnet`.
    pub(crate) fn options_of(&self, entry: Option<Entry>) -> WriteOptions {
        let Some(entry) = entry else {
            return WriteOptions { if_revision: Some(0), ..WriteOptions::default() };
        };
        WriteOptions {
            if_revision: Some(entry.revision),
            expires_boot_ns: entry.expires_boot_ns,
            last_will: entry.last_will.filter(|_| entry.owner.node == self.node),
            ..WriteOptions::default()
        }
    }
}

impl Member for StateCore {
    /// Closes the state, with its watches and transactions.
    fn close(&self) {
        if !self.resource.is_from_parent() {
            self.members.close();
            self.resource.close();
        }
    }
}

/// The result of `in`, from the result of a read.
pub(crate) fn exists<R>(py: Python<'_>, found: rnet::Result<Option<R>>) -> PyResult<bool> {
    match found {
        Ok(found) => Ok(found.is_some()),
        // As in a dict: an object that cannot be a key is absent.
        Err(Error::BadName { .. }) => Ok(false),
        // The key exists, even if its value cannot be read.
        Err(Error::BadValue { .. }) => Ok(true),
        Err(error) => Err(error).or_raise(py),
    }
}

/// A write with the given options.
pub(crate) fn put<'a>(state: &'a State, key: &'a str, options: WriteOptions) -> Put<'a> {
    state
        .put(key)
        .set_opt(options.if_revision, Put::if_revision)
        .set_opt(options.ttl, Put::ttl)
        .set_opt(options.expires_boot_ns, Put::expires_at_boot_ns)
        .set_opt(options.durable, Put::durable)
        .set_opt(options.last_will, |put, will| match will {
            LastWill::Delete => put.last_will_delete(),
            LastWill::Becomes(value) => put.last_will(value),
        })
        .set_if(options.change_type, |put| put.change_type())
}

/// Approximate size of a value in bytes.
fn len_of(value: &Value) -> usize {
    match value {
        Value::Str(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Message(message) => message.bytes().len(),
        Value::List(values) | Value::Set(values) => values.iter().map(len_of).sum(),
        _ => 8,
    }
}
