//! What a client's subscriber has lost of each server.

use std::collections::HashMap;

use rnet_node::{Message, Subscriber};

/// The counts of one subscriber as they were at the last look.
#[derive(Default)]
pub struct LossTracker {
    sum: u64,
    by_publisher: HashMap<u64, u64>,
}

impl LossTracker {
    /// Whether a look at what was lost may find something.
    pub fn has_changed<T: Message + ?Sized>(&self, subscriber: &Subscriber<T>) -> bool {
        subscriber.lost_now() != self.sum
    }

    /// What was lost since the last look: the nodes of the publishers, and how many messages of each.
    pub fn take_new_losses<T: Message + ?Sized>(
        &mut self,
        subscriber: &Subscriber<T>,
    ) -> Vec<(String, u64)> {
        let sum = subscriber.lost_now();
        // The sum is that of those who are there: it changes with them, too.
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
