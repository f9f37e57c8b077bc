//! What a client hears, and which of its threads reads it.
//!
//! A thread that waits for an answer reads itself, for the others that wait too; so a call takes no change of
//! threads. For async calls a thread of the client's reads while no other does (`line/poll.rs`).

mod poll;

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rnet_core::{CancelReason, Error, Result, Wait};
use rnet_node::sync;

use super::book::{Book, ClientStats};
use super::inbox::{Inbox, has_more};
use super::locked::{Locked, lock};
use super::open_call::{Open, Wanted};
use super::servers::Server;
use super::{Bytes, Topics};
use crate::msgs::CallStatus;
use crate::{
    EndpointEvent, EndpointWatch, Message, MessageType, Node, Sample, Subscriber,
    SubscriberOptions, WaitSet, WaitSetHandle,
};

/// How often a thread looks for a server that has no call yet, and on a dispatch thread for servers that are gone.
const LOOK: Duration = Duration::from_millis(2);
/// Messages that are taken in one turn.
const TURN: usize = 256;
/// Replies that are taken one by one until there is a look at everything: losses are counted there.
const MAX_ALONE: u32 = 64;
/// A wait that is to be shorter is not begun with a look at replies alone, which takes 50 µs.
const SHORT: Duration = Duration::from_millis(1);

/// The servers that a client calls.
pub enum Servers {
    All,
    /// Those of this other host, and those on the client's own host.
    OfHostAndHere(String),
    /// Those of this other host alone.
    OfHost(String),
}

impl Servers {
    /// Whether it calls servers of this host; `None` is the client's own.
    fn includes(&self, host: Option<&str>) -> bool {
        match (self, host) {
            (Servers::All, _) | (Servers::OfHostAndHere(_), None) => true,
            (Servers::OfHost(_), None) => false,
            (Servers::OfHostAndHere(only) | Servers::OfHost(only), Some(host)) => only == host,
        }
    }
}

pub struct Line {
    node: Node,
    request: MessageType,
    inbox: Mutex<Inbox>,
    reading: WaitSetHandle,
    book: Mutex<Book>,
    only: Servers,
    /// The thread for async calls, once there was one.
    driver: Mutex<Option<JoinHandle<()>>>,
    driver_bell: Condvar,
}

impl Line {
    pub fn open(
        node: &Node,
        service: &str,
        client: u32,
        (request, reply): (MessageType, MessageType),
        feedback: Option<MessageType>,
        only: Servers,
    ) -> Result<Arc<Line>> {
        let topics = Topics::of_client(service, client);
        let options = SubscriberOptions::new().reliable().wait(Wait::Adaptive);
        let open = |topic: String, ty| {
            node.subscriber_with::<[u8]>(&topic, options.clone().message_type(ty))
        };
        let replies = open(topics.reply(), reply)?;
        let feedback = feedback.map(|ty| open(topics.feedback(), ty)).transpose()?;
        let status = node.subscriber_with::<CallStatus>(&topics.status(), options)?;
        let mut set = WaitSet::adaptive(node);
        // A signal ends the wait of a thread whose user looks for signals.
        set.set_interruptible(true);
        set.expect_answers();
        let reading = set.handle();
        let book = Book::new(service, client);
        let (lost, taken, untold, alone) = Default::default();
        Ok(Arc::new(Line {
            node: node.clone(),
            request,
            inbox: Mutex::new(Inbox { replies, status, feedback, lost, set, taken, untold, alone }),
            reading,
            book: Mutex::new(book),
            only,
            driver: Mutex::default(),
            driver_bell: Condvar::new(),
        }))
    }

    /// Finds servers until the watch is dropped.
    pub fn watch(self: &Arc<Line>) -> Result<EndpointWatch> {
        let line = Arc::downgrade(self);
        self.node.on_endpoint(move |event| {
            if let Some(line) = line.upgrade() {
                line.heard(event);
            }
        })
    }

