//! The receiver's thread, the only one that applies commands and decides who is in force.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rnet_shm::ring::fail_point;

use super::authority::{Authority, Came, Holder, Ignored, Taken};
use super::fallback::{FallbackReason, Why};
use super::shared::{Ask, Shared, empty_status};
use super::tell::Tell;
use crate::call::Bytes;
use crate::msgs::command_event::Kind;
use crate::msgs::command_request::Action;
use crate::msgs::command_status::{Reason, State};
use crate::msgs::{CommandReply, CommandRequest, CommandStatus};
use crate::{CallContext, Error, Node, Subscriber, WaitSet, now_ns};

/// Refusals that the audit trail tells of, of different nodes, until authority is granted again: they are not to
/// push out what was granted.
const MAX_REFUSED_TOLD: usize = 16;
/// How often it is looked whether a driver is there that has sent nothing yet: its end is no message's.
const LOOK: Duration = Duration::from_millis(100);
/// Stack that is there before it is needed, in bytes.
const STACK: usize = 64 << 10;

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandStats {
    /// Commands that were applied.
    pub applied: u64,
    /// Commands that were older than the deadline when they came, or when they could be applied.
    pub late: u64,
    /// Commands that had been applied before, or after which a later one had.
    pub repeated: u64,
    /// Commands of drivers whose authority had ended.
    pub superseded: u64,
    /// Commands of nodes that never had the authority they claimed.
    pub unauthorised: u64,
    /// Commands that are not valid messages of the type.
    pub malformed: u64,
    /// Commands that were passed over because a newer one of the driver was there, or were lost on their way.
    pub passed_over: u64,
    /// How often it has fallen back, the opening and the closing not counted.
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

/// What a receiver does when it falls back.
pub enum Rest {
    Value(Bytes),
    /// The last command again, once there was one.
    Hold(Option<Bytes>),
    Handler(Box<dyn FnMut(FallbackReason) + Send>),
}

/// Whether a command may still be applied; asked immediately before the user's code gets it.
pub type StillValid<'a> = dyn FnMut() -> bool + 'a;

/// Applies a command if it is still valid when everything else is ready; an error says why it is not a message of the
/// type.
pub type Apply = Box<dyn FnMut(&[u8], &mut StillValid<'_>) -> Result<(), String> + Send>;

pub struct Receiver {
    /// Which nodes there are.
    peers: Node,
    deadline: Duration,
    commands: Subscriber<[u8]>,
    set: WaitSet,
    shared: Arc<Shared>,
    tell: Tell,
    rest: Rest,
    apply: Apply,
    authority: Authority,
    first: u64,
    stats: CommandStats,
    status: CommandStatus,
    fallen: bool,
    /// When the next command has to be there, in ns of CLOCK_MONOTONIC.
    due_ns: u64,
    /// A node without authority was told of, and no command was applied since.
    intruder_told: bool,
    /// Nodes whose refusal was told of since authority was granted last.
    refused_told: Vec<String>,
    /// When it is looked next whether a driver is there that has sent nothing yet, in ns of CLOCK_MONOTONIC.
    look_ns: u64,
    /// What the publishers that are there had passed over at the last look.
    passed_over: u64,
    /// The command that came last, kept apart from its publisher's memory.
    bytes: Bytes,
    node: String,
}

/// What is fixed when a receiver is opened.
pub struct Parts {
    pub peers: Node,
    pub deadline: Duration,
    pub commands: Subscriber<[u8]>,
    pub set: WaitSet,
    pub shared: Arc<Shared>,
    pub tell: Tell,
    pub rest: Rest,
    pub apply: Apply,
}

/// What the audit trail says of a receiver that may be kept from the processor.
const NOT_URGENT: &str = "its thread has no real-time priority, so it may fall back late on a busy machine; \
                          allow its user an rtprio limit of 1 or more: see rnet doctor";

impl Receiver {
    pub fn new(parts: Parts) -> Receiver {
        let Parts { peers, deadline, commands, set, shared, tell, rest, apply } = parts;
        // Above those of its predecessor.
        let first = now_ns().saturating_add_signed(crate::wall_offset().offset_ns).max(1);
        Receiver {
            peers,
            deadline,
            commands,
            set,
            shared,
            tell,
            rest,
            apply,
            authority: Authority::new(first),
            first,
            stats: CommandStats::default(),
            status: CommandStatus { deadline: ns(deadline), ..empty_status() },
            fallen: false,
            due_ns: 0,
            intruder_told: false,
            refused_told: Vec::with_capacity(MAX_REFUSED_TOLD),
            look_ns: 0,
            passed_over: 0,
            bytes: Bytes::default(),
            node: String::new(),
        }
    }

    /// Applies commands until it is closed. `opened` gets whether the first fallback succeeded.
    pub fn run(mut self, opened: &SyncSender<bool>) {
        touch_stack();
        self.peers.core().state.errors.attach_thread();
        let text = if rnet_shm::thread::use_realtime_priority() { "" } else { NOT_URGENT };
        self.tell.event(Kind::Opened, None, text);
        self.fall_back(FallbackReason::Opened, None);
        let _ = opened.try_send(!self.status.fallback_failed);
        while !self.shared.is_closed() {
            self.look_at_the_clock();
            self.answer();
            if self.take_one() {
                continue;
            }
            let look_ns = if self.is_looked_for() { self.look_ns } else { u64::MAX };
            let lease_ns = self.authority.holder().map_or(u64::MAX, |holder| holder.until_ns);
            let due_ns = if self.fallen { u64::MAX } else { self.due_ns };
            let left = |until_ns: u64| Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            let until_ns = lease_ns.min(due_ns).min(look_ns);
            let limit = (until_ns < u64::MAX).then(|| left(until_ns));
            // Interrupted by a request, or by the end.
            let _ = self.set.wait(&mut [&mut self.commands], limit);
        }
        if !self.fallen {
            self.fall_back(FallbackReason::Closed, None);
        }
        self.tell.event(Kind::Closed, self.authority.holder(), "");
        self.say(State::Closed, Reason::Closed);
    }

    /// Whether the end of the driver would be noticed by its lease alone.
    fn is_looked_for(&self) -> bool {
        self.authority.holder().is_some_and(|holder| holder.course.is_none())
    }

    /// Falls back if the deadline has passed.
    fn keep_the_deadline(&mut self, now_ns: u64) {
        if !self.fallen && now_ns >= self.due_ns {
            let late_us = (now_ns - self.due_ns) / 1000;
            self.fall_back(FallbackReason::Deadline, Some(late_us));
        }
    }

    fn look_at_the_clock(&mut self) {
        let now_ns = now_ns();
        self.keep_the_deadline(now_ns);
        if self.is_looked_for() && now_ns >= self.look_ns {
            self.look_ns = now_ns.saturating_add(ns(LOOK));
            let (publishers, nodes) = (self.commands.publishers(), self.peers.peers());
            let own = self.peers.name();
            let Some(holder) = self.authority.holder_mut() else { return };
            let is_there = holder.node == own
                || nodes.contains(&holder.node)
                || publishers.iter().any(|peer| peer.node == holder.node);
            let is_gone = holder.seen && !is_there;
            holder.seen |= is_there;
            let node = holder.node.clone();
            if let Some(holder) = is_gone.then(|| self.authority.lose(&node)).flatten() {
                self.lost(&holder, Kind::DriverLost, FallbackReason::DriverLost);
            }
        }
        if let Some(holder) = self.authority.expire(now_ns) {
            self.lost(&holder, Kind::Expired, FallbackReason::Expired);
        }
    }

    /// One that had authority has it no more; what the audit trail says of it.
    fn ended(
        &mut self,
        holder: &Holder,
        (kind, text): (Kind, impl Display),
        reason: FallbackReason,
    ) {
        // What is safe first, then what is said of it.
        if self.fallen {
            self.say(State::Fallback, reason.wire());
        } else {
            self.fall_back_of(Some(holder), reason, None);
        }
        self.tell.event(kind, Some(holder), text);
    }

    fn lost(&mut self, holder: &Holder, kind: Kind, reason: FallbackReason) {
        self.ended(holder, (kind, reason.text()), reason);
    }

    /// Answers the drivers that have asked.
    fn answer(&mut self) {
        loop {
            let Some(ask) = self.shared.next_ask() else { return };
            // One that was given up is not granted: its driver believes that it was not.
            if !ask.turn.take() || ask.call.as_ref().is_some_and(CallContext::is_cancelled) {
                continue;
            }
            // The one before may have waited for its lock, or the thread for a command to be applied.
            self.look_at_the_clock();
            let granted = self.obey(&ask);
            let holder = self.authority.holder();
            let reply = CommandReply {
                granted,
                number: holder.map_or(0, |holder| holder.number),
                holder: holder.map_or_else(String::new, |holder| holder.node.clone()),
                priority: holder.map_or(0, |holder| holder.priority),
                deadline: ns(self.deadline),
            };
            // A driver that is gone has lost its lease soon.
            let _ = ask.answer.try_send(reply);
            fail_point!("command.answered");
        }
    }

    fn obey(&mut self, ask: &Ask) -> bool {
        match ask.request.action() {
            Action::Take => self.grant(ask),
            Action::Renew => self.authority.renew(&ask.node, ask.request.number, now_ns()),
            Action::Release => {
                let released = self.authority.release(&ask.node, ask.request.number);
                if let Some(holder) = &released {
                    self.lost(holder, Kind::Released, FallbackReason::Released);
                }
                released.is_some()
            }
            Action::Unspecified => false,
        }
    }

    fn grant(&mut self, ask: &Ask) -> bool {
        let CommandRequest { priority, outlasts_driver, lease, .. } = ask.request;
        let lease = Duration::from_nanos(lease);
        match self.authority.take(&ask.node, (priority, outlasts_driver), lease, now_ns()) {
            Taken::Refused => {
                let node = ask.node.clone();
                let told = &mut self.refused_told;
                if told.len() < MAX_REFUSED_TOLD && !told.contains(&node) {
                    told.push(node);
                    let held = self.authority.holder().map_or("", |holder| &holder.node);
                    let text = format_args!("{held} holds it");
                    self.tell.line(Kind::Refused, &ask.node, priority, 0, text);
                }
                false
            }
            Taken::Granted { preempted } => {
                self.refused_told.clear();
                self.look_ns = 0;
                // The new driver may send nothing: a stop does so.
                match &preempted {
                    Some(holder) => {
                        let node = &ask.node;
                        let text = format_args!("{node} took it with priority {priority}");
                        self.ended(holder, (Kind::Preempted, text), FallbackReason::Preempted);
                        fail_point!("command.preempted");
                    }
                    None => self.say(State::Fallback, Reason::Granted),
                }
                fail_point!("command.granted");
                self.tell.event(Kind::Granted, self.authority.holder(), "");
                true
            }
        }
    }

    /// Takes one command, or what has happened to a driver, if there is one.
    fn take_one(&mut self) -> bool {
        self.count_passed_over();
        let sample = match self.commands.try_recv() {
            Ok(None) => return false,
            Ok(Some(sample)) => sample,
            Err(error) => {
                self.hear(&error);
                return true;
            }
        };
        let now_ns = now_ns();
        let course = sample.origin().map(|of| (of.publisher.rotate_left(32) ^ of.host, of.seq));
        let (publisher, seq) = course.unwrap_or((sample.publisher(), sample.seq()));
        let (number, sent_ns) = (sample.correlation(), sample.sent_ns());
        // Of a driver of this host it is known when its publisher is gone; of another, by the link.
        let local = course.is_none().then(|| sample.publisher());
        self.node.clear();
        self.node.push_str(sample.node());
        self.bytes.refill(&sample);
        // This thread may have stood still since it looked at the clock.
        self.keep_the_deadline(now_ns);
        let came = Came { number, node: &self.node, publisher, seq, sent_ns, now_ns };
        if let Err(why) = self.authority.judge(&came, self.first, self.deadline) {
            self.ignore(why, number.unwrap_or(0));
            return true;
        }
        let (applied, refused) = self.apply_now(number, sent_ns, local);
        let took_ns = crate::now_ns().saturating_sub(now_ns);
        fail_point!("command.applied");
        if let Some(why) = refused {
            self.ignore(why, number.unwrap_or(0));
            return true;
        }
        match applied {
            Ok(Ok(())) => {
                if let Rest::Hold(last) = &mut self.rest {
                    last.get_or_insert_default().refill(self.bytes.as_slice());
                }
                self.stats.applied += 1;
                self.intruder_told = false;
                self.due_ns = now_ns.saturating_add(ns(self.deadline));
                if took_ns > ns(self.deadline) {
                    self.stats.overruns += 1;
                    self.fall_back(FallbackReason::Overrun, Some(took_ns / 1000));
                } else if self.fallen {
                    self.fallen = false;
                    self.say(State::InForce, Reason::Unspecified);
                    self.tell.event(Kind::InForce, self.authority.holder(), "");
                }
            }
            Ok(Err(_)) => self.stats.malformed += 1,
            Err(payload) => {
                self.stats.panics += 1;
                self.fall_back(FallbackReason::Panicked, None);
                self.note_panic(payload);
            }
        }
        self.shared.show_stats(self.stats);
        true
    }

    /// Applies the command that was judged last, if it is still valid at the moment at which the user's code is ready for
    /// it: that may have waited, for the lock of an interpreter say. What came of it, and why it was not applied.
    fn apply_now(
        &mut self,
        number: Option<u64>,
        sent_ns: u64,
        local: Option<u64>,
    ) -> (std::thread::Result<Result<(), String>>, Option<Ignored>) {
        loop {
            let Receiver { apply, bytes, authority, shared, commands, deadline, .. } = self;
            let due_ns = if self.fallen { u64::MAX } else { self.due_ns };
            let (mut refused, mut late_ns) = (None, None);
            let mut still_valid = || {
                let now_ns = now_ns();
                late_ns = (now_ns >= due_ns).then_some(now_ns);
                let is_there = local.is_none_or(|publisher| commands.is_served_by(publisher));
                let holder = authority.still_valid(number, sent_ns, now_ns, *deadline);
                refused = match holder {
                    Ok(holder) if !is_there || shared.ends(holder) => Some(Ignored::Superseded),
                    Ok(_) => None,
                    Err(why) => Some(why),
                };
                late_ns.is_none() && refused.is_none()
            };
            let applied =
                catch_unwind(AssertUnwindSafe(|| apply(bytes.as_slice(), &mut still_valid)));
            match late_ns {
                // What is safe comes between two commands that are too far apart.
                Some(now_ns) => self.keep_the_deadline(now_ns),
                None => return (applied, refused),
            }
        }
    }

    /// Without an allocation, which the statistics of the subscriber take.
    fn count_passed_over(&mut self) {
        let now = self.commands.passed_over_now();
        if now != self.passed_over {
            // It is less when a driver has gone.
            self.stats.passed_over += now.saturating_sub(self.passed_over);
            self.passed_over = now;
            self.shared.show_stats(self.stats);
        }
    }

    fn hear(&mut self, error: &Error) {
        let Error::PeerLost { node, .. } = error else { return };
        // Another publisher of the same node may be gone.
        let there = self.commands.publishers();
        if there.iter().any(|peer| peer.node == *node) {
            return;
        }
        if let Some(holder) = self.authority.lose(node) {
            self.lost(&holder, Kind::DriverLost, FallbackReason::DriverLost);
        }
    }

    fn ignore(&mut self, why: Ignored, number: u64) {
        let stats = &mut self.stats;
        match why {
            Ignored::Late => stats.late += 1,
            Ignored::Repeated => stats.repeated += 1,
            Ignored::Superseded => stats.superseded += 1,
            Ignored::Unauthorised => {
                stats.unauthorised += 1;
                if !std::mem::replace(&mut self.intruder_told, true) {
                    let text = "it has no authority";
                    self.tell.line(Kind::Intruder, &self.node, 0, number, text);
                }
            }
        }
        self.shared.show_stats(self.stats);
    }

    fn fall_back(&mut self, reason: FallbackReason, us: Option<u64>) {
        self.fall_back_of(None, reason, us);
    }

    /// Does what is safe, then says so, without an allocation: the process may have no memory. `ended` is who has no
    /// authority any more because of it, `us` how late, or how long.
    fn fall_back_of(&mut self, ended: Option<&Holder>, reason: FallbackReason, us: Option<u64>) {
        let (rest, apply) = (&mut self.rest, &mut self.apply);
        let done = catch_unwind(AssertUnwindSafe(|| match rest {
            // It was encoded as a message of the type.
            Rest::Value(bytes) => drop(apply(bytes.as_slice(), &mut || true)),
            Rest::Hold(Some(last)) => drop(apply(last.as_slice(), &mut || true)),
            Rest::Hold(None) => {}
            Rest::Handler(handler) => handler(reason),
        }));
        self.fallen = true;
        fail_point!("command.fallen");
        let panic = done.err();
        let panicked = panic.is_some();
        self.stats.panics += u64::from(panicked);
        self.status.fallback_failed = panicked;
        if !matches!(reason, FallbackReason::Opened | FallbackReason::Closed) {
            self.stats.fallbacks += 1;
        }
        self.say(State::Fallback, reason.wire());
        let of = ended.or(self.authority.holder());
        self.tell.event(Kind::Fallback, of, Why { reason, us, panicked });
        if let Some(panic) = panic {
            self.note_panic(panic);
        }
    }

    /// Last: it allocates.
    #[cold]
    fn note_panic(&self, panic: Box<dyn Any + Send>) {
        let name = format!("the command receiver of {}", self.commands.topic());
        self.peers.core().state.errors.note_panic(&name, &*panic);
        // To drop it may panic, too.
        std::mem::forget(panic);
    }

    fn say(&mut self, state: State, reason: Reason) {
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
        self.tell.status(&self.status);
        self.shared.show(self.stats, &self.status);
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Has the stack of this thread in memory before it is short.
#[inline(never)]
fn touch_stack() {
    let mut stack = [0u8; STACK];
    std::hint::black_box(&mut stack);
}
