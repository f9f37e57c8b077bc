//! What endpoints and nodes have counted, and their peers.

use std::ffi::{CString, c_char};
use std::ptr;

use rnet::{Backlog, LivelinessCounts, LossCause, PeerInfo, Publisher, PublisherStats, Subscriber};

use crate::border::{enter, enter_or, free, give, given, write};
use crate::error::{Failure, Outcome, c_text, invalid, rnet_code, rnet_error};
use crate::node::{node_of, rnet_node};
use crate::options::{fill, options};
use crate::publisher::{publisher_of, rnet_publisher};
use crate::subscriber::{
    receiving_of, rnet_loss_counts, rnet_subscriber, rnet_subscription, subscription_of,
};

/// Names, in an order. Freed by the caller with rnet_name_list_free(). Any thread may read it.
pub struct rnet_name_list(Vec<CString>);

impl rnet_name_list {
    pub(crate) fn new(names: &[String]) -> rnet_name_list {
        rnet_name_list(names.iter().map(|name| c_text(name)).collect())
    }
}

/// Number of names.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_name_list_count(list: Option<&rnet_name_list>) -> usize {
    list.map_or(0, |list| list.0.len())
}

/// A name, valid until the list is freed; null beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_name_list_get(list: Option<&rnet_name_list>, at: usize) -> *const c_char {
    list.and_then(|list| list.0.get(at)).map_or(ptr::null(), |name| name.as_ptr())
}

/// Frees a list. Null is allowed.
///
/// # Safety
/// `list` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_name_list_free(list: *mut rnet_name_list) {
    // SAFETY: as promised by the caller.
    unsafe { free(list) }
}

/// Publishers or subscribers. Freed by the caller with rnet_peer_list_free(). Any thread may read it.
pub struct rnet_peer_list(Vec<(u64, CString)>);

impl From<Vec<PeerInfo>> for rnet_peer_list {
    fn from(peers: Vec<PeerInfo>) -> rnet_peer_list {
        rnet_peer_list(peers.iter().map(|peer| (peer.id, c_text(&peer.node))).collect())
    }
}

/// Number of peers.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_peer_list_count(list: Option<&rnet_peer_list>) -> usize {
    list.map_or(0, |list| list.0.len())
}

/// The id of a peer; 0 beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_peer_list_id(list: Option<&rnet_peer_list>, at: usize) -> u64 {
    list.and_then(|list| list.0.get(at)).map_or(0, |(id, _)| *id)
}

/// The node of a peer, valid until the list is freed; null beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_peer_list_node(list: Option<&rnet_peer_list>, at: usize) -> *const c_char {
    list.and_then(|list| list.0.get(at)).map_or(ptr::null(), |(_, node)| node.as_ptr())
}

/// Frees a list. Null is allowed.
///
/// # Safety
/// `list` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_peer_list_free(list: *mut rnet_peer_list) {
    // SAFETY: as promised by the caller.
    unsafe { free(list) }
}

/// Errors, oldest first. Freed by the caller with rnet_error_list_free(). Any thread may read it.
pub struct rnet_error_list(Vec<rnet_error>);

/// Number of errors.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_list_count(list: Option<&rnet_error_list>) -> usize {
    list.map_or(0, |list| list.0.len())
}

/// An error, which belongs to the list; null beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_list_get(
    list: Option<&rnet_error_list>,
    at: usize,
) -> *const rnet_error {
    list.and_then(|list| list.0.get(at)).map_or(ptr::null(), ptr::from_ref)
}

/// Frees a list and its errors. Null is allowed.
///
/// # Safety
/// `list` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_error_list_free(list: *mut rnet_error_list) {
    // SAFETY: as promised by the caller.
    unsafe { free(list) }
}

