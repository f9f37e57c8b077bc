//! Receiving while the topic is traced.

use rnet_core::Result;

use super::Receiver;
use crate::trace::TracedMessage;

impl Receiver {
    /// [`Receiver::advance`] when more than messages is pending: an inbox item, or a trace.
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

    /// The user starts another form of receive, and so is done with the last message.
    pub fn end_receive(&mut self) {
        if self.state.is_traced() {
            self.tracing.end_receive(&self.state, self.id);
        }
    }

    /// Starts a trace of the message that was taken, if any, for the user.
    pub fn trace_receive(&mut self, at: Option<usize>) {
        if let Some(at) = at.filter(|_| self.state.is_traced()) {
            self.tracing.start_receive(&self.state, &self.channels, at);
        }
    }

    /// Starts a trace of a message that was taken for a callback; `None` if it is not traced.
    pub fn start_trace(&mut self, at: usize) -> Option<TracedMessage> {
        let traced = self.state.is_traced();
        traced.then(|| self.tracing.start(&self.state, &self.channels, at)).flatten()
    }
}
