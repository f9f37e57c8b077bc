//! Handle of a subscriber with a callback; a dispatch thread has the reader itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rnet_core::{Backlog, Error, Lane, LossCounts, Result, TopicName};
use rnet_shm::channel::publisher::PeerPublisher;
use rnet_shm::channel::subscription::{Slot, SubscriptionFile};
use rnet_shm::ring::layout::{ReaderSlot, SLOT_BOUND, SLOT_TOTALS};

use crate::callbacks::CallbackGuard;
use crate::core::NodeCore;
use crate::former_publishers::PublisherStats;
use crate::match_event::{
    DeadlineMissed, LivelinessChange, LivelinessCounts, MatchChanges, MatchEvent,
};
use crate::subscriber_state::SubscriberState;

/// A running callback; dropping this stops it.
///
/// Dropping waits for a callback that is running, except inside a callback. A callback that
/// never returns blocks the callbacks of its lane, this drop, and the shutdown of its node. It blocks neither
/// the other lane nor any other node, and reliable publishers only for their chosen time.
#[must_use = "the callback stops when the Subscription is dropped; keep it or call detach()"]
pub struct Subscription {
    pub(crate) id: u64,
    pub(crate) topic: TopicName,
    pub(crate) file: Arc<SubscriptionFile>,
    pub(crate) state: Arc<SubscriberState>,
    /// Set when this is dropped, possibly by the callback itself.
    pub(crate) cancelled: Arc<AtomicBool>,
    /// `None` once it is detached.
    pub(crate) core: Option<Arc<NodeCore>>,
}

impl Subscription {
    /// The topic.
    pub fn topic(&self) -> &str {
        self.topic.as_str()
    }

    /// Received and lost messages by publisher; the callback may call this, too.
    ///
    /// Read from the counters in shared memory: former publishers are one entry, with publisher 0 and without
    /// a node.
    pub fn stats(&self) -> Vec<PublisherStats> {
        let stats = |slot: &Arc<Slot>| {
            let page = slot.page();
            let state = page.bind.state.load(Ordering::Acquire);
            let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let publisher = if state == SLOT_BOUND { count(&page.bind.publisher) } else { 0 };
            let lost = LossCounts {
                overrun: count(&page.count.lost_overrun),
                link: count(&page.count.lost_link),
                restart: count(&page.count.lost_restart),
                detached: count(&page.count.lost_detached),
            };
            let received = count(&page.count.received);
            let skipped = count(&page.count.skipped);
            let expired = count(&page.count.expired);
            let deadline_missed = count(&page.count.deadline_missed);
            let any = received | skipped | expired | deadline_missed | lost.total() > 0;
            let is_known = state == SLOT_BOUND || state == SLOT_TOTALS && any;
            let node = self.core.as_ref().filter(|_| state == SLOT_BOUND);
            let node = node.and_then(|core| core.state.matching().node_of(publisher));
            is_known.then(|| PublisherStats {
                publisher,
                connected: node.is_some(),
                node: node.unwrap_or_default(),
                received,
                lost,
                skipped,
                expired,
                deadline_missed,
                behind: self.behind_of(page),
                malformed: count(&page.count.malformed),
            })
        };
        if self.file.fork_guard().is_from_parent() {
            return Vec::new();
        }
        self.file.slots().iter().filter_map(stats).collect()
    }

    /// The callback's backlog from all publishers together.
    pub fn behind(&self) -> Backlog {
        let mut sum = Backlog::default();
        self.stats().iter().for_each(|stats| sum.add(&stats.behind));
        sum
    }

    /// Read from outside: the dispatch thread has the reader itself, and the callback may keep that thread
    /// busy.
    fn behind_of(&self, page: &ReaderSlot) -> Backlog {
        let is_bound = page.bind.state.load(Ordering::Acquire) == SLOT_BOUND;
        let Some(core) = self.core.as_ref().filter(|_| is_bound) else { return Backlog::default() };
        let publisher = page.bind.publisher.load(Ordering::Relaxed);
        let path = core.state.matching().publisher_path(publisher, self.topic.hash());
        let peer = path.and_then(|path| PeerPublisher::open(&path, publisher).ok());
        let map = peer.and_then(|peer| peer.map().ok());
        map.map_or_else(Backlog::default, |map| map.behind_of(page))
    }

