//! Messages of other hosts cross the network only while somebody here subscribes, and an observer does not.
//!
//! So a recorder that follows a topic with publishers of other hosts subscribes to it after all, best_effort and to bytes,
//! and lets what it receives go: what is recorded is what the observer sees.

use std::collections::BTreeSet;

use rnet::{Node, Subscription};

/// The topics for which it has been tried, and the subscriptions.
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
        self.subscriptions.push(node.subscriber::<[u8]>(topic)?.on(|_| {}));
        Ok(())
    }
}
