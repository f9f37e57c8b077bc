//! A node of the demo, in a process of its own: it acts when it hears something and when it is due.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::endpoints::{NodeEndpoints, ReceivedTopic, Sent};
use super::node_logic::{NodeLogic, node_logic};
use super::robot::{DemoJob, NODES};
use crate::measure::figure::Latencies;
use crate::measure::schedule::sleep_precisely;
use crate::measure::worker_link::{Event, Link, ORDER_POLL_INTERVAL, WorkerNode};
use rnet_format::Outcome;

/// The phase in which nodes send no more, and go on receiving.
pub const QUIET_PHASE: usize = 2;
/// A node that was held up for longer leaves out what it missed: a sensor does not measure the past.
const MAX_BEHIND_NS: u64 = 5_000_000;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DemoReport {
    pub sent: Vec<Sent>,
    pub heard: Vec<ReceivedTopic>,
    pub changes: Vec<(u64, bool)>,
    pub round_trips: Latencies,
}

pub fn run(node: &WorkerNode, role: &DemoJob, link: &Link) -> Outcome {
    let spec = &NODES[role.node];
    let mut logic = node_logic(spec.name);
    let mut endpoints = NodeEndpoints::open(node.open()?, spec)?;
    link.report_ready()?;
    run_loop(&mut endpoints, logic.as_mut(), spec.period_ns(), link)?;
    link.send_event(&Event::Sent)?;
    while !link.has_new_order() {
        endpoints.listen(ORDER_POLL_INTERVAL)?;
    }
    endpoints.listen(Duration::ZERO)?;
    let (sent, heard) = endpoints.report();
    let (changes, round_trips) = (logic.changes(), logic.round_trips());
    link.finish(&DemoReport { sent, heard, changes, round_trips })
}

/// Until it is ordered to be quiet.
fn run_loop(
    endpoints: &mut NodeEndpoints,
    logic: &mut dyn NodeLogic,
    period_ns: Option<u64>,
    link: &Link,
) -> Outcome {
    sleep_precisely();
    let mut due_ns = rnet::now_ns();
    while !link.has_new_order() {
        let until_due = || Duration::from_nanos(due_ns.saturating_sub(rnet::now_ns()));
        endpoints.listen(
            period_ns.map_or(ORDER_POLL_INTERVAL, |_| until_due().min(ORDER_POLL_INTERVAL)),
        )?;
        let now_ns = rnet::now_ns();
        let due = period_ns.filter(|_| now_ns >= due_ns);
        if let Some(period_ns) = due {
            due_ns = (due_ns + period_ns).max(now_ns.saturating_sub(MAX_BEHIND_NS));
        }
        logic.step(endpoints, now_ns, due.is_some())?;
    }
    Ok(())
}
