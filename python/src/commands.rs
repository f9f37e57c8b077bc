//! Commands: `rnet.Command`, which receives, and `rnet.Driver`, which sends.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use rnet::msgs::command_status::State;
use rnet::{AlreadyCounted, FallbackReason, MessageType, StillValid};

use crate::callback;
use crate::calls::{decoded, encoded, limit};
use crate::codec::Codec;
use crate::errors::{OrRaise, bad_value};
use crate::gate;
use crate::held::Held;
use crate::lock::lock;
use crate::members::{Kind, Member};
use crate::meta::make;
use crate::shared::NodeShared;
use crate::state::disk;

fn millis(py: Python<'_>, what: &str, ms: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(ms / 1000.0).map_err(|_| {
        bad_value(py, what, format!("it is {ms} ms, and must be a finite number of ms, 0 or more"))
    })
}

/// What the user's functions raise while a receiver is opened, which is raised where it is opened.
struct Opening(Mutex<Option<Option<PyErr>>>);

impl Opening {
    fn begin() -> Arc<Opening> {
        Arc::new(Opening(Mutex::new(Some(None))))
    }

    /// Keeps what was raised; later it is reported and counted as of any callback.
    fn raised(&self, py: Python<'_>, error: PyErr, function: &Py<PyAny>) {
        let mut opening = lock(&self.0);
        if let Some(first) = &mut *opening {
            *first = Some(error);
            return;
        }
        // Python may run another thread meanwhile.
        drop(opening);
        callback::report(py, error, function);
    }

    fn end(&self) -> Option<PyErr> {
        lock(&self.0).take().flatten()
    }
}

/// Calls a function of the user's on the command's thread, if the command is still valid when the lock of the interpreter
/// is held. What it raises is to robot-net a panic of the code that applies commands.
fn call(
    function: &Py<PyAny>,
    opening: &Opening,
    argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    still_valid: &mut StillValid<'_>,
) {
    let called = gate::enter(|py| {
        let call = |argument: Py<PyAny>| match still_valid() {
            true => callback::call(function.bind(py), (argument,)).map(drop),
            false => Ok(()),
        };
        argument(py).and_then(call).map_err(|error| opening.raised(py, error, function))
    });
    if called != Some(Ok(())) {
        // Without a message of its own: the exception is reported, and counted. Where the program is ending, nothing was
        // done.
        resume_unwind(Box::new(AlreadyCounted));
    }
}

fn reason_name(reason: FallbackReason) -> &'static str {
    match reason {
        FallbackReason::Opened => "opened",
        FallbackReason::Deadline => "deadline",
        FallbackReason::Expired => "expired",
        FallbackReason::Released => "released",
        FallbackReason::Preempted => "preempted",
        FallbackReason::DriverLost => "driver_lost",
        FallbackReason::Overrun => "overrun",
        FallbackReason::Panicked => "panicked",
        FallbackReason::Closed => "closed",
        _ => "unknown",
    }
}

const FALLBACKS: &str =
    "pass a message of the type, \"zero\", \"hold\", or a function that takes the reason";

/// Says what a fallback may be, because of another error.
fn bad_fallback(py: Python<'_>, topic: &str, why: &str, cause: PyErr) -> PyErr {
    let error = PyTypeError::new_err(format!("the fallback of {topic} {why}; {FALLBACKS}"));
    error.set_cause(py, Some(cause));
    error
}

/// What a receiver does when no command is in force.
enum Fallback {
    Hold,
    Message(Vec<u8>),
    Function(Py<PyAny>),
}

/// What a receiver does with commands.
pub(crate) enum Target {
    Apply(Py<PyAny>),
    /// Publishes them on this topic.
    Forward(String),
}

impl Target {
    pub(crate) fn of(apply: Option<Py<PyAny>>, forward: Option<String>) -> PyResult<Target> {
        match (apply, forward) {
            (Some(apply), None) => Ok(Target::Apply(apply)),
            (None, Some(topic)) => Ok(Target::Forward(topic)),
            _ => {
                let why = "pass either apply (a function) or forward (a topic)";
                Err(PyTypeError::new_err(why))
            }
        }
    }
}

/// The receiving end of a command. Created by `Node.command`.
///
/// `close`, the end of a `with` block, or closing the node falls back for the last time and closes it.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Command {
    /// Topic of the command.
    #[pyo3(get)]
    topic: String,
    held: Arc<Held<rnet::Command>>,
    node: Arc<NodeShared>,
}

