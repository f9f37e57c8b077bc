//! Functions of the user that are called later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::callback_errors::{self, ErrorCounter};
use crate::node_core::NodeCore;

/// An argument that must be callable. Other objects are rejected when they are passed, not when the first
/// message arrives.
pub(crate) struct Callback(Py<PyAny>);

impl Callback {
    pub(crate) fn into_inner(self) -> Py<PyAny> {
        self.0
    }

    /// Whether it is an `async def`.
    pub(crate) fn is_async(&self, py: Python<'_>) -> PyResult<bool> {
        event_loop_module(py)?.call_method1("is_async", (&self.0,))?.extract()
    }

    /// The function that threads of robot-net call: the user's function, or for an `async def` an object that
    /// runs it on the event loop of the caller. The last `max_pending` calls wait for the loop; `None` keeps
    /// all.
    pub(crate) fn for_threads(
        &self,
        py: Python<'_>,
        max_pending: Option<usize>,
    ) -> PyResult<Py<PyAny>> {
        Ok(event_loop_module(py)?.call_method1("for_threads", (&self.0, max_pending))?.unbind())
    }

    /// The same for an optional callback.
    pub(crate) fn optional(
        py: Python<'_>,
        callback: Option<Callback>,
        max_pending: Option<usize>,
    ) -> PyResult<Option<Py<PyAny>>> {
        callback.map(|callback| callback.for_threads(py, max_pending)).transpose()
    }

    /// Like [`Callback::for_threads`]; once `over` is set, no call begins.
    pub(crate) fn for_threads_until(
        &self,
        py: Python<'_>,
        max_pending: Option<usize>,
        over: &Arc<AtomicBool>,
    ) -> PyResult<Py<PyAny>> {
        let function = self.for_threads(py, max_pending)?;
        if self.is_async(py)? {
            let over = over.clone();
            let asked = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
                over.load(Ordering::Acquire)
            };
            function.setattr(py, "is_over", PyCFunction::new_closure(py, None, None, asked)?)?;
        }
        Ok(function)
    }

    /// For an `async def`: starts a task on the caller's event loop that calls it with each item of `source`,
    /// a subscriber or a watch, until `node` is closed.
    pub(crate) fn deliver(
        &self,
        source: &Bound<'_, PyAny>,
        on_error: Option<Callback>,
        node: &NodeCore,
    ) -> PyResult<()> {
        let py = source.py();
        let on_error = on_error.map(Callback::into_inner);
        let counter = ErrorCounter(node.with(py, rnet::binding::error_counter)?);
        let arguments = (source, &self.0, on_error, counter);
        event_loop_module(py)?.call_method1("deliver", arguments).map(drop)
    }
}

fn event_loop_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("rnet.event_loop")
}

impl<'py> FromPyObject<'_, 'py> for Callback {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Callback> {
        if object.is_callable() {
            return Ok(Callback(object.to_owned().unbind()));
        }
        let shown = object.repr()?;
        Err(PyTypeError::new_err(format!("{shown} is not callable: pass a function")))
    }
}

/// Counts an exception of a callback, and reports it as Python reports uncaught exceptions.
pub(crate) fn report(py: Python<'_>, error: PyErr, callback: &Py<PyAny>) {
    callback_errors::count(&error, callback.bind(py), true);
    error.write_unraisable(py, Some(callback.bind(py)));
}

/// [`report`] for callbacks that an event loop runs; `counter` counts the exception.
#[pyfunction]
pub(crate) fn report_exception(
    error: Bound<'_, PyAny>,
    callback: Bound<'_, PyAny>,
    counter: Option<PyRef<'_, ErrorCounter>>,
) {
    let py = error.py();
    let error = PyErr::from_value(error);
    if let Some(counter) = counter {
        callback_errors::count_by(&counter.0, &error, &callback, true);
    }
    error.write_unraisable(py, Some(&callback));
}

unsafe extern "C-unwind" {
    fn PyObject_CallObject(function: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject;
}

/// Hangs a thread that is being unwound.
struct HangThread;

impl Drop for HangThread {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls a function of the user on a thread of robot-net.
///
/// Before Python 3.14, a thread that takes the GIL after the end of the interpreter is unwound by
/// `pthread_exit`, which aborts the process in Rust frames. So the innermost of these frames hangs the
/// thread, as Python 3.14 does, and as PyO3 does where it takes the GIL.
pub(crate) fn call<'py, A>(
    function: &Bound<'py, PyAny>,
    arguments: A,
) -> PyResult<Bound<'py, PyAny>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
{
    let py = function.py();
    let arguments = arguments.into_pyobject(py).map_err(Into::into)?;
    let guard = HangThread;
    // SAFETY: both objects are alive, the arguments are a tuple, and we hold the GIL.
    let returned = unsafe { PyObject_CallObject(function.as_ptr(), arguments.as_ptr()) };
    std::mem::forget(guard);
    // SAFETY: the call has returned a reference that we own, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, returned) }
}
