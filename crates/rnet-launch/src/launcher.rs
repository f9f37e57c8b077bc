//! The launcher: starts nodes in their order, and reacts when one exits.
//!
//! It is one loop. Each round handles exits, requests, readiness and due starts; then it waits for the exit
//! of a keeper or for a tenth of a second. The records of the keepers hold all state that another launcher
//! needs to replace this one.

mod on_failure;
mod pending_params;
mod ready;
mod reload;
mod shutdown;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rnet::NodeName;
use rnet::inspect::Domain;
use rnet::state::Value;
use rnet_config::ConfigError;
use rnet_shm::ring::fail_point;

use crate::file::{LaunchOptions, Plan};
use crate::identity::Identity;
use crate::keeper::{KeeperReply, KeeperRequest, StopSignals, epoll_any};
use crate::node::{Node, ParamValue};
use crate::record::{End, Record, lock_if_abandoned};
use crate::restart_policy::RestartDecision;
use crate::run_folder::RunFolder;
use crate::slot::{AfterExit, NodeState, NodeStatus, Slot};
use crate::{LaunchError, Result};

pub use pending_params::PendingParams;

/// The interval of checks that no event triggers: readiness, requests, a changed file.
const ROUND_INTERVAL: Duration = Duration::from_millis(100);

/// Checks for the record of a keeper that has its node already, before a missing record is reported. The
/// wait between two checks begins at one round and doubles: 1.5 s in all.
const MAX_RECORD_CHECKS: u32 = 5;
/// The interval of checks of a black box that does not belong to this launch.
const OTHER_BLACKBOX_INTERVAL: Duration = Duration::from_secs(1);

/// What a launcher needs from its program.
pub trait LauncherContext: StopSignals {
    /// The command of a keeper, which reads its request from its standard input.
    fn keeper(&self, node: &NodeName) -> Command;

    /// The domain, for inspection.
    ///
    /// # Errors
    /// Why it cannot be inspected.
    fn domain(&self) -> rnet::Result<Domain>;

    /// A node in the domain, to set parameters with.
    ///
    /// # Errors
    /// Why the node cannot be opened.
    fn node(&self) -> rnet::Result<rnet::Node>;

    /// Whether a second stop was requested, so that the launcher does not wait for its nodes to exit.
    fn second_stop_requested(&self) -> bool {
        false
    }

    /// Reports an event of a node.
    fn event(&mut self, node: &NodeName, what: &str, detail: &str);

    /// Reports a message about the whole launch.
    fn say(&mut self, text: &str);

    /// Shows the state of all nodes; called in each round.
    fn status(&mut self, rows: &[NodeStatus]);
}

/// The result of a launch.
#[derive(Debug, Default)]
pub struct LaunchOutcome {
    /// Nodes that failed or never started, and why.
    pub failed: Vec<(NodeName, String)>,
    /// Whether a stop was requested.
    pub is_stopped: bool,
    /// Nodes that still run, because a second stop was requested: the process, and what happens to it.
    pub still_running: Vec<(NodeName, String)>,
}

/// Starts the nodes of a plan, and keeps them running.
pub struct Launcher<'s> {
    plan: Plan,
    path: PathBuf,
    options: LaunchOptions,
    folder: RunFolder,
    slots: Vec<Slot>,
    context: &'s mut dyn LauncherContext,
    domain: Option<Domain>,
    began: Instant,
    is_stopping: bool,
    /// Running `on_failure` commands.
    failure_commands: Vec<on_failure::FailureCommand>,
    /// With reload: the files as of the last round, and whether they were refused.
    file_snapshot: Option<reload::FileSnapshot>,
    _lock: File,
}

