//! The end of matches: with nodes that are gone, and with endpoints that were taken back.

use std::collections::BTreeSet;

use rnet_shm::domain::node::{Entry, incarnation_of};

use super::Matching;
use super::own::endpoints_of_node;
use crate::match_event::Notice;

impl Matching {
    /// Ends the matches with a node that is gone.
    pub(super) fn end_matches_with(&mut self, node: u64, died: bool, notices: &mut Vec<Notice>) {
        for publisher in self.publishers.values_mut() {
            let gone: Vec<u64> = endpoints_of_node(node, publisher.known.keys());
            for id in gone {
                publisher.known.remove(&id);
                publisher.drop_reader(id, died, notices);
            }
            publisher.readers.remove_dead_node(node);
        }
        for subscription in self.subscriptions.values_mut() {
            for id in endpoints_of_node(node, subscription.known.keys()) {
                if !died || !subscription.await_successor(id, notices) {
                    subscription.drop_publisher(id, died, notices);
                }
            }
        }
        self.schedule_awaited();
    }

    /// Ends the matches of our endpoints of a topic, whose entries these are, with endpoints that were taken back.
    pub(super) fn drop_withdrawn(&mut self, entries: &[Entry], notices: &mut Vec<Notice>) {
        let here: BTreeSet<u64> = entries.iter().map(|e| e.id).collect();
        for id in &here {
            let Some(publisher) = self.publishers.get_mut(id) else { continue };
            let gone: Vec<u64> =
                publisher.known.keys().filter(|id| !here.contains(id)).copied().collect();
            for id in gone {
                publisher.known.remove(&id);
                publisher.drop_reader(id, false, notices);
            }
        }
        for id in &here {
            let Some(subscription) = self.subscriptions.get(id) else { continue };
            let gone: Vec<u64> =
                subscription.known.keys().filter(|id| !here.contains(id)).copied().collect();
            for publisher in gone {
                let lost = self.was_lost(publisher);
                if let Some(subscription) = self.subscriptions.get_mut(id) {
                    subscription.drop_publisher(publisher, lost, notices);
                }
            }
        }
    }

    /// Whether an endpoint that is not there any more was lost, while its node is there.
    pub(super) fn was_lost(&self, id: u64) -> bool {
        let incarnation = incarnation_of(id);
        if incarnation == self.own.incarnation() {
            return self.own.has_lost(id);
        }
        self.registry.peer(incarnation).is_some_and(|peer| peer.node.has_lost(id))
    }
}
