//! Subscriptions to topics of other hosts.
//!
//! Messages of other hosts cross the network only if a local subscriber exists, and an observer is not a
//! subscriber. So a recorder that follows a topic with publishers of other hosts also subscribes to it,
//! best_effort and as bytes, and discards what it receives: it records what the observer sees.

use std::collections::BTreeSet;

use rnet::{Node, Subscription};

/// Topics whose subscription was attempted, and the subscriptions.
#[derive(Default)]
pub struct RemoteSubscriptions {
    tried: BTreeSet<String>,
    subscriptions: Vec<Subscription>,
}

impl RemoteSubscriptions {
    /// Subscribes to a topic, once.
    pub fn subscribe(&mut self, node: &Node, topic: &str) -> rnet::Result<()> {
        if !self.tried.insert(topic.to_owned()) {
            return Ok(());
        }
        self.subscriptions.push(node.subscriber::<[u8]>(topic).open()?.on(|_| {}));
        Ok(())
    }
}
