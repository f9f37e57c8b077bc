//! Changes relative to the current value: `update` and `add`.
//!
//! A Python function may raise and may itself use the state. So `update` does not use that of crate `rnet`,
//! and `rnet.state` retries after a conflict with another writer. Changes without a function (`add`, `push`,
//! sets) use crate `rnet`.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use rnet::Error;
use rnet::limits::MAX_UPDATE_TRIES;
use rnet::state::Value;

use super::core::{StateCore, put};
use super::entry::delete_mark;
use super::value::{of_object, to_object};
use crate::errors::{OrRaise, bad_value, is_of_class, raise};

/// The exception if every attempt conflicted with another writer.
#[pyfunction]
pub(crate) fn too_many_conflicts(py: Python<'_>, what: &str) -> PyErr {
    let hint =
        "other writers won every attempt: use fewer writers, or spread the values over more keys";
    let (what, hint) = (format!("attempts to {what}"), hint.to_owned());
    raise(py, &Error::LimitReached { what, limit: MAX_UPDATE_TRIES, hint })
}

/// One attempt of `State.update`: the written value, or nothing after a conflict with another writer.
pub(crate) fn rewrite<'py>(
    py: Python<'py>,
    core: &StateCore,
    key: &str,
    function: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
    let entry = core.with(|state| state.entry(key)).or_raise(py)?;
    let present = entry.as_ref().map(|entry| to_object(py, &core.types, key, &entry.value));
    let wanted = function.call1((present.transpose()?,))?;
    let options = core.options_of(entry);
    let written = if wanted.is(delete_mark(py)?) {
        core.change(py, |state| put(state, key, options).delete()).map(drop)
    } else {
        let value = of_object(&core.types, key, &wanted)?;
        core.write(py, key, value, options).map(drop)
    };
    match written {
        Ok(()) => Ok(Some((wanted,))),
        Err(error) if is_of_class(py, &error, "ConflictError") => Ok(None),
        Err(error) => Err(error),
    }
}

/// `State.add`.
pub(crate) fn add<'py>(
    py: Python<'py>,
    core: &StateCore,
    key: &str,
    amount: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let amount = amount.map_or(Ok(Value::Int(1)), |amount| of_object(&core.types, key, amount))?;
    let sum = match amount {
        Value::Int(amount) => {
            let sum = core.change(py, |state| state.add(key, amount))?;
            sum.into_pyobject(py)?.cast_into::<PyInt>()?.into_any()
        }
        Value::Float(amount) => {
            let sum = core.change(py, |state| state.add_float(key, amount))?;
            PyFloat::new(py, sum).into_any()
        }
        other => {
            let why = format!("the amount must be an int or a float, not {}", other.type_text());
            return Err(bad_value(py, key, why));
        }
    };
    Ok(sum)
}
