//! Clients that have asked a server for the first time, until the ends are found that answers go to.
//!
//! Any node of the domain may send a request that names a client which has no ends, or none yet: those of a client
//! on another host come by a way of their own. So what a new client asks waits here, without a handler and without
//! a thread, until its ends are matched. What is nobody's is dropped and counted once [`MATCHING`] is over. Each
//! node has room of its own, so that one that names many clients harms none but itself.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rnet_core::CancelReason;

use super::{Bytes, Key};

/// How long a request waits for the ends of its client.
const MATCHING: Duration = Duration::from_secs(5);
/// Clients of one node that a server looks for at a time.
const MAX_SOUGHT: usize = 16;
/// New clients of one node whose requests are kept, and at least as many requests of these.
const MAX_KEPT: usize = rnet_core::limits::MAX_PUBLISHERS_PER_SUBSCRIPTION;
/// Requests of one client that are kept, or that it is told of later that there was no room.
const MAX_NUMBERS: usize = super::MAX_IN_FLIGHT;

/// A request of a client that is not known yet.
pub struct Early {
    pub number: u32,
    /// `None` where there was no room for it: it is to be refused.
    pub request: Option<Bytes>,
    /// Why it is not to be begun any more; its caller waits to be told so.
    pub cancelled: Option<CancelReason>,
}

struct Arrival {
    client: u32,
    publisher: u64,
    since: Instant,
    requests: Vec<Early>,
}

impl Arrival {
    fn kept(&self) -> usize {
        self.requests.iter().filter(|early| early.request.is_some()).count()
    }
}

/// Those of one node, in the order in which they came.
struct OfNode<P> {
    node: String,
    /// Those that are looked for, with the way back to each.
    sought: Vec<(Arrival, P)>,
    waiting: VecDeque<Arrival>,
    /// Requests of all of them that are kept.
    kept: usize,
}

