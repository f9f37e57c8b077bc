//! An in-memory transport: a network within one process, for tests. It fails as TCP does under Zenoh, on
//! request of the test.
//!
//! Two links are connected while each hears the other. A cut holds frames back, and senders wait once
//! [`CAPACITY`] frames are in flight; if it heals within the lease, the frames arrive. A cut that outlasts
//! the lease, in either direction, ends the connection for both: frames in flight are lost and both links
//! get [`down`](Sink::on_down). The next connection begins when both directions are healed.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rnet::Lane;

use crate::stream::Frame;
use crate::{HostId, Presence, Sink, Transport};

/// The most frames of a lane in flight from one link to another; then the sender waits.
pub const CAPACITY: usize = 64;

/// A network that joins links of this process.
pub struct MemoryNet {
    shared: Arc<Shared>,
}

/// One link's connection to it. Dropping it leaves the network and notifies the others at once.
pub struct MemoryLink {
    net: Arc<MemoryNet>,
    id: u64,
    receivers: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified at each change of the state. A test has few links, so one condition variable serves all
    /// threads.
    changed: Condvar,
}

struct State {
    lease: Duration,
    delay: Duration,
    closed: bool,
    next_id: u64,
    members: BTreeMap<u64, Member>,
    /// Cuts by direction, with the time from which on nothing passes.
    cuts: BTreeMap<(HostId, HostId), Instant>,
    /// Connected pairs, lower id first, with their presences, because a link that has left is not a member
    /// any more.
    connected: BTreeMap<(u64, u64), (Presence, Presence)>,
    /// Frames in flight, by sender, receiver and lane.
    queues: BTreeMap<(u64, u64, u8), VecDeque<InFlightFrame>>,
    notices: VecDeque<(u64, Presence, bool)>,
}

/// When a frame arrives, and its bytes.
type InFlightFrame = (Instant, Vec<u8>);

#[derive(Clone)]
struct Member {
    presence: Presence,
    sink: Arc<dyn Sink>,
}

