//! Subscribing to every topic whose name matches a pattern.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rnet_core::{Error, MAX_TOPIC_LEN_BYTES, NamePattern, Result, TopicName};
use rnet_node::sync::lock;
use rnet_node::{EndpointEvent, EndpointQos, EndpointWatch, PublisherStats, Subscription};

use crate::subscriber::Subscriber;
use crate::{Node, Sample, SubscriberOptions};

type Topics = Arc<Mutex<BTreeMap<String, Subscription>>>;

/// A callback for all topics that match a pattern; made by [`Node::subscribe_any`]. It ends when this is dropped.
///
/// Dropping waits for callbacks that are running, except inside a callback of the same node.
#[must_use = "the callback stops when the AnySubscription is dropped"]
pub struct AnySubscription {
    // First: no topic is added when those that there are end.
    watch: EndpointWatch,
    topics: Topics,
    pattern: NamePattern,
}

impl AnySubscription {
    /// The pattern, with its leading slash.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }

    /// The topics that it has found so far, those without a publisher by now included.
    pub fn topics(&self) -> Vec<String> {
        lock(&self.topics).keys().cloned().collect()
    }

    /// Received and lost messages by topic and publisher, as in [`Subscription::stats`].
    pub fn stats(&self) -> BTreeMap<String, Vec<PublisherStats>> {
        let topics = lock(&self.topics);
        topics.iter().map(|(topic, subscription)| (topic.clone(), subscription.stats())).collect()
    }

    /// As [`Subscription::error`].
    pub fn error(&self) -> Option<Error> {
        self.watch.error()
    }
}

rnet_node::debug_by!(
    [] AnySubscription, "AnySubscription", |this| "pattern": this.pattern.as_str()
);

impl Node {
    /// Calls `callback` for each message of each topic that matches `pattern`, including future topics, until the
    /// returned [`AnySubscription`] is dropped. In a pattern, `*` matches one part of a name and `**` any number of
    /// parts: `/**` is every topic, including those of this node.
    ///
    /// Messages are bytes; [`Sample::topic`], [`Sample::node`], [`Sample::type_desc`] and [`Sample::schema`] describe
    /// them. `callback` runs on the dispatch threads: the urgent and the bulk thread may call it concurrently. It is
    /// also called with errors, as in [`Subscriber::on_result`], including the error of a topic that cannot be
    /// subscribed; that topic is retried with its next publisher. A callback that panics is not called again for that
    /// topic, but still for the others.
    /// Each topic is subscribed with the same options when its first publisher is found; earlier messages are received
    /// only with `transient_local`.
    ///
    /// ```no_run
    /// # fn main() -> rnet::Result<()> {
    /// let node = rnet::Node::new("logger")?;
    /// let all = node.subscribe_any("/camera/*/image", Default::default(), |message| {
    ///     if let Ok(sample) = message {
    ///         println!("{}: {} bytes of {}", sample.topic(), sample.bytes().len(), sample.type_desc());
    ///     }
    /// })?;
    /// # drop(all); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `BadName` for an invalid pattern; `BadQos` or `BadValue` for invalid options; the errors of
    /// [`Node::on_endpoint`].
    pub fn subscribe_any(
        &self,
        pattern: &str,
        options: SubscriberOptions,
        callback: impl Fn(Result<Sample<'_, [u8]>>) + Send + Sync + 'static,
    ) -> Result<AnySubscription> {
        let pattern = NamePattern::new("topic pattern", pattern, MAX_TOPIC_LEN_BYTES)?;
        options.qos.validate().map_err(|e| e.with_topic(pattern.as_str()))?;
        let (topics, callback) = (Topics::default(), Arc::new(callback));
        let (core, found, like) = (Arc::downgrade(self.core()), topics.clone(), pattern.clone());
        let watch = self.on_endpoint(move |event| {
            let EndpointEvent::Opened(endpoint) = event else { return };
            let publishes = matches!(endpoint.qos, EndpointQos::Publisher(_));
            let topic = &endpoint.topic;
            if !publishes || !like.matches(topic) || lock(&found).contains_key(topic) {
                return;
            }
            let Some(core) = core.upgrade() else { return };
            let opened = TopicName::new(topic)
                .and_then(|topic| Subscriber::<[u8]>::open(&core, topic, options.clone()));
            match opened {
                Ok(subscriber) => {
                    let callback = callback.clone();
                    let subscription = subscriber.on_result(move |message| callback(message));
                    lock(&found).insert(topic.clone(), subscription);
                }
                Err(error) => callback(Err(error)),
            }
        })?;
        Ok(AnySubscription { watch, topics, pattern })
    }
}
