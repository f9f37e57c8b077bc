//! Conversion between Python values and state values.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PySet, PyString, PyTuple};
use rnet::state::Value;

use super::types::{Types, malformed};
use crate::buffer::Bytes;
use crate::errors::bad_value;

/// The value for an object that is to be written at `key`.
#[inline]
pub(crate) fn of_object(types: &Types, key: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Some(value) = scalar(key, object)? {
        return Ok(value);
    }
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    of_other(types, key, object)
}

/// The value for a bool, a number or a str, also for subclasses of these: numpy.float64, IntEnum.
#[inline]
pub(crate) fn scalar(key: &str, object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Ok(yes) = object.cast::<PyBool>() {
        return Ok(Some(Value::Bool(yes.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        return int(key, object).map(Some);
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Some(Value::Float(object.extract()?)));
    }
    object.cast::<PyString>().ok().map(|text| string(key, text)).transpose()
}

/// The value that `rnet.state` makes from an object: its kind, and the parts of the value.
#[cold]
fn of_other(types: &Types, key: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let sorted =
        object.py().import("rnet.state_values")?.call_method1("other_value", (key, object))?;
    let (kind, found): (String, Bound<'_, PyAny>) = sorted.extract()?;
    match &*kind {
        "json" => found.extract().map(Value::Json),
        "set" => {
            let members = found.try_iter()?.map(|member| of_object(types, key, &member?));
            members.collect::<PyResult<Vec<Value>>>().map(Value::set)
        }
        "bytes" => Ok(Value::Bytes(Bytes::of(&found)?.as_slice().to_vec())),
        "message" => types.message_of(key, object, &found),
        _ => of_object(types, key, &found),
    }
}

fn int(key: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    object.extract().map(Value::Int).map_err(|_| {
        let why = "the integer does not fit into 64 bits: use a float or a str";
        bad_value(object.py(), key, why)
    })
}

fn string(key: &str, text: &Bound<'_, PyString>) -> PyResult<Value> {
    match text.to_str() {
        Ok(text) => Ok(Value::Str(text.to_owned())),
        Err(_) => Err(bad_value(
            text.py(),
            key,
            "the str has a lone surrogate, which is not valid text: store it as bytes",
        )),
    }
}

/// The Python number for a numpy scalar.
pub(crate) fn plain_number<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let number =
        object.py().import("rnet.state_values")?.call_method1("plain_number", (object,))?;
    Ok(if number.is_none() { None } else { Some(number) })
}

/// The object that a reader of `key` gets for a value.
#[inline]
pub(crate) fn to_object<'py>(
    py: Python<'py>,
    types: &Types,
    key: &str,
    value: &Value,
) -> PyResult<Bound<'py, PyAny>> {
    match scalar_to_object(py, value)? {
        Some(object) => Ok(object),
        None => other_to_object(py, types, key, value),
    }
}

/// The object for a bool, a number or a str.
#[inline]
pub(crate) fn scalar_to_object<'py>(
    py: Python<'py>,
    value: &Value,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(match value {
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Str(text) => PyString::new(py, text).into_any(),
        Value::Bool(yes) => PyBool::new(py, *yes).to_owned().into_any(),
        _ => return Ok(None),
    }))
}

#[cold]
fn other_to_object<'py>(
    py: Python<'py>,
    types: &Types,
    key: &str,
    value: &Value,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Value::Json(text) => decode_json(py)?.call1((text,)),
        Value::List(items) => {
            let items: PyResult<Vec<_>> =
                items.iter().map(|item| to_object(py, types, key, item)).collect();
            Ok(PyList::new(py, items?)?.into_any())
        }
        Value::Set(members) => {
            let set = PySet::empty(py)?;
            for member in members {
                set.add(member_to_object(py, types, key, member)?)?;
            }
            Ok(set.into_any())
        }
        Value::Message(message) => types.object_of(py, key, message),
        Value::Unreadable(why) => Err(malformed(py, key, why)),
        // `to_object` handles the other known kinds: this kind is newer than this package.
        _ => Err(bad_value(py, key, "its kind of value is unknown to this version: update rnet")),
    }
}

/// A set member, which Python must hash: a value without a hash becomes a similar one that has it.
fn member_to_object<'py>(
    py: Python<'py>,
    types: &Types,
    key: &str,
    member: &Value,
) -> PyResult<Bound<'py, PyAny>> {
    match member {
        Value::List(items) => {
            let items: PyResult<Vec<_>> =
                items.iter().map(|item| member_to_object(py, types, key, item)).collect();
            Ok(PyTuple::new(py, items?)?.into_any())
        }
        // JSON stays a str: a dict has no hash.
        Value::Json(text) => Ok(PyString::new(py, text).into_any()),
        other => to_object(py, types, key, other),
    }
}

/// The function `json.loads`, for a str.
fn decode_json(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || {
        let decoder = py.import("json")?.getattr("JSONDecoder")?.call0()?;
        Ok::<_, PyErr>(decoder.getattr("decode")?.unbind())
    };
    Ok(DECODE.get_or_try_init(py, find)?.bind(py))
}
