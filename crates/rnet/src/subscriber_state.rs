//! The part of a subscriber that other threads see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rnet_core::{Error, Lane};
use rnet_shm::bell::Bells;
use rnet_shm::fork::Birth;

use crate::inbox::Inbox;
use crate::match_event::{BellCell, Hooks};
use crate::served::Served;

/// See the module.
pub(crate) struct SubscriberState {
    inbox: Mutex<Inbox>,
    /// Whether something is in the inbox.
    pub(crate) full: AtomicBool,
    /// Asked by an [`crate::Interrupter`]: the wait that goes on, or the next one, is to end.
    pub(crate) stop: AtomicBool,
    pub(crate) bell: BellCell,
    /// In which process it was made.
    pub(crate) birth: Birth,
    pub(crate) bells: Arc<Bells>,
    /// 0 unknown, 1 bulk, 2 urgent.
    lane: AtomicU64,
    pub(crate) hooks: Arc<Hooks>,
    /// For those who do not have the reader.
    pub(crate) served: Served,
}

impl SubscriberState {
    pub(crate) fn new(birth: Birth, bells: Arc<Bells>, bell: u64) -> SubscriberState {
        SubscriberState {
            inbox: Mutex::default(),
            full: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            bell: BellCell::new(bell),
            birth,
            bells,
            lane: AtomicU64::new(0),
            hooks: Arc::default(),
            served: Served::default(),
        }
    }

    pub(crate) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings something to the subscriber.
    pub(crate) fn bring(&self, put: impl FnOnce(&mut Inbox)) {
        put(&mut self.inbox());
        self.full.store(true, Ordering::Release);
        self.bells.ring(self.bell());
    }

    /// Tells of a publisher that cannot be followed.
    pub(crate) fn refuse(&self, error: Error) {
        self.served.refuse(error.clone());
        self.bring(|inbox| inbox.note(error));
    }

    pub(crate) fn bell(&self) -> u64 {
        self.bell.get()
    }

    pub(crate) fn set_lane(&self, lane: Lane) {
        self.lane.store(if lane == Lane::Urgent { 2 } else { 1 }, Ordering::Release);
    }

    pub(crate) fn lane(&self) -> Option<Lane> {
        match self.lane.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Lane::Bulk),
            _ => Some(Lane::Urgent),
        }
    }
}
