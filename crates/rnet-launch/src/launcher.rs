//! The launcher: starts nodes in their order, and does what is to be done when one ends.
//!
//! It is one loop. Each round looks at what has ended, what is wished, what has become ready and what is due; then it
//! waits for the end of a keeper or a tenth of a second. All that it has to know to be replaced by another launcher
//! stands in the records of the keepers.

mod ending;
mod on_failure;
mod ready;
mod refused;
mod reload;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rnet::inspect::Domain;
use rnet::state::Value;
use rnet::{NodeName, fail_point};
use rnet_config::ConfigError;

use crate::file::{Choices, Plan};
use crate::identity::Identity;
use crate::keeper::{Answer, KeeperOrder, Signals, any_of};
use crate::node::{Node, ParamValue};
use crate::place::RunFolder;
use crate::policy::Verdict;
use crate::record::{End, Record, lock_if_abandoned};
use crate::slot::{Fate, Slot, State, Status};
use crate::{LaunchError, Result};

pub use refused::Undeclared;

/// How often the launcher looks for what does not wake it: readiness, wishes, a changed file.
const ROUND: Duration = Duration::from_millis(100);

/// Looks for the record of a keeper that has its node already, before it is told that there is none. The wait between
/// two doubles up to then, from a round on: 1.5 s in all.
const MAX_LOOKS: u32 = 5;
/// Between two looks at a black box that is not ours.
const OTHER_BOX: Duration = Duration::from_secs(1);

/// What a launcher needs of the program that it is in.
pub trait Surroundings: Signals {
    /// The command of a keeper, which reads its order from its standard input.
    fn keeper(&self, node: &NodeName) -> Command;

    /// The domain, to look at.
    ///
    /// # Errors
    /// Why it cannot be looked at.
    fn domain(&self) -> rnet::Result<Domain>;

    /// A node in the domain, to set parameters with.
    ///
    /// # Errors
    /// Why there can be none.
    fn node(&self) -> rnet::Result<rnet::Node>;

    /// Whether somebody who has stopped the launch does not want to wait for the ends of its nodes.
    fn stopped_twice(&self) -> bool {
        false
    }

    /// Says that something has happened to a node.
    fn event(&mut self, node: &NodeName, what: &str, detail: &str);

    /// Says something of the whole.
    fn say(&mut self, text: &str);

    /// Shows how all nodes are; called in each round.
    fn status(&mut self, rows: &[Status]);
}

/// How a launch has ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Nodes that failed or never began, and why.
    pub failed: Vec<(NodeName, String)>,
    /// Whether somebody has stopped it.
    pub is_stopped: bool,
    /// Nodes that go on, because somebody did not want to wait for their ends: process, and what becomes of it.
    pub left: Vec<(NodeName, String)>,
}

/// Starts the nodes of a plan, and keeps them running.
pub struct Launcher<'s> {
    plan: Plan,
    path: PathBuf,
    choices: Choices,
    folder: RunFolder,
    slots: Vec<Slot>,
    around: &'s mut dyn Surroundings,
    domain: Option<Domain>,
    began: Instant,
    is_stopping: bool,
    /// Commands of `on_failure` that run.
    helpers: Vec<on_failure::Helper>,
    /// With reload: the files as the last round saw them, and whether they were refused.
    seen: Option<reload::Seen>,
    _lock: File,
}

