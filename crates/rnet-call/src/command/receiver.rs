//! The receiver's thread, the only one that applies commands and decides which driver is in force.

mod fallback;

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rnet_node::internal::{EngineSubscriber, EngineWaitSet};
use rnet_shm::ring::fail_point;

use super::authority::{Authority, Holder, IgnoreReason, ReceivedCommand, TakeOutcome};
use super::fallback_reason::FallbackReason;
use super::shared::{DriverRequest, ReceiverShared, empty_status};
use super::status_reporter::StatusReporter;
use crate::Bytes;
use crate::CallContext;
use crate::msgs::command_event::Kind;
use crate::msgs::command_request::Action;
use crate::msgs::command_status::{Reason, State};
use crate::msgs::{CommandReply, CommandRequest, CommandStatus};
use rnet_core::Error;
use rnet_node::options::deadline;
use rnet_node::{NodeHandle, Subscriber, WaitSet};
use rnet_shm::os::clock::now_ns;

/// Refusals of different nodes that the audit trail records until the next grant. They must not displace
/// grants.
const MAX_LOGGED_REFUSALS: usize = 16;
/// How often the receiver checks for a driver that has sent nothing yet: no message shows its end.
const DRIVER_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Stack memory that is prefaulted, in bytes.
const PREFAULT_STACK_LEN_BYTES: usize = 64 << 10;

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandStats {
    /// Commands that were applied.
    pub applied: u64,
    /// Commands that were older than the deadline when they arrived or could be applied.
    pub late: u64,
    /// Commands that were already applied, or older than an applied one.
    pub repeated: u64,
    /// Commands of drivers whose authority had ended.
    pub superseded: u64,
    /// Commands of nodes that never had the authority that they claimed.
    pub unauthorised: u64,
    /// Commands that are not valid messages of the type.
    pub malformed: u64,
    /// Commands that were passed over because a newer one of the driver was available, or that were lost in
    /// transit.
    pub skipped: u64,
    /// Number of fallbacks, except those at opening and closing.
    pub fallbacks: u64,
    /// Panics of the code that applies commands or fallbacks.
    pub panics: u64,
    /// Commands that took longer to apply than the deadline.
    pub overruns: u64,
}

impl CommandStats {
    pub(super) fn ignored(&self) -> u64 {
        self.late + self.repeated + self.superseded + self.unauthorised + self.malformed
    }
}

/// The action of a fallback.
pub enum Fallback {
    Value(Bytes),
    /// Applies the last command again, if there was one.
    Hold(Option<Bytes>),
    Handler(Box<dyn FnMut(FallbackReason) + Send>),
}

/// Whether a command may still be applied; called immediately before the user's code gets it.
pub type StillValid<'a> = dyn FnMut() -> bool + 'a;

