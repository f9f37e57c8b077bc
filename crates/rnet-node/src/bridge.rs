//! The interface for programs that connect robot-net to something else: another host, another domain, a
//! recording, another system.
//!
//! Such a program sends and receives bytes with their type description, stands for endpoints that exist
//! elsewhere (*proxies*), passes on origin, number, time of sending and known losses, and decides which
//! publishers and subscriptions match. These traits add what it needs to the endpoints of bytes and to their
//! builders; examples/rust/bridge shows them. The other functions are those of every program:
//! `Node::on_endpoint` reports the interest, `Publisher::on_match` the matches, `Publisher::send_with` takes
//! metadata.

#![expect(clippy::result_large_err, reason = "a loan is returned by value, without allocating")]

mod impls;

use rnet_core::{Error, LossCause, Meta, Origin, Proxy, Result};
use rnet_shm::channel::word_file::Checkpoint;

use crate::PeerInfo;
pub use crate::receiver::{PublisherStatus, ReadState};
use crate::typed::OwnedLoan;

/// Builders of publishers that stand for others.
pub trait BridgePublisherBuilder: Sized {
    /// The publisher represents this endpoint.
    fn proxy(self, proxy: Proxy) -> Self;

    /// A subscription is admitted only after
    /// [`ProxyPublisher::admit`] names it. [`crate::MatchEvent::AdmissionRequested`] reports a subscription that
    /// waits for admission.
    fn deferred(self) -> Self;

    /// The publisher has no last will yet, but
    /// `Publisher::set_last_will` may set one.
    fn reserve_will(self, yes: bool) -> Self;
}

/// Builders of subscribers that stand for others.
pub trait BridgeSubscriberBuilder: Sized {
    /// The subscriber represents `endpoint_count`
    /// subscribers of this node.
    fn proxy(self, proxy: Proxy, endpoint_count: u32) -> Self;

    /// The subscriber reads only the messages of this
    /// publisher, and is neither counted nor reported as a subscriber. With `from` it starts with the message
    /// of that sequence number, whatever its durability; with the oldest in the log if that message is no
    /// longer there, and with the next one if it has not been sent yet. Without `from` it starts as other
    /// subscribers do.
    ///
    /// The history of a best_effort subscriber is limited by its [`crate::SubscriberBuilder::keep_last`], as for
    /// others.
    fn forwarder(self, publisher: u64, from: Option<u64>) -> Self;

    /// The subscriber is matched by type and quality of
    /// service like any other, but only publishers that [`BridgeSubscriber::admit_to`] names serve and count it, and
    /// it receives nothing.
    fn passive(self) -> Self;
}

/// Publishers that stand for others.
pub trait ProxyPublisher: Sized {
    /// Closes the publisher as if its process had died: subscribers that have read it to the end get
    /// `PeerLost`, and watchers of endpoints and matches see it as lost. Used for a proxy whose represented
    /// node is lost. Unread large messages are freed, and counted as lost.
    fn close_as_lost(self);

    /// The subscriptions that wait for [`ProxyPublisher::admit`]; empty unless the publisher defers admission.
    fn awaiting_admission(&self) -> Vec<PeerInfo>;

    /// Admits a subscription, now or when it asks; for a publisher that defers admission. The subscription
    /// counts once it is reported by [`MatchEvent::Matched`](crate::MatchEvent::Matched).
    ///
    /// # Errors
    /// `Closed` in a forked child.
    fn admit(&self, subscription: u64) -> Result<()>;
}

