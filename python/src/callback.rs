//! Functions that the user gives, to be called later.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::raised;

/// An argument that can be called: what cannot is refused where it is given, not when the first
/// message comes.
pub(crate) struct Callback(Py<PyAny>);

impl Callback {
    pub(crate) fn into_inner(self) -> Py<PyAny> {
        self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Callback {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Callback> {
        if object.is_callable() {
            return Ok(Callback(object.to_owned().unbind()));
        }
        let shown = object.repr()?;
        Err(PyTypeError::new_err(format!("{shown} cannot be called: give a function")))
    }
}

/// Counts an exception of a callback, and shows it as Python shows what nobody catches.
pub(crate) fn report(py: Python<'_>, error: PyErr, callback: &Py<PyAny>) {
    raised::count(&error, callback.bind(py));
    error.write_unraisable(py, Some(callback.bind(py)));
}