    fn heard(self: &Arc<Line>, event: &EndpointEvent) {
        let endpoint = event.endpoint();
        if matches!(endpoint.qos, crate::EndpointQos::Publisher(_)) {
            return;
        }
        if !self.only.includes(endpoint.proxy.as_ref().map(rnet_core::Proxy::host)) {
            return;
        }
        let service = lock(&self.book).service.clone();
        let Some(topics) = Topics::of_request(&service, &endpoint.topic) else { return };
        match event {
            EndpointEvent::Opened(_) => {
                let opened = Server::open(&self.node, endpoint, &topics, &self.request);
                let mut book = lock(&self.book);
                match opened {
                    Ok(server) => {
                        let line = Arc::downgrade(self);
                        server.on_match(move || {
                            if let Some(line) = line.upgrade() {
                                lock(&line.book).place_all();
                            }
                        });
                        book.servers.push(Arc::new(server));
                        // It may have matched before it could say so.
                        book.place_all();
                    }
                    Err(error) => book.unfit = Some(error),
                }
            }
            EndpointEvent::Closed(_) | EndpointEvent::Lost(_) => {
                let mut book = lock(&self.book);
                let (gone, there) = std::mem::take(&mut book.servers)
                    .into_iter()
                    .partition(|s| s.id == endpoint.id);
                book.servers = there;
                book.gone.push(endpoint.id);
                // Its publishers close without the lock.
                let gone: Vec<Arc<Server>> = gone;
                if !book.leading {
                    book.wake_one();
                    self.wake_driver(&book);
                }
                drop(book);
                drop(gone);
                self.reading.interrupt();
            }
            _ => {}
        }
    }

    pub fn is_from_parent(&self) -> bool {
        self.node.core().state.fork_guard().is_from_parent()
    }

    pub fn check_fork(&self) -> Result<()> {
        self.node.core().state.check_fork()
    }

    pub fn stats(&self) -> ClientStats {
        if self.is_from_parent() {
            return ClientStats::default();
        }
        let book = lock(&self.book);
        ClientStats { open: book.calls.len(), ..book.stats }
    }

    pub fn server_count(&self) -> usize {
        self.server_count_without(None)
    }

    /// The same without the server with this id.
    pub fn server_count_without(&self, avoided: Option<u64>) -> usize {
        if self.is_from_parent() {
            return 0;
        }
        let book = lock(&self.book);
        let servers = book.servers.iter().filter(|server| Some(server.id) != avoided);
        servers.filter(|server| matches!(server.is_ready(), Ok(true))).count()
    }

    /// Begins a call that has so much time.
    pub fn start(&self, open: Open, wants: u32, after: Option<Duration>) -> u32 {
        lock(&self.book).start(open, wants, after)
    }

    /// A call that wants one reply, from its beginning to its end.
    pub fn call(
        &self,
        watch: &EndpointWatch,
        request: &[u8],
        after: Duration,
    ) -> Result<Option<Bytes>> {
        let mut book = lock(&self.book);
        let number = book.ask(request, after);
        let (mut book, result) = self.next_in(book, watch, (number, Wanted::Reply), after, None);
        book.finish(number);
        result
    }

    pub fn has_server(&self) -> bool {
        !lock(&self.book).servers.is_empty()
    }

    pub fn is_sent(&self, number: u32) -> bool {
        let book = lock(&self.book);
        book.calls.get(&number).is_some_and(|open| open.server.is_some())
    }

    /// The id of the server that has the call.
    pub fn server_of(&self, number: u32) -> Option<u64> {
        lock(&self.book).calls.get(&number)?.server.as_ref().map(|server| server.id)
    }

    /// Ends a call; whether it had left for a server.
    pub fn end(&self, number: u32) -> bool {
        !self.is_from_parent() && lock(&self.book).end(number)
    }

    /// Ends the thread for async calls, and waits for it: it holds the node.
    pub fn close(&self) {
        lock(&self.book).closed = true;
        self.driver_bell.notify_all();
        self.reading.interrupt();
        // A task that it wakes may be what closes the client.
        let driver = sync::lock(&self.driver).take();
        sync::join(driver);
    }

    fn time_out(book: &mut Book, number: u32, after: Duration) {
        let topic = book.service.clone();
        let server = book.calls.get(&number).and_then(|open| open.server.as_ref());
        let what = match server {
            Some(server) => format!("an answer of {topic} from {} on {}", server.node, server.host),
            None if book.servers.is_empty() => format!("a server of {topic}"),
            None => format!("a server of {topic} that can accept the call"),
        };
        let after_ms = rnet_core::time::ms_ceil(after);
        book.time_out(number, Error::Timeout { topic, what, after_ms });
    }

