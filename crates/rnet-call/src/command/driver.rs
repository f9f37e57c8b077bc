//! The sending end of a command. `driver/retake.rs` takes authority again.

mod retake;

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use rnet_core::{Error, Meta, Result};
use rnet_shm::ring::fail_point;

use super::receiver_wait::ReceiverWait;
use super::{authority_of, check_time, command_status_topic};
use crate::client::ClientBuilder;
use crate::msgs::command_request::Action;
use crate::msgs::command_status::{Reason, State};
use crate::msgs::{CommandReply, CommandRequest, CommandStatus};
use crate::service_name;
use crate::{CallOptions, Client, Pending};
use rnet_node::{Message, MessageType, NodeHandle, Publisher, Subscriber};

/// Default lease: how long authority lasts after the last command.
const DEFAULT_LEASE: Duration = Duration::from_millis(200);
/// How long the driver waits for the receiver.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two checks whether another thread closes a driver that renews its lease.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(5);
/// How long a closing driver waits until the receiver has acknowledged its release.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(100);
const RECEIVER_ANSWER: &str = "the answer of its receiver";

/// The terms of a driver's request for authority.
#[derive(Clone, Copy)]
struct AuthorityTerms {
    priority: i32,
    lease: Duration,
    outlasts: bool,
}

impl AuthorityTerms {
    fn request(self) -> CommandRequest {
        let AuthorityTerms { priority, lease, outlasts } = self;
        let lease = u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX);
        let mut request = CommandRequest { priority, lease, ..CommandRequest::default() };
        (request.outlasts_driver, request.action) = (outlasts, Action::Take.into());
        request
    }
}

/// A driver without authority; made by `rnet::Node::drive`.
#[must_use = "nothing is driven until take() is called"]
pub struct DriveBuilder<T: Message + ?Sized> {
    node: NodeHandle,
    topic: String,
    terms: AuthorityTerms,
    max_priority: i32,
    auto_retake: bool,
    timeout: Duration,
    message_type: Option<MessageType>,
    _type: PhantomData<fn(&T)>,
}

impl<T: Message + ?Sized> DriveBuilder<T> {
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, topic: &str) -> Self {
        let (node, topic) = (node.clone(), topic.to_owned());
        DriveBuilder {
            node,
            topic,
            terms: AuthorityTerms { priority: 0, lease: DEFAULT_LEASE, outlasts: false },
            max_priority: HIGHEST_PRIORITY,
            auto_retake: false,
            timeout: DEFAULT_TIMEOUT,
            message_type: None,
            _type: PhantomData,
        }
    }

    /// Sets the priority, 0 by default, up to [`HIGHEST_PRIORITY`]. The driver takes authority from drivers
    /// of a lower priority.
    pub fn priority(mut self, priority: i32) -> Self {
        self.terms.priority = priority;
        self
    }

    /// Priority above every driver: for an operator who revokes the authority of any driver.
    #[doc(hidden)]
    pub fn above_all(mut self) -> Self {
        (self.terms.priority, self.max_priority) = (i32::MAX, i32::MAX);
        self
    }

    /// Whether authority lasts until the lease expires even if this process dies first, as for a robot stop.
    /// By default it ends with the process.
    pub fn outlasts_driver(mut self, outlasts: bool) -> Self {
        self.terms.outlasts = outlasts;
        self
    }

    /// How long authority lasts after the last command or renewal: 1 ms to 1 h, 200 ms by default.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.terms.lease = lease;
        self
    }

    /// Whether a driver that lost its authority takes it again automatically: when its lease has expired,
    /// when the other driver releases it, or when the receiver restarts. [`Driver::send`], [`Driver::renew`]
    /// and [`Driver::in_force`] request it without a wait; until it is granted they return `NotInForce`. By
    /// default only [`Driver::retake`] does this.
    pub fn auto_retake(mut self, auto_retake: bool) -> Self {
        self.auto_retake = auto_retake;
        self
    }

    /// The type, for messages that leave it open: `[u8]`, which are then sent as they are, and
    /// [`rnet_node::Dynamic`].
    pub fn message_type(mut self, message_type: impl Into<MessageType>) -> Self {
        self.message_type = Some(message_type.into());
        self
    }

    /// How long [`DriveBuilder::take`] and [`Driver::retake`] wait for a receiver; 10 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Takes authority; waits for a receiver, for at most [`DriveBuilder::timeout`]. If the node already has
    /// authority with this priority and both drivers outlast their process, it is granted again and the
    /// previous driver loses it: this renews a stop after a network failure.
    ///
    /// # Errors
    /// `NotInForce` if a driver of the same or a higher priority has it, or the process of the receiver is
    /// stopped; `Timeout` if there is no receiver; `BadValue` for a lease or a priority that is not allowed;
    /// `IncompatibleType`; as `rnet::Node::publisher`.
    pub fn take(self) -> Result<Driver<T>> {
        self.take_interruptible(|| true)
    }

    /// The same, for languages that check for signals: `Interrupted` once `keep_waiting` returns `false`; it
    /// is called a few times a second.
    #[doc(hidden)]
    pub fn take_interruptible(self, keep_waiting: impl Fn() -> bool) -> Result<Driver<T>> {
        let DriveBuilder { node, topic, terms, max_priority, auto_retake, message_type, .. } = self;
        let timeout = self.timeout;
        let priority = terms.priority;
        if priority > max_priority {
            let why = format!("it is {priority}; the highest is {max_priority}");
            return Err(Error::bad_value("priority", why));
        }
        let name = service_name(&node, &topic)?;
        let topic = name.to_string();
        check_time("lease", terms.lease)?;
        let status = node.subscriber(&command_status_topic(&topic)).lane(rnet_core::Lane::Urgent);
        let status = status.transient_local().keep_last(16).open()?;
        let mut publisher = node.publisher_at(name).urgent();
        if let Some(ty) = message_type {
            publisher = publisher.message_type(ty);
        }
        let publisher = publisher.open()?;
        let authority = authority_of(&topic)?;
        let client = ClientBuilder::<CommandRequest, CommandReply>::at(&node, authority).open()?;
        let mut driver = Driver {
            node,
            topic,
            publisher,
            status,
            client,
            terms,
            auto_retake,
            timeout,
            number: 0,
            receiver: None,
            ended: None,
            retake_call: None,
            next_retake: Instant::now(),
            retaking: None,
        };
        driver.take(&driver.wait(Instant::now(), timeout, keep_waiting))?;
        fail_point!("command.taken");
        Ok(driver)
    }
}

