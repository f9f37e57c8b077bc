//! Authority over commands: taken to stop a robot, and held until it is released.
//!
//! The dashboard holds it, not the page: a phone that loses its network must not let the robot continue. Each
//! stopped command has a thread, which takes authority again whenever it is lost: a restarted receiver does
//! not know of the stop, and the previous driver may be faster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rnet::inspect::Snapshot;
use rnet::{Driver, MessageType, Node};
use rnet_monitor::documents::receivers;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operator_node::OperatorNode;
use super::types;
use crate::app_state::{AppState, lock};
use crate::wire::{Answer, Refusal, fields_of};

/// Lease of the authority, in case the dashboard is killed. With a shorter lease, a late renewal on a busy
/// machine would let the previous driver drive while a person sees the robot stopped. A robot that stays
/// stopped for longer is the safe choice.
const LEASE: Duration = Duration::from_secs(5);
/// Interval between two renewals.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(250);
/// Timeout of a receiver.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the answer to a page: that of a receiver, and a margin for threads.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// Interval between two attempts to take authority again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of stopped commands, each with a thread: as many as pages show.
const MAX_HOLDS: usize = 256;

/// State of a thread.
#[derive(Clone)]
enum Step {
    /// It has had no authority yet.
    Taking,
    InForce,
    /// It had authority, and takes it again; contains the reason for the loss.
    Lost(Refusal),
    Ended(Result<(), Refusal>),
}

#[derive(Clone)]
struct HoldStatus {
    is_wanted: bool,
    step: Step,
    /// Number of requests for it.
    asked: u64,
    /// `asked` at the time when the receiver was asked for the result in `step`. Later requests wait for a
    /// newer result.
    answered: u64,
}

/// State shared by a thread and its requesters.
struct CommandHold {
    status: Mutex<HoldStatus>,
    changed: Condvar,
    priority: AtomicI32,
}

impl CommandHold {
    fn status(&self) -> MutexGuard<'_, HoldStatus> {
        lock(&self.status)
    }

    fn set_step(&self, step: Step, answered: u64) {
        let mut now = self.status();
        (now.step, now.answered) = (step, answered);
        drop(now);
        self.changed.notify_all();
    }

    /// Counts a request, and returns its number.
    fn ask(&self) -> u64 {
        let mut now = self.status();
        now.asked += 1;
        let asked = now.asked;
        drop(now);
        self.changed.notify_all();
        asked
    }

    fn asked(&self) -> u64 {
        self.status().asked
    }

    fn is_wanted(&self) -> bool {
        self.status().is_wanted
    }

    fn is_ended(&self) -> bool {
        matches!(self.status().step, Step::Ended(_))
    }

    /// The status once `is_so` is true, or after the timeout.
    fn wait_until(&self, limit: Duration, is_so: impl Fn(&HoldStatus) -> bool) -> HoldStatus {
        let wait = self.changed.wait_timeout_while(self.status(), limit, |now| !is_so(now));
        wait.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Waits until the receiver confirms authority for the request with this number.
    fn outcome(&self, asked: u64, until: Instant) -> Result<(), Refusal> {
        let left = until.saturating_duration_since(Instant::now());
        let is_so = |now: &HoldStatus| match now.step {
            Step::InForce => now.answered >= asked,
            Step::Ended(_) => true,
            Step::Taking | Step::Lost(_) => false,
        };
        let now = self.wait_until(left, is_so);
        match now.step {
            Step::InForce if now.answered >= asked => Ok(()),
            Step::Ended(Err(refusal)) | Step::Lost(refusal) => Err(refusal),
            Step::Ended(Ok(())) => {
                Err(Refusal::new("cancelled", "it was released in the meantime"))
            }
            _ => Err(Refusal::new("timed_out", "its receiver does not answer")),
        }
    }

    /// Clears the request, which ends the thread soon; waits until authority is released.
    fn release(&self) -> Result<(), Refusal> {
        let was_in_force = {
            let mut now = self.status();
            now.is_wanted = false;
            matches!(now.step, Step::InForce)
        };
        self.changed.notify_all();
        if !was_in_force {
            return Ok(());
        }
        match self.wait_until(ANSWER_TIMEOUT, |now| matches!(now.step, Step::Ended(_))).step {
            Step::Ended(done) => done,
            _ => Err(Refusal::new(
                "timed_out",
                "its receiver does not answer; authority ends with the lease",
            )),
        }
    }
}

#[derive(Default)]
pub struct Authority {
    held: Mutex<BTreeMap<String, Arc<CommandHold>>>,
}

#[derive(Deserialize)]
struct TakeRequest {
    command: String,
    #[serde(default = "default_priority")]
    priority: i32,
}

fn default_priority() -> i32 {
    100
}

impl Authority {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Arc<CommandHold>>> {
        lock(&self.held)
    }

