//! Waiting for the successor of a proxy whose process has died.
//!
//! A process of this host forwards messages between hosts. Its death is not the death of the publishers that
//! its proxies represent: after its restart it opens new proxies for them. If no successor appears in time,
//! the publishers are lost for the subscribers here.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet_core::{Proxy, ns_saturating};
use rnet_shm::os::clock;

use super::Matching;
use super::own::OwnSubscription;
use crate::match_event::Notice;

/// How long to wait for the successor of a proxy.
pub const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(3);

/// The proxies that a subscription follows.
#[derive(Default)]
pub struct ProxyTracker {
    /// The origin of each proxy: host and endpoint.
    origins: BTreeMap<u64, (String, u64)>,
    /// Proxies whose process has died, and until when to wait for a successor: CLOCK_MONOTONIC in ns.
    awaited: BTreeMap<u64, u64>,
}

impl ProxyTracker {
    /// Whether the successor of `id` is awaited.
    pub fn is_awaited(&self, id: u64) -> bool {
        self.awaited.contains_key(&id)
    }

    /// When the first wait expires.
    pub fn due_ns(&self) -> Option<u64> {
        self.awaited.values().min().copied()
    }

    pub fn forget(&mut self, id: u64) {
        self.origins.remove(&id);
        self.awaited.remove(&id);
    }
}

impl OwnSubscription {
    /// The process of a publisher has died. Returns whether it was a proxy, which this function handles.
    pub fn await_successor(&mut self, id: u64, notices: &mut Vec<Notice>) -> bool {
        let Some(origin) = self.proxies.origins.get(&id) else { return false };
        let is_other = |(other, of): (&u64, &(String, u64))| {
            *other != id && of == origin && !self.proxies.is_awaited(*other)
        };
        if self.proxies.origins.iter().any(is_other) {
            // The successor is already matched.
            self.drop_publisher(id, false, notices);
            return true;
        }
        let due_ns = clock::now_ns().saturating_add(ns_saturating(SUCCESSOR_TIMEOUT));
        self.proxies.awaited.insert(id, due_ns);
        self.state.update_inbox(|inbox| inbox.publisher_left(id, false));
        true
    }

    /// A publisher was matched. A proxy succeeds the proxies of its origin whose processes have died.
    pub fn note_proxy(&mut self, id: u64, proxy: &Option<Proxy>, notices: &mut Vec<Notice>) {
        let Some(proxy) = proxy else { return };
        let origin = (proxy.host().to_owned(), proxy.endpoint());
        let awaited = self.proxies.awaited.keys().copied();
        let of_it = |id: &u64| self.proxies.origins.get(id) == Some(&origin);
        for before in awaited.filter(of_it).collect::<Vec<_>>() {
            self.end_match(before, false, notices);
        }
        self.proxies.origins.insert(id, origin);
    }

    /// Gives up the proxies whose successor did not appear in time.
    pub fn expire_awaited(&mut self, now_ns: u64, notices: &mut Vec<Notice>) {
        let over = self.proxies.awaited.iter().filter(|(_, due_ns)| **due_ns <= now_ns);
        for id in over.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some(node) = self.end_match(id, true, notices) {
                self.state.update_inbox(|inbox| inbox.publisher_lost(id, node));
            }
        }
    }
}

impl Matching {
    /// Schedules the check of the awaited successors.
    pub fn schedule_awaited(&mut self) {
        for (id, own) in &self.subscriptions {
            if let Some(due_ns) = own.proxies.due_ns() {
                self.timed.insert(*id);
                self.next_check.schedule(due_ns);
            }
        }
    }
}
