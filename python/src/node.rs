//! `rnet.Node`.

#![expect(clippy::too_many_arguments, reason = "arguments of Python")]

mod inner;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rnet::param::ParamBuilder;
use rnet::state::Value;
use rnet::{NodeBuilder, PublisherBuilder, SubscriberQos};

use crate::callback::Callback;
use crate::calls::{ActionClient, Client, Puller, PushSettings, Pusher, Service, open_handler};
use crate::codec::Codec;
use crate::commands::{Command, Driver, Target};
use crate::errors::{OrRaise, bad_value};
use crate::handle::CallbackHandle;
use crate::log::Logger;
use crate::members::MemberKind;
use crate::name::Name;
use crate::node_core::NodeCore;
use crate::param::{self, Param};
use crate::publisher::Publisher;
use crate::qos::{self, OptionalSetters};
use crate::state::{PyState, core::StateCore, remote::PyRemoteState};
use crate::subscriber::Subscriber;
use crate::timer::{Rate, Timer};
use crate::wait::seconds;
use crate::{compare, events, interpreter};

/// A named participant of a domain.
///
/// Its publishers and subscribers keep it alive. `close`, or the end of a `with` block, closes them all, and
/// so does the end of the program. In a forked process (such as by multiprocessing) the nodes of the parent
/// are closed; the child can create its own.
///
/// >>> with rnet.Node("talker") as talker:
/// ...     talker.publisher("/hello").send(b"hello")  # not an error without subscribers
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Node {
    /// Created at its first use. Dropped before `shared`, which drops the last handle without the GIL.
    state: OnceLock<Arc<StateCore>>,
    pub(crate) shared: Arc<NodeCore>,
}

#[pymethods]
impl Node {
    /// Joins a domain. Omitted arguments come from the environment: RNET_DOMAIN (default "0"), RNET_DIR
    /// (default /dev/shm), RNET_GROUP (default: the domain is not shared with other users), RNET_TUNE_THREADS
    /// (default "1"), RNET_SIM_TIME (default "0"). `state_dir` is the directory of durable state, instead of
    /// RNET_STATE_DIR (default $XDG_STATE_HOME/rnet or ~/.local/state/rnet); the domain has its own folder in
    /// it. With `tune_threads=False`, waiting does not change the time slice or the timer slack of waiting
    /// threads. With `sim_time=True` the node uses the time of `/clock`: see `now`.
    ///
    /// Names without a leading `/` are placed below `namespace` (default RNET_NAMESPACE, else none), and
    /// `~/x` below the node's name. `remap` is a dict of names and their replacements, applied before the
    /// rules of RNET_REMAP: {"/scan": "/left/scan", "/cam/**": "/left/**", "node:lidar": "eye"}. The first
    /// matching rule applies.
    #[new]
    #[pyo3(signature = (name, *, domain = None, dir = None, group = None, state_dir = None,
        tune_threads = None, sim_time = None, namespace = None, remap = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        domain: Option<&str>,
        dir: Option<PathBuf>,
        group: Option<&str>,
        state_dir: Option<PathBuf>,
        tune_threads: Option<bool>,
        sim_time: Option<bool>,
        namespace: Option<&str>,
        remap: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Node> {
        let mut builder = rnet::Node::builder(name);
        for (from, to) in remap.into_iter().flatten() {
            builder = builder.remap(&from.extract::<String>()?, &to.extract::<String>()?);
        }
        let builder = builder
            .language("python")
            .set_opt(domain, |builder, domain| builder.domain(domain))
            .set_opt(dir, |builder, dir| builder.dir(dir))
            .set_opt(group, |builder, group| builder.group(group))
            .set_opt(state_dir, |builder, dir| builder.state_dir(dir))
            .set_opt(tune_threads, NodeBuilder::tune_threads)
            .set_opt(sim_time, NodeBuilder::sim_time)
            .set_opt(namespace, |builder, name| builder.namespace(name))
            .set_opt(inner::programs(py), NodeBuilder::programs);
        let node = py.detach(|| builder.open()).or_raise(py)?;
        let shared = NodeCore::new(node, group);
        shared.close_at_exit(py)?;
        Ok(Node { state: OnceLock::new(), shared })
    }