    /// The commands to be stopped, and whether they are.
    pub fn held_commands(&self) -> BTreeMap<String, bool> {
        let all = self.held();
        let rows = all.iter().filter_map(|(command, held)| {
            let now = held.status();
            let is_in_force = matches!(now.step, Step::InForce);
            now.is_wanted.then(|| (command.clone(), is_in_force))
        });
        rows.collect()
    }

    /// `command.take`.
    pub fn take(&self, operator: &OperatorNode, fields: Json) -> Answer {
        let TakeRequest { command, priority } = fields_of(fields)?;
        let (held, asked) = self.hold_command(operator, &command, priority)?;
        held.outcome(asked, Instant::now() + ANSWER_TIMEOUT)?;
        Ok(json!({"held": true}))
    }

    /// `command.take_all`: all at once, so that a receiver that does not answer delays no other.
    pub fn take_all(&self, operator: &OperatorNode, fields: Json) -> Answer {
        #[derive(Deserialize)]
        struct TakeAllRequest {
            #[serde(default = "default_priority")]
            priority: i32,
        }
        let TakeAllRequest { priority } = fields_of(fields)?;
        let snapshot = operator.app.snapshot()?;
        let commands: BTreeSet<&str> =
            receivers(&snapshot).into_iter().map(|(command, _)| command).collect();
        let wanted = commands.into_iter().map(|of| (of, self.hold_command(operator, of, priority)));
        let wanted: Vec<_> = wanted.collect();
        let until = Instant::now() + ANSWER_TIMEOUT;
        let outcome = |(held, asked): (Arc<CommandHold>, u64)| held.outcome(asked, until);
        let done = wanted.into_iter().map(|(of, held)| (of, held.and_then(outcome)));
        Ok(summary("held", done))
    }

    /// `command.release`.
    pub fn release(&self, fields: Json) -> Answer {
        #[derive(Deserialize)]
        struct ReleaseRequest {
            command: String,
        }
        let ReleaseRequest { command } = fields_of(fields)?;
        let held = self.held().get(&command).filter(|held| held.is_wanted()).cloned();
        let Some(held) = held else {
            return Err(Refusal::not_found(format!(
                "this dashboard has no authority over {command}"
            )));
        };
        held.release()?;
        Ok(json!({"held": false}))
    }

    /// `command.release_all`.
    pub fn release_all(&self) -> Answer {
        let held = self.held().clone();
        let of_wanted: Vec<_> = held.iter().filter(|(_, held)| held.is_wanted()).collect();
        // All are notified before the first is waited for.
        let releases = std::thread::scope(|scope| {
            let threads = of_wanted.iter().map(|(of, held)| (*of, scope.spawn(|| held.release())));
            let threads: Vec<_> = threads.collect();
            let panicked = || Refusal::failed("a thread has panicked");
            let done = threads.into_iter().map(|(of, t)| (of, t.join().map_err(|_| panicked())));
            done.map(|(of, done)| (of.as_str(), done.and_then(|done| done))).collect::<Vec<_>>()
        });
        Ok(summary("released", releases.into_iter()))
    }

    /// Releases all commands.
    pub fn close(&self) {
        let _ = self.release_all();
        // Waits until each thread has left the domain.
        let until = Instant::now() + ANSWER_TIMEOUT;
        for held in std::mem::take(&mut *self.held()).into_values() {
            let left = until.saturating_duration_since(Instant::now());
            held.wait_until(left, |now| matches!(now.step, Step::Ended(_)));
        }
    }

    /// Ensures that a command is stopped from now on, by an existing thread or a new one. Also returns the
    /// number of the request.
    fn hold_command(
        &self,
        operator: &OperatorNode,
        command: &str,
        priority: i32,
    ) -> Result<(Arc<CommandHold>, u64), Refusal> {
        let node = operator.node()?;
        let until = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let ending = {
                let mut all = self.held();
                all.retain(|_, held| !held.is_ended());
                match all.get(command) {
                    Some(held) if held.is_wanted() => {
                        held.priority.fetch_max(priority, Ordering::AcqRel);
                        return Ok((held.clone(), held.ask()));
                    }
                    // It was just released; two threads would compete.
                    Some(held) => held.clone(),
                    None if all.len() >= MAX_HOLDS => {
                        let why = format!("{MAX_HOLDS} commands are held; release one");
                        return Err(Refusal::new("limit", why));
                    }
                    None => {
                        let holder = HoldThread::new(command, priority, &operator.app, node);
                        let held = holder.start()?;
                        all.insert(command.to_owned(), held.clone());
                        return Ok((held, 0));
                    }
                }
            };
            let left = until.saturating_duration_since(Instant::now());
            let now = ending.wait_until(left, |now| matches!(now.step, Step::Ended(_)));
            if !matches!(now.step, Step::Ended(_)) {
                let why = format!("{command} was released, but its receiver does not answer");
                return Err(Refusal::new("timed_out", why));
            }
        }
    }
}

