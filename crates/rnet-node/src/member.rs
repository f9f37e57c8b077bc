//! What a wait set or a stream knows of each thing that it waits for.

use std::sync::Arc;

use rnet_shm::bell::Bells;

use crate::awaited::Awaited;
use crate::core::NodeState;

/// What a wait set needs to know of what it waits for; not nameable by users.
pub trait Member {
    fn name(&self) -> String;
    /// The node that wakes who waits for it, if one does.
    fn node(&self) -> Option<&NodeState>;
    /// Moves all wake-ups to a bell.
    fn set_bell(&mut self, bells: &Arc<Bells>, bell: u64);
    /// Takes in what has come, so that [`Awaited::is_ready`] says what is there for the user.
    fn take_in(&mut self);
    fn awaited(&self) -> &dyn Awaited;
    /// Has whoever brings something ring, from here on; whether who waits has to look once more himself.
    fn before_sleep(&self) -> bool {
        true
    }
    /// As [`crate::dispatch::Task::came`].
    fn came(&mut self) -> Option<(u64, u64)> {
        None
    }
}
