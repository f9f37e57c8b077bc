//! Cancelled calls of one caller: why each was cancelled, and whether its handler has seen it.

use std::sync::atomic::Ordering;

use rnet_core::{CancelReason, Error, Result};
use rnet_node::sync::lock;

use super::{CallState, Peer};
use crate::WANTS_ALL_REPLIES;
use crate::service::HandlerError;
use crate::service_stats::CallEnd;

impl CallState {
    fn observe_cancel(&mut self) -> Option<CancelReason> {
        self.cancel_seen |= self.cancelled.is_some();
        self.cancelled
    }
}

impl Peer {
    /// The first reason is the one that is reported.
    pub fn cancel(&self, number: u32, reason: CancelReason, caller_waits: bool) {
        if let Some(open) = lock(&self.open).get_mut(&number) {
            open.cancelled.get_or_insert(reason);
            open.caller_waits = caller_waits;
        }
    }

    pub fn cancel_all(&self, reason: CancelReason) {
        lock(&self.open).values_mut().for_each(|open| {
            open.cancelled.get_or_insert(reason);
            open.caller_waits = false;
        });
    }

    /// The caller is gone.
    pub fn on_caller_gone(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.cancel_all(CancelReason::CallerGone);
    }

    /// Whether it was cancelled or has ended; called by its handler.
    pub fn is_cancelled(&self, number: u32) -> bool {
        lock(&self.open).get_mut(&number).is_none_or(|open| open.observe_cancel().is_some())
    }

    /// Whether its handler has seen the cancellation.
    pub fn is_cancel_seen(&self, number: u32) -> bool {
        lock(&self.open).get(&number).is_none_or(|open| open.cancel_seen)
    }

    /// Whether its caller still waits for a reply or an error. Does not count as seen by its handler.
    pub fn is_wanted(&self, number: u32) -> bool {
        let has_reply = |open: &CallState| number & WANTS_ALL_REPLIES == 0 && open.replies > 0;
        lock(&self.open)
            .get(&number)
            .is_some_and(|open| open.cancelled.is_none() && !has_reply(open))
    }

    /// Why it was cancelled. Does not count as seen by its handler.
    pub fn peek_cancel_reason(&self, number: u32) -> Option<CancelReason> {
        lock(&self.open).get(&number).and_then(|open| open.cancelled)
    }

    /// Why it was cancelled; called by its handler.
    pub fn cancel_reason(&self, number: u32) -> Option<CancelReason> {
        lock(&self.open).get_mut(&number).and_then(CallState::observe_cancel)
    }

    /// # Errors
    /// `Cancelled` if the call was cancelled or has ended.
    pub(super) fn check_cancelled(&self, number: u32) -> Result<()> {
        let reason = match lock(&self.open).get_mut(&number) {
            Some(open) => match open.observe_cancel() {
                // It wanted one reply, and has it.
                None if number & WANTS_ALL_REPLIES == 0 && open.replies > 0 => CancelReason::Caller,
                None => return Ok(()),
                Some(reason) => reason,
            },
            None => CancelReason::Caller,
        };
        Err(Error::Cancelled { topic: self.service.clone(), reason })
    }

    /// Ends a call that was cancelled before its handler began.
    pub fn end_cancelled(&self, number: u32) -> CallEnd {
        self.end(number, CallEnd::Cancelled, &HandlerError::new("", ""))
    }
}