impl<'s> Launcher<'s> {
    /// A launcher of the plan of this file. With `reloads` it follows changes of the file.
    ///
    /// # Errors
    /// Another launcher has the file, or the folder cannot be created.
    pub fn new(
        path: PathBuf,
        options: LaunchOptions,
        folder: RunFolder,
        reloads: bool,
        context: &'s mut dyn LauncherContext,
    ) -> Result<Launcher<'s>> {
        let plan = crate::file::load(&path, &options)?;
        folder.create()?;
        let path_of_lock = folder.launcher_lock(&plan.file);
        let has_owner = || context.stop_requested() || Identity::may_live(&path_of_lock);
        let Some(lock) = lock_if_abandoned(&path_of_lock, has_owner)? else {
            if context.stop_requested() {
                return Err(LaunchError::Stopped);
            }
            let other =
                Identity::read_living(&path_of_lock).map(|other| format!(", pid {}", other.pid));
            return Err(LaunchError::Refused(format!(
                "{} is already launched in this domain by another rnet launch{}",
                plan.file.display(),
                other.unwrap_or_default()
            )));
        };
        // Informs processes that find the lock held; it is held even if this fails.
        let _ = Identity::write_to(&lock);
        let slots = plan.nodes.iter().cloned().map(Slot::new).collect();
        let file_snapshot = reloads.then(reload::FileSnapshot::default);
        Ok(Launcher {
            plan,
            path,
            options,
            folder,
            slots,
            context,
            domain: None,
            began: Instant::now(),
            is_stopping: false,
            failure_commands: Vec::new(),
            file_snapshot,
            _lock: lock,
        })
    }

    /// Runs until every node has exited or a stop is requested. On return all nodes are stopped, except
    /// those of [`LaunchOutcome::still_running`].
    ///
    /// # Errors
    /// The system cannot wait. Running nodes continue.
    pub fn run(mut self) -> Result<LaunchOutcome> {
        self.report_requirement_errors(self.plan.requirement_errors());
        self.find_orphans();
        for slot in &self.slots {
            // A request to an earlier launch.
            self.folder.remove_request(&slot.node.name);
        }
        loop {
            self.handle_exits();
            self.is_stopping |= self.context.stop_requested();
            self.check_failure_commands();
            if self.is_stopping {
                self.stop_next();
                if self.context.second_stop_requested() {
                    return Ok(LaunchOutcome {
                        still_running: self.still_running(),
                        ..self.outcome()
                    });
                }
            } else {
                self.reload_if_changed();
                self.handle_requests();
                self.check_readiness();
                self.report_refused_params();
                self.start_due();
                self.stop_companions();
            }
            let rows: Vec<NodeStatus> = self.slots.iter().map(Slot::status).collect();
            self.context.status(&rows);
            if self.is_over() {
                self.mark_all_stopped();
                return Ok(self.outcome());
            }
            self.wait()?;
        }
    }

    /// Reports settings that do not fit the machine. The nodes are started anyway: another node may fix
    /// that, and the rest of the robot has to run.
    fn report_requirement_errors(&mut self, errors: Vec<ConfigError>) {
        for error in errors {
            self.context.say(&format!("{error}; the node is started anyway"));
        }
    }

    fn slot(&self, name: &NodeName) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.node.name == *name)
    }

    /// Finds nodes that an earlier launch of this file has started, and that the file no longer has.
    fn find_orphans(&mut self) {
        for record in Record::all(&self.folder) {
            if record.file != self.plan.file {
                continue;
            }
            record.kill_leftovers();
            if self.slot(&record.node).is_some() {
                continue;
            }
            let Some(keeper) = record.keeper() else {
                self.mark_stopped(&record.node);
                continue;
            };
            let mut slot = Slot::new(Node::new(record.node.clone(), record.process.clone()));
            slot.set_running(&record, keeper, None);
            slot.after_exit = AfterExit::Remove;
            slot.stop();
            self.context.event(&record.node, "stopping", "removed from the file");
            self.slots.push(slot);
        }
    }

    fn handle_exits(&mut self) {
        for at in 0..self.slots.len() {
            if self.slots[at].has_exited() {
                let record = Record::read(&self.folder, &self.slots[at].node.name);
                if let Some(record) = &record {
                    record.kill_leftovers();
                    let slot = &mut self.slots[at];
                    if slot.after_exit == AfterExit::ApplyPolicy
                        && slot.was_stopped_by_earlier_launcher(record)
                    {
                        slot.after_exit = AfterExit::Restart;
                    }
                }
                let (end, output) = self.slots[at].take_exit(record);
                fail_point!("launch.ended");
                self.handle_exit(at, end, &output);
            }
        }
        self.slots.retain(|slot| slot.after_exit != AfterExit::Remove || slot.is_running());
    }

    /// Handles the exit of a node with this output.
    fn handle_exit(&mut self, at: usize, end: End, output: &[String]) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        let is_done = self.slots[at].node.is_companion && !self.has_active_nodes();
        let slot = &mut self.slots[at];
        let name = slot.node.name.clone();
        let request = self.folder.read_request(&name).unwrap_or_default();
        self.folder.remove_request(&name);
        slot.why = end.to_string();
        if self.is_stopping || is_done || slot.after_exit == AfterExit::Remove || request == "stop"
        {
            if slot.after_exit == AfterExit::Restart {
                slot.after_exit = AfterExit::ApplyPolicy;
            }
            slot.enter(if request == "stop" { NodeState::Stopped } else { NodeState::Ended });
            return self.context.event(&name, "stopped", &end.to_string());
        }
        if slot.after_exit == AfterExit::Restart || request == "restart" {
            slot.after_exit = AfterExit::ApplyPolicy;
            slot.enter(NodeState::Waiting);
            return self.context.event(&name, "stopped", &format!("{end}; restarting"));
        }
        match slot.history.record_exit(&slot.node.policy, end.is_failure(), now_ms, random()) {
            RestartDecision::Done => {
                slot.is_ready = !end.is_failure();
                slot.enter(NodeState::Ended);
                self.context.event(&name, "ended", &end.to_string());
            }
            RestartDecision::RestartAfter(wait_ms) => {
                slot.restarts += 1;
                let until = Instant::now().checked_add(Duration::from_millis(wait_ms));
                slot.enter(until.map_or(NodeState::Ended, NodeState::Backoff));
                slot.add_output(output);
                let detail = format!("{end}; restarting in {} s", wait_ms as f64 / 1e3);
                let what = if end.is_failure() { "failed" } else { "ended" };
                self.context.event(&name, what, &with_output(detail, output));
            }
            RestartDecision::GiveUp => {
                slot.enter(NodeState::GivenUp);
                slot.add_output(output);
                let log = self.folder.log(&name);
                let detail = format!("{end}; not restarted; output: {}", log.display());
                self.context.event(&name, "given-up", &with_output(detail, output));
                self.run_on_failure(at);
            }
        }
    }

    /// Handles requests of `rnet node stop` and `restart`.
    fn handle_requests(&mut self) {
        for slot in &mut self.slots {
            let state = match self.folder.read_request(&slot.node.name).as_deref() {
                Some("restart") => NodeState::Waiting,
                Some("stop") => NodeState::Stopped,
                _ => continue,
            };
            if slot.is_running() {
                // It may have been started after the request was written. The request is removed after its
                // exit.
                slot.stop();
                continue;
            }
            slot.enter(state);
            slot.history = Default::default();
            self.folder.remove_request(&slot.node.name);
        }
    }

    fn start_due(&mut self) {
        for at in 0..self.slots.len() {
            let is_due = match self.slots[at].state {
                NodeState::Waiting => self.first_unready_dependency(at).is_none(),
                NodeState::Backoff(until) => Instant::now() >= until,
                _ => false,
            };
            if is_due {
                self.start(at);
            }
        }
    }

    /// The first dependency of a node that is not ready.
    fn first_unready_dependency(&self, at: usize) -> Option<&Slot> {
        let after = self.slots[at].node.after.iter();
        after.filter_map(|name| self.slot(name)).find(|slot| !slot.is_ready)
    }

    /// Starts a node, or adopts it if it runs.
    fn start(&mut self, at: usize) {
        let name = self.slots[at].node.name.clone();
        if self.yields_to_other_blackbox(at) || self.adopt(at) {
            return;
        }
        let request = KeeperRequest {
            node: name.clone(),
            file: self.plan.file.clone(),
            process: self.slots[at].node.process.clone(),
            folder: self.folder.path().to_owned(),
            restarts: self.slots[at].restarts,
            setup_error: self.set_params(at).err(),
            is_on_failure: false,
        };
        match request.send(self.context.keeper(&name)) {
            Ok((KeeperReply::Busy, mut child)) => {
                let _ = child.wait();
                self.recheck_record(at);
            }
            Ok((KeeperReply::Started, mut child)) => {
                fail_point!("launch.answered");
                let record = Record::read(&self.folder, &name);
                let keeper = record.as_ref().and_then(Record::keeper);
                let (Some(record), Some(keeper)) = (record, keeper) else {
                    // It has exited already.
                    let _ = child.wait();
                    let record = Record::read(&self.folder, &name);
                    let (end, output) = record.map_or((End::Unknown, Vec::new()), Record::into_end);
                    return self.handle_exit(at, end, &output);
                };
                self.slots[at].set_running(&record, keeper, Some(child));
                self.slots[at].pending_params = PendingParams::of(&self.slots[at]);
                let pid = self.slots[at].pid;
                if let Some(pid) = pid {
                    self.context.event(&name, "started", &format!("pid {pid}"));
                }
            }
            Err(why) => self.handle_exit(at, End::NotStarted(why), &[]),
        }
    }

    /// Waits for the record of a keeper that has the node and is about to write it. A missing record is
    /// reported once, and checked at growing intervals.
    fn recheck_record(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.record_checks += 1;
        let wait = ROUND_INTERVAL * (1 << slot.record_checks.min(MAX_RECORD_CHECKS)) / 2;
        slot.enter(NodeState::Backoff(Instant::now() + wait));
        if slot.record_checks == MAX_RECORD_CHECKS {
            let (record, name) = (self.folder.record(&slot.node.name), slot.node.name.clone());
            slot.why = format!("it is running, but its record {} cannot be read", record.display());
            let detail = format!("{}; trying again", slot.why);
            self.context.event(&name, "not-adopted", &detail);
        }
    }

    /// Whether another black box runs in the domain, which allows one. The black box of this launch
    /// starts when that one exits.
    fn yields_to_other_blackbox(&mut self, at: usize) -> bool {
        if !self.slots[at].node.is_companion {
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
        slot.enter(NodeState::Backoff(Instant::now() + OTHER_BLACKBOX_INTERVAL));
        if slot.why != why {
            slot.why.clone_from(&why);
            self.context.event(&name, "waits", &why);
        }
        true
    }

    /// Adopts a running node. If the process differs from the file, it is stopped, and started again after
    /// its exit.
    fn adopt(&mut self, at: usize) -> bool {
        let slot = &mut self.slots[at];
        let name = slot.node.name.clone();
        let Some(record) = Record::read(&self.folder, &name) else { return false };
        // Without a process its keeper is about to start it.
        let keeper = record.keeper().filter(|_| record.main.is_some());
        let Some(keeper) = keeper else { return false };
        if record.file != self.plan.file {
            slot.why =
                format!("{} has already launched a node with this name", record.file.display());
            slot.enter(NodeState::GivenUp);
            let why = slot.why.clone();
            self.context.event(&name, "given-up", &why);
            return true;
        }
        let is_same = record.process == slot.node.process;
        fail_point!("launch.adopting");
        slot.set_running(&record, keeper, None);
        fail_point!("launch.adopted");
        slot.params_set.clone_from(&record.process.params);
        let pid = slot.pid.unwrap_or_default();
        if is_same {
            self.context.event(&name, "adopted", &format!("pid {pid}"));
        } else {
            slot.after_exit = AfterExit::Restart;
            slot.stop();
            self.context.event(&name, "stopping", &format!("pid {pid} runs an outdated command"));
        }
        true
    }

    /// Sets the parameters of a node: before its first start, and those that the file has changed since. A
    /// restart leaves all others unchanged.
    fn set_params(&mut self, at: usize) -> std::result::Result<(), String> {
        let slot = &mut self.slots[at];
        let mut params = slot.node.process.params.clone();
        params.retain(|name, value| slot.params_set.get(name) != Some(value));
        if !params.is_empty() {
            let node = self.context.node().map_err(|error| error.to_string())?;
            let words = |error: rnet::Error| format!("cannot set its parameters: {error}");
            set(&node, &slot.node.name, &params).map_err(words)?;
        }
        slot.params_set.clone_from(&slot.node.process.params);
        Ok(())
    }

    fn is_over(&self) -> bool {
        // Other companions have been stopped by then, except those that wait to be started.
        let runs = self.slots.iter().any(|slot| slot.node.is_companion && slot.is_running());
        self.failure_commands.is_empty() && !runs && !self.has_active_nodes()
    }

    /// Whether a node that is not a companion runs or is due.
    fn has_active_nodes(&self) -> bool {
        let is_active = |(at, slot): (usize, &Slot)| match slot.state {
            _ if slot.node.is_companion => false,
            NodeState::Running => true,
            NodeState::Backoff(_) => true,
            NodeState::Stopped => !self.is_stopping,
            NodeState::Waiting => self.is_stopping || !self.can_never_start(at),
            NodeState::Ended | NodeState::GivenUp => false,
        };
        self.slots.iter().enumerate().any(is_active)
    }

    /// Whether a node waits for one that will never be ready.
    fn can_never_start(&self, at: usize) -> bool {
        let names = self.slots[at].node.after.iter();
        let mut slots =
            names.filter_map(|name| self.slots.iter().position(|s| s.node.name == *name));
        slots.any(|at| match self.slots[at].state {
            NodeState::GivenUp => true,
            NodeState::Ended => !self.slots[at].is_ready,
            NodeState::Waiting => self.can_never_start(at),
            _ => false,
        })
    }

    fn outcome(&self) -> LaunchOutcome {
        let failed = self.slots.iter().enumerate().filter_map(|(at, slot)| match slot.state {
            _ if slot.node.is_companion => None,
            NodeState::GivenUp => Some((slot.node.name.clone(), slot.why.clone())),
            NodeState::Waiting => {
                let of = self.first_unready_dependency(at).map(|slot| slot.node.name.to_string());
                let why = format!("never started: {} is not ready", of.unwrap_or_default());
                Some((slot.node.name.clone(), why))
            }
            _ => None,
        });
        LaunchOutcome {
            failed: failed.collect(),
            is_stopped: self.is_stopping,
            still_running: Vec::new(),
        }
    }

    fn wait(&self) -> Result<()> {
        let failed =
            |why: std::io::Error| LaunchError::Refused(format!("the launcher cannot wait: {why}"));
        let any = epoll_any(self.slots.iter().filter_map(Slot::keeper)).map_err(failed)?;
        self.context.wait(any.as_fd(), Some(ROUND_INTERVAL), self.is_stopping).map_err(failed)
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
            // The node has declared the parameter as a floating-point number.
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

/// The event, followed by the node's output.
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
