//! Pairs of a publisher and a subscription of one topic.

use rnet_core::{TypeMismatch, qos_compatible};

use super::types::{are_types_known, mismatch};
use super::{ChannelInfo, PublisherInfo, Snapshot, SubscriptionInfo};

/// A publisher and a subscription of one topic.
#[derive(Clone, Copy, Debug)]
pub struct EndpointPair<'a> {
    /// The sender.
    pub publisher: &'a PublisherInfo,
    /// The receiver, if the two have matched.
    pub subscription: &'a SubscriptionInfo,
}

impl Snapshot {
    /// All pairs of a publisher and a subscription of one topic with at least one endpoint on this host.
    /// Messages between two endpoints of other hosts do not pass through this host; inspect them on those
    /// hosts.
    pub fn pairs(&self) -> impl Iterator<Item = EndpointPair<'_>> {
        self.publishers.iter().flat_map(|publisher| {
            let is_pair = |s: &&SubscriptionInfo| {
                s.topic == publisher.topic && (s.via.is_none() || publisher.via.is_none())
            };
            let subscriptions = self.subscriptions.iter().filter(is_pair);
            subscriptions.map(move |subscription| EndpointPair { publisher, subscription })
        })
    }
}

impl<'a> EndpointPair<'a> {
    /// The subscription's counters for this publisher.
    pub fn channel(self) -> Option<&'a ChannelInfo> {
        self.subscription.channels.iter().find(|c| c.publisher == self.publisher.id)
    }

    /// Whether both sides have matched: the subscription has bound a page to the publisher, and the publisher
    /// serves it.
    pub fn is_matched(self) -> bool {
        let admitted =
            |p: &PublisherInfo| p.admitted.iter().any(|a| a.subscription == self.subscription.id);
        self.channel().is_some() && admitted(self.publisher)
    }

    /// Whether the types were read as far as the compatibility result depends on them.
    pub fn types_known(self) -> bool {
        are_types_known(self.publisher, self.subscription)
    }

    /// The type mismatch, if the subscription is known not to understand the publisher.
    pub fn type_mismatch(self) -> Option<TypeMismatch> {
        mismatch(self.publisher, self.subscription)
    }

    /// Why the two QoS profiles are incompatible; the text after the last ": " says what to change. `None` if
    /// they fit.
    pub fn qos_mismatch(self) -> Option<String> {
        qos_compatible(&self.publisher.qos, &self.subscription.qos).err()
    }
}
