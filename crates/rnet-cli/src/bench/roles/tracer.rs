//! Who traces the topic of a bench, as `rnet trace` does.

use std::time::Duration;

use rnet::inspect::Way;
use rnet::trace::{TraceRecord, trace_topic};
use rnet::{SubscriberOptions, TopicName};
use serde::{Deserialize, Serialize};

use super::{MEET, stream};
use crate::bench::job::WorkerNode;
use crate::bench::link::Link;
use crate::failure::Outcome;

/// Between two looks: that of `rnet trace`.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, Serialize, Deserialize)]
pub struct TracerReport {
    pub records: u64,
    pub lost: u64,
}

pub fn trace(node: &WorkerNode, link: &Link) -> Outcome {
    rnet::inspect::give_way(Way::Late);
    let node = node.open()?;
    let topic = trace_topic(&TopicName::new(stream::TOPIC)?)?;
    let options = SubscriberOptions::new().keep_all().message_type(TraceRecord::plain_type());
    let mut subscriber = node.subscriber_with::<[u8]>(topic.as_str(), options)?;
    // The reader records from here on.
    subscriber.wait_for_publishers(1, Some(MEET))?;
    link.ready()?;
    let mut records = 0;
    loop {
        // What was recorded before the order is still counted.
        let over = link.ordered();
        while let Some(sample) = subscriber.try_recv()? {
            records += u64::from(TraceRecord::from_bytes(&sample).is_some());
        }
        if over {
            break;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    link.finish(&TracerReport { records, lost: subscriber.lost().total() })
}
