//! Match events for users, and the matches of a publisher.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_shm::channel::reader_table::ReaderTable;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::callbacks::Callbacks;
use crate::inspection_shortage::ShortageReporter;
use crate::node_event::NodeEvent;
use crate::sync::lock;

/// The peer of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// Id of the publisher or subscription.
    pub id: u64,
    /// Name of its node.
    pub node: String,
}

/// A match change of a publisher or subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchEvent {
    /// A peer has joined and is served.
    Matched(PeerInfo),
    /// A peer has closed its end.
    Unmatched(PeerInfo),
    /// A peer's process has died.
    Lost(PeerInfo),
    /// A proxy subscription represents more or fewer endpoints than before.
    Changed(PeerInfo),
    /// A subscription waits for admission by a publisher that defers it.
    AdmissionRequested(PeerInfo),
    /// A peer of the same topic is incompatible; the error names both sides.
    Incompatible(Error),
}

/// Periods of a deadline in which the publisher sent nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineMissed {
    /// The publisher that sent nothing, and its node.
    pub publisher: PeerInfo,
    /// Missed periods since the last such event, 1 or more.
    pub missed: u64,
    /// Missed periods of this publisher so far.
    pub total: u64,
}

/// Number of a subscriber's publishers that are alive or not alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivelinessCounts {
    /// Connected publishers that are alive.
    pub alive: usize,
    /// Connected publishers that have not shown a sign of life for longer than their lease.
    pub not_alive: usize,
}

/// A publisher has become alive, or is no longer alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivelinessChange {
    /// The publisher and its node.
    pub publisher: PeerInfo,
    /// Whether it is alive now. A publisher that has left or died is not alive, and is in neither count.
    pub alive: bool,
    /// The counts of connected publishers after the change.
    pub counts: LivelinessCounts,
}

/// The callbacks of one endpoint.
pub type MatchCallbacks = Callbacks<MatchEvent>;

/// A notification for the user, delivered after the matching lock is released.
pub enum Notice {
    /// A node has joined, left or died.
    Node(NodeEvent),
    /// A match of an endpoint has changed: its callbacks, and the change.
    Endpoint(Arc<MatchCallbacks>, MatchEvent),
    /// An error for the node's log.
    Report(Error),
    /// Calls callbacks of another kind of event.
    Call(Box<dyn FnOnce() + Send>),
}

/// Maximum number of errors kept for subscribers that a publisher cannot serve.
const MAX_INCOMPATIBLE: usize = 64;

/// Longest single wait; an unlimited wait repeats it.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Counts the changes of an endpoint's matches, and lets threads wait for a change; a futex.
///
/// Not a `Condvar`, because that continues to sleep when a signal arrives.
#[derive(Debug, Default)]
pub struct ChangeCounter(AtomicU32);

impl ChangeCounter {
    /// Wakes all waiting threads after a change.
    pub(crate) fn notify_all(&self) {
        self.0.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    /// Number of changes so far. Read it first, then inspect the matches, then wait.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits until `check` returns a value; `None` on a timeout. After a signal the wait continues.
    pub fn wait_until<R>(
        &self,
        until: Option<Instant>,
        mut check: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        loop {
            let seen = self.count();
            if let Some(found) = check() {
                return Some(found);
            }
            let left =
                until.map_or(MAX_WAIT, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            let _ = self.wait(seen, left);
        }
    }

    /// Waits until the count exceeds `seen`, at most for `limit`.
    ///
    /// # Errors
    /// `Interrupted` if a signal came first.
    pub fn wait(&self, seen: u32, limit: Duration) -> Result<()> {
        let limit = rustix::time::Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        match futex::wait(&self.0, futex::Flags::PRIVATE, seen, Some(&limit)) {
            Err(Errno::INTR) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }
}

/// Lets threads wait for changes of the matches of a publisher, or of a subscriber with a callback, without
/// access to it; made by `Publisher::match_changes` and [`crate::Subscription::match_changes`].
pub type MatchChanges = Arc<ChangeCounter>;

/// The matches of a publisher, as its handle sees them.
pub struct PublisherState {
    /// The matches, under a lock: see [`PublisherState::lock`].
    inner: Mutex<PublisherMatches>,
    /// Reports shortages to the waits for a match.
    pub(crate) shortage: ShortageReporter,
    /// Counts the changes of the matches; waits sleep on it.
    pub(crate) changed: Arc<ChangeCounter>,
    /// Callbacks for changes of the matches.
    pub(crate) match_callbacks: Arc<MatchCallbacks>,
    /// Callbacks for missed deadlines.
    pub(crate) deadlines: Arc<Callbacks<DeadlineMissed>>,
}

/// The matches of a publisher.
#[derive(Default)]
pub(crate) struct PublisherMatches {
    /// The subscribers that are served.
    pub matched: Vec<PeerInfo>,
    /// Number of endpoints that each proxy among them represents.
    pub endpoint_counts: BTreeMap<u64, u32>,
    /// Subscriptions that wait for admission by a publisher that defers it.
    pub awaiting_admission: Vec<PeerInfo>,
    /// Errors of subscribers that cannot be served, oldest first.
    pub incompatible: Vec<Error>,
    /// How many of these errors a wait has returned.
    pub reported: usize,
}

impl PublisherMatches {
    /// Adds the error of a subscriber that cannot be served; drops the oldest if there are too many.
    pub fn push_incompatible(&mut self, error: Error) {
        if self.incompatible.len() == MAX_INCOMPATIBLE {
            self.incompatible.remove(0);
            self.reported = self.reported.saturating_sub(1);
        }
        self.incompatible.push(error);
    }
}

impl PublisherState {
    pub(crate) fn new(shortage: ShortageReporter) -> PublisherState {
        let (inner, changed, match_callbacks, deadlines) = Default::default();
        PublisherState { inner, shortage, changed, match_callbacks, deadlines }
    }

    /// Number of subscribers served, including those that proxies represent.
    pub fn count(&self, readers: &ReaderTable) -> usize {
        let matches = self.lock();
        if matches.endpoint_counts.is_empty() {
            return readers.len();
        }
        let ends = |id| matches.endpoint_counts.get(id).map_or(1, |ends| *ends as usize);
        readers.readers().iter().map(|(id, _)| ends(id)).sum()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PublisherMatches> {
        lock(&self.inner)
    }
}

/// Adds an event of an endpoint, unless the endpoint has no callback.
pub(crate) fn push_notice(
    notices: &mut Vec<Notice>,
    match_callbacks: Arc<MatchCallbacks>,
    event: MatchEvent,
) {
    if !match_callbacks.is_empty() {
        notices.push(Notice::Endpoint(match_callbacks, event));
    }
}

/// A bell number that can change while other threads read it.
#[derive(Debug)]
pub(crate) struct BellCell(AtomicU64);

impl BellCell {
    pub fn new(bell: u64) -> BellCell {
        BellCell(AtomicU64::new(bell))
    }
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
    pub fn set(&self, bell: u64) {
        self.0.store(bell, Ordering::Release);
    }
}
