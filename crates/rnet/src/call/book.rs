//! The open calls of a client.

use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar};
use std::task::Waker;
use std::time::{Duration, Instant};

use rnet_core::{CancelReason, Error, Failure, Result};

use super::numbers::ByNumber;
use super::open_call::{Open, Wanted};
use super::servers::{Server, hash_of};
use super::{Bytes, CallId, FLAGS, MAX_IN_FLIGHT, ROOT, WANTS_DONE, reason_of_wire};
use crate::msgs::call_control::Action;
use crate::msgs::{CallStatus, call_status::State};

/// Replies of a stream that wait for its reader while others of the client read.
const MAX_REPLIES_WAITING: usize = 4096;
/// Messages of feedback of a goal that wait for its reader; of more, the oldest are passed over.
const MAX_FEEDBACK_WAITING: usize = 1024;
/// Memory for a request that is kept for the next one.
const MAX_SPARE_LEN_BYTES: usize = 4096;

/// Counters of a client's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientStats {
    /// Calls that were started.
    pub calls: u64,
    /// Calls that are open at this moment.
    pub open: usize,
    /// Answers that were dropped because their call had already ended.
    pub late: u64,
    /// Calls that were sent to another server because one refused.
    pub moved: u64,
    /// Messages of feedback that were passed over: more waited than are kept for their reader.
    pub skipped: u64,
    /// Messages of feedback that did not come: the server had no room for them because this client did not read, or
    /// they were lost on their way.
    pub unheard: u64,
}

#[derive(Default)]
pub struct Book {
    pub service: String,
    pub client: u32,
    pub leading: bool,
    pub closed: bool,
    /// Whether the thread for async calls waits until it is told.
    pub driver_waits: bool,
    /// Each in memory of its own, which stays where it is when its place in the map moves.
    pub calls: ByNumber<Box<Open>>,
    pub servers: Vec<Arc<Server>>,
    /// Ids of servers that are gone, whose last answers may be there still.
    pub gone: Vec<u64>,
    /// Why a server cannot be asked.
    pub unfit: Option<Error>,
    pub stats: ClientStats,
    /// Tasks to be woken once the lock of this is free.
    pub woken: Vec<Waker>,
    next: u32,
    turn: usize,
    /// Whether a call may have no server yet.
    unsent: bool,
    /// How many threads wait at the bells of calls.
    threads: usize,
    /// Memory for the next call, and that of one that was answered, which is made ready while the next is on its way.
    spare: Option<Box<Open>>,
    answered: Option<Box<Open>>,
}

impl Book {
    pub fn new(service: &str, client: u32) -> Book {
        Book { service: service.to_owned(), client, ..Book::default() }
    }

    pub fn word(&self, number: u32) -> u64 {
        CallId { client: self.client, number }.word()
    }

    /// Begins a call, and sends it if a server is there; `wants` are the bits of its number. Its time begins now. It is
    /// sent first: what is noted of it is noted while it is on its way.
    pub fn start(&mut self, open: Open, wants: u32, after: Option<Duration>) -> u32 {
        let (mut open, number) = (Box::new(open), self.free_number(wants));
        let request = std::mem::take(&mut open.request);
        self.send(number, &mut open, &request);
        open.request = request;
        self.note(number, open, after);
        number
    }

    /// As [`Book::start`], of a call that wants one reply. Its request is copied, for a server that may have to be asked
    /// behind this one, when it has left.
    #[inline(never)] // Its instructions are counted: crates/rnet/benches/instructions.rs.
    pub fn ask(&mut self, request: &[u8], after: Duration) -> u32 {
        let fresh = || Box::new(Open::new(Vec::new(), None, false));
        let mut open = self.spare.take().unwrap_or_else(fresh);
        let number = self.free_number(0);
        self.send(number, &mut open, request);
        open.request.extend_from_slice(request);
        self.note(number, open, Some(after));
        if let Some(mut answered) = self.answered.take() {
            answered.renew();
            self.spare = Some(answered);
        }
        number
    }

