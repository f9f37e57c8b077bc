//! Load next to a benchmark: loops that keep cores busy, and an observer that traces a topic.

use std::time::Duration;

use rnet::TopicName;
use rnet::inspect::PriorityChange;
use rnet::trace::{TraceRecord, trace_topic};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::measure::worker_link::{Link, MATCH_TIMEOUT, WorkerNode};
use rnet_format::Outcome;

/// Turns of a busy loop between two checks for an order.
const TURNS_PER_ORDER_CHECK: u32 = 1 << 16;
/// Time between two reads of the tracer, as in `rnet trace`.
const TRACE_INTERVAL: Duration = Duration::from_millis(20);

/// Keeps one of the benchmark's cores busy.
pub fn compute(core: usize, link: &Link) -> Outcome {
    let mut only = CpuSet::new();
    if let Some(&cpu) = cores().get(core) {
        only.set(cpu);
        // If that is refused, the scheduler spreads the loops.
        let _ = sched_setaffinity(None, &only);
    }
    link.report_ready()?;
    let mut turns = 0u32;
    while !turns.is_multiple_of(TURNS_PER_ORDER_CHECK) || !link.has_new_order() {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
    link.finish(&())
}

/// Cores that this process may use.
pub fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect()
}

#[derive(Debug, Serialize, Deserialize)]
pub struct TracerReport {
    pub records: u64,
    pub lost: u64,
}

/// Traces a topic as `rnet trace` does.
pub fn trace(node: &WorkerNode, topic: &str, link: &Link) -> Outcome {
    rnet::inspect::lower_priority(PriorityChange::Batch);
    let node = node.open()?;
    let topic = trace_topic(&TopicName::new(topic)?)?;
    let mut subscriber = node
        .subscriber::<[u8]>(topic.as_str())
        .keep_all()
        .message_type(TraceRecord::plain_type())
        .open()?;
    // The reader records from here on.
    subscriber.wait_for_publishers_timeout(1, MATCH_TIMEOUT)?;
    link.report_ready()?;
    let mut records = 0;
    loop {
        // Records written before the order still count.
        let over = link.has_new_order();
        while let Some(sample) = subscriber.try_recv()? {
            records += u64::from(TraceRecord::from_bytes(&sample).is_some());
        }
        if over {
            break;
        }
        std::thread::sleep(TRACE_INTERVAL);
    }
    link.finish(&TracerReport { records, lost: subscriber.lost().total() })
}
