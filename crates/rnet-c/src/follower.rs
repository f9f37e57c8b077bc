//! `rnet_follower` and `rnet_node_watcher`: messages and nodes of a domain, seen from outside.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_char};
use std::time::Duration;

use rnet::inspect::{Follower, NodeWatcher};
use rnet::{Error, MessageType, NodeEvent, TypeDesc};

use crate::border::{close, enter, free, give, given, write};
use crate::bytes::{rnet_bytes, text};
use crate::error::{Failure, Outcome, c_text, invalid, rnet_code, rnet_error};
use crate::handle::{Exclusive, Handle};
use crate::inspect::{message_type, rnet_domain};
use crate::publisher::wait_in_slices;
use crate::types::rnet_type;

/// Maximum number of publishers whose names are kept, with former ones.
const MAX_PUBLISHERS: usize = 1000;

/// Calls `step` with the time that it may wait, at first with none, until it gives a result. `None` if `timeout_ns` is
/// 0 and it gives none. Ends with an error if `is_closing`.
fn wait<T>(
    timeout_ns: i64,
    is_closing: impl Fn() -> bool,
    what: &'static str,
    mut step: impl FnMut(Duration) -> Outcome<Option<T>>,
) -> Outcome<Option<T>> {
    if let Some(found) = step(Duration::ZERO)? {
        return Ok(Some(found));
    }
    wait_in_slices(timeout_ns, |slice| match step(slice)? {
        None if is_closing() => Err(Error::Interrupted.into()),
        None if timeout_ns != 0 => Ok(Err(Error::timeout("", what, slice))),
        found => Ok(Ok(found)),
    })
}

/// Follows a topic from outside, with all its publishers. Publishers do not see it and are not slowed by it; what it
/// reads too slowly is counted as missed. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_follower(Handle<Exclusive<Following>>);

/// A message that a follower has read. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_followed_message {
    /// The topic.
    pub topic: *const c_char,
    /// Node of the publisher.
    pub node: *const c_char,
    /// Name of its type; "" for raw bytes.
    pub type_name: *const c_char,
    /// Id of the publisher.
    pub publisher: u64,
    /// Number of the message, counted by its publisher from 0.
    pub seq: u64,
    /// When it was sent, in ns of CLOCK_MONOTONIC.
    pub sent_ns: u64,
    /// The time of its source in ns since 1970 UTC; 0 if its publisher has not set it.
    pub source_ns: i64,
    /// Its correlation with another message; 0 if its publisher has not set one.
    pub correlation: u64,
    /// Messages that the follower missed before this one because it was too slow, of all publishers.
    pub missed: u64,
    /// Its bytes. They may have any alignment.
    pub data: rnet_bytes,
}

/// A publisher that is followed.
struct FollowedPublisher {
    topic: CString,
    node: CString,
    type_name: CString,
    desc: TypeDesc,
    schema: Option<rnet::schema::Schema>,
}

struct Following {
    follower: Follower,
    bytes: Vec<u8>,
    /// By id.
    publishers: HashMap<u64, FollowedPublisher>,
    message: Option<rnet_followed_message>,
}

// SAFETY: its pointers are to what it owns.
unsafe impl Send for Following {}

impl Following {
    /// The next message, if there is one.
    fn poll(&mut self) -> Outcome<Option<*const rnet_followed_message>> {
        self.message = None;
        if self.publishers.len() >= MAX_PUBLISHERS {
            self.publishers.clear();
        }
        // They would accumulate.
        drop(self.follower.take_events());
        let Some(found) = self.follower.poll(&mut self.bytes)? else { return Ok(None) };
        let (stamp, meta) = (found.stamp, found.meta);
        let from = self.publishers.entry(stamp.publisher).or_insert_with(|| FollowedPublisher {
            topic: c_text(found.topic),
            node: c_text(found.node),
            type_name: c_text(found.type_desc.name().unwrap_or_default()),
            desc: found.type_desc.clone(),
            schema: found.schema.cloned(),
        });
        let message = rnet_followed_message {
            topic: from.topic.as_ptr(),
            node: from.node.as_ptr(),
            type_name: from.type_name.as_ptr(),
            publisher: stamp.publisher,
            seq: stamp.seq,
            sent_ns: stamp.sent_ns,
            source_ns: meta.source_ns.unwrap_or_default(),
            correlation: meta.correlation.unwrap_or_default(),
            missed: self.follower.missed().total(),
            data: rnet_bytes::of(&self.bytes),
        };
        Ok(Some(self.message.insert(message)))
    }

