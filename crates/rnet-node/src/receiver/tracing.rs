//! Receiving while the topic is traced.

use rnet_core::Result;

use super::Receiver;
use crate::trace::TracedMessage;

impl Receiver {
    /// [`Receiver::advance`] where there is more than messages: what the control thread has brought, or a trace.
    #[cold]
    pub(super) fn advance_slow(&mut self) -> Result<Option<usize>> {
        self.drain_inbox();
        if !self.state.is_traced() {
            return self.advance_channels();
        }
        self.tracing.end_receive(&self.state, self.id);
        let at = self.advance_channels()?;
        self.trace_receive(at);
        Ok(at)
    }

    /// The user begins a receive of another form: he is done with the message of the last.
    pub fn end_receive(&mut self) {
        if self.state.is_traced() {
            self.tracing.end_receive(&self.state, self.id);
        }
    }

    /// A message was taken, perhaps, which the user now has.
    pub fn trace_receive(&mut self, at: Option<usize>) {
        if let Some(at) = at.filter(|_| self.state.is_traced()) {
            self.tracing.start_receive(&self.state, &self.channels, at);
        }
    }

    /// A message was taken that a callback is to have; what is known of it so far, if it is to be traced.
    pub fn start_trace(&mut self, at: usize) -> Option<TracedMessage> {
        let traced = self.state.is_traced();
        traced.then(|| self.tracing.start(&self.state, &self.channels, at)).flatten()
    }
}
