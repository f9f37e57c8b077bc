//! What the crates above the engine need of its endpoints, and users do not.

mod impls;

use std::time::Instant;

use rnet_core::Result;

use crate::typed::Waitable;
use crate::typed::{OwnedSample, Subscriber, WaitSet};
use crate::{Message, NodeCore};

/// Publishers of calls and of loaned types.
pub trait EnginePublisher {
    /// Reserves memory to encode messages of `len_bytes`, so that sending them allocates nothing.
    fn reserve_encoded(&mut self, len_bytes: usize);
}

/// Subscribers of calls and bindings.
pub trait EngineSubscriber<T: Message + ?Sized> {
    /// For bindings that hold a received message: a newer message, if any. The older one and all messages in
    /// between count as skipped.
    ///
    /// # Errors
    /// As [`Subscriber::latest`].
    fn latest_after(&mut self, held: &OwnedSample<T>) -> Result<Option<OwnedSample<T>>>;

    /// Whether a receive may find something.
    fn is_ready_now(&self) -> bool;

    /// As [`EngineSubscriber::is_ready_now`], but only for messages and inbox items.
    fn has_more_now(&self) -> bool;

    /// Losses so far from the present publishers: [`Subscriber::lost`] for a check after each receive.
    fn lost_now(&self) -> u64;

    /// As [`EngineSubscriber::lost_now`], including messages skipped for newer ones.
    fn lost_or_skipped_now(&self) -> u64;

    /// Whether the publisher with this id is connected; does not allocate.
    fn is_served_by(&mut self, publisher: u64) -> bool;
}

/// Wait sets of calls.
pub trait EngineWaitSet: Sized {
    /// A set whose waits are adaptive, like those of a single subscriber: report each message that it waited
    /// for with [`EngineWaitSet::record_arrival`].
    fn adaptive(node: &NodeCore) -> WaitSet;

    /// The first part of an adaptive wait: spins on `first`, the most likely source. Returns whether `first`
    /// may have a message; if not, call [`WaitSet::wait`] for the rest of the wait. Report a message of
    /// `first` with [`EngineWaitSet::record_arrival_at`].
    fn spin_first<T: Message + ?Sized>(
        &mut self,
        first: &mut Subscriber<T>,
        others: impl Fn() -> bool,
    ) -> bool;

    /// As [`EngineWaitSet::record_arrival`], for a message that the first spin found and that was taken at
    /// `taken_ns`.
    fn record_arrival_at(&mut self, taken_ns: u64, sent_ns: u64, count: u64);

    /// Declares that each wait is for a reply to a message sent right before it.
    fn expect_replies(&mut self);

    /// Records a message sent at `sent_ns`, with number `count` of all that were taken.
    fn record_arrival(&mut self, sent_ns: u64, count: u64);

    /// As [`WaitSet::wait`], until a time.
    fn wait_until(
        &mut self,
        named: &mut [&mut dyn Waitable],
        until: Option<Instant>,
    ) -> Result<bool>;
}
