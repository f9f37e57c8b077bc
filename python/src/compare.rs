//! Comparison of types, and the types of a topic's publishers; `rnet.compare` is the Python side.

use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rnet::TypeDesc;
use rnet::inspect::{self, Domain, PublisherInfo};
use rnet::schema::Schema;

use crate::codec::described_type;
use crate::errors::OrRaise;

/// The differences between a publisher's and a subscriber's type. For each one: rule, whether it is breaking,
/// path, and the values of both sides.
#[pyfunction]
pub(crate) fn compare_types<'py>(
    publisher: &Bound<'py, PyAny>,
    subscriber: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let py = publisher.py();
    let (publisher, subscriber) = (described_type(publisher)?, described_type(subscriber)?);
    let changes = py.detach(|| inspect::compare_types(&publisher, &subscriber));
    changes
        .into_iter()
        .map(|c| (c.rule, c.breaking, c.path, c.publisher, c.subscriber).into_pyobject(py))
        .collect()
}

/// The publishers of a topic, as `rnet.types.PublishedType`.
pub(crate) fn published_types(
    py: Python<'_>,
    topic: &str,
    (domain, path, group): (&str, &Path, Option<&str>),
) -> PyResult<Vec<Py<PyAny>>> {
    // The directory that the node has joined, even if the environment has changed since.
    let look = || {
        let base = path.parent().map(Path::to_owned);
        Domain::open(Some(domain), base, group.map(str::to_owned))?.topic_snapshot(topic)
    };
    let snapshot = py.detach(look).or_raise(py)?;
    let convert =
        |p: PublisherInfo| published_type(py, p.id, &p.node, &p.type_desc, p.schema.as_ref());
    snapshot.publishers.into_iter().map(convert).collect()
}

/// The type of a publisher, as `rnet.types.PublishedType`.
pub(crate) fn published_type(
    py: Python<'_>,
    publisher: u64,
    node: &str,
    desc: &TypeDesc,
    schema: Option<&Schema>,
) -> PyResult<Py<PyAny>> {
    let class = py.import("rnet.compare")?.getattr("PublishedType")?;
    let (kind, name) = match desc {
        TypeDesc::Raw => ("raw", ""),
        TypeDesc::Plain(plain) => ("plain", plain.name.as_str()),
        TypeDesc::Protobuf(named) => ("protobuf", named.name.as_str()),
        TypeDesc::Unknown => ("unknown", ""),
    };
    let set = schema.map(|s| PyBytes::new(py, &s.descriptor_set_with_docs()));
    let layout = desc.as_plain().map(|_| desc.to_json());
    Ok(class.call1((publisher, node, kind, name, set, layout))?.unbind())
}