    fn free_number(&mut self, wants: u32) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1) & !FLAGS;
            let number = self.next | wants;
            if self.calls.is_empty() || !self.calls.contains_key(&number) {
                return number;
            }
        }
    }

    fn note(&mut self, number: u32, mut open: Box<Open>, after: Option<Duration>) {
        self.stats.calls += 1;
        open.deadline = after.and_then(|after| Instant::now().checked_add(after));
        self.calls.insert(number, open);
    }

    /// Whether a call has something for who waits for it.
    pub fn has_next(&self, number: u32, wanted: Wanted) -> bool {
        self.calls.get(&number).is_none_or(|open| open.has_next(wanted))
    }

    /// Whether a call has no server yet.
    pub fn any_unsent(&mut self) -> bool {
        self.unsent = self.unsent && self.calls.values().any(|open| is_unsent(open));
        self.unsent
    }

    pub fn place_all(&mut self) {
        if !self.any_unsent() {
            return;
        }
        let calls = self.calls.iter().filter(|(_, open)| is_unsent(open));
        let mut unsent: Vec<u32> = calls.map(|(number, _)| *number).collect();
        // In the order in which they were begun.
        unsent.sort_unstable_by_key(|number| number & !FLAGS);
        unsent.into_iter().for_each(|number| self.place(number));
    }

    /// Sends a call to a server, if one is there.
    pub fn place(&mut self, number: u32) {
        // Another thread may have sent it meanwhile.
        if !self.calls.get(&number).is_some_and(|open| is_unsent(open)) {
            return;
        }
        // Out of the map while it is sent: the choice looks at the others.
        let Some(mut open) = self.calls.remove(&number) else { return };
        let request = std::mem::take(&mut open.request);
        self.send(number, &mut open, &request);
        open.request = request;
        self.calls.insert(number, open);
    }

    fn send(&mut self, number: u32, open: &mut Open, request: &[u8]) {
        let word = self.word(number);
        let chosen = match open.cancelled {
            true => Err(self.cancelled(CancelReason::Caller)),
            false => self.choose(open),
        };
        let sent = chosen.and_then(|server| match server {
            Some(one) => one.request(request, word).map(|()| Some(one.clone())),
            None => Ok(None),
        });
        self.turn = self.turn.wrapping_add(1);
        match sent {
            Ok(server) => {
                self.unsent |= server.is_none();
                open.server = server;
            }
            Err(error) => open.fail(self.of_service(error), &mut self.woken),
        }
    }

    fn in_flight(&self, server: u64) -> usize {
        // One that has ended may be held by its user still.
        let open = self.calls.values().filter(|open| !open.has_ended());
        let servers = open.filter_map(|open| open.server.as_ref());
        servers.filter(|one| one.id == server).count()
    }

    /// The server that a call goes to; `None` while it has to wait for one.
    fn choose(&self, open: &Open) -> Result<Option<&Arc<Server>>> {
        if let [server] = &*self.servers
            && open.refused.is_empty()
            && self.calls.len() < MAX_IN_FLIGHT
            && matches!(server.is_ready(), Ok(true))
        {
            return Ok(Some(server));
        }
        let mut unfit = self.unfit.clone();
        let mut fit = Vec::new();
        for server in self.servers.iter().filter(|server| may_take(server, &open.refused)) {
            match server.is_ready() {
                Ok(true) => fit.push(server),
                Ok(false) => unfit = None,
                Err(error) => unfit = Some(error),
            }
        }
        let many = fit.len().max(1);
        let chosen = match open.key {
            Some(key) => fit.iter().max_by_key(|server| hash_of((key, server.id))),
            None => (0..fit.len())
                .map(|at| &fit[(at + self.turn) % many])
                .min_by_key(|server| if many > 1 { self.in_flight(server.id) } else { 0 }),
        };
        let Some(server) = chosen else {
            return unfit.map_or(Ok(None), Err);
        };
        if self.calls.len() >= MAX_IN_FLIGHT && self.in_flight(server.id) >= MAX_IN_FLIGHT {
            let (what, limit) =
                (format!("calls in flight of one client of {}", self.service), MAX_IN_FLIGHT);
            let hint = "wait for some of them to finish, or use another client".to_owned();
            return Err(Error::LimitReached { what, limit, hint });
        }
        Ok(Some(server))
    }

    pub fn reply(&mut self, node: &str, word: u64, bytes: impl FnOnce() -> Bytes) {
        let Some(open) = find(&mut self.calls, self.client, node, word) else {
            self.stats.late += 1;
            return;
        };
        if open.replies.len() >= MAX_REPLIES_WAITING {
            let (what, limit) =
                (format!("unread replies of a call of {}", self.service), MAX_REPLIES_WAITING);
            let hint = "read them sooner, or use a separate client for this call".to_owned();
            open.fail(Error::LimitReached { what, limit, hint }, &mut self.woken);
            if let Some(server) = &open.server {
                let _ = server.cancel(word, Action::Cancel);
            }
            return;
        }
        open.replies.push(bytes());
        open.received += 1;
        if open.goal || word as u32 & WANTS_DONE == 0 {
            open.total = Some(1);
        }
        open.tell(&mut self.woken);
    }

    pub fn feedback(&mut self, node: &str, word: u64, bytes: impl FnOnce() -> Bytes) {
        let open = find(&mut self.calls, self.client, node, word);
        let Some(open) = open.filter(|open| open.goal) else {
            self.stats.late += 1;
            return;
        };
        if open.feedback.len() >= MAX_FEEDBACK_WAITING {
            open.feedback.pop_front();
            self.stats.skipped += 1;
        }
        open.feedback.push_back(bytes());
        open.heard += 1;
        open.tell(&mut self.woken);
    }

    pub fn status(&mut self, node: &str, word: u64, status: &CallStatus) {
        let open = find(&mut self.calls, self.client, node, word);
        let Some(open) = open.filter(|open| open.error.is_none()) else {
            // Of a call that was cancelled here, the server says that it has ended.
            self.stats.late += u64::from(status.state() != State::Cancelled);
            return;
        };
        let (topic, node) = (self.service.clone(), node.to_owned());
        if open.goal {
            self.stats.unheard = self.stats.unheard.saturating_add(status.feedback_dropped);
        }
        match status.state() {
            State::Done => open.end_behind(status, None, &mut self.woken),
            State::Failed => {
                let (kind, text) = (status.code.clone(), status.text.clone());
                let failure = Box::new(Failure { kind, text });
                let error = Error::CallFailed { topic, node, failure };
                open.end_behind(status, Some(error), &mut self.woken);
            }
            State::Cancelled => {
                let error = match (reason_of_wire(status.reason()), &open.server) {
                    // Its handler had begun, and may have done a part of it.
                    (CancelReason::ServerClosing, Some(server)) if !open.goal => {
                        // Nothing is sent there any more, also ahead of the word that it is gone.
                        server.leaves();
                        server.lost(&topic)
                    }
                    (reason, _) => Error::Cancelled { topic, reason },
                };
                open.end_behind(status, Some(error), &mut self.woken);
            }
            State::Refused => {
                self.unsent = true;
                if let Some(server) = open.server.take() {
                    if reason_of_wire(status.reason()) == CancelReason::ServerClosing {
                        server.leaves();
                    }
                    open.refused.push(server.id);
                }
                let others = self.servers.iter().any(|server| may_take(server, &open.refused));
                let backlog = status.backlog;
                if others {
                    self.stats.moved += 1;
                    self.place(word as u32);
                } else {
                    let running = status.running.clone();
                    open.fail(Error::Refused { topic, node, backlog, running }, &mut self.woken);
                }
            }
            // Of a newer release, or of none.
            State::Unspecified => self.stats.late += 1,
        }
    }

    /// The calls of servers that are gone, and that have left no answer, end.
    pub fn lose(&mut self, gone: &[u64]) {
        for open in self.calls.values_mut() {
            if let Some(server) = open.server.as_ref().filter(|server| gone.contains(&server.id)) {
                let error = server.lost(&self.service);
                open.fail(error, &mut self.woken);
            }
        }
    }

    /// Answers of a node were lost on their way. Of which calls they were is not known, so that all that it has end,
    /// and are cancelled there.
    pub fn lose_answers(&mut self, node: &str, lost: u64) {
        let (topic, node) = (self.service.clone(), node.to_owned());
        let error = Error::CallLost { topic, node: node.clone(), lost };
        let client = self.client;
        for (number, open) in self.calls.iter_mut().filter(|(_, open)| !open.is_decided()) {
            let Some(server) = open.server.as_ref().filter(|server| server.node == node) else {
                continue;
            };
            let _ = server.cancel(CallId { client, number: *number }.word(), Action::Cancel);
            open.fail(error.clone(), &mut self.woken);
        }
    }

    /// Feedback of a node was lost on its way. It ends no goal.
    pub fn lose_feedback(&mut self, node: &str, lost: u64) {
        self.stats.unheard = self.stats.unheard.saturating_add(lost);
        for open in self.calls.values_mut() {
            if open.server.as_ref().is_some_and(|server| server.node == node) {
                open.gaps = true;
                open.tell(&mut self.woken);
            }
        }
    }

    /// What a node sends cannot be read any more.
    pub fn fail_of(&mut self, node: &str, error: &Error) {
        for open in self.calls.values_mut() {
            if open.server.as_ref().is_some_and(|server| server.node == node) {
                open.fail(error.clone(), &mut self.woken);
            }
        }
    }

    /// Ends a call, and cancels it if it has not ended; whether it had a server.
    pub fn end(&mut self, number: u32) -> bool {
        let word = self.word(number);
        let Some(mut open) = self.calls.remove(&number) else { return false };
        open.tell(&mut self.woken);
        if let Some(server) = open.server.as_ref().filter(|_| !open.has_ended()) {
            let _ = server.cancel(word, Action::Cancel);
        }
        open.server.is_some()
    }

    /// As [`Book::end`], of a call whose user has what he waited for. Its memory is for the next one.
    #[inline(never)] // Likewise.
    pub fn finish(&mut self, number: u32) {
        let Entry::Occupied(place) = self.calls.entry(number) else { return };
        let open = place.get();
        if !open.has_ended() || open.is_awaited() || open.waits > 0 {
            self.end(number);
            return;
        }
        let open = place.remove();
        if open.request.capacity() <= MAX_SPARE_LEN_BYTES {
            self.answered = Some(open);
        }
    }

    /// Ends a call whose time is over.
    pub fn time_out(&mut self, number: u32, error: Error) {
        let word = self.word(number);
        let Some(open) = self.calls.get_mut(&number).filter(|open| !open.has_ended()) else {
            return;
        };
        if let Some(server) = &open.server {
            let _ = server.cancel(word, Action::TimedOut);
        }
        open.fail(error, &mut self.woken);
    }

    /// Asks the server to end a goal, whose end its caller waits for.
    ///
    /// # Errors
    /// `Full` if the server stands still.
    pub fn ask_to_end(&mut self, number: u32) -> Result<()> {
        let (word, error) = (self.word(number), self.cancelled(CancelReason::Caller));
        let Some(open) = self.calls.get_mut(&number).filter(|open| !open.is_decided()) else {
            return Ok(());
        };
        open.cancelled = true;
        match &open.server {
            Some(server) => server.cancel(word, Action::Stop).map_err(|e| self.of_service(e)),
            None => {
                open.fail(error, &mut self.woken);
                Ok(())
            }
        }
    }

    /// Asks all servers to end the goals of all callers; how many were asked.
    ///
    /// # Errors
    /// `Full` if one stands still.
    pub fn stop_all(&self) -> Result<usize> {
        let ready = self.servers.iter().filter(|server| matches!(server.is_ready(), Ok(true)));
        let asked = ready.map(|server| server.cancel(self.word(0), Action::StopAll));
        let asked = asked.collect::<Result<Vec<()>>>();
        asked.map(|asked| asked.len()).map_err(|error| self.of_service(error))
    }

    /// The topics of a server have names that no user has given.
    fn of_service(&self, error: Error) -> Error {
        of_service(&self.service, error)
    }

    fn cancelled(&self, reason: CancelReason) -> Error {
        Error::Cancelled { topic: self.service.clone(), reason }
    }

    /// One that waits and reads itself if nobody else does.
    pub fn wake_one(&self) {
        if self.threads == 0 {
            return;
        }
        let bells = self.calls.values().filter(|open| open.waits > 0);
        if let Some(bell) = bells.filter_map(|open| open.bell.as_ref()).next() {
            bell.notify_one();
        }
    }

    /// A thread is about to wait at the bell of this call; `None` where the call has ended.
    pub fn enter(&mut self, number: u32) -> Option<Arc<Condvar>> {
        let open = self.calls.get_mut(&number)?;
        open.waits += 1;
        self.threads += 1;
        Some(open.bell.get_or_insert_default().clone())
    }

    /// It waits no more.
    pub fn leave(&mut self, number: u32) {
        self.threads -= 1;
        if let Some(open) = self.calls.get_mut(&number) {
            open.waits -= 1;
        }
    }
}

