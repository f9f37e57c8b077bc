//! What a wait set or a stream knows of each thing that it waits for.

use std::sync::Arc;

use rnet_shm::os::bell::Bells;

use crate::core::NodeState;
use crate::wait_source::WaitSource;

/// What a wait set needs to know of what it waits for; not nameable by users.
pub trait WaitSetMember {
    fn name(&self) -> String;
    /// The node that wakes who waits for it, if one does.
    fn node(&self) -> Option<&NodeState>;
    /// Moves all wake-ups to a bell.
    fn set_bell(&mut self, bells: &Arc<Bells>, bell: u64);
    /// Takes in what has come, so that [`WaitSource::is_ready`] says what is there for the user.
    fn refresh(&mut self);
    fn wait_source(&self) -> &dyn WaitSource;
    /// Has whoever brings something ring, from here on; whether who waits has to look once more himself.
    fn before_sleep(&self) -> bool {
        true
    }
    /// As [`crate::dispatch::Task::take_arrival`].
    fn take_arrival(&mut self) -> Option<(u64, u64)> {
        None
    }
}
