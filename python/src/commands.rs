//! Commands: `rnet.Command`, which receives, and `rnet.Driver`, which sends.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use rnet::binding::{AlreadyCounted, StillValid};
use rnet::msgs::command_status::State;
use rnet::{FallbackReason, MessageType};

use crate::callback;
use crate::calls::{decoded, with_encoded};
use crate::codec::Codec;
use crate::errors::{OrRaise, bad_value};
use crate::interpreter;
use crate::lock::lock;
use crate::members::{Member, MemberKind};
use crate::meta::make;
use crate::node_core::NodeCore;
use crate::resource::Resource;
use crate::state::disk;
use crate::wait::{DEFAULT_TIMEOUT, answer_limit, seconds};

/// Keeps the exception of a user function during the opening of a receiver, which then raises it.
struct OpeningError(Mutex<Option<Option<PyErr>>>);

impl OpeningError {
    fn begin() -> Arc<OpeningError> {
        Arc::new(OpeningError(Mutex::new(Some(None))))
    }

    /// Stores the exception; after the opening, it is reported and counted like that of any callback.
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

/// Calls a function of the user on the command's thread, if the command is still valid once the GIL is held.
/// For robot-net, its exception is a panic of the code that applies commands.
fn call(
    function: &Py<PyAny>,
    opening: &OpeningError,
    argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    still_valid: &mut StillValid<'_>,
) {
    let called = interpreter::attach(|py| {
        let call = |argument: Py<PyAny>| match still_valid() {
            true => callback::call(function.bind(py), (argument,)).map(drop),
            false => Ok(()),
        };
        argument(py).and_then(call).map_err(|error| opening.raised(py, error, function))
    });
    if called != Some(Ok(())) {
        // Without a message: the exception is already reported and counted. At the end of the program,
        // nothing was done.
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

/// Wraps an error: names the fallbacks that are allowed.
fn bad_fallback(py: Python<'_>, topic: &str, why: &str, cause: PyErr) -> PyErr {
    let error = PyTypeError::new_err(format!("the fallback of {topic} {why}; {FALLBACKS}"));
    error.set_cause(py, Some(cause));
    error
}

/// The action of a receiver when no command is in force.
enum Fallback {
    Hold,
    Message(Vec<u8>),
    Function(Py<PyAny>),
}

/// The destination of the commands of a receiver.
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
    resource: Arc<Resource<rnet::Command>>,
    node: Arc<NodeCore>,
}

impl Command {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        (topic, ty): (&str, Option<&Bound<'_, PyAny>>),
        target: Target,
        fallback: &Bound<'_, PyAny>,
        deadline: f64,
    ) -> PyResult<Command> {
        let check_takes_one = py.import("rnet.calls")?.getattr("check_takes_one")?;
        if let Target::Apply(apply) = &target {
            check_takes_one.call1((apply, "message"))?;
        }
        let codec = Codec::new(py, ty)?;
        let deadline = seconds(py, "deadline", deadline)?;
        let place = format!("the fallback of {topic}");
        let value = |object: &Bound<'_, PyAny>| {
            with_encoded(&codec, object, &place, <[u8]>::to_vec)
                .map_err(|error| bad_fallback(py, topic, &format!("is not valid: {error}"), error))
        };
        let opening = OpeningError::begin();
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
            check_takes_one.call1((fallback, "reason"))?;
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
            let resource = Arc::new(Resource::with_callbacks(what, command, Arc::default()));
            node.members.add_retained(MemberKind::Service, &resource);
            Ok((topic, resource))
        };
        let opened: rnet::Result<_> = py.detach(open);
        if let Some(error) = opening.end() {
            if let Ok((_, resource)) = opened {
                py.detach(|| resource.close());
                node.members.forget(&resource);
            }
            let why = format!("failed when the receiver was opened: {error}");
            return Err(bad_fallback(py, topic, &why, error));
        }
        let (topic, resource) = opened.or_raise(py)?;
        Ok(Command { topic, resource, node: node.clone() })
    }
}

#[pymethods]
impl Command {
    /// Name of the node in control; None if no driver has authority.
    #[getter]
    fn driver(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let status = self.resource.query(py, |command| command.status())?;
        Ok(Some(status.holder).filter(|holder| !holder.is_empty()))
    }

    /// Whether commands are applied; False after a fallback.
    #[getter]
    fn in_force(&self, py: Python<'_>) -> PyResult<bool> {
        let status = self.resource.query(py, |command| command.status())?;
        Ok(status.state() == State::InForce)
    }

