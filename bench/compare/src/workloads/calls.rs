//! Duration of a call, compared with a message that is sent back.

use super::studies::ping_pong;
use super::{Choice, Context, Job, SMALL_LEN, Workload};
use bench_harness::Result;
use bench_harness::spec::PingLoad;

/// The system whose messages are sent there and back beside the calls: two of them are what a call is made of.
pub const REFERENCE_SYSTEM: &str = "rnet-adaptive";
/// Calls of a repetition.
const COUNT: f64 = 5000.0;

pub fn workloads() -> Vec<Workload> {
    vec![Workload {
        name: "call",
        title: "Request and reply",
        about: "64 bytes there and 64 back, one client and one server, each a process: as soon as the reply before \
                is there, and one every millisecond. Beside them robot-net's messages sent there and back by two \
                topics.",
        systems: Choice::Calls,
        jobs: calls,
    }]
}

fn calls(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let count = |all: f64| (all * context.scale).max(10.0) as u64;
    let load = |count, period_ms| PingLoad { first_len: SMALL_LEN, step_len: 0, count, period_ms };
    Ok(vec![
        ping_pong("at once", SMALL_LEN, load(count(COUNT), 0.0), COUNT * 1e-4),
        ping_pong("1 ms", SMALL_LEN, load(count(COUNT / 10.0), 1.0), COUNT * 1e-4),
    ])
}
