//! `rnet.Sample`: a received message, read in place.

use std::sync::{Arc, OnceLock};

use pyo3::BoundObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyType};
use rnet::{Error, OwnedSample};

use crate::codec::Codec;
use crate::export::{BufferExporter, Getter, Memory, getter, make_type, new_object};
use crate::fork::ProcessOwned;
use crate::meta;

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The Python type.
pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(CLASS.get_or_try_init(py, || make_type::<SampleExporter>(py))?.bind(py))
}

/// A sample as a Python object; `decoder` makes its value.
pub(crate) fn new<'py>(
    py: Python<'py>,
    sample: OwnedSample<[u8]>,
    decoder: Arc<Codec>,
) -> PyResult<Bound<'py, PyAny>> {
    let sample = ProcessOwned::new(sample);
    new_object(class(py)?, SampleExporter { sample, decoder, counted_error: OnceLock::new() })
}

struct SampleExporter {
    sample: ProcessOwned<OwnedSample<[u8]>>,
    decoder: Arc<Codec>,
    /// The error for a malformed message, once it was found.
    counted_error: OnceLock<Error>,
}

/// An attribute's value as an object.
fn value<'py, T: IntoPyObject<'py>>(object: &Bound<'py, PyAny>, value: T) -> PyResult<Py<PyAny>> {
    Ok(value.into_pyobject(object.py()).map_err(Into::into)?.into_any().unbind())
}

impl BufferExporter for SampleExporter {
    const NAME: &'static std::ffi::CStr = c"rnet.Sample";
    const DOC: &'static std::ffi::CStr = c"A received message.

It has the buffer protocol, read-only: bytes(sample), memoryview(sample) and
numpy.frombuffer(sample, dtype) work, and the latter two copy nothing. The memory of a large
message (more than 4096 bytes) is the publisher's own; a small one is a copy from the publisher's
log. The content does not change while the sample or a view of it exists, even after the
subscriber and the node are closed. A subscriber can hold 64 large samples per publisher at a time.

>>> scans, heard = node.publisher(\"/scan\"), node.subscriber(\"/scan\")
>>> scans.wait_for_subscribers()
>>> scans.send(b\"1.5\")
>>> sample = heard.recv(timeout=10)
>>> bytes(sample), sample.sent_ns <= rnet.now_ns()
(b'1.5', True)";

    fn getters() -> Vec<Getter<Self>> {
        vec![
            getter(c"data", c"The message, as a read-only memoryview.", |object, _| value(object, PyMemoryView::from(object)?)),
            getter(c"value", c"The message as an object of the subscriber's type, created on each access; for raw bytes, the sample itself.
Raises MalformedError if the bytes do not decode as the protobuf type.", |object, body| {
                    Ok(body.decoder.value_of_sample(object, &body.sample, &body.counted_error)?.unbind())
                }),
            getter(c"seq", c"Sequence number of the message, per publisher, from 0.", |object, body| value(object, body.sample.seq())),
            getter(c"sent_ns", c"Time of sending, in ns of CLOCK_MONOTONIC, the clock of time.monotonic_ns().", |object, body| value(object, body.sample.sent_ns())),
            getter(c"taken_ns", c"Time at which the subscriber took it from the log, in ns of the same clock.", |object, body| value(object, body.sample.taken_ns())),
            getter(c"latency_ns", c"Time from sending to taking, in ns.", |object, body| {
                    value(object, body.sample.taken_ns().saturating_sub(body.sample.sent_ns()))
                }),
            getter(c"origin", c"Origin of a forwarded message: where it was first sent; None if not set.", |object, body| meta::origin(object.py(), body.sample.origin())),
            getter(c"source_ns", c"Source time in ns since 1970 UTC; None if not set.", |object, body| value(object, body.sample.source_ns())),
            getter(c"correlation", c"Correlation number, which links it to another message; None if not set.", |object, body| value(object, body.sample.correlation())),
            getter(c"gap", c"KnownGap: messages that the publisher knows to be missing directly before this one; None if none are.", |object, body| meta::gap(object.py(), body.sample.meta().gap)),
            getter(c"last_will", c"Whether it is the last will of its publisher, whose process has died.", |object, body| {
                    value(object, body.sample.is_last_will())
                }),
            getter(c"publisher", c"Id of the publisher, the same for all its messages.", |object, body| value(object, body.sample.publisher())),
        ]
    }

    fn export(&self) -> Result<Memory, &'static str> {
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