/// The call that a message is of: its number is open, and its server is in the node that sent it.
fn find<'a>(
    calls: &'a mut ByNumber<Box<Open>>,
    client: u32,
    node: &str,
    word: u64,
) -> Option<&'a mut Open> {
    let id = CallId::of(word);
    let open = calls.get_mut(&id.number).filter(|_| id.client == client)?;
    let known = open.server.as_ref().is_some_and(|server| server.node == node);
    (known && !open.has_ended()).then_some(open)
}

/// Whether a call has no server yet.
fn is_unsent(open: &Open) -> bool {
    open.server.is_none() && !open.has_ended()
}

/// Whether a call that these have refused may be for this one. One that closes takes nothing, and is there until its
/// handlers have returned.
fn may_take(server: &Server, refused: &[u64]) -> bool {
    !server.is_leaving() && !refused.contains(&server.id)
}

/// An error of a topic of a server, or of what it needs, as one of the service.
fn of_service(service: &str, error: Error) -> Error {
    let topic = service.to_owned();
    match error {
        Error::IncompatibleQos { publisher_node, subscriber_node, why, .. } => {
            Error::IncompatibleQos { topic, publisher_node, subscriber_node, why }
        }
        Error::Full { reader_node, .. } => Error::Full { topic, reader_node },
        Error::OutOfMemory { needed_bytes, limit_bytes, why, .. } => {
            Error::OutOfMemory { topic, needed_bytes, limit_bytes, why }
        }
        Error::LimitReached { what, limit, hint } => {
            Error::limit_reached(named(service, what), limit, hint)
        }
        Error::BadValue { what, why } => Error::bad_value(named(service, what), why),
        error => error,
    }
}

