//! The sending end of a command.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use rnet_core::{Error, Meta, Result};
use rnet_shm::ring::fail_point;

use super::{authority_of, check_time, command_status_topic};
use crate::call::service_name;
use crate::msgs::command_request::Action;
use crate::msgs::command_status::{Reason, State};
use crate::msgs::{CommandReply, CommandRequest, CommandStatus};
use crate::{
    CallOptions, Client, Message, MessageType, Node, Publisher, PublisherOptions, Received,
    Subscriber, SubscriberOptions,
};

/// How long authority lasts after the last command if the driver does not say.
const LEASE: Duration = Duration::from_millis(200);
/// How long the receiver is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks whether a wait for authority goes on.
const SLICE: Duration = Duration::from_millis(100);
/// How long a driver that ends waits until the receiver has heard of it.
const GOODBYE: Duration = Duration::from_millis(100);

/// A driver without authority; made by [`Node::drive`].
#[must_use = "nothing is driven until take() is called"]
pub struct DriveBuilder<T: Message + ?Sized> {
    node: Node,
    topic: String,
    priority: i32,
    highest: i32,
    outlasts: bool,
    lease: Duration,
    message_type: Option<MessageType>,
    _type: PhantomData<fn(&T)>,
}

impl<T: Message + ?Sized> DriveBuilder<T> {
    pub(super) fn new(node: &Node, topic: &str) -> Self {
        let (node, topic) = (node.clone(), topic.to_owned());
        DriveBuilder {
            node,
            topic,
            priority: 0,
            highest: HIGHEST_PRIORITY,
            outlasts: false,
            lease: LEASE,
            message_type: None,
            _type: PhantomData,
        }
    }

    /// A driver takes authority from those of a lower priority; 0 by default, up to [`HIGHEST_PRIORITY`].
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Above every driver: for an operator who ends the authority of whoever has it.
    #[doc(hidden)]
    pub fn above_all(mut self) -> Self {
        (self.priority, self.highest) = (i32::MAX, i32::MAX);
        self
    }

    /// Whether authority lasts until the lease has passed even if this process dies before: what stops a robot does.
    /// By default it ends with the process.
    pub fn outlasts_driver(mut self, outlasts: bool) -> Self {
        self.outlasts = outlasts;
        self
    }

    /// How long authority lasts after the last command or renewal: 1 ms to 1 h, 200 ms by default.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The type, for messages that leave it open: `[u8]`, which are then sent as they are, and [`crate::Dynamic`].
    pub fn message_type(mut self, message_type: impl Into<MessageType>) -> Self {
        self.message_type = Some(message_type.into());
        self
    }

    /// Takes authority; waits for a receiver if there is none yet, for 10 s if `timeout` is `None`. A node that has it
    /// already with this priority is granted it anew where both outlast their driver, and its driver of before has it no
    /// more: so a stop is renewed after the network was gone.
    ///
    /// # Errors
    /// `NotInForce` if a driver of the same or a higher priority has it; `Timeout` if there is no receiver;
    /// `BadValue` for a lease or a priority that is not allowed; `IncompatibleType`; as [`Node::publisher`].
    pub fn take(self, timeout: Option<Duration>) -> Result<Driver<T>> {
        self.take_while(timeout, || true)
    }

