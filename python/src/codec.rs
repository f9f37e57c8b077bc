//! The type of a topic's messages, as `rnet.types` describes it.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rnet::TypeDesc;

use crate::errors::OrRaise;

/// How objects become messages and messages objects. Raw bytes have none of it.
pub(crate) struct Codec {
    pub(crate) desc: TypeDesc,
    /// The class of which sent objects must be.
    class: Option<Py<PyAny>>,
    /// Makes an object with the buffer protocol of what is sent.
    encode: Option<Py<PyAny>>,
    /// Makes the user's object of a sample.
    pub(crate) decode: Option<Py<PyAny>>,
}

impl Codec {
    /// Asks `rnet.types.codec` for a type as the user gave it.
    pub(crate) fn new(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Codec> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Codec { desc: TypeDesc::Raw, class: None, encode: None, decode: None });
        };
        let codec = py.import("rnet.types")?.call_method1("codec", (given,))?;
        let json: String = codec.getattr("json")?.extract()?;
        let part =
            |name: &str| Ok::<_, PyErr>(codec.getattr(name)?.extract::<Option<Py<PyAny>>>()?);
        Ok(Codec {
            desc: TypeDesc::from_json(&json).or_raise(py)?,
            class: part("cls")?,
            encode: part("encode")?,
            decode: part("decode")?,
        })
    }

    /// The object whose memory is the message.
    pub(crate) fn encode<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = object.py();
        if let Some(class) = &self.class
            && !object.is_instance(class.bind(py))?
        {
            let (wanted, got) =
                (class.bind(py).getattr("__name__")?, object.get_type().fully_qualified_name()?);
            return Err(PyTypeError::new_err(format!(
                "cannot send a {got} here: the topic's messages are {wanted}"
            )));
        }
        match &self.encode {
            Some(encode) => encode.bind(py).call1((object,)),
            None => Ok(object.clone()),
        }
    }
}
