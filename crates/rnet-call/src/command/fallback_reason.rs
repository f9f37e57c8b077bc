//! The reasons for a fallback; `receiver/fallback.rs` falls back.

use std::fmt;

use crate::msgs::command_status::Reason;

/// Why a receiver has fallen back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FallbackReason {
    /// It was opened, and has received no command yet.
    Opened,
    /// No command arrived within the deadline.
    Deadline,
    /// The lease of the driver has expired.
    Expired,
    /// The driver has released its authority.
    Released,
    /// A driver of a higher priority has taken authority.
    Preempted,
    /// The driver's process or host is gone.
    DriverLost,
    /// Applying a command took longer than the deadline.
    Overrun,
    /// The code that applies commands panicked.
    Panicked,
    /// The receiver closes.
    Closed,
}

impl FallbackReason {
    pub(super) fn to_wire(self) -> Reason {
        match self {
            FallbackReason::Opened => Reason::Opened,
            FallbackReason::Deadline => Reason::Deadline,
            FallbackReason::Expired => Reason::Expired,
            FallbackReason::Released => Reason::Released,
            FallbackReason::Preempted => Reason::Preempted,
            FallbackReason::DriverLost => Reason::DriverLost,
            FallbackReason::Overrun => Reason::Overrun,
            FallbackReason::Panicked => Reason::Panicked,
            FallbackReason::Closed => Reason::Closed,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            FallbackReason::Opened => "the receiver was opened",
            FallbackReason::Deadline => "no command came within the deadline",
            FallbackReason::Expired => "the lease expired",
            FallbackReason::Released => "the driver released its authority",
            FallbackReason::Preempted => "a driver with a higher priority took authority",
            FallbackReason::DriverLost => "the driver is gone",
            FallbackReason::Overrun => "applying the command took longer than the deadline",
            FallbackReason::Panicked => "the code that applies commands panicked",
            FallbackReason::Closed => "the receiver was closed",
        }
    }
}

/// The reason of a fallback, in words.
pub(super) struct FallbackText {
    pub reason: FallbackReason,
    /// How late it was, or how long it took, in µs.
    pub us: Option<u64>,
    /// Whether the fallback itself panicked.
    pub panicked: bool,
}

impl fmt::Display for FallbackText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.text())?;
        match (self.reason, self.us) {
            (FallbackReason::Deadline, Some(us)) => write!(f, "; {us} µs after it")?,
            (_, Some(us)) => write!(f, ": {us} µs")?,
            (_, None) => {}
        }
        f.write_str(if self.panicked { "; the fallback panicked" } else { "" })
    }
}
