//! The core of a client: what it receives, and which of its threads reads. The outcome of each call, such as
//! `ServerLost` or another server, is decided in `open_calls.rs` and `open_calls/server_lost.rs`.
//!
//! A thread that waits for an answer reads itself, also for the other waiting threads, so a call needs no
//! thread switch. For async calls, a thread of the client reads while no other thread does
//! (`client_core/poll.rs`).

mod poll;

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::{CancelReason, Error, Result, Wait};
use rnet_node::internal::EngineWaitSet;
use rnet_node::sync;

use super::calls_guard::{CallsGuard, lock};
use super::open_call::{CallOutput, OpenCall};
use super::open_calls::{ClientStats, OpenCalls};
use super::reply_reader::{ReplyReader, has_more};
use super::servers::Server;
use super::{Bytes, CallTopics};
use rnet_node::{
    EndpointEvent, EndpointWatch, Message, MessageType, NodeHandle, Sample, Subscriber, WaitSet,
    WaitSetHandle,
};

/// How often a thread looks for servers for unsent calls and, on a dispatch thread, for lost servers.
const SERVER_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Maximum number of messages per batch.
const MAX_BATCH: usize = 256;
/// Replies received one by one before a full read, which counts losses.
const MAX_SINGLE_REPLIES: u32 = 64;
/// A shorter wait does not start with a spin on replies alone, which takes 50 µs.
const MIN_SPIN_WAIT: Duration = Duration::from_millis(1);

/// The servers that a client calls.
pub enum ServerFilter {
    /// Servers of any host.
    All,
    /// Servers of this other host, and of the client's own host.
    HostAndLocal(String),
    /// Servers of this other host only.
    Host(String),
}

impl ServerFilter {
    /// Whether it includes servers of this host; `None` is the client's own.
    fn includes(&self, host: Option<&str>) -> bool {
        match (self, host) {
            (ServerFilter::All, _) | (ServerFilter::HostAndLocal(_), None) => true,
            (ServerFilter::Host(_), None) => false,
            (ServerFilter::HostAndLocal(only) | ServerFilter::Host(only), Some(host)) => {
                only == host
            }
        }
    }
}

pub struct ClientCore {
    node: NodeHandle,
    request: MessageType,
    reader: Mutex<ReplyReader>,
    wait_handle: WaitSetHandle,
    calls: Mutex<OpenCalls>,
    filter: ServerFilter,
    /// The thread for async calls; started with the first one.
    async_reader: Mutex<Option<JoinHandle<()>>>,
    async_reader_condvar: Condvar,
}

impl ClientCore {
    pub fn open(
        node: &NodeHandle,
        service: &str,
        client: u32,
        (request, reply): (MessageType, MessageType),
        feedback: Option<MessageType>,
        filter: ServerFilter,
    ) -> Result<Arc<ClientCore>> {
        let topics = CallTopics::of_client(service, client);
        let open = |topic: String, ty| {
            let bytes = node.subscriber::<[u8]>(&topic).reliable().wait(Wait::Adaptive);
            bytes.message_type(ty).open()
        };
        let replies = open(topics.reply(), reply)?;
        let feedback = feedback.map(|ty| open(topics.feedback(), ty)).transpose()?;
        let status = node.subscriber(&topics.status()).reliable().wait(Wait::Adaptive).open()?;
        let mut set = WaitSet::adaptive(&node.core);
        // A signal ends the wait of a thread whose user checks for signals.
        set.set_interruptible(true);
        set.expect_replies();
        let wait_handle = set.handle();
        let calls = OpenCalls::new(service, client);
        let (lost, received, unrecorded_arrival, single_replies) = Default::default();
        Ok(Arc::new(ClientCore {
            node: node.clone(),
            request,
            reader: Mutex::new(ReplyReader {
                replies,
                status,
                feedback,
                lost,
                set,
                received,
                unrecorded_arrival,
                single_replies,
            }),
            wait_handle,
            calls: Mutex::new(calls),
            filter,
            async_reader: Mutex::default(),
            async_reader_condvar: Condvar::new(),
        }))
    }

    /// Finds servers until the watch is dropped.
    pub fn watch(self: &Arc<ClientCore>) -> Result<EndpointWatch> {
        let core = Arc::downgrade(self);
        self.node.on_endpoint(move |event| {
            if let Some(core) = core.upgrade() {
                core.on_endpoint_event(event);
            }
        })
    }