    /// The same, for a language that looks for signals meanwhile: `Interrupted` once `goes_on` says so, which is asked
    /// some times a second.
    #[doc(hidden)]
    pub fn take_while(
        self,
        timeout: Option<Duration>,
        goes_on: impl Fn() -> bool,
    ) -> Result<Driver<T>> {
        let DriveBuilder { node, topic, priority, highest, outlasts, lease, message_type, .. } =
            self;
        if priority > highest {
            let why = format!("it is {priority}, and the highest is {highest}");
            return Err(Error::BadValue { what: "priority".into(), why });
        }
        let name = service_name(&node, &topic)?;
        let topic = name.to_string();
        check_time("lease", lease)?;
        let after = timeout.unwrap_or(TIMEOUT);
        let until = Instant::now().checked_add(after);
        let wait = Wait { topic: topic.clone(), until, after, goes_on };
        let status = SubscriberOptions::new().lane(rnet_core::Lane::Urgent).transient_local();
        let status = node.subscriber_with::<CommandStatus>(
            &command_status_topic(&topic),
            status.keep_last(16),
        )?;
        let mut options = PublisherOptions::new().urgent();
        if let Some(ty) = message_type {
            options = options.message_type(ty);
        }
        let publisher = Publisher::<T>::open(node.core(), name, options)?;
        let authority = authority_of(&topic)?;
        let client =
            Client::<CommandRequest, CommandReply>::at(&node, authority, (None, None), None, None)?;
        let (number, receiver, ended) = (0, None, None);
        let mut driver =
            Driver { topic, publisher, status, client, lease, number, receiver, ended };
        // Ahead of the lease, which begins when it is granted.
        wait.until("a receiver", |slice| driver.status.wait_for_publishers(1, Some(slice)))?;
        wait.until("a receiver", |slice| driver.publisher.wait_for_subscribers(1, Some(slice)))?;
        let lease = u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX);
        let mut request = CommandRequest { priority, lease, ..CommandRequest::default() };
        (request.outlasts_driver, request.action) = (outlasts, Action::Take.into());
        // Answers are heard for longer than they are waited for.
        let limit = wait.left().saturating_add(GOODBYE);
        let asked = driver.client.start(&request, CallOptions::new().timeout(limit))?;
        let answer = "the answer of its receiver";
        let reply = match wait.until(answer, |slice| asked.next_within(slice)) {
            Ok(Some(reply)) => reply.into_message(),
            Ok(None) => return Err(wait.timed_out(answer)),
            Err(error) => {
                // Granted in this moment, it is given back with the driver.
                let late = asked.next_within(GOODBYE).ok().flatten().map(Received::into_message);
                if let Some(late) = late.filter(|late| late.granted) {
                    driver.number = late.number;
                }
                return Err(error);
            }
        };
        if !reply.granted {
            let CommandReply { holder, priority: of, .. } = &reply;
            let why = format!("{holder} has it with priority {of}, and {priority} was asked with");
            return Err(driver.lost(why));
        }
        driver.number = reply.number;
        fail_point!("command.taken");
        Ok(driver)
    }
}

/// The highest priority of a driver: one less than that of who ends the authority of all.
pub const HIGHEST_PRIORITY: i32 = i32::MAX - 1;

/// A wait for authority, in slices.
struct Wait<F> {
    topic: String,
    /// `None` for as long as it takes.
    until: Option<Instant>,
    after: Duration,
    goes_on: F,
}

impl<F: Fn() -> bool> Wait<F> {
    fn left(&self) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        self.until.map_or(Duration::MAX, left)
    }

    fn timed_out(&self, what: &str) -> Error {
        let after_ms = u64::try_from(self.after.as_millis()).unwrap_or(u64::MAX);
        let what = format!("{what} of {}", self.topic);
        Error::Timeout { topic: self.topic.clone(), what, after_ms }
    }

    fn until<R>(&self, what: &str, mut wait: impl FnMut(Duration) -> Result<R>) -> Result<R> {
        loop {
            let left = self.left();
            match wait(left.min(SLICE)) {
                Err(Error::Timeout { .. } | Error::Interrupted) if left.is_zero() => {
                    return Err(self.timed_out(what));
                }
                Err(Error::Timeout { .. } | Error::Interrupted) if (self.goes_on)() => {}
                Err(Error::Timeout { .. } | Error::Interrupted) => return Err(Error::Interrupted),
                done => return done,
            }
        }
    }
}