/// What a subscriber has counted for one publisher. Initialise it with RNET_PUBLISHER_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_publisher_stats {
    /// sizeof(rnet_publisher_stats), set by the initialiser.
    pub struct_size: usize,
    /// The publisher's id; 0 in the entry that sums the oldest former publishers.
    pub publisher: u64,
    /// Its node, valid until the list is freed; "" if unknown.
    pub node: *const c_char,
    /// Whether it is still connected.
    pub connected: bool,
    /// Messages received.
    pub received: u64,
    /// Messages lost because the subscriber was too slow, and the publisher did not wait for it.
    pub lost_overrun: u64,
    /// Messages lost between hosts.
    pub lost_link: u64,
    /// Messages lost because the publisher exited or restarted.
    pub lost_restart: u64,
    /// Messages lost because the publisher had detached the subscriber.
    pub lost_detached: u64,
    /// Messages that the subscriber passed over: older than the last that it keeps.
    pub skipped: u64,
    /// Messages not delivered because they were older than the publisher's lifespan.
    pub expired: u64,
    /// Periods of the subscriber's deadline in which the publisher sent nothing.
    pub deadline_missed: u64,
    /// Messages that could not be decoded; `received` includes them.
    pub malformed: u64,
    /// Messages not taken yet.
    pub behind: u64,
    /// The age of the oldest of these, in ns.
    pub behind_age_ns: u64,
}

options!(rnet_publisher_stats);

/// What a subscriber has counted, by publisher. Freed by the caller with rnet_stats_list_free(). Any thread may read
/// it.
pub struct rnet_stats_list(Vec<(PublisherStats, CString)>);

impl From<Vec<PublisherStats>> for rnet_stats_list {
    fn from(stats: Vec<PublisherStats>) -> rnet_stats_list {
        let with_node = |stats: PublisherStats| {
            let node = c_text(&stats.node);
            (stats, node)
        };
        rnet_stats_list(stats.into_iter().map(with_node).collect())
    }
}

/// Number of publishers.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_stats_list_count(list: Option<&rnet_stats_list>) -> usize {
    list.map_or(0, |list| list.0.len())
}

/// The counts of one publisher.
///
/// Errors: RNET_INVALID_ARGUMENT beyond the end.
///
/// # Safety
/// `list` is a list, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_stats_list_get(
    list: *const rnet_stats_list,
    at: usize,
    out: *mut rnet_publisher_stats,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let list = unsafe { given(list, "list") }?;
        let (stats, node) = list.0.get(at).ok_or_else(|| {
            invalid(format!("the list has {} entries; there is none at {at}", list.0.len()))
        })?;
        let result = rnet_publisher_stats {
            struct_size: size_of::<rnet_publisher_stats>(),
            publisher: stats.publisher,
            node: node.as_ptr(),
            connected: stats.connected,
            received: stats.received,
            lost_overrun: stats.lost.overrun,
            lost_link: stats.lost.link,
            lost_restart: stats.lost.restart,
            lost_detached: stats.lost.detached,
            skipped: stats.skipped,
            expired: stats.expired,
            deadline_missed: stats.deadline_missed,
            malformed: stats.malformed,
            behind: stats.behind.messages,
            behind_age_ns: stats.behind.age_ns,
        };
        // SAFETY: as promised by the caller.
        unsafe { fill(out, result) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a list. Null is allowed.
///
/// # Safety
/// `list` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_stats_list_free(list: *mut rnet_stats_list) {
    // SAFETY: as promised by the caller.
    unsafe { free(list) }
}

/// What `read` gives for a subscriber. Does not end a borrowed sample.
///
/// # Safety
/// `subscriber` is a subscriber.
unsafe fn of_subscriber<R>(
    subscriber: *const rnet_subscriber,
    read: impl FnOnce(&Subscriber<[u8]>) -> R,
) -> Outcome<R> {
    // SAFETY: as promised by the caller.
    unsafe { receiving_of(subscriber) }?.with_here(|it| it.subscriber.read(read))
}

/// # Safety
/// Both are null or valid for a write.
unsafe fn write_backlog(backlog: Backlog, messages: *mut u64, age_ns: *mut u64) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe {
        write(messages, backlog.messages)?;
        write(age_ns, backlog.age_ns)
    }
}