    fn recv(
        &mut self,
        timeout_ns: i64,
        is_closing: impl Fn() -> bool,
    ) -> Outcome<*const rnet_followed_message> {
        let found = wait(timeout_ns, is_closing, "a message", |slice| {
            if !slice.is_zero() {
                self.follower.wait(slice);
            }
            self.poll()
        })?;
        Ok(found.unwrap_or(std::ptr::null()))
    }

    fn message_type(&self) -> Outcome<MessageType> {
        let last = self.message.as_ref().and_then(|last| self.publishers.get(&last.publisher));
        let last = last.ok_or_else(|| invalid("the last receive gave no message"))?;
        Ok(message_type(&last.desc, last.schema.as_ref())?)
    }
}

/// Follows a topic, which need not exist yet. With `history`, the messages that transient_local publishers keep for
/// late subscribers come first. The caller frees the follower with rnet_follower_free().
///
/// Errors: RNET_BAD_NAME, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
///
/// # Safety
/// `domain` is a domain, `topic` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_domain_follow(
    domain: *const rnet_domain,
    topic: *const c_char,
    history: bool,
    out: *mut *mut rnet_follower,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let location = &unsafe { given(domain, "domain") }?.location;
        // SAFETY: as promised by the caller.
        let topic = unsafe { text(topic, "topic") }?;
        let follower = Follower::new(location.domain()?, topic, history)?;
        let (bytes, publishers) = (Vec::new(), HashMap::new());
        let following = Following { follower, bytes, publishers, message: None };
        let name = format!("the follower of {topic}");
        let object = Exclusive::new("follower", name, following, || ());
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_follower(Handle::without_node(object))) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// # Safety
/// As [`given`].
unsafe fn following_of<'a>(follower: *const rnet_follower) -> Outcome<&'a Exclusive<Following>> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(follower, "follower") }?.0)
}

/// Waits for the next message of any publisher, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does
/// not wait. Messages of one publisher keep their order.
///
/// `*out` becomes a message that is valid until the next receive from this follower, also if another thread closes it;
/// null if nothing has arrived and
/// `timeout_ns` is 0, which is not an error.
///
/// Errors: RNET_TIMEOUT, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO, RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `follower` is a follower, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_follower_recv(
    follower: *mut rnet_follower,
    timeout_ns: i64,
    out: *mut *const rnet_followed_message,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = unsafe { following_of(follower) }?;
        let message = object.borrow_here(|it| it.recv(timeout_ns, || object.is_closing()))?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, message) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The type of the last message, as its publisher declares it. The caller frees it with rnet_type_free().
///
/// Errors: RNET_BAD_VALUE if it cannot be read; RNET_INVALID_ARGUMENT if the last call did not give a message.
///
/// # Safety
/// `follower` is a follower, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_follower_type(
    follower: *mut rnet_follower,
    out: *mut *mut rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let ty = unsafe { following_of(follower) }?.with_here(|it| it.message_type())?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_type::new(ty)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a follower: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null is
/// allowed.
///
/// # Safety
/// `follower` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_follower_close(follower: *mut rnet_follower) {
    // SAFETY: as promised by the caller.
    unsafe { close(follower, |follower| follower.0.close_here()) }
}

/// Frees a follower. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `follower` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_follower_free(follower: *mut rnet_follower) {
    // SAFETY: as promised by the caller.
    unsafe { free(follower) }
}

