//! Messages as values: the message type of an object, and the class that a read value gets.
//!
//! A message is stored with the description of its type, so a reader without that type can decode it. A read
//! value becomes an object of the class that this node has used for a type of that name, if the rules of
//! docs/design/types.md allow it to read the stored type. Otherwise it becomes an object of the class made
//! from the description (`rnet.state.class_of`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict};
use rnet::state::{StateMessage, Value};
use rnet::{Error, MessageType, TypeDesc, inspect};

use crate::codec::Codec;
use crate::errors::{OrRaise, build_of, raise};
use crate::lock::lock;

/// Most types that are cached. A program that creates new types all the time (arrays of new lengths) pays for
/// a lookup each time, and memory stays bounded.
const MAX_CACHED_TYPES: usize = 1024;

/// The classes and types that a node has used.
pub(crate) struct Types {
    /// By class, or by numpy dtype.
    of_class: Py<PyDict>,
    known: Mutex<KnownTypes>,
}

#[derive(Default)]
struct KnownTypes {
    /// By type name, the classes used here: the last one of each name.
    by_name: HashMap<String, Arc<Codec>>,
    /// Codecs that read a stored type, by type name: few types share a name.
    readers: HashMap<String, Vec<(MessageType, Arc<Codec>)>>,
}

impl KnownTypes {
    fn reader(&self, theirs: &MessageType) -> Option<Arc<Codec>> {
        let of_name = self.readers.get(name_of(theirs))?;
        of_name.iter().find(|(read, _)| read == theirs).map(|(_, codec)| codec.clone())
    }
}

/// A codec as a Python object, so that a dict can hold it.
#[pyclass(frozen, module = "rnet._rnet")]
struct CodecObject(Arc<Codec>);

/// The name of a message type; empty for bytes.
fn name_of(message_type: &MessageType) -> &str {
    match message_type {
        MessageType::Raw => "",
        MessageType::Plain(plain) => &plain.name,
        MessageType::Protobuf(schema) => schema.name(),
    }
}

/// Whether a reader with `ours` can read what was written as `theirs`.
fn can_read(ours: &MessageType, theirs: &MessageType) -> bool {
    !inspect::compare_types(theirs, ours).iter().any(|change| change.breaking)
}

impl Types {
    pub(crate) fn new(py: Python<'_>) -> Types {
        Types { of_class: PyDict::new(py).unbind(), known: Mutex::default() }
    }

    /// The codec of a class, created at its first use.
    fn codec(&self, class: &Bound<'_, PyAny>) -> PyResult<Arc<Codec>> {
        let py = class.py();
        let of_class = self.of_class.bind(py);
        if let Some(held) = of_class.get_item(class)? {
            return Ok(held.cast::<CodecObject>()?.get().0.clone());
        }
        let codec = Arc::new(Codec::new(py, Some(class))?);
        if of_class.len() >= MAX_CACHED_TYPES {
            of_class.clear();
        }
        of_class.set_item(class, Py::new(py, CodecObject(codec.clone()))?)?;
        let mut known = lock(&self.known);
        if known.by_name.len() >= MAX_CACHED_TYPES {
            known.by_name.clear();
        }
        known.by_name.insert(name_of(&codec.message_type).to_owned(), codec.clone());
        // Values that were read without this class may be read with it now.
        known.readers.clear();
        Ok(codec)
    }

    /// The message for an object of a class.
    pub(crate) fn message_of(
        &self,
        key: &str,
        object: &Bound<'_, PyAny>,
        class: &Bound<'_, PyAny>,
    ) -> PyResult<Value> {
        let codec = self.codec(class)?;
        let bytes = codec.bytes(object, key)?.as_slice().to_vec();
        let message = StateMessage::new(codec.message_type.clone(), bytes);
        message.or_raise(object.py()).map(Value::Message)
    }

    /// The object for a message that was read.
    pub(crate) fn object_of<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        message: &StateMessage,
    ) -> PyResult<Bound<'py, PyAny>> {
        let theirs = message.message_type();
        let found = lock(&self.known).reader(theirs);
        let reader = match found {
            Some(reader) => reader,
            None => self.choose_reader(py, theirs)?,
        };
        make(py, key, &reader, message)
    }

    /// Like [`Types::object_of`], as an object of `class`.
    pub(crate) fn object_as<'py>(
        &self,
        class: &Bound<'py, PyAny>,
        key: &str,
        message: &StateMessage,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let codec = self.codec(class)?;
        let (ours, theirs) = (&codec.message_type, message.message_type());
        if ours != theirs && !can_read(ours, theirs) {
            return Err(other_type(py, key, &theirs.desc().to_string(), ours));
        }
        make(py, key, &codec, message)
    }

    /// The error if a message of `class` was requested and the key has another value, `holds`.
    pub(crate) fn not_a_message(
        &self,
        class: &Bound<'_, PyAny>,
        key: &str,
        holds: &str,
    ) -> PyResult<PyErr> {
        Ok(other_type(class.py(), key, holds, &self.codec(class)?.message_type))
    }

    /// Finds the class that reads what was written as `theirs`.
    #[cold]
    fn choose_reader(&self, py: Python<'_>, theirs: &MessageType) -> PyResult<Arc<Codec>> {
        let used = lock(&self.known).by_name.get(name_of(theirs)).cloned();
        let reader = match used.filter(|codec| can_read(&codec.message_type, theirs)) {
            Some(codec) => codec,
            None => Arc::new(Codec::new(py, Some(&class_of(py, theirs)?))?),
        };
        let mut known = lock(&self.known);
        if known.readers.values().map(Vec::len).sum::<usize>() >= MAX_CACHED_TYPES {
            known.readers.clear();
        }
        let of_name = known.readers.entry(name_of(theirs).to_owned()).or_default();
        of_name.push((theirs.clone(), reader.clone()));
        Ok(reader)
    }
}

/// The class for a type description.
fn class_of<'py>(py: Python<'py>, described: &MessageType) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("rnet.state_values")?;
    match described {
        MessageType::Protobuf(schema) => {
            let set = PyBytes::new(py, &schema.descriptor_set_with_docs());
            module.call_method1("protobuf_class", (set, schema.name()))
        }
        other => module.call_method1("plain_class", (other.desc().to_json(),)),
    }
}

fn other_type(py: Python<'_>, key: &str, holds: &str, ours: &MessageType) -> PyErr {
    let given = match ours.desc() {
        TypeDesc::Raw => "bytes".to_owned(),
        described => described.to_string(),
    };
    raise(py, &Error::StateType { key: key.to_owned(), holds: holds.to_owned(), given })
}

fn make<'py>(
    py: Python<'py>,
    key: &str,
    reader: &Codec,
    message: &StateMessage,
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new(py, message.bytes());
    reader.object(&bytes)?.map_err(|why| malformed(py, key, &why))
}

/// `rnet.errors.MalformedError`, worded for a value: the error of a topic describes messages.
pub(crate) fn malformed(py: Python<'_>, key: &str, why: &str) -> PyErr {
    let fields = [("topic", key), ("publisher_node", ""), ("why", why)].into_py_dict(py);
    let text = format!("the value of {key} is malformed: {why}; write it again, or delete it");
    match fields {
        Ok(fields) => build_of(py, "MalformedError", text, Some(&fields)),
        Err(while_building) => while_building,
    }
}
