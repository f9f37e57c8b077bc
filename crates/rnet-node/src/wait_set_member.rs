//! The interface between a wait set or a stream and the objects that it waits for.

use std::sync::Arc;

use rnet_shm::os::bell::Bells;

use crate::core::NodeState;
use crate::wait_source::WaitSource;

/// The functions of a wait set's member; users cannot name this trait.
pub trait WaitSetMember {
    /// Name of the member in an error: `changes under /arm`.
    fn name(&self) -> String;
    /// The node that wakes the waiting thread, if any.
    fn node(&self) -> Option<&NodeState>;
    /// Moves all wake-ups to a bell.
    fn set_bell(&mut self, bells: &Arc<Bells>, bell: u64);
    /// Takes pending items, so that [`WaitSource::is_ready`] reflects what is available to the user.
    fn refresh(&mut self);
    /// The source that the thread waits for.
    fn wait_source(&self) -> &dyn WaitSource;
    /// Registers for wake-ups; returns whether the caller must check again itself.
    fn before_sleep(&self) -> bool {
        true
    }
    /// As [`crate::dispatch::Task::take_arrival`].
    fn take_arrival(&mut self) -> Option<(u64, u64)> {
        None
    }
}
