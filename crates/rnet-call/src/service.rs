//! The public server of a service.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rnet_core::{CancelReason, Error, Result, TopicName, is_internal};
use rnet_node::callback_errors::{CallbackErrors, text_of_panic};
use rnet_node::sync::join_callbacks;
use rnet_node::types::choose_type;

use super::bytes::{Bytes, Received};
use super::peer::Peer;
use super::server_core::{Call, HandlerFn, HandlerOutcome, ServerCore};
use super::service_stats::ServiceStats;
use super::settings::ServerSettings;
use rnet_node::{Message, MessageType, NodeHandle};

/// The error of a handler, as sent to the caller: created by `?` from any error, or by [`HandlerError::new`].
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerError {
    pub(crate) kind: String,
    pub(crate) text: String,
    /// Whether the log of the node has it, or need not have it.
    is_reported: bool,
}

impl HandlerError {
    /// An error with a kind for programs and a text for users.
    pub fn new(kind: impl Into<String>, text: impl Into<String>) -> HandlerError {
        HandlerError { kind: kind.into(), text: text.into(), is_reported: false }
    }

    /// For bindings: the same error, without a report in the log of the node.
    #[doc(hidden)]
    #[must_use]
    pub fn reported(self) -> HandlerError {
        HandlerError { is_reported: true, ..self }
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> HandlerError {
        HandlerError::new(std::any::type_name::<E>(), error.to_string())
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

/// A builder for a server; made by `rnet::Node::service`.
#[must_use = "nothing is served until serve() or serve_stream() is called"]
pub struct ServiceBuilder<Q: ?Sized, R: ?Sized> {
    node: NodeHandle,
    settings: ServerSettings,
    types: (Option<MessageType>, Option<MessageType>),
    _types: PhantomData<fn(&Q) -> Box<R>>,
}

impl<Q: Message + ?Sized, R: Message + ?Sized> ServiceBuilder<Q, R> {
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, name: &str) -> Self {
        let settings = ServerSettings::new(name);
        ServiceBuilder { node: node.clone(), settings, types: (None, None), _types: PhantomData }
    }

    /// A server whose name is already the domain's.
    #[doc(hidden)]
    pub fn at(node: &NodeHandle, topic: &TopicName) -> Self {
        let mut builder = ServiceBuilder::new(node, topic.as_str());
        builder.settings.is_final = true;
        builder
    }

    /// How many calls may wait while the handlers are busy: 0 to 65,536, 64 by default. Further calls are
    /// refused.
    pub fn backlog(mut self, calls: usize) -> Self {
        self.settings.backlog = calls;
        self
    }

    /// Maximum number of concurrent handlers, each in its own thread: 1 to 256, 1 by default.
    pub fn at_once(mut self, handlers: usize) -> Self {
        self.settings.at_once = handlers;
        self
    }

    /// The types, for messages that leave them open: `[u8]`, which are then sent as they are, and
    /// [`rnet_node::Dynamic`].
    pub fn message_types(mut self, request: MessageType, reply: MessageType) -> Self {
        self.types = (Some(request), Some(reply));
        self
    }

    /// Opens the server. `handler` returns one reply to each request.
    ///
    /// # Errors
    /// `BadName`; `BadValue` for a backlog or number of handlers that is not allowed; as
    /// `rnet::Node::subscriber`.
    pub fn serve<B: Borrow<R>>(
        self,
        handler: impl Fn(&Q) -> Result<B, HandlerError> + Send + Sync + 'static,
    ) -> Result<Service> {
        self.serve_any(move |request, _| handler(request).map(Some))
    }

    /// As [`ServiceBuilder::serve`] and [`ServiceBuilder::serve_stream`], for bindings: `handler` either returns the
    /// only reply, or has sent its replies.
    ///
    /// # Errors
    /// As [`ServiceBuilder::serve`].
    #[doc(hidden)]
    pub fn serve_any<B: Borrow<R>>(
        self,
        handler: impl Fn(&Q, &mut Responder<'_, R>) -> Result<Option<B>, HandlerError>
        + Send
        + Sync
        + 'static,
    ) -> Result<Service> {
        self.serve_with(move |request, responder| {
            let Some(reply) = handler(request, responder)? else {
                return Ok(HandlerOutcome::Returned);
            };
            match responder.answer(reply.borrow()) {
                Ok(outcome) => Ok(outcome),
                // A cancellation is not a failure of the handler.
                Err(Error::Cancelled { .. }) => Ok(HandlerOutcome::Returned),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Opens the server. `handler` sends any number of replies.
    ///
    /// # Errors
    /// As [`ServiceBuilder::serve`].
    pub fn serve_stream(
        self,
        handler: impl Fn(&Q, &mut Responder<'_, R>) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Result<Service> {
        self.serve_with(move |request, responder| {
            handler(request, responder).map(|()| HandlerOutcome::Returned)
        })
    }

    fn serve_with(
        self,
        handler: impl Fn(&Q, &mut Responder<'_, R>) -> Result<HandlerOutcome, HandlerError>
        + Send
        + Sync
        + 'static,
    ) -> Result<Service> {
        let name = &self.settings.name;
        let (request, reply) =
            (choose_type::<Q>(name, self.types.0)?, choose_type::<R>(name, self.types.1)?);
        let types = (request.clone(), reply.clone());
        let errors = self.node.core.state.errors.clone();
        let run = move |call: &mut Call| {
            run_handler(call, &request, &errors, |received, call| {
                let mut responder =
                    Responder { call, ty: &reply, encoded: Vec::new(), _type: PhantomData };
                handler(received, &mut responder)
            })
        };
        Service::open(&self.node, self.settings, types, Box::new(run))
    }
}

/// Runs a handler on the request of a call. A panic counts as a failure. A failure is reported in the log.
pub(super) fn run_handler<Q: Message + ?Sized>(
    call: &mut Call,
    request: &MessageType,
    errors: &CallbackErrors,
    handler: impl FnOnce(&Q, &mut Call) -> Result<HandlerOutcome, HandlerError>,
) -> HandlerOutcome {
    let name = |call: &Call| format!("the handler of {}", call.service());
    let error = match Received::<Q>::decode(call.take_request(), request) {
        Err(why) => HandlerError::new("malformed", format!("the request is malformed: {why}")),
        Ok(received) => match catch_unwind(AssertUnwindSafe(|| handler(&received, call))) {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(error)) => error,
            Err(panic) => {
                errors.note_panic(&name(call), &*panic);
                HandlerError::new("panic", text_of_panic(&*panic)).reported()
            }
        },
    };
    if !error.is_reported && !is_internal(call.service()) && call.is_wanted() {
        errors.note_returned(&name(call), &format!("{error:?}"));
    }
    HandlerOutcome::Failed(error)
}

/// Sends the replies of a handler to one call.
pub struct Responder<'a, R: Message + ?Sized> {
    call: &'a mut Call,
    ty: &'a MessageType,
    encoded: Vec<u8>,
    _type: PhantomData<fn(&R)>,
}

impl<R: Message + ?Sized> Responder<'_, R> {
    /// Sends a reply. Waits for at most a second if the caller does not read.
    ///
    /// # Errors
    /// `Cancelled` if the caller has cancelled or is gone, or wants one reply and has it; `Full` if it does
    /// not read; `BadValue` for a message of another type.
    pub fn send(&mut self, reply: &R) -> Result<()> {
        let what = || format!("reply of {}", self.call.service());
        Bytes::encode(reply, self.ty, &mut self.encoded)
            .map_err(|why| Error::bad_value(what(), why))?;
        self.call.reply(&self.encoded)
    }

    /// Sends the only reply of a handler, and ends its call.
    fn answer(&mut self, reply: &R) -> Result<HandlerOutcome> {
        let Responder { call, ty, encoded, .. } = self;
        let bytes = Bytes::of(reply, ty, encoded)
            .map_err(|why| Error::bad_value(format!("reply of {}", call.service()), why))?;
        match call.answer(bytes) {
            Some(end) => Ok(HandlerOutcome::Replied(end)),
            None => call.reply(bytes).map(|()| HandlerOutcome::Returned),
        }
    }

    /// Whether the answer is no longer needed: the caller has cancelled or is gone, or the service is
    /// closing.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }

    /// The calling node.
    pub fn caller(&self) -> &str {
        self.call.caller()
    }

    /// A handle for other threads to query the call.
    pub fn context(&self) -> CallContext {
        self.call.context()
    }
}

/// Status of a call at its server, for any thread, also after the call has ended.
#[derive(Clone)]
pub struct CallContext {
    pub(crate) peer: Arc<Peer>,
    pub(crate) number: u32,
}

impl CallContext {
    /// As [`Responder::is_cancelled`]; true when the call has ended.
    pub fn is_cancelled(&self) -> bool {
        self.peer.is_cancelled(self.number)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.peer.has_ended(self.number)
    }

    /// Why it was cancelled; `None` if it was not, and after the call has ended.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.peer.cancel_reason(self.number)
    }

    /// As [`CallContext::cancel_reason`], without counting as seen by the handler: a closing service still
    /// delivers its answer.
    #[doc(hidden)]
    pub fn peek_cancel_reason(&self) -> Option<CancelReason> {
        self.peer.peek_cancel_reason(self.number)
    }

    /// As [`crate::ActionContext::feedback`] for an action whose feedback is sent as it is, for bindings.
    ///
    /// # Errors
    /// As [`crate::ActionContext::feedback`].
    #[doc(hidden)]
    pub fn feedback(&self, encoded: &[u8]) -> Result<()> {
        self.peer.feedback(self.number, encoded)
    }

    /// The calling node.
    pub fn caller(&self) -> &str {
        self.peer.node()
    }
}

/// A server of a service, or of an action. Dropping it cancels its calls, waits for running handlers, except
/// inside a callback or a handler, and closes it: its callers get `ServerLost`.
#[must_use = "the service stops when this is dropped"]
pub struct Service {
    core: Arc<ServerCore>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    pub(super) fn open(
        node: &NodeHandle,
        settings: ServerSettings,
        types: (MessageType, MessageType),
        run: HandlerFn,
    ) -> Result<Service> {
        let (core, threads) = ServerCore::open(node, settings, types, run)?;
        Ok(Service { core, threads })
    }

    /// The first step of closing.
    pub(super) fn begin_close(&self) {
        self.core.close();
    }

    pub(super) fn check_fork(&self) -> Result<()> {
        self.core.check_fork()
    }

    /// The name of the service.
    pub fn name(&self) -> &str {
        self.core.name()
    }

    /// Counters of this server.
    pub fn stats(&self) -> ServiceStats {
        self.core.stats()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if self.core.is_from_parent() {
            std::mem::forget(threads);
            return;
        }
        self.core.close();
        threads.into_iter().for_each(|thread| join_callbacks(Some(thread)));
    }
}
