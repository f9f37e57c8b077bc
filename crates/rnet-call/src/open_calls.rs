//! The open calls of a client. `open_calls/cancel.rs` cancels them, `open_calls/server_lost.rs` ends those whose
//! server was lost.

mod cancel;
mod server_lost;

use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar};
use std::task::Waker;
use std::time::{Duration, Instant};

use rnet_core::{CancelReason, Error, Failure, Result};

use super::number_map::NumberMap;
use super::open_call::{CallOutput, OpenCall};
use super::servers::{Server, hash_of};
use super::{
    Bytes, CallId, MAX_IN_FLIGHT, NUMBER_FLAGS, ROOT, WANTS_ALL_REPLIES, reason_from_wire,
};
use crate::msgs::call_control::Action;
use crate::msgs::{CallStatus, call_status::State};

/// Replies of a stream that wait for its reader while other threads of the client read.
const MAX_REPLIES_WAITING: usize = 4096;
/// Feedback messages of a goal that wait for its reader; beyond it, the oldest are skipped.
const MAX_FEEDBACK_WAITING: usize = 1024;
/// Maximum request memory that is kept for the next call.
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
    pub rerouted: u64,
    /// Feedback messages that were skipped because too many waited for their reader.
    pub feedback_skipped: u64,
    /// Feedback messages that did not arrive: the server had no capacity for them because this client did not
    /// read, or they were lost in transit.
    pub feedback_lost: u64,
}

#[derive(Default)]
pub struct OpenCalls {
    pub service: String,
    pub client: u32,
    pub has_reader: bool,
    pub closed: bool,
    /// Whether the thread for async calls waits to be woken.
    pub async_reader_waits: bool,
    /// Each call is boxed, so its address stays the same when the map grows.
    pub by_number: NumberMap<Box<OpenCall>>,
    pub servers: Vec<Arc<Server>>,
    /// Ids of servers that are gone, whose last answers may still be unread.
    pub gone_servers: Vec<u64>,
    /// Why a server cannot be called.
    pub server_error: Option<Error>,
    pub stats: ClientStats,
    /// Tasks to wake once this lock is released.
    pub to_wake: Vec<Waker>,
    next_number: u32,
    round_robin: usize,
    /// Whether a call may have no server yet.
    may_have_unsent: bool,
    /// How many threads wait for the condvars of calls.
    waiting_threads: usize,
    /// Memory for the next call, taken from an answered one and prepared while the next is in flight.
    spare: Option<Box<OpenCall>>,
    recyclable: Option<Box<OpenCall>>,
}

impl OpenCalls {
    pub fn new(service: &str, client: u32) -> OpenCalls {
        OpenCalls { service: service.to_owned(), client, ..OpenCalls::default() }
    }

    pub fn correlation(&self, number: u32) -> u64 {
        CallId { client: self.client, number }.to_correlation()
    }

    /// Starts a call, and sends it if a server exists; `wants` are the flags of its number. Its time limit
    /// starts now. It is sent first, and recorded while it is in flight.
    pub fn start(&mut self, open: OpenCall, wants: u32, after: Option<Duration>) -> u32 {
        let (mut open, number) = (Box::new(open), self.next_free_number(wants));
        let request = std::mem::take(&mut open.request);
        self.send(number, &mut open, &request);
        open.request = request;
        self.insert(number, open, after);
        number
    }

    /// As [`OpenCalls::start`], for a call with one reply. Its request is copied after it was sent, for a
    /// second server that may be needed.
    #[inline(never)] // Its instructions are counted: crates/rnet/benches/instructions.rs.
    pub fn start_single(&mut self, request: &[u8], after: Duration) -> u32 {
        let fresh = || Box::new(OpenCall::new(Vec::new(), None, false));
        let mut open = self.spare.take().unwrap_or_else(fresh);
        let number = self.next_free_number(0);
        self.send(number, &mut open, request);
        open.request.extend_from_slice(request);
        self.insert(number, open, Some(after));
        if let Some(mut recyclable) = self.recyclable.take() {
            recyclable.reset();
            self.spare = Some(recyclable);
        }
        number
    }

    fn next_free_number(&mut self, wants: u32) -> u32 {
        loop {
            self.next_number = self.next_number.wrapping_add(1) & !NUMBER_FLAGS;
            let number = self.next_number | wants;
            if self.by_number.is_empty() || !self.by_number.contains_key(&number) {
                return number;
            }
        }
    }

