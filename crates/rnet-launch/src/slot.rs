//! A node, as its launcher sees it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, Instant};

use rnet::NodeName;
use rnet_shm::ring::fail_point;
use rustix::process::Signal;
use serde::Serialize;

use crate::identity::{self, Identity, has_exited};
use crate::launcher::PendingParams;
use crate::node::{Node, ParamValue, Ready};
use crate::record::{End, Record};
use crate::restart_policy::ExitHistory;

/// Characters of a node's last line that its row shows.
const MAX_LAST_CHARS: usize = 200;

/// The state of a node.
#[derive(Debug, PartialEq)]
pub enum NodeState {
    /// Its dependencies are not ready.
    Waiting,
    /// It runs.
    Running,
    /// It has failed and is restarted at that time.
    Backoff(Instant),
    /// It has exited and is not restarted.
    Ended,
    /// The same, as a failure.
    GivenUp,
    /// It was stopped on request.
    Stopped,
}

/// What to do with a node after its process has exited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AfterExit {
    /// Apply its policy.
    ApplyPolicy,
    /// Restart it.
    Restart,
    /// Remove it.
    Remove,
}

/// A node, and the launcher's state of it.
#[derive(Debug)]
pub struct Slot {
    pub node: Node,
    pub state: NodeState,
    pub after_exit: AfterExit,
    pub history: ExitHistory,
    pub restarts: u32,
    /// How often its record was missing while a keeper had the node.
    pub record_checks: u32,
    pub is_ready: bool,
    /// The parameters that were set from its file.
    pub params_set: BTreeMap<String, ParamValue>,
    /// Those that it may not have accepted yet.
    pub pending_params: Option<PendingParams>,
    /// Whether it was reported as not ready.
    pub is_delay_reported: bool,
    /// Whether its keeper was asked to stop it.
    pub is_stopping: bool,
    pub since: Instant,
    pub why: String,
    pub pid: Option<i32>,
    keeper: Option<(Identity, OwnedFd)>,
    /// The keeper, if it is a child of this launcher.
    child: Option<Child>,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeName,
    /// `waiting`, `running`, `backoff`, `ended`, `given-up`, `stopped` or `stopping`.
    pub state: &'static str,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Its process.
    pub pid: Option<i32>,
    /// How long it has been in this state, in s.
    pub for_s: u64,
    /// How often it was restarted.
    pub restarts: u32,
    /// Details to show.
    pub detail: String,
}

impl Slot {
    pub fn new(node: Node) -> Slot {
        Slot {
            node,
            state: NodeState::Waiting,
            after_exit: AfterExit::ApplyPolicy,
            history: ExitHistory::default(),
            restarts: 0,
            record_checks: 0,
            is_ready: false,
            params_set: BTreeMap::new(),
            pending_params: None,
            is_delay_reported: false,
            is_stopping: false,
            since: Instant::now(),
            why: String::new(),
            pid: None,
            keeper: None,
            child: None,
        }
    }

    pub fn enter(&mut self, state: NodeState) {
        // A node that exited with success and has to run once more does not satisfy its dependents.
        self.is_ready &= state != NodeState::Waiting;
        self.state = state;
        self.since = Instant::now();
    }

    pub fn is_running(&self) -> bool {
        self.state == NodeState::Running
    }

    /// Whether it runs, is not ready, and is not being stopped.
    pub fn may_become_ready(&self) -> bool {
        self.is_running() && !self.is_ready && !self.is_stopping
    }

    /// Sets it to running, kept by the keeper of this record.
    pub fn set_running(&mut self, record: &Record, keeper: OwnedFd, child: Option<Child>) {
        self.keeper = Some((record.keeper.clone(), keeper));
        self.child = child;
        self.pid = record.main.as_ref().map(|main| main.pid);
        self.is_ready = self.node.ready == Ready::Started;
        self.restarts = record.restarts;
        self.pending_params = None;
        (self.is_delay_reported, self.is_stopping, self.record_checks) = (false, false, 0);
        self.why.clear();
        self.enter(NodeState::Running);
        self.since = Instant::now()
            .checked_sub(Duration::from_nanos(
                rnet::boot_ns().saturating_sub(record.started_boot_ns),
            ))
            .unwrap_or(self.since);
    }

    /// Its keeper's process, while it runs.
    pub fn keeper(&self) -> Option<&OwnedFd> {
        self.keeper.as_ref().map(|(_, fd)| fd)
    }

    /// The number of its keeper, which is the number of its processes' session.
    pub fn session(&self) -> Option<i32> {
        self.keeper.as_ref().map(|(identity, _)| identity.pid)
    }

    /// Whether its keeper has exited.
    pub fn has_exited(&self) -> bool {
        self.keeper.as_ref().is_some_and(|(_, fd)| has_exited(fd))
    }

    /// How it has ended, and its last output if it has failed, from the record that its keeper has left.
    pub fn take_exit(&mut self, record: Option<Record>) -> (End, Vec<String>) {
        if let Some(mut child) = self.child.take() {
            // It has exited: this only reaps it.
            let _ = child.wait();
        }
        let identity = self.keeper.take().map(|(identity, _)| identity);
        let own = record.filter(|record| Some(&record.keeper) == identity.as_ref());
        (self.pid, self.is_ready, self.is_stopping) = (None, false, false);
        own.map_or((End::Unknown, Vec::new()), Record::into_end)
    }

    /// Whether an earlier launcher had asked the keeper of this record to stop: its launch ended, not this
    /// one.
    pub fn was_stopped_by_earlier_launcher(&self, record: &Record) -> bool {
        let is_own = self.keeper.as_ref().is_some_and(|(identity, _)| *identity == record.keeper);
        let is_adopted = self.child.is_none();
        is_own && is_adopted && !self.is_stopping && record.was_asked_to_stop()
    }

    /// Appends its last output line to the reason of its end.
    pub fn add_output(&mut self, output: &[String]) {
        if let Some(last) = output.last() {
            self.why += &format!(": {}", last.chars().take(MAX_LAST_CHARS).collect::<String>());
        }
    }

    /// Asks its keeper to stop it, once.
    pub fn stop(&mut self) {
        if let Some((_, fd)) = self.keeper.as_ref().filter(|_| !self.is_stopping) {
            fail_point!("launch.stopping");
            self.is_stopping = identity::signal(fd, Signal::TERM).is_ok();
            // Dependents wait for its next process.
            self.is_ready &= !self.is_stopping;
            fail_point!("launch.signalled");
        }
    }

    pub fn status(&self) -> NodeStatus {
        let mut more = String::new();
        let state = match &self.state {
            NodeState::Running if self.is_stopping => "stopping",
            NodeState::Running => "running",
            NodeState::Waiting => "waiting",
            NodeState::Backoff(until) => {
                let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
                more = format!("restart in {left:.1} s; ");
                "backoff"
            }
            NodeState::Ended => "ended",
            NodeState::GivenUp => "given-up",
            NodeState::Stopped => "stopped",
        };
        NodeStatus {
            node: self.node.name.clone(),
            state,
            is_ready: self.is_ready,
            pid: self.pid,
            for_s: self.since.elapsed().as_secs(),
            restarts: self.restarts,
            detail: format!("{more}{}", self.why),
        }
    }
}
