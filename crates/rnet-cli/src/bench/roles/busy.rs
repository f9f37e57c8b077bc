//! A loop that computes: what keeps one core busy beside a bench.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::bench::link::Link;
use crate::failure::Outcome;

/// Turns between two looks for an order.
const TURNS_PER_LOOK: u32 = 1 << 16;

#[derive(Debug, Serialize, Deserialize)]
pub struct BusyJob {
    /// Which of the cores that the bench may use.
    pub core: usize,
}

pub fn compute(role: &BusyJob, link: &Link) -> Outcome {
    stay_on(role.core);
    link.ready()?;
    let mut turns = 0u32;
    while !turns.is_multiple_of(TURNS_PER_LOOK) || !link.ordered() {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
    link.finish(&())
}

/// Cores that this process may use.
pub fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect()
}

fn stay_on(core: usize) {
    let mut only = CpuSet::new();
    if let Some(&cpu) = cores().get(core) {
        only.set(cpu);
        // Where that is refused the scheduler spreads the loops.
        let _ = sched_setaffinity(None, &only);
    }
}
