//! What endpoints and nodes have counted, and their peers.

use std::ffi::c_char;
use std::ptr;

use rnet::state::Value;
use rnet::{
    Backlog, LivelinessCounts, LossCause, LossCounts, PeerInfo, Publisher, PublisherStats,
    Subscriber,
};

use crate::border::{enter, enter_or, free, give};
use crate::error::{Failure, Outcome, invalid, rnet_code, rnet_error};
use crate::node::{node_of, rnet_node};
use crate::options::{fill, options};
use crate::publisher::{publisher_of, rnet_publisher};
use crate::state_value::{give_value, rnet_value};
use crate::subscriber::{receiving_of, rnet_subscriber, rnet_subscription, subscription_of};
use crate::texts::{Texts, element};

/// A publisher or subscriber. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_peer {
    /// Its id.
    pub id: u64,
    /// Its node.
    pub node: *const c_char,
}

/// Publishers or subscribers. Freed by the caller with rnet_peer_list_free(). Any thread may read it.
pub struct rnet_peer_list {
    peers: Vec<rnet_peer>,
    _texts: Texts,
}

impl From<Vec<PeerInfo>> for rnet_peer_list {
    fn from(peers: Vec<PeerInfo>) -> rnet_peer_list {
        let mut texts = Texts::default();
        let mut view = |peer: PeerInfo| rnet_peer { id: peer.id, node: texts.add(&peer.node) };
        let peers = peers.into_iter().map(&mut view).collect();
        rnet_peer_list { peers, _texts: texts }
    }
}

/// A peer, valid until the list is freed; null beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_peer_list_get(list: Option<&rnet_peer_list>, at: usize) -> *const rnet_peer {
    list.map_or(ptr::null(), |list| element(&list.peers, at))
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

/// An error, which belongs to the list; null beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_error_list_get(
    list: Option<&rnet_error_list>,
    at: usize,
) -> *const rnet_error {
    list.map_or(ptr::null(), |list| element(&list.0, at))
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

/// What a subscriber has counted for one publisher. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_publisher_stats {
    /// The publisher's id; 0 in the entry that sums the oldest former publishers.
    pub publisher: u64,
    /// Its node; "" if unknown.
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

/// What a subscriber has counted, by publisher. Freed by the caller with rnet_stats_list_free(). Any thread may read
/// it.
pub struct rnet_stats_list {
    stats: Vec<rnet_publisher_stats>,
    _texts: Texts,
}

impl From<Vec<PublisherStats>> for rnet_stats_list {
    fn from(stats: Vec<PublisherStats>) -> rnet_stats_list {
        let mut texts = Texts::default();
        let mut view = |stats: PublisherStats| rnet_publisher_stats {
            publisher: stats.publisher,
            node: texts.add(&stats.node),
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
        let stats = stats.into_iter().map(&mut view).collect();
        rnet_stats_list { stats, _texts: texts }
    }
}

/// The counts of one publisher, valid until the list is freed; null beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_stats_list_get(
    list: Option<&rnet_stats_list>,
    at: usize,
) -> *const rnet_publisher_stats {
    list.map_or(ptr::null(), |list| element(&list.stats, at))
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

/// What a subscriber has counted for all publishers together. Initialise it with RNET_SUBSCRIBER_COUNTS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_subscriber_counts {
    /// sizeof(rnet_subscriber_counts), set by the initialiser.
    pub struct_size: usize,
    /// Messages lost because the subscriber was too slow, and the publisher did not wait for it.
    pub lost_overrun: u64,
    /// Messages lost between hosts.
    pub lost_link: u64,
    /// Messages lost because a publisher exited or restarted.
    pub lost_restart: u64,
    /// Messages lost because a publisher had detached the subscriber.
    pub lost_detached: u64,
    /// Messages not taken yet.
    pub behind: u64,
    /// The age of the oldest of these, in ns.
    pub behind_age_ns: u64,
    /// Number of connected publishers that are alive.
    pub alive: usize,
    /// Number of those that have not shown a sign of life for longer than their lease.
    pub not_alive: usize,
}

options!(rnet_subscriber_counts);

impl rnet_subscriber_counts {
    fn new(lost: LossCounts, behind: Backlog, publishers: LivelinessCounts) -> Self {
        rnet_subscriber_counts {
            struct_size: size_of::<Self>(),
            lost_overrun: lost.overrun,
            lost_link: lost.link,
            lost_restart: lost.restart,
            lost_detached: lost.detached,
            behind: behind.messages,
            behind_age_ns: behind.age_ns,
            alive: publishers.alive,
            not_alive: publishers.not_alive,
        }
    }
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
    unsafe { enter(error, || give(out, of_subscriber(subscriber, Subscriber::stats)?.into())) }
}

/// Its losses, its backlog and its publishers in numbers. Does not end a borrowed sample.
///
/// Errors: RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_get_counts(
    subscriber: *mut rnet_subscriber,
    out: *mut rnet_subscriber_counts,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let read = |it: &Subscriber<[u8]>| {
        rnet_subscriber_counts::new(it.lost(), it.behind(), it.liveliness())
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || fill(out, of_subscriber(subscriber, read)?)) }
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
    let read = Subscriber::publishers;
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, of_subscriber(subscriber, read)?.into())) }
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
    unsafe { enter(error, || give(out, subscription_of(subscription)?.stats().into())) }
}

/// As rnet_subscriber_get_counts(), for a subscription.
///
/// # Safety
/// `subscription` is a subscription, `out` initialised, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscription_get_counts(
    subscription: *const rnet_subscription,
    out: *mut rnet_subscriber_counts,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let it = unsafe { subscription_of(subscription) }?;
        let counts = rnet_subscriber_counts::new(it.lost(), it.behind(), it.liveliness());
        // SAFETY: as promised by the caller.
        unsafe { fill(out, counts) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
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
    let peers = || unsafe { publisher_of(publisher) }?.with_here(|it| Ok(it.subscribers()));
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give(out, peers()?.into())) }
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
        let errors = unsafe { publisher_of(publisher) }?.with_here(|it| Ok(it.incompatible()))?;
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
        unsafe { publisher_of(publisher) }?.with(|it| Ok(it.publish_gap(known, count)?))
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The names of the other nodes of this host, as a list of strings. The caller frees it with rnet_value_free().
///
/// Errors: RNET_CLOSED.
///
/// # Safety
/// `node` is a node, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_peers(
    node: *const rnet_node,
    out: *mut *mut rnet_value,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || give_value(out, Value::list(node_of(node)?.get()?.peers()))) }
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