    /// Counters of commands, as CommandStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = self.resource.query(py, |command| command.stats())?;
        let rnet::CommandStats { applied, late, repeated, superseded, unauthorised, .. } = s;
        let rnet::CommandStats { malformed, skipped, fallbacks, panics, overruns, .. } = s;
        let ignored = [late, repeated, superseded, unauthorised, malformed, skipped];
        let all = [&[applied], &ignored[..], &[fallbacks, panics, overruns]].concat();
        make(py, "CommandStats", PyTuple::new(py, all)?)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.resource.is_closed()
    }

    /// Falls back for the last time, and closes the receiver.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        interpreter::close(py, self.node.closing(&self.resource))
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
    timeout: Duration,
    resource: Arc<Resource<rnet::Driver<[u8]>>>,
    node: Arc<NodeCore>,
}

impl Driver {
    pub(crate) fn take(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        (topic, ty): (&str, Option<&Bound<'_, PyAny>>),
        (priority, lease, auto_retake): (i64, f64, bool),
        timeout: Option<f64>,
    ) -> PyResult<Driver> {
        let (lowest, highest) = (i32::MIN, rnet::HIGHEST_PRIORITY);
        let why = || format!("it is {priority}, and must be {lowest} to {highest}");
        let priority = i32::try_from(priority).map_err(|_| bad_value(py, "priority", why()))?;
        let codec = Codec::new(py, ty)?;
        let (lease, timeout) =
            (seconds(py, "lease", lease)?, answer_limit(py, timeout, DEFAULT_TIMEOUT)?);
        let message_type = codec.message_type.clone();
        let take = || {
            let drive = node.node()?.drive::<[u8]>(topic).priority(priority).lease(lease);
            let drive = drive.auto_retake(auto_retake).message_type(message_type);
            let driver = drive.timeout(timeout).take_interruptible(disk::run_signal_handlers)?;
            let topic = driver.topic().to_owned();
            let resource = Arc::new(Resource::new(format!("the driver of {topic}"), driver));
            // Closed before the publishers of the node, because it publishes its release.
            node.members.add(MemberKind::Client, &resource);
            Ok((topic, resource))
        };
        let (topic, resource) = disk::write_detached(py, take)?;
        Ok(Driver { topic, codec, timeout, resource, node: node.clone() })
    }
}

#[pymethods]
impl Driver {
    /// Whether this driver has authority, according to the last status from the receiver; False after
    /// release.
    #[getter]
    fn in_force(&self, py: Python<'_>) -> bool {
        self.resource.query(py, |driver| driver.in_force()).unwrap_or(false)
    }

    /// Sends a command and renews the lease. Raises NotInForceError if the receiver has reported that this
    /// driver's authority has ended; otherwise raises as `Publisher.send`.
    fn send(&self, py: Python<'_>, command: &Bound<'_, PyAny>) -> PyResult<()> {
        let place = format!("the commands of {}", self.topic);
        let sent = with_encoded(&self.codec, command, &place, |bytes| {
            py.detach(|| self.resource.with(|driver| driver.send(bytes)))
        });
        sent?.or_raise(py)
    }

    /// Renews the lease without a command. Raises NotInForceError; WaitTimeoutError.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.resource.with(|driver| driver.renew())).or_raise(py)
    }

    /// Takes authority again after it has ended; waits for a receiver up to `timeout` seconds, by default those of
    /// `Node.drive`. Does nothing
    /// if the driver still has authority. Raises NotInForceError if another driver has it; WaitTimeoutError.
    #[pyo3(signature = (*, timeout = None))]
    fn retake(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let (begun, timeout) = (Instant::now(), answer_limit(py, timeout, self.timeout)?);
        // The driver is unlocked between the steps: a signal handler or another thread may close it.
        let part = |driver: &mut rnet::Driver<[u8]>| driver.retake_step(begun, timeout);
        while !py.detach(|| self.resource.with(part)).or_raise(py)? {
            if let Err(raised) = py.check_signals() {
                let _ = self.resource.query(py, rnet::Driver::end_retake);
                return Err(raised);
            }
        }
        Ok(())
    }

    /// Releases authority and closes the driver: the receiver falls back at once. Raises NotInForceError if the
    /// process of the receiver is stopped, and WaitTimeoutError if it does not answer within the lease; authority then
    /// ends with the lease.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let release_in_place =
            || self.resource.take().map_or(Ok(()), |mut driver| driver.release_in_place());
        let released = py.detach(release_in_place);
        self.close(py);
        released.or_raise(py)
    }

    /// As `release`, without raising errors.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.resource.close();
            self.node.members.forget(&self.resource);
        });
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Driver {} of node {}>", self.topic, self.node.name)
    }
}