/// The highest priority of a driver, one below that of [`DriveBuilder::above_all`].
pub const HIGHEST_PRIORITY: i32 = i32::MAX - 1;

/// The sending end of a command, with authority until it ends. Dropping it releases authority.
#[must_use = "authority is given back when this is dropped"]
pub struct Driver<T: Message + ?Sized> {
    node: NodeHandle,
    topic: String,
    publisher: Publisher<T>,
    status: Subscriber<CommandStatus>,
    client: Client<CommandRequest, CommandReply>,
    terms: AuthorityTerms,
    auto_retake: bool,
    timeout: Duration,
    /// The number of its authority; 0 before the first grant.
    number: u64,
    /// The node of its receiver, once it has confirmed the authority.
    receiver: Option<String>,
    /// Why it has lost authority.
    ended: Option<Error>,
    /// An automatic request for authority, and when the next one may be sent.
    retake_call: Option<Pending<CommandReply>>,
    next_retake: Instant,
    /// The pending request of a retake.
    retaking: Option<Pending<CommandReply>>,
}

impl<T: Message + ?Sized> Driver<T> {
    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The number of its authority: higher for each that the receiver grants.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sends a command and renews the lease. It is applied if it arrives within the deadline of the receiver
    /// and this driver is still in force.
    ///
    /// # Errors
    /// `NotInForce` once the receiver has reported that this driver's authority has ended; as
    /// [`Publisher::send`].
    pub fn send(&mut self, command: &T) -> Result<()> {
        self.check_or_retake()?;
        self.publisher.send_with(command, Meta::default().with_correlation(self.number))
    }

    /// Renews the lease without a command. The receiver still falls back when its deadline passes.
    ///
    /// # Errors
    /// `NotInForce`, also if the receiver does not answer within the lease; as [`Client::call`].
    pub fn renew(&mut self) -> Result<()> {
        self.renew_interruptible(|| true)
    }

