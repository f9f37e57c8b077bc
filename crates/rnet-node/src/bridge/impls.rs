//! The interface of bridges, for the endpoints and their builders.

#![expect(clippy::result_large_err, reason = "a loan is returned by value, without allocating")]

use rnet_core::{Error, KnownGap, LossCause, Meta, Origin, Proxy, Result};
use rnet_shm::channel::subscription::LinkRole;
use rnet_shm::channel::word_file::Checkpoint;

use super::{
    BridgeLoan, BridgePublisher, BridgePublisherBuilder, BridgeSubscriber, BridgeSubscriberBuilder,
    ProxyPublisher, ProxySubscription, PublisherStatus, ReadState,
};
use crate::typed::{Loan, OwnedLoan};
use crate::{
    Message, PeerInfo, Publisher, PublisherBuilder, Subscriber, SubscriberBuilder, Subscription,
};

impl<T: Message + ?Sized> BridgePublisherBuilder for PublisherBuilder<T> {
    fn proxy(mut self, proxy: Proxy) -> Self {
        self.settings.proxy = Some(proxy);
        self
    }

    fn deferred(mut self) -> Self {
        self.settings.deferred = true;
        self
    }

    fn reserve_will(mut self, yes: bool) -> Self {
        self.settings.reserve_will = yes;
        self
    }
}

impl<T: Message + ?Sized> BridgeSubscriberBuilder for SubscriberBuilder<T> {
    fn proxy(mut self, proxy: Proxy, endpoint_count: u32) -> Self {
        self.settings.proxy = Some((proxy, endpoint_count));
        self
    }

    fn forwarder(mut self, publisher: u64, from: Option<u64>) -> Self {
        self.settings.link = Some(LinkRole::Forwards(publisher));
        self.settings.from = from;
        self
    }

    fn passive(mut self) -> Self {
        self.settings.link = Some(LinkRole::Passive);
        self
    }
}

impl<T: Message + ?Sized> ProxyPublisher for Publisher<T> {
    fn close_as_lost(mut self) {
        if self.writer.fork_guard().is_from_parent() {
            return;
        }
        self.writer.end_as_lost();
        self.core.state.matching().remove_as_lost(self.id);
    }

    fn awaiting_admission(&self) -> Vec<PeerInfo> {
        self.state.lock().awaiting_admission.clone()
    }

    fn admit(&self, subscription: u64) -> Result<()> {
        self.core.state.admit(self.id, subscription)
    }
}

impl BridgePublisher for Publisher<[u8]> {
    fn forward(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.send_with(message, &meta, Some(sent_ns))
    }

    fn forward_uncommitted(&mut self, message: &[u8], meta: Meta, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.forward(message, &meta, sent_ns)
    }

    #[inline]
    fn forward_plain(&mut self, message: &[u8], origin: Origin, sent_ns: u64) -> Result<()> {
        self.check_len(message.len())?;
        self.writer.forward_plain(message, origin, sent_ns)
    }

    fn commit(&mut self) {
        self.writer.commit_pending();
    }

    fn forward_gap(&mut self, cause: LossCause, size: u64, next_seq: Option<u64>) -> Result<()> {
        self.writer.publish_gap(KnownGap { cause, size }, next_seq)
    }

    fn set_checkpoint(&mut self, checkpoint: Option<Checkpoint>) {
        self.writer.set_checkpoint(checkpoint);
    }

    fn set_sent_uncertainty_ns(&mut self, uncertain_ns: Option<u64>) {
        self.writer.set_uncertain_ns(uncertain_ns);
    }

    fn set_waiting(&mut self, yes: bool) {
        self.writer.set_waiting(yes);
    }

    fn loan_idle(&mut self, len: usize) -> Option<OwnedLoan> {
        self.check_len(len).ok()?;
        Some(OwnedLoan { publisher: self.id, loan: self.writer.loan_idle(len)? })
    }

    fn forward_loan(
        &mut self,
        loan: OwnedLoan,
        meta: Meta,
        sent_ns: u64,
    ) -> Result<(), (OwnedLoan, Error)> {
        self.send_loan_by(loan, |writer, loan| writer.forward_loan(loan, &meta, sent_ns))
    }
}

impl BridgeLoan for Loan<'_> {
    fn forward(self, meta: Meta, sent_ns: u64) -> Result<(), (Self, Error)> {
        self.send_by(|writer, loan| writer.send_loan_with(loan, &meta, Some(sent_ns)))
    }
}

impl<T: Message + ?Sized> BridgeSubscriber for Subscriber<T> {
    fn admit_to(&self, publisher_id: u64) -> Result<()> {
        self.core.state.set_served_by(self.receiver.id, publisher_id, true)
    }

    fn release_from(&self, publisher_id: u64) -> Result<()> {
        self.core.state.set_served_by(self.receiver.id, publisher_id, false)
    }

    fn read_state(&self) -> ReadState {
        self.receiver.read_state()
    }

    fn publisher_status(&self) -> PublisherStatus {
        self.receiver.publisher_status()
    }

    fn last_will(&self) -> Option<Vec<u8>> {
        self.receiver.will()
    }
}

impl<T: Message + ?Sized> ProxySubscription for Subscriber<T> {
    fn set_endpoint_count(&self, endpoint_count: u32) -> Result<()> {
        self.core.state.set_endpoint_count(self.receiver.id, endpoint_count)
    }
}

impl ProxySubscription for Subscription {
    fn set_endpoint_count(&self, endpoint_count: u32) -> Result<()> {
        self.core
            .as_ref()
            .map_or(Ok(()), |core| core.state.set_endpoint_count(self.file.id(), endpoint_count))
    }
}
