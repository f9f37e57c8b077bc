//! The type of a topic's messages, as `rnet.types` describes it.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use rnet::schema::{Dynamic, Schema};
use rnet::{Error, Faults, MessageType, TypeDesc};

use crate::errors::{self, OrRaise};
use crate::receive::RawSample;
use crate::{sample, schema};

/// How objects become messages and messages objects. Raw bytes have none of it.
pub(crate) struct Codec {
    pub(crate) message_type: MessageType,
    /// The class of which sent objects must be.
    class: Option<Py<PyAny>>,
    /// Makes an object with the buffer protocol of what is sent.
    encode: Option<Py<PyAny>>,
    decode: Decode,
    /// The type as the user gave it.
    given: Option<Py<PyAny>>,
    /// What `rnet.batch` knows of it, once it was asked.
    rows: PyOnceLock<Py<PyAny>>,
}

/// What the user gets for a message.
enum Decode {
    /// Its sample.
    Sample,
    /// Its bytes, copied.
    Bytes,
    /// What this makes of its sample.
    Object(Py<PyAny>),
    /// What this makes of its bytes, or the exception that it raises for bytes that are no message.
    Message { make: Py<PyAny>, raises: Py<PyAny>, schema: Schema },
}

impl Codec {
    /// Asks `rnet.types.codec` for a type as the user gave it.
    pub(crate) fn new(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Codec> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Codec {
                message_type: MessageType::Raw,
                class: None,
                encode: None,
                decode: Decode::Sample,
                given: None,
                rows: PyOnceLock::new(),
            });
        };
        let codec = py.import("rnet.types")?.call_method1("codec", (given,))?;
        let part =
            |name: &str| Ok::<_, PyErr>(codec.getattr(name)?.extract::<Option<Py<PyAny>>>()?);
        let described = codec.getattr("described")?;
        let made = part("decode")?;
        let (message_type, decode) = match (part("raises")?, made) {
            (Some(raises), Some(make)) => {
                let (set, name): (Bound<'_, PyBytes>, String) = described.extract()?;
                let (set, name) = (set.as_bytes(), name.as_str());
                let schema = py.detach(|| Schema::from_descriptor_set(set, name));
                let schema = schema.map_err(|error| schema::raise(py, &error))?;
                let message_type = MessageType::Protobuf(schema.clone());
                (message_type, Decode::Message { make, raises, schema })
            }
            (_, made) => {
                let desc = TypeDesc::from_json(&described.extract::<String>()?);
                let message_type = desc.and_then(MessageType::try_from).or_raise(py)?;
                (message_type, made.map_or(Decode::Bytes, Decode::Object))
            }
        };
        Ok(Codec {
            message_type,
            class: part("cls")?,
            encode: part("encode")?,
            decode,
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
        if let Decode::Message { schema, .. } = &self.decode {
            return Err(PyTypeError::new_err(format!(
                "recv_many and send_many are for messages that all have one length, and those of \
                 {topic} are protobuf messages {}: use recv and send",
                schema.name()
            )));
        }
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
            let name = py.import("rnet.types")?.getattr("name_of")?;
            let wanted = name.call1((class,))?;
            let got = name.call1((object.get_type(),))?;
            let hint = match wanted.eq(&got)? {
                true => ", of another definition: use the class that the topic was opened with",
                false => "",
            };
            return Err(PyTypeError::new_err(format!(
                "cannot send a {got} here: the topic's messages are {wanted}{hint}"
            )));
        }
        match &self.encode {
            Some(encode) => encode.bind(py).call1((object,)),
            None => Ok(object.clone()),
        }
    }

    /// The half that receives.
    pub(crate) fn into_decoder(self, faults: Faults) -> Arc<Decoder> {
        Arc::new(Decoder { codec: self, faults })
    }
}

/// Makes objects of received messages.
pub(crate) struct Decoder {
    codec: Codec,
    faults: Faults,
}

/// A message whose bytes were copied to be Python's.
pub(crate) struct Copied<'py> {
    bytes: Bound<'py, PyBytes>,
    publisher: u64,
    seq: u64,
}

impl<'py> Copied<'py> {
    #[inline]
    pub(crate) fn new(py: Python<'py>, bytes: &[u8], publisher: u64, seq: u64) -> Copied<'py> {
        Copied { bytes: PyBytes::new(py, bytes), publisher, seq }
    }
}

impl Decoder {
    pub(crate) fn rows<'a, 'py>(
        &'a self,
        py: Python<'py>,
        topic: &str,
    ) -> PyResult<&'a Bound<'py, PyAny>> {
        self.codec.rows(py, topic)
    }

    /// Whether objects are made of a copy of the bytes, for which there need be no sample.
    #[inline]
    pub(crate) fn copies(&self) -> bool {
        matches!(self.codec.decode, Decode::Bytes | Decode::Message { .. })
    }

    /// What the user gets for a message.
    pub(crate) fn value<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        received: RawSample,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.copies() {
            let copied = Copied::new(py, &received, received.publisher(), received.seq());
            // A large one is pinned no longer than needed.
            drop(received);
            return self.value_of_copy(copied);
        }
        let sample = sample::new(py, received, self.clone())?;
        match &self.codec.decode {
            Decode::Object(make) => make.bind(py).call1((sample,)),
            _ => Ok(sample),
        }
    }

    /// The same, of a sample that the user has; `told` is kept with it.
    pub(crate) fn value_of_sample<'py>(
        &self,
        sample: &Bound<'py, PyAny>,
        received: &RawSample,
        told: &OnceLock<Error>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = sample.py();
        match &self.codec.decode {
            Decode::Sample => Ok(sample.clone()),
            Decode::Object(make) => make.bind(py).call1((sample,)),
            Decode::Bytes | Decode::Message { .. } => {
                let copied = Copied::new(py, received, received.publisher(), received.seq());
                self.value_of_copy_once(copied, told)
            }
        }
    }

    /// The same, where [`Decoder::copies`] says so.
    #[inline]
    pub(crate) fn value_of_copy<'py>(&self, copied: Copied<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.value_of_copy_once(copied, &OnceLock::new())
    }

    /// `told`: the error that was made of it before, for it is counted but once.
    #[inline]
    fn value_of_copy_once<'py>(
        &self,
        copied: Copied<'py>,
        told: &OnceLock<Error>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Decode::Message { make, raises, schema } = &self.codec.decode else {
            return Ok(copied.bytes.into_any());
        };
        let py = copied.bytes.py();
        make.bind(py).call1((&copied.bytes,)).map_err(|raised| {
            if !raised.is_instance(py, raises.bind(py)) {
                return raised;
            }
            self.malformed(&raised, &copied, schema, told)
        })
    }

    #[cold]
    fn malformed(
        &self,
        raised: &PyErr,
        copied: &Copied<'_>,
        schema: &Schema,
        told: &OnceLock<Error>,
    ) -> PyErr {
        let py = copied.bytes.py();
        let words = raised.value(py).to_string();
        let (bytes, publisher) = (copied.bytes.as_bytes(), copied.publisher);
        // The runtime says that something is wrong, the walk of rnet-schema says where.
        let error = py.detach(|| {
            told.get_or_init(|| {
                let why = Dynamic::decode(schema, bytes).err().map_or(words, |e| e.to_string());
                self.faults.malformed(publisher, why)
            })
        });
        let malformed = errors::raise(py, error);
        match malformed.value(py).setattr("seq", copied.seq) {
            Ok(()) => malformed,
            Err(while_setting) => while_setting,
        }
    }
}