impl MemoryNet {
    /// A network with the lease of the real one, 1.2 s.
    ///
    /// # Panics
    /// If no thread can be started.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Self::with_lease(Duration::from_millis(1200))
    }

    /// A network in which a cut of this duration ends a connection.
    ///
    /// # Panics
    /// If no thread can be started.
    #[must_use]
    pub fn with_lease(lease: Duration) -> Arc<Self> {
        let state = State {
            lease,
            delay: Duration::ZERO,
            closed: false,
            next_id: 0,
            members: BTreeMap::new(),
            cuts: BTreeMap::new(),
            connected: BTreeMap::new(),
            queues: BTreeMap::new(),
            notices: VecDeque::new(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let notifier = Arc::clone(&shared);
        thread::Builder::new()
            .name("memory-net".into())
            .spawn(move || notifier.notify())
            .expect("a thread");
        Arc::new(Self { shared })
    }

    /// Joins a link; `sink` receives the events of the others.
    ///
    /// # Panics
    /// If no thread can be started.
    #[must_use]
    pub fn join(self: &Arc<Self>, own: Presence, sink: Arc<dyn Sink>) -> Arc<MemoryLink> {
        let mut state = self.shared.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.members.insert(id, Member { presence: own, sink });
        drop(state);
        self.shared.changed.notify_all();
        let receivers = [Lane::Urgent, Lane::Bulk].map(|lane| {
            let shared = Arc::clone(&self.shared);
            let name = format!("memory-{id}-{}", lane_index(lane));
            thread::Builder::new()
                .name(name)
                .spawn(move || shared.receive(id, lane))
                .expect("a thread")
        });
        Arc::new(MemoryLink { net: Arc::clone(self), id, receivers: receivers.into() })
    }

    /// Blocks both directions between two hosts.
    pub fn cut(&self, a: HostId, b: HostId) {
        self.cut_one_way(a, b);
        self.cut_one_way(b, a);
    }

    /// Blocks the direction from one host to another; the other direction is unchanged.
    pub fn cut_one_way(&self, from: HostId, to: HostId) {
        self.shared.lock().cuts.entry((from, to)).or_insert_with(Instant::now);
        self.shared.changed.notify_all();
    }

    /// Ends the cuts between two hosts.
    pub fn heal(&self, a: HostId, b: HostId) {
        let mut state = self.shared.lock();
        state.cuts.remove(&(a, b));
        state.cuts.remove(&(b, a));
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Ends the connection between two hosts at once and loses the frames in flight. The next one begins at
    /// once, unless there is a cut.
    pub fn reset(&self, a: HostId, b: HostId) {
        let mut state = self.shared.lock();
        let hosts = [(a, b), (b, a)];
        let between = |(one, other): &(Presence, Presence)| hosts.contains(&(one.host, other.host));
        let ended: Vec<_> = state
            .connected
            .iter()
            .filter(|(_, ends)| between(ends))
            .map(|(&pair, _)| pair)
            .collect();
        for pair in ended {
            state.disconnect(pair);
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Sets how long each later frame is in flight.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.lock().delay = delay;
    }
}

impl Drop for MemoryNet {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Transport for MemoryLink {
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> io::Result<()> {
        let shared = &self.net.shared;
        let mut state = shared.lock();
        // Frames go to both links of a host, as with Zenoh: the terms in the frame tell them apart.
        let there: Vec<u64> = state
            .members
            .iter()
            .filter(|(_, member)| member.presence.host == to)
            .map(|(&id, _)| id)
            .collect();
        for receiver in there {
            let way = (self.id, receiver, lane_index(lane));
            while state.is_connected(self.id, receiver)
                && state.queues.get(&way).is_some_and(|queue| queue.len() >= CAPACITY)
            {
                state = shared.wait(state, None);
            }
            if state.is_connected(self.id, receiver) {
                let due = Instant::now() + state.delay;
                state.queues.entry(way).or_default().push_back((due, frame.to_vec()));
            }
        }
        drop(state);
        shared.changed.notify_all();
        Ok(())
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        let shared = &self.net.shared;
        let mut state = shared.lock();
        let member = state.members.remove(&self.id);
        drop(state);
        drop(member);
        shared.changed.notify_all();
        for receiver in self.receivers.drain(..) {
            // A receiver's callback may drop the last reference.
            if receiver.thread().id() != thread::current().id() {
                let _ = receiver.join();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        match until {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let timeout = until.saturating_duration_since(Instant::now());
                self.changed.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Notifies links of each other, and ends the connections whose lease is over.
    fn notify(&self) {
        let mut state = self.lock();
        while !state.closed {
            let next = state.connect_and_disconnect(Instant::now());
            if let Some((receiver, presence, up)) = state.notices.pop_front() {
                // Senders and receivers wait for the new connections, which may carry frames.
                self.changed.notify_all();
                let Some(member) = state.members.get(&receiver).cloned() else { continue };
                drop(state);
                if up {
                    member.sink.on_up(presence);
                } else {
                    member.sink.on_down(presence);
                }
                // Before the lock: this may be the last reference, and dropping it may drop a link.
                drop(member);
                state = self.lock();
            } else {
                state = self.wait(state, next);
            }
        }
    }

    /// Delivers the inbound frames of one lane of one link.
    fn receive(&self, id: u64, lane: Lane) {
        let mut state = self.lock();
        while let Some(member) = state.members.get(&id).cloned() {
            let now = Instant::now();
            // The frame that is due first, so that no sender starves another.
            let first = state
                .queues
                .iter()
                .filter(|((_, to, of), _)| *to == id && *of == lane_index(lane))
                .filter(|((from, ..), _)| !state.is_cut(*from, id))
                .filter_map(|(&way, queue)| queue.front().map(|(due, _)| (*due, way)))
                .min();
            match first {
                Some((due, way)) if due <= now => {
                    let from = state.members.get(&way.0).map(|sender| sender.presence.host);
                    let frame = state.queues.get_mut(&way).and_then(VecDeque::pop_front);
                    drop(state);
                    self.changed.notify_all();
                    if let (Some(from), Some((_, frame))) = (from, frame) {
                        member.sink.on_frame(lane, from, &frame);
                    }
                    drop(member);
                    state = self.lock();
                }
                later => state = self.wait(state, later.map(|(due, _)| due)),
            }
        }
    }
}

impl State {
    fn is_connected(&self, a: u64, b: u64) -> bool {
        self.connected.contains_key(&(a.min(b), a.max(b)))
    }

    fn cut_since(&self, from: u64, to: u64) -> Option<Instant> {
        let hosts = (self.members.get(&from)?.presence.host, self.members.get(&to)?.presence.host);
        self.cuts.get(&hosts).copied()
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        self.cut_since(from, to).is_some()
    }

    /// Connects and disconnects pairs; returns when the next lease is over.
    fn connect_and_disconnect(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for (a, b) in self.connected.keys().copied().collect::<Vec<_>>() {
            let gone = !self.members.contains_key(&a) || !self.members.contains_key(&b);
            let cut = [self.cut_since(a, b), self.cut_since(b, a)].into_iter().flatten().min();
            let ends = cut.map(|since| since + self.lease);
            if gone || ends.is_some_and(|ends| ends <= now) {
                self.disconnect((a, b));
            } else if let Some(ends) = ends {
                next = Some(next.map_or(ends, |next| next.min(ends)));
            }
        }
        let members: Vec<(u64, Presence)> =
            self.members.iter().map(|(&id, member)| (id, member.presence)).collect();
        for (place, &(a, ours)) in members.iter().enumerate() {
            for &(b, theirs) in &members[place + 1..] {
                let cut = self.is_cut(a, b) || self.is_cut(b, a);
                // Links of one host are not connected.
                if ours.host != theirs.host && !cut && !self.is_connected(a, b) {
                    self.connected.insert((a, b), (ours, theirs));
                    self.notices.extend([(a, theirs, true), (b, ours, true)]);
                }
            }
        }
        next
    }

    /// Ends a connection, and notifies the links that are still present.
    fn disconnect(&mut self, (a, b): (u64, u64)) {
        let Some((ours, theirs)) = self.connected.remove(&(a, b)) else { return };
        self.queues.retain(|&(from, to, _), _| (from, to) != (a, b) && (from, to) != (b, a));
        // A link that has left is not notified.
        self.notices.extend([(a, theirs, false), (b, ours, false)]);
    }
}

fn lane_index(lane: Lane) -> u8 {
    match lane {
        Lane::Urgent => 0,
        Lane::Bulk => 1,
    }
}
