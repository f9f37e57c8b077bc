//! Commands: `rnet.Command`, which receives, and `rnet.Driver`, which sends.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use rnet::msgs::command_status::State;
use rnet::{AlreadyCounted, FallbackReason, MessageType};

use crate::callback;
use crate::calls::{decoded, encoded, limit};
use crate::codec::Codec;
use crate::errors::{OrRaise, bad_value};
use crate::gate;
use crate::held::Held;
use crate::members::{Kind, Member};
use crate::meta::make;
use crate::shared::NodeShared;

pub(crate) fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Command>()?;
    module.add_class::<Driver>()
}

fn millis(py: Python<'_>, what: &str, ms: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(ms / 1000.0).map_err(|_| {
        bad_value(py, what, format!("it is {ms} ms, and must be a finite number of ms, 0 or more"))
    })
}

/// Calls a function of the user's on the command's thread. What it raises is shown as Python shows what a thread
/// raises, and is to robot-net a panic of the code that applies commands.
fn call(function: &Py<PyAny>, argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
    let called = gate::enter(|py| {
        let done = argument(py).and_then(|argument| function.call1(py, (argument,)));
        done.map(drop).map_err(|error| callback::report(py, error, function))
    });
    if let Some(Err(())) = called {
        // Without a message of its own: it was shown, and counted.
        resume_unwind(Box::new(AlreadyCounted));
    }
}

fn reason_name(reason: FallbackReason) -> &'static str {
    match reason {
        FallbackReason::Opened => "opened",
        FallbackReason::Deadline => "deadline",
        FallbackReason::Expired => "expired",
        FallbackReason::Released => "released",
        FallbackReason::DriverLost => "driver_lost",
        FallbackReason::Overrun => "overrun",
        FallbackReason::Panicked => "panicked",
        FallbackReason::Closed => "closed",
        _ => "unknown",
    }
}

/// The receiving end of a command. Made by `Node.command`.
///
/// `close`, the end of a `with` block, or the end of the node falls back for the last time and closes it.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Command {
    topic: String,
    held: Arc<Held<rnet::Command>>,
    node: Arc<NodeShared>,
}

impl Command {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeShared>,
        (topic, ty): (&str, Option<&Bound<'_, PyAny>>),
        apply: Py<PyAny>,
        fallback: &Bound<'_, PyAny>,
        deadline_ms: f64,
    ) -> PyResult<Command> {
        let takes_one = py.import("rnet.calls")?.getattr("takes_one")?;
        takes_one.call1((&apply, "message"))?;
        let codec = Codec::new(py, ty)?;
        let deadline = millis(py, "deadline_ms", deadline_ms)?;
        let builder = node.node().or_raise(py)?.command::<[u8]>(topic).deadline(deadline);
        let mut builder = builder.message_type(codec.message_type.clone());
        let place = format!("the fallback of {topic}");
        let value = |object: &Bound<'_, PyAny>| encoded(&codec, object, &place, <[u8]>::to_vec);
        if let Ok(word) = fallback.cast::<PyString>() {
            builder = match (word.to_str()?, ty) {
                ("hold", _) => builder.fallback_hold(),
                ("zero", Some(ty)) => match &codec.message_type {
                    MessageType::Plain(plain) => builder.fallback(&vec![0; plain.size]),
                    _ => builder.fallback(&value(&ty.call0()?)?),
                },
                (word, _) => {
                    let why = format!(
                        "it is {word:?}, and must be \"zero\" of a type, \"hold\", a message or a function"
                    );
                    return Err(bad_value(py, &place, why));
                }
            };
        } else if fallback.is_callable() {
            takes_one.call1((fallback, "reason"))?;
            let function = fallback.clone().unbind();
            builder = builder.fallback_handler(move |reason| {
                call(&function, |py| {
                    Ok(PyString::new(py, reason_name(reason)).into_any().unbind())
                });
            });
        } else {
            builder = builder.fallback(&value(fallback)?);
        }
        let what = format!("a command of {topic}");
        let apply = move |bytes: &[u8]| call(&apply, |py| decoded(py, &codec, bytes, &what));
        let open = || {
            let command = builder.apply(apply)?;
            let (topic, held) = (command.topic().to_owned(), Held::new(command));
            node.members.add_kept(Kind::Service, &held);
            Ok((topic, held))
        };
        let (topic, held) = py.detach(open).or_raise(py)?;
        Ok(Command { topic, held, node: node.clone() })
    }

    fn name(&self) -> String {
        format!("the receiver of {}", self.topic)
    }
}

