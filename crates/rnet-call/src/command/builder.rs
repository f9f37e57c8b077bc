//! The receiving end of a command, as its user opens and holds it.

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::{Error, Lane, Result, TopicName};
use rnet_node::sync::{join_callbacks, lock};
use rnet_node::types::choose_type;
use rnet_shm::ring::fail_point;

use super::fallback_reason::FallbackReason;
use super::receiver::{Apply, CommandStats, Fallback, Receiver, ReceiverParts, StillValid};
use super::shared::{AnswerClaim, DriverRequest, ReceiverShared};
use super::status_reporter::StatusReporter;
use super::{authority_of, check_time, command_status_topic};
use crate::msgs::command_request::Action;
use crate::msgs::{CommandReply, CommandRequest, CommandStatus};
use crate::{Bytes, service_name};
use crate::{HandlerError, Responder, Service, ServiceBuilder};
use rnet_node::{EndpointQos, Message, MessageType, NodeHandle, WaitSet};

/// Default deadline of a receiver.
const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);
/// How long a killed receiver may still count as running.
const DEAD_RECEIVER_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a driver waits for the receiver's thread, which may be applying a command.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// If the first fallback fails within this time, [`CommandBuilder::apply`] returns the error.
const FIRST_FALLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// Encodes a message as this type.
type Encode = Box<dyn FnOnce(&MessageType) -> Result<Vec<u8>, String> + Send>;

enum FallbackChoice {
    Value(Encode),
    Hold,
    Handler(Box<dyn FnMut(FallbackReason) + Send>),
}

/// A receiver of commands that is not open yet; made by `rnet::Node::command`.
#[must_use = "nothing is received until apply() is called"]
pub struct CommandBuilder<T: Message + ?Sized> {
    node: NodeHandle,
    topic: String,
    deadline: Duration,
    message_type: Option<MessageType>,
    fallback: Option<FallbackChoice>,
    _type: PhantomData<fn(&T)>,
}