    fn cancelled(book: &Book) -> Error {
        Error::Cancelled { topic: book.service.clone(), reason: CancelReason::Caller }
    }

    /// As [`Book::stop_all`].
    ///
    /// # Errors
    /// As there.
    pub fn stop_all(&self) -> Result<usize> {
        self.check_fork()?;
        lock(&self.book).stop_all()
    }

    /// As [`Book::ask_to_end`].
    ///
    /// # Errors
    /// As there.
    pub fn ask_to_end(&self, number: u32) -> Result<()> {
        self.check_fork()?;
        lock(&self.book).ask_to_end(number)
    }

    /// Ends a call, and whoever waits for it.
    pub fn cancel(&self, number: u32) {
        if self.is_from_parent() {
            return;
        }
        let mut book = lock(&self.book);
        book.end(number);
        let leading = book.leading;
        drop(book);
        if leading {
            self.reading.interrupt();
        }
    }

    /// What the call has next; `None` behind the last reply. With `pause`, `Interrupted` at that moment and when
    /// a signal comes, after a look at what is there.
    pub fn next(
        &self,
        watch: &EndpointWatch,
        (number, wanted): (u32, Wanted),
        after: Duration,
        pause: Option<Instant>,
    ) -> Result<Option<Bytes>> {
        self.next_in(lock(&self.book), watch, (number, wanted), after, pause).1
    }