#[pymethods]
impl Command {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// Name of the node that drives, None if none does.
    #[getter]
    fn driver(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let status = self.held.with(py, &self.name(), |command| command.status())?;
        Ok(Some(status.holder).filter(|holder| !holder.is_empty()))
    }

    /// Whether commands are applied; False while it has fallen back.
    #[getter]
    fn in_force(&self, py: Python<'_>) -> PyResult<bool> {
        let status = self.held.with(py, &self.name(), |command| command.status())?;
        Ok(status.state() == State::InForce)
    }

    /// What was done with commands so far, as CommandStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = self.held.with(py, &self.name(), |command| command.stats())?;
        let rnet::CommandStats { applied, late, repeated, superseded, unauthorised, .. } = s;
        let rnet::CommandStats { malformed, passed_over, fallbacks, panics, overruns, .. } = s;
        let ignored = [late, repeated, superseded, unauthorised, malformed, passed_over];
        let all = [&[applied], &ignored[..], &[fallbacks, panics, overruns]].concat();
        make(py, "CommandStats", PyTuple::new(py, all)?)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.held.is_closed()
    }

    /// Falls back for the last time, and closes it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.held.close();
            self.node.members.forget(&self.held);
        });
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Command {} of node {}>", self.topic, self.node.name)
    }
}

/// The sending end of a command, with authority until it ends. Made by `Node.drive`.
///
/// `release`, `close`, the end of a `with` block, or the end of the node gives authority back.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Driver {
    topic: String,
    codec: Codec,
    held: Arc<Held<rnet::Driver<[u8]>>>,
    node: Arc<NodeShared>,
}

impl Driver {
    pub(crate) fn take(
        py: Python<'_>,
        node: &Arc<NodeShared>,
        (topic, ty): (&str, Option<&Bound<'_, PyAny>>),
        (priority, lease_ms): (i64, f64),
        timeout: Option<f64>,
    ) -> PyResult<Driver> {
        let (lowest, highest) = (i32::MIN, rnet::HIGHEST_PRIORITY);
        let why = || format!("it is {priority}, and must be {lowest} to {highest}");
        let priority = i32::try_from(priority).map_err(|_| bad_value(py, "priority", why()))?;
        let codec = Codec::new(py, ty)?;
        let (lease, timeout) = (millis(py, "lease_ms", lease_ms)?, limit(py, timeout)?);
        let message_type = codec.message_type.clone();
        // What a signal handler has raised, which ends the wait.
        let raised = Mutex::new(None);
        let goes_on = || {
            let Some(checked) = gate::enter(|py| py.check_signals()) else { return false };
            let ends = checked.err();
            let goes_on = ends.is_none();
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = ends;
            goes_on
        };
        let take = || {
            let drive = node.node()?.drive::<[u8]>(topic).priority(priority).lease(lease);
            let driver = drive.message_type(message_type).take_while(Some(timeout), goes_on)?;
            let (topic, held) = (driver.topic().to_owned(), Held::new(driver));
            // Ahead of the publishers of the node, to say that it is over.
            node.members.add(Kind::Client, &held);
            Ok((topic, held))
        };
        let taken = py.detach(take);
        if let Some(error) = raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let (topic, held) = taken.or_raise(py)?;
        Ok(Driver { topic, codec, held, node: node.clone() })
    }

    fn name(&self) -> String {
        format!("the driver of {}", self.topic)
    }
}

#[pymethods]
impl Driver {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// Whether this driver is in force, as far as the receiver has said; False once it was released.
    #[getter]
    fn in_force(&self, py: Python<'_>) -> bool {
        self.held.with(py, &self.name(), |driver| driver.in_force()).unwrap_or(false)
    }

    /// Sends a command, which begins the lease anew. Raises NotInForce once the receiver has said that this driver's
    /// authority has ended; else as `Publisher.send`.
    fn send(&self, py: Python<'_>, command: &Bound<'_, PyAny>) -> PyResult<()> {
        let place = format!("the commands of {}", self.topic);
        let sent = encoded(&self.codec, command, &place, |bytes| {
            self.held.with(py, &self.name(), |driver| driver.send(bytes))
        })?;
        sent?.or_raise(py)
    }

    /// Begins the lease anew without a command. Raises NotInForce; Timeout.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        self.held.with(py, &self.name(), |driver| driver.renew())?.or_raise(py)
    }

    /// Gives authority back: the receiver falls back at once. One that does not answer falls back when the lease ends.
    fn release(&self, py: Python<'_>) {
        py.detach(|| {
            self.held.close();
            self.node.members.forget(&self.held);
        });
    }

    /// The same.
    fn close(&self, py: Python<'_>) {
        self.release(py);
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.release(py);
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Driver {} of node {}>", self.topic, self.node.name)
    }
}
