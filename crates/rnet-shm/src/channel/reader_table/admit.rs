//! How a reader enters the writer's list.
//!
//! The control thread admits readers while the writer sends. Finding the start position of a reader with
//! history takes a walk over the log (`late_joiner.rs`), and the writer may drop that position meanwhile. So
//! the reader is listed with a lower bound, which holds the writer, and the exact position is found
//! afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rnet_core::Error;
use rnet_ring::admission::{Grant, RequestId};
use rnet_ring::binding::HistoryRequest;
use rnet_ring::fail_point;
use rnet_ring::layout::{PAGE_LEN_BYTES, READERS_PER_LOG, ReaderSlot};

use super::{ReaderRef, ReaderTable};
use crate::channel::publisher::ReaderProgress;
use crate::channel::subscription::BoundPage;
use crate::os::barrier::SleeperBarrier;
use crate::os::bell::Bells;
use crate::os::files::create_error;

/// The result of [`ReaderTable::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmitOutcome {
    /// The reader was admitted.
    New,
    /// The reader was already admitted.
    AlreadyAdmitted,
}

impl ReaderTable {
    /// Admits a reader that has bound a page to this publisher.
    ///
    /// # Errors
    /// `LimitReached` if the table is full; the reader is notified as well. `OutOfMemory` if memory for more
    /// of the table is not available.
    pub fn admit(
        &self,
        subscription: u64,
        node: &str,
        topic: &str,
        bound: BoundPage,
        bells: Arc<Bells>,
    ) -> Result<AdmitOutcome, Error> {
        let ask = RequestId { subscription, generation: bound.binding.generation };
        if self.grants(ask) {
            return Ok(AdmitOutcome::AlreadyAdmitted);
        }
        let past = HistoryRequest::from_word(bound.binding.history);
        let (lowest, _) = self.starting_point(0, past);
        let reader = self.enlist(node, topic, bound, bells, (ask, lowest))?;
        self.answer(ask, &reader, self.starting_point(lowest, past));
        Ok(AdmitOutcome::New)
    }

    /// Whether the reader of this request is in the list. Only the control thread adds to it.
    fn grants(&self, ask: RequestId) -> bool {
        let granted = |r: &Arc<ReaderRef>| {
            r.subscription == ask.subscription && r.generation == ask.generation && !r.has_left()
        };
        self.list().iter().any(granted)
    }

    /// The first step of an admission: adds the reader to the writer's list. Once the writer has seen it
    /// there, nothing at or after `lowest` is dropped.
    pub(crate) fn enlist(
        &self,
        node: &str,
        topic: &str,
        bound: BoundPage,
        bells: Arc<Bells>,
        (ask, lowest): (RequestId, u64),
    ) -> Result<Arc<ReaderRef>, Error> {
        let BoundPage { binding, page } = bound;
        let subscription = ask.subscription;
        let mut list = self.list();
        list.retain(|r| !r.has_left() || r.holds_pins());
        // Readers that linger for their pins have no request any more, but their number is bounded.
        let linger = list.len() >= 2 * READERS_PER_LOG;
        let place = self.requests().entry_for(subscription, READERS_PER_LOG).filter(|_| !linger);
        let Some(place) = place else {
            self.refuse(subscription);
            let slot: &ReaderSlot = page.get(0);
            bells.ring(slot.bind.bell.load(Ordering::Relaxed));
            return Err(Error::LimitReached {
                what: format!("readers of {topic}"),
                limit: READERS_PER_LOG,
                hint: "share one subscriber per process".to_owned(),
            });
        };
        self.map
            .back_admission(&self.path, place)
            .map_err(|e| create_error(Some(topic), &self.path, PAGE_LEN_BYTES as u64, e))?;
        fail_point!("admit.backed");
        self.requests().reserve(ask, place);
        // A repeated request creates a new reader. The samples that the previous one still holds stay pinned.
        for old in list.iter().filter(|r| r.subscription == subscription) {
            old.left.store(true, Ordering::Relaxed);
        }
        list.retain(|r| !r.has_left() || r.holds_pins());
        let reader = Arc::new(ReaderRef {
            subscription,
            node: node.into(),
            reliable: binding.reliable,
            keep_last: binding.keep_last,
            link: binding.link,
            generation: binding.generation,
            publisher: self.map.id(),
            page,
            bells,
            start: AtomicU64::new(lowest),
            progress: ReaderProgress::default(),
            left: AtomicBool::new(false),
            admitted: AtomicBool::new(false),
        });
        list.push(reader.clone());
        self.publish_list(&list);
        drop(list);
        fail_point!("admit.listed");
        self.epoch.admit(self.map.log(), &SleeperBarrier);
        Ok(reader)
    }

    /// The last step: publishes the reader's start position `start`, which is message `start_seq`.
    pub(crate) fn answer(
        &self,
        ask: RequestId,
        reader: &ReaderRef,
        (start, start_seq): (u64, u64),
    ) {
        reader.start.store(start, Ordering::Release);
        // The writer may sleep until the reader needs no more than this.
        self.bells.ring(self.map.control().flow.bell.load(Ordering::Relaxed));
        fail_point!("admit.start");
        // Meanwhile the writer may have evicted it, or it may have been removed.
        let standing =
            self.requests().answer(self.admissions(), Grant { request: ask, start, start_seq });
        reader.admitted.store(standing.is_some(), Ordering::Release);
        self.forget_refusal(ask.subscription);
        reader.ring();
        fail_point!("admit.rung");
    }
}
