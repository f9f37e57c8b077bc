//! Cancelling at the client: the requests to a server to end a goal, or all goals.
//!
//! A call that its user drops is cancelled by [`OpenCalls::end`], one whose time limit has passed by
//! [`OpenCalls::time_out`].

use rnet_core::{CancelReason, Error, Result};

use super::OpenCalls;
use crate::msgs::call_control::Action;

impl OpenCalls {
    /// Asks the server to end a goal, whose end its caller waits for.
    ///
    /// # Errors
    /// `Full` if the server does not read.
    pub fn request_cancel(&mut self, number: u32) -> Result<()> {
        let (word, error) = (self.correlation(number), self.cancelled(CancelReason::Caller));
        let Some(open) = self.by_number.get_mut(&number).filter(|open| !open.has_outcome()) else {
            return Ok(());
        };
        open.cancelled = true;
        match &open.server {
            Some(server) => server.cancel(word, Action::Stop).map_err(|e| self.as_service_error(e)),
            None => {
                open.fail(error, &mut self.to_wake);
                Ok(())
            }
        }
    }

    /// Asks all servers to end the goals of all callers; returns how many were asked.
    ///
    /// # Errors
    /// `Full` if one does not read.
    pub fn cancel_all(&self) -> Result<usize> {
        let ready = self.servers.iter().filter(|server| matches!(server.is_ready(), Ok(true)));
        let asked = ready.map(|server| server.cancel(self.correlation(0), Action::StopAll));
        let asked = asked.collect::<Result<Vec<()>>>();
        asked.map(|asked| asked.len()).map_err(|error| self.as_service_error(error))
    }

    pub(super) fn cancelled(&self, reason: CancelReason) -> Error {
        Error::Cancelled { topic: self.service.clone(), reason }
    }
}