/// Applies a command if it is still valid when everything else is ready; if it is not a message of the type,
/// the error says why.
pub type Apply = Box<dyn FnMut(&[u8], &mut StillValid<'_>) -> Result<(), String> + Send>;

pub struct Receiver {
    /// The known nodes.
    peers: NodeHandle,
    deadline: Duration,
    commands: Subscriber<[u8]>,
    set: WaitSet,
    shared: Arc<ReceiverShared>,
    reporter: StatusReporter,
    fallback: Fallback,
    apply: Apply,
    authority: Authority,
    first: u64,
    stats: CommandStats,
    status: CommandStatus,
    has_fallen_back: bool,
    /// When the next command is due, in ns of CLOCK_MONOTONIC.
    due_ns: u64,
    /// A node without authority was logged, and no command was applied since.
    intruder_logged: bool,
    /// Nodes whose refusal was logged since the last grant.
    logged_refusals: Vec<String>,
    /// When to check next for a driver that has sent nothing yet, in ns of CLOCK_MONOTONIC.
    next_check_ns: u64,
    /// Messages of the present publishers that were passed over at the last check.
    passed_over: u64,
    /// The last received command, copied out of its publisher's memory.
    bytes: Bytes,
    node: String,
}

/// The fixed parts of an open receiver.
pub struct ReceiverParts {
    pub peers: NodeHandle,
    pub deadline: Duration,
    pub commands: Subscriber<[u8]>,
    pub set: WaitSet,
    pub shared: Arc<ReceiverShared>,
    pub reporter: StatusReporter,
    pub fallback: Fallback,
    pub apply: Apply,
}

/// The entry of the audit trail for a receiver without real-time priority.
const NOT_REALTIME: &str = "its thread has no real-time priority, so it may fall back late on a busy machine; \
                          allow its user an rtprio limit of 1 or more: see rnet doctor";

impl Receiver {
    pub fn new(parts: ReceiverParts) -> Receiver {
        let ReceiverParts { peers, deadline, commands, set, shared, reporter, fallback, apply } =
            parts;
        // Above the numbers of its predecessor.
        let first = now_ns().saturating_add_signed(rnet_shm::os::clock::wall_offset().0).max(1);
        Receiver {
            peers,
            deadline,
            commands,
            set,
            shared,
            reporter,
            fallback,
            apply,
            authority: Authority::new(first),
            first,
            stats: CommandStats::default(),
            status: CommandStatus { deadline: ns(deadline), ..empty_status() },
            has_fallen_back: false,
            due_ns: 0,
            intruder_logged: false,
            logged_refusals: Vec::with_capacity(MAX_LOGGED_REFUSALS),
            next_check_ns: 0,
            passed_over: 0,
            bytes: Bytes::default(),
            node: String::new(),
        }
    }

    /// Applies commands until it is closed. `opened` receives whether the first fallback succeeded.
    pub fn run(mut self, opened: &SyncSender<bool>) {
        prefault_stack();
        self.peers.core.state.errors.attach_thread();
        let text = if rnet_shm::os::thread::use_realtime_priority() { "" } else { NOT_REALTIME };
        self.reporter.log_holder_event(Kind::Opened, None, text);
        self.fall_back(FallbackReason::Opened, None);
        let _ = opened.try_send(!self.status.fallback_failed);
        while !self.shared.is_closed() {
            self.check_times();
            self.answer_requests();
            if self.take_command() {
                continue;
            }
            let next_check_ns =
                if self.needs_driver_check() { self.next_check_ns } else { u64::MAX };
            let lease_ns = self.authority.holder().map_or(u64::MAX, |holder| holder.until_ns);
            let due_ns = if self.has_fallen_back { u64::MAX } else { self.due_ns };
            let left = |until_ns: u64| Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            let until_ns = lease_ns.min(due_ns).min(next_check_ns);
            let limit = (until_ns < u64::MAX).then(|| left(until_ns));
            // Interrupted by a request, or by closing.
            let _ = self.set.wait_until(&mut [&mut self.commands], deadline(limit));
        }
        if !self.has_fallen_back {
            self.fall_back(FallbackReason::Closed, None);
        }
        self.reporter.log_holder_event(Kind::Closed, self.authority.holder(), "");
        self.publish_status(State::Closed, Reason::Closed);
    }

    /// Whether only the lease would detect the end of the driver.
    fn needs_driver_check(&self) -> bool {
        self.authority.holder().is_some_and(|holder| holder.last_applied.is_none())
    }

    fn check_times(&mut self) {
        let now_ns = now_ns();
        self.check_deadline(now_ns);
        if self.needs_driver_check() && now_ns >= self.next_check_ns {
            self.next_check_ns = now_ns.saturating_add(ns(DRIVER_CHECK_INTERVAL));
            let (publishers, nodes) = (self.commands.publishers(), self.peers.peers());
            let own = self.peers.name();
            let Some(holder) = self.authority.holder_mut() else { return };
            let is_there = holder.node == own
                || nodes.contains(&holder.node)
                || publishers.iter().any(|peer| peer.node == holder.node);
            let is_gone = holder.publisher_seen && !is_there;
            holder.publisher_seen |= is_there;
            let node = holder.node.clone();
            if let Some(holder) = is_gone.then(|| self.authority.end_lost(&node)).flatten() {
                self.lose_authority(&holder, Kind::DriverLost, FallbackReason::DriverLost);
            }
        }
        if let Some(holder) = self.authority.expire(now_ns) {
            self.lose_authority(&holder, Kind::Expired, FallbackReason::Expired);
        }
    }

    /// Ends the authority of a driver; records it in the audit trail.
    fn end_authority(
        &mut self,
        holder: &Holder,
        (kind, text): (Kind, impl Display),
        reason: FallbackReason,
    ) {
        // Applies the fallback first, then reports it.
        if self.has_fallen_back {
            self.publish_status(State::Fallback, reason.to_wire());
        } else {
            self.fall_back_from(Some(holder), reason, None);
        }
        self.reporter.log_holder_event(kind, Some(holder), text);
    }

    fn lose_authority(&mut self, holder: &Holder, kind: Kind, reason: FallbackReason) {
        self.end_authority(holder, (kind, reason.text()), reason);
    }

    /// Answers the drivers' requests.
    fn answer_requests(&mut self) {
        loop {
            let Some(ask) = self.shared.next_request() else { return };
            // A cancelled request is not granted: its driver assumes that it was not.
            if !ask.claim.take() || ask.call.as_ref().is_some_and(CallContext::is_cancelled) {
                continue;
            }
            // The previous request may have waited for its lock, or the thread for a command to be applied.
            self.check_times();
            let granted = self.handle_request(&ask);
            let holder = self.authority.holder();
            let reply = CommandReply {
                granted,
                number: holder.map_or(0, |holder| holder.number),
                holder: holder.map_or_else(String::new, |holder| holder.node.clone()),
                priority: holder.map_or(0, |holder| holder.priority),
                deadline: ns(self.deadline),
            };
            // If the driver is gone, its lease soon expires.
            let _ = ask.answer.try_send(reply);
            fail_point!("command.answered");
        }
    }

    fn handle_request(&mut self, ask: &DriverRequest) -> bool {
        match ask.request.action() {
            Action::Take => self.grant(ask),
            Action::Renew => self.authority.renew(&ask.node, ask.request.number, now_ns()),
            Action::Release => {
                let released = self.authority.release(&ask.node, ask.request.number);
                if let Some(holder) = &released {
                    self.lose_authority(holder, Kind::Released, FallbackReason::Released);
                }
                released.is_some()
            }
            Action::Unspecified => false,
        }
    }

    fn grant(&mut self, ask: &DriverRequest) -> bool {
        let CommandRequest { priority, outlasts_driver, lease, .. } = ask.request;
        let lease = Duration::from_nanos(lease);
        match self.authority.take(&ask.node, (priority, outlasts_driver), lease, now_ns()) {
            TakeOutcome::Refused => {
                let node = ask.node.clone();
                let logged = &mut self.logged_refusals;
                if logged.len() < MAX_LOGGED_REFUSALS && !logged.contains(&node) {
                    logged.push(node);
                    let held = self.authority.holder().map_or("", |holder| &holder.node);
                    let text = format_args!("{held} holds it");
                    self.reporter.log_event(Kind::Refused, &ask.node, priority, 0, text);
                }
                false
            }
            TakeOutcome::Granted { preempted } => {
                self.logged_refusals.clear();
                self.next_check_ns = 0;
                // The new driver may send no commands, as a robot stop does.
                match &preempted {
                    Some(holder) => {
                        let node = &ask.node;
                        let text = format_args!("{node} took it with priority {priority}");
                        self.end_authority(
                            holder,
                            (Kind::Preempted, text),
                            FallbackReason::Preempted,
                        );
                        fail_point!("command.preempted");
                    }
                    None => self.publish_status(State::Fallback, Reason::Granted),
                }
                fail_point!("command.granted");
                self.reporter.log_holder_event(Kind::Granted, self.authority.holder(), "");
                true
            }
        }
    }

    /// Processes one command, or one event of a driver, if available.
    fn take_command(&mut self) -> bool {
        self.count_skipped();
        let sample = match self.commands.try_recv() {
            Ok(None) => return false,
            Ok(Some(sample)) => sample,
            Err(error) => {
                self.on_error(&error);
                return true;
            }
        };
        let now_ns = now_ns();
        let origin = sample.origin().map(|of| (of.publisher.rotate_left(32) ^ of.host, of.seq));
        let (publisher, seq) = origin.unwrap_or((sample.publisher(), sample.seq()));
        let (number, sent_ns) = (sample.correlation(), sample.sent_ns());
        // The end of a local driver's publisher is known directly; the link reports that of a remote driver.
        let local = origin.is_none().then(|| sample.publisher());
        self.node.clear();
        self.node.push_str(sample.node());
        self.bytes.refill(&sample);
        // This thread may have been preempted since it read the clock.
        self.check_deadline(now_ns);
        let received =
            ReceivedCommand { number, node: &self.node, publisher, seq, sent_ns, now_ns };
        if let Err(why) = self.authority.check_command(&received, self.first, self.deadline) {
            self.count_ignored(why, number.unwrap_or(0));
            return true;
        }
        let (applied, refused) = self.apply_now(number, sent_ns, local);
        let took_ns = rnet_shm::os::clock::now_ns().saturating_sub(now_ns);
        fail_point!("command.applied");
        if let Some(why) = refused {
            self.count_ignored(why, number.unwrap_or(0));
            return true;
        }
        match applied {
            Ok(Ok(())) => {
                if let Fallback::Hold(last) = &mut self.fallback {
                    last.get_or_insert_default().refill(self.bytes.as_slice());
                }
                self.stats.applied += 1;
                self.intruder_logged = false;
                self.due_ns = now_ns.saturating_add(ns(self.deadline));
                if took_ns > ns(self.deadline) {
                    self.stats.overruns += 1;
                    self.fall_back(FallbackReason::Overrun, Some(took_ns / 1000));
                } else if self.has_fallen_back {
                    self.has_fallen_back = false;
                    self.publish_status(State::InForce, Reason::Unspecified);
                    self.reporter.log_holder_event(Kind::InForce, self.authority.holder(), "");
                }
            }
            Ok(Err(_)) => self.stats.malformed += 1,
            Err(payload) => {
                self.stats.panics += 1;
                self.fall_back(FallbackReason::Panicked, None);
                self.note_panic(payload);
            }
        }
        self.shared.publish_stats(self.stats);
        true
    }

    /// Applies the last checked command, if it is still valid when the user's code is ready for it: that code
    /// may have waited, for example for the lock of an interpreter. Returns the outcome, and why it was not
    /// applied.
    fn apply_now(
        &mut self,
        number: Option<u64>,
        sent_ns: u64,
        local: Option<u64>,
    ) -> (std::thread::Result<Result<(), String>>, Option<IgnoreReason>) {
        loop {
            let Receiver { apply, bytes, authority, shared, commands, deadline, .. } = self;
            let due_ns = if self.has_fallen_back { u64::MAX } else { self.due_ns };
            let (mut refused, mut late_ns) = (None, None);
            let mut still_valid = || {
                let now_ns = now_ns();
                late_ns = (now_ns >= due_ns).then_some(now_ns);
                let is_there = local.is_none_or(|publisher| commands.is_served_by(publisher));
                let holder = authority.still_valid(number, sent_ns, now_ns, *deadline);
                refused = match holder {
                    Ok(holder) if !is_there || shared.is_ended_by_request(holder) => {
                        Some(IgnoreReason::Superseded)
                    }
                    Ok(_) => None,
                    Err(why) => Some(why),
                };
                late_ns.is_none() && refused.is_none()
            };
            let applied =
                catch_unwind(AssertUnwindSafe(|| apply(bytes.as_slice(), &mut still_valid)));
            match late_ns {
                // If two commands are too far apart, the fallback comes between them.
                Some(now_ns) => self.check_deadline(now_ns),
                None => return (applied, refused),
            }
        }
    }

    /// Does not allocate; reading the statistics of the subscriber would.
    fn count_skipped(&mut self) {
        let now = self.commands.lost_or_skipped_now();
        if now != self.passed_over {
            // The count decreases when a driver is gone.
            self.stats.skipped += now.saturating_sub(self.passed_over);
            self.passed_over = now;
            self.shared.publish_stats(self.stats);
        }
    }

    fn on_error(&mut self, error: &Error) {
        let Error::PeerLost { node, .. } = error else { return };
        // Another publisher of the same node may be gone.
        let there = self.commands.publishers();
        if there.iter().any(|peer| peer.node == *node) {
            return;
        }
        if let Some(holder) = self.authority.end_lost(node) {
            self.lose_authority(&holder, Kind::DriverLost, FallbackReason::DriverLost);
        }
    }

    fn count_ignored(&mut self, why: IgnoreReason, number: u64) {
        let stats = &mut self.stats;
        match why {
            IgnoreReason::Late => stats.late += 1,
            IgnoreReason::Repeated => stats.repeated += 1,
            IgnoreReason::Superseded => stats.superseded += 1,
            IgnoreReason::Unauthorised => {
                stats.unauthorised += 1;
                if !std::mem::replace(&mut self.intruder_logged, true) {
                    let text = "it has no authority";
                    self.reporter.log_event(Kind::Intruder, &self.node, 0, number, text);
                }
            }
        }
        self.shared.publish_stats(self.stats);
    }

    /// Last, because it allocates.
    #[cold]
    fn note_panic(&self, panic: Box<dyn Any + Send>) {
        let name = format!("the command receiver of {}", self.commands.topic());
        self.peers.core.state.errors.note_panic(&name, &*panic);
        // Dropping it may panic, too.
        std::mem::forget(panic);
    }

    fn publish_status(&mut self, state: State, reason: Reason) {
        let holder = self.authority.holder();
        let status = &mut self.status;
        status.holder.clear();
        status.holder.push_str(holder.map_or("", |holder| &holder.node));
        status.priority = holder.map_or(0, |holder| holder.priority);
        status.number = holder.map_or(0, |holder| holder.number);
        status.lease = holder.map_or(0, |holder| ns(holder.lease));
        status.granted = status.granted.max(status.number);
        (status.applied, status.ignored) = (self.stats.applied, self.stats.ignored());
        status.fallbacks = self.stats.fallbacks;
        status.set_state(state);
        status.set_reason(reason);
        self.reporter.publish_status(&self.status);
        self.shared.publish(self.stats, &self.status);
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Prefaults the stack of this thread before memory is short.
#[inline(never)]
fn prefault_stack() {
    let mut stack = [0u8; PREFAULT_STACK_LEN_BYTES];
    std::hint::black_box(&mut stack);
}
