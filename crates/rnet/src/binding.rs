//! What a binding to another language needs besides the interface of every program: callbacks that run on the
//! binding's threads, waits that check for signals, and the end of callbacks before the node's.

use std::sync::Arc;

use rnet_core::Result;
use rnet_shm::state::Clock;

use crate::state::State;
use crate::{Client, MessageType, Node};

pub use rnet_call::StillValid;
pub use rnet_node::callback_errors::{AlreadyCounted, CallbackErrors, Report};
pub use rnet_node::internal::EngineSubscriber;
pub use rnet_node::trace::callback_begins;
pub use rnet_node::typed::TryReceive;
pub use rnet_shm::os::thread::spawn;
pub use rnet_state::{BlockingHooks, with_blocking_hooks};

/// The error counter of a node, for callbacks that run on other threads.
pub fn error_counter(node: &Node) -> Arc<CallbackErrors> {
    node.core().state.errors.clone()
}

/// As [`Node::call_timeout`]: the client that the node keeps for a service, for encoded messages of these types.
///
/// # Errors
/// As [`Node::call`].
pub fn cached_client(
    node: &Node,
    name: &str,
    types: (MessageType, MessageType),
) -> Result<Client<[u8], [u8]>> {
    node.cached_client_of(name, types)
}

/// Stops the simulated time of a node whose callbacks are about to end: sleeps in it return `Closed`.
pub fn end_time(node: &Node) {
    node.core().state.time.end();
}

/// As [`Node::state`], with the caller's clocks: the wall clock, which stamps writes, and the clock that
/// expires keys, in this boot of the machine. The clocks of the first call are used.
///
/// # Errors
/// As [`Node::state`].
pub fn state_with_clocks(
    node: &Node,
    wall: impl Fn() -> u64 + Send + Sync + 'static,
    boot: impl Fn() -> u64 + Send + Sync + 'static,
    boot_id: u64,
) -> Result<State> {
    node.open_state(Some(Clock::new(wall, boot).in_boot(boot_id)))
}
