//! What users are told of matching, and by which callbacks.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_shm::channel::reader_table::ReaderTable;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::inspection_shortage::ShortageReporter;
use crate::node_event::NodeEvent;
use crate::sync::lock;

/// One end of a match, as the other end sees it.
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
    /// A subscription that is a proxy stands for more or fewer than before.
    Changed(PeerInfo),
    /// A subscription waits for a publisher that defers to admit it.
    #[doc(hidden)]
    AdmissionRequested(PeerInfo),
    /// A peer of the same topic does not fit; the error names both sides.
    Incompatible(Error),
}

/// Periods of a deadline in which nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineMissed {
    /// The publisher that sent nothing, and its node.
    pub publisher: PeerInfo,
    /// Missed periods since the last such event, 1 or more.
    pub missed: u64,
    /// All of this publisher so far.
    pub total: u64,
}

/// How many of a subscriber's publishers are alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivelinessCounts {
    /// Publishers that are there and alive.
    pub alive: usize,
    /// Publishers that are there and have not shown that they are alive for longer than their lease.
    pub not_alive: usize,
}

/// A publisher has become alive, or is so no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivelinessChange {
    /// The publisher and its node.
    pub publisher: PeerInfo,
    /// Whether it is alive now. One that has left or died is not, and is in neither count.
    pub alive: bool,
    /// The publishers that are there, after the change.
    pub counts: LivelinessCounts,
}

pub type MatchCallback = Box<dyn FnMut(&MatchEvent) + Send>;

/// The user's callbacks of one kind of event.
///
/// They are called without a lock on the list: a callback may add another, or create and close
/// endpoints, which looks at the list.
pub struct Callbacks<E> {
    list: Mutex<Vec<Arc<Mutex<Callback<E>>>>>,
    any: AtomicBool,
}

pub type Callback<E> = Box<dyn FnMut(&E) + Send>;

/// The callbacks of one endpoint.
pub type MatchCallbacks = Callbacks<MatchEvent>;

impl<E> Default for Callbacks<E> {
    fn default() -> Self {
        Callbacks { list: Mutex::default(), any: AtomicBool::new(false) }
    }
}

impl<E> Callbacks<E> {
    pub fn add(&self, callback: Callback<E>) {
        let mut list = lock(&self.list);
        list.push(Arc::new(Mutex::new(callback)));
        self.any.store(true, Ordering::Release);
    }

    /// Calls all of them. One that panics is not called again; the others are, and then the panic goes on, so that the
    /// dispatch thread counts it.
    pub fn call(&self, event: &E) {
        let mut panicked = None;
        let list = lock(&self.list).clone();
        for callback in list {
            // Only the bulk dispatch thread calls, one event at a time.
            let mut call = lock(&callback);
            let called = catch_unwind(AssertUnwindSafe(|| call(event)));
            drop(call);
            if let Err(panic) = called {
                panicked = Some(panic);
                let mut list = lock(&self.list);
                list.retain(|other| !Arc::ptr_eq(other, &callback));
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }
}

/// Something to tell the user once the matching lock is free.
pub enum Notice {
    Node(NodeEvent),
    Endpoint(Arc<MatchCallbacks>, MatchEvent),
    /// An error for the node's log.
    Report(Error),
    /// Calls callbacks of another kind.
    Call(Box<dyn FnOnce() + Send>),
}

/// Errors kept of subscribers that a publisher cannot serve.
const MAX_INCOMPATIBLE: usize = 64;

/// One wait of those without an end.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Counts the changes of an endpoint's matches, and lets threads wait for one; a futex.
///
/// No `Condvar`, because that sleeps on when a signal arrives.
#[derive(Debug, Default)]
pub struct ChangeCounter(AtomicU32);

impl ChangeCounter {
    /// Tells everybody of a change.
    #[doc(hidden)]
    pub fn notify_all(&self) {
        self.0.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    /// Number of changes so far. Read it first, then inspect the matches, then wait.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits until `look` returns a value; `None` on a timeout. After a signal the wait continues.
    pub fn wait_until<R>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        loop {
            let seen = self.count();
            if let Some(found) = look() {
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

    /// Waits until there were more than `seen`, at the longest for `limit`.
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

/// Lets threads wait for changes of the matches of a publisher, or of a subscriber with a callback,
/// without it at hand; made by `Publisher::match_changes` and
/// [`crate::Subscription::match_changes`].
pub type MatchChanges = Arc<ChangeCounter>;

/// What a publisher handle can see of its matches.
pub struct PublisherState {
    pub inner: Mutex<PublisherMatches>,
    pub shortage: ShortageReporter,
    pub changed: Arc<ChangeCounter>,
    pub match_callbacks: Arc<MatchCallbacks>,
    pub deadlines: Arc<Callbacks<DeadlineMissed>>,
}

#[derive(Default)]
pub struct PublisherMatches {
    pub matched: Vec<PeerInfo>,
    /// How many endpoints each proxy among them stands for.
    pub endpoint_counts: BTreeMap<u64, u32>,
    /// Those that wait for a publisher that defers to admit them.
    pub awaiting_admission: Vec<PeerInfo>,
    pub incompatible: Vec<Error>,
    /// How many of those a wait has returned.
    pub reported: usize,
}

impl PublisherMatches {
    /// Notes a subscriber that cannot be served; the oldest make room for the newest.
    pub fn push_incompatible(&mut self, error: Error) {
        if self.incompatible.len() == MAX_INCOMPATIBLE {
            self.incompatible.remove(0);
            self.reported = self.reported.saturating_sub(1);
        }
        self.incompatible.push(error);
    }
}

impl PublisherState {
    pub fn new(shortage: ShortageReporter) -> PublisherState {
        let (inner, changed, match_callbacks, deadlines) = Default::default();
        PublisherState { inner, shortage, changed, match_callbacks, deadlines }
    }

    /// How many subscribers are served, those included for which proxies stand.
    pub fn count(&self, readers: &ReaderTable) -> usize {
        let matches = self.lock();
        if matches.endpoint_counts.is_empty() {
            return readers.len();
        }
        let ends = |id| matches.endpoint_counts.get(id).map_or(1, |ends| *ends as usize);
        readers.readers().iter().map(|(id, _)| ends(id)).sum()
    }

    pub fn lock(&self) -> MutexGuard<'_, PublisherMatches> {
        lock(&self.inner)
    }
}

pub fn push_notice(
    notices: &mut Vec<Notice>,
    match_callbacks: Arc<MatchCallbacks>,
    event: MatchEvent,
) {
    if !match_callbacks.is_empty() {
        notices.push(Notice::Endpoint(match_callbacks, event));
    }
}

/// A bell number that can change while others read it.
#[derive(Debug)]
pub struct BellCell(AtomicU64);

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