/// Publishers that forward messages.
pub trait BridgePublisher: Sized {
    /// Sends a message of another host: as [`crate::Publisher::send_with`], but with the timestamp `sent_ns` of its
    /// first send, in ns of CLOCK_MONOTONIC of this host. A future timestamp counts as now. Latency and
    /// lifespan use this timestamp, deadlines and liveliness the time of this call.
    ///
    /// # Errors
    /// As [`crate::Publisher::send_with`].
    fn forward(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()>;

    /// As [`BridgePublisher::forward`], for a message that others may follow at once. Subscribers get it at the
    /// latest when [`BridgePublisher::commit`] is called, which must be called after the last of them.
    ///
    /// # Errors
    /// As [`crate::Publisher::send_with`].
    fn forward_uncommitted(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()>;

    /// As [`BridgePublisher::forward_uncommitted`], for a message without metadata other than its origin.
    ///
    /// # Errors
    /// As [`crate::Publisher::send_with`].
    fn forward_plain(&mut self, message: &[u8], origin: Origin, sent_ns: u64) -> Result<()>;

    /// Makes the messages of [`BridgePublisher::forward_uncommitted`] visible to subscribers.
    fn commit(&mut self);

    /// As [`crate::Publisher::publish_gap`], for messages of another host up to number `next_seq`, which is stored
    /// in the checkpoint of [`BridgePublisher::set_checkpoint`].
    fn forward_gap(&mut self, cause: LossCause, size: u64, next_seq: Option<u64>) -> Result<()>;

    /// Stores the position of each message of [`BridgePublisher::forward_uncommitted`] in `checkpoint` as soon as
    /// subscribers can see it: one more than its number at its origin.
    fn set_checkpoint(&mut self, checkpoint: Option<Checkpoint>);

    /// Sets the uncertainty of the stamps of messages forwarded from now on, in ns; `None` if unknown. Read
    /// it with [`Sample::sent_uncertainty_ns`](crate::Sample::sent_uncertainty_ns).
    fn set_sent_uncertainty_ns(&mut self, uncertain_ns: Option<u64>);

    /// Sets whether a send or a loan may wait for slow subscribers, as [`rnet_core::OnFull`] specifies; the
    /// default is `true`. With `false`, a send that would wait fails with `Full` at once. Under
    /// `OnFull::Detach` a send still evicts a subscriber: the first send that finds no progress for the stall
    /// limit, counted from the first `Full` after which no send succeeded.
    fn set_waiting(&mut self, yes: bool);

    /// As [`crate::Publisher::loan_owned`], but only from memory that the publisher already has and no longer needs;
    /// `None` if it has none. It never waits, takes no memory, and frees no message that a subscriber may
    /// still read.
    fn loan_idle(&mut self, len: usize) -> Option<OwnedLoan>;

    /// As [`BridgePublisher::forward_uncommitted`], for a loan, which subscribers get at once. On error the loan is
    /// returned.
    fn forward_loan(
        &mut self,
        loan: OwnedLoan,
        meta: Meta,
        sent_ns: u64,
    ) -> Result<(), (OwnedLoan, Error)>;
}

/// Loans of publishers that forward messages.
pub trait BridgeLoan: Sized {
    /// As [`BridgePublisher::forward`], for a loan. On error the loan is returned.
    fn forward(self, meta: Meta, sent_ns: u64) -> Result<(), (Self, Error)>;
}

/// Subscribers that forward the messages of one publisher, or stand for others.
pub trait BridgeSubscriber {
    /// For a passive subscriber: this publisher serves and counts it, now or as soon as it appears and is
    /// compatible. The subscriber does not block the publisher and receives nothing.
    ///
    /// # Errors
    /// `BadValue` if it is not passive; `Closed` in a forked child.
    fn admit_to(&self, publisher_id: u64) -> Result<()>;

    /// Reverts [`BridgeSubscriber::admit_to`].
    ///
    /// # Errors
    /// As [`BridgeSubscriber::admit_to`].
    fn release_from(&self, publisher_id: u64) -> Result<()>;

    /// The read state of its only publisher, as of the last
    /// receive.
    fn read_state(&self) -> ReadState;

    /// Signals of its only publisher other than messages.
    fn publisher_status(&self) -> PublisherStatus;

    /// The current last will of its only publisher.
    fn last_will(&self) -> Option<Vec<u8>>;
}

/// Subscribers and callbacks that stand for others.
pub trait ProxySubscription {
    /// As [`crate::Subscription::set_endpoint_count`].
    ///
    /// # Errors
    /// As [`crate::Subscription::set_endpoint_count`].
    fn set_endpoint_count(&self, endpoint_count: u32) -> Result<()>;
}