impl Command {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeShared>,
        (topic, ty): (&str, Option<&Bound<'_, PyAny>>),
        target: Target,
        fallback: &Bound<'_, PyAny>,
        deadline_ms: f64,
    ) -> PyResult<Command> {
        let takes_one = py.import("rnet.calls")?.getattr("takes_one")?;
        if let Target::Apply(apply) = &target {
            takes_one.call1((apply, "message"))?;
        }
        let codec = Codec::new(py, ty)?;
        let deadline = millis(py, "deadline_ms", deadline_ms)?;
        let place = format!("the fallback of {topic}");
        let value = |object: &Bound<'_, PyAny>| {
            encoded(&codec, object, &place, <[u8]>::to_vec)
                .map_err(|error| bad_fallback(py, topic, &format!("is not valid: {error}"), error))
        };
        let opening = Opening::begin();
        let fallback = if let Ok(word) = fallback.cast::<PyString>() {
            match (word.to_str()?, ty) {
                ("hold", _) => Fallback::Hold,
                ("zero", Some(ty)) => match &codec.message_type {
                    MessageType::Plain(plain) => Fallback::Message(vec![0; plain.size]),
                    _ => Fallback::Message(value(&ty.call0()?)?),
                },
                (word, _) => {
                    let why = format!(
                        "it is {word:?}, and must be \"zero\" of a type, \"hold\", a message or a function"
                    );
                    return Err(bad_value(py, &place, why));
                }
            }
        } else if let Ok(class) = fallback.cast::<PyType>() {
            let name = class.qualname()?;
            let why = format!(
                "the fallback of {topic} is the class {name}: {FALLBACKS}, such as {name}()"
            );
            return Err(PyTypeError::new_err(why));
        } else if fallback.is_callable() {
            takes_one.call1((fallback, "reason"))?;
            Fallback::Function(fallback.clone().unbind())
        } else {
            Fallback::Message(value(fallback)?)
        };
        let what = format!("a command of {topic}");
        let (applying, falling_back) = (opening.clone(), opening.clone());
        let open = || {
            let builder = node.node()?.command::<[u8]>(topic).deadline(deadline);
            let builder = builder.message_type(codec.message_type.clone());
            let builder = match fallback {
                Fallback::Hold => builder.fallback_hold(),
                Fallback::Message(bytes) => builder.fallback(&bytes),
                Fallback::Function(function) => builder.fallback_handler(move |reason| {
                    let name = reason_name(reason);
                    let name = |py: Python<'_>| Ok(PyString::new(py, name).into_any().unbind());
                    call(&function, &falling_back, name, &mut || true);
                }),
            };
            let command = match target {
                Target::Forward(topic) => builder.forward(&topic)?,
                Target::Apply(apply) => builder.apply_checked(move |bytes, still_valid| {
                    call(&apply, &applying, |py| decoded(py, &codec, bytes, &what), still_valid);
                })?,
            };
            let topic = command.topic().to_owned();
            let what = format!("the receiver of {topic}");
            let held = Arc::new(Held::with_callbacks(what, command, Arc::default()));
            node.members.add_kept(Kind::Service, &held);
            Ok((topic, held))
        };
        let opened: rnet::Result<_> = py.detach(open);
        if let Some(error) = opening.end() {
            if let Ok((_, held)) = opened {
                py.detach(|| held.close());
                node.members.forget(&held);
            }
            let why = format!("failed when the receiver was opened: {error}");
            return Err(bad_fallback(py, topic, &why, error));
        }
        let (topic, held) = opened.or_raise(py)?;
        Ok(Command { topic, held, node: node.clone() })
    }
}

#[pymethods]
impl Command {
    /// Name of the node in control; None if no driver has authority.
    #[getter]
    fn driver(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let status = self.held.ask(py, |command| command.status())?;
        Ok(Some(status.holder).filter(|holder| !holder.is_empty()))
    }

    /// Whether commands are applied; False after a fallback.
    #[getter]
    fn in_force(&self, py: Python<'_>) -> PyResult<bool> {
        let status = self.held.ask(py, |command| command.status())?;
        Ok(status.state() == State::InForce)
    }

