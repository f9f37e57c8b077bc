//! Services: `rnet.Service`, `rnet.Client`, `rnet.Call`; actions: `rnet.ActionClient`, `rnet.Goal`; work queues:
//! `rnet.Pusher`, `rnet.Puller`, `rnet.Job`.
//!
//! Publishers send while a lock of the client is held. That lock is never held while Python runs, so every
//! operation that may wait for it runs without the GIL.

mod action;
mod call;
mod client;
mod goal;
mod pull;
mod push;
mod service;
mod shared_client;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rnet::{CancelReason, MessageType};

use crate::codec::Codec;
use crate::errors::bad_value;

pub(crate) use action::{ActionClient, ActionContext, open as open_action};
pub(crate) use call::Call;
pub(crate) use client::Client;
pub(crate) use goal::Goal;
pub(crate) use pull::{Job, JobContext, Puller, open_handler};
pub(crate) use push::{PushSettings, Pusher};
pub(crate) use service::{CallContext, Service};

/// A count, as Python passes it.
fn count(py: Python<'_>, what: &str, given: i64) -> PyResult<usize> {
    let why = || format!("it is {given}, and must be 0 or more");
    usize::try_from(given).map_err(|_| bad_value(py, what, why()))
}

/// The name of the reason why a call is no longer wanted.
fn reason_name(reason: Option<CancelReason>) -> Option<&'static str> {
    reason.map(CancelReason::name)
}

/// Runs `with` on the encoded bytes of an object.
pub(crate) fn with_encoded<R>(
    codec: &Codec,
    object: &Bound<'_, PyAny>,
    place: &str,
    with: impl FnOnce(&[u8]) -> R,
) -> PyResult<R> {
    Ok(with(codec.bytes(object, place)?.as_slice()))
}

/// Runs `with` on the encoded result of a handler: empty bytes if a reply without a type is `None`.
fn with_encoded_reply<R>(
    codec: &Codec,
    object: &Bound<'_, PyAny>,
    place: &str,
    with: impl FnOnce(&[u8]) -> R,
) -> PyResult<R> {
    if object.is_none() && matches!(codec.message_type, MessageType::Raw) {
        return Ok(with(&[]));
    }
    with_encoded(codec, object, place, with)
}

/// The object for received bytes; `what` names them in errors.
pub(crate) fn decoded(
    py: Python<'_>,
    codec: &Codec,
    bytes: &[u8],
    what: &str,
) -> PyResult<Py<PyAny>> {
    let made = codec.object(&PyBytes::new(py, bytes))?;
    made.map(Bound::unbind).map_err(|why| bad_value(py, what, format!("it is malformed: {why}")))
}
