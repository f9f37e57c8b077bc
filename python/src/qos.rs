//! Quality of service, as Python passes it.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rnet::{History, Lane, Liveliness, OnFull, Reliability, SubscriberQos, Wait};

use crate::errors::bad_value;
use crate::wait::seconds;

/// Builders with optional keyword arguments.
pub(crate) trait OptionalSetters: Sized {
    /// Sets `value`, if it was passed.
    fn set_opt<T>(self, value: Option<T>, set: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => set(self, value),
            None => self,
        }
    }

    /// Applies `set`, if it was requested.
    fn set_if(self, asked: bool, set: impl FnOnce(Self) -> Self) -> Self {
        if asked { set(self) } else { self }
    }
}

impl<T> OptionalSetters for T {}

/// What a reliable publisher does while a subscriber is full; `None` for a best-effort publisher.
pub(crate) fn reliability(
    py: Python<'_>,
    reliable: bool,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<OnFull>> {
    let given = given.filter(|given| !given.is_none());
    if !reliable && given.is_some() {
        return Err(bad_value(py, "on_full", "it needs a reliable publisher: pass reliable=True"));
    }
    Ok(reliable.then_some(on_full(py, given)?))
}

/// None, `"refuse"`, an `rnet.Wait` or an `rnet.Detach`.
fn on_full(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<OnFull> {
    let Some(given) = given else { return Ok(OnFull::default()) };
    if let Ok(name) = given.extract::<String>() {
        return match name.as_str() {
            "refuse" => Ok(OnFull::Refuse),
            _ => Err(bad_value(py, "on_full", expected(&format!("{name:?}")))),
        };
    }
    let qos = py.import("rnet.qos")?;
    if given.is_instance(&qos.getattr("Wait")?)? {
        let limit: f64 = given.getattr("seconds")?.extract()?;
        return Ok(OnFull::Wait(seconds(py, "on_full", limit)?));
    }
    if given.is_instance(&qos.getattr("Detach")?)? {
        let stall: f64 = given.getattr("stall")?.extract()?;
        return Ok(OnFull::Detach { stall: seconds(py, "on_full", stall)? });
    }
    Err(PyTypeError::new_err(format!("on_full: {}", expected(&given.repr()?.to_string()))))
}

/// The quality of service that all forms of receiving share.
pub(crate) fn subscriber(
    py: Python<'_>,
    reliable: bool,
    transient_local: bool,
    keep_last: Option<u32>,
    keep_all: bool,
) -> PyResult<SubscriberQos> {
    if keep_all && keep_last.is_some() {
        return Err(bad_value(py, "keep_all", "it contradicts keep_last: pass only one of them"));
    }
    let history = match keep_last {
        Some(depth) => History::KeepLast(depth),
        None if keep_all => History::KeepAll,
        None => History::default(),
    };
    let reliability = if reliable { Reliability::Reliable } else { Reliability::BestEffort };
    Ok(SubscriberQos { reliability, transient_local, history, ..SubscriberQos::default() })
}

/// Manual liveliness with this lease, or that of the process.
pub(crate) fn liveliness(lease: Option<Duration>) -> Liveliness {
    lease.map_or_else(Liveliness::default, |lease| Liveliness::ManualByTopic { lease })
}

/// An optional duration.
pub(crate) fn optional_seconds(
    py: Python<'_>,
    what: &str,
    given: Option<f64>,
) -> PyResult<Option<Duration>> {
    given.map(|s| seconds(py, what, s)).transpose()
}

fn expected(got: &str) -> String {
    format!("it is {got}, and must be rnet.Wait(seconds), \"refuse\" or rnet.Detach(stall)")
}

/// One of several names.
fn one_of<T: Copy>(py: Python<'_>, what: &str, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(word, _)| *word == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<String> = known.iter().map(|(word, _)| format!("{word:?}")).collect();
        let (last, others) = words.split_last().expect("there are words");
        let why = format!("it is {name:?}, and must be {} or {last}", others.join(", "));
        bad_value(py, what, why)
    })
}

pub(crate) fn lane(py: Python<'_>, name: &str) -> PyResult<Lane> {
    one_of(py, "lane", name, &[("urgent", Lane::Urgent), ("bulk", Lane::Bulk)])
}

pub(crate) fn wait(py: Python<'_>, name: &str) -> PyResult<Wait> {
    let known = [("adaptive", Wait::Adaptive), ("spin", Wait::Spin), ("block", Wait::Block)];
    one_of(py, "wait", name, &known)
}
