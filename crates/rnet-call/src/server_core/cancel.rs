//! Cancelling at the server: one call, or all of them. A call that waits for a handler ends at once. The
//! handler of a running call sees the cancellation in its [`Peer`](crate::peer::Peer).

use std::collections::VecDeque;

use rnet_core::CancelReason;
use rnet_node::sync::lock;

use super::{Call, ServerCore, ServerState};
use crate::CallerKey;
use crate::service::CallContext;

impl ServerState {
    /// Cancels all calls. Returns the waiting ones, which must be ended without the lock.
    pub(super) fn cancel_all(&mut self, reason: CancelReason) -> VecDeque<Call> {
        let waiting = std::mem::take(&mut self.waiting);
        let waited = waiting.iter().map(|call| (&call.peer, call.number));
        let running = self.running.iter().map(|running| (&running.peer, running.number));
        waited.chain(running).for_each(|(peer, number)| peer.cancel(number, reason, true));
        waiting
    }
}

impl ServerCore {
    /// A waiting call ends at once.
    pub(super) fn cancel(
        &self,
        caller: &CallerKey,
        number: u32,
        reason: CancelReason,
        caller_waits: bool,
    ) {
        let mut state = lock(&self.state);
        let Some(peer) = state.peer(&caller.0, caller.1).cloned() else { return };
        peer.cancel(number, reason, caller_waits);
        let context = CallContext { peer, number };
        let at = state.waiting.iter().position(|call| call.is_same(&context));
        let Some(call) = at.and_then(|at| state.waiting.remove(at)) else { return };
        drop(state);
        self.end_cancelled(&call);
    }

    pub(super) fn end_cancelled(&self, call: &Call) {
        let end = call.peer.end_cancelled(call.number);
        lock(&self.state).stats.count(&end);
    }
}
