//! Message metadata, in both directions between Python and Rust.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use rnet::{KnownGap, LossCause, Meta, Origin};

use crate::errors;

/// `rnet.events.Origin`, or any tuple of host, publisher and number.
pub(crate) type OriginTuple = (u64, u64, u64);
/// `rnet.events.KnownGap`, or any tuple of cause and size.
pub(crate) type GapTuple = (String, u64);

/// The metadata for the arguments of `Publisher.send`.
pub(crate) fn meta(
    py: Python<'_>,
    origin: Option<OriginTuple>,
    source_ns: Option<i64>,
    correlation: Option<u64>,
    gap: Option<GapTuple>,
) -> PyResult<Meta> {
    let mut meta = Meta::default();
    meta.origin = origin.map(|(host, publisher, seq)| Origin { host, publisher, seq });
    (meta.source_ns, meta.correlation) = (source_ns, correlation);
    if let Some((cause, size)) = gap {
        meta.gap = Some(KnownGap { cause: cause_of(py, &cause)?, size });
    }
    Ok(meta)
}

/// The loss cause with this name.
pub(crate) fn cause_of(py: Python<'_>, name: &str) -> PyResult<LossCause> {
    let found = LossCause::ALL.into_iter().find(|cause| cause.name() == name);
    found.ok_or_else(|| {
        let names = LossCause::ALL.map(LossCause::name).join(", ");
        errors::bad_value(
            py,
            "cause of a gap",
            format!("{name:?} is unknown; valid causes are {names}"),
        )
    })
}

/// Creates an object of a class of `rnet.events`.
pub(crate) fn make<'py>(
    py: Python<'py>,
    class: &str,
    parts: impl PyCallArgs<'py>,
) -> PyResult<Py<PyAny>> {
    Ok(py.import("rnet.events")?.call_method1(class, parts)?.unbind())
}

/// An `rnet.events.Origin`.
pub(crate) fn origin(py: Python<'_>, origin: Option<Origin>) -> PyResult<Py<PyAny>> {
    let Some(Origin { host, publisher, seq }) = origin else { return Ok(py.None()) };
    make(py, "Origin", (host, publisher, seq))
}

/// An `rnet.events.KnownGap`.
pub(crate) fn gap(py: Python<'_>, gap: Option<KnownGap>) -> PyResult<Py<PyAny>> {
    let Some(KnownGap { cause, size }) = gap else { return Ok(py.None()) };
    make(py, "KnownGap", (cause.name(), size))
}
