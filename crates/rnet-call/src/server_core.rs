//! The core of a server: its calls, and its threads, which take turns reading requests.
//! `server_core/cancel.rs` cancels calls.

mod cancel;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::{CancelReason, Result};
use rnet_node::sync::lock;
use rnet_shm::os::clock;
use rnet_shm::os::random::next_id;
use rnet_shm::ring::fail_point;

use super::number_map::NumberMap;
use super::peer::Peer;
use super::request_reader::{CallerEvent, RequestReader, WaitOutcome};
use super::service_stats::{CallEnd, ServiceStats};
use super::settings::ServerSettings;
use super::unmatched_clients::{EarlyRequest, UnmatchedClients};
use super::{Bytes, CallTopics, CallerKey, service_name};
use crate::service::{CallContext, HandlerError};
use rnet_node::{MessageType, NodeHandle, Publisher, WaitSetHandle};

/// Maximum number of callers of one server: the publisher limit of a subscription.
const MAX_CALLERS: usize = rnet_core::limits::MAX_PUBLISHERS_PER_SUBSCRIPTION;
/// How long a handler runs before another thread reads requests in place of its own thread: short handlers
/// need no thread switch.
const TAKEOVER_DELAY: Duration = Duration::from_millis(2);
/// How often the server looks for the endpoints of new callers, besides on match events.
const MATCH_POLL: Duration = Duration::from_millis(20);
/// After the last request, how long a thread checks every [`TAKEOVER_DELAY`] whether it must read.
const READ_POLL_WINDOW: Duration = Duration::from_millis(100);

/// How a handler ended.
pub enum HandlerOutcome {
    Returned,
    /// Its caller was notified by [`Call::answer`].
    Replied(CallEnd),
    /// With the encoded result of a goal.
    GoalResult(Vec<u8>),
    Failed(HandlerError),
    /// With a worker's report about its job, which remains valid although the worker closes: otherwise the
    /// job would be done twice.
    JobResult(Result<(), HandlerError>),
    /// No handler has seen the request, because the server closes.
    NotStarted,
}

/// Runs the handler.
pub type HandlerFn = Box<dyn Fn(&mut Call) -> HandlerOutcome + Send + Sync>;

#[derive(Default)]
struct ServerState {
    /// Whether a thread reads requests.
    has_reader: bool,
    /// Since when no thread reads, and when the last request was received, in ns of CLOCK_MONOTONIC.
    reader_left_ns: u64,
    last_request_ns: u64,
    /// Whether a thread waits to be woken.
    has_idle_thread: bool,
    closed: bool,
    waiting: VecDeque<Call>,
    /// Calls whose handler has not returned.
    running: Vec<CallContext>,
    /// By the ids of the clients; two clients of different nodes may have the same id.
    peers: NumberMap<Vec<Arc<Peer>>>,
    stats: ServiceStats,
}

impl ServerState {
    fn peer(&self, node: &str, client: u32) -> Option<&Arc<Peer>> {
        self.peers.get(&client)?.iter().find(|peer| peer.node() == node)
    }

    /// How many of `at_once` handlers may begin. A call whose caller was notified counts as done, even if its
    /// thread has not recorded it yet.
    fn free_slots(&self, at_once: usize) -> usize {
        let free = at_once.saturating_sub(self.running.len());
        free + self.running.iter().filter(|running| running.has_ended()).count()
    }

    /// Removes the call from the running ones.
    fn remove_running(&mut self, call: &Call) {
        self.running.retain(|running| !call.is_same(running));
    }
}

/// The endpoint that the reading thread owns. The threads share it: when the last one ends, a closed server
/// is gone for its callers, even if its user still holds it.
struct RequestEndpoint {
    reader: RequestReader,
    unmatched: UnmatchedClients<Peer>,
    /// When the endpoints of new callers were last checked.
    last_poll: Instant,
    /// Publishers that declare the types of replies and feedback, for tools. They send nothing.
    _announcers: Vec<Publisher<[u8]>>,
}

pub struct ServerCore {
    node: NodeHandle,
    settings: ServerSettings,
    types: (MessageType, MessageType),
    wait_handle: WaitSetHandle,
    /// Whether the endpoints of a new caller may have matched.
    matched: Arc<AtomicBool>,
    state: Mutex<ServerState>,
    condvar: Condvar,
    handler: HandlerFn,
}