    /// Creates a publisher of a topic.
    ///
    /// `type` is None for raw bytes, a protobuf message class (from rnet.msgs, rnet.load_proto or protoc), a
    /// ctypes.Structure class, or a numpy dtype. With `reliable=True`, subscribers that request it lose no
    /// messages, and `on_full` sets what a send does when one of them is behind: Wait(seconds), "refuse", or
    /// Detach(stall); the default is Wait(1.0). `transient_local=n` keeps the last n messages for
    /// late-joining subscribers; if these have more than 4096 bytes, `pool_limit_bytes` (default 2 GiB) must
    /// hold n + 1 of them, otherwise a send without room raises OutOfMemoryError. `urgent=True` uses the urgent
    /// lane, which bulk traffic does not delay. The log grows with the traffic up to `log_len_bytes`;
    /// `reserve_log=True` allocates all of it at once.
    ///
    /// `deadline=s` promises a message at least every s seconds. `lifespan=s` expires messages that are older
    /// than s seconds. With `liveliness_lease=s` the publisher is alive only as long as it sends, or calls
    /// `assert_alive`, every s seconds.
    ///
    /// `last_will=message` is the message that each subscriber receives, after all others and with
    /// `last_will` true, if this process dies without closing the publisher. At most 4096 bytes.
    #[pyo3(signature = (topic, r#type = None, *, reliable = false, on_full = None,
        transient_local = 0, urgent = false, log_len_bytes = None, reserve_log = false,
        pool_limit_bytes = None, large_depth = None, deadline = None, lifespan = None,
        liveliness_lease = None, last_will = None))]
    fn publisher(
        &self,
        py: Python<'_>,
        topic: Name,
        r#type: Option<&Bound<'_, PyAny>>,
        reliable: bool,
        on_full: Option<&Bound<'_, PyAny>>,
        transient_local: u32,
        urgent: bool,
        log_len_bytes: Option<u64>,
        reserve_log: bool,
        pool_limit_bytes: Option<u64>,
        large_depth: Option<u32>,
        deadline: Option<f64>,
        lifespan: Option<f64>,
        liveliness_lease: Option<f64>,
        last_will: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Publisher> {
        let codec = Codec::new(py, r#type)?;
        let time = |what, given| qos::optional_seconds(py, what, given);
        let on_full = qos::reliability(py, reliable, on_full)?;
        let (deadline, lifespan) = (time("deadline", deadline)?, time("lifespan", lifespan)?);
        let lease = time("liveliness_lease", liveliness_lease)?;
        let will = last_will.map(|will| codec.bytes(will, &topic)).transpose()?;
        let will = will.map(|will| will.as_slice().to_vec());
        let configure = |builder: PublisherBuilder<[u8]>| {
            builder
                .set_opt(on_full, PublisherBuilder::reliable)
                .set_opt(
                    Some(transient_local).filter(|n| *n > 0),
                    PublisherBuilder::transient_local,
                )
                .set_if(urgent, PublisherBuilder::urgent)
                .set_opt(log_len_bytes, PublisherBuilder::log_len_bytes)
                .set_if(reserve_log, PublisherBuilder::reserve_log)
                .set_opt(pool_limit_bytes, PublisherBuilder::pool_limit_bytes)
                .set_opt(large_depth, PublisherBuilder::large_depth)
                .set_opt(deadline, PublisherBuilder::deadline)
                .set_opt(lifespan, PublisherBuilder::lifespan)
                .set_opt(lease, PublisherBuilder::manual_by_topic)
                .set_opt(will, |builder, will| builder.last_will(will.as_slice()))
        };
        self.publish(py, &topic, configure, codec)
    }

    /// Subscribes to a topic.
    ///
    /// `type` is as for `publisher`, and both must match; None receives every message as bytes. With `on`,
    /// each message is passed to that function, on the node's thread for the lane of the topic, until the
    /// node or the subscriber is closed; see `Subscriber.on`. `reliable=True` makes the publisher wait rather
    /// than lose a message. `transient_local=True` first receives the messages that the publisher has kept.
    /// `lane` requires "urgent" or "bulk". `wait` is "adaptive", "spin" or "block".
    ///
    /// `keep_last=n` skips all but the last n unread messages of each publisher, and counts the skipped ones.
    /// By default, best-effort subscribers keep the last 10, and reliable ones keep all; `keep_all=True`
    /// keeps all that the publisher's log still holds.
    ///
    /// `deadline=s` requests a message from each publisher at least every s seconds; `liveliness_lease=s`
    /// requests publishers that assert their liveliness every s seconds; see `on_deadline` and
    /// `on_liveliness`.
    #[pyo3(signature = (topic, r#type = None, *, on = None, on_error = None, reliable = false,
        transient_local = false, lane = None, keep_last = None, keep_all = false, wait = "adaptive",
        deadline = None, liveliness_lease = None))]
    fn subscriber(
        &self,
        py: Python<'_>,
        topic: Name,
        r#type: Option<&Bound<'_, PyAny>>,
        on: Option<Callback>,
        on_error: Option<Callback>,
        reliable: bool,
        transient_local: bool,
        lane: Option<&str>,
        keep_last: Option<u32>,
        keep_all: bool,
        wait: &str,
        deadline: Option<f64>,
        liveliness_lease: Option<f64>,
    ) -> PyResult<Py<Subscriber>> {
        if on.is_none() && on_error.is_some() {
            return Err(bad_value(py, "on_error", "it needs a callback: pass on=... too"));
        }
        let codec = Codec::new(py, r#type)?;
        let lane = lane.map(|lane| qos::lane(py, lane)).transpose()?;
        let time = |what, given| qos::optional_seconds(py, what, given);
        let lease = time("liveliness_lease", liveliness_lease)?;
        let qos = SubscriberQos {
            wait: qos::wait(py, wait)?,
            lane,
            deadline: time("deadline", deadline)?,
            liveliness: qos::liveliness(lease),
            ..qos::subscriber(py, reliable, transient_local, keep_last, keep_all)?
        };
        self.open_subscriber(py, &topic, qos, codec, wait == "spin", (on, on_error))
    }

    /// Subscribes to every topic whose name matches `pattern`, including topics that are created later: `*`
    /// matches one part of a name, `**` any number of parts. `callback` gets an AnyMessage for each message,
    /// on the node's threads for the lanes of the topics, until the returned CallbackHandle is cancelled
    /// (also within the callback), or the node is closed.
    ///
    /// `on_error` gets errors, as in `Subscriber.on`, including those of topics that cannot be subscribed.
    /// The other keyword arguments are those of `subscribe` and apply to each topic.
    #[pyo3(signature = (pattern, callback, /, *, on_error = None, reliable = false,
        transient_local = false, keep_last = None, keep_all = false))]
    fn subscribe_any(
        &self,
        py: Python<'_>,
        pattern: &str,
        callback: Callback,
        on_error: Option<Callback>,
        reliable: bool,
        transient_local: bool,
        keep_last: Option<u32>,
        keep_all: bool,
    ) -> PyResult<CallbackHandle> {
        let qos = qos::subscriber(py, reliable, transient_local, keep_last, keep_all)?;
        let call = (callback, on_error);
        let start = |node: &_| CallbackHandle::subscribe_any(py, node, pattern, qos, call);
        self.keep_handle(py, start)
    }

    /// The state of the domain: keys with values that every node reads and writes, as a mapping; see State.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<PyState> {
        if self.state.get().is_none() {
            self.open_state(py)?;
        }
        let core = self.state.get().expect("it was opened above").clone();
        core.with(|_| Ok(())).or_raise(py)?;
        Ok(PyState::new(core, self.shared.clone()))
    }

    /// The state of another host; see RemoteState. `timeout` is the time limit of each answer in seconds, 10 by
    /// default.
    #[pyo3(signature = (host, *, timeout = None))]
    fn state_of(
        &self,
        py: Python<'_>,
        host: &str,
        timeout: Option<f64>,
    ) -> PyResult<PyRemoteState> {
        PyRemoteState::open(py, &self.shared, host, timeout)
    }

    /// Declares a parameter of this node: a setting that people and other nodes may change while it runs.
    ///
    /// `default` is the value if none was set, and determines the type: bool, int, float, str, or a list of
    /// one of them; `type` gives the type if the default does not (`type=float`, `type=list[str]`). Without a
    /// default, a value must have been set before. `min` and `max` limit numbers, `choices` limits strings,
    /// in lists each item; `unit` and `description` are for people. Setting a value that is not allowed (with
    /// `rnet param set`, through the state or here) raises BadValueError with the reason and changes nothing.
    ///
    /// A set value outlives the node, and with `durable=True` also a reboot. If an existing value is not
    /// allowed, the parameter gets its default, with a warning (ParamRefusedWarning). `read_only=True` rejects
    /// changes while this node runs. `on_change(value)` is called with each new value, on a thread of the
    /// node, until the node is closed.
    #[pyo3(signature = (name, *, default = None, r#type = None, min = None, max = None, choices = None,
        unit = "", description = "", read_only = false, durable = false, on_change = None))]
    fn param(
        &self,
        py: Python<'_>,
        name: &str,
        default: Option<&Bound<'_, PyAny>>,
        r#type: Option<&Bound<'_, PyAny>>,
        min: Option<&Bound<'_, PyAny>>,
        max: Option<&Bound<'_, PyAny>>,
        choices: Option<Vec<String>>,
        unit: &str,
        description: &str,
        read_only: bool,
        durable: bool,
        on_change: Option<Callback>,
    ) -> PyResult<Param> {
        // Like a slow callback of a topic, it gets only the newest value.
        let on_change = Callback::optional(py, on_change, Some(1))?;
        let calls_back = on_change.is_some();
        let words = format!("parameter {name} of {}", self.shared.name);
        let value = |given: Option<&Bound<'_, PyAny>>| {
            let given = given.filter(|given| !given.is_none());
            given.map(|given| param::of_object(&words, given)).transpose()
        };
        let kind = r#type.filter(|kind| !kind.is_none()).map(param::kind_of).transpose()?;
        let (default, min, max) = (value(default)?, value(min)?, value(max)?);
        // The builder holds the node: no code may raise until `declare` has the builder and drops it without
        // the GIL.
        let builder = self.shared.with(py, |node| node.param::<Value>(name))?;
        let builder = builder
            .set_opt(default, ParamBuilder::default)
            .set_opt(kind, ParamBuilder::kind)
            .set_opt(min, ParamBuilder::min)
            .set_opt(max, ParamBuilder::max)
            .set_opt(choices, ParamBuilder::choices)
            .set_if(read_only, |builder| builder.read_only())
            .set_if(durable, |builder| builder.durable())
            .set_opt(on_change, |builder, callback| builder.on_change(param::hook(callback)))
            .unit(unit)
            .description(description);
        Param::declare(py, &self.shared, builder, calls_back)
    }

    /// Serves the calls of a service with `handler`, until the returned Service, or the node, is closed.
    ///
    /// `request` and `reply` are types as for `publisher`, None for bytes. `handler(request)` returns the
    /// reply, or None if `reply` is None; a generator yields any number of replies, and is closed at a
    /// `yield` when its caller wants no more. With two parameters it also gets a CallContext, and can check
    /// for cancellation. An exception in the handler raises CallFailedError at the caller. The handler runs on
    /// threads of the service, an async one on the event loop of the caller of this method, up to `at_once`
    /// calls at a time (1 to 256); `backlog` calls may wait (0 to 65,536), and further ones raise RefusedError.
    #[pyo3(signature = (name, request, reply, handler, *, backlog = 64, at_once = 1))]
    fn service(
        &self,
        py: Python<'_>,
        name: Name,
        request: Option<&Bound<'_, PyAny>>,
        reply: Option<&Bound<'_, PyAny>>,
        handler: Callback,
        backlog: i64,
        at_once: i64,
    ) -> PyResult<Service> {
        let limits = (backlog, at_once);
        Service::open(py, &self.shared, &name, (request, reply), handler.into_inner(), limits)
    }

    /// Creates a Client of a service, whose servers may start later. `request` and `reply` are types as for
    /// `publisher`, None for bytes. `timeout` is the time limit of its calls in seconds, unless a call has its own;
    /// `math.inf`: no limit. Reuse one client for many calls, from any thread or task.
    #[pyo3(signature = (name, request = None, reply = None, *, timeout = 10.0))]
    fn client(
        &self,
        py: Python<'_>,
        name: Name,
        request: Option<&Bound<'_, PyAny>>,
        reply: Option<&Bound<'_, PyAny>>,
        timeout: f64,
    ) -> PyResult<Client> {
        Client::open(py, &self.shared, &name, (request, reply), timeout)
    }

    /// Serves the goals of an action: a service with feedback for long tasks, one goal at a time.
    ///
    /// The types are those of goals, feedback and results, as for `publisher`, None for bytes.
    /// `handler(goal)` returns the result; a generator yields feedback and returns the result, and is closed
    /// at a `yield` when the goal is cancelled. A handler with two parameters also gets an ActionContext,
    /// with `feedback`, `cancelled` and `reason`. `policy` applies to a goal that arrives while another runs:
    /// "reject" refuses it, "queue" lets up to `queue` goals wait (1 to 65,536), "replace" cancels the
    /// existing ones. An async handler runs on the event loop of the caller of this method.
    #[pyo3(signature = (name, goal, feedback, result, handler, *, policy = "reject", queue = None))]
    fn action(
        &self,
        py: Python<'_>,
        name: Name,
        goal: Option<&Bound<'_, PyAny>>,
        feedback: Option<&Bound<'_, PyAny>>,
        result: Option<&Bound<'_, PyAny>>,
        handler: Callback,
        policy: &str,
        queue: Option<i64>,
    ) -> PyResult<Service> {
        let (types, function) = ([goal, feedback, result], handler.into_inner());
        crate::calls::open_action(py, &self.shared, &name, types, function, (policy, queue))
    }

    /// Creates an ActionClient, whose servers may start later. The types are those of goals, feedback and
    /// results, as for `publisher`, None for bytes.
    #[pyo3(signature = (name, goal = None, feedback = None, result = None))]
    fn action_client(
        &self,
        py: Python<'_>,
        name: Name,
        goal: Option<&Bound<'_, PyAny>>,
        feedback: Option<&Bound<'_, PyAny>>,
        result: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<ActionClient> {
        ActionClient::open(py, &self.shared, &name, [goal, feedback, result])
    }

    /// Creates a Pusher, the sending end of a work queue, whose workers may start later.
    ///
    /// `job` is a type as for `publisher`, None for bytes. Up to `backlog` jobs may be open at a time (1 to
    /// 65,536); `timeout` is the time in seconds that a push waits for room before it raises LimitReachedError. A
    /// worker that does not acknowledge within `ack_within` seconds counts as lost. `on_undelivered` gets an
    /// Undelivered for each job that was not acknowledged, on a thread of the pusher; without it, the node
    /// logs a line.
    #[pyo3(signature = (name, job = None, *, backlog = 1024, timeout = 0.0, ack_within = None, on_undelivered = None))]
    fn push(
        &self,
        py: Python<'_>,
        name: Name,
        job: Option<&Bound<'_, PyAny>>,
        backlog: i64,
        timeout: f64,
        ack_within: Option<f64>,
        on_undelivered: Option<Callback>,
    ) -> PyResult<Pusher> {
        let on_undelivered = Callback::optional(py, on_undelivered, None)?;
        let settings = PushSettings { backlog, timeout, ack_within, on_undelivered };
        Pusher::open(py, &self.shared, (&name, job), settings)
    }

    /// Creates a Puller, a worker of a work queue, which has one job at a time. `job` is a type as for
    /// `push`.
    ///
    /// With a handler `on` it returns a Service, which calls the handler with each job on its own thread (an
    /// async one on the event loop of the caller) until it is closed; a handler with two parameters also gets
    /// a JobContext. Returning acknowledges the job; an exception fails it.
    #[pyo3(signature = (name, job = None, *, on = None))]
    fn pull(
        &self,
        py: Python<'_>,
        name: Name,
        job: Option<&Bound<'_, PyAny>>,
        on: Option<Callback>,
    ) -> PyResult<Py<PyAny>> {
        let Some(on) = on else {
            return Ok(Py::new(py, Puller::open(py, &self.shared, (&name, job))?)?.into_any());
        };
        let service = open_handler(py, &self.shared, (&name, job), on.into_inner())?;
        Ok(Py::new(py, service)?.into_any())
    }

    /// Receives a command: passes the messages of the one driver in force to `apply`, or publishes them on
    /// the topic `forward` without Python. Falls back if no command arrives within `deadline` seconds, the driver
    /// is gone, or `apply` raises.
    ///
    /// `message` is a type as for `publisher`, None for bytes. `fallback` is a message; "zero", the default
    /// of the type; "hold", the last command; or a function, which gets the reason. Both functions run on a
    /// dedicated thread. Raises ReceiverExistsError if the topic has a receiver.
    #[pyo3(signature = (topic, message, apply = None, *, forward = None, fallback, deadline = 0.1))]
    fn command(
        &self,
        py: Python<'_>,
        topic: Name,
        message: Option<&Bound<'_, PyAny>>,
        apply: Option<Callback>,
        forward: Option<String>,
        fallback: &Bound<'_, PyAny>,
        deadline: f64,
    ) -> PyResult<Command> {
        let target = Target::of(apply.map(Callback::into_inner), forward)?;
        Command::open(py, &self.shared, (&topic, message), target, fallback, deadline)
    }

    /// Takes authority over a command, if no driver has it or its driver has a lower `priority`, and returns
    /// a Driver. Authority ends `lease` seconds after the last command or renewal; with `auto_retake`, each `send`
    /// requests it again. `timeout` is the time in seconds to wait for a receiver, 10 by default. Raises NotInForceError if
    /// another driver has authority; WaitTimeoutError.
    #[pyo3(signature = (topic, message = None, *, priority = 0, lease = 0.2, auto_retake = false,
        timeout = None))]
    fn drive(
        &self,
        py: Python<'_>,
        topic: Name,
        message: Option<&Bound<'_, PyAny>>,
        priority: i64,
        lease: f64,
        auto_retake: bool,
        timeout: Option<f64>,
    ) -> PyResult<Driver> {
        Driver::take(py, &self.shared, (&topic, message), (priority, lease, auto_retake), timeout)
    }

    /// Calls `callback` with a Tick every `period` seconds, or only once with `once=True`, on the node's
    /// thread for the bulk lane, or for the urgent one with `urgent=True`. Ends when the returned Timer is
    /// cancelled (also within the callback), or the node is closed.
    ///
    /// The callbacks of one lane, of messages and of timers, share a thread: when one has ended, the timers
    /// that are due run, the earliest first, and then the next message. Each tick is due one period after the
    /// previous one was due, however late that one ran; a tick that has not run when the next one is due is
    /// skipped and counted (Tick.missed, Timer.missed). Exceptions of a callback go to sys.unraisablehook,
    /// and the timer continues. An async callback runs on the event loop of the caller; ticks that come
    /// before its end are skipped.
    #[pyo3(signature = (period, callback, /, *, once = false, urgent = false))]
    fn timer(
        &self,
        py: Python<'_>,
        period: f64,
        callback: Callback,
        once: bool,
        urgent: bool,
    ) -> PyResult<Timer> {
        let period = seconds(py, "period", period)?;
        let how = (once, urgent);
        let timer =
            self.shared.with(py, |node| Timer::start(py, node, period, callback, how))??;
        py.detach(|| self.shared.members.add_retained(MemberKind::Timer, timer.core()));
        Ok(timer)
    }

    /// The node's log: a Logger.
    #[getter]
    fn log(&self) -> Logger {
        Logger::new(self.shared.clone())
    }

    /// The time of the robot in ns: the host's time, as rnet.now_ns(), or with sim_time the time of the last
    /// Clock message on `/clock`, and 0 before the first one. Timers and rates of the node follow it; message
    /// stamps, deadlines, lifespans, liveliness and timeouts use the host's clock.
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.with(py, rnet::Node::now)
    }

    /// Whether the node uses simulated time.
    #[getter]
    fn sim_time(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.with(py, rnet::Node::is_sim_time)
    }

    /// Creates a Rate of `hz` iterations per second of the node's time.
    fn rate(&self, py: Python<'_>, hz: f64) -> PyResult<Rate> {
        self.shared.with(py, |node| node.rate(hz))?.or_raise(py).map(Rate::of)
    }

    /// Calls `callback` with a NodeEvent when a node joins, leaves or dies.
    #[pyo3(signature = (callback, /))]
    fn on_node(&self, py: Python<'_>, callback: Callback) -> PyResult<CallbackHandle> {
        let add = |hook| py.detach(|| Ok(self.shared.node()?.on_node(hook))).or_raise(py);
        CallbackHandle::for_events(py, callback, events::node_event, add)
    }

    /// Calls `callback` with an EndpointEvent for each publisher and subscriber of the domain, including
    /// those of this node: once for each existing one, once when one is opened, and once when one closes.
    /// Runs on the node's thread for the bulk lane, until the returned CallbackHandle is cancelled (also
    /// within the callback), or the node is closed. Exceptions go to sys.unraisablehook.
    #[pyo3(signature = (callback, /))]
    fn on_endpoint(&self, py: Python<'_>, callback: Callback) -> PyResult<CallbackHandle> {
        self.keep_handle(py, |node| CallbackHandle::on_endpoint(py, node, callback))
    }

    /// The types of a topic's publishers, as a list of PublishedType, for recorders and tools. Reads the
    /// domain, which takes about a millisecond.
    fn published_types(&self, py: Python<'_>, topic: &str) -> PyResult<Vec<Py<PyAny>>> {
        let NodeCore { domain, path, group, .. } = &*self.shared;
        compare::published_types(py, topic, (domain, path, group.as_deref()))
    }

    /// Name of the node, with its leading slash.
    #[getter]
    fn name(&self) -> &str {
        &self.shared.name
    }

    /// Id of the domain.
    #[getter]
    fn domain(&self) -> &str {
        &self.shared.domain
    }

    /// Exceptions in its callbacks, timers and handlers so far. `/log` has them, at most one per second for
    /// each function.
    #[getter]
    fn callback_errors(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.with(py, rnet::Node::callback_errors)
    }

    /// Directory of the domain.
    #[getter]
    fn domain_path(&self) -> String {
        self.shared.path.display().to_string()
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Closes the node's publishers and subscribers and leaves the domain. Waits for running callbacks,
    /// unless Ctrl-C ends the wait; async ones continue. Received samples stay valid.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        interpreter::close(py, self.closing())
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Node {} in domain {}>", self.shared.name, self.shared.domain)
    }
}