/// The sending end of a command, with authority until it ends. Dropping it gives authority back.
#[must_use = "authority is given back when this is dropped"]
pub struct Driver<T: Message + ?Sized> {
    topic: String,
    publisher: Publisher<T>,
    status: Subscriber<CommandStatus>,
    client: Client<CommandRequest, CommandReply>,
    lease: Duration,
    /// Of its authority; 0 before it has any.
    number: u64,
    /// The node of its receiver, once that has said that it is in force.
    receiver: Option<String>,
    /// Why it has none any more.
    ended: Option<Error>,
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

    /// Sends a command, which begins the lease anew. It is applied if it is there within the deadline of the
    /// receiver, and this driver still in force.
    ///
    /// # Errors
    /// `NotInForce` once the receiver has said that this driver's authority has ended; as [`Publisher::send`].
    pub fn send(&mut self, command: &T) -> Result<()> {
        self.check()?;
        self.publisher.send_with(command, Meta::default().with_correlation(self.number))
    }

    /// Begins the lease anew without a command. The receiver falls back when its deadline passes all the same.
    ///
    /// # Errors
    /// `NotInForce`, also if the receiver does not answer within the lease; as [`Client::call`].
    pub fn renew(&mut self) -> Result<()> {
        self.check()?;
        match self.ask(Action::Renew, Some(self.lease)) {
            Ok(reply) if reply.granted => Ok(()),
            Ok(_) => Err(self.lost("its authority has ended".to_owned())),
            Err(Error::Timeout { .. }) => {
                // It may have renewed it right before the end, and its answer come too late.
                let _ = self.ask(Action::Release, Some(GOODBYE));
                Err(self.lost("its receiver has not answered within the lease".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether this driver is in force, as far as the receiver has said.
    pub fn in_force(&mut self) -> bool {
        self.check().is_ok()
    }

    /// Gives authority back: the receiver falls back at once.
    ///
    /// # Errors
    /// As [`Client::call`]. It then ends with its lease.
    pub fn release(mut self) -> Result<()> {
        let released = self.ask(Action::Release, None);
        fail_point!("command.released");
        self.ended = Some(self.lost("it was released".to_owned()));
        released.map(drop)
    }

    fn ask(&mut self, action: Action, timeout: Option<Duration>) -> Result<CommandReply> {
        let mut request = CommandRequest { number: self.number, ..CommandRequest::default() };
        request.set_action(action);
        Ok(self.client.call(&request, timeout)?.into_message())
    }

    fn lost(&mut self, why: String) -> Error {
        let error = Error::NotInForce { topic: self.topic.clone(), why };
        self.ended = Some(error.clone());
        error
    }

    /// Reads what the receiver has said since.
    fn check(&mut self) -> Result<()> {
        while self.ended.is_none() {
            let why = match self.status.try_recv() {
                Ok(None) => break,
                // Of before this authority was granted.
                Ok(Some(status)) if status.granted < self.number => continue,
                // Of another that calls itself a receiver, across a cable that was cut for one.
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
                    text_of(&status)
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
            return Err(self.lost(why));
        }
        self.ended.clone().map_or(Ok(()), Err)
    }
}

fn text_of(status: &CommandStatus) -> String {
    let CommandStatus { holder, priority, .. } = status;
    match status.reason() {
        // Its status names whoever had it at its end.
        Reason::Closed => "its receiver was closed".to_owned(),
        _ if !holder.is_empty() => format!("{holder} has taken it with priority {priority}"),
        Reason::Expired => "its lease has passed".to_owned(),
        Reason::Released => "it was released".to_owned(),
        _ => "its authority has ended".to_owned(),
    }
}

impl<T: Message + ?Sized> Drop for Driver<T> {
    fn drop(&mut self) {
        if self.number != 0 && self.check().is_ok() {
            // One that does not hear of it waits for the lease.
            let _ = self.ask(Action::Release, Some(GOODBYE));
        }
    }
}
