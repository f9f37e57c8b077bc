//! Objects that a wait set can wait for.

use std::sync::Arc;

use rnet_core::Result;
use rnet_shm::os::bell::Bells;

use super::rate::Rate;
use super::sample::OwnedSample;
use super::subscriber::Subscriber;
use crate::Message;
use crate::core::NodeState;
use crate::wait_set_member::WaitSetMember;
use crate::wait_source::WaitSource;

/// Objects that a [`crate::WaitSet`] can wait for: subscribers of any type, state watches, and rates.
pub trait Waitable: WaitSetMember {
    /// Whether something may be available.
    fn is_ready(&mut self) -> bool {
        self.refresh();
        self.wait_source().is_ready()
    }
}

impl<T: Message + ?Sized> WaitSetMember for Subscriber<T> {
    fn name(&self) -> String {
        self.topic().to_owned()
    }
    fn node(&self) -> Option<&NodeState> {
        Some(self.receiver.node())
    }
    fn set_bell(&mut self, _bells: &Arc<Bells>, bell: u64) {
        self.receiver.set_bell(bell);
    }
    fn refresh(&mut self) {
        self.receiver.drain_inbox();
    }
    fn wait_source(&self) -> &dyn WaitSource {
        &self.receiver
    }
}
impl<T: Message + ?Sized> Waitable for Subscriber<T> {}

impl Waitable for Rate {}

/// A [`Waitable`] whose wait-set entry takes messages or changes.
pub trait TryReceive: Waitable {
    /// A message or a change.
    type Item;
    /// The next item, if available.
    fn try_receive(&mut self) -> Result<Option<Self::Item>>;
}

impl<T: Message + ?Sized> TryReceive for Subscriber<T> {
    type Item = OwnedSample<T>;
    fn try_receive(&mut self) -> Result<Option<OwnedSample<T>>> {
        Ok(self.try_recv()?.map(|sample| sample.into_owned()))
    }
}
