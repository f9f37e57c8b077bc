//! `rnet.Sample`: a received message, read where it is.

use std::sync::{Arc, OnceLock};

use pyo3::BoundObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyType};
use rnet::{Error, OwnedSample};

use crate::codec::Codec;
use crate::export::{Body, Getter, Memory, getter, make_type, new_object};
use crate::fork::Own;
use crate::meta;

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The Python type.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(CLASS.get_or_try_init(py, || make_type::<SampleBody>(py))?.bind(py))
}

/// A sample as a Python object; `decoder` makes its value.
pub(crate) fn new<'py>(
    py: Python<'py>,
    sample: OwnedSample<[u8]>,
    decoder: Arc<Codec>,
) -> PyResult<Bound<'py, PyAny>> {
    let sample = Own::new(sample);
    new_object(class(py)?, SampleBody { sample, decoder, told: OnceLock::new() })
}

struct SampleBody {
    sample: Own<OwnedSample<[u8]>>,
    decoder: Arc<Codec>,
    /// That it is malformed, once that is known.
    told: OnceLock<Error>,
}

/// An attribute's value as an object.
fn value<'py, T: IntoPyObject<'py>>(object: &Bound<'py, PyAny>, value: T) -> PyResult<Py<PyAny>> {
    Ok(value.into_pyobject(object.py()).map_err(Into::into)?.into_any().unbind())
}

impl Body for SampleBody {
    const NAME: &'static std::ffi::CStr = c"rnet.Sample";
    const DOC: &'static std::ffi::CStr = c"A received message.

It has the buffer protocol, read-only: bytes(sample), memoryview(sample) and
numpy.frombuffer(sample, dtype) work, and the latter two copy nothing. The memory of a large
message (more than 4096 bytes) is the publisher's own; of a small one the copy that the subscriber
made of the log. It stays as it is as long as the sample or any view of it lives, even after
subscriber and node are closed. A subscriber can hold 64 large samples per publisher at a time.

>>> scans, heard = node.publisher(\"/scan\"), node.subscribe(\"/scan\")
>>> scans.wait_for_subscribers()
>>> scans.send(b\"1.5\")
>>> sample = heard.recv(timeout=10)
>>> bytes(sample), sample.sent_ns <= rnet.now_ns()
(b'1.5', True)";

    fn getters() -> Vec<Getter<Self>> {
        vec![
            getter(c"data", c"The message, as a read-only memoryview.", |object, _| value(object, PyMemoryView::from(object)?)),
            getter(c"value", c"The message as an object of the subscriber's type, made anew each time; of raw bytes, the sample itself.
Raises Malformed for bytes that are no message of a protobuf type.", |object, body| {
                    Ok(body.decoder.value_of_sample(object, &body.sample, &body.told)?.unbind())
                }),
            getter(c"seq", c"Number of the message, counted per publisher from 0.", |object, body| value(object, body.sample.seq())),
            getter(c"sent_ns", c"When it was sent, in ns of CLOCK_MONOTONIC: the clock of time.monotonic_ns().", |object, body| value(object, body.sample.sent_ns())),
            getter(c"taken_ns", c"When the subscriber took it out of the log, in ns of the same clock.", |object, body| value(object, body.sample.taken_ns())),
            getter(c"latency_ns", c"How long it took from sending to taking, in ns.", |object, body| {
                    value(object, body.sample.taken_ns().saturating_sub(body.sample.sent_ns()))
                }),
            getter(c"origin", c"Where it was first sent, an Origin, if it is forwarded and says so; else None.", |object, body| meta::origin(object.py(), body.sample.origin())),
            getter(c"source_ns", c"The time of its source, in ns since 1970 UTC; None if it does not say so.", |object, body| value(object, body.sample.source_ns())),
            getter(c"correlation", c"What ties it to another message, a number; None if it does not say so.", |object, body| value(object, body.sample.correlation())),
            getter(c"gap", c"What its publisher knows to be missing right before it, a KnownGap; None for nothing.", |object, body| meta::gap(object.py(), body.sample.meta().gap)),
            getter(c"last_will", c"Whether it is its publisher's last will: the process of the publisher has died.", |object, body| {
                    value(object, body.sample.is_last_will())
                }),
            getter(c"publisher", c"Id of the publisher, the same for all its messages.", |object, body| value(object, body.sample.publisher())),
        ]
    }

    fn lend(&self) -> Result<Memory, &'static str> {
        let bytes: &[u8] = &self.sample;
        Ok(Memory { at: bytes.as_ptr(), len: bytes.len(), writable: false })
    }

    fn len(&self) -> usize {
        self.sample.len()
    }

    fn describe(&self) -> String {
        let (len, seq, publisher) = (self.sample.len(), self.sample.seq(), self.sample.publisher());
        format!("<rnet.Sample: {len} bytes, seq {seq}, publisher {publisher:#x}>")
    }
}
