//! How a publisher or a subscriber is to behave, in the words of ROS.

use std::time::Duration;

use rnet_core::{
    Durability, Error, History, Lane, Liveliness, MAX_ENDPOINTS_PER_PROXY, OnFull, Proxy,
    PublisherQos, Reliability, Result, SubscriberQos, Wait,
};
use rnet_schema::Schema;
use rnet_shm::channel::subscription::LinkRole;

use crate::{Message, MessageType};

/// Options of a publisher; the default is best_effort on the bulk lane.
///
/// ```
/// use rnet_core::OnFull;
/// use rnet_node::PublisherOptions;
/// let options = PublisherOptions::new().reliable(OnFull::Refuse).transient_local(1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PublisherOptions {
    #[doc(hidden)]
    pub qos: PublisherQos,
    #[doc(hidden)]
    pub message_type: Option<MessageType>,
    #[doc(hidden)]
    pub proxy: Option<Proxy>,
    #[doc(hidden)]
    pub deferred: bool,
    #[doc(hidden)]
    pub last_will: Option<LastWill>,
    #[doc(hidden)]
    pub reserve_will: bool,
}

/// A message for which a publisher's type is not known yet.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct LastWill {
    bytes: Vec<u8>,
    message_type: Result<MessageType>,
}

impl LastWill {
    /// The bytes, if they are a message of this type: those that say nothing of their type may be.
    ///
    /// # Errors
    /// `BadValue` if they are of another.
    pub fn bytes_of(self, topic: &str, of: &MessageType) -> Result<Vec<u8>> {
        let of_it = |own: &MessageType| matches!(own, MessageType::Raw) || own.desc() == of.desc();
        let fits =
            of_it(&self.message_type?) && of.fixed_len().is_none_or(|len| len == self.bytes.len());
        if fits {
            return Ok(self.bytes);
        }
        let (what, why) =
            (format!("last will on {topic}"), "it is not of the publisher's type".to_owned());
        Err(Error::BadValue { what, why })
    }
}

