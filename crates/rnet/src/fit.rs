//! May these two talk? The questions that publisher and subscriber ask of each other, the same on
//! both sides.

use rnet_core::{Durability, Error, Lane, Reliability, Result, qos_compatible, types_compatible};
use rnet_shm::publisher::PublisherMeta;
use rnet_shm::subscription::{PeerBinding, SubscriptionMeta};

/// Whether a publisher and a subscription fit, by type and quality of service.
pub(crate) fn fit(
    publisher: &PublisherMeta,
    subscriber: &SubscriptionMeta,
    publisher_node: &str,
    subscriber_node: &str,
) -> Result<()> {
    let (publisher_node, subscriber_node) = (publisher_node.to_owned(), subscriber_node.to_owned());
    let topic = publisher.topic.clone();
    if let Err(detail) = types_compatible(&publisher.type_desc, &subscriber.type_desc) {
        let detail = Box::new(detail);
        return Err(Error::TypeMismatch { topic, publisher_node, subscriber_node, detail });
    }
    qos_compatible(&publisher.qos, &subscriber.qos).map_err(|why| Error::IncompatibleQos {
        topic,
        publisher_node,
        subscriber_node,
        why,
    })
}

/// A topic has one lane: `first`, that of the first publisher that a subscription matched.
pub(crate) fn same_lane(
    first: Option<Lane>,
    publisher: &PublisherMeta,
    publisher_node: &str,
    subscriber_node: &str,
) -> Result<()> {
    let word = |lane| if lane == Lane::Urgent { "urgent" } else { "bulk" };
    match first {
        Some(lane) if lane != publisher.qos.lane => Err(Error::IncompatibleQos {
            topic: publisher.topic.clone(),
            publisher_node: publisher_node.to_owned(),
            subscriber_node: subscriber_node.to_owned(),
            why: format!(
                "another publisher of this topic made it {}, this one says {}: use one lane per \
                 topic",
                word(lane),
                word(publisher.qos.lane)
            ),
        }),
        _ => Ok(()),
    }
}

/// The binding within what both sides have declared: the page is the subscriber's to write, and
/// must not get more of the publisher than was checked.
pub(crate) fn allowed(
    publisher: &PublisherMeta,
    subscriber: &SubscriptionMeta,
    binding: PeerBinding,
) -> PeerBinding {
    let reliable = |reliability| reliability == Reliability::Reliable;
    let both = reliable(publisher.qos.reliability) && reliable(subscriber.qos.reliability);
    let kept = match publisher.qos.durability {
        Durability::TransientLocal { depth } => u64::from(depth),
        Durability::Volatile => 0,
    };
    PeerBinding {
        reliable: binding.reliable && both,
        history: binding.history.min(kept),
        ..binding
    }
}
