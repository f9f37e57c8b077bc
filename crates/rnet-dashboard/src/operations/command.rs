//! Authority over commands: taken to stop a robot, and held until somebody gives it back.
//!
//! It belongs to the dashboard, not to the page: a phone that loses its network must not let the robot go on. Each
//! command that is to be stopped has a thread, which takes authority again whenever it is lost: a receiver that
//! restarts knows of no stop, and a driver of before may be quick.

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

/// How long authority lasts should the dashboard be killed. A renewal that comes late, as on a busy machine, would let
/// the driver of before drive while a person sees the robot stopped: of the two, a robot that stands is safe.
const LEASE: Duration = Duration::from_secs(5);
/// Between two renewals.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time for a receiver.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for the answer to a page: that of a receiver, and what threads need.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// Between two tries to take authority again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Commands that are to be stopped at one moment, each with a thread: as many as pages are shown.
const MAX_HOLDS: usize = 256;

/// How far a thread is.
#[derive(Clone)]
enum Step {
    /// It has had no authority yet.
    Taking,
    InForce,
    /// It has had authority, and takes it again; why it has none.
    Lost(Refusal),
    Ended(Result<(), Refusal>),
}

#[derive(Clone)]
struct HoldStatus {
    is_wanted: bool,
    step: Step,
    /// How often somebody has asked for it.
    asked: u64,
    /// `asked` when the receiver was asked for what `step` says: who asks later wants to know how it is by then.
    answered: u64,
}

/// What a thread and who waits for it share.
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

    /// The number of one who asks now.
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

    /// How it is when this is so, or the time is over.
    fn wait_until(&self, limit: Duration, is_so: impl Fn(&HoldStatus) -> bool) -> HoldStatus {
        let wait = self.changed.wait_timeout_while(self.status(), limit, |now| !is_so(now));
        wait.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Waits until it is in force, as the receiver says to one who has asked with this number.
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

    /// Ends the wish, and the thread soon after it; waits for what has authority to give it back.
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

    /// The commands that are to be stopped, and whether they are.
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

    /// `command.take_all`: all at once, so that one whose receiver does not answer holds up none.
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
        // All are told before the first is waited for.
        let releases = std::thread::scope(|scope| {
            let threads = of_wanted.iter().map(|(of, held)| (*of, scope.spawn(|| held.release())));
            let threads: Vec<_> = threads.collect();
            let panicked = || Refusal::failed("a thread has panicked");
            let done = threads.into_iter().map(|(of, t)| (of, t.join().map_err(|_| panicked())));
            done.map(|(of, done)| (of.as_str(), done.and_then(|done| done))).collect::<Vec<_>>()
        });
        Ok(summary("released", releases.into_iter()))
    }

    /// Gives all of it back.
    pub fn close(&self) {
        let _ = self.release_all();
        // Until each has left the domain.
        let until = Instant::now() + ANSWER_TIMEOUT;
        for held in std::mem::take(&mut *self.held()).into_values() {
            let left = until.saturating_duration_since(Instant::now());
            held.wait_until(left, |now| matches!(now.step, Step::Ended(_)));
        }
    }

    /// Sees to it that a command is stopped from now on: by the thread that does so already, or by a new one. With the
    /// number by which that knows who asks.
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
                    // It was released just now; two threads would compete.
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

/// What came of all of them.
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

/// What the thread of a command has.
struct HoldThread {
    held: Arc<CommandHold>,
    command: String,
    app: Arc<AppState>,
    node: Arc<Node>,
    /// As of the last time; a receiver that comes back has it still, as a rule.
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
        // The node may be left only after this.
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
                // Whoever has pressed is told, and nothing stops long after that by itself.
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
        let taken = drive.message_type(message_type.clone()).take(Some(RECEIVER_TIMEOUT));
        // Of one that has not come back yet nothing else is known.
        if matches!(taken, Ok(_) | Err(rnet::Error::Timeout { .. })) {
            self.message_type = Some(message_type);
        }
        Ok(taken?)
    }

    /// Renews authority and sends nothing, so that the receiver falls back; why it was lost, unless it was released.
    fn renew(&self, mut driver: Driver<[u8]>) -> Result<Option<Refusal>, Refusal> {
        while self.held.is_wanted() {
            let asked = self.held.asked();
            // The receiver has gone, somebody of a higher priority has it, or this was too late for the lease.
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

/// The type of what the receiver takes.
fn type_of(snapshot: &Snapshot, command: &str) -> Result<MessageType, Refusal> {
    match receivers(snapshot).iter().any(|(of, _)| *of == command) {
        true => types::of_topic(snapshot, command),
        false => Err(Refusal::not_found(format!("command {command} does not exist"))),
    }
}