    fn insert(&mut self, number: u32, mut open: Box<OpenCall>, after: Option<Duration>) {
        self.stats.calls += 1;
        open.deadline = after.and_then(|after| Instant::now().checked_add(after));
        self.by_number.insert(number, open);
    }

    /// Whether a call has an output for its waiter.
    pub fn has_next(&self, number: u32, output: CallOutput) -> bool {
        self.by_number.get(&number).is_none_or(|open| open.has_next(output))
    }

    /// Whether a call has no server yet.
    pub fn any_unsent(&mut self) -> bool {
        self.may_have_unsent =
            self.may_have_unsent && self.by_number.values().any(|open| is_unsent(open));
        self.may_have_unsent
    }

    pub fn send_unsent(&mut self) {
        if !self.any_unsent() {
            return;
        }
        let calls = self.by_number.iter().filter(|(_, open)| is_unsent(open));
        let mut unsent: Vec<u32> = calls.map(|(number, _)| *number).collect();
        // In the order in which they were started.
        unsent.sort_unstable_by_key(|number| number & !NUMBER_FLAGS);
        unsent.into_iter().for_each(|number| self.send_if_unsent(number));
    }

    /// Sends a call to a server, if one exists.
    pub fn send_if_unsent(&mut self, number: u32) {
        // Another thread may have sent it meanwhile.
        if !self.by_number.get(&number).is_some_and(|open| is_unsent(open)) {
            return;
        }
        // Removed from the map while it is sent: choosing a server reads the other calls.
        let Some(mut open) = self.by_number.remove(&number) else { return };
        let request = std::mem::take(&mut open.request);
        self.send(number, &mut open, &request);
        open.request = request;
        self.by_number.insert(number, open);
    }

    fn send(&mut self, number: u32, open: &mut OpenCall, request: &[u8]) {
        let word = self.correlation(number);
        let chosen = match open.cancelled {
            true => Err(self.cancelled(CancelReason::Caller)),
            false => self.choose_server(open),
        };
        let sent = chosen.and_then(|server| match server {
            Some(one) => one.request(request, word).map(|()| Some(one.clone())),
            None => Ok(None),
        });
        self.round_robin = self.round_robin.wrapping_add(1);
        match sent {
            Ok(server) => {
                self.may_have_unsent |= server.is_none();
                open.server = server;
            }
            Err(error) => open.fail(self.as_service_error(error), &mut self.to_wake),
        }
    }

    fn in_flight(&self, server: u64) -> usize {
        // An ended call may still be held by its user.
        let open = self.by_number.values().filter(|open| !open.has_ended());
        let servers = open.filter_map(|open| open.server.as_ref());
        servers.filter(|one| one.id == server).count()
    }

    /// The server for a call; `None` while it must wait for one.
    fn choose_server(&self, open: &OpenCall) -> Result<Option<&Arc<Server>>> {
        if let [server] = &*self.servers
            && open.excluded_servers.is_empty()
            && self.by_number.len() < MAX_IN_FLIGHT
            && matches!(server.is_ready(), Ok(true))
        {
            return Ok(Some(server));
        }
        let mut server_error = self.server_error.clone();
        let mut fit = Vec::new();
        for server in self.servers.iter().filter(|server| accepts(server, &open.excluded_servers)) {
            match server.is_ready() {
                Ok(true) => fit.push(server),
                Ok(false) => server_error = None,
                Err(error) => server_error = Some(error),
            }
        }
        let many = fit.len().max(1);
        let chosen = match open.key {
            Some(key) => fit.iter().max_by_key(|server| hash_of((key, server.id))),
            None => (0..fit.len())
                .map(|at| &fit[(at + self.round_robin) % many])
                .min_by_key(|server| if many > 1 { self.in_flight(server.id) } else { 0 }),
        };
        let Some(server) = chosen else {
            return server_error.map_or(Ok(None), Err);
        };
        if self.by_number.len() >= MAX_IN_FLIGHT && self.in_flight(server.id) >= MAX_IN_FLIGHT {
            let (what, limit) =
                (format!("calls in flight of one client of {}", self.service), MAX_IN_FLIGHT);
            let hint = "wait for some of them to finish, or use another client".to_owned();
            return Err(Error::LimitReached { what, limit, hint });
        }
        Ok(Some(server))
    }