/// # Safety
/// Both are null or valid for a write.
unsafe fn write_liveliness(
    counts: LivelinessCounts,
    alive: *mut usize,
    not_alive: *mut usize,
) -> Outcome {
    // SAFETY: as promised by the caller.
    unsafe {
        write(alive, counts.alive)?;
        write(not_alive, counts.not_alive)
    }
}

/// Received and lost messages by publisher, including former publishers. The caller frees the list with
/// rnet_stats_list_free(). Does not end a borrowed sample.
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_stats(
    subscriber: *mut rnet_subscriber,
    out: *mut *mut rnet_stats_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let stats = || unsafe { of_subscriber(subscriber, Subscriber::stats) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, rnet_stats_list::from(stats()?))) }
}

/// Its backlog from all publishers together: the number of unread messages, and the age of the oldest in ns. Does not
/// end a borrowed sample.
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `messages` and `age_ns` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_behind(
    subscriber: *mut rnet_subscriber,
    messages: *mut u64,
    age_ns: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let behind = unsafe { of_subscriber(subscriber, Subscriber::behind) }?;
        // SAFETY: as promised by the caller.
        unsafe { write_backlog(behind, messages, age_ns) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Number of connected publishers that are alive, and of those that have not shown a sign of life for longer than their
/// lease. Does not end a borrowed sample.
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `alive` and `not_alive` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_liveliness(
    subscriber: *mut rnet_subscriber,
    alive: *mut usize,
    not_alive: *mut usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let counts = unsafe { of_subscriber(subscriber, Subscriber::liveliness) }?;
        // SAFETY: as promised by the caller.
        unsafe { write_liveliness(counts, alive, not_alive) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The publishers that are matched now. The caller frees the list with rnet_peer_list_free(). Does not end a borrowed
/// sample.
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_publishers(
    subscriber: *mut rnet_subscriber,
    out: *mut *mut rnet_peer_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let peers = || unsafe { of_subscriber(subscriber, Subscriber::publishers) };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, rnet_peer_list::from(peers()?))) }
}

/// As rnet_subscriber_stats(), for a subscription; its callback may call it, too. Former publishers are one entry.
///
/// # Safety
/// `subscription` is a subscription, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_stats(
    subscription: *const rnet_subscription,
    out: *mut *mut rnet_stats_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let stats = || Outcome::Ok(unsafe { subscription_of(subscription) }?.stats());
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, rnet_stats_list::from(stats()?))) }
}

/// As rnet_subscriber_behind(), for a subscription.
///
/// # Safety
/// `subscription` is a subscription, `messages` and `age_ns` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_behind(
    subscription: *const rnet_subscription,
    messages: *mut u64,
    age_ns: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let behind = unsafe { subscription_of(subscription) }?.behind();
        // SAFETY: as promised by the caller.
        unsafe { write_backlog(behind, messages, age_ns) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_subscriber_liveliness(), for a subscription.
///
/// # Safety
/// `subscription` is a subscription, `alive` and `not_alive` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_liveliness(
    subscription: *const rnet_subscription,
    alive: *mut usize,
    not_alive: *mut usize,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let counts = unsafe { subscription_of(subscription) }?.liveliness();
        // SAFETY: as promised by the caller.
        unsafe { write_liveliness(counts, alive, not_alive) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// As rnet_subscriber_lost(), for a subscription.
///
/// # Safety
/// `subscription` is a subscription, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_lost(
    subscription: *const rnet_subscription,
    out: *mut rnet_loss_counts,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let lost = unsafe { subscription_of(subscription) }?.lost();
        // SAFETY: as promised by the caller.
        unsafe { fill(out, rnet_loss_counts::from(lost)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Number of publishers that serve the callback, as last seen by its thread. 0 if `subscription` is null or closed.
///
/// # Safety
/// `subscription` is null or a subscription.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_publisher_count(
    subscription: *const rnet_subscription,
) -> usize {
    // SAFETY: as promised by the caller.
    enter_or(0, || Ok(unsafe { subscription_of(subscription) }?.publisher_count()))
}

/// What `read` gives for a publisher; 0 if that is null, closed or used by another thread.
///
/// # Safety
/// `publisher` is null or a publisher.
unsafe fn count_of(
    publisher: *const rnet_publisher,
    read: impl FnOnce(&Publisher<[u8]>) -> u64,
) -> u64 {
    // SAFETY: as promised by the caller.
    enter_or(0, || unsafe { publisher_of(publisher) }?.with_here(|publisher| Ok(read(publisher))))
}

/// The id of a publisher, as in rnet_sample_publisher(). 0 if it is null, closed or used by another thread.
///
/// # Safety
/// `publisher` is null or a publisher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_id(publisher: *const rnet_publisher) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { count_of(publisher, Publisher::id) }
}

/// Number of messages sent. 0 as for rnet_publisher_id().
///
/// # Safety
/// `publisher` is null or a publisher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_sent(publisher: *const rnet_publisher) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { count_of(publisher, Publisher::sent) }
}

/// Number of deadline periods so far without a message. 0 without a deadline, and as for rnet_publisher_id().
///
/// # Safety
/// `publisher` is null or a publisher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_deadline_missed(publisher: *const rnet_publisher) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe { count_of(publisher, Publisher::deadline_missed) }
}

