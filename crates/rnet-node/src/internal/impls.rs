//! The functions for the crates above the engine.

use std::time::Instant;

use rnet_core::{Result, Wait};
use rnet_shm::os::cpu;

use super::{EnginePublisher, EngineSubscriber, EngineWaitSet};
use crate::wait_loop::note_woken;
use crate::wait_source::WaitSource;
use crate::{Message, NodeCore, OwnedSample, Publisher, Subscriber, WaitSet, Waitable};

impl<T: Message + ?Sized> EnginePublisher for Publisher<T> {
    fn reserve_encoded(&mut self, len_bytes: usize) {
        self.encoded.reserve(len_bytes);
    }
}

impl<T: Message + ?Sized> EngineSubscriber<T> for Subscriber<T> {
    fn latest_after(&mut self, held: &OwnedSample<T>) -> Result<Option<OwnedSample<T>>> {
        let newer = self.newest(held.sent_ns())?;
        if newer.is_some()
            && let Some(at) = self.receiver.channel_of(held.publisher())
        {
            self.receiver.channels[at].count_as_skipped();
        }
        Ok(newer)
    }

    fn is_ready_now(&self) -> bool {
        self.receiver.is_ready()
    }

    fn has_more_now(&self) -> bool {
        self.receiver.has_more()
    }

    fn lost_now(&self) -> u64 {
        self.receiver.channels.iter().map(|channel| channel.losses().total()).sum()
    }

    fn lost_or_skipped_now(&self) -> u64 {
        let skipped = self.receiver.channels.iter().map(|channel| channel.skipped());
        self.lost_now() + skipped.sum::<u64>()
    }

    fn is_served_by(&mut self, publisher: u64) -> bool {
        self.receiver.drain_inbox();
        self.receiver.channels.iter().any(|c| c.publisher() == publisher && !c.has_left())
    }
}

impl EngineWaitSet for WaitSet {
    fn adaptive(node: &NodeCore) -> WaitSet {
        WaitSet { wait: Wait::Adaptive, ..WaitSet::of(node) }
    }

    fn spin_first<T: Message + ?Sized>(
        &mut self,
        first: &mut Subscriber<T>,
        others: impl Fn() -> bool,
    ) -> bool {
        if !first.receiver.is_ready_before_wait() {
            self.wait_strategy.keep_short_slice(cpu::SliceLen::Bulk);
        }
        let (first, waiting) = (&first.receiver, &self.members);
        let other = || first.is_ready() || others() || waiting.must_stop();
        let come = self.wait_strategy.spin_first(|| first.has_more(), other);
        if come && first.state.is_traced() {
            note_woken();
        }
        come
    }

    fn record_arrival_at(&mut self, taken_ns: u64, sent_ns: u64, count: u64) {
        self.wait_strategy.record_arrival_at(taken_ns, sent_ns, count);
    }

    fn expect_replies(&mut self) {
        self.wait_strategy.expect_replies();
    }

    fn record_arrival(&mut self, sent_ns: u64, count: u64) {
        self.wait_strategy.record_arrival(sent_ns, count);
    }

    fn wait_until(
        &mut self,
        named: &mut [&mut dyn Waitable],
        until: Option<Instant>,
    ) -> Result<bool> {
        WaitSet::wait_until(self, named, until)
    }
}
