//! The counters of a server.

/// The outcome of an answer.
pub enum CallEnd {
    Sent,
    Failed,
    Cancelled,
    Unsent,
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceStats {
    /// Accepted requests, without the refused ones.
    pub calls: u64,
    /// Calls whose handler runs now.
    pub running: usize,
    /// Calls that wait for a handler now.
    pub waiting: usize,
    /// Calls that were refused because the backlog was full, and jobs that arrived while their worker closed.
    pub refused: u64,
    /// Calls whose handler failed or panicked.
    pub failed: u64,
    /// Calls that were cancelled, or whose caller was gone, before their handler returned.
    pub cancelled: u64,
    /// Messages that a correct caller does not send: without a number, or with one that is already open.
    pub malformed: u64,
    /// Answers that could not be sent: their caller was gone, or did not read.
    pub unsent: u64,
    /// Requests that were dropped because their client has no endpoints for answers: the client does not
    /// exist, or its endpoints were not found within 5 s or before it was gone.
    pub unanswerable: u64,
}

impl ServiceStats {
    pub(super) fn count(&mut self, end: &CallEnd) {
        match end {
            CallEnd::Failed => self.failed += 1,
            CallEnd::Cancelled => self.cancelled += 1,
            CallEnd::Unsent => self.unsent += 1,
            CallEnd::Sent => {}
        }
    }
}
