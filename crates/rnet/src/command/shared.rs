//! What the receiver's thread shares with the service of authority and with the user's handle.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use rnet_node::sync::lock;

use super::authority::Holder;
use super::receiver::CommandStats;
use super::tell::ROOM;
use crate::msgs::command_request::Action;
use crate::msgs::{CommandReply, CommandRequest, CommandStatus};
use crate::{CallContext, WaitSetHandle};

/// Requests of drivers that wait for the thread.
const MAX_ASKS: usize = 1024;

/// Whether the thread answers a request or the service has given it up: one of both decides.
#[derive(Default)]
pub struct Turn(AtomicU8);

const TAKEN: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Turn {
    fn set(&self, to: u8) -> bool {
        self.0.compare_exchange(0, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The answer is no longer waited for; `false` if it is on its way.
    pub fn give_up(&self) -> bool {
        self.set(GIVEN_UP)
    }

    pub fn take(&self) -> bool {
        self.set(TAKEN)
    }
}

/// A request of a driver.
pub struct Ask {
    pub turn: Arc<Turn>,
    /// The call that it is; a driver that has ended it wants no authority.
    pub call: Option<CallContext>,
    pub node: String,
    pub request: CommandRequest,
    pub answer: SyncSender<CommandReply>,
}

/// Requests to the thread, and what it has said last.
pub struct Shared {
    asks: Mutex<VecDeque<Ask>>,
    closed: AtomicBool,
    wake: WaitSetHandle,
    shown: Mutex<(CommandStats, CommandStatus)>,
}

impl Shared {
    pub fn new(wake: WaitSetHandle) -> Shared {
        let (asks, closed) = Default::default();
        Shared { asks, closed, wake, shown: Mutex::new((CommandStats::default(), empty_status())) }
    }

    /// Hands a request to the thread; `false` if too many wait already.
    pub fn ask(&self, ask: Ask) -> bool {
        let mut asks = lock(&self.asks);
        if asks.len() >= MAX_ASKS {
            return false;
        }
        asks.push_back(ask);
        drop(asks);
        self.wake.interrupt();
        true
    }

    /// The next request, in the order in which they came.
    pub fn next_ask(&self) -> Option<Ask> {
        lock(&self.asks).pop_front()
    }

    /// Whether a request waits that ends the authority of this holder.
    pub fn ends(&self, holder: &Holder) -> bool {
        let is_own = |ask: &Ask| ask.node == holder.node && ask.request.number == holder.number;
        lock(&self.asks).iter().any(|ask| match ask.request.action() {
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

    /// Without an allocation.
    pub fn show(&self, stats: CommandStats, status: &CommandStatus) {
        let mut shown = lock(&self.shown);
        let mut holder = std::mem::take(&mut shown.1.holder);
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
        *shown = (stats, status);
    }

    /// Lets the user's handle see the counts, if nobody reads them at this moment.
    pub fn show_stats(&self, stats: CommandStats) {
        if let Ok(mut shown) = self.shown.try_lock() {
            shown.0 = stats;
        }
    }

    pub fn shown(&self) -> (CommandStats, CommandStatus) {
        let (stats, mut status) = lock(&self.shown).clone();
        // A status is sent on changes; what is counted goes on between two.
        (status.applied, status.ignored) = (stats.applied, stats.ignored());
        (stats, status)
    }
}

/// One with room for a holder.
pub fn empty_status() -> CommandStatus {
    CommandStatus { holder: String::with_capacity(ROOM), ..Default::default() }
}
