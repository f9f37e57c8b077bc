//! Clients that have asked a server for the first time, until the ends are found that answers go to.
//!
//! Any node of the domain may send a request that names a client which has no ends, or none yet: those of a client
//! on another host come by a way of their own. So what a new client asks waits here, without a handler and without
//! a thread, until its ends are matched. What is nobody's is dropped and counted once [`MATCH_TIMEOUT`] is over. Each
//! node has room of its own, so that one that names many clients harms none but itself.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rnet_core::CancelReason;

use super::{Bytes, CallerKey};

/// How long a request waits for the ends of its client.
const MATCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Clients of one node that a server looks for at a time.
const MAX_MATCHING_PER_NODE: usize = 16;
/// New clients of one node whose requests are queued, and at least as many requests of these.
const MAX_QUEUED_PER_NODE: usize = rnet_core::limits::MAX_PUBLISHERS_PER_SUBSCRIPTION;
/// Requests of one client that are queued, or that it is told of later that there was no room.
const MAX_QUEUED_PER_CLIENT: usize = super::MAX_IN_FLIGHT;

/// A request of a client that is not known yet.
pub struct EarlyRequest {
    pub number: u32,
    /// `None` where there was no room for it: it is to be refused.
    pub request: Option<Bytes>,
    /// Why it is not to be begun any more; its caller waits to be told so.
    pub cancelled: Option<CancelReason>,
}

struct UnmatchedClient {
    client: u32,
    publisher: u64,
    since: Instant,
    requests: Vec<EarlyRequest>,
}

impl UnmatchedClient {
    fn queued(&self) -> usize {
        self.requests.iter().filter(|early| early.request.is_some()).count()
    }
}

/// Those of one node, in the order in which they came.
struct NodeClients<P> {
    node: String,
    /// Those that are looked for, with the way back to each.
    matching: Vec<(UnmatchedClient, P)>,
    waiting: VecDeque<UnmatchedClient>,
    /// Requests of all of them that are queued.
    queued: usize,
}

impl<P> NodeClients<P> {
    fn new(node: String) -> NodeClients<P> {
        NodeClients { node, matching: Vec::new(), waiting: VecDeque::new(), queued: 0 }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut UnmatchedClient> {
        self.matching.iter_mut().map(|(entry, _)| entry).chain(&mut self.waiting)
    }

    fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.waiting.is_empty()
    }

    /// Drops some; how many requests that were.
    fn drop_where(&mut self, gone: impl Fn(&UnmatchedClient) -> bool) -> u64 {
        let (mut requests, mut queued) = (0, 0);
        let mut is_gone = |entry: &UnmatchedClient| {
            let gone = gone(entry);
            if gone {
                requests += entry.requests.len() as u64;
                queued += entry.queued();
            }
            gone
        };
        self.matching.retain(|(entry, _)| !is_gone(entry));
        self.waiting.retain(|entry| !is_gone(entry));
        self.queued -= queued;
        requests
    }
}

/// Those that have arrived, by their nodes. `P` is a way back to one of them.
pub struct UnmatchedClients<P>(Vec<NodeClients<P>>);

