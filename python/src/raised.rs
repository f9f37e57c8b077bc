//! What the user's functions raise on threads of a node.

use pyo3::prelude::*;
use rnet::CallbackErrors;

/// Counts an exception of a function, and reports it on the topic `/log`, for the node whose thread this is.
pub(crate) fn count(error: &PyErr, function: &Bound<'_, PyAny>) {
    let py = function.py();
    let Some(errors) = CallbackErrors::of_this_thread() else { return };
    let named = function.getattr("__qualname__").and_then(|name| name.extract::<String>());
    let name =
        named.or_else(|_| function.repr()?.extract()).unwrap_or_else(|_| "a callback".into());
    let Some(unreported) = errors.count(&name) else { return };
    let described = py.import("rnet._raised").and_then(|module| {
        // Before it is raised again, an exception may not have its traceback yet.
        if let Some(traceback) = error.traceback(py) {
            error.value(py).setattr("__traceback__", traceback)?;
        }
        module.call_method1("describe", (error.value(py),))?.extract::<(String, String, u32)>()
    });
    let (text, file, line) = described.unwrap_or_else(|_| (error.to_string(), String::new(), 0));
    // The first line of the log opens a publisher.
    py.detach(|| errors.report(&name, &text, unreported, &file, line));
}
