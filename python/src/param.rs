//! `rnet.Param`: a parameter of a node.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple, PyType};
use rnet::Error;
use rnet::param::{ParamKind, Refused};
use rnet::state::{Value, WatchHandle};

use crate::callback::{Callback, call_by, report};
use crate::errors::{OrRaise, bad_value, raise};
use crate::fork::{ForkGuard, Own};
use crate::gate;
use crate::members::{Kind, Member};
use crate::qos::Given;
use crate::release::release;
use crate::shared::NodeShared;
use crate::state::disk;
use crate::state::value::{plain_number, scalar, scalar_to_object};

type Inner = rnet::Param<Value>;

/// What the Python object and its node share.
pub(crate) struct ParamCore {
    words: String,
    inner: RwLock<Option<Own<Inner>>>,
    /// The callbacks, which run as long as the node is there.
    handles: Mutex<Vec<Own<WatchHandle>>>,
    fork_guard: ForkGuard,
}

impl ParamCore {
    fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(self.words.clone()) }
    }

    /// Runs something short that does not wait, with or without the GIL.
    #[inline]
    fn with<R>(&self, act: impl FnOnce(&Inner) -> rnet::Result<R>) -> rnet::Result<R> {
        if self.fork_guard.is_parents() {
            // The lock may be held by a thread that only the parent has.
            return Err(self.closed_error());
        }
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        match &*inner {
            Some(param) => act(param),
            None => Err(self.closed_error()),
        }
    }

    /// Runs what may wait for the disk, on a handle that stays usable while others close this.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Inner) -> rnet::Result<R> + Send,
    ) -> PyResult<R> {
        disk::write_detached(py, || {
            self.with(|param| Ok(param.clone())).and_then(|param| act(&param))
        })
    }

    /// Keeps a callback going.
    fn keep(&self, handle: WatchHandle) {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(Own::new(handle));
    }
}

impl Member for ParamCore {
    /// Ends the callbacks and lets go of the node.
    fn close(&self) {
        if self.fork_guard.is_parents() {
            return;
        }
        let handles =
            std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner));
        drop(handles);
        let inner = self.inner.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(inner);
    }
}

impl Drop for ParamCore {
    fn drop(&mut self) {
        if self.fork_guard.is_parents() {
            return;
        }
        let handles =
            std::mem::take(self.handles.get_mut().unwrap_or_else(PoisonError::into_inner));
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        match handles.is_empty() {
            true => release(inner),
            false => gate::drop_in_time((handles, inner)),
        }
    }
}

/// A parameter of a node; `Node.param` declares it.
///
/// `get()`, or `value`, is what it is now: a read of shared memory that waits for nobody, made for
/// every turn of a loop. `set()` sets it as anybody may; a value that does not fit is a BadValue with
/// the reason, here as in every other process. It outlives its node.
///
/// >>> gain = node.param("/gain", default=1.0, min=0, max=10, unit="1/s")
/// >>> gain.set(2.5)
/// >>> gain.get()
/// 2.5
/// >>> gain.set(11)
/// Traceback (most recent call last):
///     ...
/// rnet.errors.BadValue: ...
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Param {
    core: Arc<ParamCore>,
    node: Arc<NodeShared>,
    kind: ParamKind,
    name: String,
    key: String,
    refused: Option<Refused>,
}

/// What the keyword arguments of `Node.param` say.
pub(crate) struct Declaration<'a, 'py> {
    pub(crate) default: Option<&'a Bound<'py, PyAny>>,
    pub(crate) r#type: Option<&'a Bound<'py, PyAny>>,
    pub(crate) min: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max: Option<&'a Bound<'py, PyAny>>,
    pub(crate) choices: Option<Vec<String>>,
    pub(crate) unit: &'a str,
    pub(crate) description: &'a str,
    pub(crate) read_only: bool,
    pub(crate) durable: bool,
    pub(crate) on_change: Option<Py<PyAny>>,
}

impl Param {
    pub(crate) fn declare(
        py: Python<'_>,
        node: &Arc<NodeShared>,
        name: &str,
        said: Declaration<'_, '_>,
    ) -> PyResult<Param> {
        let words = format!("parameter {name} of {}", node.name);
        let value = |given: Option<&Bound<'_, PyAny>>| {
            let given = given.filter(|given| !given.is_none());
            given.map(|given| of_object(&words, given)).transpose()
        };
        let kind = said.r#type.filter(|kind| !kind.is_none()).map(kind_of).transpose()?;
        let calls_back = said.on_change.is_some();
        let builder = node
            .node()
            .or_raise(py)?
            .param::<Value>(name)
            .given(value(said.default)?, |builder, default| builder.default(default))
            .given(kind, |builder, kind| builder.kind(kind))
            .given(value(said.min)?, |builder, min| builder.min(min))
            .given(value(said.max)?, |builder, max| builder.max(max))
            .given(said.choices, |builder, choices| builder.choices(choices))
            .given(said.read_only.then_some(()), |builder, ()| builder.read_only())
            .given(said.durable.then_some(()), |builder, ()| builder.durable())
            .given(said.on_change, |builder, callback| builder.on_change(hook(callback)))
            .unit(said.unit)
            .description(said.description)
            // It is told below, as a warning of Python.
            .on_refused(|_| {});
        let inner = py.detach(|| builder.declare()).or_raise(py)?;
        let refused = inner.refused().cloned();
        let (kind, name, key) =
            (inner.description().kind, inner.name().to_owned(), inner.key().to_owned());
        let words = format!("parameter {name} of {}", node.name);
        let core = Arc::new(ParamCore {
            words,
            inner: RwLock::new(Some(Own::new(inner))),
            handles: Mutex::default(),
            fork_guard: ForkGuard::here(),
        });
        let members = &node.members;
        match calls_back {
            true => py.detach(|| members.add_kept(Kind::Param, &core)),
            false => py.detach(|| members.add(Kind::Param, &core)),
        }
        let param = Param { core, node: node.clone(), kind, name, key, refused };
        param.warn(py)?;
        Ok(param)
    }

    /// Tells of a value that did not fit.
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let Some(Refused { value, why, set_by, .. }) = &self.refused else { return Ok(()) };
        let words = &self.core.words;
        let text = format!("{words}: {value}, set by {set_by}, {why}; it is its default now");
        let class = py.import("rnet.errors")?.getattr("ParamRefused")?;
        py.import("warnings")?.call_method1("warn", (text, class, 2))?;
        Ok(())
    }
}

