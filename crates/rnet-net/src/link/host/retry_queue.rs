//! Endpoints of another host that exceeded a limit of this host: they are retried until they fit or are
//! gone.

use std::collections::BTreeMap;
use std::time::Instant;

use rnet::Error;

use super::super::announcements::EndpointDescription;
use super::super::control_state::ControlState;
use super::{Host, MAX_ENDPOINTS};

/// The most failures in one round: after so many, the resource counts as exhausted.
const MAX_FAILURES_PER_ROUND: usize = 64;

/// The endpoints that wait for capacity.
#[derive(Default)]
pub struct RetryQueue {
    waiting: BTreeMap<u64, EndpointDescription>,
    /// The first endpoint of the next round.
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

    /// Ends the round with this endpoint.
    fn end_round_at(&mut self, id: u64) {
        self.from = id.saturating_add(1);
    }

    /// All endpoints, beginning with those that the previous round did not reach.
    fn next_round(&self) -> Vec<EndpointDescription> {
        let (before, from) = (self.waiting.range(..self.from), self.waiting.range(self.from..));
        from.chain(before).map(|(_, described)| described.clone()).collect()
    }
}

/// Whether the error may go away: an invalid name or type does not.
fn is_transient(error: &Error) -> bool {
    matches!(error, Error::LimitReached { .. } | Error::OutOfMemory { .. } | Error::Io { .. })
}

impl Host {
    /// Opens an endpoint of the other host. An error is reported once.
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

    /// Retries the queued endpoints.
    pub(super) fn retry_queued(&mut self, control: &mut ControlState) {
        let mut failed = 0;
        for described in self.retry_queue.next_round() {
            let (id, topic) = (described.id, described.topic.clone());
            let error = self.open_endpoint(control, described).err().filter(is_transient);
            if let Some(error) = error {
                // The problem was reported, and persists while the endpoint waits.
                control.problems.refresh(&error.with_topic(&topic), Instant::now());
                // One failure for want of capacity proves little about the others; many prove that none is
                // left.
                failed += 1;
                if failed == MAX_FAILURES_PER_ROUND {
                    // The next round begins with the others: they may fit where these did not, and their
                    // problems stay reported.
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
    use crate::link::announcements::Qos;

    #[test]
    fn endpoints_not_reached_in_a_round_come_first_in_the_next() {
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
