//! What this machine and this user lack for low latency and low jitter.
//!
//! A message costs a fraction of a microsecond between two awake cores. Everything above that is
//! waking up: a core from its idle state, a thread from the run queue, a page from a disk. Those
//! are settings of the machine and rights of the user, so they are looked at here, one check for
//! each, and every finding says what was read and where, why it matters, and what mends it:
//! - this file: the answer, and the order of the checks;
//! - `machine`: reading `/proc` and `/sys`, any file of which may be missing, barred or garbage;
//! - `cores`: how many, whose, how they sleep, at which clock, who else uses them;
//! - `kernel`: preemption, throttling, slices, clocks;
//! - `memory`: locking, swap, huge pages;
//! - `rights`: real-time priorities.
//!
//! The room for logs and membarrier(2) are checked by `rnet doctor` itself.
//!
//! Looking changes nothing and asks the kernel for nothing but its files: what it says about this
//! process (limits, capabilities, timer slack) holds for programs started from the same shell.
//!
//! What is a [`Level::Problem`]: that which can hold a message up for a millisecond and more on a
//! machine that does nothing else, or which makes each message slower by a multiple: a single core, a CPU
//! quota, no right to a real-time priority, a kernel that does not preempt, a clock
//! that takes a system call, swapping that nothing can forbid. All else that could be better is
//! [`Level::Advice`]; it costs microseconds, or is a matter of taste on a machine without a load.

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

/// What a finding means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Cannot be known from here: the file is missing, barred or not understood.
    Unknown,
    /// Could be better.
    Advice,
    /// Delays messages by milliseconds, or makes each of them slower.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What it means.
    pub level: Level,
    /// Which check found it, a stable word for programs: `preemption`, `rt_priority`, `swap`, …
    pub check: &'static str,
    /// What was found.
    pub what: String,
    /// The files in which it was read.
    pub read_from: String,
    /// Why it matters for robot-net.
    pub why: &'static str,
    /// The command or the line of configuration that mends it; every problem and every piece of
    /// advice has it.
    pub advice: Option<String>,
}

/// Examines this machine, with the domains in `dir`.
pub fn examine(dir: &Path) -> Vec<Finding> {
    examine_at(Path::new("/"), dir)
}

/// Examines the machine whose `/proc`, `/sys`, `/dev`, `/boot` stand below `root`.
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

/// A check that is about to say what it found.
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
