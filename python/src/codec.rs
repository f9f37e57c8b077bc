//! The type of a topic's messages, as `rnet.types` describes it.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};
use rnet::schema::{DecodeLimits, Dynamic, Schema, validate};
use rnet::{Error, MalformedCounter, MessageType, TypeDesc};

use crate::buffer::Bytes;
use crate::errors::{self, OrRaise};
use crate::receive::RawSample;
use crate::{sample, schema};

/// Longest protobuf message that is decoded without a check, in bytes (64 KiB). The runtime does not limit
/// what it builds: two bytes can become tens. So rnet first checks a longer message against its limits.
const MAX_UNCHECKED_LEN_BYTES: usize = 64 << 10;

/// Converts objects to messages and messages to objects. For raw bytes all fields are empty.
pub(crate) struct Codec {
    pub(crate) message_type: MessageType,
    /// The class that sent objects must have.
    class: Option<Py<PyAny>>,
    /// Converts a sent object to an object with the buffer protocol.
    encode: Option<Py<PyAny>>,
    /// Sends an object by writing it to a loan.
    pub(crate) send: Option<Py<PyAny>>,
    decode: Decode,
    /// The type as the user gave it.
    given: Option<Py<PyAny>>,
    /// The row description of `rnet.batch`, once it was requested.
    rows: PyOnceLock<Py<PyAny>>,
    /// Counts the malformed messages of a subscriber.
    malformed_counter: MalformedCounter,
}

/// The object that the user gets for a message.
enum Decode {
    /// Its sample.
    Sample,
    /// Its bytes, copied.
    Bytes,
    /// The result of `make` for its sample, or the exception that it raises for a malformed message.
    Object { make: Py<PyAny>, raises: Option<Py<PyAny>> },
    /// The result of `make` for its bytes, or the exception that it raises for malformed bytes.
    Message { make: Py<PyAny>, raises: Py<PyAny>, schema: Schema },
}

impl Codec {
    /// Calls `rnet.types.codec` for a type as the user gave it.
    pub(crate) fn new(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Codec> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Codec {
                message_type: MessageType::Raw,
                class: None,
                encode: None,
                send: None,
                decode: Decode::Sample,
                given: None,
                rows: PyOnceLock::new(),
                malformed_counter: MalformedCounter::default(),
            });
        };
        let codec = py.import("rnet.codec")?.call_method1("codec", (given,))?;
        let part =
            |name: &str| Ok::<_, PyErr>(codec.getattr(name)?.extract::<Option<Py<PyAny>>>()?);
        let described = codec.getattr("described")?;
        let made = part("decode")?;
        let message_type = described_type(&described)?;
        let decode = match (&message_type, part("raises")?, made) {
            (MessageType::Protobuf(schema), Some(raises), Some(make)) => {
                Decode::Message { make, raises, schema: schema.clone() }
            }
            (_, raises, Some(make)) => Decode::Object { make, raises },
            (_, _, None) => Decode::Bytes,
        };
        Ok(Codec {
            message_type,
            class: part("cls")?,
            encode: part("encode")?,
            send: part("send")?,
            decode,
            given: Some(given.clone().unbind()),
            rows: PyOnceLock::new(),
            malformed_counter: MalformedCounter::default(),
        })
    }

    /// Whether messages are arbitrary bytes, sent unchanged.
    pub(crate) fn is_raw(&self) -> bool {
        self.class.is_none() && self.encode.is_none()
    }

    /// The `rnet.batch.Rows` of the type.
    pub(crate) fn rows<'a, 'py>(
        &'a self,
        py: Python<'py>,
        topic: &str,
    ) -> PyResult<&'a Bound<'py, PyAny>> {
        let uneven = match &self.message_type {
            MessageType::Protobuf(schema) => Some(format!("protobuf messages {}", schema.name())),
            MessageType::Plain(plain) if plain.tail => {
                Some(format!("{}, whose length varies", plain.name))
            }
            MessageType::Plain(_) | MessageType::Raw => None,
        };
        if let Some(uneven) = uneven {
            return Err(PyTypeError::new_err(format!(
                "recv_many and send_many need messages of one fixed length, but those of {topic} are \
                 {uneven}: use recv and send"
            )));
        }
        let make = || {
            let class = py.import("rnet.batch")?.getattr("Rows")?;
            Ok::<_, PyErr>(class.call1((self.given.as_ref(), topic))?.unbind())
        };
        Ok(self.rows.get_or_try_init(py, make)?.bind(py))
    }

    /// The object whose memory is the message. `place`: its destination, for errors.
    pub(crate) fn encode<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        place: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = object.py();
        if let Some(class) = &self.class
            && !object.is_instance(class.bind(py))?
        {
            let name = py.import("rnet.codec")?.getattr("name_of")?;
            let wanted = name.call1((class,))?;
            let got = name.call1((object.get_type(),))?;
            let hint = match wanted.eq(&got)? {
                true => {
                    " with a different definition: use the class that the topic was opened with"
                }
                false => "",
            };
            return Err(PyTypeError::new_err(format!(
                "cannot send a {got} here: the topic's messages are {wanted}{hint} ({place})"
            )));
        }
        match &self.encode {
            Some(encode) => {
                encode.bind(py).call1((object,)).map_err(|error| with_place(py, error, place))
            }
            None => Ok(object.clone()),
        }
    }

    /// The bytes of a message. A message that is usually written to a loan is copied into bytes.
    pub(crate) fn bytes<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        place: &str,
    ) -> PyResult<Bytes<'py>> {
        let mut object = self.encode(message, place)?;
        if self.send.is_some() {
            object = object.call_method0("__bytes__")?;
        }
        Bytes::of(&object)
    }

    /// An object for bytes that Python already owns; or the reason why they are malformed.
    #[inline]
    pub(crate) fn object<'py>(
        &self,
        bytes: &Bound<'py, PyBytes>,
    ) -> PyResult<Result<Bound<'py, PyAny>, String>> {
        let py = bytes.py();
        match &self.decode {
            Decode::Sample | Decode::Bytes => Ok(Ok(bytes.clone().into_any())),
            Decode::Object { make, raises } => {
                let longer = self.zero_extended(py, bytes.as_bytes());
                make_object(longer.as_ref().unwrap_or(bytes), make, raises.as_ref())
            }
            Decode::Message { make, raises, schema } => {
                decode_protobuf(bytes, make, raises, schema)
            }
        }
    }

    /// A copy of a message with zeros appended, if the publisher's plain type lacks fields of ours.
    #[inline]
    fn zero_extended<'py>(&self, py: Python<'py>, message: &[u8]) -> Option<Bound<'py, PyBytes>> {
        match &self.message_type {
            MessageType::Plain(plain) if !plain.tail && message.len() < plain.size => {
                Some(PyBytes::new(py, &plain.fit(message)))
            }
            _ => None,
        }
    }

    /// The codec for the messages that a subscriber receives.
    pub(crate) fn for_subscriber(self, malformed_counter: MalformedCounter) -> Arc<Codec> {
        Arc::new(Codec { malformed_counter, ..self })
    }
}