impl PublisherOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
    /// Serves reliable subscribers; `on_full` sets the behaviour when one of them is full.
    pub fn reliable(mut self, on_full: OnFull) -> Self {
        self.qos.reliability = Reliability::Reliable;
        self.qos.on_full = on_full;
        self
    }
    /// The urgent lane: its own channel and its own dispatch thread.
    pub fn urgent(mut self) -> Self {
        self.qos.lane = Lane::Urgent;
        self
    }
    /// Keeps the last `depth` messages for late subscribers.
    ///
    /// All of them are always kept; the log grows as needed. Messages of more than 4096 bytes are stored in the pool,
    /// which must hold `depth` of them (1023 at most) and the next one, in addition to the samples that subscribers
    /// hold: see [`PublisherOptions::pool_limit_bytes`]. Each takes its length, rounded up by at most a quarter and 8
    /// KiB, and at least 20 KiB.
    ///
    /// If the pool cannot hold them, opening a publisher with a fixed-length type fails with `BadQos`. Otherwise the
    /// send or loan that does not fit fails with `OutOfMemory` or `LimitReached`, with the bytes needed.
    pub fn transient_local(mut self, depth: u32) -> Self {
        self.qos.durability = Durability::TransientLocal { depth };
        self
    }
    /// How long the log may get in bytes, a power of two. It takes as much of that as the traffic needs.
    pub fn log_len_bytes(mut self, len: u64) -> Self {
        self.qos.log_len_bytes = len;
        self
    }
    /// Takes all of the log's memory at once: no send asks the system for any later.
    pub fn reserve_log(mut self) -> Self {
        self.qos.reserve_log = true;
        self
    }
    /// How far the pool for large messages may grow, in bytes; 2 GiB if not given. It takes memory as the
    /// messages need it.
    pub fn pool_limit_bytes(mut self, len: u64) -> Self {
        self.qos.pool_limit_bytes = len;
        self
    }
    /// How many large messages stay readable for slow best_effort subscribers.
    pub fn large_depth(mut self, depth: u32) -> Self {
        self.qos.large_depth = depth;
        self
    }
    /// Promises a message at least this often. Each period without one is counted here and at every subscriber that
    /// requests a deadline, see `Publisher::on_deadline`.
    pub fn deadline(mut self, period: Duration) -> Self {
        self.qos.deadline = Some(period);
        self
    }
    /// How old a message may get before no subscriber gets it any more; those that did not are counted as expired.
    pub fn lifespan(mut self, age: Duration) -> Self {
        self.qos.lifespan = Some(age);
        self
    }
    /// Alive only for as long as it sends, or calls `Publisher::assert_alive`, at least once per `lease`.
    pub fn manual_by_topic(mut self, lease: Duration) -> Self {
        self.qos.liveliness = Liveliness::ManualByTopic { lease };
        self
    }
    /// The message that each subscriber receives after all others if the process dies without closing the publisher:
    /// once, with `Sample::is_last_will`, and before `PeerLost`. At most 4096 bytes encoded.
    ///
    /// Closing or dropping the publisher removes it, also in a thread that panics. Change it later with
    /// `Publisher::set_last_will`. It takes 12 KiB of shared memory.
    ///
    /// Opening the publisher fails with `BadValue` if the message is longer or has another type, and with `OutOfMemory`
    /// if there is no memory for it.
    pub fn last_will<M: Message + ?Sized>(mut self, message: &M) -> Self {
        let mut encoded = Vec::new();
        let bytes = message.as_bytes().map(<[u8]>::to_vec).unwrap_or_else(|| {
            message.encode(&mut encoded);
            encoded
        });
        self.last_will = Some(LastWill { bytes, message_type: message.type_of() });
        self
    }
    /// All of it at once.
    pub fn qos(mut self, qos: PublisherQos) -> Self {
        self.qos = qos;
        self
    }
    /// The type of the messages, for a publisher of bytes or of `rnet::schema::Dynamic`: bindings
    /// do this. Types of Rust describe themselves.
    pub fn message_type(mut self, message_type: impl Into<MessageType>) -> Self {
        self.message_type = Some(message_type.into());
        self
    }
    /// For what forwards messages between hosts: the publisher stands for this one.
    #[doc(hidden)]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }
    /// For what forwards messages between hosts: a subscription is admitted once `Publisher::admit` names it, and
    /// [`crate::MatchEvent::AdmissionRequested`] tells that it waits for that.
    #[doc(hidden)]
    pub fn deferred(mut self) -> Self {
        self.deferred = true;
        self
    }
    /// For what forwards messages between hosts: it has no last will yet, and `Publisher::set_last_will` may give it
    /// one.
    #[doc(hidden)]
    pub fn reserve_will(mut self, yes: bool) -> Self {
        self.reserve_will = yes;
        self
    }
    /// As [`PublisherOptions::message_type`], a protobuf message.
    pub fn schema(self, schema: &Schema) -> Self {
        self.message_type(schema.clone())
    }
}

/// Options of a subscriber; the default is best_effort with the last 10 unread messages, adaptive
/// waiting, any lane.
///
/// ```
/// use rnet_node::SubscriberOptions;
/// let newest = SubscriberOptions::new().keep_last(1);
/// let every_one = SubscriberOptions::new().reliable();
/// ```
#[derive(Clone, Debug, Default)]
pub struct SubscriberOptions {
    #[doc(hidden)]
    pub qos: SubscriberQos,
    #[doc(hidden)]
    pub message_type: Option<MessageType>,
    /// Whom it stands for, and how many.
    #[doc(hidden)]
    pub proxy: Option<(Proxy, u32)>,
    /// What it does for a link between hosts.
    #[doc(hidden)]
    pub link: Option<LinkRole>,
    /// From which message on it forwards.
    #[doc(hidden)]
    pub from: Option<u64>,
}