    fn on_endpoint_event(self: &Arc<ClientCore>, event: &EndpointEvent) {
        let endpoint = event.endpoint();
        if matches!(endpoint.qos, rnet_node::EndpointQos::Publisher(_)) {
            return;
        }
        if !self.filter.includes(endpoint.proxy.as_ref().map(rnet_core::Proxy::host)) {
            return;
        }
        let service = lock(&self.calls).service.clone();
        let Some(topics) = CallTopics::parse_request_topic_of(&service, &endpoint.topic) else {
            return;
        };
        match event {
            EndpointEvent::Opened(_) => {
                let opened = Server::open(&self.node, endpoint, &topics, &self.request);
                let mut calls = lock(&self.calls);
                match opened {
                    _ if calls.closed => {}
                    Ok(server) => {
                        let core = Arc::downgrade(self);
                        server.on_match(move || {
                            if let Some(core) = core.upgrade() {
                                lock(&core.calls).send_unsent();
                            }
                        });
                        calls.servers.push(Arc::new(server));
                        // The server may have matched before the callback was set.
                        calls.send_unsent();
                    }
                    Err(error) => calls.server_error = Some(error),
                }
            }
            EndpointEvent::Closed(_) | EndpointEvent::Lost(_) => {
                let mut calls = lock(&self.calls);
                let (gone, there) = std::mem::take(&mut calls.servers)
                    .into_iter()
                    .partition(|s| s.id == endpoint.id);
                calls.servers = there;
                calls.gone_servers.push(endpoint.id);
                // Its publishers close without the lock.
                let gone: Vec<Arc<Server>> = gone;
                if !calls.has_reader {
                    calls.wake_one();
                    self.wake_async_reader(&calls);
                }
                drop(calls);
                drop(gone);
                self.wait_handle.interrupt();
            }
            _ => {}
        }
    }

    pub fn is_from_parent(&self) -> bool {
        self.node.core.state.fork_guard().is_from_parent()
    }

    pub fn check_fork(&self) -> Result<()> {
        self.node.core.state.check_fork()
    }

    pub fn stats(&self) -> ClientStats {
        if self.is_from_parent() {
            return ClientStats::default();
        }
        let calls = lock(&self.calls);
        ClientStats { open: calls.by_number.len(), ..calls.stats }
    }

    pub fn server_count(&self) -> usize {
        self.server_count_without(None)
    }

    /// The same without the server with this id.
    pub fn server_count_without(&self, avoided: Option<u64>) -> usize {
        if self.is_from_parent() {
            return 0;
        }
        let calls = lock(&self.calls);
        let servers = calls.servers.iter().filter(|server| Some(server.id) != avoided);
        servers.filter(|server| matches!(server.is_ready(), Ok(true))).count()
    }

    /// Starts a call with this time limit.
    pub fn start(&self, open: OpenCall, wants: u32, after: Option<Duration>) -> u32 {
        lock(&self.calls).start(open, wants, after)
    }

    /// A call with one reply, from start to end.
    pub fn call(
        &self,
        watch: &EndpointWatch,
        request: &[u8],
        after: Duration,
    ) -> Result<Option<Bytes>> {
        let mut calls = lock(&self.calls);
        let number = calls.start_single(request, after);
        let (mut calls, result) =
            self.next_in(calls, watch, (number, CallOutput::Reply), after, None);
        calls.finish(number);
        result
    }

    pub fn has_server(&self) -> bool {
        !lock(&self.calls).servers.is_empty()
    }

    pub fn is_sent(&self, number: u32) -> bool {
        let calls = lock(&self.calls);
        calls.by_number.get(&number).is_some_and(|open| open.server.is_some())
    }

    /// The id of the server that has the call.
    pub fn server_of(&self, number: u32) -> Option<u64> {
        lock(&self.calls).by_number.get(&number)?.server.as_ref().map(|server| server.id)
    }

    /// Ends a call; returns whether it was sent to a server.
    pub fn end(&self, number: u32) -> bool {
        !self.is_from_parent() && lock(&self.calls).end(number)
    }

    /// Stops the thread for async calls, and joins it: it holds the node.
    pub fn close(&self) {
        lock(&self.calls).closed = true;
        self.async_reader_condvar.notify_all();
        self.wait_handle.interrupt();
        // A task that it wakes may close the client.
        let async_reader = sync::lock(&self.async_reader).take();
        sync::join(async_reader);
    }

    fn time_out(calls: &mut OpenCalls, number: u32, after: Duration) {
        let topic = calls.service.clone();
        let server = calls.by_number.get(&number).and_then(|open| open.server.as_ref());
        let what = match server {
            Some(server) => format!("an answer of {topic} from {} on {}", server.node, server.host),
            None if calls.servers.is_empty() => format!("a server of {topic}"),
            None => format!("a server of {topic} that can accept the call"),
        };
        calls.time_out(number, Error::timeout(topic, what, after));
    }

    fn cancelled(calls: &OpenCalls) -> Error {
        Error::Cancelled { topic: calls.service.clone(), reason: CancelReason::Caller }
    }

