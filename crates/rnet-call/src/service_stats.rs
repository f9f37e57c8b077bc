//! What a server counts.

/// What became of an answer.
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
    /// Requests that were taken, those that were refused not counted.
    pub calls: u64,
    /// Calls whose handler runs at this moment.
    pub running: usize,
    /// Calls that wait for a handler at this moment.
    pub waiting: usize,
    /// Calls that were refused because the backlog was full, and jobs that came while their worker closed.
    pub refused: u64,
    /// Calls whose handler failed or panicked.
    pub failed: u64,
    /// Calls that were cancelled, or whose caller was gone, before their handler returned.
    pub cancelled: u64,
    /// Messages that no caller of this service sends: without a number, or with one that is open.
    pub malformed: u64,
    /// Answers that could not be sent: their caller was gone, or did not read.
    pub unsent: u64,
    /// Requests that were dropped because their client has no endpoints for answers: there is no such client, or its
    /// endpoints were not found within 5 s or before it was gone.
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
