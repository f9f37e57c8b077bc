//! State shared by the receiver's thread, the authority service and the user's handle.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use rnet_node::sync::lock;

use super::authority::Holder;
use super::receiver::CommandStats;
use super::status_reporter::TEXT_CAPACITY;
use crate::CallContext;
use crate::msgs::command_request::Action;
use crate::msgs::{CommandReply, CommandRequest, CommandStatus};
use rnet_node::WaitSetHandle;

/// Requests of drivers that wait for the thread.
const MAX_WAITING_REQUESTS: usize = 1024;

/// Whether the thread answers a request or the service has cancelled it: only one of the two succeeds.
#[derive(Default)]
pub struct AnswerClaim(AtomicU8);

const ANSWERED: u8 = 1;
const ABANDONED: u8 = 2;

impl AnswerClaim {
    fn set(&self, to: u8) -> bool {
        self.0.compare_exchange(0, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Cancels the request; `false` if the answer is on its way.
    pub fn give_up(&self) -> bool {
        self.set(ABANDONED)
    }

    pub fn take(&self) -> bool {
        self.set(ANSWERED)
    }
}

/// A request of a driver.
pub struct DriverRequest {
    pub claim: Arc<AnswerClaim>,
    /// The call of the request; a driver that has ended it wants no authority.
    pub call: Option<CallContext>,
    pub node: String,
    pub request: CommandRequest,
    pub answer: SyncSender<CommandReply>,
}

/// Requests to the thread, and its last status.
pub struct ReceiverShared {
    requests: Mutex<VecDeque<DriverRequest>>,
    closed: AtomicBool,
    wake: WaitSetHandle,
    published: Mutex<(CommandStats, CommandStatus)>,
}

impl ReceiverShared {
    pub fn new(wake: WaitSetHandle) -> ReceiverShared {
        let (requests, closed) = Default::default();
        ReceiverShared {
            requests,
            closed,
            wake,
            published: Mutex::new((CommandStats::default(), empty_status())),
        }
    }

    /// Passes a request to the thread; `false` if too many wait already.
    pub fn push_request(&self, ask: DriverRequest) -> bool {
        let mut requests = lock(&self.requests);
        if requests.len() >= MAX_WAITING_REQUESTS {
            return false;
        }
        requests.push_back(ask);
        drop(requests);
        self.wake.interrupt();
        true
    }

    /// The next request, in order of arrival.
    pub fn next_request(&self) -> Option<DriverRequest> {
        lock(&self.requests).pop_front()
    }

    /// Whether a waiting request ends the authority of this holder.
    pub fn is_ended_by_request(&self, holder: &Holder) -> bool {
        let is_own =
            |ask: &DriverRequest| ask.node == holder.node && ask.request.number == holder.number;
        lock(&self.requests).iter().any(|ask| match ask.request.action() {
            Action::Take => ask.request.priority > holder.priority,
            Action::Release => is_own(ask),
            Action::Renew | Action::Unspecified => false,
        })
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.interrupt();
    }

    /// Does not allocate.
    pub fn publish(&self, stats: CommandStats, status: &CommandStatus) {
        let mut published = lock(&self.published);
        let mut holder = std::mem::take(&mut published.1.holder);
        holder.clear();
        holder.push_str(&status.holder);
        let CommandStatus { state, reason, priority, number, lease, deadline, .. } = *status;
        let CommandStatus { applied, ignored, fallbacks, granted, fallback_failed, .. } = *status;
        let status = CommandStatus {
            state,
            reason,
            holder,
            priority,
            number,
            lease,
            deadline,
            applied,
            ignored,
            fallbacks,
            granted,
            fallback_failed,
        };
        *published = (stats, status);
    }

    /// Updates the counters of the user's handle, unless it reads them at this moment.
    pub fn publish_stats(&self, stats: CommandStats) {
        if let Ok(mut published) = self.published.try_lock() {
            published.0 = stats;
        }
    }

    pub fn published(&self) -> (CommandStats, CommandStatus) {
        let (stats, mut status) = lock(&self.published).clone();
        // A status is sent on changes; the counters advance in between.
        (status.applied, status.ignored) = (stats.applied, stats.ignored());
        (stats, status)
    }
}

/// A status with preallocated memory for a holder.
pub fn empty_status() -> CommandStatus {
    CommandStatus { holder: String::with_capacity(TEXT_CAPACITY), ..Default::default() }
}