    /// As [`OpenCalls::cancel_all`].
    ///
    /// # Errors
    /// As [`OpenCalls::cancel_all`].
    pub fn cancel_all(&self) -> Result<usize> {
        self.check_fork()?;
        lock(&self.calls).cancel_all()
    }

    /// As [`OpenCalls::request_cancel`].
    ///
    /// # Errors
    /// As [`OpenCalls::request_cancel`].
    pub fn request_cancel(&self, number: u32) -> Result<()> {
        self.check_fork()?;
        lock(&self.calls).request_cancel(number)
    }

    /// Ends all calls with `Closed`, and those that are started later.
    pub fn end_all(&self) {
        if self.is_from_parent() {
            return;
        }
        let mut calls = lock(&self.calls);
        // Its publishers close without the lock.
        let servers = calls.end_all();
        drop(calls);
        drop(servers);
        self.async_reader_condvar.notify_all();
        self.wait_handle.interrupt();
    }

    /// Cancels a call, and wakes the threads that wait for it.
    pub fn cancel(&self, number: u32) {
        if self.is_from_parent() {
            return;
        }
        let mut calls = lock(&self.calls);
        calls.end(number);
        let has_reader = calls.has_reader;
        drop(calls);
        if has_reader {
            self.wait_handle.interrupt();
        }
    }

    /// The next result of the call; `None` after the last reply. With `pause`, returns `Interrupted` at that
    /// time or on a signal, after a check for available results.
    pub fn next(
        &self,
        watch: &EndpointWatch,
        (number, output): (u32, CallOutput),
        after: Duration,
        pause: Option<Instant>,
    ) -> Result<Option<Bytes>> {
        self.next_in(lock(&self.calls), watch, (number, output), after, pause).1
    }

