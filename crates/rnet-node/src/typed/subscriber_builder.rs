//! Subscribers that are not open yet.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use rnet_core::{History, Lane, Liveliness, Reliability, Result, SubscriberQos, TopicName, Wait};
use rnet_schema::Schema;

use super::any_subscription::AnySubscription;
use super::sample::Sample;
use super::subscriber_settings::SubscriberSettings;
use crate::core::NodeCore;
use crate::qos_choice::QosChoice;
use crate::{Message, MessageType, Subscriber};

/// A subscriber that is not open yet; the default is best_effort with the last 10 unread messages, adaptive
/// waiting, any lane. Made by `rnet::Node::subscriber`.
///
/// Each option overrides the quality of service given to [`SubscriberBuilder::qos`], in any order; an option
/// that is set twice has the last value.
///
/// ```
/// # fn main() -> rnet::Result<()> {
/// # let dir = std::env::temp_dir();
/// # let domain = format!("builder{}", std::process::id());
/// # let node = rnet::Node::builder("arm").dir(dir).domain(&domain).open()?;
/// let newest = node.subscriber::<[u8]>("/scan").keep_last(1).open()?;
/// let every_one = node.subscriber::<[u8]>("/jobs").reliable().open()?;
/// # drop((newest, every_one));
/// # let path = node.domain_path().to_owned();
/// # drop(node);
/// # let _ = std::fs::remove_dir_all(path);
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until it is opened"]
pub struct SubscriberBuilder<T: ?Sized> {
    core: Arc<NodeCore>,
    /// As the user gave it: [`SubscriberBuilder::on_any`] takes it for a pattern.
    name: String,
    topic: Result<TopicName>,
    qos: QosChoice<SubscriberQos>,
    pub(crate) settings: SubscriberSettings,
    _type: PhantomData<fn(&T)>,
}

impl<T: Message + ?Sized> SubscriberBuilder<T> {
    /// A subscriber of a topic that is named by the rules of the node.
    pub(crate) fn new(core: &Arc<NodeCore>, topic: &str) -> Self {
        SubscriberBuilder::of(core, topic.to_owned(), core.state.topic(topic))
    }

    /// A subscriber of a topic by its name in the domain.
    pub(crate) fn at(core: &Arc<NodeCore>, topic: TopicName) -> Self {
        SubscriberBuilder::of(core, topic.to_string(), Ok(topic))
    }

    fn of(core: &Arc<NodeCore>, name: String, topic: Result<TopicName>) -> Self {
        let (core, qos, settings) = (core.clone(), QosChoice::default(), Default::default());
        SubscriberBuilder { core, name, topic, qos, settings, _type: PhantomData }
    }

    /// Opens it.
    ///
    /// # Errors
    /// `BadName`, `BadQos`, `LimitReached`, `OutOfMemory`; `Closed` in a forked child.
    pub fn open(self) -> Result<Subscriber<T>> {
        self.core.state.check_fork()?;
        Subscriber::open(&self.core, self.topic?, self.qos.resolve(), self.settings)
    }

    /// The quality of service for which no other option is set.
    pub fn qos(mut self, qos: SubscriberQos) -> Self {
        self.qos.set_base(qos);
        self
    }

    fn change_qos(
        mut self,
        change: impl FnOnce(&mut SubscriberQos) + Send + Sync + 'static,
    ) -> Self {
        self.qos.add(change);
        self
    }
}

impl SubscriberBuilder<[u8]> {
    /// Calls `callback` for each message of each topic that matches the name as a pattern, including future
    /// topics, until the returned [`AnySubscription`] is dropped. In a pattern, `*` matches one part of a
    /// name and `**` any number of parts: `/**` is every topic, including those of this node.
    ///
    /// Messages are bytes; [`Sample::topic`], [`Sample::node`], [`Sample::type_desc`] and [`Sample::schema`]
    /// describe them. `callback` runs on the dispatch threads: the urgent and the bulk thread may call it
    /// concurrently. It is also called with errors, as in [`Subscriber::on_result`], including the error of a
    /// topic that cannot be subscribed; that topic is retried with its next publisher. A callback that panics
    /// is not called again for that topic, but still for the others. Each topic is subscribed with the same
    /// options when its first publisher is found; earlier messages are received only with `transient_local`.
    ///
    /// ```no_run
    /// # fn main() -> rnet::Result<()> {
    /// let node = rnet::Node::new("logger")?;
    /// let all = node.subscriber::<[u8]>("/camera/*/image").on_any(|message| {
    ///     if let Ok(sample) = message {
    ///         println!("{}: {} bytes of {}", sample.topic(), sample.bytes().len(), sample.type_desc());
    ///     }
    /// })?;
    /// # drop(all); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `BadName` for an invalid pattern; `BadQos` or `BadValue` for invalid options; `Io` for the domain's
    /// directory; `Closed` in a forked child.
    pub fn on_any(
        self,
        callback: impl Fn(Result<Sample<'_, [u8]>>) + Send + Sync + 'static,
    ) -> Result<AnySubscription> {
        let options = (self.qos.resolve(), self.settings);
        AnySubscription::open(&self.core, &self.name, options, callback)
    }
}

impl<T: Message + ?Sized> SubscriberBuilder<T> {
    /// Blocks the publisher rather than lose a message; the publisher must be reliable. Keeps all unread
    /// messages unless [`SubscriberBuilder::keep_last`] is set, too.
    pub fn reliable(self) -> Self {
        self.change_qos(move |qos| qos.reliability = Reliability::Reliable)
    }
    /// First receives the messages that the publisher keeps for late subscribers, at most as many as this
    /// subscriber keeps.
    pub fn transient_local(self) -> Self {
        self.change_qos(move |qos| qos.transient_local = true)
    }
    /// Requires a lane; by default the subscriber uses the publisher's lane.
    pub fn lane(self, lane: Lane) -> Self {
        self.change_qos(move |qos| qos.lane = Some(lane))
    }
    /// Skips all but the last `depth` unread messages of each publisher, and counts them as skipped. A
    /// subscriber that does not read still blocks a reliable publisher.
    pub fn keep_last(self, depth: u32) -> Self {
        self.change_qos(move |qos| qos.history = History::KeepLast(depth))
    }
    /// Skips no message that the publisher's log still holds, however old.
    pub fn keep_all(self) -> Self {
        self.change_qos(move |qos| qos.history = History::KeepAll)
    }
    /// How to wait for the next message.
    pub fn wait(self, wait: Wait) -> Self {
        self.change_qos(move |qos| qos.wait = wait)
    }
    /// Requests a message from each publisher at least this often; the publisher must promise this. Each
    /// period without one is counted, see `Subscriber::on_deadline`.
    pub fn deadline(self, period: Duration) -> Self {
        self.change_qos(move |qos| qos.deadline = Some(period))
    }
    /// Requests publishers that show at least once per `lease` that they are alive, see
    /// `Subscriber::on_liveliness`.
    pub fn manual_by_topic(self, lease: Duration) -> Self {
        self.change_qos(move |qos| qos.liveliness = Liveliness::ManualByTopic { lease })
    }
    /// The type that a subscriber of bytes or of `rnet::schema::Dynamic` expects.
    pub fn message_type(mut self, message_type: impl Into<MessageType>) -> Self {
        self.settings.message_type = Some(message_type.into());
        self
    }
    /// As [`SubscriberBuilder::message_type`], for a protobuf message.
    pub fn schema(self, schema: &Schema) -> Self {
        self.message_type(schema.clone())
    }
}
