//! Waiting for the successor of a proxy whose process has died.
//!
//! What forwards messages between hosts is a process of this host. Its death is not that of the publishers for
//! which its proxies stand: its next life opens proxies for them. Only when none has come for a while are they
//! lost for the subscribers here.

use std::collections::BTreeMap;
use std::time::Duration;

use rnet_core::{Proxy, ns_saturating};
use rnet_shm::os::clock;

use super::Matching;
use super::own::OwnSubscription;
use crate::match_event::Notice;

/// For how long the successor of a proxy is waited for.
pub const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(3);

/// The proxies that a subscription follows.
#[derive(Default)]
pub struct ProxyTracker {
    /// Whom they stand for: host and endpoint.
    origins: BTreeMap<u64, (String, u64)>,
    /// Those whose process has died, and until when their successor is waited for: CLOCK_MONOTONIC in ns.
    awaited: BTreeMap<u64, u64>,
}

impl ProxyTracker {
    /// Whether its successor is waited for.
    pub fn is_awaited(&self, id: u64) -> bool {
        self.awaited.contains_key(&id)
    }

    /// When the first is given up.
    pub fn due_ns(&self) -> Option<u64> {
        self.awaited.values().min().copied()
    }

    pub fn forget(&mut self, id: u64) {
        self.origins.remove(&id);
        self.awaited.remove(&id);
    }
}

impl OwnSubscription {
    /// The process of a publisher has died. Says whether it was a proxy, whose end is seen to.
    pub fn await_successor(&mut self, id: u64, notices: &mut Vec<Notice>) -> bool {
        let Some(origin) = self.proxies.origins.get(&id) else { return false };
        let is_other = |(other, of): (&u64, &(String, u64))| {
            *other != id && of == origin && !self.proxies.is_awaited(*other)
        };
        if self.proxies.origins.iter().any(is_other) {
            // It is there already.
            self.drop_publisher(id, false, notices);
            return true;
        }
        let due_ns = clock::now_ns().saturating_add(ns_saturating(SUCCESSOR_TIMEOUT));
        self.proxies.awaited.insert(id, due_ns);
        self.state.update_inbox(|inbox| inbox.publisher_left(id, false));
        true
    }

    /// A publisher has been matched. A proxy succeeds those of its origin whose processes have died.
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

    /// Gives up those whose successor has not come in time.
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
    /// Looks at those whose successor is waited for when their time is over.
    pub fn schedule_awaited(&mut self) {
        for (id, own) in &self.subscriptions {
            if let Some(due_ns) = own.proxies.due_ns() {
                self.timed.insert(*id);
                self.next_check.schedule(due_ns);
            }
        }
    }
}