impl ServerCore {
    pub fn open(
        node: &NodeHandle,
        mut settings: ServerSettings,
        types: (MessageType, MessageType),
        handler: HandlerFn,
    ) -> Result<(Arc<ServerCore>, Vec<JoinHandle<()>>)> {
        node.core.state.check_fork()?;
        if !settings.is_final {
            settings.name = service_name(node, &settings.name)?.into();
        }
        settings.check()?;
        let topics = CallTopics::of_server(&settings.name, next_id());
        // Before the requests: a client that finds the server must know the types of its answers.
        let announce = |topic: String, ty: &MessageType| {
            node.publisher::<[u8]>(&topic).message_type(ty.clone()).open()
        };
        let mut announcers = vec![announce(topics.reply_type(), &types.1)?];
        if let Some(feedback) = &settings.feedback {
            announcers.push(announce(topics.feedback(), feedback)?);
        }
        let reader = RequestReader::open(node, &topics, &types.0)?;
        let wait_handle = reader.handle();
        let (unmatched, last_poll) = (UnmatchedClients::new(), Instant::now());
        let endpoint = RequestEndpoint { reader, unmatched, last_poll, _announcers: announcers };
        let endpoint = Arc::new(Mutex::new(endpoint));
        let core = Arc::new(ServerCore {
            node: node.clone(),
            types,
            wait_handle,
            matched: Arc::default(),
            state: Mutex::default(),
            condvar: Condvar::new(),
            handler,
            settings,
        });
        // One more than the handlers: while all handlers run, it reads cancels and refuses requests.
        let mut threads = Vec::new();
        for _ in 0..=core.settings.at_once {
            let (this, endpoint) = (core.clone(), endpoint.clone());
            match rnet_shm::os::thread::spawn("rnet-service", move || {
                this.node.core.state.errors.attach_thread();
                this.run_worker(&endpoint);
                // In the last thread: when the endpoint is dropped, the server is gone for its callers.
                if let Some(endpoint) = Arc::into_inner(endpoint) {
                    this.refuse_rest(endpoint.into_inner().unwrap_or_else(PoisonError::into_inner));
                }
            }) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    core.close();
                    return Err(error);
                }
            }
        }
        Ok((core, threads))
    }

    pub fn name(&self) -> &str {
        &self.settings.name
    }

    pub fn check_fork(&self) -> Result<()> {
        self.node.core.state.check_fork()
    }

    pub fn is_from_parent(&self) -> bool {
        self.node.core.state.fork_guard().is_from_parent()
    }

    pub fn stats(&self) -> ServiceStats {
        if self.is_from_parent() {
            return ServiceStats::default();
        }
        let state = lock(&self.state);
        let (running, waiting) = (state.running.len(), state.waiting.len());
        ServiceStats { running, waiting, ..state.stats }
    }

    /// Stops each thread once its handler has returned.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.peers.values().flatten().for_each(|one| one.cancel_all(CancelReason::ServerClosing));
        let waiting = std::mem::take(&mut state.waiting);
        self.condvar.notify_all();
        drop(state);
        if self.settings.requeues {
            waiting.iter().for_each(|call| {
                let end = call.peer.requeue(call.number);
                lock(&self.state).stats.count(&end);
            });
        }
        drop(waiting);
        self.wait_handle.interrupt();
    }

    /// Refuses requests that arrived since the last read, before callers see that the server is gone.
    fn refuse_rest(&self, endpoint: RequestEndpoint) {
        let RequestEndpoint { mut reader, mut unmatched, mut last_poll, _announcers } = endpoint;
        let events = reader.drain();
        self.handle_events(&reader, &mut unmatched, &mut last_poll, events);
    }

    /// Whether a thread is still needed. For a server that requeues, one thread reads and refuses until the
    /// last handler has returned: otherwise new requests would wait that long.
    fn should_run(&self, state: &ServerState) -> bool {
        !state.closed || self.settings.requeues && !state.has_reader && !state.running.is_empty()
    }

    /// The loop of each thread: run a handler if a call waits, else read if no thread does, else wait.
    fn run_worker(&self, endpoint: &Mutex<RequestEndpoint>) {
        let mut state = lock(&self.state);
        while self.should_run(&state) {
            let free = state.running.len() < self.settings.at_once;
            let next = if free { state.waiting.pop_front() } else { None };
            if let Some(call) = next {
                state.running.push(call.context());
                state = self.run_call(state, call, false);
                continue;
            }
            if !state.has_reader && (free || since(state.reader_left_ns) >= TAKEOVER_DELAY) {
                state.has_reader = true;
                drop(state);
                let at_once;
                (state, at_once) = self.read(endpoint);
                state.has_reader = false;
                match at_once {
                    Some(call) => state = self.run_call(state, call, true),
                    None => state.reader_left_ns = clock::now_ns(),
                }
                continue;
            }
            let polls = since(state.last_request_ns) < READ_POLL_WINDOW;
            state = if polls || !state.has_reader {
                let waited = self.condvar.wait_timeout(state, TAKEOVER_DELAY);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                state.has_idle_thread = true;
                let mut state = self.condvar.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.has_idle_thread = false;
                state
            };
        }
    }

    /// Runs the handler of a call that is listed as running. A call just read is not cancelled yet.
    #[inline(never)] // Likewise.
    fn run_call<'a>(
        &'a self,
        state: MutexGuard<'a, ServerState>,
        mut call: Call,
        just_read: bool,
    ) -> MutexGuard<'a, ServerState> {
        // With one handler, another thread takes over reading after a delay.
        if !state.has_reader && (self.settings.at_once > 1 || state.has_idle_thread) {
            self.condvar.notify_one();
        }
        drop(state);
        let outcome = (just_read || !call.is_cancelled()).then(|| (self.handler)(&mut call));
        let end = match outcome {
            Some(HandlerOutcome::Replied(end)) => end,
            outcome => {
                // Before its caller is notified: the caller must then see that it no longer runs.
                lock(&self.state).remove_running(&call);
                match outcome {
                    Some(outcome) => call.peer.finish(call.number, outcome),
                    None if self.settings.requeues => call.peer.requeue(call.number),
                    None => call.peer.end_cancelled(call.number),
                }
            }
        };
        let mut state = lock(&self.state);
        state.remove_running(&call);
        state.stats.count(&end);
        // The reading thread ends with the last handler.
        if state.closed && state.running.is_empty() {
            self.wait_handle.interrupt();
        }
        state
    }

    /// Waits for requests, and receives them. Returns a call that can begin at once, already listed as
    /// running.
    fn read(&self, from: &Mutex<RequestEndpoint>) -> (MutexGuard<'_, ServerState>, Option<Call>) {
        let mut endpoint = lock(from);
        let RequestEndpoint { reader, unmatched, last_poll, .. } = &mut *endpoint;
        let found = reader.wait((!unmatched.is_empty()).then_some(MATCH_POLL));
        if unmatched.is_empty()
            && !self.settings.replaces
            && let Some((state, call)) = self.take_next_request(reader, found)
        {
            return (state, Some(call));
        }
        let events = reader.drain();
        self.handle_events(reader, unmatched, last_poll, events);
        (lock(&self.state), None)
    }

    /// Receives a request whose handler can begin at once. The rest remains for the next read.
    #[inline(never)] // Its instructions are counted: crates/rnet/benches/instructions.rs.
    fn take_next_request(
        &self,
        reader: &mut RequestReader,
        found: WaitOutcome,
    ) -> Option<(MutexGuard<'_, ServerState>, Call)> {
        reader.take_request(found, |sample, id| {
            let mut state = lock(&self.state);
            let may_begin = !state.closed
                && state.waiting.is_empty()
                && state.running.len() < self.settings.at_once;
            let peer = state.peer(sample.node(), id.client).filter(|_| may_begin)?.clone();
            if !peer.begin(id.number) {
                return None;
            }
            state.last_request_ns = sample.taken_ns();
            state.reader_left_ns = state.last_request_ns;
            state.stats.calls += 1;
            let call = Call { number: id.number, peer, request: Bytes::copy_of(sample) };
            state.running.push(call.context());
            fail_point!("call.begun");
            Some((state, call))
        })
    }

    fn handle_events(
        &self,
        reader: &RequestReader,
        unmatched: &mut UnmatchedClients<Peer>,
        last_poll: &mut Instant,
        events: Vec<CallerEvent>,
    ) {
        if lock(&self.state).closed && !self.settings.requeues {
            return;
        }
        for event in events {
            match event {
                CallerEvent::Request { caller, id, publisher, bytes } => {
                    self.accept(unmatched, (caller, id.client), id.number, publisher, bytes);
                }
                CallerEvent::Cancel { caller, id, reason, caller_waits } => {
                    let caller = (caller, id.client);
                    let dropped = unmatched.cancel(&caller, id.number, reason, caller_waits);
                    lock(&self.state).stats.cancelled += u64::from(dropped);
                    self.cancel(&caller, id.number, reason, caller_waits);
                }
                // Services have no goals.
                CallerEvent::StopAll if self.settings.feedback.is_some() => {
                    unmatched.cancel_all(CancelReason::Operator);
                    let waited = lock(&self.state).cancel_all(CancelReason::Operator);
                    waited.iter().for_each(|call| self.end_cancelled(call));
                }
                CallerEvent::Malformed | CallerEvent::StopAll => {
                    lock(&self.state).stats.malformed += 1
                }
                CallerEvent::Lost => self.drop_gone_callers(reader, unmatched),
                // A closing server ends the connections itself, and its handlers still answer over them.
                CallerEvent::Closed(_) if lock(&self.state).closed => {}
                CallerEvent::Closed(publishers) => {
                    self.drop_callers(unmatched, |of| publishers.contains(&of))
                }
            }
        }
        if unmatched.has_client_to_match() {
            self.open_peers(reader, unmatched);
        }
        // Not for each of a flood of requests.
        let soon =
            || self.matched.swap(false, Ordering::AcqRel) || last_poll.elapsed() >= MATCH_POLL;
        if !unmatched.is_empty() && soon() {
            *last_poll = Instant::now();
            self.admit_matched_callers(unmatched);
        }
    }

    fn accept(
        &self,
        unmatched: &mut UnmatchedClients<Peer>,
        caller: CallerKey,
        number: u32,
        publisher: u64,
        bytes: Bytes,
    ) {
        let known = lock(&self.state).peer(&caller.0, caller.1).cloned();
        match known {
            Some(peer) => self.admit(peer, number, Some(bytes)),
            None => {
                let most = self.settings.backlog + self.settings.at_once;
                let queued = unmatched.enqueue(caller, publisher, number, bytes, most);
                lock(&self.state).stats.unanswerable += u64::from(!queued);
            }
        }
    }

    /// Admits new callers whose endpoints have matched, and drops those not matched in time.
    fn admit_matched_callers(&self, unmatched: &mut UnmatchedClients<Peer>) {
        let hears = |peer: &Peer, requests: &[EarlyRequest]| {
            peer.can_receive(requests.iter().map(|early| early.number))
        };
        for (peer, requests) in unmatched.take_matched(hears) {
            let peer = Arc::new(peer);
            lock(&self.state).peers.entry(peer.client()).or_default().push(peer.clone());
            for EarlyRequest { number, request, cancelled } in requests {
                match cancelled {
                    None => self.admit(peer.clone(), number, request),
                    Some(reason) if peer.begin(number) => {
                        peer.cancel(number, reason, true);
                        let call = Call { number, peer: peer.clone(), request: Bytes::default() };
                        self.end_cancelled(&call);
                    }
                    Some(_) => lock(&self.state).stats.malformed += 1,
                }
            }
        }
        let unanswerable = unmatched.drop_timed_out();
        lock(&self.state).stats.unanswerable += unanswerable;
    }

    /// Opens the publishers to new callers.
    fn open_peers(&self, reader: &RequestReader, unmatched: &mut UnmatchedClients<Peer>) {
        let known = || lock(&self.state).peers.values().flatten().count();
        if known() + unmatched.matching() >= MAX_CALLERS {
            self.drop_gone_callers(reader, unmatched);
        }
        // A client that cannot be matched must not keep out others.
        if known() + unmatched.matching() >= MAX_CALLERS {
            let unanswerable = unmatched.drop_oldest();
            lock(&self.state).stats.unanswerable += unanswerable;
        }
        let mut room = MAX_CALLERS.saturating_sub(known() + unmatched.matching());
        // Without its endpoints, the caller cannot be notified: no publisher leads to it.
        let unsent = unmatched.start_matching(|key, publisher| {
            room = room.checked_sub(1)?;
            let types = (&self.types.1, self.settings.feedback.as_ref());
            let peer = Peer::open(&self.node, self.name(), key, publisher, types).ok()?;
            let (wait_handle, matched) = (self.wait_handle.clone(), self.matched.clone());
            peer.on_match(move || {
                matched.store(true, Ordering::Release);
                wait_handle.interrupt();
            });
            Some(peer)
        });
        lock(&self.state).stats.unsent += unsent;
    }

    /// `None` is a request to be refused.
    fn admit(&self, peer: Arc<Peer>, number: u32, request: Option<Bytes>) {
        let mut state = lock(&self.state);
        if !peer.begin(number) {
            state.stats.malformed += 1;
            return;
        }
        state.last_request_ns = clock::now_ns();
        let mut preempted = VecDeque::new();
        if self.settings.replaces && request.is_some() {
            preempted = state.cancel_all(CancelReason::Preempted);
        }
        // A free handler starts it at once.
        let free = state.free_slots(self.settings.at_once);
        let has_room = !state.closed && state.waiting.len() < self.settings.backlog + free;
        let Some(request) = request.filter(|_| has_room) else {
            state.stats.refused += 1;
            if state.closed {
                drop(state);
                peer.requeue(number);
                return;
            }
            let running = self.settings.feedback.is_some().then(|| {
                let running = state.running.first().map(CallContext::caller);
                running.or(state.waiting.front().map(Call::caller)).unwrap_or_default().to_owned()
            });
            drop(state);
            let backlog = self.settings.backlog as u32;
            peer.refuse(number, backlog, &running.unwrap_or_default());
            return;
        };
        state.stats.calls += 1;
        state.waiting.push_back(Call { number, peer, request });
        drop(state);
        fail_point!("call.queued");
        preempted.iter().for_each(|call| self.end_cancelled(call));
    }

    /// Cancels the calls of callers that are gone.
    fn drop_gone_callers(&self, reader: &RequestReader, unmatched: &mut UnmatchedClients<Peer>) {
        let there = reader.publishers();
        self.drop_callers(unmatched, |publisher| !there.contains(&publisher));
    }

    fn drop_callers(&self, unmatched: &mut UnmatchedClients<Peer>, is_gone: impl Fn(u64) -> bool) {
        let unanswerable = unmatched.drop_gone(&is_gone);
        let mut state = lock(&self.state);
        state.stats.unanswerable += unanswerable;
        let mut gone = Vec::new();
        for peers in state.peers.values_mut() {
            gone.extend(peers.extract_if(.., |peer| is_gone(peer.publisher)));
        }
        state.peers.retain(|_, peers| !peers.is_empty());
        drop(state);
        gone.iter().for_each(|peer| peer.on_caller_gone());
    }
}

