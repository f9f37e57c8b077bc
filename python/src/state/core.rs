//! What the objects of one node's state share.

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

/// From this length on a value is copied without the GIL: below, letting go of it and getting it
/// back costs more than the copy, and a thread that computes keeps it for 5 ms.
const LARGE_LEN_BYTES: usize = 64 << 10;

pub(crate) struct StateCore {
    /// Whose state it is, for errors.
    node: String,
    resource: Resource<State>,
    pub(crate) types: Arc<Types>,
    pub(crate) members: Members,
}

/// How a key is to be written.
#[derive(Default)]
pub(crate) struct WriteOptions {
    pub(crate) if_revision: Option<u64>,
    pub(crate) ttl: Option<Duration>,
    /// The same as a moment.
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

    /// Runs something short that does not wait, with or without the GIL.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&State) -> rnet::Result<R>) -> rnet::Result<R> {
        self.resource.with(|state| act(state))
    }

    /// Runs what may wait, or takes long.
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

    /// Changes a key; without the GIL where that waits for the disk.
    pub(crate) fn change<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&State) -> rnet::Result<R>,
    ) -> PyResult<R> {
        // Not under the lock: who closes the state would wait for it, and those with the GIL behind him.
        let state = self.resource.get().or_raise(py)?;
        let done = disk::write(py, || act(&state));
        self.resource.drop_clone(state);
        done
    }

    /// For a write of what was read as `entry`: only as long as that stands there, and what the key has
    /// beside its value stays, as in the changes of crate `rnet`.
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
    /// Closes it, with watches and transactions.
    fn close(&self) {
        if !self.resource.is_from_parent() {
            self.members.close();
            self.resource.close();
        }
    }
}

/// What `in` comes to, by what a read has found.
pub(crate) fn exists<R>(py: Python<'_>, found: rnet::Result<Option<R>>) -> PyResult<bool> {
    match found {
        Ok(found) => Ok(found.is_some()),
        // As a dict: what can be no key is not in it.
        Err(Error::BadName { .. }) => Ok(false),
        // There is something, whatever it is.
        Err(Error::BadValue { .. }) => Ok(true),
        Err(error) => Err(error).or_raise(py),
    }
}

/// A write under the given options.
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

/// About how many bytes a value has.
fn len_of(value: &Value) -> usize {
    match value {
        Value::Str(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Message(message) => message.bytes().len(),
        Value::List(values) | Value::Set(values) => values.iter().map(len_of).sum(),
        _ => 8,
    }
}