    fn next_in<'a>(
        &'a self,
        mut calls: CallsGuard<'a>,
        watch: &EndpointWatch,
        (number, output): (u32, CallOutput),
        after: Duration,
        pause: Option<Instant>,
    ) -> (CallsGuard<'a>, Result<Option<Bytes>>) {
        // Whether this thread has read for the others or waited: it may have been woken to read for them.
        let (mut took_part, mut looked) = (false, false);
        let wait = |mut calls: CallsGuard<'a>, until| {
            let Some(condvar) = calls.add_waiter(number) else { return calls };
            let mut calls = calls.wait(&condvar, until);
            calls.remove_waiter(number);
            calls
        };
        let result = loop {
            let Some(open) = calls.by_number.get_mut(&number) else {
                break Err(ClientCore::cancelled(&calls));
            };
            if let Some(next) = open.next(output) {
                break next;
            }
            let (deadline, unsent) = (open.deadline, open.server.is_none());
            // The first pass only checks what is available, which is quick.
            if looked && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                ClientCore::time_out(&mut calls, number, after);
                continue;
            }
            if looked && pause.is_some_and(|pause| pause <= Instant::now()) {
                break Err(Error::Interrupted);
            }
            looked = true;
            let limit = [deadline, pause].into_iter().flatten().min();
            let soon = || {
                let soon = Instant::now() + SERVER_POLL_INTERVAL;
                Some(limit.map_or(soon, |limit| limit.min(soon)))
            };
            if unsent {
                drop(calls);
                watch.run();
                calls = lock(&self.calls);
                calls.send_if_unsent(number);
                let sent = calls
                    .by_number
                    .get(&number)
                    .is_none_or(|o| o.server.is_some() || o.error.is_some());
                if !sent && calls.has_reader {
                    took_part = true;
                    calls = wait(calls, soon());
                    continue;
                }
                if sent {
                    continue;
                }
            }
            if calls.has_reader {
                took_part = true;
                calls = wait(calls, limit);
                continue;
            }
            (calls.has_reader, took_part) = (true, true);
            let blocked = self.node.core.state.is_dispatch_thread();
            let until = if blocked || calls.any_unsent() { soon() } else { limit };
            drop(calls);
            if blocked {
                watch.run();
            }
            let is_long = |pause: Instant| pause > Instant::now() + MIN_SPIN_WAIT;
            let one = output == CallOutput::Reply && !blocked && pause.is_none_or(is_long);
            let interrupted;
            (calls, interrupted) = self.read_answers(until, one);
            calls.has_reader = false;
            // If a result is available, it is returned.
            looked |= interrupted;
            if interrupted && pause.is_some() && !calls.has_next(number, output) {
                break Err(Error::Interrupted);
            }
        };
        if took_part && !calls.has_reader {
            calls.wake_one();
            self.wake_async_reader(&calls);
        }
        (calls, result)
    }

    /// Wakes the thread for async calls, if such calls exist.
    fn wake_async_reader(&self, calls: &OpenCalls) {
        if calls.async_reader_waits && calls.by_number.values().any(|open| open.has_waiting_task())
        {
            self.async_reader_condvar.notify_one();
        }
    }

    /// Receives one reply, if it is the only message. `None`: more or other messages are available.
    #[inline(never)] // Its instructions are counted: crates/rnet/benches/instructions.rs.
    fn take_single_reply(&self, reader: &mut ReplyReader, is_spun: bool) -> Option<CallsGuard<'_>> {
        let ReplyReader {
            replies, status, feedback, lost, unrecorded_arrival, single_replies, ..
        } = &mut *reader;
        if *single_replies >= MAX_SINGLE_REPLIES {
            return None;
        }
        let calls = match replies.try_recv() {
            Ok(sample) => {
                let sample = sample?;
                *unrecorded_arrival = Some((sample.sent_ns(), is_spun.then(|| sample.taken_ns())));
                let word = sample.correlation().unwrap_or(0);
                let mut calls = lock(&self.calls);
                calls.on_reply(sample.node(), word, || Bytes::copy_of(&sample));
                calls
            }
            Err(error) => {
                self.on_read_error(&error);
                return None;
            }
        };
        if lost[0].has_changed(replies) {
            // The loss belongs to the calls that are open now, not to later ones.
            return None;
        }
        *single_replies += 1;
        (calls.gone_servers.is_empty() && !has_more(status, feedback)).then_some(calls)
    }

    /// Waits for answers and receives them, for the thread that has set `has_reader`. With `one`, receives at
    /// most one reply, if it is the only message. Returns whether the wait was interrupted.
    fn read_answers(&self, until: Option<Instant>, one: bool) -> (CallsGuard<'_>, bool) {
        let mut reader = sync::lock(&self.reader);
        reader.record_arrival();
        let is_spun = one && reader.spin_for_reply();
        // An interrupt signals a server that is gone, or a new call.
        let waited = if is_spun { Ok(true) } else { reader.wait(until) };
        if one
            && matches!(waited, Ok(true))
            && let Some(calls) = self.take_single_reply(&mut reader, is_spun)
        {
            return (calls, false);
        }
        reader.record_arrival();
        let interrupted = waited.is_err();
        let ReplyReader { replies, status, feedback, lost, set, received, single_replies, .. } =
            &mut *reader;
        *single_replies = 0;
        // The last answers of these servers are read below.
        let gone = std::mem::take(&mut lock(&self.calls).gone_servers);
        let word = |correlation: Option<u64>| correlation.unwrap_or(0);
        let mut more = true;
        while more {
            more = self.drain(replies, |sample| {
                let copy = || Bytes::copy_of(sample);
                lock(&self.calls).on_reply(sample.node(), word(sample.correlation()), copy);
                *received += 1;
                set.record_arrival(sample.sent_ns(), *received);
            });
            more |= self.drain(status, |sample| {
                lock(&self.calls).on_status(sample.node(), word(sample.correlation()), sample);
            });
            if let Some(feedback) = feedback {
                more |= self.drain(feedback, |sample| {
                    let copy = || Bytes::copy_of(sample);
                    lock(&self.calls).on_feedback(sample.node(), word(sample.correlation()), copy);
                });
            }
            // Threads whose answer has arrived must not wait during a flood.
            more &= !gone.is_empty();
        }
        let [lost_replies, lost_status, lost_feedback] = lost;
        let mut answers = lost_replies.take_new_losses(replies);
        answers.extend(lost_status.take_new_losses(status));
        let feedback = feedback.as_ref().map(|feedback| lost_feedback.take_new_losses(feedback));
        let mut calls = lock(&self.calls);
        answers.iter().for_each(|(node, lost)| calls.on_answers_lost(node, *lost));
        feedback.iter().flatten().for_each(|(node, lost)| calls.on_feedback_lost(node, *lost));
        calls.on_servers_gone(&gone);
        calls.send_unsent();
        (calls, interrupted)
    }

    /// Receives what is available, at most one batch; returns whether there was anything.
    fn drain<T: Message + ?Sized>(
        &self,
        from: &mut Subscriber<T>,
        mut each: impl FnMut(&Sample<'_, T>),
    ) -> bool {
        let mut any = false;
        for _ in 0..MAX_BATCH {
            match from.try_recv() {
                Ok(None) => break,
                Ok(Some(sample)) => {
                    any = true;
                    each(&sample);
                }
                Err(error) => self.on_read_error(&error),
            }
        }
        any
    }

    fn on_read_error(&self, error: &Error) {
        match error {
            // The watch reports the end of a server.
            Error::PeerLost { .. } => {}
            Error::Malformed { .. } => lock(&self.calls).stats.late += 1,
            _ => {
                if let Some(node) = error.node() {
                    lock(&self.calls).fail_calls_to(node, error);
                }
            }
        }
    }
}
