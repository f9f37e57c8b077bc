//! Publishers that are not open yet.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rnet_core::{
    Durability, Lane, Liveliness, OnFull, PublisherQos, Reliability, Result, TopicName,
};
use rnet_schema::Schema;

use super::settings::{LastWill, PublisherSettings};
use crate::core::NodeCore;
use crate::qos_choice::QosChoice;
use crate::{Message, MessageType, Publisher};

/// A publisher that is not open yet; the default is best_effort on the bulk lane. Made by
/// `rnet::Node::publisher`.
///
/// Each option overrides the quality of service given to [`PublisherBuilder::qos`], in any order; an option
/// that is set twice has the last value.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("builder{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// use rnet::OnFull;
/// let map = node.publisher::<[u8]>("/map").reliable(OnFull::Refuse).transient_local(1).open()?;
/// # drop(map);
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until it is opened"]
pub struct PublisherBuilder<T: ?Sized> {
    core: Arc<NodeCore>,
    topic: Result<TopicName>,
    qos: QosChoice<PublisherQos>,
    pub(crate) settings: PublisherSettings,
    _type: PhantomData<fn(&T)>,
}

impl<T: Message + ?Sized> PublisherBuilder<T> {
    /// A publisher of a topic that is named by the rules of the node.
    pub(crate) fn new(core: &Arc<NodeCore>, topic: &str) -> Self {
        PublisherBuilder::of(core, core.state.topic(topic))
    }

    /// A publisher of a topic by its name in the domain.
    pub(crate) fn at(core: &Arc<NodeCore>, topic: TopicName) -> Self {
        PublisherBuilder::of(core, Ok(topic))
    }

    fn of(core: &Arc<NodeCore>, topic: Result<TopicName>) -> Self {
        let (core, qos, settings) = (core.clone(), QosChoice::default(), Default::default());
        PublisherBuilder { core, topic, qos, settings, _type: PhantomData }
    }

    /// Opens it.
    ///
    /// # Errors
    /// `BadName`, `BadQos`, `LimitReached`, `OutOfMemory`; `BadValue` for a last will of another type;
    /// `Closed` in a forked child.
    pub fn open(self) -> Result<Publisher<T>> {
        self.core.state.check_fork()?;
        Publisher::open(&self.core, self.topic?, self.qos.resolve(), self.settings)
    }

    /// The quality of service for which no other option is set.
    pub fn qos(mut self, qos: PublisherQos) -> Self {
        self.qos.set_base(qos);
        self
    }

    fn change_qos(
        mut self,
        change: impl FnOnce(&mut PublisherQos) + Send + Sync + 'static,
    ) -> Self {
        self.qos.add(change);
        self
    }
}

impl<T: Message + ?Sized> PublisherBuilder<T> {
    /// Serves reliable subscribers; `on_full` sets the behaviour when one of them is full.
    pub fn reliable(self, on_full: OnFull) -> Self {
        self.change_qos(move |qos| {
            qos.reliability = Reliability::Reliable;
            qos.on_full = on_full;
        })
    }
    /// The urgent lane: its own channel and its own dispatch thread.
    pub fn urgent(self) -> Self {
        self.change_qos(move |qos| qos.lane = Lane::Urgent)
    }
    /// Keeps the last `depth` messages for late subscribers.
    ///
    /// All of them are always kept; the log grows as needed. Messages of more than 4096 bytes are stored in
    /// the pool, which must hold `depth` of them (1023 at most) and the next one, in addition to the samples
    /// that subscribers hold: see [`PublisherBuilder::pool_limit_bytes`]. Each takes its length, rounded up
    /// by at most a quarter and 8 KiB, and at least 20 KiB.
    ///
    /// If the pool cannot hold them, opening a publisher with a fixed-length type fails with `BadQos`.
    /// Otherwise the send or loan that does not fit fails with `OutOfMemory` or `LimitReached`, with the
    /// bytes needed.
    pub fn transient_local(self, depth: u32) -> Self {
        self.change_qos(move |qos| qos.durability = Durability::TransientLocal { depth })
    }
    /// Maximum length of the log in bytes, a power of two. The log takes as much of it as the traffic needs.
    pub fn log_len_bytes(self, len: u64) -> Self {
        self.change_qos(move |qos| qos.log_len_bytes = len)
    }
    /// Takes all of the log's memory at once: no later send asks the system for memory.
    pub fn reserve_log(self) -> Self {
        self.change_qos(move |qos| qos.reserve_log = true)
    }
    /// Maximum size of the pool for large messages, in bytes; 2 GiB by default. The pool takes memory as
    /// messages need it.
    pub fn pool_limit_bytes(self, len: u64) -> Self {
        self.change_qos(move |qos| qos.pool_limit_bytes = len)
    }
    /// Number of large messages that stay readable for slow best_effort subscribers.
    pub fn large_depth(self, depth: u32) -> Self {
        self.change_qos(move |qos| qos.large_depth = depth)
    }
    /// Promises a message at least this often. Each period without one is counted here and at every
    /// subscriber that requests a deadline, see `Publisher::on_deadline`.
    pub fn deadline(self, period: Duration) -> Self {
        self.change_qos(move |qos| qos.deadline = Some(period))
    }
    /// Maximum age of a message: older messages are not delivered, and are counted as expired.
    pub fn lifespan(self, age: Duration) -> Self {
        self.change_qos(move |qos| qos.lifespan = Some(age))
    }
    /// Liveliness is manual: the publisher is alive only while it sends, or calls `Publisher::assert_alive`,
    /// at least once per `lease`.
    pub fn manual_by_topic(self, lease: Duration) -> Self {
        self.change_qos(move |qos| qos.liveliness = Liveliness::ManualByTopic { lease })
    }
    /// The message that each subscriber receives after all others if the process dies without closing the
    /// publisher: once, with `Sample::is_last_will`, and before `PeerLost`. At most 4096 bytes encoded.
    ///
    /// Closing or dropping the publisher removes it, also in a thread that panics. Change it later with
    /// `Publisher::set_last_will`. It takes 12 KiB of shared memory.
    ///
    /// Opening the publisher fails with `BadValue` if the message is longer or has another type, and with
    /// `OutOfMemory` if there is no memory for it.
    pub fn last_will<M: Message + ?Sized>(mut self, message: &M) -> Self {
        let mut encoded = Vec::new();
        let bytes = message.as_bytes().map(<[u8]>::to_vec).unwrap_or_else(|| {
            message.encode(&mut encoded);
            encoded
        });
        self.settings.last_will = Some(LastWill { bytes, message_type: message.type_of() });
        self
    }
    /// The type of the messages, for a publisher of bytes or of `rnet::schema::Dynamic`, used by bindings.
    /// Rust types describe themselves.
    pub fn message_type(mut self, message_type: impl Into<MessageType>) -> Self {
        self.settings.message_type = Some(message_type.into());
        self
    }
    /// As [`PublisherBuilder::message_type`], for a protobuf message.
    pub fn schema(self, schema: &Schema) -> Self {
        self.message_type(schema.clone())
    }
}