    pub fn on_reply(&mut self, node: &str, word: u64, bytes: impl FnOnce() -> Bytes) {
        let Some(open) = find_open(&mut self.by_number, self.client, node, word) else {
            self.stats.late += 1;
            return;
        };
        if open.replies.len() >= MAX_REPLIES_WAITING {
            let (what, limit) =
                (format!("unread replies of a call of {}", self.service), MAX_REPLIES_WAITING);
            let hint = "read them sooner, or use a separate client for this call".to_owned();
            open.fail(Error::LimitReached { what, limit, hint }, &mut self.to_wake);
            if let Some(server) = &open.server {
                let _ = server.cancel(word, Action::Cancel);
            }
            return;
        }
        open.replies.push(bytes());
        open.replies_received += 1;
        if open.goal || word as u32 & WANTS_ALL_REPLIES == 0 {
            open.reply_total = Some(1);
        }
        open.notify(&mut self.to_wake);
    }

    pub fn on_feedback(&mut self, node: &str, word: u64, bytes: impl FnOnce() -> Bytes) {
        let open = find_open(&mut self.by_number, self.client, node, word);
        let Some(open) = open.filter(|open| open.goal) else {
            self.stats.late += 1;
            return;
        };
        if open.feedback.len() >= MAX_FEEDBACK_WAITING {
            open.feedback.pop_front();
            self.stats.feedback_skipped += 1;
        }
        open.feedback.push_back(bytes());
        open.feedback_received += 1;
        open.notify(&mut self.to_wake);
    }

    pub fn on_status(&mut self, node: &str, word: u64, status: &CallStatus) {
        let open = find_open(&mut self.by_number, self.client, node, word);
        let Some(open) = open.filter(|open| open.error.is_none()) else {
            // If a call was cancelled here, its server still reports that it has ended.
            self.stats.late += u64::from(status.state() != State::Cancelled);
            return;
        };
        let (topic, node) = (self.service.clone(), node.to_owned());
        if open.goal {
            self.stats.feedback_lost =
                self.stats.feedback_lost.saturating_add(status.feedback_dropped);
        }
        match status.state() {
            State::Done => open.end_after(status, None, &mut self.to_wake),
            State::Failed => {
                let (kind, text) = (status.code.clone(), status.text.clone());
                let failure = Box::new(Failure { kind, text });
                let error = Error::CallFailed { topic, node, failure };
                open.end_after(status, Some(error), &mut self.to_wake);
            }
            State::Cancelled => {
                let error = match (reason_from_wire(status.reason()), &open.server) {
                    // Its handler had begun, and may have done part of the work.
                    (CancelReason::ServerClosing, Some(server)) if !open.goal => {
                        // Nothing is sent to it any more, even before its end is reported.
                        server.set_closing();
                        server.lost(&topic)
                    }
                    (reason, _) => Error::Cancelled { topic, reason },
                };
                open.end_after(status, Some(error), &mut self.to_wake);
            }
            State::Refused => {
                self.may_have_unsent = true;
                if let Some(server) = open.server.take() {
                    if reason_from_wire(status.reason()) == CancelReason::ServerClosing {
                        server.set_closing();
                    }
                    open.excluded_servers.push(server.id);
                }
                let others =
                    self.servers.iter().any(|server| accepts(server, &open.excluded_servers));
                let backlog = status.backlog;
                if others {
                    self.stats.rerouted += 1;
                    self.send_if_unsent(word as u32);
                } else {
                    let running = status.running.clone();
                    open.fail(Error::Refused { topic, node, backlog, running }, &mut self.to_wake);
                }
            }
            // From a newer release, or invalid.
            State::Unspecified => self.stats.late += 1,
        }
    }

    /// Ends all calls with `Closed`; later ones get the same error, because no server is left. Returns the servers.
    pub fn end_all(&mut self) -> Vec<Arc<Server>> {
        let error = Error::closed(format!("the client of {}", self.service));
        let client = self.client;
        for (number, open) in self.by_number.iter_mut().filter(|(_, open)| !open.has_ended()) {
            if let Some(server) = &open.server {
                let word = CallId { client, number: *number }.to_correlation();
                let _ = server.cancel(word, Action::Cancel);
            }
            open.fail(error.clone(), &mut self.to_wake);
        }
        (self.closed, self.server_error) = (true, Some(error));
        std::mem::take(&mut self.servers)
    }

    /// Ends a call, and cancels it if it has not ended; returns whether it had a server.
    pub fn end(&mut self, number: u32) -> bool {
        let word = self.correlation(number);
        let Some(mut open) = self.by_number.remove(&number) else { return false };
        open.notify(&mut self.to_wake);
        if let Some(server) = open.server.as_ref().filter(|_| !open.has_ended()) {
            let _ = server.cancel(word, Action::Cancel);
        }
        open.server.is_some()
    }

