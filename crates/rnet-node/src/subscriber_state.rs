//! The part of a subscriber that other threads see.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rnet_core::{Error, Lane};
use rnet_shm::os::bell::Bells;
use rnet_shm::os::fork::ForkGuard;

use crate::inbox::Inbox;
use crate::inspection_shortage::ShortageReporter;
use crate::interrupt::WaitControl;
use crate::match_event::{Callback, Callbacks, DeadlineMissed, LivelinessChange, MatchCallbacks};
use crate::matched_publishers::MatchedPublishers;
use crate::sync::lock;
use crate::trace_publisher::TraceSlot;

/// Something is in the inbox.
const INBOX: u8 = 1;
/// The subscription is traced, and the receiver has not looked away from that.
const TRACE: u8 = 2;

/// See the module.
pub struct SubscriberState {
    inbox: Mutex<Inbox>,
    /// What the receiver is to look at beside its channels: [`INBOX`], [`TRACE`].
    attention: AtomicU8,
    /// Where records go while it is traced.
    pub trace: TraceSlot,
    pub waiting: Arc<WaitControl>,
    /// In which process it was made.
    pub fork_guard: ForkGuard,
    /// 0 unknown, 1 bulk, 2 urgent.
    lane: AtomicU64,
    pub match_callbacks: Arc<MatchCallbacks>,
    pub deadlines: Arc<Callbacks<DeadlineMissed>>,
    pub liveliness: Arc<Callbacks<LivelinessChange>>,
    /// For those who do not have the reader.
    pub matched_publishers: MatchedPublishers,
    pub shortage: ShortageReporter,
}

impl SubscriberState {
    pub fn new(
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

    pub fn inbox(&self) -> MutexGuard<'_, Inbox> {
        lock(&self.inbox)
    }

    /// Brings something to the subscriber.
    pub fn update_inbox(&self, put: impl FnOnce(&mut Inbox)) {
        put(&mut self.inbox());
        self.attention.fetch_or(INBOX, Ordering::Release);
        self.waiting.ring();
    }

    /// Whether the receiver is to look at something beside its channels.
    #[inline]
    pub fn needs_attention(&self) -> bool {
        self.attention.load(Ordering::Acquire) != 0
    }

    /// Whether something is in the inbox.
    #[inline]
    pub fn has_inbox_items(&self) -> bool {
        self.attention.load(Ordering::Acquire) & INBOX != 0
    }

    /// The receiver takes what is in the inbox.
    pub fn take_inbox(&self) -> Inbox {
        self.attention.fetch_and(!INBOX, Ordering::Relaxed);
        std::mem::take(&mut *self.inbox())
    }

    /// Whether the receiver is to trace what it takes.
    pub fn is_traced(&self) -> bool {
        self.attention.load(Ordering::Relaxed) & TRACE != 0
    }

    /// The receiver is to trace from now on.
    pub fn resume_tracing(&self) {
        self.attention.fetch_or(TRACE, Ordering::Release);
    }

    /// The receiver looks at its traces no more, until it is told again.
    pub fn pause_tracing(&self) {
        self.attention.fetch_and(!TRACE, Ordering::Relaxed);
    }

    /// Wakes those who wait for a publisher: they are to look at [`SubscriberState::shortage`].
    pub fn notify_shortage(&self) {
        self.matched_publishers.changed().notify_all();
        self.update_inbox(|_| ());
    }

    /// Tells of a publisher that cannot be followed.
    pub fn push_refusal(&self, error: Error) {
        self.matched_publishers.push_refused(error.clone());
        self.update_inbox(|inbox| inbox.push_error(error));
    }

    /// Adds a callback for periods of the deadline without a message.
    pub fn on_deadline(&self, callback: Callback<DeadlineMissed>) {
        // In a forked child there is no thread to call it.
        if !self.fork_guard.is_from_parent() {
            self.deadlines.add(callback);
        }
    }

    pub fn bell(&self) -> u64 {
        self.waiting.bell()
    }

    pub fn set_lane(&self, lane: Lane) {
        self.lane.store(if lane == Lane::Urgent { 2 } else { 1 }, Ordering::Release);
    }

    pub fn lane(&self) -> Option<Lane> {
        match self.lane.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Lane::Bulk),
            _ => Some(Lane::Urgent),
        }
    }
}
