//! `rnet.ActionClient`, and the handlers of actions.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use rnet::{CallContext, CallOptions, GoalPolicy};

use super::goal::{Goal, GoalCodecs, GoalCore};
use super::service::{Handler, Service, is_generator};
use super::shared_client::SharedClient;
use super::{count, with_encoded, with_encoded_reply};
use crate::callback::call;
use crate::codec::Codec;
use crate::errors::{OrRaise, bad_value};
use crate::members::{Member, MemberKind};
use crate::meta::make;
use crate::node_core::NodeCore;
use crate::qos::OptionalSetters;
use crate::wait::answer_limit;

type Types<'a, 'py> = [Option<&'a Bound<'py, PyAny>>; 3];
/// Opens the server of an action.
pub(crate) fn open(
    py: Python<'_>,
    node: &Arc<NodeCore>,
    name: &str,
    [goal, feedback, result]: Types<'_, '_>,
    function: Py<PyAny>,
    (policy, queue): (&str, Option<i64>),
) -> PyResult<Service> {
    let policy = match (policy, queue) {
        ("reject", None) => GoalPolicy::Reject,
        ("queue", Some(goals)) => GoalPolicy::Queue(count(py, "queue", goals)?),
        ("replace", None) => GoalPolicy::Replace,
        ("queue", None) => {
            let why = "it is missing; policy=\"queue\" needs the number of goals that may wait, 1 to 65,536";
            return Err(bad_value(py, format!("queue of {name}"), why.to_owned()));
        }
        ("reject" | "replace", Some(goals)) => {
            let why =
                format!("it is {goals}, but goals do not wait with policy={policy:?}; omit it");
            return Err(bad_value(py, format!("queue of {name}"), why));
        }
        (other, _) => {
            let why = format!("it is {other:?}, and must be \"reject\", \"queue\" or \"replace\"");
            return Err(bad_value(py, "policy", why));
        }
    };
    let (goal, result) = (Codec::new(py, goal)?, Codec::new(py, result)?);
    let feedback = Codec::new(py, feedback)?;
    let types = [&goal, &feedback, &result].map(|codec| codec.message_type.clone());
    let handler = Handler::new(py, function, ("action", format!("a goal of {name}")), goal)?;
    let (feedback, place) = (Arc::new(feedback), format!("the results of {name}"));
    Service::open_resource(py, node, || {
        let [goal, heard, returned] = types;
        let builder = node.node()?.action::<[u8], [u8], [u8]>(name);
        let builder = builder.message_types(goal, heard, returned).policy(policy);
        let name = name.to_owned();
        builder.serve(move |goal: &[u8], goals: &mut rnet::ActionContext<'_, [u8]>| {
            let inner = goals.context();
            let wanted = inner.clone();
            let context = ActionContext { inner, feedback: feedback.clone(), name: name.clone() };
            let mut answer = Vec::new();
            handler.run(
                goal,
                || wanted.is_cancelled(),
                context,
                |mut returned, context| {
                    let py = returned.py();
                    if is_generator(&returned)? {
                        let hear = py.get_type::<ActionContext>().getattr("feedback")?;
                        // A cancelled generator is closed at a `yield`: its `finally` blocks run.
                        let worked = py.import("rnet.calls")?.getattr("run_action_generator")?;
                        returned = call(&worked, (returned, hear, context))?;
                    }
                    answer = with_encoded_reply(&result, &returned, &place, <[u8]>::to_vec)?;
                    Ok(())
                },
            )?;
            Ok(answer)
        })
    })
}

/// The context of a goal, passed to a handler with two parameters.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct ActionContext {
    inner: CallContext,
    feedback: Arc<Codec>,
    name: String,
}

#[pymethods]
impl ActionContext {
    /// Sends feedback. If the caller does not read, feedback is dropped and counted at the caller. Raises
    /// CallCancelledError if the goal was cancelled.
    fn feedback(&self, py: Python<'_>, feedback: &Bound<'_, PyAny>) -> PyResult<()> {
        let place = format!("the feedback of {}", self.name);
        let send = |bytes: &[u8]| py.detach(|| self.inner.feedback(bytes));
        with_encoded(&self.feedback, feedback, &place, send)?.or_raise(py)
    }

