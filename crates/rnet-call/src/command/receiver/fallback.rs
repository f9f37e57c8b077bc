//! The fallback of a receiver: when the deadline of the next command has passed, and what it applies then.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rnet_shm::ring::fail_point;

use super::super::authority::Holder;
use super::super::fallback_reason::{FallbackReason, FallbackText};
use super::{Fallback, Receiver};
use crate::msgs::command_event::Kind;
use crate::msgs::command_status::State;

impl Receiver {
    /// Falls back if the deadline has passed.
    pub(super) fn check_deadline(&mut self, now_ns: u64) {
        if !self.has_fallen_back && now_ns >= self.due_ns {
            let late_us = (now_ns - self.due_ns) / 1000;
            self.fall_back(FallbackReason::Deadline, Some(late_us));
        }
    }

    pub(super) fn fall_back(&mut self, reason: FallbackReason, us: Option<u64>) {
        self.fall_back_from(None, reason, us);
    }

    /// Applies the fallback, then reports it, without an allocation: the process may be out of memory.
    /// `ended` is the driver that loses authority by it; `us` is how late it was, or how long it took.
    pub(super) fn fall_back_from(
        &mut self,
        ended: Option<&Holder>,
        reason: FallbackReason,
        us: Option<u64>,
    ) {
        let (fallback, apply) = (&mut self.fallback, &mut self.apply);
        let done = catch_unwind(AssertUnwindSafe(|| match fallback {
            // It was encoded as a message of the type.
            Fallback::Value(bytes) => drop(apply(bytes.as_slice(), &mut || true)),
            Fallback::Hold(Some(last)) => drop(apply(last.as_slice(), &mut || true)),
            Fallback::Hold(None) => {}
            Fallback::Handler(handler) => handler(reason),
        }));
        self.has_fallen_back = true;
        fail_point!("command.fell_back");
        let panic = done.err();
        let panicked = panic.is_some();
        self.stats.panics += u64::from(panicked);
        self.status.fallback_failed = panicked;
        if !matches!(reason, FallbackReason::Opened | FallbackReason::Closed) {
            self.stats.fallbacks += 1;
        }
        self.publish_status(State::Fallback, reason.to_wire());
        let of = ended.or(self.authority.holder());
        self.reporter.log_holder_event(Kind::Fallback, of, FallbackText { reason, us, panicked });
        if let Some(panic) = panic {
            self.note_panic(panic);
        }
    }
}
