//! Names of topics, services, actions and queues as arguments.

use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// The name of a topic, service, action or queue. In ROS 2 the type comes first, so the error for a type says
/// that.
pub(crate) struct Name(String);

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Name> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Name(text.to_str()?.to_owned()));
        }
        let why = match object.cast::<PyType>() {
            Ok(class) => {
                let class = class.name()?;
                format!(
                    "the name comes first and the type second, as in publisher(\"/topic\", {class}); got \
                     the class {class} as name"
                )
            }
            Err(_) => {
                let (shown, class) = (object.repr()?, object.get_type().name()?);
                format!("a name must be a str, not {shown} ({class})")
            }
        };
        Err(PyTypeError::new_err(why))
    }
}