impl<T: Message + ?Sized> CommandBuilder<T> {
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, topic: &str) -> Self {
        let (node, topic) = (node.clone(), topic.to_owned());
        let (message_type, fallback) = (None, None);
        CommandBuilder {
            node,
            topic,
            deadline: DEFAULT_DEADLINE,
            message_type,
            fallback,
            _type: PhantomData,
        }
    }

    /// Longest time between two commands: 1 ms to 1 h, 100 ms by default. Measured by CLOCK_MONOTONIC, not by
    /// the robot's time.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Falls back to this message, which is applied like a command.
    pub fn fallback(self, message: &T) -> Self
    where
        T: ToOwned<Owned: Borrow<T> + Send + 'static>,
    {
        self.fall_back_to(message.to_owned())
    }

    fn fall_back_to(mut self, message: impl Borrow<T> + Send + 'static) -> Self {
        let encode = move |ty: &MessageType| {
            let mut encoded = Vec::new();
            Bytes::encode::<T>(Borrow::<T>::borrow(&message), ty, &mut encoded)?;
            Ok(encoded)
        };
        self.fallback = Some(FallbackChoice::Value(Box::new(encode)));
        self
    }

    /// Falls back to the type's default message: zero for velocities and torques.
    pub fn fallback_zero(self) -> Self
    where
        T: Default,
    {
        self.fall_back_to(T::default())
    }

    /// Falls back to the last command, which is applied again; to nothing before the first. For holding a
    /// position.
    pub fn fallback_hold(mut self) -> Self {
        self.fallback = Some(FallbackChoice::Hold);
        self
    }

    /// Falls back by calling this, in the thread that applies commands.
    pub fn fallback_handler(
        mut self,
        handler: impl FnMut(FallbackReason) + Send + 'static,
    ) -> Self {
        self.fallback = Some(FallbackChoice::Handler(Box::new(handler)));
        self
    }

    /// The type, for messages that leave it open: `[u8]`, which are then taken as they are, and
    /// [`rnet_node::Dynamic`].
    pub fn message_type(mut self, message_type: impl Into<MessageType>) -> Self {
        self.message_type = Some(message_type.into());
        self
    }

    /// Opens the receiver: it falls back at once, and then calls `apply` for each command of the driver in
    /// force, in a dedicated thread. The thread uses `SCHED_FIFO` if the process has the right. A panic in
    /// the first fallback is an error.
    ///
    /// `apply` should return well within the deadline and not allocate. If it takes longer or panics, the
    /// fallback follows; the panic is counted and the thread continues.
    ///
    /// # Errors
    /// `ReceiverExists` if the topic has a receiver; `BadValue` without a fallback, for a fallback that is
    /// not of the type or fails, or for a deadline that is not allowed; `BadName`; as
    /// `rnet::Node::subscriber`.
    pub fn apply(self, mut apply: impl FnMut(&T) + Send + 'static) -> Result<Command> {
        self.apply_checked(move |command, still_valid| {
            if still_valid() {
                apply(command);
            }
        })
    }

    /// The same for a language whose code must wait before it can run. After that wait `apply` checks whether
    /// the command is still valid, and does nothing if it is not.
    ///
    /// # Errors
    /// As [`CommandBuilder::apply`].
    #[doc(hidden)]
    pub fn apply_checked(
        self,
        mut apply: impl FnMut(&T, &mut StillValid<'_>) + Send + 'static,
    ) -> Result<Command> {
        let (parts, ty) = self.receiver_options()?;
        let mut held = T::new_buffer(&ty);
        let apply: Apply = Box::new(move |bytes, still_valid| {
            if T::IN_PLACE_MIN_LEN.is_none_or(|len| bytes.len() < len) {
                T::decode(bytes, &mut held)?;
            }
            apply(T::view(bytes, &held), still_valid);
            Ok(())
        });
        parts.open(ty, apply)
    }

    /// Opens a receiver that publishes each command that it would apply, and the fallback, on a plain topic:
    /// for code that may be late, because it waits for an interpreter or runs in another process. The topic
    /// is urgent, and keeps its last message for subscribers that come later.
    ///
    /// # Errors
    /// As [`CommandBuilder::apply`]; `BadValue` for a fallback that is a function, or the topic of the
    /// command itself.
    pub fn forward(self, topic: &str) -> Result<Command> {
        let (parts, ty) = self.receiver_options()?;
        let bad = |why: &str| {
            let what = format!("forward of {}", parts.topic);
            Error::bad_value(what, why)
        };
        if matches!(parts.fallback, Fallback::Handler(_)) {
            return Err(bad(
                "a function cannot be published; fall back to a message, zero or hold",
            ));
        }
        let publisher = parts.node.publisher::<[u8]>(topic).message_type(ty.clone());
        let mut publisher = publisher.urgent().transient_local(1).reserve_log().open()?;
        if publisher.topic() == parts.topic.as_str() {
            return Err(bad("it is the topic of the command; use another topic"));
        }
        let apply: Apply = Box::new(move |bytes, still_valid| {
            if still_valid() {
                // Counted as a panic of the code that applies commands, and shown as a failed fallback.
                publisher.send(bytes).unwrap_or_else(|error| panic!("cannot forward: {error}"));
            }
            Ok(())
        });
        parts.open(ty, apply)
    }

    fn receiver_options(self) -> Result<(ReceiverOptions, MessageType)> {
        let CommandBuilder { node, topic, deadline, message_type, fallback, .. } = self;
        node.core.state.check_fork()?;
        let topic = service_name(&node, &topic)?;
        check_time("deadline", deadline)?;
        let ty = choose_type::<T>(topic.as_str(), message_type)?;
        let bad = |why: String| bad_fallback(topic.as_str(), why);
        let fallback = match fallback {
            Some(FallbackChoice::Value(encode)) => {
                Fallback::Value(Bytes::copy_of(&encode(&ty).map_err(bad)?))
            }
            Some(FallbackChoice::Hold) => Fallback::Hold(None),
            Some(FallbackChoice::Handler(handler)) => Fallback::Handler(handler),
            None => {
                return Err(bad(
                    "none is set; choose a fallback that is safe for your robot".to_owned()
                ));
            }
        };
        Ok((ReceiverOptions { node, topic, deadline, fallback }, ty))
    }
}

fn bad_fallback(topic: &str, why: String) -> Error {
    Error::bad_value(format!("fallback of {topic}"), why)
}

/// Options of a receiver before it is opened.
struct ReceiverOptions {
    node: NodeHandle,
    topic: TopicName,
    deadline: Duration,
    fallback: Fallback,
}