    fn next_in<'a>(
        &'a self,
        mut book: Locked<'a>,
        watch: &EndpointWatch,
        (number, wanted): (u32, Wanted),
        after: Duration,
        pause: Option<Instant>,
    ) -> (Locked<'a>, Result<Option<Bytes>>) {
        // Whether this thread has read for the others, or waited: it may have been woken to read for them.
        let (mut took_part, mut looked) = (false, false);
        let wait = |mut book: Locked<'a>, until| {
            let Some(bell) = book.enter(number) else { return book };
            let mut book = book.wait(&bell, until);
            book.leave(number);
            book
        };
        let result = loop {
            let Some(open) = book.calls.get_mut(&number) else {
                break Err(Line::cancelled(&book));
            };
            if let Some(next) = open.next(wanted) {
                break next;
            }
            let (deadline, unsent) = (open.deadline, open.server.is_none());
            // The first look is at what is there, and does not take long.
            if looked && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                Line::time_out(&mut book, number, after);
                continue;
            }
            if looked && pause.is_some_and(|pause| pause <= Instant::now()) {
                break Err(Error::Interrupted);
            }
            looked = true;
            let limit = [deadline, pause].into_iter().flatten().min();
            let soon = || {
                let soon = Instant::now() + LOOK;
                Some(limit.map_or(soon, |limit| limit.min(soon)))
            };
            if unsent {
                drop(book);
                watch.run();
                book = lock(&self.book);
                book.place(number);
                let sent =
                    book.calls.get(&number).is_none_or(|o| o.server.is_some() || o.error.is_some());
                if !sent && book.leading {
                    took_part = true;
                    book = wait(book, soon());
                    continue;
                }
                if sent {
                    continue;
                }
            }
            if book.leading {
                took_part = true;
                book = wait(book, limit);
                continue;
            }
            (book.leading, took_part) = (true, true);
            let blocked = self.node.core().state.is_dispatch_thread();
            let until = if blocked || book.any_unsent() { soon() } else { limit };
            drop(book);
            if blocked {
                watch.run();
            }
            let is_long = |pause: Instant| pause > Instant::now() + SHORT;
            let one = wanted == Wanted::Reply && !blocked && pause.is_none_or(is_long);
            let interrupted;
            (book, interrupted) = self.read(until, one);
            book.leading = false;
            // With something there it is that which is returned.
            looked |= interrupted;
            if interrupted && pause.is_some() && !book.has_next(number, wanted) {
                break Err(Error::Interrupted);
            }
        };
        if took_part && !book.leading {
            book.wake_one();
            self.wake_driver(&book);
        }
        (book, result)
    }

    /// Has the thread for async calls read, if there is any of these.
    fn wake_driver(&self, book: &Book) {
        if book.driver_waits && book.calls.values().any(|open| open.is_awaited()) {
            self.driver_bell.notify_one();
        }
    }

    /// Takes one reply in, if it is all that there is. `None`: there is more, or something else.
    #[inline(never)] // Its instructions are counted: crates/rnet/benches/instructions.rs.
    fn take_one(&self, inbox: &mut Inbox, is_glanced: bool) -> Option<Locked<'_>> {
        let Inbox { replies, status, feedback, lost, untold, alone, .. } = &mut *inbox;
        if *alone >= MAX_ALONE {
            return None;
        }
        let book = match replies.try_recv() {
            Ok(sample) => {
                let sample = sample?;
                *untold = Some((sample.sent_ns(), is_glanced.then(|| sample.taken_ns())));
                let word = sample.correlation().unwrap_or(0);
                let mut book = lock(&self.book);
                book.reply(sample.node(), word, || Bytes::copy_of(&sample));
                book
            }
            Err(error) => {
                self.cannot_read(&error);
                return None;
            }
        };
        if lost[0].may_have_news(replies) {
            // A reply that is lost is one of the calls that are open now, not of those that begin later.
            return None;
        }
        *alone += 1;
        (book.gone.is_empty() && !has_more(status, feedback)).then_some(book)
    }

    /// Waits for answers and takes them in, for the one thread that has set `leading`; `one`: not more than one reply,
    /// if there is one and nothing else. Whether the wait was interrupted.
    fn read(&self, until: Option<Instant>, one: bool) -> (Locked<'_>, bool) {
        let mut inbox = sync::lock(&self.inbox);
        inbox.learn();
        let is_glanced = one && inbox.glance();
        // Interrupted, it is for a server that is gone or a call that came.
        let waited = if is_glanced { Ok(true) } else { inbox.wait(until) };
        if one
            && matches!(waited, Ok(true))
            && let Some(book) = self.take_one(&mut inbox, is_glanced)
        {
            return (book, false);
        }
        inbox.learn();
        let interrupted = waited.is_err();
        let Inbox { replies, status, feedback, lost, set, taken, alone, .. } = &mut *inbox;
        *alone = 0;
        // What these have left is read below.
        let gone = std::mem::take(&mut lock(&self.book).gone);
        let word = |correlation: Option<u64>| correlation.unwrap_or(0);
        let mut more = true;
        while more {
            more = self.drain(replies, |sample| {
                let copy = || Bytes::copy_of(sample);
                lock(&self.book).reply(sample.node(), word(sample.correlation()), copy);
                *taken += 1;
                set.came(sample.sent_ns(), *taken);
            });
            more |= self.drain(status, |sample| {
                lock(&self.book).status(sample.node(), word(sample.correlation()), sample);
            });
            if let Some(feedback) = feedback {
                more |= self.drain(feedback, |sample| {
                    let copy = || Bytes::copy_of(sample);
                    lock(&self.book).feedback(sample.node(), word(sample.correlation()), copy);
                });
            }
            // Those that wait for an answer that has come are not kept waiting by a flood.
            more &= !gone.is_empty();
        }
        let [lost_replies, lost_status, lost_feedback] = lost;
        let mut answers = lost_replies.news(replies);
        answers.extend(lost_status.news(status));
        let feedback = feedback.as_ref().map(|feedback| lost_feedback.news(feedback));
        let mut book = lock(&self.book);
        answers.iter().for_each(|(node, lost)| book.lose_answers(node, *lost));
        feedback.iter().flatten().for_each(|(node, lost)| book.lose_feedback(node, *lost));
        book.lose(&gone);
        book.place_all();
        (book, interrupted)
    }

    /// Takes what has come, a turn of it at the most; whether there was anything.
    fn drain<T: Message + ?Sized>(
        &self,
        from: &mut Subscriber<T>,
        mut each: impl FnMut(&Sample<'_, T>),
    ) -> bool {
        let mut any = false;
        for _ in 0..TURN {
            match from.try_recv() {
                Ok(None) => break,
                Ok(Some(sample)) => {
                    any = true;
                    each(&sample);
                }
                Err(error) => self.cannot_read(&error),
            }
        }
        any
    }

    fn cannot_read(&self, error: &Error) {
        match error {
            // The end of a server is told by the watch.
            Error::PeerLost { .. } => {}
            Error::Malformed { .. } => lock(&self.book).stats.late += 1,
            _ => {
                if let Some(node) = error.node() {
                    lock(&self.book).fail_of(node, error);
                }
            }
        }
    }
}