impl<'s> Launcher<'s> {
    /// A launcher of the plan of this file. With `reloads` it follows changes of the file.
    ///
    /// # Errors
    /// Another launcher has the file; the folder cannot be made.
    pub fn new(
        path: PathBuf,
        choices: Choices,
        folder: RunFolder,
        reloads: bool,
        around: &'s mut dyn Surroundings,
    ) -> Result<Launcher<'s>> {
        let plan = crate::file::load(&path, &choices)?;
        folder.create()?;
        let path_of_lock = folder.launcher_lock(&plan.file);
        let has_owner = || around.stopped() || Identity::may_live(&path_of_lock);
        let Some(lock) = lock_if_abandoned(&path_of_lock, has_owner)? else {
            if around.stopped() {
                return Err(LaunchError::Stopped);
            }
            let other = Identity::noted(&path_of_lock).map(|other| format!(", pid {}", other.pid));
            return Err(LaunchError::Refused(format!(
                "{} is already launched in this domain by another rnet launch{}",
                plan.file.display(),
                other.unwrap_or_default()
            )));
        };
        // For whoever finds the lock held; without it, it is held all the same.
        let _ = Identity::note(&lock);
        let slots = plan.nodes.iter().cloned().map(Slot::new).collect();
        let seen = reloads.then(reload::Seen::default);
        Ok(Launcher {
            plan,
            path,
            choices,
            folder,
            slots,
            around,
            domain: None,
            began: Instant::now(),
            is_stopping: false,
            helpers: Vec::new(),
            seen,
            _lock: lock,
        })
    }

    /// Runs until every node has exited or a stop is requested. On return all nodes are stopped, except those of
    /// [`Outcome::left`].
    ///
    /// # Errors
    /// The system cannot wait. Nodes that run go on.
    pub fn run(mut self) -> Result<Outcome> {
        self.tell_unfit(self.plan.unfit());
        self.find_strays();
        for slot in &self.slots {
            // What was wished of an earlier launch.
            let _ = std::fs::remove_file(self.folder.wish(&slot.node.name));
        }
        loop {
            self.take_ends();
            self.is_stopping |= self.around.stopped();
            self.look_after_helpers();
            if self.is_stopping {
                self.stop_next();
                if self.around.stopped_twice() {
                    return Ok(Outcome { left: self.left(), ..self.outcome() });
                }
            } else {
                self.follow_file();
                self.heed_wishes();
                self.look_who_is_ready();
                self.report_refused_params();
                self.start_due();
                self.end_what_is_beside();
            }
            let rows: Vec<Status> = self.slots.iter().map(Slot::status).collect();
            self.around.status(&rows);
            if self.is_over() {
                self.settle_all();
                return Ok(self.outcome());
            }
            self.wait()?;
        }
    }

    /// Tells what does not fit the machine. The nodes are started all the same: another node may be what makes it fit,
    /// and the rest of the robot is to run.
    fn tell_unfit(&mut self, unfit: Vec<ConfigError>) {
        for error in unfit {
            self.around.say(&format!("{error}; the node is started anyway"));
        }
    }

    fn slot(&self, name: &NodeName) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.node.name == *name)
    }

    /// Nodes that an earlier launch of this file has started, and that it names no more.
    fn find_strays(&mut self) {
        for record in Record::all(&self.folder) {
            if record.file != self.plan.file {
                continue;
            }
            record.end_orphans();
            if self.slot(&record.node).is_some() {
                continue;
            }
            let Some(keeper) = record.keeper() else {
                self.settle(&record.node);
                continue;
            };
            let mut slot = Slot::new(Node::new(record.node.clone(), record.process.clone()));
            slot.runs(&record, keeper, None);
            slot.fate = Fate::Forgotten;
            slot.stop();
            self.around.event(&record.node, "stopping", "removed from the file");
            self.slots.push(slot);
        }
    }

    fn take_ends(&mut self) {
        for at in 0..self.slots.len() {
            if self.slots[at].has_ended() {
                let record = Record::read(&self.folder, &self.slots[at].node.name);
                if let Some(record) = &record {
                    record.end_orphans();
                    let slot = &mut self.slots[at];
                    if slot.fate == Fate::Policy && slot.was_stopped_before(record) {
                        slot.fate = Fate::Again;
                    }
                }
                let (end, output) = self.slots[at].ended(record);
                fail_point!("launch.ended");
                self.ended(at, end, &output);
            }
        }
        self.slots.retain(|slot| slot.fate != Fate::Forgotten || slot.is_running());
    }

    /// What becomes of a node that has ended, after this output.
    fn ended(&mut self, at: usize, end: End, output: &[String]) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        let is_done = self.slots[at].node.is_beside && !self.goes_on();
        let slot = &mut self.slots[at];
        let name = slot.node.name.clone();
        let wish = std::fs::read_to_string(self.folder.wish(&name)).unwrap_or_default();
        let _ = std::fs::remove_file(self.folder.wish(&name));
        slot.why = end.to_string();
        if self.is_stopping || is_done || slot.fate == Fate::Forgotten || wish == "stop" {
            if slot.fate == Fate::Again {
                slot.fate = Fate::Policy;
            }
            slot.enter(if wish == "stop" { State::Stopped } else { State::Ended });
            return self.around.event(&name, "stopped", &end.to_string());
        }
        if slot.fate == Fate::Again || wish == "restart" {
            slot.fate = Fate::Policy;
            slot.enter(State::Waiting);
            return self.around.event(&name, "stopped", &format!("{end}; restarting"));
        }
        match slot.history.ended(&slot.node.policy, end.is_failure(), now_ms, random()) {
            Verdict::Done => {
                slot.is_ready = !end.is_failure();
                slot.enter(State::Ended);
                self.around.event(&name, "ended", &end.to_string());
            }
            Verdict::Again(wait_ms) => {
                slot.restarts += 1;
                let until = Instant::now().checked_add(Duration::from_millis(wait_ms));
                slot.enter(until.map_or(State::Ended, State::Backoff));
                slot.add_output(output);
                let detail = format!("{end}; restarting in {} s", wait_ms as f64 / 1e3);
                let what = if end.is_failure() { "failed" } else { "ended" };
                self.around.event(&name, what, &with_output(detail, output));
            }
            Verdict::GiveUp => {
                slot.enter(State::GivenUp);
                slot.add_output(output);
                let log = self.folder.log(&name);
                let detail = format!("{end}; not restarted; output: {}", log.display());
                self.around.event(&name, "given-up", &with_output(detail, output));
                self.help(at);
            }
        }
    }

    /// Does what `rnet node stop` and `restart` ask.
    fn heed_wishes(&mut self) {
        for slot in &mut self.slots {
            let path = self.folder.wish(&slot.node.name);
            let state = match std::fs::read_to_string(&path).as_deref() {
                Ok("restart") => State::Waiting,
                Ok("stop") => State::Stopped,
                _ => continue,
            };
            if slot.is_running() {
                // It may have been started since whoever wishes has looked. The word is taken when it has ended.
                slot.stop();
                continue;
            }
            slot.enter(state);
            slot.history = Default::default();
            let _ = std::fs::remove_file(path);
        }
    }

    fn start_due(&mut self) {
        for at in 0..self.slots.len() {
            let is_due = match self.slots[at].state {
                State::Waiting => self.waits_for(at).is_none(),
                State::Backoff(until) => Instant::now() >= until,
                _ => false,
            };
            if is_due {
                self.start(at);
            }
        }
    }

    /// The first node that a node waits for and that is not ready.
    fn waits_for(&self, at: usize) -> Option<&Slot> {
        let after = self.slots[at].node.after.iter();
        after.filter_map(|name| self.slot(name)).find(|slot| !slot.is_ready)
    }

    /// Starts a node, or adopts it if it runs.
    fn start(&mut self, at: usize) {
        let name = self.slots[at].node.name.clone();
        if self.leaves_to_another(at) || self.adopt(at) {
            return;
        }
        let order = KeeperOrder {
            node: name.clone(),
            file: self.plan.file.clone(),
            process: self.slots[at].node.process.clone(),
            folder: self.folder.path().to_owned(),
            restarts: self.slots[at].restarts,
            unprepared: self.set_params(at).err(),
            is_on_failure: false,
        };
        match order.send(self.around.keeper(&name)) {
            Ok((Answer::Busy, mut child)) => {
                let _ = child.wait();
                self.look_again(at);
            }
            Ok((Answer::Keeps, mut child)) => {
                fail_point!("launch.answered");
                let record = Record::read(&self.folder, &name);
                let keeper = record.as_ref().and_then(Record::keeper);
                let (Some(record), Some(keeper)) = (record, keeper) else {
                    // It has ended already.
                    let _ = child.wait();
                    let record = Record::read(&self.folder, &name);
                    let (end, output) = record.map_or((End::Unknown, Vec::new()), Record::into_end);
                    return self.ended(at, end, &output);
                };
                self.slots[at].runs(&record, keeper, Some(child));
                self.slots[at].undeclared = Undeclared::of(&self.slots[at]);
                let pid = self.slots[at].pid;
                if let Some(pid) = pid {
                    self.around.event(&name, "started", &format!("pid {pid}"));
                }
            }
            Err(why) => self.ended(at, End::NotStarted(why), &[]),
        }
    }

    /// Waits for the record of a keeper that has the node, which is only about to write it. One that stays away is told of
    /// once, and looked for less and less often.
    fn look_again(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.looks += 1;
        let wait = ROUND * (1 << slot.looks.min(MAX_LOOKS)) / 2;
        slot.enter(State::Backoff(Instant::now() + wait));
        if slot.looks == MAX_LOOKS {
            let (record, name) = (self.folder.record(&slot.node.name), slot.node.name.clone());
            slot.why = format!("it is running, but its record {} cannot be read", record.display());
            let detail = format!("{}; trying again", slot.why);
            self.around.event(&name, "not-adopted", &detail);
        }
    }

    /// Whether a black box of somebody else runs in the domain, which has one. Ours is started when that has ended.
    fn leaves_to_another(&mut self, at: usize) -> bool {
        if !self.slots[at].node.is_beside {
            return false;
        }
        let name = self.slots[at].node.name.clone();
        let keeps = Record::read(&self.folder, &name).filter(|record| record.keeper().is_some());
        if keeps.as_ref().is_some_and(|record| record.file == self.plan.file) {
            return false;
        }
        let living = self.snapshot().and_then(|all| Some(all.node(name.as_str())?.meta.pid));
        let other = match (keeps, living) {
            (Some(record), _) => format!("that of {}", record.file.display()),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => return false,
        };
        let slot = &mut self.slots[at];
        let why = format!("the domain already has a black box, {other}; waiting until it exits");
        slot.enter(State::Backoff(Instant::now() + OTHER_BOX));
        if slot.why != why {
            slot.why.clone_from(&why);
            self.around.event(&name, "waits", &why);
        }
        true
    }

    /// Takes over a node that runs. Another process than the file asks for is stopped, and started when it has ended.
    fn adopt(&mut self, at: usize) -> bool {
        let slot = &mut self.slots[at];
        let name = slot.node.name.clone();
        let Some(record) = Record::read(&self.folder, &name) else { return false };
        // Without a process its keeper is only about to start it.
        let keeper = record.keeper().filter(|_| record.main.is_some());
        let Some(keeper) = keeper else { return false };
        if record.file != self.plan.file {
            slot.why =
                format!("{} has already launched a node with this name", record.file.display());
            slot.enter(State::GivenUp);
            let why = slot.why.clone();
            self.around.event(&name, "given-up", &why);
            return true;
        }
        let is_same = record.process == slot.node.process;
        fail_point!("launch.adopting");
        slot.runs(&record, keeper, None);
        fail_point!("launch.adopted");
        slot.params_set.clone_from(&record.process.params);
        let pid = slot.pid.unwrap_or_default();
        if is_same {
            self.around.event(&name, "adopted", &format!("pid {pid}"));
        } else {
            slot.fate = Fate::Again;
            slot.stop();
            self.around.event(&name, "stopping", &format!("pid {pid} runs an outdated command"));
        }
        true
    }

    /// Sets the parameters of a node, before its first start, and those that the file has changed since. A restart finds
    /// all others as they are.
    fn set_params(&mut self, at: usize) -> std::result::Result<(), String> {
        let slot = &mut self.slots[at];
        let mut params = slot.node.process.params.clone();
        params.retain(|name, value| slot.params_set.get(name) != Some(value));
        if !params.is_empty() {
            let node = self.around.node().map_err(|error| error.to_string())?;
            let words = |error: rnet::Error| format!("cannot set its parameters: {error}");
            set(&node, &slot.node.name, &params).map_err(words)?;
        }
        slot.params_set.clone_from(&slot.node.process.params);
        Ok(())
    }

    fn is_over(&self) -> bool {
        // What is beside has been stopped by then, but for what waits to be started.
        let runs = self.slots.iter().any(|slot| slot.node.is_beside && slot.is_running());
        self.helpers.is_empty() && !runs && !self.goes_on()
    }

    /// Whether a node runs or is due, of those that the launch is for.
    fn goes_on(&self) -> bool {
        let goes_on = |(at, slot): (usize, &Slot)| match slot.state {
            _ if slot.node.is_beside => false,
            State::Running => true,
            State::Backoff(_) => true,
            State::Stopped => !self.is_stopping,
            State::Waiting => self.is_stopping || !self.is_hopeless(at),
            State::Ended | State::GivenUp => false,
        };
        self.slots.iter().enumerate().any(goes_on)
    }

    /// Whether a node waits for one that will never be ready.
    fn is_hopeless(&self, at: usize) -> bool {
        let names = self.slots[at].node.after.iter();
        let mut slots =
            names.filter_map(|name| self.slots.iter().position(|s| s.node.name == *name));
        slots.any(|at| match self.slots[at].state {
            State::GivenUp => true,
            State::Ended => !self.slots[at].is_ready,
            State::Waiting => self.is_hopeless(at),
            _ => false,
        })
    }

    fn outcome(&self) -> Outcome {
        let failed = self.slots.iter().enumerate().filter_map(|(at, slot)| match slot.state {
            _ if slot.node.is_beside => None,
            State::GivenUp => Some((slot.node.name.clone(), slot.why.clone())),
            State::Waiting => {
                let of = self.waits_for(at).map(|slot| slot.node.name.to_string());
                let why = format!("never started: {} is not ready", of.unwrap_or_default());
                Some((slot.node.name.clone(), why))
            }
            _ => None,
        });
        Outcome { failed: failed.collect(), is_stopped: self.is_stopping, left: Vec::new() }
    }

    fn wait(&self) -> Result<()> {
        let failed =
            |why: std::io::Error| LaunchError::Refused(format!("the launcher cannot wait: {why}"));
        let any = any_of(self.slots.iter().filter_map(Slot::keeper)).map_err(failed)?;
        self.around.wait(any.as_fd(), Some(ROUND), self.is_stopping).map_err(failed)
    }
}