fn since(ns: u64) -> Duration {
    Duration::from_nanos(clock::now_ns().saturating_sub(ns))
}

/// A call at its server.
pub struct Call {
    number: u32,
    peer: Arc<Peer>,
    request: Bytes,
}

impl Call {
    pub fn service(&self) -> &str {
        self.peer.service()
    }

    pub fn caller(&self) -> &str {
        self.peer.node()
    }

    fn is_same(&self, other: &CallContext) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.peer, &other.peer)
    }

    pub fn context(&self) -> CallContext {
        CallContext { peer: self.peer.clone(), number: self.number }
    }

    pub fn take_request(&mut self) -> Bytes {
        std::mem::take(&mut self.request)
    }

    pub fn is_cancelled(&self) -> bool {
        self.peer.is_cancelled(self.number)
    }

    /// Whether its handler has seen the cancellation.
    pub fn is_cancel_seen(&self) -> bool {
        self.peer.is_cancel_seen(self.number)
    }

    /// As [`Peer::is_wanted`].
    pub fn is_wanted(&self) -> bool {
        self.peer.is_wanted(self.number)
    }

    /// As [`Peer::answer`].
    pub fn answer(&mut self, encoded: &[u8]) -> Option<CallEnd> {
        self.peer.answer(self.number, encoded)
    }

    pub fn reply(&mut self, encoded: &[u8]) -> Result<()> {
        self.peer.reply(self.number, encoded)
    }

    pub fn feedback(&mut self, encoded: &[u8]) -> Result<()> {
        self.peer.feedback(self.number, encoded)
    }
}