impl<P> OfNode<P> {
    fn new(node: String) -> OfNode<P> {
        OfNode { node, sought: Vec::new(), waiting: VecDeque::new(), kept: 0 }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Arrival> {
        self.sought.iter_mut().map(|(arrival, _)| arrival).chain(&mut self.waiting)
    }

    fn is_empty(&self) -> bool {
        self.sought.is_empty() && self.waiting.is_empty()
    }

    /// Drops some; how many requests that were.
    fn drop_where(&mut self, gone: impl Fn(&Arrival) -> bool) -> u64 {
        let (mut requests, mut kept) = (0, 0);
        let mut is_gone = |arrival: &Arrival| {
            let gone = gone(arrival);
            if gone {
                requests += arrival.requests.len() as u64;
                kept += arrival.kept();
            }
            gone
        };
        self.sought.retain(|(arrival, _)| !is_gone(arrival));
        self.waiting.retain(|arrival| !is_gone(arrival));
        self.kept -= kept;
        requests
    }
}

/// Those that have arrived, by their nodes. `P` is a way back to one of them.
pub struct Arrivals<P>(Vec<OfNode<P>>);

impl<P> Arrivals<P> {
    pub fn new() -> Arrivals<P> {
        Arrivals(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Clients that are looked for.
    pub fn sought(&self) -> usize {
        self.0.iter().map(|of| of.sought.len()).sum()
    }

    /// Keeps a request of a client that is not known yet; `most` of a node, or [`MAX_KEPT`] where that is more. Whether
    /// there was room.
    pub fn keep(
        &mut self,
        (node, client): Key,
        publisher: u64,
        number: u32,
        bytes: Bytes,
        most: usize,
    ) -> bool {
        let at = self.0.iter().position(|of| of.node == node).unwrap_or_else(|| {
            self.0.push(OfNode::new(node));
            self.0.len() - 1
        });
        let of = &mut self.0[at];
        let (clients, has_room) =
            (of.sought.len() + of.waiting.len(), of.kept < most.max(MAX_KEPT));
        let early = Early { number, request: has_room.then_some(bytes), cancelled: None };
        let known = of.all().find(|arrival| arrival.client == client);
        match known {
            Some(arrival) if arrival.requests.len() < MAX_NUMBERS => arrival.requests.push(early),
            None if clients < MAX_KEPT => {
                let (since, requests) = (Instant::now(), vec![early]);
                of.waiting.push_back(Arrival { client, publisher, since, requests });
            }
            _ => return false,
        }
        of.kept += usize::from(has_room);
        true
    }

    /// A caller does not want its call any more. With `awaited` it wants to be told of its end; without, the request is
    /// dropped, and its client is looked for no more where it has no other. Whether it was dropped.
    pub fn cancel(
        &mut self,
        (node, client): &Key,
        number: u32,
        reason: CancelReason,
        awaited: bool,
    ) -> bool {
        let Some(of) = self.0.iter_mut().find(|of| of.node == *node) else { return false };
        let Some(arrival) = of.all().find(|arrival| arrival.client == *client) else {
            return false;
        };
        let Some(at) = arrival.requests.iter().position(|early| early.number == number) else {
            return false;
        };
        if awaited {
            arrival.requests[at].cancelled.get_or_insert(reason);
            return false;
        }
        let dropped = arrival.requests.remove(at);
        of.kept -= usize::from(dropped.request.is_some());
        of.drop_where(|arrival| arrival.requests.is_empty());
        self.forget_empty();
        true
    }

    pub fn cancel_all(&mut self, reason: CancelReason) {
        for early in self.0.iter_mut().flat_map(OfNode::all).flat_map(|one| &mut one.requests) {
            early.cancelled.get_or_insert(reason);
        }
    }

    /// Whether there are some that may be looked for and are not yet.
    pub fn any_unsought(&self) -> bool {
        self.0.iter().any(|of| of.sought.len() < MAX_SOUGHT && !of.waiting.is_empty())
    }

    /// Looks for as many as may be looked for at a time. What `open` has no way back for is dropped; how many requests
    /// that were.
    pub fn seek(&mut self, mut open: impl FnMut(Key, u64) -> Option<P>) -> u64 {
        let mut dropped = 0;
        for of in &mut self.0 {
            while of.sought.len() < MAX_SOUGHT
                && let Some(arrival) = of.waiting.pop_front()
            {
                match open((of.node.clone(), arrival.client), arrival.publisher) {
                    Some(peer) => of.sought.push((arrival, peer)),
                    None => {
                        of.kept -= arrival.kept();
                        dropped += arrival.requests.len() as u64;
                    }
                }
            }
        }
        self.forget_empty();
        dropped
    }

    /// Takes those out whose ends are found: who `hears` what is said of these requests.
    pub fn found(&mut self, hears: impl Fn(&P, &[Early]) -> bool) -> Vec<(P, Vec<Early>)> {
        let mut found = Vec::new();
        for of in &mut self.0 {
            for (arrival, peer) in
                of.sought.extract_if(.., |(one, peer)| hears(peer, &one.requests))
            {
                of.kept -= arrival.kept();
                found.push((peer, arrival.requests));
            }
        }
        self.forget_empty();
        found
    }

    /// Drops those that were looked for in vain; how many requests that were.
    pub fn give_up(&mut self) -> u64 {
        self.drop_where(|arrival| arrival.since.elapsed() >= MATCHING)
    }

    /// Drops the one that is looked for longest; how many requests that were.
    pub fn give_up_first(&mut self) -> u64 {
        let sought = self.0.iter().flat_map(|of| &of.sought);
        let first = sought.min_by_key(|(arrival, _)| arrival.since);
        let first = first.map(|(arrival, _)| (arrival.client, arrival.since));
        self.drop_where(|arrival| Some((arrival.client, arrival.since)) == first)
    }

    /// Drops those of callers that are gone; how many requests that were.
    pub fn forget_gone(&mut self, is_gone: impl Fn(u64) -> bool) -> u64 {
        self.drop_where(|arrival| is_gone(arrival.publisher))
    }

    fn drop_where(&mut self, gone: impl Fn(&Arrival) -> bool) -> u64 {
        let dropped = self.0.iter_mut().map(|of| of.drop_where(&gone)).sum();
        self.forget_empty();
        dropped
    }

    fn forget_empty(&mut self) {
        self.0.retain(|of| !of.is_empty());
    }
}