/// What has happened to a node.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_watched_change {
    /// It has joined the domain.
    RNET_WATCHED_JOINED = 1,
    /// It has closed.
    RNET_WATCHED_LEFT = 2,
    /// Its process has died without closing it.
    RNET_WATCHED_DIED = 3,
}

/// A node that has joined, left or died. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_watched_node {
    /// Its name: "/arm"; on another host "@host/arm".
    pub node: *const c_char,
    /// What has happened to it, an rnet_watched_change.
    pub change: i32,
}

/// Watches the nodes of a domain from outside. One thread at a time may use it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_node_watcher(Handle<Exclusive<Watching>>);

struct Watching {
    watcher: NodeWatcher,
    events: VecDeque<NodeEvent>,
    node: CString,
    event: Option<rnet_watched_node>,
}

// SAFETY: its pointers are to what it owns.
unsafe impl Send for Watching {}

impl Watching {
    fn recv(
        &mut self,
        timeout_ns: i64,
        is_closing: impl Fn() -> bool,
    ) -> Outcome<*const rnet_watched_node> {
        self.event = None;
        let found = wait(timeout_ns, is_closing, "a node to join or leave", |slice| {
            if self.events.is_empty() {
                self.events.extend(self.watcher.wait(slice)?);
            }
            Ok::<_, Failure>(self.events.pop_front())
        })?;
        let Some(found) = found else { return Ok(std::ptr::null()) };
        self.node = c_text(found.node());
        let change = match found {
            NodeEvent::Joined(_) => rnet_watched_change::RNET_WATCHED_JOINED,
            NodeEvent::Left(_) => rnet_watched_change::RNET_WATCHED_LEFT,
            _ => rnet_watched_change::RNET_WATCHED_DIED,
        };
        let event = rnet_watched_node { node: self.node.as_ptr(), change: change as i32 };
        Ok(self.event.insert(event))
    }
}

/// Watches the nodes of a domain. Present nodes are reported first, as joined. The caller frees the watcher with
/// rnet_node_watcher_free().
///
/// Errors: RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO.
///
/// # Safety
/// `domain` is a domain, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_domain_watch_nodes(
    domain: *const rnet_domain,
    out: *mut *mut rnet_node_watcher,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let location = &unsafe { given(domain, "domain") }?.location;
        let watcher = location.domain()?.watch_nodes()?;
        let name = format!("the node watcher of domain {}", location.id());
        let (events, node) = (VecDeque::new(), CString::default());
        let watching = Watching { watcher, events, node, event: None };
        let object = Exclusive::new("node watcher", name, watching, || ());
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_node_watcher(Handle::without_node(object))) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Waits until a node joins, leaves or dies, for at most `timeout_ns`: RNET_FOREVER waits without a limit, 0 does not
/// wait.
///
/// `*out` is valid until the next call with this watcher, also if another thread closes it; null if nothing has happened
/// and `timeout_ns` is 0.
///
/// Errors: RNET_TIMEOUT, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO, RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `watcher` is a watcher, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_watcher_recv(
    watcher: *mut rnet_node_watcher,
    timeout_ns: i64,
    out: *mut *const rnet_watched_node,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = &unsafe { given(watcher, "watcher") }?.0;
        let event = object.borrow_here(|it| it.recv(timeout_ns, || object.is_closing()))?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, event) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes a watcher: its calls fail with RNET_CLOSED from then on, and a wait of another thread ends. Null is
/// allowed.
///
/// # Safety
/// `watcher` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_watcher_close(watcher: *mut rnet_node_watcher) {
    // SAFETY: as promised by the caller.
    unsafe { close(watcher, |watcher| watcher.0.close_here()) }
}

/// Frees a watcher. Null is allowed. No other thread may be about to use it.
///
/// # Safety
/// `watcher` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_watcher_free(watcher: *mut rnet_node_watcher) {
    // SAFETY: as promised by the caller.
    unsafe { free(watcher) }
}
