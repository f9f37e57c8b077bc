//! The type of a topic's messages, as `rnet.types` describes it.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use rnet::{MessageType, TypeDesc};

use crate::errors::OrRaise;

/// How objects become messages and messages objects. Raw bytes have none of it.
pub(crate) struct Codec {
    pub(crate) message_type: MessageType,
    /// The class of which sent objects must be.
    class: Option<Py<PyAny>>,
    /// Makes an object with the buffer protocol of what is sent.
    encode: Option<Py<PyAny>>,
    /// Makes the user's object of a sample.
    pub(crate) decode: Option<Py<PyAny>>,
    /// Whether the user's objects are `bytes`: messages without a type, copied.
    pub(crate) is_bytes: bool,
    /// The type as the user gave it.
    given: Option<Py<PyAny>>,
    /// What `rnet.batch` knows of it, once it was asked.
    rows: PyOnceLock<Py<PyAny>>,
}

impl Codec {
    /// Asks `rnet.types.codec` for a type as the user gave it.
    pub(crate) fn new(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Codec> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Codec {
                message_type: MessageType::Raw,
                class: None,
                encode: None,
                decode: None,
                is_bytes: false,
                given: None,
                rows: PyOnceLock::new(),
            });
        };
        let codec = py.import("rnet.types")?.call_method1("codec", (given,))?;
        let json: String = codec.getattr("json")?.extract()?;
        let part =
            |name: &str| Ok::<_, PyErr>(codec.getattr(name)?.extract::<Option<Py<PyAny>>>()?);
        let message_type = TypeDesc::from_json(&json).and_then(MessageType::try_from);
        Ok(Codec {
            message_type: message_type.or_raise(py)?,
            class: part("cls")?,
            encode: part("encode")?,
            decode: part("decode")?,
            is_bytes: given.is(py.get_type::<PyBytes>()),
            given: Some(given.clone().unbind()),
            rows: PyOnceLock::new(),
        })
    }

    /// Whether messages are bytes of any kind, sent as they are.
    pub(crate) fn is_raw(&self) -> bool {
        self.class.is_none() && self.encode.is_none()
    }

    /// The `rnet.batch.Rows` of the type.
    pub(crate) fn rows<'a, 'py>(
        &'a self,
        py: Python<'py>,
        topic: &str,
    ) -> PyResult<&'a Bound<'py, PyAny>> {
        let make = || {
            let class = py.import("rnet.batch")?.getattr("Rows")?;
            Ok::<_, PyErr>(class.call1((self.given.as_ref(), topic))?.unbind())
        };
        Ok(self.rows.get_or_try_init(py, make)?.bind(py))
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
