//! A node as its launcher sees it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, Instant};

use rnet::{NodeName, fail_point};
use rustix::process::Signal;
use serde::Serialize;

use crate::identity::{self, Identity, has_exited};
use crate::launcher::PendingParams;
use crate::node::{Node, ParamValue, Ready};
use crate::policy::ExitHistory;
use crate::record::{End, Record};

/// Characters of a node's last line that stand in its row.
const MAX_LAST_CHARS: usize = 200;

/// How a node is.
#[derive(Debug, PartialEq)]
pub enum NodeState {
    /// Those that it waits for are not ready.
    Waiting,
    /// It runs.
    Running,
    /// It has failed and is started again then.
    Backoff(Instant),
    /// It has ended and is not started again.
    Ended,
    /// The same, and that is a failure.
    GivenUp,
    /// Somebody has stopped it.
    Stopped,
}

/// What becomes of a node when its process has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AfterExit {
    /// What its policy says.
    ApplyPolicy,
    /// It is started again.
    Restart,
    /// It is forgotten.
    Remove,
}

/// A node, and what its launcher knows of it.
#[derive(Debug)]
pub struct Slot {
    pub node: Node,
    pub state: NodeState,
    pub after_exit: AfterExit,
    pub history: ExitHistory,
    pub restarts: u32,
    /// How often its record was looked for in vain while a keeper had it.
    pub record_checks: u32,
    pub is_ready: bool,
    /// The parameters that have been set because its file says so.
    pub params_set: BTreeMap<String, ParamValue>,
    /// Of these it is not known yet whether the node has taken them.
    pub pending_params: Option<PendingParams>,
    /// Whether it has been said that it is not ready.
    pub is_delay_reported: bool,
    /// Whether its keeper has been told to stop it.
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
    /// How often it has been started again.
    pub restarts: u32,
    /// What is to be said of it.
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
        // One that has ended well and is to run once more is not what others wait for.
        self.is_ready &= state != NodeState::Waiting;
        self.state = state;
        self.since = Instant::now();
    }

    pub fn is_running(&self) -> bool {
        self.state == NodeState::Running
    }

    /// Whether it runs, is not ready, and is not about to end.
    pub fn may_become_ready(&self) -> bool {
        self.is_running() && !self.is_ready && !self.is_stopping
    }

    /// It runs, kept by the keeper of this record.
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

    /// The number of its keeper, which is that of the session of its processes.
    pub fn session(&self) -> Option<i32> {
        self.keeper.as_ref().map(|(identity, _)| identity.pid)
    }

    /// Whether its keeper has ended.
    pub fn has_exited(&self) -> bool {
        self.keeper.as_ref().is_some_and(|(_, fd)| has_exited(fd))
    }

    /// How it has ended, and what it has written last if it has failed, by the record that its keeper has left.
    pub fn take_exit(&mut self, record: Option<Record>) -> (End, Vec<String>) {
        if let Some(mut child) = self.child.take() {
            // It has ended: this only takes it off the list of processes.
            let _ = child.wait();
        }
        let identity = self.keeper.take().map(|(identity, _)| identity);
        let own = record.filter(|record| Some(&record.keeper) == identity.as_ref());
        (self.pid, self.is_ready, self.is_stopping) = (None, false, false);
        own.map_or((End::Unknown, Vec::new()), Record::into_end)
    }

    /// Whether an earlier launcher had told the keeper of this record to stop: its launch ended, and not this one.
    pub fn was_stopped_by_earlier_launcher(&self, record: &Record) -> bool {
        let is_own = self.keeper.as_ref().is_some_and(|(identity, _)| *identity == record.keeper);
        let is_adopted = self.child.is_none();
        is_own && is_adopted && !self.is_stopping && record.was_asked_to_stop()
    }

    /// Adds to why it has ended the last line that it has written.
    pub fn add_output(&mut self, output: &[String]) {
        if let Some(last) = output.last() {
            self.why += &format!(": {}", last.chars().take(MAX_LAST_CHARS).collect::<String>());
        }
    }

    /// Has its keeper stop it, once.
    pub fn stop(&mut self) {
        if let Some((_, fd)) = self.keeper.as_ref().filter(|_| !self.is_stopping) {
            fail_point!("launch.stopping");
            self.is_stopping = identity::signal(fd, Signal::TERM).is_ok();
            // Who waits for it waits for the one that comes after it.
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
