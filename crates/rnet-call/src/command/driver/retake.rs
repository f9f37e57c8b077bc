//! A driver that has lost its authority takes it again: on request, or by itself with each command.

use std::time::{Duration, Instant};

use rnet_core::{Error, Result};
use rnet_node::Message;

use super::{Driver, RELEASE_TIMEOUT};
use crate::CallOptions;
use crate::msgs::command_request::Action;

/// Delay between a refusal and the next automatic request for authority.
const RETAKE_INTERVAL: Duration = Duration::from_millis(50);
/// How long such a request waits for a receiver.
const RETAKE_TIMEOUT: Duration = Duration::from_secs(1);

impl<T: Message + ?Sized> Driver<T> {
    /// Takes authority again once it has ended, with the same priority and lease; waits for a receiver, for
    /// at most [`DriveBuilder::timeout`](super::DriveBuilder::timeout). A driver that is in force keeps its authority.
    ///
    /// # Errors
    /// As [`DriveBuilder::take`](super::DriveBuilder::take).
    pub fn retake(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !self.retake_step(begun, self.timeout)? {}
        Ok(())
    }

    /// One step, about 100 ms long, of a retake that began at `begun`; returns whether it has authority. For
    /// a language that checks for signals between the steps, and lets other threads use the driver.
    ///
    /// # Errors
    /// As [`Driver::retake`].
    #[doc(hidden)]
    pub fn retake_step(&mut self, begun: Instant, timeout: Duration) -> Result<bool> {
        if self.retaking.is_none() {
            match self.check_authority() {
                Err(Error::NotInForce { .. }) => {}
                done => return done.map(|()| true),
            }
            self.end_requests();
            if self.check_authority().is_ok() {
                return Ok(true);
            }
        }
        match self.take(&self.wait(begun, timeout, || false)) {
            Ok(()) => Ok(true),
            Err(Error::Interrupted) => Ok(false),
            Err(error) => {
                self.end_retake();
                Err(error)
            }
        }
    }

    /// Cancels a retake. Authority that is granted at this moment is released.
    #[doc(hidden)]
    pub fn end_retake(&mut self) {
        self.end_requests();
        if self.check_authority().is_ok() {
            let _ = self.call_receiver(Action::Release, RELEASE_TIMEOUT);
            self.end_authority("it was given back".to_owned());
        }
    }

    /// In force, or in force again.
    pub(super) fn check_or_retake(&mut self) -> Result<()> {
        match self.check_authority() {
            Err(Error::NotInForce { .. }) if self.auto_retake => self.request_retake(),
            checked => checked,
        }
    }

    /// Requests authority again, without waiting.
    fn request_retake(&mut self) -> Result<()> {
        let asks = self.retake_call.is_some() || self.retaking.is_some();
        if !asks && Instant::now() >= self.next_retake {
            self.drain_status()?;
            let options = CallOptions::new().timeout(RETAKE_TIMEOUT);
            self.retake_call = Some(self.client.start(&self.terms.request(), options)?);
        }
        let Some(call) = self.retake_call.take() else { return self.check_authority() };
        match call.next_within(Duration::ZERO) {
            Err(Error::Interrupted) => self.retake_call = Some(call),
            Ok(Some(reply)) => {
                self.next_retake = Instant::now() + RETAKE_INTERVAL;
                self.on_reply(reply.into_message())?;
            }
            Ok(None) | Err(_) => self.next_retake = Instant::now() + RETAKE_INTERVAL,
        }
        self.check_authority()
    }
}