#[pymethods]
impl Param {
    /// The present value.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.core.with(Inner::get).or_raise(py)?;
        to_object(py, &value)
    }

    /// Sets it. An int is a number for a parameter that is float.
    #[pyo3(signature = (value, /))]
    fn set(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = of_object(&self.core.words, value)?;
        self.core.detached(py, |param| param.set(value))
    }

    /// Makes it its default, as if nobody had set it.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.core.detached(py, Inner::reset)
    }

    /// Has `callback(value)` called with each new value from now on, whoever set it, on a thread of the
    /// node's, until the node is closed. What it raises goes to `sys.unraisablehook`. Returns the callback,
    /// so that it may be used as a decorator.
    #[pyo3(signature = (callback, /))]
    fn on_change(&self, py: Python<'_>, callback: Callback) -> PyResult<Py<PyAny>> {
        // As a slow function: the newest value.
        let hook = hook(callback.for_threads(py, Some(1))?);
        let handle = self.core.detached(py, |param| param.on_change(hook))?;
        self.core.keep(handle);
        py.detach(|| self.node.members.keep(&self.core));
        if let Err(closed) = self.core.with(|_| Ok(())) {
            // Closed meanwhile, by who may not have seen the callback.
            py.detach(|| self.core.close());
            return Err(raise(py, &closed));
        }
        Ok(callback.into_inner())
    }

    /// The present value, which may be assigned to.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get(py)
    }

    #[setter]
    fn set_value(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(py, value)
    }

    /// Its name in its node: `/gain`.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its key in the state: `/params/arm/gain`.
    #[getter]
    fn key(&self) -> &str {
        &self.key
    }

    /// The type of its values: "float", "list[str]".
    #[getter]
    fn r#type(&self) -> &'static str {
        self.kind.name()
    }

    /// The value that stood there when it was declared and did not fit, and why, in words; else None.
    #[getter]
    fn refused(&self) -> Option<String> {
        let Refused { value, why, .. } = self.refused.as_ref()?;
        Some(format!("{value} {why}"))
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Param {} of {}: {}>", self.name, self.node.name, self.kind)
    }
}

/// A callback of Python as one of rnet.
fn hook(callback: Py<PyAny>) -> impl FnMut(Value) + Send + 'static {
    move |value| {
        // After the interpreter has been taken down nobody is told.
        gate::enter(|py| {
            let called = to_object(py, &value);
            if let Err(error) = called.and_then(|value| call_by(py, &callback, (value,))) {
                report(py, error, &callback);
            }
        });
    }
}

/// The type that `type=` asks for: a class, `list[float]`, or its name.
fn kind_of(given: &Bound<'_, PyAny>) -> PyResult<ParamKind> {
    let name = match (given.cast::<PyString>(), given.cast::<PyType>()) {
        (Ok(name), _) => name.to_cow()?.into_owned(),
        // `list[float]` is an object of its own, which is written so.
        (_, Ok(class)) if !given.hasattr("__origin__")? => class.name()?.to_cow()?.into_owned(),
        _ => given.str()?.to_cow()?.into_owned(),
    };
    ParamKind::of_name(&name).ok_or_else(|| {
        let why = format!("{name} is none of bool, int, float, str, and list[...] of one of them");
        bad_value(given.py(), "type", why)
    })
}

/// The value of a parameter that an object is.
fn of_object(words: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Some(value) = scalar(words, object)? {
        return Ok(value);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items: PyResult<Vec<Value>> =
            object.try_iter()?.map(|item| of_object(words, &item?)).collect();
        return Ok(list(items?));
    }
    // What is a number without being one of Python's: numpy.float32.
    match plain_number(object)? {
        Some(number) => of_object(words, &number),
        None => {
            let name = object.get_type().fully_qualified_name()?;
            Err(PyTypeError::new_err(format!(
                "{words} cannot be a {name}: it is a bool, int, float, str or a list of one"
            )))
        }
    }
}

/// In a list of numbers that are not all ints, all are floats.
fn list(items: Vec<Value>) -> Value {
    let number = |value: &Value| match value {
        Value::Int(int) => Some(Value::Float(*int as f64)),
        Value::Float(float) => Some(Value::Float(*float)),
        _ => None,
    };
    let mixed = items.iter().any(|item| matches!(item, Value::Float(_)));
    match items.iter().map(number).collect::<Option<Vec<Value>>>().filter(|_| mixed) {
        Some(floats) => Value::List(floats),
        None => Value::List(items),
    }
}

/// The object that a value is.
fn to_object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match (scalar_to_object(py, value)?, value) {
        (Some(object), _) => Ok(object),
        (None, Value::List(items)) => {
            let items: PyResult<Vec<_>> = items.iter().map(|item| to_object(py, item)).collect();
            Ok(PyList::new(py, items?)?.into_any())
        }
        (None, other) => Err(bad_value(py, "parameter", format!("it is {}", other.type_text()))),
    }
}
