//! Lost servers and lost messages of servers: calls end with `ServerLost`, or with the error that hides their
//! answers; a goal that has lost feedback continues.

use rnet_core::Error;

use super::super::CallId;
use super::OpenCalls;
use crate::msgs::call_control::Action;

impl OpenCalls {
    /// Ends the calls of servers that are gone and have left no answer.
    pub fn on_servers_gone(&mut self, gone: &[u64]) {
        for open in self.by_number.values_mut() {
            if let Some(server) = open.server.as_ref().filter(|server| gone.contains(&server.id)) {
                let error = server.lost(&self.service);
                open.fail(error, &mut self.to_wake);
            }
        }
    }

    /// Answers of a node were lost in transit. It is unknown which calls they belong to, so all calls to it
    /// end, and are cancelled there.
    pub fn on_answers_lost(&mut self, node: &str, lost: u64) {
        let (topic, node) = (self.service.clone(), node.to_owned());
        let error = Error::CallLost { topic, node: node.clone(), lost };
        let client = self.client;
        for (number, open) in self.by_number.iter_mut().filter(|(_, open)| !open.has_outcome()) {
            let Some(server) = open.server.as_ref().filter(|server| server.node == node) else {
                continue;
            };
            let _ =
                server.cancel(CallId { client, number: *number }.to_correlation(), Action::Cancel);
            open.fail(error.clone(), &mut self.to_wake);
        }
    }

    /// Feedback of a node was lost in transit. This does not end a goal.
    pub fn on_feedback_lost(&mut self, node: &str, lost: u64) {
        self.stats.feedback_lost = self.stats.feedback_lost.saturating_add(lost);
        for open in self.by_number.values_mut() {
            if open.server.as_ref().is_some_and(|server| server.node == node) {
                open.feedback_lost = true;
                open.notify(&mut self.to_wake);
            }
        }
    }

    /// The messages of a node cannot be read any more.
    pub fn fail_calls_to(&mut self, node: &str, error: &Error) {
        for open in self.by_number.values_mut() {
            if open.server.as_ref().is_some_and(|server| server.node == node) {
                open.fail(error.clone(), &mut self.to_wake);
            }
        }
    }
}
