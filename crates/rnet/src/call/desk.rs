//! A server at work: the calls that it has, and its threads, which take turns in reading requests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::{CancelReason, Result};
use rnet_node::sync::lock;
use rnet_shm::clock;
use rnet_shm::random::next_id;
use rnet_shm::ring::fail_point;

use super::arrivals::{Arrivals, Early};
use super::intake::{Found, Intake, Told};
use super::numbers::ByNumber;
use super::peer::Peer;
use super::service_stats::{End, ServiceStats};
use super::settings::DeskSettings;
use super::{Bytes, Key, Topics, service_name};
use crate::call::service::{CallContext, HandlerError};
use crate::{MessageType, Node, Publisher, PublisherOptions, WaitSetHandle};

/// Callers that one server has at a time: as many as a subscription has publishers.
const MAX_CALLERS: usize = rnet_core::limits::MAX_PUBLISHERS_PER_SUBSCRIPTION;
/// How long a handler runs before another thread reads requests in place of its own, which was the one that read:
/// short handlers cost no change of threads.
const GRACE: Duration = Duration::from_millis(2);
/// How often the ends of new callers are looked for, beside when they are said to be there.
const LOOK: Duration = Duration::from_millis(20);
/// How long a thread looks every [`GRACE`] whether it has to read, after the last request.
const WATCHFUL: Duration = Duration::from_millis(100);

/// How a handler ended.
pub enum Outcome {
    Returned,
    /// Its caller was told, by [`Call::answer`].
    Answered(End),
    /// With the result of a goal, encoded.
    Reached(Vec<u8>),
    Failed(HandlerError),
    /// With the word of a worker about its job, which stands although the worker closes: the job would be done twice.
    Settled(Result<(), HandlerError>),
    /// Nobody has seen the request, because the server closes.
    Unseen,
}

/// Runs the handler.
pub type Run = Box<dyn Fn(&mut Call) -> Outcome + Send + Sync>;

#[derive(Default)]
struct Book {
    /// Whether a thread reads requests.
    leading: bool,
    /// Since when none does, and when the last request was taken, CLOCK_MONOTONIC in ns.
    left_ns: u64,
    asked_ns: u64,
    /// Whether a thread waits until it is told.
    asleep: bool,
    closed: bool,
    waiting: VecDeque<Call>,
    /// Those whose handler has not returned.
    running: Vec<CallContext>,
    /// By the ids of the clients; two of different nodes may have the same.
    peers: ByNumber<Vec<Arc<Peer>>>,
    stats: ServiceStats,
}

impl Book {
    fn peer(&self, node: &str, client: u32) -> Option<&Arc<Peer>> {
        self.peers.get(&client)?.iter().find(|peer| peer.node() == node)
    }

    /// Handlers that may begin, of so many. One whose caller was told is done, though its thread may not have said so.
    fn free(&self, at_once: usize) -> usize {
        let free = at_once.saturating_sub(self.running.len());
        free + self.running.iter().filter(|running| running.has_ended()).count()
    }

    /// It runs no more.
    fn leave(&mut self, call: &Call) {
        self.running.retain(|running| !call.is(running));
    }

    /// Cancels all calls. Returns those that waited, which are to be ended without the lock.
    fn stop_all(&mut self, reason: CancelReason) -> VecDeque<Call> {
        let waiting = std::mem::take(&mut self.waiting);
        let waited = waiting.iter().map(|call| (&call.peer, call.number));
        let running = self.running.iter().map(|running| (&running.peer, running.number));
        waited.chain(running).for_each(|(peer, number)| peer.cancel(number, reason, true));
        waiting
    }
}

/// What the thread that reads has to itself. It is the threads': with the last of them a server that is closed is gone
/// for its callers, whoever still holds it.
struct Door {
    intake: Intake,
    arrivals: Arrivals<Peer>,
    /// When the ends of these were looked for last.
    looked: Instant,
    /// They say of which types replies and feedback are, for tools. Nothing is sent by them.
    _announced: Vec<Publisher<[u8]>>,
}