impl SubscriberOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
    /// Holds the publisher back rather than lose a message; the publisher must be reliable. Keeps
    /// all unread messages unless [`SubscriberOptions::keep_last`] is given, too.
    pub fn reliable(mut self) -> Self {
        self.qos.reliability = Reliability::Reliable;
        self
    }
    /// First receives the messages that the publisher has kept for late subscribers, at most as many as this subscriber
    /// keeps.
    pub fn transient_local(mut self) -> Self {
        self.qos.transient_local = true;
        self
    }
    /// Insists on a lane; without this the subscriber follows the publisher.
    pub fn lane(mut self, lane: Lane) -> Self {
        self.qos.lane = Some(lane);
        self
    }
    /// Skips all but the last `depth` unread messages of each publisher, and counts them as skipped. A subscriber that
    /// does not read still blocks a reliable publisher.
    pub fn keep_last(mut self, depth: u32) -> Self {
        self.qos.history = History::KeepLast(depth);
        self
    }
    /// Passes over no message that the publisher's log still holds, however old.
    pub fn keep_all(mut self) -> Self {
        self.qos.history = History::KeepAll;
        self
    }
    /// How to wait for the next message.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.qos.wait = wait;
        self
    }
    /// Requests a message from each publisher at least this often; the publisher must promise this. Each period without
    /// one is counted, see `Subscriber::on_deadline`.
    pub fn deadline(mut self, period: Duration) -> Self {
        self.qos.deadline = Some(period);
        self
    }
    /// Requests publishers that show at least once per `lease` that they are alive, see `Subscriber::on_liveliness`.
    pub fn manual_by_topic(mut self, lease: Duration) -> Self {
        self.qos.liveliness = Liveliness::ManualByTopic { lease };
        self
    }
    /// All of it at once.
    pub fn qos(mut self, qos: SubscriberQos) -> Self {
        self.qos = qos;
        self
    }
    /// The type that a subscriber of bytes or of `rnet::schema::Dynamic` expects.
    pub fn message_type(mut self, message_type: impl Into<MessageType>) -> Self {
        self.message_type = Some(message_type.into());
        self
    }
    /// For what forwards messages between hosts: the subscriber stands for `endpoint_count` subscribers of this node.
    #[doc(hidden)]
    pub fn proxy(mut self, proxy: Proxy, endpoint_count: u32) -> Self {
        self.proxy = Some((proxy, endpoint_count));
        self
    }
    /// For what forwards messages between hosts: the subscriber reads the messages of this publisher alone, and
    /// nobody counts or reports it as a subscriber. With `from` it begins with the message of that sequence number,
    /// whatever its durability; with the oldest in the log if that one was given up, and with the next one if it
    /// has not been sent yet. Without, it begins as other subscribers do.
    ///
    /// The past of a best_effort subscriber ends where its [`SubscriberOptions::keep_last`] does, as for others.
    #[doc(hidden)]
    pub fn forwarder(mut self, publisher: u64, from: Option<u64>) -> Self {
        self.link = Some(LinkRole::Forwards(publisher));
        self.from = from;
        self
    }
    /// For what forwards messages between hosts: the subscriber is matched by type and quality of service as any
    /// other, but only publishers that `Subscriber::admit_to` names serve it and count it, and it receives nothing.
    #[doc(hidden)]
    pub fn passive(mut self) -> Self {
        self.link = Some(LinkRole::Passive);
        self
    }
    /// As [`SubscriberOptions::message_type`], a protobuf message.
    pub fn schema(self, schema: &Schema) -> Self {
        self.message_type(schema.clone())
    }
}

/// Refuses a number of endpoints that no peer would believe.
pub fn check_endpoint_count(endpoint_count: u32) -> Result<()> {
    if (1..=MAX_ENDPOINTS_PER_PROXY).contains(&endpoint_count) {
        return Ok(());
    }
    let why = format!("it is {endpoint_count}; it must be 1 to {MAX_ENDPOINTS_PER_PROXY}");
    Err(Error::bad_value("endpoints of a proxy", why))
}

/// `None` means "for as long as it takes".
pub fn deadline(timeout: Option<Duration>) -> Option<std::time::Instant> {
    timeout.and_then(|t| std::time::Instant::now().checked_add(t))
}
