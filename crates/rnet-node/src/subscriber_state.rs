//! The part of a subscriber that other threads access.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rnet_core::{Error, Lane};
use rnet_shm::os::bell::Bells;
use rnet_shm::os::fork::ForkGuard;

use crate::callbacks::Callbacks;
use crate::inbox::Inbox;
use crate::inspection_shortage::ShortageReporter;
use crate::interrupt::WaitControl;
use crate::match_event::{DeadlineMissed, LivelinessChange, MatchCallbacks};
use crate::matched_publishers::MatchedPublishers;
use crate::sync::lock;
use crate::trace_publisher::TraceSlot;

/// The inbox is not empty.
const INBOX: u8 = 1;
/// The subscription is traced, and the receiver has not paused tracing.
const TRACE: u8 = 2;

/// See the module.
pub struct SubscriberState {
    inbox: Mutex<Inbox>,
    /// What the receiver must check besides its channels: [`INBOX`], [`TRACE`].
    attention: AtomicU8,
    /// The destination of records while the subscription is traced.
    pub(crate) trace: TraceSlot,
    /// Stops and wakes the thread that waits for messages.
    pub(crate) waiting: Arc<WaitControl>,
    /// Detects use in a forked child of the process that made it.
    pub(crate) fork_guard: ForkGuard,
    /// 0 unknown, 1 bulk, 2 urgent.
    lane: AtomicU64,
    /// Callbacks for changes of the matches.
    pub(crate) match_callbacks: Arc<MatchCallbacks>,
    /// Callbacks for missed deadlines.
    pub(crate) deadlines: Arc<Callbacks<DeadlineMissed>>,
    /// Callbacks for the liveliness of publishers.
    pub(crate) liveliness: Arc<Callbacks<LivelinessChange>>,
    /// For threads that do not have the reader.
    pub(crate) matched_publishers: MatchedPublishers,
    /// Reports shortages to the waits for a match.
    pub(crate) shortage: ShortageReporter,
}

impl SubscriberState {
    pub(crate) fn new(
        fork_guard: ForkGuard,
        bells: Arc<Bells>,
        bell: u64,
        shortage: ShortageReporter,
    ) -> SubscriberState {
        SubscriberState {
            inbox: Mutex::default(),
            attention: AtomicU8::new(0),
            trace: TraceSlot::default(),
            waiting: Arc::new(WaitControl::new(bells, bell, fork_guard)),
            fork_guard,
            lane: AtomicU64::new(0),
            match_callbacks: Arc::default(),
            deadlines: Arc::default(),
            liveliness: Arc::default(),
            matched_publishers: MatchedPublishers::default(),
            shortage,
        }
    }

    pub(crate) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        lock(&self.inbox)
    }

    /// Puts something into the subscriber's inbox.
    pub fn update_inbox(&self, put: impl FnOnce(&mut Inbox)) {
        put(&mut self.inbox());
        self.attention.fetch_or(INBOX, Ordering::Release);
        self.waiting.ring();
    }

    /// Whether the receiver must check more than its channels.
    #[inline]
    pub fn needs_attention(&self) -> bool {
        self.attention.load(Ordering::Acquire) != 0
    }

    /// Whether the inbox has items.
    #[inline]
    pub fn has_inbox_items(&self) -> bool {
        self.attention.load(Ordering::Acquire) & INBOX != 0
    }

    /// Takes the items of the inbox.
    pub fn take_inbox(&self) -> Inbox {
        self.attention.fetch_and(!INBOX, Ordering::Relaxed);
        std::mem::take(&mut *self.inbox())
    }

    /// Whether the receiver traces the messages that it takes.
    pub fn is_traced(&self) -> bool {
        self.attention.load(Ordering::Relaxed) & TRACE != 0
    }

    /// Makes the receiver trace.
    pub fn resume_tracing(&self) {
        self.attention.fetch_or(TRACE, Ordering::Release);
    }

    /// Makes the receiver stop tracing until [`SubscriberState::resume_tracing`].
    pub fn pause_tracing(&self) {
        self.attention.fetch_and(!TRACE, Ordering::Relaxed);
    }

    /// Wakes the threads that wait for a publisher, so that they check [`SubscriberState::shortage`].
    pub fn notify_shortage(&self) {
        self.matched_publishers.changed().notify_all();
        self.update_inbox(|_| ());
    }

    /// Reports a publisher that cannot be followed.
    pub fn push_refusal(&self, error: Error) {
        self.matched_publishers.push_refused(error.clone());
        self.update_inbox(|inbox| inbox.push_error(error));
    }

    /// The bell that wakes the receiver.
    pub(crate) fn bell(&self) -> u64 {
        self.waiting.bell()
    }

    pub(crate) fn set_lane(&self, lane: Lane) {
        self.lane.store(if lane == Lane::Urgent { 2 } else { 1 }, Ordering::Release);
    }

    /// The lane; `None` until it is known.
    pub(crate) fn lane(&self) -> Option<Lane> {
        match self.lane.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Lane::Bulk),
            _ => Some(Lane::Urgent),
        }
    }
}