impl<P> UnmatchedClients<P> {
    pub fn new() -> UnmatchedClients<P> {
        UnmatchedClients(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Clients that are looked for.
    pub fn matching(&self) -> usize {
        self.0.iter().map(|node_clients| node_clients.matching.len()).sum()
    }

    /// Keeps a request of a client that is not known yet; `most` of a node, or [`MAX_QUEUED_PER_NODE`] where that is more. Whether
    /// there was room.
    pub fn enqueue(
        &mut self,
        (node, client): CallerKey,
        publisher: u64,
        number: u32,
        bytes: Bytes,
        most: usize,
    ) -> bool {
        let at =
            self.0.iter().position(|node_clients| node_clients.node == node).unwrap_or_else(|| {
                self.0.push(NodeClients::new(node));
                self.0.len() - 1
            });
        let node_clients = &mut self.0[at];
        let (clients, has_room) = (
            node_clients.matching.len() + node_clients.waiting.len(),
            node_clients.queued < most.max(MAX_QUEUED_PER_NODE),
        );
        let early = EarlyRequest { number, request: has_room.then_some(bytes), cancelled: None };
        let known = node_clients.all().find(|entry| entry.client == client);
        match known {
            Some(entry) if entry.requests.len() < MAX_QUEUED_PER_CLIENT => {
                entry.requests.push(early)
            }
            None if clients < MAX_QUEUED_PER_NODE => {
                let (since, requests) = (Instant::now(), vec![early]);
                node_clients.waiting.push_back(UnmatchedClient {
                    client,
                    publisher,
                    since,
                    requests,
                });
            }
            _ => return false,
        }
        node_clients.queued += usize::from(has_room);
        true
    }

    /// A caller does not want its call any more. With `caller_waits` it wants to be told of its end; without, the request is
    /// dropped, and its client is looked for no more where it has no other. Whether it was dropped.
    pub fn cancel(
        &mut self,
        (node, client): &CallerKey,
        number: u32,
        reason: CancelReason,
        caller_waits: bool,
    ) -> bool {
        let Some(node_clients) = self.0.iter_mut().find(|node_clients| node_clients.node == *node)
        else {
            return false;
        };
        let Some(entry) = node_clients.all().find(|entry| entry.client == *client) else {
            return false;
        };
        let Some(at) = entry.requests.iter().position(|early| early.number == number) else {
            return false;
        };
        if caller_waits {
            entry.requests[at].cancelled.get_or_insert(reason);
            return false;
        }
        let dropped = entry.requests.remove(at);
        node_clients.queued -= usize::from(dropped.request.is_some());
        node_clients.drop_where(|entry| entry.requests.is_empty());
        self.remove_empty_nodes();
        true
    }

    pub fn cancel_all(&mut self, reason: CancelReason) {
        for early in self.0.iter_mut().flat_map(NodeClients::all).flat_map(|one| &mut one.requests)
        {
            early.cancelled.get_or_insert(reason);
        }
    }

    /// Whether there are some that may be looked for and are not yet.
    pub fn has_client_to_match(&self) -> bool {
        self.0.iter().any(|node_clients| {
            node_clients.matching.len() < MAX_MATCHING_PER_NODE && !node_clients.waiting.is_empty()
        })
    }

    /// Looks for as many as may be looked for at a time. What `open` has no way back for is dropped; how many requests
    /// that were.
    pub fn start_matching(&mut self, mut open: impl FnMut(CallerKey, u64) -> Option<P>) -> u64 {
        let mut dropped = 0;
        for node_clients in &mut self.0 {
            while node_clients.matching.len() < MAX_MATCHING_PER_NODE
                && let Some(entry) = node_clients.waiting.pop_front()
            {
                match open((node_clients.node.clone(), entry.client), entry.publisher) {
                    Some(peer) => node_clients.matching.push((entry, peer)),
                    None => {
                        node_clients.queued -= entry.queued();
                        dropped += entry.requests.len() as u64;
                    }
                }
            }
        }
        self.remove_empty_nodes();
        dropped
    }

    /// Takes those out whose ends are found: who `hears` what is said of these requests.
    pub fn take_matched(
        &mut self,
        hears: impl Fn(&P, &[EarlyRequest]) -> bool,
    ) -> Vec<(P, Vec<EarlyRequest>)> {
        let mut found = Vec::new();
        for node_clients in &mut self.0 {
            for (entry, peer) in
                node_clients.matching.extract_if(.., |(one, peer)| hears(peer, &one.requests))
            {
                node_clients.queued -= entry.queued();
                found.push((peer, entry.requests));
            }
        }
        self.remove_empty_nodes();
        found
    }

    /// Drops those that were looked for in vain; how many requests that were.
    pub fn drop_timed_out(&mut self) -> u64 {
        self.drop_where(|entry| entry.since.elapsed() >= MATCH_TIMEOUT)
    }

    /// Drops the one that is looked for longest; how many requests that were.
    pub fn drop_oldest(&mut self) -> u64 {
        let matching = self.0.iter().flat_map(|node_clients| &node_clients.matching);
        let first = matching.min_by_key(|(entry, _)| entry.since);
        let first = first.map(|(entry, _)| (entry.client, entry.since));
        self.drop_where(|entry| Some((entry.client, entry.since)) == first)
    }

    /// Drops those of callers that are gone; how many requests that were.
    pub fn drop_gone(&mut self, is_gone: impl Fn(u64) -> bool) -> u64 {
        self.drop_where(|entry| is_gone(entry.publisher))
    }

    fn drop_where(&mut self, gone: impl Fn(&UnmatchedClient) -> bool) -> u64 {
        let dropped = self.0.iter_mut().map(|node_clients| node_clients.drop_where(&gone)).sum();
        self.remove_empty_nodes();
        dropped
    }

    fn remove_empty_nodes(&mut self) {
        self.0.retain(|node_clients| !node_clients.is_empty());
    }
}