    /// Whether the goal was cancelled or has ended.
    #[getter]
    fn cancelled(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.is_cancelled())
    }

    /// The reason, as in CallCancelledError.reason; None if the goal was not cancelled, or has ended.
    #[getter]
    fn reason(&self, py: Python<'_>) -> Option<&'static str> {
        super::reason_name(py.detach(|| self.inner.cancel_reason()))
    }

    /// The reason, read by the code that runs the handler; the handler does not learn of it by this call.
    fn _peek_reason(&self, py: Python<'_>) -> Option<&'static str> {
        super::reason_name(py.detach(|| self.inner.peek_cancel_reason()))
    }

    /// Name of the node that sent the goal.
    #[getter]
    fn caller(&self) -> &str {
        self.inner.caller()
    }
}

/// State shared by the Python object, its goals and its node.
pub(crate) type ActionClientCore = SharedClient<rnet::ActionClient<[u8], [u8], [u8]>, GoalCodecs>;

/// Sends goals to an action. Any thread or task may send any number of goals at a time. Created by
/// `Node.action_client`.
///
/// >>> action = node.action("/count", None, None, None, lambda goal, context: context.feedback(b"1") or b"2")
/// >>> goal = node.action_client("/count").send(b"")
/// >>> list(goal), goal.result(timeout=10)
/// ([b'1'], b'2')
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct ActionClient {
    core: Arc<ActionClientCore>,
    goal: Codec,
    node: Arc<NodeCore>,
}

impl ActionClient {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        name: &str,
        [goal, feedback, result]: Types<'_, '_>,
    ) -> PyResult<ActionClient> {
        let (goal, result) = (Codec::new(py, goal)?, Codec::new(py, result)?);
        let feedback = Codec::new(py, feedback)?;
        let types = [&goal, &feedback, &result].map(|codec| codec.message_type.clone());
        let open = || {
            let [goal, heard, returned] = types;
            let client = node
                .node()?
                .action_client::<[u8], [u8], [u8]>(name)
                .message_types(goal, heard, returned)
                .open()?;
            let heard = GoalCodecs { feedback, result };
            let core = Arc::new(ActionClientCore::new(client.name().to_owned(), client, heard));
            node.members.add(MemberKind::Client, &core);
            Ok(core)
        };
        let core = py.detach(open).or_raise(py)?;
        Ok(ActionClient { core, goal, node: node.clone() })
    }
}

#[pymethods]
impl ActionClient {
    /// Sends a goal without waiting, and returns a Goal. If no server exists yet, the goal goes to the first
    /// one that starts.
    ///
    /// `timeout` is the time limit of the goal in seconds; without it, the goal has no limit. Goals with the same `key` go to
    /// the same server. Errors are raised by the Goal.
    #[pyo3(signature = (goal, /, *, timeout = None, key = None))]
    fn send(
        &self,
        py: Python<'_>,
        goal: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        key: Option<&str>,
    ) -> PyResult<Goal> {
        let options = CallOptions::new()
            .timeout(answer_limit(py, timeout, Duration::MAX)?)
            .set_opt(key, CallOptions::key);
        let place = format!("the goals of {}", self.core.name);
        let sent = with_encoded(&self.goal, goal, &place, |bytes| {
            py.detach(|| {
                let goal = self.core.resource.get()?.send(bytes, options)?;
                let core = GoalCore::new(goal, self.core.clone());
                self.core.register(&core);
                Ok(core)
            })
        });
        Ok(Goal { core: sent?.or_raise(py)?, _node: self.node.clone() })
    }

    /// Asks all servers of the action to cancel all goals, of every client, and returns the number of servers
    /// asked. For operators: the goals are cancelled with the reason "operator". Raises FullError if a server does
    /// not read.
    fn cancel_all(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.core.resource.get()?.cancel_all()).or_raise(py)
    }

    /// Name of the action, with its leading slash.
    #[getter]
    fn name(&self) -> &str {
        &self.core.name
    }

    /// Number of servers now.
    #[getter]
    fn server_count(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| Ok(self.core.resource.get()?.server_count())).or_raise(py)
    }

    /// Counters, as ClientStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = py.detach(|| Ok(self.core.resource.get()?.stats())).or_raise(py)?;
        let parts = (s.calls, s.open, s.late, s.rerouted, s.feedback_skipped, s.feedback_lost);
        make(py, "ClientStats", parts)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.resource.is_closed()
    }

    /// Closes the client; open goals are cancelled and raise ClosedError.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }

    fn __repr__(&self) -> String {
        format!("<rnet.ActionClient of {}, by node {}>", self.core.name, self.node.name)
    }
}