/// A type as `rnet.types.Codec` describes it: JSON, or a descriptor set and the full name of one of its
/// messages.
pub(crate) fn described_type(described: &Bound<'_, PyAny>) -> PyResult<MessageType> {
    let py = described.py();
    if let Ok(json) = described.cast::<PyString>() {
        return TypeDesc::from_json(json.to_str()?).and_then(MessageType::try_from).or_raise(py);
    }
    let (set, name): (Bound<'_, PyBytes>, String) = described.extract()?;
    let set = set.as_bytes();
    let made = py.detach(|| Schema::from_descriptor_set(set, &name));
    made.map(MessageType::from).map_err(|error| schema::raise(py, &error))
}

/// An error of `rnet.dtype_encoder`, with the destination of the message added.
#[cold]
fn with_place(py: Python<'_>, error: PyErr, place: &str) -> PyErr {
    let named = || {
        let unfit = py.import("rnet.dtype_encoder")?.getattr("EncodeError")?;
        if !error.is_instance(py, &unfit) {
            return Ok::<_, PyErr>(None);
        }
        let (what, why) = (error.value(py).getattr("what")?, error.value(py).getattr("why")?);
        Ok(Some(PyTypeError::new_err(format!("cannot send {what} on {place}: {why}"))))
    };
    named().ok().flatten().unwrap_or(error)
}

/// The result of `make` for the memory of a message; or the reason why the message is malformed.
#[inline]
fn make_object<'py>(
    memory: &Bound<'py, PyAny>,
    make: &Py<PyAny>,
    raises: Option<&Py<PyAny>>,
) -> PyResult<Result<Bound<'py, PyAny>, String>> {
    let py = memory.py();
    make.bind(py).call1((memory,)).map(Ok).or_else(|raised| match raises {
        Some(raises) if raised.is_instance(py, raises.bind(py)) => {
            Ok(Err(raised.value(py).to_string()))
        }
        _ => Err(raised),
    })
}

