//! Writing in terms of the present value: `update`, `add`, `setdefault`.
//!
//! A function of Python may raise and may itself use the state, so the loop of `update` is here and
//! not that of crate `rnet`; what needs no function (`add`, `push`, sets) is rnet's own.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use rnet::Error;
use rnet::limits::MAX_TRIES;
use rnet::state::Value;

use super::core::{StateCore, Terms, put};
use super::entry::delete_mark;
use super::value::{of_object, to_object};
use crate::errors::{OrRaise, bad_value, raise};

/// The exception where others were faster each time.
pub(crate) fn outrun(py: Python<'_>, what: &str) -> PyErr {
    let hint = "other writers were faster each time: have fewer of them, or spread them over keys";
    raise(
        py,
        &Error::LimitReached {
            what: format!("tries to {what}"),
            limit: MAX_TRIES,
            hint: hint.to_owned(),
        },
    )
}

/// Runs `attempt` until it does not end in a conflict; between tries signals are looked for.
pub(crate) fn until_done<'py, T>(
    py: Python<'py>,
    what: &str,
    mut attempt: impl FnMut() -> PyResult<Tried<T>>,
) -> PyResult<T> {
    for _ in 0..MAX_TRIES {
        match attempt()? {
            Tried::Done(value) => return Ok(value),
            Tried::Again => py.check_signals()?,
        }
    }
    Err(outrun(py, what))
}

/// How a try came out.
pub(crate) enum Tried<T> {
    Done(T),
    /// Somebody else was in between.
    Again,
}

/// Sorts out conflicts.
pub(crate) fn tried<T>(py: Python<'_>, result: PyResult<T>) -> PyResult<Tried<T>> {
    match result {
        Ok(value) => Ok(Tried::Done(value)),
        Err(error) => {
            let class = py.import("rnet.errors")?.getattr("Conflict")?;
            if error.is_instance(py, &class) { Ok(Tried::Again) } else { Err(error) }
        }
    }
}

/// `State.update`.
pub(crate) fn update<'py>(
    py: Python<'py>,
    core: &StateCore,
    key: &str,
    function: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    until_done(py, &format!("update {key}"), || {
        let entry = core.with(|state| state.entry(key)).or_raise(py)?;
        let present = entry.as_ref().map(|entry| to_object(py, &core.types, key, &entry.value));
        let wanted = function.call1((present.transpose()?,))?;
        let terms = core.terms_of(entry);
        let result = if wanted.is(delete_mark(py)?) {
            core.change(py, |state| put(state, key, terms).delete().map(drop))
        } else {
            let value = of_object(&core.types, key, &wanted)?;
            core.write(py, key, value, terms).map(drop)
        };
        Ok(match tried(py, result)? {
            Tried::Done(()) => Tried::Done(wanted),
            Tried::Again => Tried::Again,
        })
    })
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
            let why = format!("what is added is an int or a float, not {}", other.type_text());
            return Err(bad_value(py, key, why));
        }
    };
    Ok(sum)
}

/// `State.setdefault`.
pub(crate) fn set_default<'py>(
    py: Python<'py>,
    core: &StateCore,
    key: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let wanted = of_object(&core.types, key, value)?;
    until_done(py, &format!("set {key}"), || {
        if let Some(found) = core.with(|state| state.get(key)).or_raise(py)? {
            return to_object(py, &core.types, key, &found).map(Tried::Done);
        }
        let terms = Terms { if_revision: Some(0), ..Terms::default() };
        let result = core.write(py, key, wanted.clone(), terms);
        Ok(match tried(py, result)? {
            Tried::Done(_) => Tried::Done(value.clone()),
            Tried::Again => Tried::Again,
        })
    })
}