pub struct Desk {
    node: Node,
    settings: DeskSettings,
    types: (MessageType, MessageType),
    reading: WaitSetHandle,
    /// Whether the ends of a new caller may have come.
    matched: Arc<AtomicBool>,
    book: Mutex<Book>,
    bell: Condvar,
    run: Run,
}

impl Desk {
    pub fn open(
        node: &Node,
        mut settings: DeskSettings,
        types: (MessageType, MessageType),
        run: Run,
    ) -> Result<(Arc<Desk>, Vec<JoinHandle<()>>)> {
        node.core().state.check_fork()?;
        if !settings.is_final {
            settings.name = service_name(node, &settings.name)?.into();
        }
        settings.check()?;
        let topics = Topics::of_server(&settings.name, next_id());
        // Ahead of the requests: who finds a server knows what it answers.
        let announce = |topic: String, ty: &MessageType| {
            node.publisher_with::<[u8]>(&topic, PublisherOptions::new().message_type(ty.clone()))
        };
        let mut announced = vec![announce(topics.reply_type(), &types.1)?];
        if let Some(feedback) = &settings.feedback {
            announced.push(announce(topics.feedback(), feedback)?);
        }
        let intake = Intake::open(node, &topics, &types.0)?;
        let reading = intake.handle();
        let (arrivals, looked) = (Arrivals::new(), Instant::now());
        let door = Arc::new(Mutex::new(Door { intake, arrivals, looked, _announced: announced }));
        let desk = Arc::new(Desk {
            node: node.clone(),
            types,
            reading,
            matched: Arc::default(),
            book: Mutex::default(),
            bell: Condvar::new(),
            run,
            settings,
        });
        // One more than handlers: while all of these run, it reads what is cancelled and refuses.
        let mut threads = Vec::new();
        for _ in 0..=desk.settings.at_once {
            let (this, door) = (desk.clone(), door.clone());
            match rnet_shm::thread::spawn("rnet-service", move || {
                this.node.core().state.errors.attach_thread();
                this.work(&door);
                // Of the last thread: with the door, the server is gone for its callers.
                if let Some(door) = Arc::into_inner(door) {
                    this.refuse_the_rest(door.into_inner().unwrap_or_else(PoisonError::into_inner));
                }
            }) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    desk.close();
                    return Err(error);
                }
            }
        }
        Ok((desk, threads))
    }

    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Whether a thread of it goes on until the last handler has returned.
    pub fn hands_back(&self) -> bool {
        self.settings.hands_back
    }

    pub fn check_fork(&self) -> Result<()> {
        self.node.core().state.check_fork()
    }

    pub fn is_from_parent(&self) -> bool {
        self.node.core().state.fork_guard().is_from_parent()
    }

    pub fn stats(&self) -> ServiceStats {
        if self.is_from_parent() {
            return ServiceStats::default();
        }
        let book = lock(&self.book);
        let (running, waiting) = (book.running.len(), book.waiting.len());
        ServiceStats { running, waiting, ..book.stats }
    }

    /// Has all threads end once their handlers have.
    pub fn close(&self) {
        let mut book = lock(&self.book);
        book.closed = true;
        book.peers.values().flatten().for_each(|peer| peer.cancel_all(CancelReason::ServerClosing));
        let waiting = std::mem::take(&mut book.waiting);
        self.bell.notify_all();
        drop(book);
        if self.settings.hands_back {
            waiting.iter().for_each(|call| {
                let end = call.peer.hand_back(call.number);
                lock(&self.book).stats.count(&end);
            });
        }
        drop(waiting);
        self.reading.interrupt();
    }

    /// Refuses what has come since the last look, before its callers find that the server is gone.
    fn refuse_the_rest(&self, door: Door) {
        let Door { mut intake, mut arrivals, mut looked, _announced } = door;
        let told = intake.all();
        self.take_in(&intake, &mut arrivals, &mut looked, told);
    }

    /// Whether a thread is wanted still. Of a server that hands back, one reads and refuses until the last handler has
    /// returned: what comes meanwhile would lie for as long as that takes.
    fn goes_on(&self, book: &Book) -> bool {
        !book.closed || self.settings.hands_back && !book.leading && !book.running.is_empty()
    }

    /// What each thread does: run a handler if one is wanted, else read requests if nobody does, else wait.
    fn work(&self, door: &Mutex<Door>) {
        let mut book = lock(&self.book);
        while self.goes_on(&book) {
            let free = book.running.len() < self.settings.at_once;
            let next = if free { book.waiting.pop_front() } else { None };
            if let Some(call) = next {
                book.running.push(call.context());
                book = self.serve(book, call, false);
                continue;
            }
            if !book.leading && (free || since(book.left_ns) >= GRACE) {
                book.leading = true;
                drop(book);
                let at_once;
                (book, at_once) = self.read(door);
                book.leading = false;
                match at_once {
                    Some(call) => book = self.serve(book, call, true),
                    None => book.left_ns = clock::now_ns(),
                }
                continue;
            }
            let watchful = since(book.asked_ns) < WATCHFUL;
            book = if watchful || !book.leading {
                let waited = self.bell.wait_timeout(book, GRACE);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else {
                book.asleep = true;
                let mut book = self.bell.wait(book).unwrap_or_else(PoisonError::into_inner);
                book.asleep = false;
                book
            };
        }
    }

    /// Runs the handler of a call that is among those that run. One that has just been read was not cancelled yet.
    #[inline(never)] // Likewise.
    fn serve<'a>(
        &'a self,
        book: MutexGuard<'a, Book>,
        mut call: Call,
        just_read: bool,
    ) -> MutexGuard<'a, Book> {
        // With one handler, another thread reads after a while by itself.
        if !book.leading && (self.settings.at_once > 1 || book.asleep) {
            self.bell.notify_one();
        }
        drop(book);
        let outcome = (just_read || !call.is_cancelled()).then(|| (self.run)(&mut call));
        let end = match outcome {
            Some(Outcome::Answered(end)) => end,
            outcome => {
                // Before its caller is told: who looks then sees that it runs no more.
                lock(&self.book).leave(&call);
                match outcome {
                    Some(outcome) => call.peer.finish(call.number, outcome),
                    None if self.settings.hands_back => call.peer.hand_back(call.number),
                    None => call.peer.end_cancelled(call.number),
                }
            }
        };
        let mut book = lock(&self.book);
        book.leave(&call);
        book.stats.count(&end);
        // The thread that reads ends with the last handler.
        if book.closed && book.running.is_empty() {
            self.reading.interrupt();
        }
        book
    }

    /// Waits for requests, and takes in what has come. A call that can begin at once is returned, and is among those
    /// that run.
    fn read(&self, door: &Mutex<Door>) -> (MutexGuard<'_, Book>, Option<Call>) {
        let mut door = lock(door);
        let Door { intake, arrivals, looked, .. } = &mut *door;
        let found = intake.wait((!arrivals.is_empty()).then_some(LOOK));
        if arrivals.is_empty()
            && !self.settings.replaces
            && let Some((book, call)) = self.take_one(intake, found)
        {
            return (book, Some(call));
        }
        let told = intake.all();
        self.take_in(intake, arrivals, looked, told);
        (lock(&self.book), None)
    }

    /// Takes a request in whose handler can begin at once. What is more is left for the next look.
    #[inline(never)] // Its instructions are counted: crates/rnet/benches/instructions.rs.
    fn take_one(&self, intake: &mut Intake, found: Found) -> Option<(MutexGuard<'_, Book>, Call)> {
        intake.one(found, |sample, id| {
            let mut book = lock(&self.book);
            let may_begin = !book.closed
                && book.waiting.is_empty()
                && book.running.len() < self.settings.at_once;
            let peer = book.peer(sample.node(), id.client).filter(|_| may_begin)?.clone();
            if !peer.begin(id.number) {
                return None;
            }
            book.asked_ns = sample.taken_ns();
            book.left_ns = book.asked_ns;
            book.stats.calls += 1;
            let call = Call { number: id.number, peer, request: Bytes::copy_of(sample) };
            book.running.push(call.context());
            fail_point!("call.begun");
            Some((book, call))
        })
    }

    fn take_in(
        &self,
        intake: &Intake,
        arrivals: &mut Arrivals<Peer>,
        looked: &mut Instant,
        told: Vec<Told>,
    ) {
        if lock(&self.book).closed && !self.settings.hands_back {
            return;
        }
        for one in told {
            match one {
                Told::Request { caller, id, publisher, bytes } => {
                    self.take(arrivals, (caller, id.client), id.number, publisher, bytes);
                }
                Told::Cancel { caller, id, reason, awaited } => {
                    let caller = (caller, id.client);
                    let dropped = arrivals.cancel(&caller, id.number, reason, awaited);
                    lock(&self.book).stats.cancelled += u64::from(dropped);
                    self.cancel(&caller, id.number, reason, awaited);
                }
                // Services have no goals.
                Told::StopAll if self.settings.feedback.is_some() => {
                    arrivals.cancel_all(CancelReason::Operator);
                    let waited = lock(&self.book).stop_all(CancelReason::Operator);
                    waited.iter().for_each(|call| self.end_cancelled(call));
                }
                Told::Malformed | Told::StopAll => lock(&self.book).stats.malformed += 1,
                Told::Left => self.forget_gone(intake, arrivals),
                // A server that closes ends the connections itself, and its handlers still answer over them.
                Told::Closed(_) if lock(&self.book).closed => {}
                Told::Closed(publishers) => self.forget(arrivals, |of| publishers.contains(&of)),
            }
        }
        if arrivals.any_unsought() {
            self.seek(intake, arrivals);
        }
        // Not for each of a flood of requests.
        let soon = || self.matched.swap(false, Ordering::AcqRel) || looked.elapsed() >= LOOK;
        if !arrivals.is_empty() && soon() {
            *looked = Instant::now();
            self.meet(arrivals);
        }
    }

    /// A call that waits ends at once.
    fn cancel(&self, caller: &Key, number: u32, reason: CancelReason, awaited: bool) {
        let mut book = lock(&self.book);
        let Some(peer) = book.peer(&caller.0, caller.1).cloned() else { return };
        peer.cancel(number, reason, awaited);
        let context = CallContext { peer, number };
        let at = book.waiting.iter().position(|call| call.is(&context));
        let Some(call) = at.and_then(|at| book.waiting.remove(at)) else { return };
        drop(book);
        self.end_cancelled(&call);
    }

    fn end_cancelled(&self, call: &Call) {
        let end = call.peer.end_cancelled(call.number);
        lock(&self.book).stats.count(&end);
    }

    fn take(
        &self,
        arrivals: &mut Arrivals<Peer>,
        caller: Key,
        number: u32,
        publisher: u64,
        bytes: Bytes,
    ) {
        let known = lock(&self.book).peer(&caller.0, caller.1).cloned();
        match known {
            Some(peer) => self.admit(peer, number, Some(bytes)),
            None => {
                let most = self.settings.backlog + self.settings.at_once;
                let kept = arrivals.keep(caller, publisher, number, bytes, most);
                lock(&self.book).stats.unanswerable += u64::from(!kept);
            }
        }
    }

    /// Admits new callers whose ends are there, and gives those up whose ends did not come.
    fn meet(&self, arrivals: &mut Arrivals<Peer>) {
        let hears =
            |peer: &Peer, requests: &[Early]| peer.hears(requests.iter().map(|early| early.number));
        for (peer, requests) in arrivals.found(hears) {
            let peer = Arc::new(peer);
            lock(&self.book).peers.entry(peer.client()).or_default().push(peer.clone());
            for Early { number, request, cancelled } in requests {
                match cancelled {
                    None => self.admit(peer.clone(), number, request),
                    Some(reason) if peer.begin(number) => {
                        peer.cancel(number, reason, true);
                        let call = Call { number, peer: peer.clone(), request: Bytes::default() };
                        self.end_cancelled(&call);
                    }
                    Some(_) => lock(&self.book).stats.malformed += 1,
                }
            }
        }
        let unanswerable = arrivals.give_up();
        lock(&self.book).stats.unanswerable += unanswerable;
    }

    /// Looks for the ends of callers that are new.
    fn seek(&self, intake: &Intake, arrivals: &mut Arrivals<Peer>) {
        let known = || lock(&self.book).peers.values().flatten().count();
        if known() + arrivals.sought() >= MAX_CALLERS {
            self.forget_gone(intake, arrivals);
        }
        // One that is looked for in vain keeps nobody out.
        if known() + arrivals.sought() >= MAX_CALLERS {
            let unanswerable = arrivals.give_up_first();
            lock(&self.book).stats.unanswerable += unanswerable;
        }
        let mut room = MAX_CALLERS.saturating_sub(known() + arrivals.sought());
        // Where there is none nobody can be told: no publisher leads to that caller.
        let unsent = arrivals.seek(|key, publisher| {
            room = room.checked_sub(1)?;
            let types = (&self.types.1, self.settings.feedback.as_ref());
            let peer = Peer::open(&self.node, self.name(), key, publisher, types).ok()?;
            let (reading, matched) = (self.reading.clone(), self.matched.clone());
            peer.on_match(move || {
                matched.store(true, Ordering::Release);
                reading.interrupt();
            });
            Some(peer)
        });
        lock(&self.book).stats.unsent += unsent;
    }

    /// `None` is a request that is to be refused.
    fn admit(&self, peer: Arc<Peer>, number: u32, request: Option<Bytes>) {
        let mut book = lock(&self.book);
        if !peer.begin(number) {
            book.stats.malformed += 1;
            return;
        }
        book.asked_ns = clock::now_ns();
        let mut preempted = VecDeque::new();
        if self.settings.replaces && request.is_some() {
            preempted = book.stop_all(CancelReason::Preempted);
        }
        // A handler that is free takes it at once.
        let free = book.free(self.settings.at_once);
        let has_room = !book.closed && book.waiting.len() < self.settings.backlog + free;
        let Some(request) = request.filter(|_| has_room) else {
            book.stats.refused += 1;
            if book.closed {
                drop(book);
                peer.hand_back(number);
                return;
            }
            let running = self.settings.feedback.is_some().then(|| {
                let running = book.running.first().map(CallContext::caller);
                running.or(book.waiting.front().map(Call::caller)).unwrap_or_default().to_owned()
            });
            drop(book);
            let backlog = self.settings.backlog as u32;
            peer.refuse(number, backlog, &running.unwrap_or_default());
            return;
        };
        book.stats.calls += 1;
        book.waiting.push_back(Call { number, peer, request });
        drop(book);
        fail_point!("call.taken");
        preempted.iter().for_each(|call| self.end_cancelled(call));
    }

    /// Cancels the calls of callers that are gone.
    fn forget_gone(&self, intake: &Intake, arrivals: &mut Arrivals<Peer>) {
        let there = intake.publishers();
        self.forget(arrivals, |publisher| !there.contains(&publisher));
    }

    fn forget(&self, arrivals: &mut Arrivals<Peer>, is_gone: impl Fn(u64) -> bool) {
        let unanswerable = arrivals.forget_gone(&is_gone);
        let mut book = lock(&self.book);
        book.stats.unanswerable += unanswerable;
        let mut gone = Vec::new();
        for peers in book.peers.values_mut() {
            gone.extend(peers.extract_if(.., |peer| is_gone(peer.publisher)));
        }
        book.peers.retain(|_, peers| !peers.is_empty());
        drop(book);
        gone.iter().for_each(|peer| peer.leave());
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

    fn is(&self, other: &CallContext) -> bool {
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

    /// Whether its handler has heard that it was cancelled.
    pub fn is_cancel_seen(&self) -> bool {
        self.peer.is_cancel_seen(self.number)
    }

    /// As [`Peer::answer`].
    pub fn answer(&mut self, encoded: &[u8]) -> Option<End> {
        self.peer.answer(self.number, encoded)
    }

    pub fn reply(&mut self, encoded: &[u8]) -> Result<()> {
        self.peer.reply(self.number, encoded)
    }

    pub fn feedback(&mut self, encoded: &[u8]) -> Result<()> {
        self.peer.feedback(self.number, encoded)
    }
}
