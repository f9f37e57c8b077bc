//! Endpoints of another host for which there was no room here: they are tried again until there is, or they are gone.

use std::collections::BTreeMap;
use std::time::Instant;

use rnet::Error;

use super::super::control_state::ControlState;
use super::super::directory::EndpointDescription;
use super::{Host, MAX_ENDPOINTS};

/// Of one round of tries: where so many have no room, there is none.
const MAX_FAILURES_PER_ROUND: usize = 64;

/// What waits for room.
#[derive(Default)]
pub struct RetryQueue {
    waiting: BTreeMap<u64, EndpointDescription>,
    /// The first of the next round.
    from: u64,
}

impl RetryQueue {
    fn add(&mut self, described: EndpointDescription) {
        if self.waiting.len() < MAX_ENDPOINTS {
            self.waiting.insert(described.id, described);
        }
    }

    pub fn remove(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The round ends with this one.
    fn end_round_at(&mut self, id: u64) {
        self.from = id.saturating_add(1);
    }

    /// All of them, those first that were not reached in the round before.
    fn next_round(&self) -> Vec<EndpointDescription> {
        let (before, from) = (self.waiting.range(..self.from), self.waiting.range(self.from..));
        from.chain(before).map(|(_, described)| described.clone()).collect()
    }
}

/// Whether it may be otherwise in a while: a name or a type that is wrong stays so.
fn is_transient(error: &Error) -> bool {
    matches!(error, Error::LimitReached { .. } | Error::OutOfMemory { .. } | Error::Io { .. })
}

impl Host {
    /// An endpoint there was opened. What goes wrong is told once.
    pub(super) fn open_or_queue(
        &mut self,
        control: &mut ControlState,
        described: EndpointDescription,
    ) {
        let (id, topic) = (described.id, described.topic.clone());
        if let Err(error) = self.open_endpoint(control, described.clone()) {
            if is_transient(&error) {
                self.retry_queue.add(described);
            }
            control.report(&error.with_topic(&topic));
        } else {
            // An older description of it would undo this one.
            self.retry_queue.remove(id);
        }
        self.update_demand(control, id);
    }

    /// Tries those again for which there was no room.
    pub(super) fn retry_queued(&mut self, control: &mut ControlState) {
        let mut failed = 0;
        for described in self.retry_queue.next_round() {
            let (id, topic) = (described.id, described.topic.clone());
            let error = self.open_endpoint(control, described).err().filter(is_transient);
            if let Some(error) = error {
                // It was told, and is so for as long as it waits.
                control.problems.refresh(&error.with_topic(&topic), Instant::now());
                // One for which there is no room says little of others, many say that there is none.
                failed += 1;
                if failed == MAX_FAILURES_PER_ROUND {
                    // The others come first in the next round: they may have what these lack, and are told for as long.
                    self.retry_queue.end_round_at(id);
                    return;
                }
                continue;
            }
            self.retry_queue.remove(id);
            self.update_demand(control, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::directory::Qos;

    #[test]
    fn those_that_a_round_did_not_reach_are_the_first_of_the_next() {
        let mut queue = RetryQueue::default();
        for id in [2, 4, 6, 8] {
            queue.add(EndpointDescription {
                id,
                node: "/camera".to_owned(),
                topic: "/image".to_owned(),
                type_desc: serde_json::Value::Null,
                qos: Qos::Subscriber(rnet::SubscriberQos::default()),
                will: false,
                ended: false,
                died: false,
            });
        }
        let next_round =
            |queue: &RetryQueue| queue.next_round().iter().map(|of| of.id).collect::<Vec<_>>();
        assert_eq!(next_round(&queue), [2, 4, 6, 8]);
        queue.end_round_at(4);
        assert_eq!(next_round(&queue), [6, 8, 2, 4]);
        queue.remove(6);
        assert_eq!(next_round(&queue), [8, 2, 4]);
        queue.end_round_at(8);
        assert_eq!(next_round(&queue), [2, 4, 8]);
    }
}
