//! The settings of a node in a file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use rnet::NodeName;
use rnet::inspect::Location;
use rnet_config::ConfigError;
use serde::{Deserialize, Serialize};

use crate::requirements::{self, RequirementError};
use crate::restart_policy::RestartPolicy;

/// A node, as a file requests it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Its process. If its description changes, it is restarted.
    pub process: Process,
    /// Nodes that must be ready before it is started.
    pub after: Vec<NodeName>,
    /// When it is ready.
    pub ready: Ready,
    /// The time after which it is reported as not ready, in ms.
    pub ready_timeout_ms: u64,
    /// The reaction to its exit.
    pub policy: RestartPolicy,
    /// The command to run when it is given up; empty for none.
    pub on_failure: Vec<String>,
    /// Whether it is a companion of the other nodes, like the black box: it is stopped when all of them
    /// have exited, and its failure is reported but does not fail the launch.
    pub is_companion: bool,
    /// The file and line of each key that depends on the machine.
    pub key_positions: BTreeMap<&'static str, String>,
}

impl Node {
    /// A node with default settings for everything but its process.
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

    /// The settings that do not fit this machine, each with its location.
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

/// Placeholder for the launcher's own program.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// When the dependents of a node may be started.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ready {
    /// When its process runs.
    #[default]
    Started,
    /// When it has written to the descriptor in `RNET_READY_FD`.
    Notified,
    /// When its process has exited with code 0.
    Exited,
    /// When its processes publish these topics.
    Publishes(Vec<String>),
}

/// The process of a node. The record of the running process contains it, so that a launcher can compare it
/// with its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub dir: PathBuf,
    /// Environment variables besides those of the launcher.
    pub env: BTreeMap<String, String>,
    /// Parameters that are set before it is started.
    pub params: BTreeMap<String, ParamValue>,
    /// Its resource limits.
    pub limits: Limits,
    /// Time between SIGINT and SIGTERM, in ms; 0 skips SIGINT.
    #[serde(default)]
    pub interrupt_timeout_ms: u64,
    /// Time between SIGTERM and SIGKILL, in ms.
    pub stop_timeout_ms: u64,
    /// Whether it is stopped when the launcher dies.
    pub die_with_launcher: bool,
    /// How much of its output is kept.
    pub log: LogLimits,
}

impl Process {
    /// The domain of its nodes, unless its program specifies another one.
    pub(crate) fn location(&self) -> Option<Location> {
        let env = |name: &str| self.env.get(name).filter(|value| !value.is_empty());
        let dir = env("RNET_DIR").map(PathBuf::from);
        let (domain, group) = (env("RNET_DOMAIN").map(String::as_str), env("RNET_GROUP").cloned());
        Location::new(domain, dir, group).ok()
    }

    /// The longest duration of a stop, until SIGKILL.
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
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<ParamValue>),
}

/// The resource limits of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The cores that it may run on; empty for all.
    pub cpus: Vec<usize>,
    /// Its scheduler; `None` for that of the launcher.
    pub scheduler: Option<Scheduler>,
    /// Priority of `fifo` and `rr`, 1 to 99.
    pub priority: i32,
    /// Private memory, in MiB: RLIMIT_DATA, which does not count shared memory.
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
    /// The names of all schedulers.
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
    /// Number of files, including the current one.
    pub files: u32,
}

impl fmt::Display for Limits {
    /// The requested limits, for an error: `cpus [2, 3], scheduler fifo, priority 50`; empty if there are
    /// none.
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
