//! Reading of recordings; `rnet.recording_file` is the Python side.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyTuple};
use rnet::MessageType;
use rnet_record::read::{Channel, Column, Message, Messages, ReadError, Recording, Select};

use crate::errors::build_of;

/// Messages that are read at once, without the GIL.
const BATCH: usize = 256;

/// The exception for a failed read: `rnet.errors.ReadFailedError`.
fn failed(py: Python<'_>, why: &str) -> PyErr {
    build_of(py, "ReadFailedError", why.to_owned(), None)
}

/// An open MCAP file.
#[pyclass(frozen, module = "rnet._rnet")]
pub(crate) struct RecordingReader {
    recording: Recording,
}

#[pymethods]
impl RecordingReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| Recording::open(&path));
        let failure = |error: ReadError| failed(py, &format!("{}: {error}", path.display()));
        Ok(Self { recording: opened.map_err(failure)? })
    }

    #[getter]
    fn len_bytes(&self) -> u64 {
        self.recording.len_bytes()
    }

    #[getter]
    fn profile(&self) -> &str {
        self.recording.profile()
    }

    #[getter]
    fn library(&self) -> &str {
        self.recording.library()
    }

    /// The first and last log time, in ns since 1970 UTC; None for a file without messages.
    #[getter]
    fn times(&self) -> Option<(u64, u64)> {
        self.recording.info().times
    }

    /// Metadata records in the order of the file: name and entries.
    #[getter]
    fn metadata(&self) -> Vec<(String, BTreeMap<String, String>)> {
        let records = self.recording.info().metadata.iter();
        records.map(|record| (record.name.clone(), record.metadata.clone())).collect()
    }

    /// The problems that opening the file has found.
    #[getter]
    fn problems(&self) -> Vec<String> {
        let found = self.recording.info();
        let more = (found.more_problems > 0).then(|| format!("and {} more", found.more_problems));
        found.problems.iter().map(ToString::to_string).chain(more).collect()
    }

    /// For each channel: id, topic, message encoding, name, encoding and data of the schema, metadata, number
    /// of messages.
    fn channels<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let counts = &self.recording.info().counts;
        let described = |channel: &Arc<Channel>| {
            let schema = channel.schema.as_ref();
            let schema = schema.map(|s| (&s.name, &s.encoding, PyBytes::new(py, &s.data)));
            let count = counts.get(&channel.id).copied().unwrap_or(0);
            let Channel { id, topic, message_encoding, metadata, .. } = &**channel;
            (*id, topic, message_encoding, channel.type_name(), schema, metadata, count)
                .into_pyobject(py)
        };
        self.recording.channels().map(described).collect()
    }

    /// The protobuf type of a ROS 2 channel: its full name and its descriptor set. None for other channels.
    fn described<'py>(
        &self,
        py: Python<'py>,
        channel: u16,
    ) -> PyResult<Option<(String, Bound<'py, PyBytes>)>> {
        let Some(channel) = self.recording.channels().find(|known| known.id == channel) else {
            return Ok(None);
        };
        match channel.message_type() {
            Ok(MessageType::Protobuf(schema)) => {
                let set = PyBytes::new(py, schema.descriptor_set());
                Ok(Some((schema.name().to_owned(), set)))
            }
            Ok(_) => Ok(None),
            Err(error) => Err(failed(py, &error.to_string())),
        }
    }

    /// The content of a message of a channel: ROS 2 messages converted to protobuf, others unchanged.
    fn content<'py>(
        &self,
        py: Python<'py>,
        channel: u16,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.recording.channels().find(|known| known.id == channel);
        match found.map(|channel| channel.content(data)) {
            Some(Ok(content)) => Ok(PyBytes::new(py, &content)),
            Some(Err(why)) => Err(PyValueError::new_err(why)),
            None => Ok(PyBytes::new(py, data)),
        }
    }

    /// The numeric fields of a channel.
    fn number_fields(&self, py: Python<'_>, channel: u16) -> PyResult<Vec<String>> {
        let found = self.recording.channels().find(|known| known.id == channel);
        let fields = found.map(|channel| channel.number_fields()).transpose();
        Ok(fields.map_err(|error| failed(py, &error.to_string()))?.unwrap_or_default())
    }

    /// Fields of a topic: log times, send times; for each field the name of its number type, shape, numbers
    /// and the rows without numbers; and the errors.
    #[pyo3(signature = (topic, fields, start_ns, end_ns))]
    fn series<'py>(
        &self,
        py: Python<'py>,
        topic: &str,
        fields: Vec<String>,
        start_ns: Option<u64>,
        end_ns: Option<u64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let select = Select { start_ns, end_ns, ..Select::default() };
        let read = py.detach(|| self.recording.series(topic, &fields, select));
        let mut series = read.map_err(|error| {
            let path = self.recording.path().display();
            failed(py, &format!("{path}: {error}"))
        })?;
        if series.more_problems > 0 {
            series.problems.push(format!("and {} more", series.more_problems));
        }
        let column = |column: &Column| {
            let shape = PyTuple::new(py, &column.shape)?;
            let values = PyByteArray::new(py, &column.values);
            let absent = array(py, column.absent.iter().map(|row| *row as u64))?;
            (column.prim.name(), shape, values, absent).into_pyobject(py)
        };
        let columns: Vec<_> = series.columns.iter().map(column).collect::<PyResult<_>>()?;
        let log = array(py, series.log_ns.iter().copied())?;
        let sent = array(py, series.publish_ns.iter().copied())?;
        (log, sent, columns, series.problems).into_pyobject(py)
    }

    /// The messages of these topics, or of all topics that publishers had if none are named.
    fn messages(
        &self,
        topics: Vec<String>,
        start_ns: Option<u64>,
        end_ns: Option<u64>,
    ) -> RecordedMessages {
        let select = Select { topics, start_ns, end_ns, ..Select::default() };
        let messages = self.recording.messages(select);
        RecordedMessages { messages, ready: VecDeque::new() }
    }
}

/// Numbers of 8 bytes as a bytearray, so that numpy arrays made from it are writable.
fn array(
    py: Python<'_>,
    numbers: impl ExactSizeIterator<Item = u64>,
) -> PyResult<Bound<'_, PyByteArray>> {
    PyByteArray::new_with(py, numbers.len() * 8, |bytes| {
        for (bytes, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        Ok(())
    })
}

/// The messages of a file in time order: channel, sequence, log time, send time, bytes. A part that cannot be
/// read is represented by its error text.
#[pyclass(module = "rnet._rnet")]
pub(crate) struct RecordedMessages {
    messages: Messages,
    ready: VecDeque<Result<Message, ReadError>>,
}

#[pymethods]
impl RecordedMessages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.ready.is_empty() {
            py.detach(|| self.ready.extend(self.messages.by_ref().take(BATCH)));
        }
        let message = match self.ready.pop_front() {
            None => return Ok(None),
            Some(Err(problem)) => {
                return Ok(Some(problem.to_string().into_pyobject(py)?.into_any()));
            }
            Some(Ok(message)) => message,
        };
        let (log_ns, publish_ns) = (message.log_ns(), message.publish_ns());
        let bytes = PyBytes::new(py, message.data());
        let row = (message.channel.id, message.sequence(), log_ns, publish_ns, bytes);
        Ok(Some(row.into_pyobject(py)?.into_any()))
    }
}