    /// As [`OpenCalls::end`], for a call whose user has its result. Its memory is reused by the next one.
    #[inline(never)] // Likewise.
    pub fn finish(&mut self, number: u32) {
        let Entry::Occupied(entry) = self.by_number.entry(number) else { return };
        let open = entry.get();
        if !open.has_ended() || open.has_waiting_task() || open.waiting_threads > 0 {
            self.end(number);
            return;
        }
        let open = entry.remove();
        if open.request.capacity() <= MAX_SPARE_LEN_BYTES {
            self.recyclable = Some(open);
        }
    }

    /// Ends a call whose time limit has passed.
    pub fn time_out(&mut self, number: u32, error: Error) {
        let word = self.correlation(number);
        let Some(open) = self.by_number.get_mut(&number).filter(|open| !open.has_ended()) else {
            return;
        };
        if let Some(server) = &open.server {
            let _ = server.cancel(word, Action::TimedOut);
        }
        open.fail(error, &mut self.to_wake);
    }

    /// The topics of a server have internal names, which mean nothing to users.
    fn as_service_error(&self, error: Error) -> Error {
        as_service_error(&self.service, error)
    }

    /// Wakes a waiting thread, which reads itself if no other thread does.
    pub fn wake_one(&self) {
        if self.waiting_threads == 0 {
            return;
        }
        let condvars = self.by_number.values().filter(|open| open.waiting_threads > 0);
        if let Some(condvar) = condvars.filter_map(|open| open.condvar.as_ref()).next() {
            condvar.notify_one();
        }
    }

    /// Adds a thread that will wait for the condvar of this call; `None` if the call has ended.
    pub fn add_waiter(&mut self, number: u32) -> Option<Arc<Condvar>> {
        let open = self.by_number.get_mut(&number)?;
        open.waiting_threads += 1;
        self.waiting_threads += 1;
        Some(open.condvar.get_or_insert_default().clone())
    }

    /// Removes a waiting thread.
    pub fn remove_waiter(&mut self, number: u32) {
        self.waiting_threads -= 1;
        if let Some(open) = self.by_number.get_mut(&number) {
            open.waiting_threads -= 1;
        }
    }
}

/// The call of a message: its number is open, and its server is in the node that sent it.
fn find_open<'a>(
    calls: &'a mut NumberMap<Box<OpenCall>>,
    client: u32,
    node: &str,
    word: u64,
) -> Option<&'a mut OpenCall> {
    let id = CallId::from_correlation(word);
    let open = calls.get_mut(&id.number).filter(|_| id.client == client)?;
    let known = open.server.as_ref().is_some_and(|server| server.node == node);
    (known && !open.has_ended()).then_some(open)
}

/// Whether a call has no server yet.
fn is_unsent(open: &OpenCall) -> bool {
    open.server.is_none() && !open.has_ended()
}

/// Whether this server may get a call that the servers in `refused` have refused. A closing server accepts no
/// calls, and exists until its handlers have returned.
fn accepts(server: &Server, refused: &[u64]) -> bool {
    !server.is_closing() && !refused.contains(&server.id)
}

/// Converts an error of a server's topic, or of a resource that it needs, to one of the service.
fn as_service_error(service: &str, error: Error) -> Error {
    let topic = service.to_owned();
    match error {
        Error::IncompatibleQos { publisher_node, subscriber_node, why, .. } => {
            Error::IncompatibleQos { topic, publisher_node, subscriber_node, why }
        }
        Error::Full { reader_node, .. } => Error::Full { topic: topic.into(), reader_node },
        Error::OutOfMemory { needed_bytes, limit_bytes, why, .. } => {
            Error::OutOfMemory { topic, needed_bytes, limit_bytes, why }
        }
        Error::LimitReached { what, limit, hint } => {
            Error::limit_reached(with_service_name(service, what), limit, hint)
        }
        Error::BadValue { what, why } => Error::bad_value(with_service_name(service, what), why),
        error => error,
    }
}

/// The exhausted resource, with the name of the service instead of its topic's name, or appended.
fn with_service_name(service: &str, mut what: String) -> String {
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
            Error::Full { topic: topic().into(), reader_node: "/a".into() },
        ] {
            let (before, error) = (error.clone(), as_service_error("/plan", error));
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
            assert_eq!(as_service_error("/plan", full(&what)), full(named));
        }
        let bad = |what: String| Error::BadValue { what, why: "no".into() };
        assert_eq!(
            as_service_error("/plan", bad(format!("type Pose of {}", topic()))),
            bad("type Pose of /plan".to_owned())
        );
    }
}
