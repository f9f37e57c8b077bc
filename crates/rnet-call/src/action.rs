//! A server of an action: its builder, and the context of its handler.

use std::borrow::Borrow;
use std::marker::PhantomData;

use rnet_core::{CancelReason, Error, Result};
use rnet_node::types::choose_type;

use super::Bytes;
use super::server_core::{Call, HandlerOutcome};
use super::service::{CallContext, HandlerError, Service, run_handler};
use super::settings::ServerSettings;
use rnet_node::{Message, MessageType, NodeHandle};

/// Policy of an action for a goal that arrives while another one runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GoalPolicy {
    /// Refuses the new goal; `Refused` names the node whose goal runs.
    #[default]
    Reject,
    /// Queues the new goal; at most this many goals wait: 1 to 65,536.
    Queue(usize),
    /// Replaces the present goals, which are cancelled with the reason `Preempted`. The new goal begins when
    /// the handler of the running one has returned.
    Replace,
}

/// A server of an action that is not open yet; made by `rnet::Node::action`.
#[must_use = "nothing is served until serve() is called"]
pub struct ActionBuilder<G: ?Sized, F: ?Sized, R: ?Sized> {
    node: NodeHandle,
    name: String,
    policy: GoalPolicy,
    types: [Option<MessageType>; 3],
    _types: PhantomData<Signature<G, F, R>>,
}

/// Goal, feedback and result.
pub(crate) type Signature<G, F, R> = (fn(&G), fn() -> Box<F>, fn() -> Box<R>);

impl<G: Message + ?Sized, F: Message + ?Sized, R: Message + ?Sized> ActionBuilder<G, F, R> {
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, name: &str) -> Self {
        let (policy, types) = (GoalPolicy::default(), [None, None, None]);
        ActionBuilder {
            node: node.clone(),
            name: name.to_owned(),
            policy,
            types,
            _types: PhantomData,
        }
    }

    /// Policy for a goal that arrives while another one runs; `Reject` by default.
    pub fn policy(mut self, policy: GoalPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The types, for messages that leave them open: `[u8]`, which are then sent as they are, and
    /// [`rnet_node::Dynamic`].
    pub fn message_types(
        mut self,
        goal: MessageType,
        feedback: MessageType,
        result: MessageType,
    ) -> Self {
        self.types = [goal, feedback, result].map(Some);
        self
    }

    /// Opens the server. `handler` processes one goal at a time, and returns its result.
    ///
    /// A goal whose handler has seen the cancellation ends with `Cancelled`, whatever the handler returns. If
    /// the handler has not checked, its result is delivered: the goal was reached before.
    ///
    /// # Errors
    /// `BadName`; `BadValue` for a queue that is too long; as `rnet::Node::subscriber`.
    pub fn serve<B: Borrow<R>>(
        self,
        handler: impl Fn(&G, &mut ActionContext<'_, F>) -> Result<B, HandlerError>
        + Send
        + Sync
        + 'static,
    ) -> Result<Service> {
        let ActionBuilder { node, name, policy, types: [goal, feedback, result], .. } = self;
        let (goal, result) = (choose_type::<G>(&name, goal)?, choose_type::<R>(&name, result)?);
        let feedback = choose_type::<F>(&name, feedback)?;
        let types = (goal.clone(), result.clone());
        let (backlog, replaces) = match policy {
            GoalPolicy::Reject => (0, false),
            GoalPolicy::Queue(0) => {
                let (what, why) =
                    (format!("queue of {name}"), "it is 0; use Reject instead".to_owned());
                return Err(Error::BadValue { what, why });
            }
            GoalPolicy::Queue(goals) => (goals, false),
            GoalPolicy::Replace => (1, true),
        };
        let settings = ServerSettings {
            backlog,
            replaces,
            feedback: Some(feedback.clone()),
            ..ServerSettings::new(&name)
        };
        let errors = node.core.state.errors.clone();
        let run = move |call: &mut Call| {
            run_handler(call, &goal, &errors, |received, call| {
                let what = format!("result of {}", call.service());
                let mut context =
                    ActionContext { call, ty: &feedback, encoded: Vec::new(), _type: PhantomData };
                let reached = handler(received, &mut context)?;
                let mut encoded = Vec::new();
                Bytes::encode(reached.borrow(), &result, &mut encoded)
                    .map_err(|why| Error::BadValue { what, why })?;
                Ok(HandlerOutcome::GoalResult(encoded))
            })
        };
        Service::open(&node, settings, types, Box::new(run))
    }
}

/// A goal, as its handler sees it.
pub struct ActionContext<'a, F: Message + ?Sized> {
    call: &'a mut Call,
    ty: &'a MessageType,
    encoded: Vec<u8>,
    _type: PhantomData<fn(&F)>,
}

impl<F: Message + ?Sized> ActionContext<'_, F> {
    /// Sends feedback. Only the first call waits until the caller is connected. If the caller does not read,
    /// feedback that does not fit is dropped and counted at the caller.
    ///
    /// # Errors
    /// `Cancelled` if the goal was cancelled; `BadValue` for a message of another type; `IncompatibleType`.
    pub fn feedback(&mut self, feedback: &F) -> Result<()> {
        let what = || format!("feedback of {}", self.call.service());
        Bytes::encode(feedback, self.ty, &mut self.encoded)
            .map_err(|why| Error::bad_value(what(), why))?;
        self.call.feedback(&self.encoded)
    }

    /// Whether the goal is no longer wanted: the handler should return.
    pub fn cancelled(&self) -> bool {
        self.cancel_reason().is_some()
    }

    /// Why the goal is no longer wanted; `None` if it is wanted.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.context().cancel_reason()
    }

    /// The node whose goal it is.
    pub fn caller(&self) -> &str {
        self.call.caller()
    }

    /// A handle for other threads to query the goal.
    pub fn context(&self) -> CallContext {
        self.call.context()
    }
}
