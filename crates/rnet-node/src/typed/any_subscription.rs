//! Subscribing to every topic whose name matches a pattern.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::sync::lock;
use crate::{EndpointEvent, EndpointQos, EndpointWatch, PublisherStats, Subscription};
use rnet_core::{Error, MAX_TOPIC_LEN_BYTES, NamePattern, Result, SubscriberQos, TopicName};

use super::sample::Sample;
use super::subscriber::Subscriber;
use super::subscriber_settings::SubscriberSettings;
use crate::NodeCore;

type Topics = Arc<Mutex<BTreeMap<String, Subscription>>>;

/// A callback for all topics that match a pattern; made by [`crate::SubscriberBuilder::on_any`].
///
/// Dropping this stops it. That waits for callbacks that are running, except inside a callback.
#[must_use = "the callback stops when the AnySubscription is dropped"]
pub struct AnySubscription {
    // First: no topic is added while the existing ones are closed.
    watch: EndpointWatch,
    topics: Topics,
    pattern: NamePattern,
}

impl AnySubscription {
    /// The pattern, with its leading slash.
    pub fn pattern(&self) -> &str {
        self.pattern.as_str()
    }

    /// The topics found so far, including those without a publisher now.
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

crate::debug_by!(
    [] AnySubscription, "AnySubscription", |this| "pattern": this.pattern.as_str()
);

impl AnySubscription {
    pub(crate) fn open(
        core: &Arc<NodeCore>,
        pattern: &str,
        (qos, settings): (SubscriberQos, SubscriberSettings),
        callback: impl Fn(Result<Sample<'_, [u8]>>) + Send + Sync + 'static,
    ) -> Result<AnySubscription> {
        let pattern = NamePattern::new("topic pattern", pattern, MAX_TOPIC_LEN_BYTES)?;
        qos.validate().map_err(|e| e.with_topic(pattern.as_str()))?;
        let (topics, callback) = (Topics::default(), Arc::new(callback));
        let (weak, found, like) = (Arc::downgrade(core), topics.clone(), pattern.clone());
        let on_event = move |event: &EndpointEvent| {
            let EndpointEvent::Opened(endpoint) = event else { return };
            let publishes = matches!(endpoint.qos, EndpointQos::Publisher(_));
            let topic = &endpoint.topic;
            if !publishes || !like.matches(topic) || lock(&found).contains_key(topic) {
                return;
            }
            let Some(core) = weak.upgrade() else { return };
            let (qos, settings) = (qos.clone(), settings.clone());
            let opened = TopicName::new(topic)
                .and_then(|topic| Subscriber::<[u8]>::open(&core, topic, qos, settings));
            match opened {
                Ok(subscriber) => {
                    let callback = callback.clone();
                    let subscription = subscriber.on_result(move |message| callback(message));
                    lock(&found).insert(topic.clone(), subscription);
                }
                Err(error) => callback(Err(error)),
            }
        };
        let watch = EndpointWatch::start(core, Box::new(on_event))?;
        Ok(AnySubscription { watch, topics, pattern })
    }
}