/// The result for several commands.
fn summary<'a>(word: &str, done: impl Iterator<Item = (&'a str, Result<(), Refusal>)>) -> Json {
    let (mut well, mut refused) = (Vec::new(), Vec::new());
    for (command, done) in done {
        match done {
            Ok(()) => well.push(command),
            Err(Refusal { code, message }) => {
                refused.push(json!({"command": command, "code": code, "message": message}));
            }
        }
    }
    json!({word: well, "refused": refused})
}

/// State of the thread of a command.
struct HoldThread {
    held: Arc<CommandHold>,
    command: String,
    app: Arc<AppState>,
    node: Arc<Node>,
    /// The last known type; a receiver that comes back usually has the same type.
    message_type: Option<MessageType>,
}

impl HoldThread {
    fn new(command: &str, priority: i32, app: &Arc<AppState>, node: Arc<Node>) -> HoldThread {
        let (priority, changed) = (AtomicI32::new(priority), Condvar::new());
        let status =
            Mutex::new(HoldStatus { is_wanted: true, step: Step::Taking, asked: 0, answered: 0 });
        let held = Arc::new(CommandHold { status, changed, priority });
        let (command, app) = (command.to_owned(), app.clone());
        HoldThread { held, command, app, node, message_type: None }
    }

    fn start(self) -> Result<Arc<CommandHold>, Refusal> {
        let held = self.held.clone();
        let thread = std::thread::Builder::new().name("rnet-dash-drive".to_owned());
        let thread = thread.spawn(move || self.run());
        thread.map_err(|why| Refusal::failed(format!("cannot start a thread: {why}")))?;
        Ok(held)
    }

    fn run(mut self) {
        let held = self.held.clone();
        let work = std::panic::AssertUnwindSafe(|| self.hold());
        let panicked = |_| Err(Refusal::failed("the thread that held it has panicked"));
        let done = std::panic::catch_unwind(work).unwrap_or_else(panicked);
        // The node is dropped before the end is reported.
        drop(self);
        held.set_step(Step::Ended(done), held.asked());
    }

    fn hold(&mut self) -> Result<(), Refusal> {
        let mut has_had = false;
        while self.held.is_wanted() {
            let asked = self.held.asked();
            match self.take() {
                Ok(driver) => {
                    has_had = true;
                    self.held.set_step(Step::InForce, asked);
                    match self.renew(driver)? {
                        Some(lost) => self.held.set_step(Step::Lost(lost), asked),
                        None => return Ok(()),
                    }
                }
                // The requester gets the error, and the thread ends: a later stop would be unexpected.
                Err(refusal) if !has_had => return Err(refusal),
                Err(refusal) => {
                    self.held.set_step(Step::Lost(refusal), asked);
                    self.held.wait_until(RETRY_INTERVAL, |now| !now.is_wanted);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Driver<[u8]>, Refusal> {
        let message_type = match self.message_type.take() {
            Some(message_type) => message_type,
            None => {
                let snapshot = self.app.snapshot()?;
                type_of(&snapshot, &self.command)?
            }
        };
        let priority = self.held.priority.load(Ordering::Acquire);
        let drive = self
            .node
            .drive::<[u8]>(&self.command)
            .priority(priority)
            .lease(LEASE)
            .outlasts_driver(true);
        let taken = drive.message_type(message_type.clone()).timeout(RECEIVER_TIMEOUT).take();
        // The type of an absent receiver is unknown.
        if matches!(taken, Ok(_) | Err(rnet::Error::Timeout { .. })) {
            self.message_type = Some(message_type);
        }
        Ok(taken?)
    }

    /// Renews authority without sending, so that the receiver falls back. Returns why authority was lost, or
    /// `None` if it was released.
    fn renew(&self, mut driver: Driver<[u8]>) -> Result<Option<Refusal>, Refusal> {
        while self.held.is_wanted() {
            let asked = self.held.asked();
            // The receiver is gone, a driver with a higher priority took over, or the renewal was too late.
            if let Err(why) = driver.renew() {
                return Ok(Some(why.into()));
            }
            self.held.set_step(Step::InForce, asked);
            self.held.wait_until(RENEWAL_INTERVAL, |now| !now.is_wanted || now.asked != asked);
        }
        driver.release()?;
        Ok(None)
    }
}

/// The type of a command.
fn type_of(snapshot: &Snapshot, command: &str) -> Result<MessageType, Refusal> {
    match receivers(snapshot).iter().any(|(of, _)| *of == command) {
        true => types::of_topic(snapshot, command),
        false => Err(Refusal::not_found(format!("command {command} does not exist"))),
    }
}