impl ReceiverOptions {
    /// Opens it for encoded messages.
    fn open(self, ty: MessageType, apply: Apply) -> Result<Command> {
        let ReceiverOptions { node, topic: name, deadline, fallback } = self;
        let topic = name.to_string();
        let reporter = StatusReporter::open(&node, &topic)?;
        fail_point!("command.status_opened");
        let until = Instant::now() + DEAD_RECEIVER_TIMEOUT;
        while let Some(other) = receiver_of(&node, &topic, reporter.id())? {
            if Instant::now() >= until {
                return Err(Error::ReceiverExists { topic, node: other });
            }
            std::thread::sleep(DEAD_RECEIVER_TIMEOUT / 20);
        }
        // Only the newest command of each driver counts.
        let commands = node.subscriber_at::<[u8]>(name).message_type(ty);
        let commands = commands.lane(Lane::Urgent).keep_last(1).open()?;
        let set = WaitSet::new(&node);
        let shared = Arc::new(ReceiverShared::new(set.handle()));
        let asked = shared.clone();
        let receiver = Receiver::new(ReceiverParts {
            peers: node.clone(),
            deadline,
            commands,
            set,
            shared,
            reporter,
            fallback,
            apply,
        });
        let (opened, has_opened) = sync_channel(1);
        // The thread first: a driver that is granted authority must be received.
        let thread = rnet_shm::os::thread::spawn("rnet-command", move || receiver.run(&opened))?;
        let shared = asked.clone();
        let mut command =
            Command { topic, shared, thread: Some(thread), service: None, node: node.clone() };
        fail_point!("command.receiver_started");
        // A slow fallback is not waited for: the status shows that it has not returned.
        if has_opened.recv_timeout(FIRST_FALLBACK_TIMEOUT) == Ok(false) {
            let why = "it failed when the receiver was opened".to_owned();
            return Err(bad_fallback(&command.topic, why));
        }
        let authority = authority_of(&command.topic)?;
        let service = ServiceBuilder::<CommandRequest, CommandReply>::at(&node, &authority);
        command.service =
            Some(service.serve_stream(move |request, responder| {
                answer_request(&asked, request, responder)
            })?);
        Ok(command)
    }
}

/// The node of the receiver of a command, except the one with this id.
pub(super) fn receiver_of(node: &NodeHandle, topic: &str, own: u64) -> Result<Option<String>> {
    let (found, status) = (Arc::new(Mutex::new(None)), command_status_topic(topic));
    let saw = found.clone();
    let watch = node.on_endpoint(move |event| {
        let endpoint = event.endpoint();
        let receives = matches!(endpoint.qos, EndpointQos::Publisher(_));
        if receives && endpoint.topic == status && endpoint.id != own {
            *lock(&saw) = Some(endpoint.node.clone());
        }
    })?;
    // Runs for each existing endpoint before it continues.
    watch.run();
    drop(watch);
    let found = lock(&found).take();
    Ok(found)
}

fn answer_request(
    shared: &ReceiverShared,
    request: &CommandRequest,
    responder: &mut Responder<'_, CommandReply>,
) -> Result<(), HandlerError> {
    let lease = Duration::from_nanos(request.lease);
    if request.action() == Action::Take {
        check_time("lease", lease)?;
    }
    let (answer, answered) = sync_channel(1);
    let node = responder.caller().to_owned();
    let busy = || HandlerError::new("busy", "the receiver applies a command and does not answer");
    let (claim, call) = (Arc::new(AnswerClaim::default()), Some(responder.context()));
    if !shared.push_request(DriverRequest {
        claim: claim.clone(),
        call,
        node,
        request: *request,
        answer,
    }) {
        return Err(busy());
    }
    let reply = match answered.recv_timeout(ANSWER_TIMEOUT) {
        Ok(reply) => reply,
        Err(_) if claim.give_up() => return Err(busy()),
        // The answer is on its way. It does not arrive if the driver has ended its call or the receiver
        // closes.
        Err(_) => answered.recv().map_err(|_| busy())?,
    };
    let sent = responder.send(&reply);
    if sent.is_err() && reply.granted && request.action() == Action::Take {
        // The driver does not know that it has authority.
        let (answer, _) = sync_channel(1);
        let (claim, node) = (Arc::default(), responder.caller().to_owned());
        let action = Action::Release.into();
        let request = CommandRequest { action, number: reply.number, ..*request };
        shared.push_request(DriverRequest { claim, call: None, node, request, answer });
    }
    Ok(sent?)
}

/// The receiving end of a command. Dropping it runs the fallback a last time, and closes it.
#[must_use = "the receiver closes when this is dropped"]
pub struct Command {
    topic: String,
    shared: Arc<ReceiverShared>,
    thread: Option<JoinHandle<()>>,
    service: Option<Service>,
    node: NodeHandle,
}

impl Command {
    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Counters of the commands so far.
    pub fn stats(&self) -> CommandStats {
        self.shared.published().0
    }

    /// The current driver, and whether the receiver has fallen back, as last reported; the counters are up to
    /// date.
    pub fn status(&self) -> CommandStatus {
        self.shared.published().1
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.node.core.state.fork_guard().is_from_parent() {
            std::mem::forget(thread);
            return;
        }
        // No authority is granted once commands are not applied any more.
        drop(self.service.take());
        self.shared.close();
        join_callbacks(thread);
    }
}
