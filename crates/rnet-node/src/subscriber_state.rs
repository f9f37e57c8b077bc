//! The part of a subscriber that other threads see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rnet_core::{Error, Lane};
use rnet_shm::bell::Bells;
use rnet_shm::fork::ForkGuard;

use crate::inbox::Inbox;
use crate::interrupt::Waiting;
use crate::match_event::{Callback, Callbacks, DeadlineMissed, Hooks, LivelinessChange};
use crate::served::Served;

/// See the module.
pub struct SubscriberState {
    inbox: Mutex<Inbox>,
    /// Whether something is in the inbox.
    pub full: AtomicBool,
    pub waiting: Arc<Waiting>,
    /// In which process it was made.
    pub fork_guard: ForkGuard,
    /// 0 unknown, 1 bulk, 2 urgent.
    lane: AtomicU64,
    pub hooks: Arc<Hooks>,
    pub deadlines: Arc<Callbacks<DeadlineMissed>>,
    pub liveliness: Arc<Callbacks<LivelinessChange>>,
    /// For those who do not have the reader.
    pub served: Served,
}

impl SubscriberState {
    pub fn new(fork_guard: ForkGuard, bells: Arc<Bells>, bell: u64) -> SubscriberState {
        SubscriberState {
            inbox: Mutex::default(),
            full: AtomicBool::new(false),
            waiting: Arc::new(Waiting::new(bells, bell, fork_guard)),
            fork_guard,
            lane: AtomicU64::new(0),
            hooks: Arc::default(),
            deadlines: Arc::default(),
            liveliness: Arc::default(),
            served: Served::default(),
        }
    }

    pub fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings something to the subscriber.
    pub fn bring(&self, put: impl FnOnce(&mut Inbox)) {
        put(&mut self.inbox());
        self.full.store(true, Ordering::Release);
        self.waiting.ring();
    }

    /// Tells of a publisher that cannot be followed.
    pub fn refuse(&self, error: Error) {
        self.served.refuse(error.clone());
        self.bring(|inbox| inbox.note(error));
    }

    /// Adds a callback for periods of the deadline without a message.
    pub fn on_deadline(&self, callback: Callback<DeadlineMissed>) {
        // In a forked child there is no thread to call it.
        if !self.fork_guard.is_parents() {
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