/// The subscribers that are served now. The caller frees the list with rnet_peer_list_free().
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_subscribers(
    publisher: *mut rnet_publisher,
    out: *mut *mut rnet_peer_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let peers =
        || unsafe { publisher_of(publisher) }?.with_here(|publisher| Ok(publisher.subscribers()));
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, rnet_peer_list::from(peers()?))) }
}

/// The errors of subscribers that cannot be served: incompatible types or quality of service. The caller frees the
/// list with rnet_error_list_free().
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `publisher` is a publisher, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_incompatible(
    publisher: *mut rnet_publisher,
    out: *mut *mut rnet_error_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let errors = unsafe { publisher_of(publisher) }?
            .with_here(|publisher| Ok(publisher.incompatible()))?;
        let errors = errors.into_iter().map(|error| Failure::from(error).into_error());
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_error_list(errors.collect())) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Why messages are lost.
#[allow(dead_code, reason = "options hold its numbers")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_loss_cause {
    /// The subscriber was too slow.
    RNET_LOSS_OVERRUN = 0,
    /// Lost between hosts.
    RNET_LOSS_LINK = 1,
    /// The publisher restarted.
    RNET_LOSS_RESTART = 2,
    /// The subscriber was detached.
    RNET_LOSS_DETACHED = 3,
}

/// Makes each subscriber count `count` messages as lost before the next message, for an rnet_loss_cause: for messages
/// that the publisher knows to be missing. Sends no message.
///
/// Errors: RNET_INVALID_ARGUMENT for another cause; RNET_CLOSED, RNET_WRONG_THREAD, RNET_IO.
///
/// # Safety
/// `publisher` is a publisher, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_publisher_publish_gap(
    publisher: *mut rnet_publisher,
    cause: i32,
    count: u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        let known = usize::try_from(cause).ok().and_then(|at| LossCause::ALL.get(at));
        let known = *known.ok_or_else(|| invalid(format!("{cause} is not an rnet_loss_cause")))?;
        // SAFETY: as promised by the caller.
        let object = unsafe { publisher_of(publisher) }?;
        object.with(|publisher| Ok(publisher.publish_gap(known, count)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The names of the other nodes of this host. The caller frees the list with rnet_name_list_free().
///
/// Errors: RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_peers(
    node: *const rnet_node,
    out: *mut *mut rnet_name_list,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    let peers = || Outcome::Ok(unsafe { node_of(node) }?.get()?.peers());
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, rnet_name_list::new(&peers()?))) }
}

/// Number of errors so far in the node's callbacks, timers and handlers, as reported with
/// rnet_report_callback_error(). 0 if `node` is null or closed.
///
/// # Safety
/// `node` is null or a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_callback_errors(node: *const rnet_node) -> u64 {
    // SAFETY: as promised by the caller.
    enter_or(0, || Ok(unsafe { node_of(node) }?.get()?.callback_errors()))
}