    /// The same, for languages that let another thread close the driver: `Interrupted` once `keep_waiting` returns
    /// `false`; it is called every few milliseconds.
    ///
    /// # Errors
    /// As [`Driver::renew`].
    #[doc(hidden)]
    pub fn renew_interruptible(&mut self, keep_waiting: impl Fn() -> bool) -> Result<()> {
        self.check_or_retake()?;
        let timeout = self.terms.lease;
        match self.call_receiver_interruptible(Action::Renew, timeout, keep_waiting) {
            Ok(reply) if reply.granted => Ok(()),
            Ok(_) => Err(self.end_authority("its authority has ended".to_owned())),
            Err(Error::Timeout { .. }) => {
                // The receiver may have renewed the lease right before its end, and answered too late.
                let _ = self.call_receiver(Action::Release, RELEASE_TIMEOUT);
                Err(self.end_authority("its receiver did not answer within the lease".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether this driver is in force, as last reported by the receiver.
    pub fn in_force(&mut self) -> bool {
        self.check_or_retake().is_ok()
    }

    /// Releases authority: the receiver falls back at once. Without authority this does nothing.
    ///
    /// # Errors
    /// `NotInForce` if the process of the receiver is stopped; `Timeout` if it does not answer within the
    /// lease, which ends the authority in any case; as [`Client::call`].
    pub fn release(mut self) -> Result<()> {
        self.release_in_place()
    }

    /// The same for a language that keeps the driver.
    ///
    /// # Errors
    /// As [`Driver::release`].
    #[doc(hidden)]
    pub fn release_in_place(&mut self) -> Result<()> {
        self.release_interruptible(|| true)
    }

    /// As [`Driver::release_in_place`], for a language that lets another thread close the driver: `Interrupted` once
    /// `keep_waiting` returns `false`. The receiver has been asked then.
    ///
    /// # Errors
    /// As [`Driver::release`].
    #[doc(hidden)]
    pub fn release_interruptible(&mut self, keep_waiting: impl Fn() -> bool) -> Result<()> {
        self.end_requests();
        if self.check_authority().is_err() {
            return Ok(());
        }
        let lease = self.terms.lease;
        let request = self.request(Action::Release);
        let call = self.client.start(&request, CallOptions::new().timeout(lease))?;
        let released = self
            .wait(Instant::now(), lease, keep_waiting)
            .poll_until(RECEIVER_ANSWER, |slice| call.next_within(slice))
            .map(drop);
        fail_point!("command.released");
        self.end_authority("it was released".to_owned());
        released
    }

    fn wait<F: Fn() -> bool>(
        &self,
        begun: Instant,
        after: Duration,
        keep_waiting: F,
    ) -> ReceiverWait<F> {
        let (node, topic) = (self.node.clone(), self.topic.clone());
        let (until, had_authority) = (begun.checked_add(after), self.had_authority());
        ReceiverWait { node, topic, until, after, keep_waiting, had_authority }
    }

    /// Waits for a receiver, and for authority over it. A wait that was interrupted can continue.
    fn take(&mut self, wait: &ReceiverWait<impl Fn() -> bool>) -> Result<()> {
        loop {
            let call = match self.retaking.take() {
                Some(call) => call,
                None => self.ask_receiver(wait)?,
            };
            match wait.poll_until(RECEIVER_ANSWER, |slice| call.next_within(slice)) {
                Ok(Some(reply)) => return self.on_reply(reply.into_message()),
                Ok(None) => return Err(wait.timed_out(RECEIVER_ANSWER)),
                // The receiver closed before it answered. The next receiver is asked.
                Err(Error::ServerLost { .. }) if !wait.left().is_zero() => {
                    if !(wait.keep_waiting)() {
                        return Err(Error::Interrupted);
                    }
                }
                Err(error) => {
                    // If it is granted at this moment, it is released with the driver.
                    self.retaking = Some(call);
                    return Err(error);
                }
            }
        }
    }

    /// Waits for a receiver, and asks it for authority.
    fn ask_receiver(
        &mut self,
        wait: &ReceiverWait<impl Fn() -> bool>,
    ) -> Result<Pending<CommandReply>> {
        // Before the lease, which begins with the grant.
        wait.poll_until("a receiver", |slice| self.status.wait_for_publishers_timeout(1, slice))?;
        wait.poll_until("a receiver", |slice| {
            self.publisher.wait_for_subscribers_timeout(1, slice)
        })?;
        self.drain_status()?;
        // Answers are accepted for longer than the wait lasts.
        let limit = wait.left().saturating_add(RELEASE_TIMEOUT);
        self.client.start(&self.terms.request(), CallOptions::new().timeout(limit))
    }

    /// Handles the receiver's answer to a request for authority.
    fn on_reply(&mut self, reply: CommandReply) -> Result<()> {
        let CommandReply { granted, number, holder, priority, .. } = reply;
        if !granted {
            let own = self.terms.priority;
            let why = format!(
                "{holder} holds it with priority {priority}; the request had priority {own}"
            );
            return Err(self.end_authority(why));
        }
        (self.number, self.receiver, self.ended) = (number, None, None);
        Ok(())
    }

    /// A status from before the request is not about it.
    fn drain_status(&mut self) -> Result<()> {
        loop {
            match self.status.try_recv() {
                Ok(None) => return Ok(()),
                Err(error @ Error::Closed { .. }) => return Err(error),
                Ok(Some(_)) | Err(_) => {}
            }
        }
    }

    /// Cancels its requests. Authority that is granted at this moment is released with the driver.
    fn end_requests(&mut self) {
        for call in [self.retake_call.take(), self.retaking.take()].into_iter().flatten() {
            if let Ok(Some(reply)) = call.next_within(RELEASE_TIMEOUT) {
                let _ = self.on_reply(reply.into_message());
            }
        }
    }

    fn call_receiver(&mut self, action: Action, timeout: Duration) -> Result<CommandReply> {
        let request = self.request(action);
        Ok(self.client.call_timeout(&request, timeout)?.into_message())
    }

    /// As [`Driver::call_receiver`]; `Interrupted` once `keep_waiting` returns `false`.
    fn call_receiver_interruptible(
        &mut self,
        action: Action,
        timeout: Duration,
        keep_waiting: impl Fn() -> bool,
    ) -> Result<CommandReply> {
        let call = self.client.start(&self.request(action), CallOptions::new().timeout(timeout))?;
        loop {
            match call.next_within(INTERRUPT_INTERVAL) {
                Ok(Some(reply)) => return Ok(reply.into_message()),
                Err(Error::Interrupted) if keep_waiting() => {}
                Ok(None) => return Err(Error::closed("the call of the receiver")),
                Err(error) => return Err(error),
            }
        }
    }

    fn request(&self, action: Action) -> CommandRequest {
        let mut request = CommandRequest { number: self.number, ..CommandRequest::default() };
        request.set_action(action);
        request
    }

    fn had_authority(&self) -> bool {
        self.number > 0
    }

    fn end_authority(&mut self, why: String) -> Error {
        let topic = self.topic.clone();
        let error = Error::NotInForce { topic, why, had_authority: self.had_authority() };
        self.ended = Some(error.clone());
        error
    }

    /// Reads the receiver's latest status.
    fn check_authority(&mut self) -> Result<()> {
        while self.ended.is_none() {
            let why = match self.status.try_recv() {
                Ok(None) => break,
                // The status predates this authority.
                Ok(Some(status)) if status.granted < self.number => continue,
                // Another node also acts as the receiver, for example after a network partition.
                Ok(Some(status))
                    if self.receiver.as_deref().is_some_and(|of| of != status.node()) =>
                {
                    continue;
                }
                Ok(Some(status)) => {
                    if status.number == self.number && self.receiver.is_none() {
                        self.receiver = Some(status.node().to_owned());
                    }
                    let there = status.number == self.number && status.state() != State::Closed;
                    if there {
                        continue;
                    }
                    end_reason(&status)
                }
                Err(Error::PeerLost { node, .. })
                    if self.receiver.as_ref().is_none_or(|of| *of == node) =>
                {
                    format!("its receiver in {node} is gone")
                }
                // In a forked child.
                Err(error @ Error::Closed { .. }) => return Err(error),
                Err(_) => continue,
            };
            return Err(self.end_authority(why));
        }
        self.ended.clone().map_or(Ok(()), Err)
    }
}

fn end_reason(status: &CommandStatus) -> String {
    let CommandStatus { holder, priority, .. } = status;
    match status.reason() {
        // Its status names the last holder.
        Reason::Closed => "its receiver was closed".to_owned(),
        _ if !holder.is_empty() => format!("{holder} took it with priority {priority}"),
        Reason::Expired => "its lease has expired".to_owned(),
        Reason::Released => "it was released".to_owned(),
        _ => "its authority has ended".to_owned(),
    }
}

impl<T: Message + ?Sized> Drop for Driver<T> {
    fn drop(&mut self) {
        self.end_requests();
        if self.number != 0 && self.check_authority().is_ok() {
            // A receiver that does not get the release waits for the lease to expire.
            let _ = self.call_receiver(Action::Release, RELEASE_TIMEOUT);
        }
    }
}
