//! Clients that have called a server for the first time, until the endpoints for their answers are found.
//!
//! Any node of the domain may send a request that names a client whose endpoints do not exist, or not yet:
//! the endpoints of a client on another host arrive separately. So the requests of a new client wait here,
//! without a handler and without a thread, until its endpoints are matched. Requests that remain unmatched
//! are dropped and counted after [`CLIENT_MATCH_TIMEOUT`]. Each node has its own capacity, so that a node that names
//! many clients harms only itself.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rnet_core::CancelReason;

use super::{Bytes, CallerKey};

/// How long a request waits for the endpoints of its client.
const CLIENT_MATCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Clients of one node that a server matches at a time.
const MAX_MATCHING_PER_NODE: usize = 16;
/// New clients of one node whose requests are queued; also the minimum number of their queued requests.
const MAX_QUEUED_PER_NODE: usize = rnet_core::limits::MAX_PUBLISHERS_PER_SUBSCRIPTION;
/// Requests of one client that are queued, or that will be refused because the queue was full.
const MAX_QUEUED_PER_CLIENT: usize = super::MAX_IN_FLIGHT;

/// A request of a client that is not matched yet.
pub struct EarlyRequest {
    pub number: u32,
    /// `None` if the queue was full: the request is to be refused.
    pub request: Option<Bytes>,
    /// Why it is not to be started any more; its caller waits for this notification.
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

/// The clients of one node, in order of arrival.
struct NodeClients<P> {
    node: String,
    /// The clients being matched, with the endpoints to each.
    matching: Vec<(UnmatchedClient, P)>,
    waiting: VecDeque<UnmatchedClient>,
    /// Queued requests of all of them.
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

    /// Drops the selected clients; returns the number of their requests.
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

/// The clients, by node. `P` holds the endpoints to one of them.
pub struct UnmatchedClients<P>(Vec<NodeClients<P>>);

impl<P> UnmatchedClients<P> {
    pub fn new() -> UnmatchedClients<P> {
        UnmatchedClients(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of clients being matched.
    pub fn matching(&self) -> usize {
        self.0.iter().map(|node_clients| node_clients.matching.len()).sum()
    }

    /// Queues a request of an unmatched client; at most `most` per node, or [`MAX_QUEUED_PER_NODE`] if that
    /// is more. Returns whether there was capacity.
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

    /// A caller has cancelled its call. With `caller_waits` it is notified of the end. Without, the request
    /// is dropped, and so is its client if it has no other request. Returns whether it was dropped.
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

    /// Whether some clients may be matched and are not being matched yet.
    pub fn has_client_to_match(&self) -> bool {
        self.0.iter().any(|node_clients| {
            node_clients.matching.len() < MAX_MATCHING_PER_NODE && !node_clients.waiting.is_empty()
        })
    }

    /// Starts matching as many clients as allowed. Drops those for which `open` returns no endpoints; returns
    /// the number of their requests.
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

    /// Removes the matched clients: those for which `hears` returns `true` for these requests.
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

    /// Drops the clients that were not matched in time; returns the number of their requests.
    pub fn drop_timed_out(&mut self) -> u64 {
        self.drop_where(|entry| entry.since.elapsed() >= CLIENT_MATCH_TIMEOUT)
    }

    /// Drops the client that has been waiting longest for its match; returns the number of its requests.
    pub fn drop_oldest(&mut self) -> u64 {
        let matching = self.0.iter().flat_map(|node_clients| &node_clients.matching);
        let first = matching.min_by_key(|(entry, _)| entry.since);
        let first = first.map(|(entry, _)| (entry.client, entry.since));
        self.drop_where(|entry| Some((entry.client, entry.since)) == first)
    }

    /// Drops clients that are gone; returns the number of their requests.
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
