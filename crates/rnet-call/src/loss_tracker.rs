//! The messages of each server that a client's subscriber has lost.

use std::collections::HashMap;

use rnet_node::internal::EngineSubscriber;
use rnet_node::{Message, Subscriber};

/// The loss counters of one subscriber at the last check.
#[derive(Default)]
pub struct LossTracker {
    sum: u64,
    by_publisher: HashMap<u64, u64>,
}

impl LossTracker {
    /// Whether losses may have occurred since the last check.
    pub fn has_changed<T: Message + ?Sized>(&self, subscriber: &Subscriber<T>) -> bool {
        subscriber.lost_now() != self.sum
    }

    /// The losses since the last call: the nodes of the publishers, and the number of messages of each.
    pub fn take_new_losses<T: Message + ?Sized>(
        &mut self,
        subscriber: &Subscriber<T>,
    ) -> Vec<(String, u64)> {
        let sum = subscriber.lost_now();
        // The sum covers the present publishers, so it also changes with them.
        if sum == self.sum {
            return Vec::new();
        }
        self.sum = sum;
        let before = std::mem::take(&mut self.by_publisher);
        let mut new_losses = Vec::new();
        for stats in subscriber.stats() {
            let lost = stats.lost.total();
            let new = lost - before.get(&stats.publisher).copied().unwrap_or(0).min(lost);
            self.by_publisher.insert(stats.publisher, lost);
            if new > 0 {
                new_losses.push((stats.node, new));
            }
        }
        new_losses
    }
}
