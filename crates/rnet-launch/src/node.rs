//! What a file says of a node.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rnet::NodeName;
use rnet::inspect::Location;
use rnet_config::ConfigError;
use serde::{Deserialize, Serialize};

use crate::policy::RestartPolicy;
use crate::requirements::{self, RequirementError};

/// A node, as a file asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Its process. A process whose description changes is started anew.
    pub process: Process,
    /// Nodes that must be ready before it is started.
    pub after: Vec<NodeName>,
    /// When it is ready.
    pub ready: Ready,
    /// After how long one says that it is not ready, in ms.
    pub ready_timeout_ms: u64,
    /// What happens when its process ends.
    pub policy: RestartPolicy,
    /// Run when it is given up; empty for nothing.
    pub on_failure: Vec<String>,
    /// Whether it runs beside the others, as the black box does: it is stopped when all of them have ended, and its
    /// failure is told and is none of the launch.
    pub is_companion: bool,
    /// Where keys that depend on the machine stand: each with its file and line.
    pub key_positions: BTreeMap<&'static str, String>,
}

impl Node {
    /// A node of which nothing is said but its process.
    pub(crate) fn new(name: NodeName, process: Process) -> Node {
        Node {
            name,
            process,
            after: Vec::new(),
            ready: Ready::default(),
            ready_timeout_ms: 0,
            policy: RestartPolicy::default(),
            on_failure: Vec::new(),
            is_companion: false,
            key_positions: BTreeMap::new(),
        }
    }

    /// What of it does not fit this machine, each with its place.
    pub fn requirement_errors(&self) -> Vec<ConfigError> {
        let helper = requirements::program_error(
            "on_failure",
            &self.on_failure,
            &self.process.dir,
            // It has the environment of the launcher.
            &BTreeMap::new(),
        );
        let all = requirements::requirement_errors(&self.process).into_iter().chain(helper);
        let error = |RequirementError { key, expected, found }| {
            let from = self.key_positions.get(key).cloned();
            ConfigError::value(
                from.unwrap_or_else(|| format!("{}: {key}", self.name)),
                expected,
                found,
            )
        };
        all.map(error).collect()
    }
}

/// In the place of a program: that of the launcher.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// When those that wait for a node may be started.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ready {
    /// When its process runs.
    #[default]
    Started,
    /// When it has written to the descriptor that `RNET_READY_FD` names.
    Notified,
    /// When its process has ended with exit code 0.
    Exited,
    /// When its processes publish these topics.
    Publishes(Vec<String>),
}

/// The process of a node. It stands in the record of the running process, so that a launcher knows whether what runs is
/// what its file asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub dir: PathBuf,
    /// Variables, besides those of the launcher.
    pub env: BTreeMap<String, String>,
    /// Parameters that are set before it is started.
    pub params: BTreeMap<String, ParamValue>,
    /// What it may use.
    pub limits: Limits,
    /// How long it has after SIGINT, before SIGTERM, in ms; 0 for no SIGINT.
    #[serde(default)]
    pub interrupt_timeout_ms: u64,
    /// How long it has after SIGTERM, before SIGKILL, in ms.
    pub stop_timeout_ms: u64,
    /// Whether it is stopped when the launcher dies.
    pub die_with_launcher: bool,
    /// How much of its output is kept.
    pub log: LogLimits,
}

impl Process {
    /// The domain of its nodes, unless its program names another one.
    pub(crate) fn location(&self) -> Option<Location> {
        let env = |name: &str| self.env.get(name).filter(|value| !value.is_empty());
        let dir = env("RNET_DIR").map(PathBuf::from);
        let (domain, group) = (env("RNET_DOMAIN").map(String::as_str), env("RNET_GROUP").cloned());
        Location::new(domain, dir, group).ok()
    }

    /// How long a stop takes at most, until SIGKILL.
    pub fn stop_time(&self) -> Duration {
        Duration::from_millis(self.interrupt_timeout_ms.saturating_add(self.stop_timeout_ms))
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(String),
    /// Several.
    List(Vec<ParamValue>),
}

/// What a process may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The cores that it runs on; empty for all.
    pub cpus: Vec<usize>,
    /// How it is scheduled; `None` as the launcher is.
    pub scheduler: Option<Scheduler>,
    /// Priority of `fifo` and `rr`, 1 to 99.
    pub priority: i32,
    /// Memory of its own, in MiB: RLIMIT_DATA, which does not count what is shared.
    pub memory_limit_mib: Option<u64>,
}

/// How a process is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// SCHED_OTHER.
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
}

impl Scheduler {
    /// All, as they are written.
    pub const NAMES: [&str; 5] = ["other", "batch", "idle", "fifo", "rr"];

    /// Whether it has priorities.
    pub fn is_real_time(self) -> bool {
        matches!(self, Scheduler::Fifo | Scheduler::Rr)
    }
}

impl std::str::FromStr for Scheduler {
    type Err = ();

    fn from_str(text: &str) -> Result<Scheduler, ()> {
        Ok(match text {
            "other" => Scheduler::Other,
            "batch" => Scheduler::Batch,
            "idle" => Scheduler::Idle,
            "fifo" => Scheduler::Fifo,
            "rr" => Scheduler::Rr,
            _ => return Err(()),
        })
    }
}

/// How much of a node's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLimits {
    /// Bytes of a file.
    pub max_len_bytes: u64,
    /// Files, with the one that is written.
    pub files: u32,
}

impl fmt::Display for Limits {
    /// What was asked for, for an error: `cpus [2, 3], scheduler fifo, priority 50`; empty if nothing was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.cpus.is_empty() {
            parts.push(format!("cpus {:?}", self.cpus));
        }
        if let Some(scheduler) = self.scheduler {
            parts.push(format!("scheduler {}", Scheduler::NAMES[scheduler as usize]));
            if scheduler.is_real_time() {
                parts.push(format!("priority {}", self.priority));
            }
        }
        if let Some(mib) = self.memory_limit_mib {
            parts.push(format!("memory_limit_mib {mib}"));
        }
        f.write_str(&parts.join(", "))
    }
}
