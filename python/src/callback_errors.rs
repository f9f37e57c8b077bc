//! Exceptions of the user's functions on threads of a node.

use std::sync::Arc;

use pyo3::prelude::*;
use rnet::binding::{CallbackErrors, Report};

/// Counts the exceptions of a node's callbacks that an event loop runs.
#[pyclass(frozen)]
pub(crate) struct ErrorCounter(pub(crate) Arc<CallbackErrors>);

/// The counter of the node that owns this thread.
#[pyfunction]
pub(crate) fn error_counter() -> Option<ErrorCounter> {
    CallbackErrors::of_this_thread().map(ErrorCounter)
}

/// Counts an exception of a function, and reports it on the topic `/log`, for the node that owns this thread.
/// The log also prints it to stderr, unless the caller does (`printed`).
pub(crate) fn count(error: &PyErr, function: &Bound<'_, PyAny>, printed: bool) {
    if let Some(errors) = CallbackErrors::of_this_thread() {
        count_by(&errors, error, function, printed);
    }
}

/// The same for a given node.
pub(crate) fn count_by(
    errors: &CallbackErrors,
    error: &PyErr,
    function: &Bound<'_, PyAny>,
    printed: bool,
) {
    let py = function.py();
    let named = function.getattr("__qualname__").and_then(|name| name.extract::<String>());
    let name =
        named.or_else(|_| function.repr()?.extract()).unwrap_or_else(|_| "a callback".into());
    let Some(unreported) = errors.count(&name) else { return };
    let described = py.import("rnet._callback_errors").and_then(|module| {
        // An exception may lack its traceback until it is raised again.
        if let Some(traceback) = error.traceback(py) {
            error.value(py).setattr("__traceback__", traceback)?;
        }
        module.call_method1("describe", (error.value(py),))?.extract::<(String, String, u32)>()
    });
    let (text, file, line) = described.unwrap_or_else(|_| (error.to_string(), String::new(), 0));
    // The first log line opens a publisher.
    py.detach(|| errors.report(&name, unreported, Report { text, file, line, printed }));
}