/// A protobuf message decoded from its bytes; or the reason why they are malformed.
#[inline]
fn decode_protobuf<'py>(
    bytes: &Bound<'py, PyBytes>,
    make: &Py<PyAny>,
    raises: &Py<PyAny>,
    schema: &Schema,
) -> PyResult<Result<Bound<'py, PyAny>, String>> {
    let py = bytes.py();
    let message = bytes.as_bytes();
    if message.len() > MAX_UNCHECKED_LEN_BYTES {
        let limits = DecodeLimits::default();
        if let Err(error) = py.detach(|| validate(schema, message, &limits)) {
            return Ok(Err(error.to_string()));
        }
    }
    make.bind(py).call1((bytes,)).map(Ok).or_else(|raised| {
        if !raised.is_instance(py, raises.bind(py)) {
            return Err(raised);
        }
        // The runtime only detects an error; rnet-schema finds its position.
        let found = py.detach(|| Dynamic::decode(schema, message).err());
        Ok(Err(found.map_or_else(|| raised.value(py).to_string(), |error| error.to_string())))
    })
}

/// A message whose bytes were copied into a Python object.
pub(crate) struct CopiedMessage<'py> {
    bytes: Bound<'py, PyBytes>,
    publisher: u64,
    seq: u64,
}

impl<'py> CopiedMessage<'py> {
    #[inline]
    pub(crate) fn new(
        py: Python<'py>,
        bytes: &[u8],
        publisher: u64,
        seq: u64,
    ) -> CopiedMessage<'py> {
        CopiedMessage { bytes: PyBytes::new(py, bytes), publisher, seq }
    }
}

/// Decoding of received messages.
impl Codec {
    /// Whether objects are made from a copy of the bytes, so that a sample is not needed.
    #[inline]
    pub(crate) fn copies(&self) -> bool {
        matches!(self.decode, Decode::Bytes | Decode::Message { .. })
    }

    /// The object that the user gets for a message.
    pub(crate) fn value<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        received: RawSample,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.copies() {
            let copied = CopiedMessage::new(py, &received, received.publisher(), received.seq());
            // A large message is not pinned longer than needed.
            drop(received);
            return self.value_of_copy(copied);
        }
        let from = (received.publisher(), received.seq());
        let Decode::Object { make, raises } = &self.decode else {
            return sample::new(py, received, self.clone());
        };
        let memory = match self.zero_extended(py, &received) {
            Some(longer) => longer.into_any(),
            None => sample::new(py, received, self.clone())?,
        };
        let made = make_object(&memory, make, raises.as_ref())?;
        made.map_err(|why| self.malformed(py, why, from, &OnceLock::new()))
    }

    /// Like [`Codec::value`], for a sample that the user has; `counted_error` is kept with it.
    pub(crate) fn value_of_sample<'py>(
        &self,
        sample: &Bound<'py, PyAny>,
        received: &RawSample,
        counted_error: &OnceLock<Error>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = sample.py();
        match &self.decode {
            Decode::Sample => Ok(sample.clone()),
            Decode::Object { make, raises } => {
                let longer = self.zero_extended(py, received).map(Bound::into_any);
                let made = make_object(longer.as_ref().unwrap_or(sample), make, raises.as_ref())?;
                let from = (received.publisher(), received.seq());
                made.map_err(|why| self.malformed(py, why, from, counted_error))
            }
            Decode::Bytes | Decode::Message { .. } => {
                let copied = CopiedMessage::new(py, received, received.publisher(), received.seq());
                self.value_of_copy_once(copied, counted_error)
            }
        }
    }

    /// Like [`Codec::value`], if [`Codec::copies`] is true.
    #[inline]
    pub(crate) fn value_of_copy<'py>(
        &self,
        copied: CopiedMessage<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.value_of_copy_once(copied, &OnceLock::new())
    }

    /// `counted_error`: the error made earlier for this message, which is counted only once.
    #[inline]
    fn value_of_copy_once<'py>(
        &self,
        copied: CopiedMessage<'py>,
        counted_error: &OnceLock<Error>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = self.object(&copied.bytes)?;
        made.map_err(|why| {
            self.malformed(copied.bytes.py(), why, (copied.publisher, copied.seq), counted_error)
        })
    }

    /// `from`: publisher and number of the message.
    #[cold]
    fn malformed(
        &self,
        py: Python<'_>,
        why: String,
        (publisher, seq): (u64, u64),
        counted_error: &OnceLock<Error>,
    ) -> PyErr {
        let error = py.detach(|| {
            counted_error.get_or_init(|| self.malformed_counter.malformed(publisher, why))
        });
        let malformed = errors::raise(py, error);
        match malformed.value(py).setattr("seq", seq) {
            Ok(()) => malformed,
            Err(while_setting) => while_setting,
        }
    }
}