    /// As `Subscriber::on_deadline`.
    pub fn on_deadline(
        &self,
        callback: impl FnMut(&DeadlineMissed) + Send + 'static,
    ) -> CallbackGuard {
        let core = self.core.as_ref();
        core.map(|core| self.state.deadlines.add(&core.state, Box::new(callback)))
            .unwrap_or_default()
    }

    /// As `Subscriber::on_liveliness`.
    pub fn on_liveliness(
        &self,
        callback: impl FnMut(&LivelinessChange) + Send + 'static,
    ) -> CallbackGuard {
        let core = self.core.as_ref();
        core.map(|core| core.on_liveliness(&self.state, self.file.id(), Box::new(callback)))
            .unwrap_or_default()
    }

    /// As `Subscriber::liveliness`.
    pub fn liveliness(&self) -> LivelinessCounts {
        self.core
            .as_ref()
            .map_or_else(Default::default, |core| core.state.liveliness_of(self.file.id()))
    }

    /// Number of publishers that serve the callback, as last seen by its thread, which is busy while a
    /// callback of its lane runs.
    pub fn publisher_count(&self) -> usize {
        if self.file.fork_guard().is_from_parent() {
            0
        } else {
            self.state.matched_publishers.count()
        }
    }

    /// Waits until at least `n` publishers are matched: messages sent after that reach the callback or are
    /// counted as lost.
    ///
    /// # Errors
    /// As for `Subscriber::wait_for_publishers`; and `BadValue` in a callback of the same lane, which would
    /// block its own thread.
    pub fn wait_for_publishers(&self, n: usize) -> Result<()> {
        self.wait_until_matched(n, None)
    }

    /// As [`Subscription::wait_for_publishers`], for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; as [`Subscription::wait_for_publishers`].
    pub fn wait_for_publishers_timeout(&self, n: usize, timeout: Duration) -> Result<()> {
        self.wait_until_matched(n, Some(timeout))
    }

    fn wait_until_matched(&self, n: usize, timeout: Option<Duration>) -> Result<()> {
        self.file.fork_guard().check(|| format!("the subscriber of {}", self.topic))?;
        let own = self.core.as_ref().and_then(|core| {
            core.state.started_dispatcher(self.state.lane().unwrap_or(Lane::Urgent))
        });
        if own.is_some_and(|d| d.is_this_thread()) && self.publisher_count() < n {
            return Err(Error::bad_value(
                format!("wait for publishers of {}", self.topic),
                "a callback of the same lane would block its own thread: wait in another thread",
            ));
        }
        self.state.matched_publishers.wait(&self.topic, n, timeout, &self.state.shortage)
    }

    /// Calls `callback` for each match change, on the node's bulk dispatch thread.
    pub fn on_match(&self, callback: impl FnMut(&MatchEvent) + Send + 'static) -> CallbackGuard {
        let core = self.core.as_ref();
        core.map(|core| self.state.match_callbacks.add(&core.state, Box::new(callback)))
            .unwrap_or_default()
    }

    /// A handle that waits for match changes, as `Publisher::match_changes`.
    pub fn match_changes(&self) -> MatchChanges {
        self.state.matched_publishers.changed()
    }

    /// All losses so far, by cause.
    pub fn lost(&self) -> LossCounts {
        let mut sum = LossCounts::default();
        self.stats().iter().for_each(|stats| sum.add(&stats.lost));
        sum
    }

    /// Why the callback is not called: its thread cannot be started (`LimitReached`); the start is retried
    /// once per second. Lost messages are counted. Normally `None`.
    pub fn error(&self) -> Option<Error> {
        self.core.as_ref()?.state.dispatch_error()
    }

    /// Keeps the callback running until the node is closed.
    pub fn detach(mut self) {
        self.core = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(core) =
            self.core.take().filter(|core| !core.state.fork_guard().is_from_parent())
        {
            self.cancelled.store(true, Ordering::Release);
            self.state.matched_publishers.changed().notify_all();
            core.state.end_task(self.id);
        }
    }
}

crate::debug_by!([] Subscription, "Subscription", |this| "topic": this.topic);
