//! Protobuf types: `.proto` files to descriptor sets, of which `rnet.protos` makes the classes of the official runtime.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rnet::schema::{CompiledProtos, SchemaError, SourceLocation, Sources};

use crate::errors::{build_of, put};

/// The exception for an error: `rnet.errors.SchemaError`.
pub(crate) fn raise(py: Python<'_>, error: &SchemaError) -> PyErr {
    build(py, error).unwrap_or_else(|while_building| while_building)
}

fn build(py: Python<'_>, error: &SchemaError) -> PyResult<PyErr> {
    let fields = PyDict::new(py);
    let put_place = |place: &SourceLocation| {
        put!(fields, file = &place.file);
        if place.line > 0 {
            put!(fields, line = place.line, column = place.column);
        }
        Ok::<_, PyErr>(())
    };
    let reason = match error {
        SchemaError::Proto { place, .. } => {
            put_place(place)?;
            "proto"
        }
        SchemaError::Read { path, .. } => {
            put!(fields, file = path);
            "read"
        }
        SchemaError::MissingImport { place, name, looked_in } => {
            put_place(place)?;
            put!(fields, name, looked_in);
            "missing_import"
        }
        SchemaError::CyclicImport { place, cycle } => {
            put_place(place)?;
            put!(fields, cycle);
            "cyclic_import"
        }
        SchemaError::UnknownType { name, known } => {
            put!(fields, name, known);
            "unknown_type"
        }
        SchemaError::Limit { limit_name, limit, found, .. } => {
            put!(fields, limit_name, limit, found);
            "limit"
        }
        SchemaError::Malformed { .. } => "malformed",
        _ => "invalid",
    };
    put!(fields, reason);
    Ok(build_of(py, "SchemaError", error.to_string(), Some(&fields)))
}

fn bytes_of<'py>(
    py: Python<'py>,
    compile: impl FnOnce() -> Result<CompiledProtos, SchemaError> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    let set = py.detach(|| compile().map(|compiled| compiled.descriptor_set()));
    Ok(PyBytes::new(py, &set.map_err(|error| raise(py, &error))?))
}

/// Compiles a `.proto` file to a descriptor set with comments: imports first, the file itself last.
#[pyfunction]
pub(crate) fn compile_file(
    py: Python<'_>,
    path: PathBuf,
    include: Vec<PathBuf>,
) -> PyResult<Bound<'_, PyBytes>> {
    bytes_of(py, || {
        include.into_iter().fold(Sources::default(), Sources::folder).compile_file(path)
    })
}

/// Like `compile_file`, for a text; `imports` are texts that it may import by name.
#[pyfunction]
pub(crate) fn compile_text<'py>(
    py: Python<'py>,
    text: &str,
    name: &str,
    imports: HashMap<String, String>,
    include: Vec<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    bytes_of(py, || {
        let sources = include.into_iter().fold(Sources::default(), Sources::folder);
        let add = |sources: Sources, (name, text)| sources.text(name, text);
        imports.into_iter().fold(sources, add).compile_text(name, text)
    })
}

/// The full names among `known` that a name may mean.
#[pyfunction]
pub(crate) fn find_types(name: &str, known: Vec<String>) -> Vec<String> {
    let found = rnet::schema::find_types(name, known.iter().map(String::as_str));
    found.into_iter().map(str::to_owned).collect()
}

/// Reads an untrusted descriptor set within the limits, and removes the parts that messages do not need.
#[pyfunction]
pub(crate) fn read_descriptor_set<'py>(
    py: Python<'py>,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    bytes_of(py, || CompiledProtos::from_descriptor_set(bytes))
}
