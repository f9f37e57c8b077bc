//! What this machine and this user lack for low latency and low jitter.
//!
//! A message takes a fraction of a microsecond between two awake cores. Any additional latency comes from a core in an
//! idle state, a thread in the run queue or a page on a disk. It depends on settings of the machine and
//! permissions of the user, which are checked here. Every finding contains what was read and where, why it
//! matters, and how to fix it:
//! - this file: the answer, and the order of the checks;
//! - `machine`: reads `/proc` and `/sys`, any file of which may be missing, unreadable or invalid;
//! - `cores`: number, isolation, idle states, frequency, and what else uses them;
//! - `kernel`: preemption, throttling, slices, clocks;
//! - `memory`: locking, swap, huge pages;
//! - `permissions`: real-time priorities.
//!
//! `host_checks` checks the space for logs and membarrier(2).
//!
//! The checks only read files and change nothing. What they find about this process (limits, capabilities,
//! timer slack) applies to programs started from the same shell.
//!
//! A [`Level::Problem`] can delay a message by a millisecond or more on an otherwise idle machine, or makes
//! each message several times slower: a single core, a CPU quota, no permission for real-time priorities, a
//! kernel without preemption, a clock that needs a system call, swapping that cannot be prevented.
//! Anything else that could be better is [`Level::Advice`]: it costs microseconds, or matters only under load.

mod cores;
mod kernel;
mod machine;
mod memory;
mod permissions;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Serialize;

use machine::Machine;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing to improve.
    Ok,
    /// Unknown: the file is missing, unreadable or invalid.
    Unknown,
    /// Could be better.
    Advice,
    /// Delays messages by milliseconds, or makes each of them several times slower.
    Problem,
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The severity.
    pub level: Level,
    /// The name of the check, stable for programs: `preemption`, `rt_priority`, `swap`, …
    pub check: &'static str,
    /// What was found.
    pub what: String,
    /// The files that were read.
    pub read_from: String,
    /// Why it matters for robot-net.
    pub why: &'static str,
    /// The command or configuration line that fixes it; present for [`Level::Problem`] and [`Level::Advice`].
    pub advice: Option<String>,
}

/// Examines this machine, with the domains in `dir`.
pub fn examine(dir: &Path) -> Vec<Finding> {
    examine_at(Path::new("/"), dir)
}

/// Examines the machine whose `/proc`, `/sys`, `/dev`, `/boot` are in `root`.
fn examine_at(root: &Path, dir: &Path) -> Vec<Finding> {
    let machine = Machine { root, dir };
    let checks: [fn(&Machine<'_>) -> Finding; 21] = [
        permissions::rt_priority,
        permissions::rt_time,
        kernel::preemption,
        kernel::rt_throttling,
        cores::count,
        cores::quota,
        cores::isolated,
        cores::irqbalance,
        cores::governor,
        cores::idle_states,
        cores::dma_latency,
        cores::virtual_machine,
        cores::steal,
        memory::lock,
        memory::swap,
        memory::huge_heap_pages,
        memory::huge_shared_pages,
        kernel::clock_source,
        kernel::timer_slack,
        kernel::time_slices,
        kernel::autogroup,
    ];
    checks.iter().map(|check| check(&machine)).collect()
}

/// A check, before its result is known.
struct Check {
    name: &'static str,
    read_from: String,
    why: &'static str,
}

impl Check {
    fn new(name: &'static str, read_from: impl Into<String>, why: &'static str) -> Check {
        Check { name, read_from: read_from.into(), why }
    }

    fn found(self, level: Level, what: String, advice: Option<String>) -> Finding {
        let Check { name: check, read_from, why } = self;
        Finding { level, check, what, read_from, why, advice }
    }

    fn ok(self, what: impl Into<String>) -> Finding {
        self.found(Level::Ok, what.into(), None)
    }

    fn unknown(self, what: impl Into<String>) -> Finding {
        self.found(Level::Unknown, what.into(), None)
    }

    fn advice(self, what: impl Into<String>, advice: impl Into<String>) -> Finding {
        self.found(Level::Advice, what.into(), Some(advice.into()))
    }

    fn problem(self, what: impl Into<String>, advice: impl Into<String>) -> Finding {
        self.found(Level::Problem, what.into(), Some(advice.into()))
    }
}