    /// Counters of commands, as CommandStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = self.held.ask(py, |command| command.stats())?;
        let rnet::CommandStats { applied, late, repeated, superseded, unauthorised, .. } = s;
        let rnet::CommandStats { malformed, passed_over, fallbacks, panics, overruns, .. } = s;
        let ignored = [late, repeated, superseded, unauthorised, malformed, passed_over];
        let all = [&[applied], &ignored[..], &[fallbacks, panics, overruns]].concat();
        make(py, "CommandStats", PyTuple::new(py, all)?)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.held.is_closed()
    }

    /// Falls back for the last time, and closes the receiver.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        gate::close(py, self.node.closing(&self.held))
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Command {} of node {}>", self.topic, self.node.name)
    }
}

/// The sending end of a command, with authority until the authority ends. Created by `Node.drive`.
///
/// `release`, `close`, the end of a `with` block, or closing the node releases authority.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Driver {
    /// Topic of the command.
    #[pyo3(get)]
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
        (priority, lease_ms, auto_retake): (i64, f64, bool),
        timeout: Option<f64>,
    ) -> PyResult<Driver> {
        let (lowest, highest) = (i32::MIN, rnet::HIGHEST_PRIORITY);
        let why = || format!("it is {priority}, and must be {lowest} to {highest}");
        let priority = i32::try_from(priority).map_err(|_| bad_value(py, "priority", why()))?;
        let codec = Codec::new(py, ty)?;
        let (lease, timeout) = (millis(py, "lease_ms", lease_ms)?, limit(py, timeout)?);
        let message_type = codec.message_type.clone();
        let take = || {
            let drive = node.node()?.drive::<[u8]>(topic).priority(priority).lease(lease);
            let drive = drive.auto_retake(auto_retake).message_type(message_type);
            let driver = drive.take_interruptible(Some(timeout), disk::is_quiet)?;
            let topic = driver.topic().to_owned();
            let held = Arc::new(Held::new(format!("the driver of {topic}"), driver));
            // Ahead of the publishers of the node, to say that it is over.
            node.members.add(Kind::Client, &held);
            Ok((topic, held))
        };
        let (topic, held) = disk::write_detached(py, take)?;
        Ok(Driver { topic, codec, held, node: node.clone() })
    }
}

#[pymethods]
impl Driver {
    /// Whether this driver has authority, according to the last status from the receiver; False after
    /// release.
    #[getter]
    fn in_force(&self, py: Python<'_>) -> bool {
        self.held.ask(py, |driver| driver.in_force()).unwrap_or(false)
    }

    /// Sends a command and renews the lease. Raises NotInForce if the receiver has reported that this
    /// driver's authority has ended; otherwise raises as `Publisher.send`.
    fn send(&self, py: Python<'_>, command: &Bound<'_, PyAny>) -> PyResult<()> {
        let place = format!("the commands of {}", self.topic);
        let sent = encoded(&self.codec, command, &place, |bytes| {
            py.detach(|| self.held.with(|driver| driver.send(bytes)))
        });
        sent?.or_raise(py)
    }

    /// Renews the lease without a command. Raises NotInForce; Timeout.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.held.with(|driver| driver.renew())).or_raise(py)
    }

    /// Takes authority again after it has ended; waits for a receiver up to `timeout` seconds. Does nothing
    /// if the driver still has authority. Raises NotInForce if another driver has it; Timeout.
    #[pyo3(signature = (timeout = Some(10.0)), text_signature = "($self, timeout=10.0)")]
    fn retake(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let (begun, timeout) = (Instant::now(), limit(py, timeout)?);
        // The driver is unlocked between the parts: a signal handler, or another thread, may close it.
        let part = |driver: &mut rnet::Driver<[u8]>| driver.retake_step(begun, timeout);
        while !py.detach(|| self.held.with(part)).or_raise(py)? {
            if let Err(raised) = py.check_signals() {
                let _ = self.held.ask(py, rnet::Driver::end_retake);
                return Err(raised);
            }
        }
        Ok(())
    }

    /// Releases authority and closes the driver: the receiver falls back at once. Raises NotInForce if the
    /// process of the receiver is stopped, and Timeout if it does not answer within the lease; authority then
    /// ends with the lease.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let release_in_place = || self.held.take().map_or(Ok(()), |mut driver| driver.release_in_place());
        let released = py.detach(release_in_place);
        self.close(py);
        released.or_raise(py)
    }

    /// As `release`, without raising errors.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.held.close();
            self.node.members.forget(&self.held);
        });
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Driver {} of node {}>", self.topic, self.node.name)
    }
}
