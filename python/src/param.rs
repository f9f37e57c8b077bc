//! `rnet.Param`: a parameter of a node.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple, PyType};
use rnet::param::{ParamBuilder, ParamKind, RefusedValue};
use rnet::state::{Value, WatchHandle};

use crate::callback::{Callback, call, report};
use crate::errors::{OrRaise, bad_value};
use crate::interpreter;
use crate::members::MemberKind;
use crate::node_core::NodeCore;
use crate::resource::Resource;
use crate::state::disk;
use crate::state::value::{plain_number, scalar, scalar_to_object};

type Inner = rnet::Param<Value>;

/// State shared by the Python object and its node: the parameter, and its callbacks, which run until the node
/// is closed.
type ParamCore = Resource<(Inner, Vec<WatchHandle>)>;

/// A parameter of a node, declared with `Node.param`.
///
/// `get()`, or `value`, returns the current value: a read of shared memory that never waits, suitable for
/// each iteration of a loop. `set()` sets it; a value that is not allowed raises BadValueError with the reason,
/// here as in every other process. The value outlives the node.
///
/// >>> gain = node.param("/gain", default=1.0, min=0, max=10, unit="1/s")
/// >>> gain.set(2.5)
/// >>> gain.get()
/// 2.5
/// >>> gain.set(11)
/// Traceback (most recent call last):
///     ...
/// rnet.errors.BadValueError: ...
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Param {
    core: Arc<ParamCore>,
    node: Arc<NodeCore>,
    kind: ParamKind,
    /// Name within its node: `/gain`.
    #[pyo3(get)]
    name: String,
    /// Key in the state: `/params/arm/gain`.
    #[pyo3(get)]
    key: String,
    refused: Option<RefusedValue>,
}

impl Param {
    /// Declares the parameter that a builder describes; `calls_back`: with a callback.
    pub(crate) fn declare(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        builder: ParamBuilder<Value>,
        calls_back: bool,
    ) -> PyResult<Param> {
        // Reported below, as a Python warning.
        let builder = builder.on_refused(|_| {});
        let inner = py.detach(|| builder.declare()).or_raise(py)?;
        let refused = inner.refused().cloned();
        let (kind, name, key) =
            (inner.description().kind, inner.name().to_owned(), inner.key().to_owned());
        let words = format!("parameter {name} of {}", node.name);
        let core = ParamCore::with_callbacks(words, (inner, Vec::new()), Arc::default());
        let core = Arc::new(core);
        let members = &node.members;
        match calls_back {
            true => py.detach(|| members.add_retained(MemberKind::Param, &core)),
            false => py.detach(|| members.add(MemberKind::Param, &core)),
        }
        let param = Param { core, node: node.clone(), kind, name, key, refused };
        param.warn(py)?;
        Ok(param)
    }

    /// Runs an operation that may wait for the disk, on a handle that stays usable while other threads close
    /// this.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Inner) -> rnet::Result<R> + Send,
    ) -> PyResult<R> {
        disk::write_detached(py, || {
            self.core.with(|(param, _)| Ok(param.clone())).and_then(|param| act(&param))
        })
    }

    /// Warns about an existing value that was not allowed.
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let Some(RefusedValue { value, why, set_by, .. }) = &self.refused else { return Ok(()) };
        let words = self.core.what();
        let text =
            format!("{words}: {value}, set by {set_by}, {why}; the parameter keeps its default");
        let class = py.import("rnet.errors")?.getattr("ParamRefusedWarning")?;
        py.import("warnings")?.call_method1("warn", (text, class, 2))?;
        Ok(())
    }
}

#[pymethods]
impl Param {
    /// The current value.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.core.with(|(param, _)| param.get()).or_raise(py)?;
        to_object(py, &value)
    }

    /// Sets the value. An int is converted for a float parameter.
    #[pyo3(signature = (value, /))]
    fn set(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = of_object(self.core.what(), value)?;
        self.detached(py, |param| param.set(value))
    }

    /// Resets it to its default, as if it had never been set.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, Inner::reset)
    }

    /// Registers `callback(value)`, which is called with each new value, whichever node sets it, on a thread
    /// of the node, until the node is closed. Exceptions go to `sys.unraisablehook`. Returns the callback, so
    /// that it can be used as a decorator.
    #[pyo3(signature = (callback, /))]
    fn on_change(&self, py: Python<'_>, callback: Callback) -> PyResult<Py<PyAny>> {
        // Like a slow callback of a topic, it gets only the newest value.
        let hook = hook(callback.for_threads(py, Some(1))?);
        let handle = self.detached(py, |param| param.on_change(hook))?;
        let keep = || {
            let mut handle = Some(handle);
            // If the parameter was closed meanwhile, the callback ends here.
            self.core.with(|(_, handles)| {
                handles.extend(handle.take());
                Ok(())
            })?;
            self.node.members.retain(&self.core);
            Ok(())
        };
        py.detach(keep).or_raise(py)?;
        Ok(callback.into_inner())
    }

    /// Type of its values, such as "float" or "list[str]".
    #[getter]
    fn r#type(&self) -> &'static str {
        self.kind.name()
    }

    /// The value that existed at the declaration and was not allowed, with the reason; None otherwise.
    #[getter]
    fn refused(&self) -> Option<String> {
        let RefusedValue { value, why, .. } = self.refused.as_ref()?;
        Some(format!("{value} {why}"))
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Param {} of {}: {}>", self.name, self.node.name, self.kind)
    }
}

/// A Python callback as a hook of rnet.
pub(crate) fn hook(callback: Py<PyAny>) -> impl FnMut(Value) + Send + 'static {
    move |value| {
        // Does nothing after the interpreter has ended.
        interpreter::attach(|py| {
            let called = to_object(py, &value);
            if let Err(error) = called.and_then(|value| call(callback.bind(py), (value,))) {
                report(py, error, &callback);
            }
        });
    }
}

/// The kind that `type=` requests: a class, `list[float]`, or a name.
pub(crate) fn kind_of(given: &Bound<'_, PyAny>) -> PyResult<ParamKind> {
    let name = match (given.cast::<PyString>(), given.cast::<PyType>()) {
        (Ok(name), _) => name.to_cow()?.into_owned(),
        // `list[float]` is a generic alias, and its text is the name of the kind.
        (_, Ok(class)) if !given.hasattr("__origin__")? => class.name()?.to_cow()?.into_owned(),
        _ => given.str()?.to_cow()?.into_owned(),
    };
    ParamKind::of_name(&name).ok_or_else(|| {
        let why = format!(
            "{name} is not a parameter type: use bool, int, float, str, or list[...] of one of them"
        );
        bad_value(given.py(), "type", why)
    })
}

/// The parameter value for an object.
pub(crate) fn of_object(words: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Some(value) = scalar(words, object)? {
        return Ok(value);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items: PyResult<Vec<Value>> =
            object.try_iter()?.map(|item| of_object(words, &item?)).collect();
        return Ok(list(items?));
    }
    // A number that is not a Python number, such as numpy.float32.
    match plain_number(object)? {
        Some(number) => of_object(words, &number),
        None => {
            let name = object.get_type().fully_qualified_name()?;
            Err(PyTypeError::new_err(format!(
                "{words} cannot be a {name}: use a bool, int, float, str or a list of one of them"
            )))
        }
    }
}

/// In a list of numbers that are not all ints, all become floats.
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

/// The object for a value.
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