fn set(
    node: &rnet::Node,
    of: &NodeName,
    params: &BTreeMap<String, ParamValue>,
) -> rnet::Result<()> {
    let state = node.state()?;
    for (name, value) in params {
        let key = rnet::param::key(of, name)?;
        match (state.set(&key, to_value(value)), value) {
            // The node has said that it is a number with a fraction.
            (Err(rnet::Error::StateType { .. }), ParamValue::Int(number)) => {
                state.set(&key, Value::Float(*number as f64))?;
            }
            (done, _) => {
                done?;
            }
        }
    }
    Ok(())
}

fn to_value(value: &ParamValue) -> Value {
    match value {
        ParamValue::Bool(truth) => Value::Bool(*truth),
        ParamValue::Int(number) => Value::Int(*number),
        ParamValue::Float(number) => Value::Float(*number),
        ParamValue::Text(text) => Value::Str(text.clone()),
        ParamValue::List(values) => Value::List(values.iter().map(to_value).collect()),
    }
}

/// What has happened, and below it what a node had written.
fn with_output(detail: String, output: &[String]) -> String {
    output.iter().fold(detail, |text, line| text + "\n    " + line)
}

/// A number from 0 to 1.
fn random() -> f64 {
    let mut bytes = [0; 4];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(4) => f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX),
        _ => 0.5,
    }
}
