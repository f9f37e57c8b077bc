//! Errors of rnet as exceptions of `rnet.errors`, field by field.

use std::path::Path;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use rnet::Error;

static BY_CODE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|while_building| while_building)
}

pub(crate) fn closed(py: Python<'_>, what: impl Into<String>) -> PyErr {
    raise(py, &Error::Closed { what: what.into() })
}

pub(crate) fn bad_value(py: Python<'_>, what: impl Into<String>, why: impl Into<String>) -> PyErr {
    raise(py, &Error::BadValue { what: what.into(), why: why.into() })
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let by_code = BY_CODE.get_or_try_init(py, || {
        Ok::<_, PyErr>(
            py.import("rnet.errors")?.getattr("BY_CODE")?.cast_into::<PyDict>()?.unbind(),
        )
    })?;
    let Some(class) = by_code.bind(py).get_item(error.code())? else {
        return Ok(PyRuntimeError::new_err(format!("[{}] {error}", error.code())));
    };
    let exception = class.call((error.to_string(),), Some(&fields(py, error)?))?;
    Ok(PyErr::from_value(exception))
}

/// An exception of a class of `rnet.errors`, with fields in addition to its text.
pub(crate) fn build_of(
    py: Python<'_>,
    class: &str,
    text: String,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyErr {
    let class = py.import("rnet.errors").and_then(|errors| errors.getattr(class));
    let built = class.and_then(|class| class.call((text,), fields));
    built.map_or_else(|while_building| while_building, PyErr::from_value)
}

/// Whether the error means that one message could not be decoded: iterations continue after it.
pub(crate) fn is_malformed(py: Python<'_>, error: &PyErr) -> bool {
    is_of_class(py, error, "MalformedError")
}

/// Whether it is of a class of `rnet.errors`.
pub(crate) fn is_of_class(py: Python<'_>, error: &PyErr, name: &str) -> bool {
    let class = py.import("rnet.errors").and_then(|errors| errors.getattr(name));
    class.is_ok_and(|class| error.is_instance(py, &class))
}

/// Puts values into a dict, by the names of their variables or by those given.
macro_rules! put {
    ($dict:ident, $($name:ident $(= $value:expr)?),*) => {{
        $(put!(@one $dict, $name $(, $value)?);)*
    }};
    (@one $dict:ident, $name:ident) => { $dict.set_item(stringify!($name), $name)? };
    (@one $dict:ident, $name:ident, $value:expr) => {
        $dict.set_item(stringify!($name), $value)?
    };
}
pub(crate) use put;

/// The fields of an error, by their Rust names.
fn fields<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    put!(dict, topic = error.topic(), node = error.node());
    let shown = |path: &Path| path.display().to_string();
    match error {
        Error::BadName { what, name, why } => put!(dict, what, name, why),
        Error::MessageTooLarge { len, limit, .. } => put!(dict, len, limit),
        Error::IncompatibleType { publisher_node, subscriber_node, detail, .. } => {
            put!(dict, publisher_node, subscriber_node, field_path = &detail.field_path);
            put!(dict, publisher = &detail.publisher, subscriber = &detail.subscriber);
        }
        Error::IncompatibleQos { publisher_node, subscriber_node, why, .. } => {
            put!(dict, publisher_node, subscriber_node, why);
        }
        Error::Full { reader_node, .. } => {
            let reader_node = &**reader_node;
            put!(dict, reader_node);
        }
        Error::Timeout { what, after_ms, .. } => put!(dict, what, after = in_seconds(*after_ms)),
        Error::Detached { publisher_node, stall_ms, .. } => {
            put!(dict, publisher_node, stall = in_seconds(*stall_ms));
        }
        Error::OutOfMemory { needed_bytes, limit_bytes, why, .. } => {
            put!(dict, needed_bytes, limit_bytes, why);
        }
        Error::LimitReached { what, limit, hint } => put!(dict, what, limit, hint),
        Error::TooManyPins { limit, .. } => put!(dict, limit),
        Error::NameTaken { pid, .. } => put!(dict, pid),
        Error::NoPermission { path, why } => put!(dict, path = shown(path), why),
        Error::LayoutVersion { path, found, ours } => {
            put!(dict, path = shown(path), found, ours);
        }
        Error::Corrupt { publisher_node, what, .. } => put!(dict, publisher_node, what),
        Error::Malformed { publisher_node, why, .. } => put!(dict, publisher_node, why),
        Error::Closed { what } => put!(dict, what),
        Error::BadQos { why, .. } => put!(dict, why),
        Error::BadValue { what, why } => put!(dict, what, why),
        Error::Conflict { key, expected, found } => put!(dict, key, expected, found),
        Error::StateType { key, holds, given } => put!(dict, key, holds, given),
        Error::Storage { path, why } => put!(dict, path = shown(path), why),
        Error::Io { doing, path, source } => {
            put!(dict, doing, path = shown(path), errno = source.code);
        }
        Error::ServerLost { host, .. } => put!(dict, host),
        Error::HomeAway { key, host, why, may_hold } => put!(dict, key, host, why, may_hold),
        Error::CallFailed { failure, .. } => put!(dict, kind = &failure.kind, text = &failure.text),
        Error::Refused { backlog, running, .. } => {
            put!(dict, backlog, running = Some(running).filter(|node| !node.is_empty()));
        }
        Error::Cancelled { reason, .. } => put!(dict, reason = reason.name()),
        Error::CallLost { lost, .. } => put!(dict, lost),
        Error::NotInForce { why, .. } => put!(dict, why),
        // The error has no fields, or is newer than this package, which then shows only its text.
        _ => {}
    }
    Ok(dict)
}

fn in_seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

/// Turns a result of rnet into one of Python.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for rnet::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, &error))
    }
}
