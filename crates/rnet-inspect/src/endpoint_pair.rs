//! A publisher and a subscription of one topic, and what there is between them.

use rnet_core::{TypeMismatch, qos_compatible};

use super::types::{are_types_known, mismatch};
use super::{ChannelInfo, PublisherInfo, Snapshot, SubscriptionInfo};

/// A publisher and a subscription of one topic.
#[derive(Clone, Copy, Debug)]
pub struct EndpointPair<'a> {
    /// Who sends.
    pub publisher: &'a PublisherInfo,
    /// Who receives, if the two have matched.
    pub subscription: &'a SubscriptionInfo,
}

impl Snapshot {
    /// All pairs of a publisher and a subscription of one topic, of which at least one is on this host: what two
    /// endpoints of other hosts exchange does not pass through this one, and is shown there.
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
    /// What the subscription has of the publisher.
    pub fn channel(self) -> Option<&'a ChannelInfo> {
        self.subscription.channels.iter().find(|c| c.publisher == self.publisher.id)
    }

    /// Whether both sides have taken each other up: the subscription has bound a page to the publisher, and the publisher
    /// serves it.
    pub fn is_matched(self) -> bool {
        let admitted =
            |p: &PublisherInfo| p.admitted.iter().any(|a| a.subscription == self.subscription.id);
        self.channel().is_some() && admitted(self.publisher)
    }

    /// Whether the types were read as far as the verdict on them depends on it.
    pub fn types_known(self) -> bool {
        are_types_known(self.publisher, self.subscription)
    }

    /// Where the subscription is known not to understand the publisher.
    pub fn type_mismatch(self) -> Option<TypeMismatch> {
        mismatch(self.publisher, self.subscription)
    }

    /// Why the quality of service of the two does not fit, and after the last ": " what to change. `None` if it fits.
    pub fn qos_mismatch(self) -> Option<String> {
        qos_compatible(&self.publisher.qos, &self.subscription.qos).err()
    }
}