/// What there is too much of, with the name of the service in place of that of its topic, or behind it.
fn named(service: &str, mut what: String) -> String {
    let own = format!("{ROOT}{service}/");
    if let Some(at) = what.find(&own) {
        let len = what[at..].find([' ', ',', ')']).unwrap_or(what.len() - at);
        what.replace_range(at..at + len, service);
    } else if !what.contains(service) {
        what = format!("{what}, for calls of {service}");
    }
    what
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_server_names_the_service() {
        let topic = || "/_rnet/call/plan/s0000002a/request".to_owned();
        let (publisher_node, subscriber_node) = ("/b".to_owned(), "/a".to_owned());
        let full = |what: &str| {
            let (what, hint) = (what.to_owned(), "end some".to_owned());
            Error::LimitReached { what, limit: 7, hint }
        };
        for error in [
            Error::IncompatibleQos {
                topic: topic(),
                publisher_node,
                subscriber_node,
                why: "no".into(),
            },
            Error::OutOfMemory {
                topic: topic(),
                needed_bytes: 2,
                limit_bytes: 1,
                why: "no".into(),
            },
            Error::Full { topic: topic(), reader_node: "/a".into() },
        ] {
            let (before, error) = (error.clone(), of_service("/plan", error));
            assert_eq!((error.code(), error.topic()), (before.code(), Some("/plan")));
            assert!(!error.to_string().contains("_rnet"), "{error}");
        }
        for (what, named) in [
            (format!("readers of {} at /b", topic()), "readers of /plan at /b"),
            (
                "open files in this process (open x)".to_owned(),
                "open files in this process (open x), for calls of /plan",
            ),
            (
                "calls in flight of one client of /plan".to_owned(),
                "calls in flight of one client of /plan",
            ),
        ] {
            assert_eq!(of_service("/plan", full(&what)), full(named));
        }
        let bad = |what: String| Error::BadValue { what, why: "no".into() };
        assert_eq!(
            of_service("/plan", bad(format!("type Pose of {}", topic()))),
            bad("type Pose of /plan".to_owned())
        );
    }
}
